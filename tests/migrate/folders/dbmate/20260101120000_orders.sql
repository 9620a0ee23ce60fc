-- migrate:up
CREATE TABLE orders (id INTEGER);

-- migrate:down
DROP TABLE orders;
