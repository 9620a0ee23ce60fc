-- == functions in sql ==
CREATE FUNCTION f1(a int, b int DEFAULT 2) RETURNS int LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS 'SELECT a + b';

CREATE FUNCTION f2(OUT x int, OUT y text) AS $$ SELECT 1, 'a;b' $$ LANGUAGE sql;

CREATE FUNCTION f3(VARIADIC ns int[]) RETURNS TABLE (n int, sq int) LANGUAGE sql ROWS 10 COST 5 AS $body$
  SELECT n, n * n FROM unnest(ns) n;
  SELECT 5, 25;
$body$;

CREATE FUNCTION f4() RETURNS SETOF text LANGUAGE sql AS E'SELECT \'it\'\'s; here\'::text';

CREATE TABLE t AS SELECT f1(1), (f2()).y, (SELECT count(*) FROM f3(1, 2)), f4();

-- == functions that return at once ==
CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql RETURN a + CASE WHEN a > 1 THEN 1 ELSE 0 END;

CREATE FUNCTION g() RETURNS text RETURN 'x;y';

CREATE TABLE t AS SELECT f(2), g();

-- == begin atomic ==
CREATE TABLE t (a int);

CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql BEGIN ATOMIC INSERT INTO t VALUES (a); SELECT a + 1; END;

CREATE PROCEDURE p(x int)
BEGIN ATOMIC
  INSERT INTO t VALUES (x);
  UPDATE t SET a = CASE a WHEN 1 THEN 10 ELSE a END;
  DELETE FROM t WHERE a IN (SELECT CASE WHEN x > 5 THEN 1 END);
END;

CALL p(1);

SELECT f(7);

-- == begin atomic with nothing in it ==
CREATE PROCEDURE p() LANGUAGE sql BEGIN ATOMIC END;

CALL p();

CREATE FUNCTION q() RETURNS int BEGIN ATOMIC SELECT 1; END; CREATE TABLE t AS SELECT q();

-- == begin atomic with columns of such names ==
CREATE TABLE slot (id int, begin date, "end" date, "case" int);

CREATE FUNCTION f() RETURNS date BEGIN ATOMIC SELECT begin FROM slot WHERE "end" IS NULL; SELECT s.begin AS begin FROM slot s; END;

INSERT INTO slot VALUES (1, '2020-01-01');

CREATE TABLE t AS SELECT f();

-- == begin atomic with labels that end ==
CREATE TABLE t (a int);

CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT count(*) AS "end" FROM t; SELECT 1 AS "case"; END;

INSERT INTO t SELECT f();

-- == functions in plpgsql ==
CREATE TABLE t (a int, b text);

