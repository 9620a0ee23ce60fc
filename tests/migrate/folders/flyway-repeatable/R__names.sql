CREATE VIEW names AS SELECT id FROM orders;
