# --- !Ups
CREATE TABLE orders (id INTEGER);

# --- !Downs
DROP TABLE orders;