CREATE FUNCTION fill(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  i int := 0;
  r record;
  total CONSTANT int := 5;
BEGIN
  -- a comment; with 'a quote
  WHILE i < n LOOP
    i := i + 1;
    IF i = 2 THEN CONTINUE; ELSIF i = 4 THEN EXIT; ELSE NULL; END IF;
    INSERT INTO t VALUES (i, format('row; %s', i));
  END LOOP;
  FOR r IN SELECT * FROM t ORDER BY a LOOP
    UPDATE t SET b = r.b || '!' WHERE CURRENT OF c1;
  END LOOP;
  RETURN i + total;
EXCEPTION WHEN undefined_table OR syntax_error THEN
  RETURN -1;
  WHEN OTHERS THEN
  RETURN -2;
END;
$$;

INSERT INTO t VALUES (100 + fill(5), 'result');

-- == plpgsql of every loop ==
CREATE TABLE log (n serial, what text);

DO LANGUAGE plpgsql $x$
<<outer>>
DECLARE
  a int[] := ARRAY[1, 2, 3];
  x int;
BEGIN
  FOREACH x IN ARRAY a LOOP
    CASE x
      WHEN 1 THEN INSERT INTO log (what) VALUES ('one');
      WHEN 2, 3 THEN INSERT INTO log (what) VALUES ('more; ' || x);
      ELSE RAISE EXCEPTION 'no %', x;
    END CASE;
  END LOOP;
  FOR i IN REVERSE 3..1 BY 2 LOOP
    <<inner>>
    LOOP
      EXIT outer WHEN i = 1;
      EXIT inner;
    END LOOP inner;
    INSERT INTO log (what) VALUES ('i ' || i);
  END LOOP;
END;
$x$;

-- == plpgsql with cursors ==
CREATE TABLE t (a int);

INSERT INTO t SELECT generate_series(1, 4);

DO $$
DECLARE
  c CURSOR (low int) FOR SELECT a FROM t WHERE a > low FOR UPDATE;
  v t.a%TYPE;
BEGIN
  OPEN c(1);
  LOOP
    FETCH c INTO v;
    EXIT WHEN NOT FOUND;
    UPDATE t SET a = v * 10 WHERE CURRENT OF c;
  END LOOP;
  CLOSE c;
END $$;

-- == plpgsql that handles errors ==
CREATE TABLE t (a int PRIMARY KEY, b text);

DO $$
DECLARE m text;
BEGIN
  INSERT INTO t VALUES (1, 'first');
  BEGIN
    INSERT INTO t VALUES (1, 'again');
  EXCEPTION
    WHEN unique_violation THEN
      GET STACKED DIAGNOSTICS m = CONSTRAINT_NAME;
      INSERT INTO t VALUES (2, m);
  END;
  BEGIN
    RAISE EXCEPTION USING ERRCODE = 'P0001', MESSAGE = 'it''s; wrong';
  EXCEPTION WHEN raise_exception THEN INSERT INTO t VALUES (3, SQLERRM);
  END;
END $$;

-- == nested dollar quotes ==
CREATE FUNCTION outer_f() RETURNS void LANGUAGE plpgsql AS $outer$
BEGIN
  EXECUTE $inner$ CREATE FUNCTION inner_f() RETURNS text LANGUAGE sql AS $f$ SELECT 'a;' || $$b'c$$ $f$ $inner$;
END
$outer$;

SELECT outer_f();

CREATE TABLE t AS SELECT inner_f();

-- == dollar tags of every form ==
CREATE TABLE t AS SELECT $$plain; $$ AS a, $_x1$ $$ ; $ $x $_x1$ AS b, $äö$ ünïcode; $äö$ AS c, $A$ $a$ $A$ AS d, 'x'::text AS a$b;

INSERT INTO t (a) VALUES ($x$$y$$x$) ;

-- == names with dollars ==
CREATE TABLE t$a$b (c$1 int, d$$ text);

INSERT INTO t$a$b VALUES (1, 'x;'), (2, $$y;$$);

-- == procedures ==
CREATE TABLE t (a int, b text);

CREATE PROCEDURE p(IN a int, OUT c int, INOUT b text DEFAULT 'x') LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (a, b);
  b := b || ';';
  c := a;
END $$;

CALL p(1, NULL, 'y');

CALL p(a => 2, c => NULL);

ALTER PROCEDURE p SET search_path = public;

DROP PROCEDURE p;

-- == triggers ==
CREATE TABLE t (a int, b text, at int DEFAULT 0);

CREATE TABLE log (op text, old_a int, new_a int);

CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    INSERT INTO log VALUES (TG_OP, OLD.a, NULL); RETURN OLD;
  END IF;
  NEW.at = NEW.at + TG_NARGS;
  INSERT INTO log VALUES (TG_OP, CASE WHEN TG_OP = 'UPDATE' THEN OLD.a END, NEW.a);
  RETURN NEW;
END;
$$;

CREATE TRIGGER touch BEFORE INSERT OR UPDATE OF a OR DELETE ON t FOR EACH ROW WHEN (pg_trigger_depth() < 1) EXECUTE FUNCTION touched('a;', 'b');

INSERT INTO t VALUES (1, 'x');

UPDATE t SET a = 2;

ALTER TABLE t DISABLE TRIGGER touch;

DELETE FROM t;

ALTER TRIGGER touch ON t RENAME TO "end";

-- == constraint triggers and transition tables ==
CREATE TABLE t (a int);

CREATE TABLE s (n bigint);

CREATE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO s SELECT count(*) FROM added; RETURN NULL; END';

CREATE TRIGGER c AFTER INSERT ON t REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE PROCEDURE counted();

CREATE FUNCTION checked() RETURNS trigger LANGUAGE plpgsql AS $$ begin if new.a > 5 then raise exception 'too large;'; end if; return null; end $$;

CREATE CONSTRAINT TRIGGER k AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION checked();

INSERT INTO t VALUES (1), (2), (3);

-- == do blocks ==
CREATE TABLE t (a int);

DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_class WHERE relname = 'u') THEN CREATE TABLE u (b int); END IF; END $$;

DO 'BEGIN INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); END';

DO E'BEGIN\n  INSERT INTO t SELECT length(\'a;b\');\nEND';

