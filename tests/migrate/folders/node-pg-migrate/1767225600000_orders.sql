-- Up Migration
CREATE TABLE orders (id INTEGER);

-- Down Migration
DROP TABLE orders;
