-- == upserts ==
CREATE TABLE t (k TEXT PRIMARY KEY, n INT DEFAULT 0, CHECK (n < 1000));

INSERT INTO t VALUES ('a', 1), ('b', 2);

INSERT INTO t AS x VALUES ('a', 5), ('c', 6) ON CONFLICT (k) DO UPDATE SET n = x.n + excluded.n WHERE x.n < 100;

INSERT OR IGNORE INTO t VALUES ('b', 9);

INSERT OR REPLACE INTO t VALUES ('c', 60);

REPLACE INTO t (k) VALUES ('d');

INSERT INTO t VALUES ('b', 7) ON CONFLICT DO NOTHING;

UPDATE OR IGNORE t SET k = 'a' WHERE k = 'b';

-- == returning ==
CREATE TABLE t (id INTEGER PRIMARY KEY, v);

INSERT INTO t (v) VALUES ('x;'), ('y') RETURNING id, v || ';' AS "r;";

UPDATE t SET v = upper(v) RETURNING *;

DELETE FROM t WHERE id = 1 RETURNING id;

-- == common table expressions ==
CREATE TABLE t (a, b);

WITH RECURSIVE f (a, b) AS (SELECT 0, 1 UNION ALL SELECT b, a + b FROM f WHERE b < 50) INSERT INTO t SELECT * FROM f;

WITH x AS MATERIALIZED (SELECT max(a) AS m FROM t), y AS NOT MATERIALIZED (SELECT ';' AS s) UPDATE t SET b = (SELECT s FROM y) WHERE a = (SELECT m FROM x);

WITH gone (n) AS (VALUES (0), (1)) DELETE FROM t WHERE a IN gone;

CREATE TABLE u AS WITH c (n) AS (SELECT 1 UNION SELECT n + 1 FROM c LIMIT 5) SELECT n FROM c;

-- == updates from others ==
CREATE TABLE a (id, n);¶ CREATE TABLE b (id, n);

INSERT INTO a VALUES (1, 0), (2, 0), (3, 0);¶ INSERT INTO b VALUES (1, 10), (2, 20);

UPDATE a SET n = b.n FROM b WHERE a.id = b.id;

UPDATE a SET (n, id) = (SELECT max(n), a.id * 10 FROM b) WHERE n = 0;

DELETE FROM b WHERE EXISTS (SELECT 1 FROM a WHERE a.id = b.id AND b.n > 15);

-- == window functions ==
CREATE TABLE s (d, pay);

INSERT INTO s VALUES ('a', 10), ('a', 20), ('b', 5), ('b', 7);

CREATE TABLE r AS SELECT d, pay, rank() OVER w AS r, lag(pay, 1, 0) OVER w AS l, sum(pay) FILTER (WHERE pay > 5) OVER (PARTITION BY d) AS f, group_concat(pay, ';') OVER (ORDER BY pay ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) AS g FROM s WINDOW w AS (PARTITION BY d ORDER BY pay DESC);

-- == json ==
CREATE TABLE t (j TEXT CHECK (json_valid(j)));

INSERT INTO t VALUES ('{"a": ";", "b": [1, {"c": "--"}]}'), (json_object('k', json_array(1, NULL, 'x;')));

UPDATE t SET j = json_set(j, '$.a', 'y;') WHERE j ->> '$.b[1].c' = '--' OR j -> 'a' IS NOT NULL;

CREATE TABLE u AS SELECT key, value, type FROM t, json_each(t.j) WHERE json_extract(j, '$.a') IS NOT NULL;

CREATE TABLE v AS SELECT json_group_array(key) AS g, json_patch('{"a":1}', '{"b":";"}') AS p FROM u;

-- == strings of every form ==
CREATE TABLE t (a);

INSERT INTO t VALUES ('plain;'), ('it''s;'), ('back\'), ('\;'), (''';'''), ('"'), ('--'), ('/*'), ('lines
; of
text'), (char(59)), (x'3b27'), (X'FF'), ('ä;表');

INSERT INTO t SELECT 'a' || ';' || 'b' WHERE ';' = ';' AND '''' <> ';';

-- == numbers of every form ==
CREATE TABLE t AS SELECT 1 AS a, -1.5 AS b, .5 AS c, 5. AS d, 1e3 AS e, 1.5E-3 AS f, 0xFF AS g, 7 / 2 AS h, 7 % 3 AS i, 1 << 4 AS j, ~0 AS k, 5 - -1 AS l, - - 2 AS m, + 3 AS n, 9223372036854775808 AS o, -9223372036854775808 AS p, 1 IS NOT NULL AS q, NOT 1 AS r, 5 & 3 | 8 AS s;

-- == operators and functions ==
CREATE TABLE t AS SELECT 'a_b' LIKE 'a!_b' ESCAPE '!' AS a, 'x;' GLOB '*;' AS b, 5 BETWEEN 1 AND 9 AS c, 'a' IN ('a', 'b;') AS d, CASE 1 WHEN 1 THEN 'one;' ELSE 'no' END AS e, CAST('12' AS INTEGER) AS f, coalesce(NULL, ';') AS g, iif(1, 'yes', 'no;') AS h, printf('%s;%d', 'x', 5) AS i, replace('a;b', ';', '--') AS j, substr('abc', 2) AS k, instr('a;b', ';') AS l, quote('it''s') AS m, hex('a;') AS n, typeof(1.0) AS o, date('2020-01-31', '+1 month') AS p, strftime('%Y;%m', '2020-01-01') AS q, unicode(';') AS r, 1 IS DISTINCT FROM 2 AS s, round(2.5) AS u, nullif(1, 1) AS v, trim(' x ') AS w;

-- == generated data ==
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);

WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO t SELECT i, printf('row; %05d', i) FROM n;

UPDATE t SET v = NULL WHERE id % 7 = 0;

-- == set operations ==
CREATE TABLE t AS SELECT 1 AS a UNION ALL SELECT 1 UNION SELECT 2 EXCEPT SELECT 3 INTERSECT SELECT 1;

CREATE TABLE u AS SELECT * FROM (VALUES (1, 'a;'), (2, 'b')) ORDER BY 1 DESC LIMIT 1 OFFSET 1;

-- == joins ==
CREATE TABLE a (id, x);¶ CREATE TABLE b (id, y);

INSERT INTO a VALUES (1, 'a'), (2, 'b');¶ INSERT INTO b VALUES (2, 'c'), (3, 'd;');

CREATE TABLE c AS SELECT * FROM a NATURAL LEFT JOIN b;

CREATE TABLE d AS SELECT a.id AS i, b.id AS j FROM a FULL OUTER JOIN b ON a.id = b.id;

CREATE TABLE e AS SELECT * FROM a RIGHT JOIN b USING (id) CROSS JOIN (SELECT ';' AS z);

-- == groups ==
CREATE TABLE s (a, n);

INSERT INTO s VALUES ('x', 1), ('x', 2), ('y;', 3);

CREATE TABLE r AS SELECT a, count(*) AS c, sum(n) AS s, group_concat(n, ';') AS g, total(n) AS t, min(n) FILTER (WHERE n > 1) AS m FROM s GROUP BY a HAVING sum(n) > 0 ORDER BY a;

-- == savepoints ==
CREATE TABLE t (a);

SAVEPOINT one;

INSERT INTO t VALUES (1);

ROLLBACK TO one;

INSERT INTO t VALUES (2);

RELEASE one;

SAVEPOINT "two;";

INSERT INTO t VALUES (3);

ROLLBACK TRANSACTION TO SAVEPOINT "two;";

RELEASE SAVEPOINT "two;";

INSERT INTO t VALUES (4);

-- == last rows and changes ==
CREATE TABLE p (id INTEGER PRIMARY KEY, n);¶ CREATE TABLE c (p, n);

INSERT INTO p (n) VALUES ('x');

INSERT INTO c VALUES (last_insert_rowid(), 'a');

INSERT INTO p (n) VALUES ('y'), ('z');

INSERT INTO c SELECT last_insert_rowid(), changes();

-- == names in other letters ==
CREATE TABLE größe (straße TEXT, имя TEXT, 表 INT, a$b INT, _x INT);

INSERT INTO größe (straße, имя, 表, a$b) VALUES ('Weg; 5', 'да', 1, 2);

CREATE INDEX größe_i ON größe (имя);

-- == row values ==
CREATE TABLE t (a, b);

INSERT INTO t VALUES (1, 2), (3, 4);

DELETE FROM t WHERE (a, b) = (1, 2);

UPDATE t SET (a, b) = (b, a);

CREATE TABLE u AS SELECT (1, 2) < (1, 3) AS x, (a, b) IN (VALUES (4, 3)) AS y FROM t;

-- == hints and indexes ==
CREATE TABLE t (a, b);

CREATE INDEX i ON t (a);

INSERT INTO t VALUES (1, 2);

SELECT * FROM t INDEXED BY i WHERE a = 1;

UPDATE t NOT INDEXED SET b = likely(3) WHERE a = 1;

EXPLAIN QUERY PLAN SELECT * FROM t;

EXPLAIN SELECT 1;

-- == names with their schema ==
CREATE TABLE t (a);

INSERT INTO main.t VALUES (1);

CREATE TABLE main.u AS SELECT * FROM main.t;

-- == collations and order ==
CREATE TABLE t (a TEXT COLLATE NOCASE, b TEXT COLLATE RTRIM);

INSERT INTO t VALUES ('B', 'x '), ('a', 'x'), ('b', 'y');

CREATE TABLE u AS SELECT group_concat(a, ';') AS g FROM (SELECT a FROM t ORDER BY a COLLATE BINARY, b DESC NULLS LAST);

DELETE FROM t WHERE b = 'x' AND a = 'A';
