-- == a key of many columns ==
CREATE TABLE t (a, b, c, PRIMARY KEY (a, b DESC), UNIQUE (c COLLATE NOCASE) ON CONFLICT FAIL);

INSERT INTO t VALUES (1, 2, 'x;'), (1, 3, 'Y');

INSERT OR IGNORE INTO t VALUES (2, 2, 'y');

-- == inserts with fewer columns ==
CREATE TABLE t (a INTEGER PRIMARY KEY, b DEFAULT ';', c);

INSERT INTO t (c, a) VALUES (1, 5), (2, NULL);

INSERT INTO t (b) SELECT b || c FROM t ORDER BY a LIMIT 1;

-- == rows compared by is ==
CREATE TABLE t (a, b);

INSERT INTO t VALUES (NULL, 1), (1, NULL), (NULL, NULL);

DELETE FROM t WHERE a IS b;

UPDATE t SET a = ';' WHERE a IS NOT 1;

-- == a case inside of everything ==
CREATE TABLE t (a DEFAULT (CASE WHEN 1 THEN 'd;' END), b CHECK (CASE WHEN b > 5 THEN 0 ELSE 1 END), c AS (CASE a WHEN 'd;' THEN 'yes;' END));

INSERT INTO t (b) VALUES (CASE WHEN 1 THEN 2 ELSE 3 END);

UPDATE t SET a = CASE WHEN a = 'd;' THEN 'e' END WHERE CASE WHEN b THEN 1 END;

-- == a case in order and groups ==
CREATE TABLE t (a);

INSERT INTO t VALUES (3), (1), (2);

CREATE TABLE u AS SELECT CASE WHEN a > 1 THEN 'many;' ELSE 'one' END AS k, count(*) AS n FROM t GROUP BY CASE WHEN a > 1 THEN 1 END ORDER BY CASE k WHEN 'one' THEN 0 ELSE 1 END;

-- == triggers with quotes of every kind ==
CREATE TABLE "t;" ("a;" TEXT, [b;] TEXT);

