-- == xml and regular expressions ==
CREATE TABLE t AS SELECT EXTRACTVALUE('<a><b>x;</b></a>', '/a/b') AS x, UPDATEXML('<a>1</a>', '/a', '<b>;</b>') AS u, REGEXP_REPLACE('a;b', ';', '--') AS r, REGEXP_SUBSTR('ab12', '[0-9]+') AS s, 'a' RLIKE '^a$' AS l;

-- == natural and lateral joins ==
CREATE TABLE a (id INT, x INT);¶ CREATE TABLE b (id INT, y INT);

INSERT INTO a VALUES (1, 1), (2, 2);¶ INSERT INTO b VALUES (2, 20);

CREATE TABLE c AS SELECT * FROM a NATURAL LEFT JOIN b;

CREATE VIEW v AS SELECT a.id, (SELECT GROUP_CONCAT(y SEPARATOR ';') FROM b WHERE b.id = a.id) AS ys FROM a STRAIGHT_JOIN b;

-- == a foreign key of many columns ==
CREATE TABLE p (a INT, b INT, PRIMARY KEY (a, b));

CREATE TABLE c (x INT, y INT, CONSTRAINT FOREIGN KEY fk (x, y) REFERENCES p (a, b) ON UPDATE CASCADE);

INSERT INTO p VALUES (1, 2);¶ INSERT INTO c VALUES (1, 2);

UPDATE p SET b = 3;

-- == binary logs and numbers of statements ==
CREATE TABLE t (a INT);

SET @@session.insert_id = 5;

SET SESSION max_statement_time = 60, LOCAL wait_timeout = 1000, @@lc_time_names = 'de_DE';

CREATE TABLE u AS SELECT DAYNAME('2020-01-01') AS d, @@lc_time_names AS l;

-- == partitions that are exchanged ==
CREATE TABLE p (a INT) PARTITION BY RANGE (a) (PARTITION x VALUES LESS THAN (10), PARTITION y VALUES LESS THAN (20));

CREATE TABLE e (a INT);

INSERT INTO p VALUES (1), (11);¶ INSERT INTO e VALUES (2);

ALTER TABLE p EXCHANGE PARTITION x WITH TABLE e;

ALTER TABLE p ADD PARTITION (PARTITION z VALUES LESS THAN (30));

ALTER TABLE p DROP PARTITION y;

SELECT * FROM p PARTITION (x);

-- == unique of long texts ==
CREATE TABLE t (a TEXT UNIQUE, b BLOB, UNIQUE (b) USING HASH);

INSERT INTO t VALUES (REPEAT('x;', 2000), 'b'), ('y', NULL);

-- == auto columns by default ==
CREATE TABLE t (a INT, at TIMESTAMP, up TIMESTAMP(2) DEFAULT '2020-01-01' ON UPDATE NOW(2));

INSERT INTO t (a, at) VALUES (1, '2020-01-01 10:00:00');

ALTER TABLE t ALTER at DROP DEFAULT;

-- == words in any place ==
CREATE TABLE `table` (`select` INT, `from` INT, of INT, `for` INT, open INT, close INT, next INT, prior INT, handler INT, until INT, `return` INT, `leave` INT, `iterate` INT, `fetch` INT, `cursor` INT, `signal` INT, body INT, package INT, sequence INT, history INT, period INT);

INSERT INTO `table` (of, open, until, body, package) VALUES (1, 2, 3, 4, 5);

UPDATE `table` SET handler = open + close, next = until, period = package;

-- == a function that is called in many ways ==
CREATE FUNCTION `a;b`(x INT) RETURNS VARCHAR(20) DETERMINISTIC RETURN CONCAT(x, ';');

CREATE TABLE t AS SELECT `a;b`(1) AS x, `a;b` (2) AS y;

SET @r = `a;b`(3);

DO `a;b`(4);

INSERT INTO t VALUES (@r, 'z');

-- == sql security and comments ==
CREATE PROCEDURE p() LANGUAGE SQL NOT DETERMINISTIC CONTAINS SQL SQL SECURITY DEFINER COMMENT "a 'quoted; comment" BEGIN /* empty; */ END;

CREATE TABLE t (a INT) COMMENT = 'begin; end';

-- == what a set sets ==
SET @a := 1, @b = @a + 1, SESSION sql_mode = 'TRADITIONAL', @c = (SELECT 'x;' FROM DUAL);

CREATE TABLE t AS SELECT @a AS a, @b AS b, @c AS c;

SET NAMES latin1;

SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci;

CREATE VIEW v AS SELECT 'ä' AS a;

SET CHARACTER SET utf8mb4;

INSERT INTO t VALUES (5, 6, 'ß');

-- == statements that end a line later ==
CREATE TABLE t (
  a INT -- one; two
  ,
  b INT # three;
)
-- between
;

INSERT INTO t
VALUES (1, 2)
/* last; */
;
