CREATE TABLE orders (id int8);
