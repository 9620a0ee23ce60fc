-- rambler up
CREATE TABLE orders (id INTEGER);

-- rambler down
DROP TABLE orders;
