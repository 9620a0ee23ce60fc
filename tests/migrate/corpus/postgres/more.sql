-- == byte order of names and quotes in defaults ==
CREATE TABLE t (a text DEFAULT E'x\\y''z;', b text DEFAULT $d$'";$d$, c text DEFAULT U&'\00E4', d interval DEFAULT '1 day', e text[] DEFAULT ARRAY['a;', 'b''']);

INSERT INTO t DEFAULT VALUES;

-- == limits and offsets ==
CREATE TABLE t AS SELECT i FROM generate_series(1, 20) i ORDER BY i DESC OFFSET 2 ROWS FETCH FIRST 3 ROWS WITH TIES;

CREATE TABLE u AS SELECT * FROM t TABLESAMPLE SYSTEM (100) LIMIT ALL;

-- == set operations ==
CREATE TABLE t AS (SELECT 1 AS a UNION ALL SELECT 1) INTERSECT (SELECT 1) EXCEPT ALL (VALUES (2)) ORDER BY 1;

CREATE TABLE u AS SELECT * FROM (VALUES (1, 'a'), (2, 'b;')) AS v (n, s) NATURAL JOIN (SELECT 1 AS n) x CROSS JOIN (SELECT 3 AS z) y;

-- == functions on rows ==
CREATE TABLE t (a int, b int);

CREATE FUNCTION total(t) RETURNS int LANGUAGE sql AS 'SELECT $1.a + $1.b';

INSERT INTO t VALUES (1, 2);

CREATE TABLE u AS SELECT t.total, total(t) AS again, (t).a, t AS whole FROM t;

-- == several statements that end at once ==
CREATE TABLE t (a int); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); SELECT * FROM t; UPDATE t SET a = 3 WHERE a = 2; DELETE FROM t WHERE a = 1;

-- == a domain on an array ==
CREATE DOMAIN tags AS text[] CHECK (array_position(VALUE, ';') IS NULL);

CREATE TABLE t (a tags DEFAULT '{x}');

INSERT INTO t VALUES (DEFAULT), (ARRAY['y', 'z']);

-- == a function that is dropped and made again ==
CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql AS 'SELECT a';

DROP FUNCTION f(int);

CREATE FUNCTION f(b bigint) RETURNS text LANGUAGE plpgsql AS $f$BEGIN RETURN b::text || ';';END$f$;

CREATE TABLE t AS SELECT f(5);

-- == a trigger that stays off ==
CREATE TABLE t (a int);

CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL;END$$;

CREATE TRIGGER no BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION no();

INSERT INTO t VALUES (1);

ALTER TABLE t DISABLE TRIGGER ALL;

INSERT INTO t VALUES (2);

SET session_replication_role = replica;

INSERT INTO t VALUES (3);

SET session_replication_role = DEFAULT;

-- == inline code with other quotes ==
DO $a$ BEGIN EXECUTE $b$ DO $c$ BEGIN CREATE TABLE t (x text DEFAULT ';'); END $c$ $b$; END $a$;

DO $$ BEGIN /* a comment; ' */ PERFORM 1; -- another; $
END; $$;

INSERT INTO t DEFAULT VALUES;

-- == a quote in a comment in a body ==
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  -- it's; don't
  /* "unbalanced */
  RETURN 1;
END;
$$;

CREATE TABLE t AS SELECT f();

-- == unicode escapes in names ==
CREATE TABLE U&"t\0061b" (U&"\003B" int, u&"x#0079" UESCAPE '#' text);

INSERT INTO U&"tab" VALUES (1, 'y;');

-- == tables of typed rows ==
CREATE TYPE person AS (name text, age int);

CREATE TABLE people OF person (name WITH OPTIONS PRIMARY KEY, CHECK (age > 0));

INSERT INTO people VALUES ('a;', 1);

ALTER TABLE people NOT OF;

-- == privileges of every kind ==
CREATE SEQUENCE s;

CREATE TYPE e AS ENUM ('x');

CREATE SCHEMA app;

CREATE FUNCTION app.f() RETURNS int LANGUAGE sql RETURN 1;

GRANT USAGE, SELECT ON SEQUENCE s TO reader;

GRANT USAGE ON TYPE e TO reader GRANTED BY CURRENT_USER;

GRANT USAGE, CREATE ON SCHEMA app TO writer;

GRANT EXECUTE ON ALL ROUTINES IN SCHEMA app TO reader;

ALTER DEFAULT PRIVILEGES FOR ROLE root GRANT EXECUTE ON FUNCTIONS TO writer;

-- == a view that depends on a column ==
CREATE TABLE t (a int, b text);

CREATE VIEW v AS SELECT a, b FROM t;

DROP VIEW v;

ALTER TABLE t ALTER a TYPE bigint;

CREATE VIEW v AS SELECT a, upper(b) AS "B;" FROM t WHERE b IS NOT NULL WITH CASCADED CHECK OPTION;

COMMENT ON VIEW v IS '--';

-- == deferred constraints ==
CREATE TABLE a (id int PRIMARY KEY, c int UNIQUE DEFERRABLE INITIALLY DEFERRED, b int);

CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a DEFERRABLE);

ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES b DEFERRABLE INITIALLY DEFERRED;

SET CONSTRAINTS ALL DEFERRED;

INSERT INTO a VALUES (1, 1, 1), (2, 2, 1);

INSERT INTO b VALUES (1, 1);

UPDATE a SET c = c + 1;

UPDATE b SET a = 2;

-- == operators and names in one ==
CREATE TABLE t AS SELECT a.b AS c, -a.b AS d, a.b*-1 AS e, NOT(a.b=1) AS f, a.b<>-1 AS g, a.b::text||'--'||';' AS h FROM (SELECT 1 AS b) AS a;

-- == encodings of bytes ==
CREATE TABLE t AS SELECT decode('YWI7', 'base64') AS a, encode('\x3b27'::bytea, 'escape') AS b, convert_from('\xc3a43b', 'UTF8') AS c, chr(59) AS d, E'\x3b' AS e, E'\073' AS f;

-- == long identifiers and texts ==
CREATE TABLE a_table_with_a_name_that_is_exactly_sixty_three_letters_long_ok (a_column_with_a_name_that_is_longer_than_sixty_three_letters_and_cut text);

INSERT INTO a_table_with_a_name_that_is_exactly_sixty_three_letters_long_ok VALUES (repeat('x;', 5000));

-- == a table that loses a partition ==
CREATE TABLE p (a int) PARTITION BY RANGE (a);

CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (10);

CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);

INSERT INTO p VALUES (1), (11);

DROP TABLE p1;

TRUNCATE ONLY p2;

ALTER TABLE p ADD b text DEFAULT 'n;';

INSERT INTO p2 VALUES (12);

-- == begin as the name of a function ==
CREATE FUNCTION begin() RETURNS int LANGUAGE sql AS 'SELECT 1';

CREATE FUNCTION commit() RETURNS int LANGUAGE sql AS 'SELECT 2';

CREATE TABLE t AS SELECT begin() AS a, commit() AS b;

SELECT commit() AS "COMMIT;";

-- == a policy whose names are words ==
CREATE TABLE trigger (function int, procedure int);

CREATE POLICY begin ON trigger USING (function = 1);

CREATE POLICY procedure ON trigger FOR SELECT USING (CASE WHEN function = 1 THEN true ELSE false END);

INSERT INTO trigger VALUES (1, 2);
