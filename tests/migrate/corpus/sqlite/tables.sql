-- == every affinity ==
CREATE TABLE t (a INTEGER, b TEXT, c BLOB, d REAL, e NUMERIC, f, g VARCHAR(10), h DOUBLE PRECISION, i UNSIGNED BIG INT, j BOOLEAN, k DATETIME, l DECIMAL(10, 5), "m n" "type; odd");

INSERT INTO t VALUES (1, 'x;', x'00ff', 1.5, '12', NULL, 5, '1e3', 9223372036854775807, TRUE, '2020-01-01', 0.1, 'z');

-- == integer primary keys ==
CREATE TABLE a (id INTEGER PRIMARY KEY, v);

CREATE TABLE b (id INTEGER PRIMARY KEY AUTOINCREMENT, v);

INSERT INTO a (v) VALUES ('x'), ('y');

INSERT INTO b VALUES (100, 'x'), (NULL, 'y');

DELETE FROM b WHERE id = 101;

INSERT INTO b (v) VALUES ('z');

-- == constraints of every kind ==
CREATE TABLE p (id INTEGER PRIMARY KEY, code TEXT UNIQUE ON CONFLICT REPLACE);

CREATE TABLE c (id INT CONSTRAINT pk PRIMARY KEY DESC, p INT NOT NULL ON CONFLICT IGNORE REFERENCES p (id) ON DELETE CASCADE ON UPDATE SET NULL DEFERRABLE INITIALLY DEFERRED, low INT CHECK (low > 0), high INT DEFAULT (1 + 2), n TEXT COLLATE NOCASE DEFAULT 'it''s;', CONSTRAINT o CHECK (low < high), UNIQUE (low, high), FOREIGN KEY (n) REFERENCES p (code) MATCH FULL);

INSERT INTO p VALUES (1, 'a');

INSERT INTO c (id, p, low) VALUES (1, 1, 2);

INSERT INTO p VALUES (2, 'a');

-- == strict and without rowid ==
CREATE TABLE s (a INT, b TEXT NOT NULL, c ANY, d BLOB, e REAL) STRICT;

CREATE TABLE w (k TEXT PRIMARY KEY, v) WITHOUT ROWID;

CREATE TABLE b (k INTEGER PRIMARY KEY, v ANY) STRICT, WITHOUT ROWID;

INSERT INTO s VALUES (1, 'x;', x'01', NULL, 2.5);

INSERT INTO w VALUES ('b', 1), ('a', 2);

-- == generated columns ==
CREATE TABLE g (a INT, b INT GENERATED ALWAYS AS (a * 2) STORED, c TEXT AS (CASE WHEN a > 1 THEN 'big;' ELSE 'small' END) VIRTUAL, d INT AS (abs(a)));

INSERT INTO g (a) VALUES (1), (-2);

CREATE INDEX g_c ON g (c, d);

ALTER TABLE g ADD COLUMN e AS (a || ';');

-- == alter table ==
CREATE TABLE t (a INT, b TEXT, c INT);

ALTER TABLE t ADD COLUMN d TEXT NOT NULL DEFAULT 'x;''y';

ALTER TABLE t RENAME COLUMN a TO "end";

ALTER TABLE t DROP COLUMN c;

ALTER TABLE t RENAME TO "T;";

INSERT INTO "T;" ("end") VALUES (1);

ALTER TABLE "T;" ADD e;

-- == indexes ==
CREATE TABLE t (a, b TEXT, c);

CREATE UNIQUE INDEX i1 ON t (a DESC, b COLLATE NOCASE ASC);

CREATE INDEX IF NOT EXISTS i2 ON t (lower(b), a + 1) WHERE c IS NOT NULL AND b <> ';';

CREATE INDEX "i;3" ON t ((CASE WHEN a THEN b ELSE c END));

DROP INDEX i1;

DROP INDEX IF EXISTS none_such;

REINDEX t;

-- == create table as ==
CREATE TABLE t AS SELECT 1 AS a, 'x;' AS "b;", NULL AS c UNION ALL VALUES (2, 'y', x'ff');

CREATE TABLE IF NOT EXISTS t (z);

CREATE TABLE u AS SELECT * FROM t WHERE 0;

-- == temporary things ==
CREATE TEMP TABLE tmp (a);

INSERT INTO tmp VALUES (1), (2);

CREATE TABLE kept AS SELECT sum(a) AS s FROM tmp;

CREATE TEMPORARY VIEW tv AS SELECT a FROM tmp;

CREATE TEMP TRIGGER tt AFTER INSERT ON tmp BEGIN INSERT INTO kept VALUES (NEW.a * 100); END;

INSERT INTO tmp VALUES (5);

DROP TABLE temp.tmp;

-- == drops ==
CREATE TABLE a (x);¶ CREATE VIEW v AS SELECT * FROM a;¶ CREATE TRIGGER tr AFTER INSERT ON a BEGIN SELECT 1; END;

DROP TRIGGER tr;

DROP VIEW IF EXISTS v;

