-- +goose Up
CREATE TABLE orders (id INTEGER);

-- +goose Down
DROP TABLE orders;
