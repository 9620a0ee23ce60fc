-- == defaults of every form ==
CREATE TABLE t (a DEFAULT 5, b DEFAULT -1.5, c DEFAULT 'x;''y', d DEFAULT (1 + (2)), e DEFAULT NULL, f DEFAULT TRUE, g DEFAULT x'3b', h DEFAULT "dq;", i DEFAULT (CASE WHEN 1 THEN ';' END));

INSERT INTO t (a) VALUES (1);

INSERT INTO t DEFAULT VALUES;

-- == unique columns that conflict ==
CREATE TABLE t (a UNIQUE ON CONFLICT IGNORE, b UNIQUE ON CONFLICT REPLACE, c NOT NULL ON CONFLICT REPLACE DEFAULT 7);

INSERT INTO t VALUES (1, 1, 1), (1, 2, 2), (2, 1, NULL);

-- == a check that has a select like word ==
CREATE TABLE t (a CHECK (a NOT IN ('SELECT;', 'BEGIN', 'END')), b CHECK (b LIKE '%;%' OR b IS NULL));

INSERT INTO t VALUES ('x', 'a;b'), ('y', NULL);

-- == views on views ==
CREATE TABLE t (a);

CREATE VIEW v1 AS SELECT a FROM t;

CREATE VIEW v2 AS SELECT a, (SELECT count(*) FROM v1) AS n FROM v1;

INSERT INTO t VALUES (1), (2);

CREATE TABLE u AS SELECT * FROM v2;

DROP VIEW v2;

-- == a renamed table with triggers and views ==
CREATE TABLE t (a INT, b INT);

CREATE VIEW v AS SELECT a FROM t;

CREATE TRIGGER tr AFTER INSERT ON t BEGIN UPDATE t SET b = a; END;

ALTER TABLE t RENAME TO u;

ALTER TABLE u RENAME a TO "a;2";

INSERT INTO u VALUES (1, NULL);

-- == a renamed column in a check ==
CREATE TABLE t (a INT CHECK (a > 0), b INT AS (a + 1), UNIQUE (a));

CREATE INDEX i ON t (a) WHERE a > 5;

ALTER TABLE t RENAME COLUMN a TO aa;

INSERT INTO t VALUES (6);

-- == an index that covers an expression of json ==
CREATE TABLE t (j);

CREATE INDEX i ON t (j ->> '$.k;', json_extract(j, '$.n'));

INSERT INTO t VALUES ('{"k;": 1, "n": ";"}');

CREATE TABLE u AS SELECT count(*) AS c FROM t WHERE j ->> '$.k;' = 1;

-- == a partial unique index ==
CREATE TABLE t (a, deleted DEFAULT 0);

CREATE UNIQUE INDEX one_alive ON t (a) WHERE NOT deleted;

INSERT INTO t VALUES ('x;', 1), ('x;', 1), ('x;', 0);

-- == triggers that call each other ==
CREATE TABLE a (n);¶ CREATE TABLE b (n);¶ CREATE TABLE c (n);

CREATE TRIGGER ab AFTER INSERT ON a BEGIN INSERT INTO b VALUES (NEW.n + 1); END;

CREATE TRIGGER bc AFTER INSERT ON b BEGIN INSERT INTO c VALUES (NEW.n + 1); UPDATE a SET n = n * 10; END;

INSERT INTO a VALUES (1), (5);

-- == triggers of each time ==
CREATE TABLE t (a);¶ CREATE TABLE l (w);

CREATE TRIGGER t1 BEFORE UPDATE ON t BEGIN INSERT INTO l VALUES ('before;'); END;

CREATE TRIGGER t2 AFTER UPDATE ON t BEGIN INSERT INTO l VALUES ('after;'); END;

CREATE TRIGGER t3 BEFORE DELETE ON t BEGIN INSERT INTO l VALUES (OLD.a || ';'); END;

INSERT INTO t VALUES (1);

UPDATE t SET a = 2;

DELETE FROM t;

-- == a trigger with a cte and an upsert ==
CREATE TABLE t (k PRIMARY KEY, n);

CREATE TABLE s (k);

CREATE TRIGGER tr AFTER INSERT ON s BEGIN
  INSERT INTO t SELECT NEW.k, 1 WHERE true ON CONFLICT (k) DO UPDATE SET n = n + 1;
  INSERT INTO t SELECT 'all', n FROM (WITH c (n) AS (SELECT count(*) FROM s) SELECT n FROM c) WHERE true ON CONFLICT DO UPDATE SET n = excluded.n;
END;

INSERT INTO s VALUES ('a'), ('b'), ('a');

-- == a trigger that raises and is not met ==
CREATE TABLE t (a);

CREATE TRIGGER tr BEFORE INSERT ON t WHEN NEW.a IS NULL BEGIN
  SELECT RAISE(ROLLBACK, 'no; null');
