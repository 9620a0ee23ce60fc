-- == comments of every form ==
-- a comment; with ' a quote and $$ and /* no block
CREATE TABLE t (a int /* inner; ' */, b int); -- after; it

/* a block; */ /* nested /* twice; */ ' still */ CREATE TABLE u (a int);

CREATE TABLE v (a int) -- no semicolon here ;
;

/* '; */ INSERT INTO t VALUES (1 /* $$ */, 2) /* ; -- */ ; -- end

--no blank; here
INSERT INTO t VALUES (3--;
, 4);

-- == comments around all ==
/* head
 * COMMIT;
 */
~
-- only; a comment
~
CREATE TABLE t (a int);

-- in the middle; ROLLBACK;
CREATE TABLE u (a int);

-- last; without a line break after it
-- == empty statements ==
;;;

CREATE TABLE t (a int);;

;

/* ; */;

INSERT INTO t VALUES (1)
-- == no semicolon at the end ==
CREATE TABLE t (a int);

INSERT INTO t VALUES (1), (2)
-- == many on a line ==
CREATE TABLE a (x int);¶ CREATE TABLE b (y int);¶INSERT INTO a VALUES (1);¶ INSERT INTO b SELECT x FROM a;¶-- trailing

-- == blanks of every kind ==
	CREATE	TABLE t (a	int) ;
~
~

   INSERT
INTO
t
VALUES
(
1
)
;

-- == a semicolon in every place that does not count ==
CREATE TABLE "t;" ("a;" text DEFAULT ';', CHECK ("a;" <> '!;')); -- ;

INSERT INTO "t;" VALUES ('x;'), (E';\'; '), ($a$;$a$), (U&'\003B;'), ($$;$$ /* ; */);

CREATE FUNCTION ";"() RETURNS text LANGUAGE sql AS ';;SELECT ''x;''::text;;';

COMMENT ON TABLE "t;" IS ';';

INSERT INTO "t;" SELECT ";"() || '!' WHERE ';' = $_$;$_$;

-- == parentheses with semicolons in a rule ==
CREATE TABLE t (a int);

CREATE TABLE l (a int);

CREATE RULE r AS ON INSERT TO t DO ALSO (INSERT INTO l VALUES (NEW.a); UPDATE l SET a = a + 1; DELETE FROM l WHERE a > 100;);

INSERT INTO t VALUES (1), (200);

-- == casts and colons ==
CREATE TABLE t AS SELECT '1'::int AS a, ('{1,2,3}'::int[])[1:2] AS b, '{"a": ":x"}'::json AS c, ':name' AS d, interval '1' day AS e;

-- == questions and percents ==
CREATE TABLE t AS SELECT '{"a":1}'::jsonb ? 'a' AS a, 7 % 2 AS b, '%s ? $1 {} {{}} ${x} #{y} %(z)s :q' AS c, '{"a":1}'::jsonb ?& ARRAY['a'] AS d;

-- == a header as pg_dump writes it ==
SET statement_timeout = 0;

SET lock_timeout = 0;

SET idle_in_transaction_session_timeout = 0;

SET client_encoding = 'UTF8';

SET standard_conforming_strings = on;

SELECT pg_catalog.set_config('search_path', '', false);

SET check_function_bodies = false;

SET xmloption = content;

SET client_min_messages = warning;

SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE public.t (
    id integer NOT NULL,
    body text DEFAULT 'x'::text
);

ALTER TABLE public.t OWNER TO root;

CREATE SEQUENCE public.t_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.t_id_seq OWNED BY public.t.id;

ALTER TABLE ONLY public.t ALTER COLUMN id SET DEFAULT nextval('public.t_id_seq'::regclass);

INSERT INTO public.t VALUES (1, 'a;b');

SELECT pg_catalog.setval('public.t_id_seq', 1, true);

ALTER TABLE ONLY public.t
    ADD CONSTRAINT t_pkey PRIMARY KEY (id);

REVOKE USAGE ON SCHEMA public FROM PUBLIC;

GRANT ALL ON SCHEMA public TO PUBLIC;

-- == functions before what they use ==
SET check_function_bodies = off;

CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM later $$;

CREATE TABLE later (a int);

INSERT INTO later SELECT f();

-- == a long script ==
CREATE TABLE t (id int PRIMARY KEY, body text);

DO $$ BEGIN FOR i IN 1..200 LOOP INSERT INTO t VALUES (i, repeat('long; ', 50)); END LOOP; END $$;

UPDATE t SET body = replace(body, ';', ' ;') WHERE id % 2 = 0;

-- == letters in upper and lower ==
create Table MixedCase (A int, "B" int);

iNsErT iNtO mixedcase VALUES (1, 2);

create or replace FUNCTION Ff() returns INT language SQL begin atomic select 1; end;

INSERT INTO MIXEDCASE SELECT ff(), 3;

-- == only comments ==
-- nothing to do here; for this engine
/* and nothing; here */
-- == only selects ==
SELECT 1;

SELECT ';' AS "a;b";

VALUES (1), (2);

TABLE pg_am;

-- == what is set by a query ==
CREATE TABLE t (a text);

SELECT set_config('my.value', 'a;b', false);

INSERT INTO t VALUES (current_setting('my.value'));

-- == carriage returns ==
CREATE TABLE t (a text);␍
␍
INSERT INTO t VALUES ('x;␍
y');␍
INSERT INTO t VALUES ('z') -- ;␍
;␍