DROP TABLE a;

DROP TABLE IF EXISTS a;

-- == a table that is rebuilt ==
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);

INSERT INTO t VALUES (1, 'a'), (2, 'b;');

CREATE TABLE t_new (id INTEGER PRIMARY KEY, v TEXT NOT NULL, w INT DEFAULT 0);

INSERT INTO t_new (id, v) SELECT id, v FROM t;

DROP TABLE t;

ALTER TABLE t_new RENAME TO t;

CREATE INDEX t_v ON t (v);

-- == a parent that is rebuilt ==
CREATE TABLE p (id INTEGER PRIMARY KEY);

CREATE TABLE c (p REFERENCES p ON DELETE CASCADE);

INSERT INTO p VALUES (1);¶ INSERT INTO c VALUES (1);

PRAGMA defer_foreign_keys = ON;

CREATE TABLE p2 (id INTEGER PRIMARY KEY, n);

INSERT INTO p2 SELECT id, 'x' FROM p;

DROP TABLE p;

ALTER TABLE p2 RENAME TO p;

-- == views ==
CREATE TABLE t (a, b);

CREATE VIEW v AS SELECT a, b || ';' AS "b;" FROM t WHERE a > 0;

CREATE VIEW IF NOT EXISTS w (x, y) AS WITH c AS (SELECT 1 AS n) SELECT n, CASE n WHEN 1 THEN 'one' END FROM c;

CREATE VIEW "end" AS SELECT 1 AS "begin", 'it''s' AS q;

INSERT INTO t VALUES (1, 2);

CREATE TABLE u AS SELECT * FROM v, w;

-- == triggers ==
CREATE TABLE t (a INT, b TEXT);

CREATE TABLE log (op, old_a, new_a);

CREATE TRIGGER t_bi BEFORE INSERT ON t WHEN NEW.a < 0 BEGIN SELECT RAISE(IGNORE); END;

CREATE TRIGGER t_ai AFTER INSERT ON t FOR EACH ROW BEGIN
  INSERT INTO log VALUES ('insert;', NULL, NEW.a);
  UPDATE t SET b = CASE WHEN NEW.b IS NULL THEN 'none;' ELSE NEW.b END WHERE rowid = NEW.rowid;
END;

CREATE TRIGGER IF NOT EXISTS t_au AFTER UPDATE OF a ON t BEGIN
  INSERT INTO log SELECT 'update', OLD.a, NEW.a WHERE OLD.a <> NEW.a;
  DELETE FROM log WHERE op = 'never; begin; end';
END;

CREATE TRIGGER t_ad AFTER DELETE ON t BEGIN INSERT INTO log VALUES ('delete', OLD.a, NULL); END;

INSERT INTO t (a) VALUES (1), (-1), (2);

UPDATE t SET a = a + 10;

DELETE FROM t WHERE a = 11;

-- == triggers instead ==
CREATE TABLE t (a);

CREATE VIEW v AS SELECT a + 1 AS a FROM t;

CREATE TRIGGER vi INSTEAD OF INSERT ON v BEGIN INSERT INTO t VALUES (NEW.a - 1); END;

CREATE TRIGGER vu INSTEAD OF UPDATE OF a ON v BEGIN UPDATE t SET a = NEW.a - 1 WHERE a = OLD.a - 1; END;

INSERT INTO v VALUES (10);

UPDATE v SET a = 20;

-- == a trigger with cases ==
CREATE TABLE t (a INT, k TEXT);

CREATE TRIGGER tr AFTER INSERT ON t BEGIN
  UPDATE t SET k = CASE WHEN a > 5 THEN CASE a WHEN 6 THEN 'six' ELSE 'many;' END ELSE 'few' END;
  SELECT CASE WHEN NEW.a > 100 THEN RAISE(ABORT, 'too; many') END;
END;

INSERT INTO t (a) VALUES (1), (6), (7);

CREATE TABLE after_it (x);

-- == columns that are called begin ==
CREATE TABLE slot (id INT, begin TEXT, "end" TEXT, finish TEXT, "case" INT, trigger INT);

CREATE TRIGGER tr AFTER INSERT ON slot BEGIN UPDATE slot SET finish = NEW.begin, "end" = begin WHERE slot.begin IS NOT NULL; END;

INSERT INTO slot (id, begin) VALUES (1, '2020');

CREATE VIEW begin AS SELECT begin AS begin, slot."end" FROM slot;

UPDATE slot SET begin = finish || ';', trigger = 5;

-- == a trigger that is called begin ==
CREATE TABLE begin (begin);

CREATE TRIGGER begin AFTER INSERT ON begin WHEN NEW.begin > 1 BEGIN UPDATE begin SET begin = begin + 1; END;

INSERT INTO begin (begin) VALUES (5);

CREATE TRIGGER "end" AFTER DELETE ON begin BEGIN SELECT 'end;'; END;

CREATE TABLE trigger (a);

INSERT INTO trigger VALUES (1);