END;

INSERT INTO t VALUES (1);

-- == temporary views of main tables ==
CREATE TABLE t (a);

CREATE TEMP VIEW v AS SELECT a + 1 AS a FROM main.t;

INSERT INTO t VALUES (1);

CREATE TABLE u AS SELECT * FROM v;

DROP VIEW v;

-- == strings that look like other things ==
CREATE TABLE t (a);

INSERT INTO t VALUES ('CREATE TRIGGER x BEGIN'), ('END;'), ('COMMIT;'), ('-- x'), ('/* y'), ('''; DROP TABLE t; --');

DELETE FROM t WHERE a = 'END;';

-- == names that look like other things ==
CREATE TABLE "CREATE TRIGGER" ("BEGIN" INT, "END;" INT, "COMMIT" INT);

INSERT INTO "CREATE TRIGGER" ("BEGIN", "END;") VALUES (1, 2);

CREATE VIEW [BEGIN] AS SELECT "BEGIN" FROM "CREATE TRIGGER";

-- == replace as a statement and a function ==
CREATE TABLE replace (replace TEXT PRIMARY KEY, n);

REPLACE INTO replace VALUES ('a;', 1);

REPLACE INTO replace SELECT replace(replace, ';', '--'), n + 1 FROM replace;

INSERT OR ROLLBACK INTO replace VALUES ('z', 0);

INSERT OR ABORT INTO replace VALUES ('y', 0);

-- == values of every kind of blob ==
CREATE TABLE t (a BLOB);

INSERT INTO t VALUES (x''), (x'3B'), (zeroblob(3)), (CAST('a;b' AS BLOB));

UPDATE t SET a = x'27' || a WHERE length(a) = 1;

-- == numbers as texts ==
CREATE TABLE t (i INTEGER, n NUMERIC, t TEXT, r REAL);

INSERT INTO t VALUES ('5', '5.0', 5, '5'), ('x;', '1e2', 1.0, 'y'), (5.0, '0x10', 0x10, 3), (9e18, 9223372036854775807, 1e400, -0.0);

-- == dates in every form ==
CREATE TABLE t AS SELECT date('2020-01-31', 'start of month', '-1 day') AS a, time('10:00', '+90 minutes') AS b, julianday('2000-01-01 12:00') AS c, unixepoch('2020-01-01') AS d, datetime(0, 'unixepoch') AS e, strftime('%j;%w', '2020-03-01') AS f;

-- == like and glob ==
CREATE TABLE t (a);

INSERT INTO t VALUES ('a%;'), ('abc'), ('A[x]'), ('50%');

CREATE TABLE u AS SELECT a, a LIKE 'a%' AS l, a GLOB 'A[[]x*' AS g, a LIKE '%\%%' ESCAPE '\' AS e FROM t;

DELETE FROM t WHERE a LIKE '%;';

-- == aggregates with order ==
CREATE TABLE t (g, n);

INSERT INTO t VALUES ('a', 3), ('a', 1), ('b;', 2);

CREATE TABLE u AS SELECT g, count(DISTINCT n) AS c, json_group_object(n, g) AS o, sum(n) OVER (ORDER BY g) AS s FROM t GROUP BY g;

-- == subqueries in every place ==
CREATE TABLE t (a, b);

INSERT INTO t VALUES ((SELECT 1), (SELECT ';' WHERE 1)), (EXISTS (SELECT 1), (SELECT NULL));

UPDATE t SET a = (SELECT max(a) + 1 FROM t AS x) WHERE b IN (SELECT ';');

CREATE TABLE u AS SELECT * FROM t WHERE a > (SELECT avg(a) FROM t) OR b IS (SELECT NULL) ORDER BY (SELECT 1) LIMIT (SELECT 5);

-- == keys without rowids that cascade ==
CREATE TABLE p (a, b, PRIMARY KEY (a, b)) WITHOUT ROWID;

CREATE TABLE c (x, y, FOREIGN KEY (x, y) REFERENCES p (a, b) ON DELETE NO ACTION DEFERRABLE INITIALLY DEFERRED);

INSERT INTO c VALUES (1, 2);

INSERT INTO p VALUES (1, 2);

-- == rows by rowid ==
CREATE TABLE t (a);

INSERT INTO t (rowid, a) VALUES (10, 'x;'), (20, 'y');

INSERT INTO t VALUES ('z');

UPDATE t SET rowid = 5 WHERE _rowid_ = 10;

DELETE FROM t WHERE oid = 20;

CREATE TABLE u AS SELECT rowid AS r, a FROM t;

-- == table valued functions ==
CREATE TABLE t AS SELECT key AS k, atom AS a, fullkey AS f FROM json_tree('{"a": [1, {"b;": 2}]}') WHERE atom IS NOT NULL;

CREATE TABLE u AS SELECT name FROM pragma_table_info('t') UNION ALL SELECT value FROM json_each('["x;", "y"]');

-- == a schema by its own table ==
CREATE TABLE t (a);

CREATE TABLE names AS SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'gatehouse%' AND name NOT LIKE 'sqlite_%';

INSERT INTO names SELECT 'count', count(*) FROM sqlite_master WHERE type = 'view';

-- == vacuum alone none ==
VACUUM;

-- == write ahead/1 ==
CREATE TABLE t (a);

INSERT INTO t VALUES (1);

-- == write ahead/2 none ==
VACUUM;

-- == write ahead/3 ==
INSERT INTO t VALUES (2);

-- == rebuilt without keys/1 ==
CREATE TABLE p (id INTEGER PRIMARY KEY);

CREATE TABLE c (p REFERENCES p ON DELETE CASCADE);

INSERT INTO p VALUES (1);¶ INSERT INTO c VALUES (1);

-- == rebuilt without keys/2 ==
CREATE TABLE p_new (id INTEGER PRIMARY KEY, n DEFAULT 'x;');

INSERT INTO p_new (id) SELECT id FROM p;

DROP TABLE p;

ALTER TABLE p_new RENAME TO p;

-- == three in a row/1 ==
CREATE TABLE t (a);

-- == three in a row/2 ==
CREATE TRIGGER tr AFTER INSERT ON t BEGIN UPDATE t SET a = a || ';'; END;

-- == three in a row/3 ==
INSERT INTO t VALUES ('x');

-- == unicode in strings and names ==
CREATE TABLE "tàble;" ("çol" TEXT DEFAULT 'é;', 列 TEXT);

INSERT INTO "tàble;" (列) VALUES ('😀;'), ('­'), (char(0x1F600) || ';');

-- == quotes that are doubled ==
CREATE TABLE t ("a""b" TEXT, `c``d` TEXT);

INSERT INTO t VALUES ('''', ''''''), (';''', ''';');

UPDATE t SET "a""b" = `c``d` || '''' WHERE `c``d` LIKE '%''';

-- == a select that spans lines ==
CREATE TABLE t AS
SELECT
  1 AS a, -- one;
  2 AS b  /* two;
  three; */
WHERE
  1 = 1
  -- and; 0
;

INSERT INTO t
SELECT
3, 4;

-- == deletes with limits of subqueries ==
CREATE TABLE t (a INTEGER PRIMARY KEY);

INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20) SELECT i FROM n;

DELETE FROM t WHERE a IN (SELECT a FROM t ORDER BY a DESC LIMIT 5);

UPDATE t SET a = -a WHERE a % 2;

-- == pragmas as functions and statements ==
PRAGMA cache_size = 100;

PRAGMA temp_store = MEMORY;

PRAGMA secure_delete;

CREATE TABLE t AS SELECT name FROM pragma_collation_list WHERE name = 'NOCASE';

PRAGMA main.table_list;

PRAGMA index_list('t');

-- == cross writes with returning ==
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);

INSERT INTO t (v) SELECT 'a' UNION ALL SELECT 'b;' RETURNING id;

INSERT INTO t (id, v) VALUES (1, 'c') ON CONFLICT (id) DO UPDATE SET v = excluded.v || v RETURNING *;

DELETE FROM t RETURNING v || ';';

INSERT INTO t (v) VALUES ('last');

-- == a stored view with every clause ==
CREATE TABLE t (a, b, c);

CREATE VIEW v AS SELECT DISTINCT a, count(*) AS n, group_concat(b, ';') FILTER (WHERE c) AS g FROM t LEFT JOIN (SELECT 1 AS one) ON a = one WHERE b NOTNULL AND c ISNULL OR a NOT BETWEEN 1 AND 2 GROUP BY a HAVING n > 0 UNION SELECT 1, 2, CASE WHEN 1 THEN 'x;' END ORDER BY 1 COLLATE NOCASE DESC NULLS FIRST LIMIT 10 OFFSET 0;

INSERT INTO t VALUES (5, 'x', NULL);

CREATE TABLE u AS SELECT * FROM v;

-- == nested blocks of cases in a trigger ==
CREATE TABLE t (a INT, r TEXT);

CREATE TRIGGER tr AFTER INSERT ON t BEGIN
  UPDATE t SET r = CASE WHEN a IN (1, 2) THEN CASE WHEN a = 1 THEN CASE a WHEN 1 THEN 'one;' END ELSE 'two' END ELSE (SELECT CASE WHEN count(*) > 2 THEN 'many' ELSE 'few;' END FROM t) END;
END;

INSERT INTO t (a) VALUES (1), (2), (3), (4);

-- == triggers in the temporary schema ==
CREATE TABLE t (a);¶ CREATE TABLE l (a);

CREATE TEMPORARY TRIGGER tr BEFORE INSERT ON main.t BEGIN INSERT INTO l VALUES (NEW.a); END;

INSERT INTO t VALUES (1);

DROP TRIGGER temp.tr;

INSERT INTO t VALUES (2);

-- == a trigger whose table is begin and end ==
CREATE TABLE "begin" ("end" INT, "case" INT);

CREATE TRIGGER x UPDATE OF "end", "case" ON "begin" WHEN new."end" <> old."end" BEGIN INSERT INTO "begin" SELECT new."case", CASE old."end" WHEN 1 THEN 2 END; END;

INSERT INTO "begin" VALUES (1, 5);

UPDATE "begin" SET "end" = 2;

-- == soft keywords as functions ==
CREATE TABLE t (a);

INSERT INTO t VALUES (like('a%', 'abc')), (glob('*;', 'x;')), (min(1, 2)), (max('a', 'b;')), (char(66, 69, 71)), (iif(1, 'begin', 'end'));

-- == columns of types that look odd ==
CREATE TABLE t (a "INT;", b 'TEXT', c [blob x], d VARCHAR(10, 2), e CHAR(-5), f LONG INT BIG, g);

INSERT INTO t VALUES ('1', 2, 3, 4, 5, 6, '7;');

-- == exclusive choices ==
CREATE TABLE t (a, b, CHECK ((a IS NULL) <> (b IS NULL)));

INSERT INTO t VALUES (1, NULL), (NULL, ';');

UPDATE t SET a = NULL, b = 'x' WHERE a = 1;

-- == long names and long texts ==
CREATE TABLE a_table_with_a_very_long_name_that_no_engine_but_this_one_takes_without_cutting_it_at_sixty_three_letters (a_column TEXT);

INSERT INTO a_table_with_a_very_long_name_that_no_engine_but_this_one_takes_without_cutting_it_at_sixty_three_letters VALUES (hex(zeroblob(5000)));

-- == materialized by hand ==
CREATE TABLE src (k, n);

CREATE TABLE mat (k PRIMARY KEY, s) WITHOUT ROWID;

CREATE TRIGGER mi AFTER INSERT ON src BEGIN INSERT INTO mat VALUES (NEW.k, NEW.n) ON CONFLICT (k) DO UPDATE SET s = s + excluded.s; END;

CREATE TRIGGER md AFTER DELETE ON src BEGIN UPDATE mat SET s = s - OLD.n WHERE k = OLD.k; DELETE FROM mat WHERE s = 0; END;

INSERT INTO src VALUES ('a', 1), ('b;', 2), ('a', 3);

DELETE FROM src WHERE k = 'b;';

-- == full text with ranks ==
CREATE VIRTUAL TABLE f USING fts5(a, b, content='', columnsize=0);

INSERT INTO f (rowid, a, b) VALUES (1, 'x; y', 'z'), (2, 'q', 'x');

CREATE TABLE hits AS SELECT rowid AS id FROM f WHERE f MATCH 'a : x' ORDER BY rowid;

-- == words of full text ==
CREATE VIRTUAL TABLE f USING fts5(a);

CREATE VIRTUAL TABLE v USING fts5vocab(f, 'row');

INSERT INTO f VALUES ('begin; end'), ('begin again');

CREATE TABLE terms AS SELECT term, doc, cnt FROM v ORDER BY term;

-- == a whole number series ==
CREATE TABLE seq (n INTEGER PRIMARY KEY);

INSERT INTO seq SELECT a.n * 10 + b.n FROM (SELECT 0 AS n UNION SELECT 1 UNION SELECT 2) a, (SELECT 0 AS n UNION SELECT 5) b;

CREATE TABLE gaps AS SELECT n, lead(n) OVER (ORDER BY n) - n AS gap, first_value(n) OVER w AS f, nth_value(n, 2) OVER w AS s FROM seq WINDOW w AS (ORDER BY n GROUPS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING);

-- == a byte after the last statement ==
CREATE TABLE t (a);

INSERT INTO t VALUES (1);   	
   
-- == explain of what would change ==
CREATE TABLE t (a);

EXPLAIN QUERY PLAN DELETE FROM t;

EXPLAIN INSERT INTO t VALUES (';');

INSERT INTO t VALUES (1);

-- == names of schemas ==
CREATE TABLE main.a (x);

CREATE TABLE temp.a (x);

CREATE INDEX main.a_x ON a (x);

INSERT INTO a VALUES ('temp;');

INSERT INTO main.a VALUES ('main;');

CREATE VIEW main.v AS SELECT x FROM a;

DROP TABLE temp.a;
