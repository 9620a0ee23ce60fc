-- == members of arrays ==
CREATE TABLE t (id INT PRIMARY KEY, tags JSON, KEY k ((CAST(tags AS CHAR(20) ARRAY))));

INSERT INTO t VALUES (1, '["a;", "b"]'), (2, '["c"]');

CREATE TABLE u AS SELECT id FROM t WHERE 'a;' MEMBER OF (tags) OR JSON_CONTAINS(tags, '"c"');

-- == characters of mysql ==
CREATE TABLE t (a VARCHAR(9) CHARACTER SET gb18030, b VARCHAR(9) COLLATE utf8mb4_0900_as_cs, c VARCHAR(9) CHARACTER SET utf16);

INSERT INTO t VALUES ('中;', 'É', 'ß'), (_gb18030 0xD6D0, _utf8mb4'é' COLLATE utf8mb4_0900_ai_ci, 'c');

SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci;

CREATE VIEW v AS SELECT 'ü;' AS a;

-- == deletes and updates by cte ==
CREATE TABLE t (a INT, b INT);

INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);

WITH x AS (SELECT 2 AS a) DELETE t FROM t JOIN x USING (a);

WITH x (m) AS (SELECT MAX(b) FROM t) UPDATE t, x SET t.b = x.m + 1 WHERE t.a = 1;

WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i, ';' FROM n;

-- == locks that skip ==
CREATE TABLE t (a INT PRIMARY KEY);

INSERT INTO t VALUES (1), (2);

SELECT a FROM t WHERE a = 1 FOR UPDATE SKIP LOCKED;

SELECT a FROM t FOR SHARE OF t NOWAIT;

INSERT INTO t SELECT a + 10 FROM t;

-- == prepared statements of mysql ==
PREPARE a FROM 'CREATE TABLE t (a INT, b VARCHAR(9) DEFAULT '';'')';

EXECUTE a;

PREPARE a FROM "INSERT INTO t (a) VALUES (?), (? + 1)";

SET @x = 5;

EXECUTE a USING @x, @x;

DEALLOCATE PREPARE a;

-- == views of mysql ==
CREATE TABLE t (a INT, j JSON);

CREATE VIEW v (`a;`, k) AS SELECT a, j->>'$.k' FROM t WHERE a > 0 WITH CASCADED CHECK OPTION;

-- == names with dots and blanks ==
CREATE TABLE `t.u` (`a b` INT, ` lead` INT);

INSERT INTO `t.u` (`a b`) VALUES (1);

CREATE VIEW `v;w` AS SELECT `t.u`.`a b` AS `x.y` FROM `t.u`;

CREATE PROCEDURE `p.q`(`in x` INT) INSERT INTO `t.u` (`a b`) VALUES (`in x`);

CALL `p.q`(5);

-- == every time function that stands still ==
SET timestamp = 1577836800, time_zone = '+00:00';

CREATE TABLE t AS SELECT NOW() AS a, CURDATE() AS b, UNIX_TIMESTAMP() AS c, DATE_FORMAT(NOW(), '%Y;%m') AS d, EXTRACT(YEAR_MONTH FROM NOW()) AS e, TIMESTAMPDIFF(DAY, '2019-01-01', NOW()) AS f, STR_TO_DATE('01;02;2020', '%d;%m;%Y') AS g;

SET timestamp = DEFAULT;

INSERT INTO t SELECT * FROM t;
