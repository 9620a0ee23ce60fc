-- // orders
CREATE TABLE orders (id INTEGER);

-- //@UNDO
DROP TABLE orders;
