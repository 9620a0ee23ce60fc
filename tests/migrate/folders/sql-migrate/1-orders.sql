
-- +migrate Up
CREATE TABLE orders (id INTEGER);

-- +migrate Down
DROP TABLE orders;
