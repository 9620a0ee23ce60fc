-- == invisible columns and indexes ==
CREATE TABLE t (a INT, b INT INVISIBLE DEFAULT 5, KEY k (b) INVISIBLE);

ALTER TABLE t ALTER INDEX k VISIBLE, ALTER COLUMN b SET VISIBLE;

INSERT INTO t (a) VALUES (1);

-- == indexes on expressions ==
CREATE TABLE t (a INT, b VARCHAR(20), j JSON, KEY e ((a + 1), (LOWER(b)) DESC), KEY m ((CAST(j->'$.ns' AS UNSIGNED ARRAY))));

CREATE INDEX x ON t ((CASE WHEN a > 1 THEN 'big;' ELSE 'small' END));

INSERT INTO t VALUES (1, 'X;', '{"ns": [1, 2]}');

CREATE TABLE u AS SELECT a FROM t WHERE 2 MEMBER OF (j->'$.ns');

-- == json columns ==
CREATE TABLE t (j JSON DEFAULT (JSON_OBJECT('a', ';')), v VARCHAR(10) AS (j->>'$.a') STORED);

INSERT INTO t () VALUES ();

INSERT INTO t (j) VALUES ('{"a": "x;", "b": [1, {"c": "\\"q\\""}]}');

UPDATE t SET j = JSON_SET(j, '$.a', 'y') WHERE j->'$.b[1].c' IS NOT NULL;

CREATE TABLE u AS SELECT JSON_VALUE(j, '$.a' RETURNING CHAR(5)) AS a, JSON_PRETTY(j) AS p, JSON_OVERLAPS('[1]', '[1, 2]') AS o, JSON_SCHEMA_VALID('{"type": "object"}', j) AS s FROM t;

-- == checks that are not enforced ==
CREATE TABLE t (a INT CONSTRAINT pos CHECK (a > 0) NOT ENFORCED, b INT, CONSTRAINT c CHECK (b <> a) ENFORCED);

INSERT INTO t VALUES (-1, 2);

ALTER TABLE t ALTER CHECK c NOT ENFORCED, DROP CHECK pos;

ALTER TABLE t ADD CONSTRAINT d CHECK (REGEXP_LIKE(CAST(b AS CHAR), '^[0-9;]+$'));

-- == instant changes ==
CREATE TABLE t (a INT);

INSERT INTO t VALUES (1);

ALTER TABLE t ADD b VARCHAR(5) DEFAULT 'x;', ALGORITHM=INSTANT;

ALTER TABLE t DROP COLUMN a, ALGORITHM=INSTANT;

ALTER TABLE t ADD c INT FIRST, ALGORITHM=INPLACE, LOCK=NONE;

-- == rows as values ==
CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(5));

INSERT INTO t VALUES ROW(1, 'a;'), ROW(2, 'b');

INSERT INTO t VALUES (1, 'c'), (3, 'd') AS new ON DUPLICATE KEY UPDATE b = CONCAT(new.b, ';');

INSERT INTO t VALUES (2, 'e') AS n (x, y) ON DUPLICATE KEY UPDATE b = y;

TABLE t ORDER BY a LIMIT 1;

CREATE TABLE u TABLE t;

INSERT INTO u TABLE t;

-- == set operations ==
CREATE TABLE t AS (VALUES ROW(1), ROW(2)) EXCEPT (SELECT 2);

CREATE TABLE u AS SELECT 1 AS a UNION ALL SELECT 2 INTERSECT DISTINCT SELECT 2 ORDER BY a DESC LIMIT 5;

(SELECT 1) UNION (SELECT 2) ORDER BY 1;

-- == lateral tables ==
CREATE TABLE a (id INT);

INSERT INTO a VALUES (1), (2);

CREATE TABLE t AS SELECT a.id, l.m FROM a, LATERAL (SELECT MAX(b.id) AS m FROM a b WHERE b.id <= a.id) AS l;