DO $do$ DECLARE r record; BEGIN FOR r IN SELECT 1 AS a UNION ALL SELECT 2 LOOP EXECUTE 'INSERT INTO t VALUES ($1)' USING r.a; END LOOP; END $do$;

-- == functions with settings ==
CREATE FUNCTION f() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET work_mem = '1MB' SET "my.var" TO 'a;b' AS 'SELECT current_setting(''my.var'')';

CREATE TABLE t AS SELECT public.f();

ALTER FUNCTION f() RESET work_mem;

ALTER FUNCTION f() LEAKPROOF VOLATILE;

-- == overloaded functions ==
CREATE FUNCTION o(int) RETURNS text LANGUAGE sql AS $$ SELECT 'int' $$;

CREATE FUNCTION o(text) RETURNS text LANGUAGE sql AS $$ SELECT 'text' $$;

CREATE OR REPLACE FUNCTION o(int) RETURNS text LANGUAGE sql AS $$ SELECT 'int;2' $$;

CREATE FUNCTION o(anyelement, anyelement) RETURNS anyarray LANGUAGE sql AS 'SELECT ARRAY[$1, $2]';

CREATE TABLE t AS SELECT o(1) a, o('1'::text) b, o(1, 2) c;

DROP FUNCTION o(text);

DROP ROUTINE IF EXISTS o(int), nothing();

-- == a set returning function with return query ==
CREATE TABLE t AS SELECT i AS a FROM generate_series(1, 3) i;

CREATE FUNCTION q(lim int) RETURNS SETOF t LANGUAGE plpgsql AS $_$
BEGIN
  RETURN QUERY SELECT * FROM t WHERE a <= $1;
  RETURN QUERY EXECUTE 'SELECT * FROM t WHERE a > $1' USING lim;
  RETURN NEXT ROW(9)::t;
  RETURN;
END;
$_$;

CREATE TABLE u AS SELECT * FROM q(1);

-- == old bodies in single quotes ==
CREATE FUNCTION old(text) RETURNS text AS '
DECLARE
  a ALIAS FOR $1;
BEGIN
  IF a = '''' THEN RETURN ''empty;''; END IF;
  RETURN a || ''\\n'';
END;
' LANGUAGE 'plpgsql';

CREATE TABLE t AS SELECT old('') AS a, old('x') AS b;

-- == a body that has the words of a transaction ==
CREATE FUNCTION f() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  -- COMMIT; ROLLBACK; BEGIN;
  RETURN 'COMMIT; ROLLBACK';
END $$;

CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$;

CREATE TABLE t (commit text, rollback text, begin int, "end" int, "start" int, "transaction" text, abort int);

INSERT INTO t (commit, rollback) VALUES (f(), 'COMMIT;');

-- == prepared statements ==
CREATE TABLE t (a int, b text);

PREPARE put (int, text) AS INSERT INTO t VALUES ($1, $2);

EXECUTE put(1, 'x;y');

EXECUTE put(2, $$z$$);

DEALLOCATE put;

-- == cursors outside of programs ==
CREATE TABLE t AS SELECT generate_series(1, 5) AS a;

DECLARE c CURSOR FOR SELECT a FROM t ORDER BY a FOR UPDATE;

MOVE FORWARD 2 IN c;

FETCH NEXT FROM c;

UPDATE t SET a = 30 WHERE CURRENT OF c;

CLOSE c;

-- == savepoints ==
CREATE TABLE t (a int);

SAVEPOINT one;

INSERT INTO t VALUES (1);

ROLLBACK TO SAVEPOINT one;

INSERT INTO t VALUES (2);

SAVEPOINT two;

INSERT INTO t VALUES (3);

RELEASE SAVEPOINT two;

ROLLBACK TO one;

INSERT INTO t VALUES (4);

RELEASE one;

-- == session settings ==
CREATE TABLE t (a text);

SET my.app = 'x;y';

SET LOCAL work_mem = '2MB';

SET SESSION my.other TO DEFAULT;

INSERT INTO t VALUES (current_setting('my.app'));

RESET my.app;

SET ROLE writer;

RESET ROLE;

SET SESSION AUTHORIZATION DEFAULT;

SHOW work_mem;

LOCK TABLE t IN ACCESS EXCLUSIVE MODE;

EXPLAIN (COSTS OFF) SELECT * FROM t;

ANALYZE t;

CHECKPOINT;

DISCARD PLANS;

LOAD 'plpgsql';

SELECT pg_advisory_xact_lock(5);
