-- Migration: orders
-- ====  UP  ====
CREATE TABLE orders (id INTEGER);
-- ==== DOWN ====
DROP TABLE orders;