CREATE TABLE u AS SELECT j.* FROM a, JSON_TABLE(CONCAT('[', a.id, ',";"]'), '$[*]' COLUMNS (o FOR ORDINALITY, v VARCHAR(5) PATH '$' NULL ON ERROR, NESTED PATH '$.x' COLUMNS (n INT PATH '$'))) j;

-- == grouping ==
CREATE TABLE s (a VARCHAR(3), n INT);

INSERT INTO s VALUES ('x', 1), ('x', 2), ('y;', 3);

CREATE TABLE t AS SELECT a, GROUPING(a) AS g, SUM(n) AS s, JSON_ARRAYAGG(n) AS j, GROUP_CONCAT(n ORDER BY n SEPARATOR ';') AS c FROM s GROUP BY a WITH ROLLUP;

CREATE TABLE u AS SELECT a, NTH_VALUE(n, 2) OVER (ORDER BY n) AS nv, PERCENT_RANK() OVER (ORDER BY n) AS pr FROM s;

-- == comments on columns and tables ==
CREATE TABLE t (a INT COMMENT 'it''s; -- #', b INT COMMENT "a \"b\";") COMMENT '/* x */';

ALTER TABLE t COMMENT = 'new;', MODIFY a BIGINT COMMENT 'n;';

-- == spatial reference systems ==
CREATE TABLE g (p POINT NOT NULL SRID 4326, SPATIAL KEY (p), l GEOMETRYCOLLECTION);

INSERT INTO g (p) VALUES (ST_SRID(POINT(1, 2), 4326)), (ST_GeomFromText('POINT(3 4)', 4326, 'axis-order=long-lat'));

-- == roles in a database ==
CREATE TABLE t (a INT);

CREATE SQL SECURITY DEFINER VIEW v AS SELECT a FROM t;

GRANT SELECT ON v TO reader;

GRANT SHOW VIEW, TRIGGER ON t TO reader WITH GRANT OPTION;

REVOKE IF EXISTS TRIGGER ON t FROM reader IGNORE UNKNOWN USER;

SET ROLE DEFAULT;

-- == optimizer hints and variables ==
SET SESSION sort_buffer_size = 300000, @@SESSION.optimizer_switch = 'mrr=off', @@max_execution_time = 0;

CREATE TABLE t (a INT, KEY k (a));

INSERT INTO t SELECT /*+ SET_VAR(max_execution_time = 5000) NO_INDEX(t k) */ 1;

SELECT /*+ QB_NAME(q;b) */ 1;

EXPLAIN FORMAT=TREE SELECT * FROM t;

ANALYZE TABLE t UPDATE HISTOGRAM ON a WITH 4 BUCKETS;

-- == functional defaults ==
CREATE TABLE t (a VARCHAR(40) DEFAULT (CONCAT(';', 'x')), b DATE DEFAULT (DATE '2020-01-01' + INTERVAL 1 YEAR), c JSON DEFAULT ('[1, ";"]'), d INT DEFAULT (ABS(-5)), e BINARY(4) DEFAULT (0x61623B00));

INSERT INTO t () VALUES (), ();

ALTER TABLE t ALTER d SET DEFAULT (7);

-- == vectors ==
CREATE TABLE t (id INT, v VECTOR(3));

INSERT INTO t VALUES (1, STRING_TO_VECTOR('[1, 2, 3.5]'));

CREATE TABLE u AS SELECT VECTOR_TO_STRING(v) AS s, VECTOR_DIM(v) AS d FROM t;

-- == generated primary keys ==
SET sql_generate_invisible_primary_key = ON;

CREATE TABLE t (a INT);

INSERT INTO t VALUES (1), (2);

SET sql_generate_invisible_primary_key = OFF;

CREATE TABLE u (a INT);

-- == foreign keys of mysql ==
CREATE TABLE p (id INT PRIMARY KEY, x INT UNIQUE);

CREATE TABLE c (id INT, x INT, FOREIGN KEY (x) REFERENCES p (x) ON DELETE SET NULL ON UPDATE CASCADE);