-- == a trigger with comments ==
CREATE TABLE t (a);

CREATE TRIGGER tr AFTER INSERT ON t BEGIN
  -- END; it's; a comment
  /* END; " */
  INSERT INTO t SELECT 2 WHERE NEW.a = 1; /* END; */
  SELECT 'END;', "a", [a], `a` FROM t -- END;
  ;
END;

INSERT INTO t VALUES (1);

-- == recursive triggers ==
PRAGMA recursive_triggers = ON;

CREATE TABLE t (a);

CREATE TRIGGER tr AFTER INSERT ON t WHEN NEW.a < 5 BEGIN INSERT INTO t VALUES (NEW.a + 1); END;

INSERT INTO t VALUES (1);

-- == full text ==
CREATE VIRTUAL TABLE f USING fts5(title, body, tokenize = 'porter unicode61', prefix = '2 3');

INSERT INTO f VALUES ('a; title', 'the cats; sat'), ('other', 'dogs -- ran');

CREATE TABLE hits AS SELECT title, highlight(f, 1, '<', '>') AS h FROM f WHERE f MATCH 'cat';

INSERT INTO f (f) VALUES ('optimize');

-- == full text of an outside table ==
CREATE TABLE doc (id INTEGER PRIMARY KEY, body TEXT);

CREATE VIRTUAL TABLE doc_f USING fts5(body, content = 'doc', content_rowid = 'id');

CREATE TRIGGER doc_ai AFTER INSERT ON doc BEGIN INSERT INTO doc_f (rowid, body) VALUES (NEW.id, NEW.body); END;

CREATE TRIGGER doc_ad AFTER DELETE ON doc BEGIN INSERT INTO doc_f (doc_f, rowid, body) VALUES ('delete', OLD.id, OLD.body); END;

INSERT INTO doc VALUES (1, 'begin; here'), (2, 'the end');

DELETE FROM doc WHERE id = 1;

-- == r trees ==
CREATE VIRTUAL TABLE r USING rtree(id, x0, x1, y0, y1, +name TEXT);

INSERT INTO r VALUES (1, 0, 1, 0, 1, 'a;'), (2, 5, 6, 5, 6, 'b');

CREATE TABLE found AS SELECT id, name FROM r WHERE x0 > 2 AND y1 < 10;

-- == full text of the older kind ==
CREATE VIRTUAL TABLE f USING fts4(a, b, notindexed=b, order=desc);

INSERT INTO f VALUES ('some; words', 'x');

CREATE TABLE hits AS SELECT a FROM f WHERE f MATCH 'words';

-- == pragmas that stay ==
PRAGMA user_version = 7;

PRAGMA application_id = 0x1234;

CREATE TABLE t (a);

INSERT INTO t SELECT user_version FROM pragma_user_version;

-- == pragmas that read ==
CREATE TABLE t (a INT PRIMARY KEY, b);

PRAGMA table_info(t);

PRAGMA foreign_key_check;

PRAGMA integrity_check;

CREATE TABLE c AS SELECT name, type, pk FROM pragma_table_info('t');

PRAGMA case_sensitive_like = ON;

INSERT INTO c SELECT 'like', 'A' LIKE 'a', 0;


-- == analyze ==
CREATE TABLE t (a, b);

CREATE INDEX i ON t (a);

INSERT INTO t VALUES (1, 2), (1, 3), (2, 4);

ANALYZE;

ANALYZE t;

INSERT INTO t VALUES (5, 5);

-- == foreign keys in a transaction ==
PRAGMA foreign_keys = ON;

CREATE TABLE p (id INTEGER PRIMARY KEY);

CREATE TABLE c (p REFERENCES p);

PRAGMA defer_foreign_keys = 1;

INSERT INTO c VALUES (1);

INSERT INTO p VALUES (1);

-- == quotes of all kinds ==
CREATE TABLE "a;b" ([c d;] INT, `e``f` INT, "g""h" INT, 'i' INT, "--" INT, [/*] INT);

INSERT INTO [a;b] ([c d;], `e``f`, "g""h", "--") VALUES (1, 2, 3, 4);

INSERT INTO `a;b` ("i", [/*]) SELECT "--", `g"h` FROM 'a;b';

CREATE INDEX [i;] ON "a;b" ([c d;]);

-- == words that are names ==
CREATE TABLE action (abort, after, analyze, asc, before, by, cascade, cast, column, conflict, current, desc, end_it, each, exclude, fail, filter, first, following, "for", ignore, initially, instead, key, last, like, match, no, offset, of, over, partition, plan, pragma, preceding, query, raise, range, recursive, release, rename, replace, restrict, rollback, row, rows, temp, ties, trigger, unbounded, vacuum, view, virtual, window, without);

INSERT INTO action (abort, rollback, trigger, vacuum, release, replace) VALUES (1, 2, 3, 4, 5, 6);

UPDATE action SET rollback = abort, release = action.replace;

CREATE VIEW "commit" AS SELECT rollback AS "commit", a.abort AS "transaction" FROM action a;