CREATE TRIGGER "tr;" AFTER INSERT ON "t;" BEGIN UPDATE [t;] SET `b;` = 'END;' || NEW."a;" || ''';'; END;

INSERT INTO "t;" ("a;") VALUES ('x');

-- == a trigger without blanks ==
CREATE TABLE t(a);

CREATE TRIGGER tr AFTER INSERT ON t BEGIN/*;*/UPDATE t SET a=a||';';SELECT(1);END;

INSERT INTO t VALUES('x');

-- == a trigger over many lines ==
CREATE TABLE t (a);

CREATE
  TRIGGER
  tr
  AFTER
  INSERT
  ON
  t
BEGIN
~
  SELECT 1
  ;
~
  INSERT INTO t
  SELECT 5 WHERE NEW.a = 1
  ;
~
END
;

INSERT INTO t VALUES (1);

-- == if not exists and temp triggers ==
CREATE TABLE t (a);

CREATE TRIGGER IF NOT EXISTS tr AFTER INSERT ON t BEGIN SELECT 1; END;

CREATE TRIGGER IF NOT EXISTS tr AFTER INSERT ON t BEGIN SELECT 2; SELECT 3; END;

CREATE TEMP TRIGGER IF NOT EXISTS tr2 AFTER INSERT ON t BEGIN INSERT INTO t SELECT 2 WHERE NEW.a = 1; END;

INSERT INTO t VALUES (1);

-- == aliases without as ==
CREATE TABLE t (a, b);

INSERT INTO t SELECT 1 "x;", 2 'y;';

CREATE TABLE u AS SELECT t.a begin, t.b "end" FROM t t;

CREATE VIEW v AS SELECT x.a action, x.b query FROM t x;

-- == texts that hold scripts ==
CREATE TABLE script (body TEXT);

INSERT INTO script VALUES ('CREATE TRIGGER a AFTER INSERT ON b
BEGIN
  SELECT ''x;'';
END;
~
-- next;
SELECT 1;');

-- == returning in a row of statements ==
CREATE TABLE t (a);

INSERT INTO t VALUES (1) RETURNING a;¶ INSERT INTO t VALUES (2) RETURNING *;¶ UPDATE t SET a = a + 1 RETURNING a AS "r;";¶ SELECT * FROM t;

-- == a view that is replaced ==
CREATE TABLE t (a);

CREATE VIEW v AS SELECT a FROM t;

CREATE TRIGGER tr INSTEAD OF INSERT ON v BEGIN INSERT INTO t VALUES (NEW.a); END;

DROP VIEW v;

CREATE VIEW v AS SELECT a, ';' AS s FROM t;

INSERT INTO t VALUES (1);

-- == old names of columns in views ==
CREATE TABLE t (a, b);

CREATE VIEW v AS SELECT a AS x, b FROM t WHERE a > 0;

ALTER TABLE t RENAME COLUMN b TO "b;";

ALTER TABLE t ADD COLUMN c TEXT CHECK (c <> ';');

INSERT INTO t (a, "b;") VALUES (1, 2);

-- == a transaction of words in names ==
CREATE TABLE t ("commit" TEXT, "begin" TEXT, "rollback" TEXT, savepoint TEXT, release TEXT);

INSERT INTO t ("commit", savepoint) VALUES ('COMMIT;', 'ROLLBACK;');

UPDATE t SET release = 'BEGIN; COMMIT;' WHERE "commit" LIKE 'COMMIT%';

-- == binary names and numbers in names ==
CREATE TABLE t1e5 (x0f INT, "1a" INT, e1 REAL);

INSERT INTO t1e5 (x0f, "1a", e1) VALUES (0x0f, 1, 1e1);

SELECT t1e5.e1, x0f FROM t1e5 WHERE e1>1e0;

-- == updates and deletes with a limit ==
CREATE TABLE t (a);

INSERT INTO t VALUES (1), (2), (3);

UPDATE t SET a = a + 10 ORDER BY a DESC LIMIT 1;

DELETE FROM t ORDER BY a LIMIT 1 OFFSET 1;

-- == the mean of windows ==
CREATE TABLE t AS WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT i, avg(i) OVER (ORDER BY i ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS m, cume_dist() OVER (ORDER BY i) AS d, ntile(3) OVER () AS q FROM n;

-- == functions of mathematics in a table ==
CREATE TABLE t (a REAL DEFAULT (sqrt(16)), b AS (round(pow(a, 2), 6)), CHECK (ceil(a) < 1000000));

CREATE INDEX i ON t (floor(a)) WHERE sign(a) = 1;

INSERT INTO t DEFAULT VALUES;

INSERT INTO t (a) VALUES (trunc(9.7)), (mod(17, 5)), (round(degrees(pi()))), (NULL);

-- == functions of mathematics in rows ==
CREATE TABLE t (a INTEGER PRIMARY KEY, b);

INSERT INTO t (b) VALUES (round(ln(10), 6)), (round(log(100), 6)), (round(log(2, 8), 6)), (round(log2(8), 6)), (round(exp(1), 6));

INSERT INTO t (b) SELECT round(sin(a) * sin(a) + cos(a) * cos(a), 6) FROM t;

UPDATE t SET b = round(atan2(b, 2) + radians(180), 6) WHERE floor(b) BETWEEN 1 AND 2;

DELETE FROM t WHERE ceiling(b) = 4 AND sqrt(b) > 1.7;

-- == functions of mathematics in a view and a trigger ==
CREATE TABLE t (a REAL, length REAL);

CREATE VIEW v AS SELECT a, round(tan(a) + asin(0) + acos(1) + sinh(0), 6) AS b FROM t;

CREATE TRIGGER r AFTER INSERT ON t BEGIN UPDATE t SET length = sqrt(pow(NEW.a, 2)) WHERE rowid = NEW.rowid; END;

INSERT INTO t (a) VALUES (-3), (0);