INSERT INTO p VALUES (1, 10), (2, 20);¶ INSERT INTO c VALUES (1, 10), (2, 20);

UPDATE p SET x = 11 WHERE id = 1;

DELETE FROM p WHERE id = 2;

ALTER TABLE c DROP CONSTRAINT c_ibfk_1, RENAME INDEX x TO by_x;

-- == comments for mysql alone ==
CREATE TABLE t (a INT);

INSERT INTO t VALUES (1 /*!80000 + 10 */ /*!99999 + 100 */);

INSERT INTO t VALUES (2 /*M!100100 + 10 */);

/*!80000 INSERT INTO t VALUES (3) */;

INSERT INTO t /*!80013 VALUES (LENGTH(';')) */ /*!999999 , (nothing) */;

-- == a header of mysqldump ==
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!50503 SET NAMES utf8mb4 */;

/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t` (
  `id` int NOT NULL AUTO_INCREMENT,
  `v` varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL,
  `g` int GENERATED ALWAYS AS ((length(`v`) + 1)) VIRTUAL,
  PRIMARY KEY (`id`),
  CONSTRAINT `t_chk_1` CHECK ((`v` <> _utf8mb4';'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;

INSERT INTO `t` (`id`, `v`) VALUES (1,'a;'),(2,_binary 'b');
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
-- == resource groups and others for the session ==
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;

SET autocommit = 1;

SET @j = JSON_OBJECT('k', ';'), @@session.time_zone = '+02:00';

CREATE TABLE t AS SELECT JSON_UNQUOTE(JSON_EXTRACT(@j, '$.k')) AS k, CAST('2020-01-01' AS DATETIME) AS d;

SHOW WARNINGS;

SHOW VARIABLES LIKE 'sql_mode';

-- == multi valued and descending ==
CREATE TABLE t (a INT, b INT, c JSON, PRIMARY KEY (a DESC), UNIQUE KEY u (b DESC, a), KEY m (b, (CAST(c->'$' AS CHAR(10) ARRAY))));

INSERT INTO t VALUES (1, 2, '["x;", "y"]'), (2, 1, '[]');

-- == auto increments kept by the server ==
CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, b INT) AUTO_INCREMENT = 7;

INSERT INTO t (b) VALUES (1);

DELETE FROM t;

ALTER TABLE t AUTO_INCREMENT = 50;

INSERT INTO t (b) VALUES (LAST_INSERT_ID());

SET @@auto_increment_increment = 10;

INSERT INTO t (b) VALUES (3), (4);

-- == regular expressions of mysql ==
CREATE TABLE t AS SELECT REGEXP_REPLACE('a;b', ';', '--') AS a, REGEXP_INSTR('x;y', ';') AS b, 'a' REGEXP '^[[:alpha:]]$' AS c, REGEXP_SUBSTR('k="v;"', '"[^"]*"') AS d, 'x' SOUNDS LIKE 'x' AS e, BIN_TO_UUID(UUID_TO_BIN('6ccd780c-baba-1026-9564-5b8c656024db')) AS f;

-- == renamed and moved columns ==
CREATE TABLE t (a INT, b INT, c INT);

ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a, MODIFY c INT NOT NULL DEFAULT 5 FIRST;

INSERT INTO t (a, b) VALUES (1, 2);

RENAME TABLE t TO `begin`;

ALTER TABLE `begin` RENAME AS `end`;

-- == partitions of mysql ==
CREATE TABLE t (a INT, b VARCHAR(5)) PARTITION BY LIST COLUMNS (b) (PARTITION x VALUES IN ('a;', 'b'), PARTITION y VALUES IN ('c'));

INSERT INTO t VALUES (1, 'a;'), (2, 'c');

ALTER TABLE t PARTITION BY KEY ALGORITHM = 2 (a) PARTITIONS 4;

ALTER TABLE t REBUILD PARTITION p0, p1;

CREATE TABLE e (a INT, b VARCHAR(5));

DELETE FROM t PARTITION (p0, p1, p2, p3) WHERE a = 1;
