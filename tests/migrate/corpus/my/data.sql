-- == upserts ==
CREATE TABLE t (k VARCHAR(5) PRIMARY KEY, n INT DEFAULT 0);

INSERT INTO t VALUES ('a', 1), ('b', 2);

INSERT INTO t VALUES ('a', 5), ('c', 6) ON DUPLICATE KEY UPDATE n = n + VALUES(n);

INSERT IGNORE INTO t VALUES ('b', 9), ('d', 1);

REPLACE INTO t (k, n) VALUES ('c', 100);

INSERT INTO t SELECT CONCAT(k, k), n FROM t AS x WHERE n < 3 ON DUPLICATE KEY UPDATE n = 0;

-- == common table expressions ==
CREATE TABLE t (a INT, b INT);

INSERT INTO t WITH RECURSIVE f (a, b) AS (SELECT 0, 1 UNION ALL SELECT b, a + b FROM f WHERE b < 50) SELECT a, b FROM f;

CREATE TABLE u AS WITH x AS (SELECT MAX(a) AS m FROM t), y AS (SELECT ';' AS s) SELECT m, s FROM x, y;

-- == window functions ==
CREATE TABLE s (dept CHAR(1), pay INT);

INSERT INTO s VALUES ('a', 10), ('a', 20), ('b', 5), ('b', 7);

CREATE TABLE r AS SELECT dept, pay, RANK() OVER w AS rk, LAG(pay) OVER (PARTITION BY dept ORDER BY pay) AS lg, SUM(pay) OVER (PARTITION BY dept ORDER BY pay ROWS UNBOUNDED PRECEDING) AS sm FROM s WINDOW w AS (PARTITION BY dept ORDER BY pay DESC);

-- == joins that change rows ==
CREATE TABLE a (id INT PRIMARY KEY, n INT);¶ CREATE TABLE b (id INT PRIMARY KEY, n INT);

INSERT INTO a VALUES (1, 0), (2, 0), (3, 0);¶ INSERT INTO b VALUES (1, 10), (2, 20);

UPDATE a JOIN b USING (id) SET a.n = b.n, b.n = b.n + 1;

DELETE a FROM a LEFT JOIN b ON a.id = b.id WHERE b.id IS NULL;

DELETE FROM a USING a INNER JOIN b WHERE a.id = b.id AND b.n > 20;

UPDATE b SET n = 5 ORDER BY id DESC LIMIT 1;

-- == user variables ==
CREATE TABLE t (a INT, b VARCHAR(20));

SET @a = 5, @b := 'x;y', @`c d` = 'quoted', @'e' = "f";

INSERT INTO t VALUES (@a, @b), (@a + 1, @`c d`), (0, @'e');

SELECT @n := COUNT(*) FROM t;

SELECT a, b INTO @x, @y FROM t WHERE a = 5;

INSERT INTO t VALUES (@n, @y);

SET @r = 0;

UPDATE t SET a = (@r := @r + 1);

-- == prepared statements ==
CREATE TABLE t (a INT, b VARCHAR(20));

PREPARE st FROM 'INSERT INTO t VALUES (?, ?)';

SET @a = 1, @b = 'x;';

EXECUTE st USING @a, @b;

SET @sql = CONCAT('ALTER TABLE t ADD COLUMN c INT DEFAULT ', 5, ' COMMENT ''a;b''');

PREPARE st FROM @sql;

EXECUTE st;

DEALLOCATE PREPARE st;

-- == a column that is added if it lacks ==
CREATE TABLE t (a INT);

SET @have = (SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 't' AND column_name = 'b');

SET @do = IF(@have = 0, 'ALTER TABLE t ADD b INT', 'SELECT "there;"');

PREPARE stmt FROM @do;

EXECUTE stmt;

DROP PREPARE stmt;

INSERT INTO t VALUES (1, 2);

-- == json functions ==
CREATE TABLE t (j JSON);

INSERT INTO t VALUES ('{"a": [1, 2, {"b": "x;"}]}'), (JSON_ARRAY(1, NULL, 'y'));

CREATE TABLE u AS SELECT x.n, x.s FROM JSON_TABLE('[{"n": 1, "s": "a;"}, {"n": 2}]', '$[*]' COLUMNS (n INT PATH '$.n', s VARCHAR(5) PATH '$.s' DEFAULT '"no"' ON EMPTY)) AS x;

UPDATE t SET j = JSON_MERGE_PATCH(j, '{"c": true}') WHERE JSON_CONTAINS_PATH(j, 'one', '$.a');

-- == full text ==
CREATE TABLE t (id INT PRIMARY KEY, body TEXT, FULLTEXT KEY (body)) ENGINE=InnoDB;

INSERT INTO t VALUES (1, 'the quick; brown fox'), (2, 'lazy -- dog');

CREATE TABLE hits AS SELECT id FROM t WHERE MATCH (body) AGAINST ('+quick -dog' IN BOOLEAN MODE);

-- == strings of every form ==
CREATE TABLE t (a VARCHAR(200));

INSERT INTO t VALUES ('plain;'), ('it''s;'), ('it\'s;'), ("dou""ble;"), ("q\";"), ('a\\'), ("b\\"), ('tab\t nl\n; \Z \0 \%'), ('two ' 'parts;' "three"), (x'3B'), (0x3b27), (b'00111011'), (_utf8mb4'ä;'), (_latin1 X'E4'), (N'n;'), ("';'"), ('";"'), ('-- x'), ('/* y'), ('# z');

