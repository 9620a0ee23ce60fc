CREATE TABLE orders (id INTEGER);

---- create above / drop below ----

DROP TABLE orders;
