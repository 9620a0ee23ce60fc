DELETE FROM orders;