INSERT INTO t VALUES ('lines
; of
-- text');

-- == numbers of every form ==
CREATE TABLE t AS SELECT 1 AS a, -1.5 AS b, .5 AS c, 1e3 AS d, 1.5E-3 AS e, 0xFF + 0 AS f, 0b11 + 0 AS g, 7 DIV 2 AS h, 7 % 3 AS i, 7 MOD 3 AS j, 1 << 4 AS k, 5 ^ 1 AS l, ~0 AS m, !1 AS n, 5--1 AS o, 5 - -1 AS p, - - 2 AS q;

-- == operators and words ==
CREATE TABLE t AS SELECT 1 <=> NULL AS a, 'a' LIKE 'a|%' ESCAPE '|' AS b, 'x;' REGEXP '^x;$' AS c, 1 XOR 0 AS d, NOT 1 AS e, 1 && 0 AS f, 3 BETWEEN 1 AND 5 AS g, INTERVAL(5, 1, 10) AS h, DATE '2020-01-31' + INTERVAL 1 MONTH AS i, IF(1, 'yes;', 'no') AS j, IFNULL(NULL, 'x') AS k, CASE 1 WHEN 1 THEN 'one' ELSE 'no' END AS l, 'a' IN ('a', 'b;') AS m, REPEAT('x;', 2) AS n, REPLACE('a;b;', ';', '--') = 'a--b--' AS o, INSERT('abc', 2, 1, ';') AS p, LEFT('ab', 1) AS q;

-- == generated data in a query ==
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(40));

INSERT INTO t WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 300) SELECT i, CONCAT('v;', HEX(i)) FROM n;

UPDATE t SET v = NULL WHERE id % 7 = 0;

-- == words that are names bare ==
CREATE TABLE event (begin DATE, `end` DATE, finish INT, language VARCHAR(5), action INT, value INT, at INT, status INT, `case` INT, `if` INT, `loop` INT, `repeat` INT, `while` INT, `order` INT, `procedure` INT, `trigger` INT, `declare` INT);

INSERT INTO event (begin, `end`, `case`, `if`, `loop`) VALUES ('2020-01-01', NULL, 1, 2, 3);

UPDATE event SET finish = `case` + event.if, event.end = begin, event.loop = event.case WHERE event.begin IS NOT NULL;

CREATE INDEX begin ON event (begin);

CREATE VIEW begin AS SELECT begin, e.end, e.begin AS `begin2` FROM event e;

SELECT 1 AS begin;

ALTER TABLE event ADD commit INT, ADD rollback INT, ADD `start` INT, ADD transaction INT, ADD savepoint INT, ADD work INT;

UPDATE event SET commit = 1, rollback = 2, transaction = 3;

-- == functions whose names are columns ==
CREATE TABLE t (position INT, count INT, date_add INT, now INT, `sum` INT, curdate INT, cast INT, mid INT, max INT, session_user INT);

INSERT INTO t (position, count, now, max) VALUES (1, 2, 3, 4);

SELECT COUNT(*), MAX(max), SUM(position + count) FROM t;

-- == what counts changed rows ==
CREATE TABLE t (a INT);

CREATE TABLE n (rows_changed INT);

INSERT INTO t VALUES (1), (2), (3);

UPDATE t SET a = 1 WHERE a < 3;

INSERT INTO n SELECT ROW_COUNT();

DELETE FROM t WHERE a = 1;

INSERT INTO n VALUES (ROW_COUNT());

SELECT SQL_CALC_FOUND_ROWS * FROM t LIMIT 1;

INSERT INTO n VALUES (FOUND_ROWS());

-- == quoted names ==
CREATE TABLE `a;b` (`c``d` INT, `select` INT, `e'f` INT, `--` INT, `/*` INT, `#` INT, `"` INT);

INSERT INTO `a;b` (`c``d`, `select`, `e'f`, `--`, `/*`, `#`) VALUES (1, 2, 3, 4, 5, 6);

CREATE INDEX `i;` ON `a;b` (`c``d`);

SELECT `a;b`.`--` FROM `a;b` WHERE `/*` = 5;

-- == names in other letters ==
CREATE TABLE größe (straße VARCHAR(20), `имя` VARCHAR(20), 表 INT, 1st INT, a$b INT, _x INT);

INSERT INTO größe (straße, имя, 1st, a$b) VALUES ('Weg; 5', 'да', 1, 2);

-- == locks of rows ==
CREATE TABLE t (a INT PRIMARY KEY, b INT);

INSERT INTO t VALUES (1, 1), (2, 2);

SELECT * FROM t WHERE a = 1 FOR UPDATE;

SELECT * FROM t LOCK IN SHARE MODE;

UPDATE t SET b = b + 1;

-- == only selects ==
SET @x = 1;

SELECT @x + 1;

SELECT ';' AS `a;b` FROM DUAL;

SELECT 1 UNION SELECT 2;

-- == strict and lax ==
CREATE TABLE t (a TINYINT, b VARCHAR(2) NOT NULL);

SET sql_mode = '';

INSERT INTO t VALUES (1000, 'long;');

INSERT INTO t (a) VALUES (1);

SET sql_mode = DEFAULT;

INSERT IGNORE INTO t VALUES (2000, 'xyz');
