-- == a shop ==
CREATE TABLE customers (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, email VARCHAR(255) NOT NULL, PRIMARY KEY (id), UNIQUE KEY uq_email (email)) ENGINE=InnoDB;

CREATE TABLE orders (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, customer_id BIGINT UNSIGNED NOT NULL, state ENUM('open', 'paid', 'sent') NOT NULL DEFAULT 'open', total DECIMAL(12, 2) NOT NULL, PRIMARY KEY (id), CONSTRAINT fk_customer FOREIGN KEY (customer_id) REFERENCES customers (id) ON DELETE RESTRICT, CHECK (total >= 0));

INSERT INTO customers (email) VALUES ('a@example.org'), ('b@example.org');

INSERT INTO orders (customer_id, total) SELECT id, id * 1.5 FROM customers;

ALTER TABLE orders ADD COLUMN currency CHAR(3) NULL AFTER total, ADD INDEX by_state (state, customer_id);

UPDATE orders SET currency = 'EUR' WHERE currency IS NULL;

ALTER TABLE orders MODIFY currency CHAR(3) NOT NULL;

-- == a column that moves ==
CREATE TABLE users (id INT PRIMARY KEY, full_name VARCHAR(50));

INSERT INTO users VALUES (1, 'Ada Lovelace'), (2, 'Bob');

ALTER TABLE users ADD first VARCHAR(25), ADD last VARCHAR(25);

UPDATE users SET first = SUBSTRING_INDEX(full_name, ' ', 1), last = NULLIF(SUBSTRING(full_name, LENGTH(first) + 2), '');

ALTER TABLE users DROP full_name;

-- == a tree ==
CREATE TABLE node (id INT PRIMARY KEY, parent INT, name VARCHAR(10), FOREIGN KEY (parent) REFERENCES node (id));

INSERT INTO node VALUES (1, NULL, 'root'), (2, 1, 'a'), (3, 1, 'b;'), (4, 2, 'a/c');

CREATE VIEW paths AS WITH RECURSIVE p (id, path) AS (SELECT id, CAST(name AS CHAR(100)) FROM node WHERE parent IS NULL UNION ALL SELECT n.id, CONCAT(p.path, '/', n.name) FROM node n JOIN p ON n.parent = p.id) SELECT id, path FROM p;

CREATE TABLE flat AS SELECT * FROM paths;

-- == audit by triggers ==
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10));

CREATE TABLE audit (n INT AUTO_INCREMENT PRIMARY KEY, op VARCHAR(10), old_row JSON, new_row JSON);

DELIMITER //

CREATE TRIGGER t_ai AFTER INSERT ON t FOR EACH ROW
BEGIN
  INSERT INTO audit (op, new_row) VALUES ('insert;', JSON_OBJECT('id', NEW.id, 'v', NEW.v));
END//

CREATE TRIGGER t_au AFTER UPDATE ON t FOR EACH ROW
BEGIN
  IF NEW.v <> OLD.v THEN
    INSERT INTO audit (op, old_row, new_row) VALUES ('update', JSON_OBJECT('v', OLD.v), JSON_OBJECT('v', NEW.v));
  END IF;
END //

DELIMITER ;

INSERT INTO t VALUES (1, 'a'), (2, 'b//');

UPDATE t SET v = 'c;' WHERE id = 1;

-- == a table that is rebuilt ==
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(5));

INSERT INTO t VALUES (1, 'a'), (2, 'b');

CREATE TABLE t_new LIKE t;

ALTER TABLE t_new ADD w INT NOT NULL DEFAULT 0;

INSERT INTO t_new (id, v) SELECT id, v FROM t;

RENAME TABLE t TO t_old, t_new TO t;

DROP TABLE t_old;

-- == rows in batches bare ==
CREATE TABLE big (id INT PRIMARY KEY, done TINYINT DEFAULT 0);

INSERT INTO big (id) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 120) SELECT i FROM n;

CREATE PROCEDURE batches()
BEGIN
  DECLARE touched INT DEFAULT 1;
  WHILE touched > 0 DO
    UPDATE big SET done = 1 WHERE done = 0 ORDER BY id LIMIT 50;
    SET touched = ROW_COUNT();
  END WHILE;
END;

CALL batches();

DROP PROCEDURE batches;
