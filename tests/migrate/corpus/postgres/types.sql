-- == domains ==
CREATE DOMAIN email AS text COLLATE "C" NOT NULL DEFAULT 'a@b' CONSTRAINT has_at CHECK (VALUE ~ '^[^;]+@.+$');

CREATE TABLE t (a email);

INSERT INTO t VALUES ('x@y'), (DEFAULT);

ALTER DOMAIN email ADD CONSTRAINT short CHECK (length(VALUE) < 50) NOT VALID;

ALTER DOMAIN email VALIDATE CONSTRAINT short;

ALTER DOMAIN email DROP NOT NULL;

ALTER DOMAIN email RENAME CONSTRAINT short TO "not;long";

-- == enums ==
CREATE TYPE mood AS ENUM ('sad', 'o;k', 'it''s');

CREATE TABLE t (m mood DEFAULT 'o;k');

INSERT INTO t VALUES (DEFAULT), ('it''s');

ALTER TYPE mood RENAME VALUE 'sad' TO 'very sad';

CREATE CAST (mood AS int) WITH INOUT;

-- == composite types ==
CREATE TYPE pair AS (a int, b text);

CREATE TABLE t (p pair, ps pair[]);

INSERT INTO t VALUES (ROW(1, 'x;y'), ARRAY[(1, 'a')::pair, '(2,"b ""q""")']);

ALTER TYPE pair ADD ATTRIBUTE c date;

ALTER TYPE pair RENAME ATTRIBUTE a TO "order" CASCADE;

ALTER TYPE pair RENAME ATTRIBUTE b TO "end" CASCADE;

UPDATE t SET p."end" = 'changed' WHERE (p)."order" = 1;

-- == range types of our own ==
CREATE TYPE floatrange AS RANGE (subtype = float8, subtype_diff = float8mi, multirange_type_name = floats);

CREATE TABLE t (a floatrange, b floats);

INSERT INTO t VALUES ('[1.5,2.5)', '{[1,2)}');

-- == base type in shell form ==
CREATE TYPE later;

CREATE FUNCTION later_in(cstring) RETURNS later LANGUAGE internal IMMUTABLE STRICT AS 'textin';

CREATE FUNCTION later_out(later) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';

CREATE TYPE later (INPUT = later_in, OUTPUT = later_out, LIKE = text);

CREATE TABLE t (a later);

INSERT INTO t VALUES ('x;');

-- == operators and operator classes ==
CREATE FUNCTION near(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT abs($1 - $2) < 3 $$;

CREATE OPERATOR <~~> (LEFTARG = int, RIGHTARG = int, FUNCTION = near, COMMUTATOR = <~~>);

CREATE OPERATOR !@# (RIGHTARG = int, FUNCTION = pg_catalog.int4um);

CREATE OPERATOR CLASS odd FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int, int);

CREATE TABLE t AS SELECT 1 <~~> 2 AS near, 5 OPERATOR(public.<~~>) 9 AS far;

-- == operators that look like comments ==
CREATE TABLE t AS SELECT 5 - -3 AS a, 5 -(-3) AS b, 8 /2 AS c, 7 */* c */ 2 AS d, 1 +/* ; */2 AS e;

INSERT INTO t (a) SELECT 1--1; this is a comment
;

-- == aggregates ==
CREATE FUNCTION join_two(text, text) RETURNS text LANGUAGE sql IMMUTABLE AS $q$ SELECT concat_ws(';', $1, $2) $q$;

CREATE AGGREGATE joined(text) (SFUNC = join_two, STYPE = text, INITCOND = 'begin');

CREATE TABLE t AS SELECT joined(x ORDER BY x DESC) FROM (VALUES ('a'), ('b')) v(x);

-- == collations and conversions ==
CREATE COLLATION german (provider = icu, locale = 'de-u-kn', deterministic = false);

CREATE TABLE t (a text COLLATE german UNIQUE);

INSERT INTO t VALUES ('a2'), ('a10');

CREATE TABLE s AS SELECT string_agg(a, ',' ORDER BY a) FROM t;

-- == casts ==
CREATE TYPE box2 AS (w int, h int);

CREATE FUNCTION area(box2) RETURNS int LANGUAGE sql IMMUTABLE RETURN ($1).w * ($1).h;

CREATE CAST (box2 AS int) WITH FUNCTION area(box2) AS ASSIGNMENT;

CREATE TABLE t (n int);

INSERT INTO t VALUES (ROW(3, 4)::box2);

-- == sequences ==
CREATE SEQUENCE s AS smallint START 5 INCREMENT -2 MINVALUE -10 MAXVALUE 5 CYCLE CACHE 1;

CREATE TABLE t (a int DEFAULT nextval('s'), b int);

INSERT INTO t (b) VALUES (1), (2);

SELECT setval('s', 3, false), lastval();

ALTER SEQUENCE s OWNED BY t.b RESTART WITH 1 NO CYCLE;

CREATE SEQUENCE IF NOT EXISTS "S 2" OWNED BY NONE;

SELECT nextval('"S 2"'), currval('"S 2"');

-- == extensions ==
CREATE EXTENSION IF NOT EXISTS citext;

CREATE EXTENSION hstore SCHEMA public VERSION '1.8';

CREATE EXTENSION "uuid-ossp";

CREATE TABLE t (a citext UNIQUE, b hstore, c uuid DEFAULT uuid_generate_v5(uuid_ns_dns(), 'example.org'));

INSERT INTO t VALUES ('ABC', 'k => "v;", q => NULL'), ('x', hstore('a', 'b') || 'c=>d');

UPDATE t SET b = b || '"it''s"=>"--"' WHERE b ? 'k' AND a = 'abc';

-- == foreign data ==
CREATE EXTENSION postgres_fdw;

CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', dbname 'x;y');

CREATE USER MAPPING FOR reader SERVER other OPTIONS (user 'u', password 'it''s;');

CREATE FOREIGN TABLE far (a int OPTIONS (column_name 'A'), b text) SERVER other OPTIONS (table_name 'far;');

-- == publications ==
CREATE TABLE t (a int PRIMARY KEY, b int);

CREATE PUBLICATION p FOR TABLE t (a, b) WHERE (a > 1) WITH (publish = 'insert, update');

CREATE PUBLICATION everything FOR ALL TABLES;

ALTER PUBLICATION p SET TABLE t;

-- == event triggers ==
CREATE TABLE ddl (tag text);

CREATE FUNCTION noted() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO ddl VALUES (tg_tag); END; $$;

CREATE EVENT TRIGGER note ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'ALTER TABLE') EXECUTE FUNCTION noted();

CREATE TABLE x (a int);

ALTER EVENT TRIGGER note DISABLE;

CREATE TABLE y (a int);

-- == text search configurations ==
CREATE TEXT SEARCH DICTIONARY simple_stop (TEMPLATE = simple, STOPWORDS = english);

CREATE TEXT SEARCH CONFIGURATION mine (COPY = english);

ALTER TEXT SEARCH CONFIGURATION mine ALTER MAPPING FOR asciiword WITH simple_stop, english_stem;

CREATE TABLE doc (body text, v tsvector GENERATED ALWAYS AS (to_tsvector('mine', coalesce(body, ''))) STORED);

INSERT INTO doc VALUES ('The cats; sat -- on /* mats');

CREATE INDEX doc_v ON doc USING gin (v);

-- == owners ==
CREATE TABLE t (a int);

ALTER TABLE t OWNER TO writer;

CREATE VIEW v WITH (security_barrier) AS SELECT 1 AS a;

ALTER VIEW v OWNER TO reader;

REASSIGN OWNED BY reader TO root;
