-- == upserts ==
CREATE TABLE t (k text PRIMARY KEY, n int DEFAULT 0);

INSERT INTO t VALUES ('a', 1), ('b', 2);

INSERT INTO t AS x VALUES ('a', 5), ('c', 6) ON CONFLICT (k) DO UPDATE SET n = x.n + EXCLUDED.n WHERE x.n < 100;

INSERT INTO t VALUES ('b', 9) ON CONFLICT DO NOTHING;

INSERT INTO t VALUES ('b', 9) ON CONFLICT ON CONSTRAINT t_pkey DO UPDATE SET n = DEFAULT RETURNING k, n;

-- == merge ==
CREATE TABLE t (id int, n int);

INSERT INTO t VALUES (1, 1), (2, 2);

MERGE INTO t USING (VALUES (2, 20), (3, 30)) AS s (id, n) ON t.id = s.id
WHEN MATCHED AND s.n > 100 THEN DELETE
WHEN MATCHED THEN UPDATE SET n = s.n
WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n);

-- == writing ctes ==
CREATE TABLE a (id serial, v text);

CREATE TABLE b (id int, v text);

WITH ins AS (INSERT INTO a (v) VALUES ('x'), ('y') RETURNING id, v), more AS (SELECT * FROM ins WHERE v = 'y')
INSERT INTO b SELECT * FROM more;

WITH gone AS (DELETE FROM a WHERE v = 'x' RETURNING *) INSERT INTO b TABLE gone;

WITH RECURSIVE f (a, b) AS (SELECT 0, 1 UNION ALL SELECT b, a + b FROM f WHERE b < 50) INSERT INTO b SELECT a, 'fib' FROM f;

WITH up AS MATERIALIZED (UPDATE b SET v = upper(v) RETURNING *) SELECT count(*) FROM up;

-- == updates and deletes from others ==
CREATE TABLE a (id int, n int);

CREATE TABLE b (id int, n int);

INSERT INTO a SELECT i, 0 FROM generate_series(1, 5) i;

INSERT INTO b VALUES (1, 10), (2, 20);

UPDATE a SET (n, id) = (SELECT b.n, a.id) FROM b WHERE a.id = b.id;

UPDATE a SET n = (SELECT max(n) FROM b) WHERE id = 5;

DELETE FROM a USING b WHERE a.id = b.id AND b.n > 15 RETURNING a.*;

TRUNCATE b RESTART IDENTITY CASCADE;

-- == window functions ==
CREATE TABLE s (dept text, pay int);

INSERT INTO s VALUES ('a', 10), ('a', 20), ('b', 5), ('b', 7);

CREATE TABLE r AS SELECT dept, pay, rank() OVER w, lag(pay, 1, 0) OVER w, sum(pay) FILTER (WHERE pay > 5) OVER (PARTITION BY dept), ntile(2) OVER (ORDER BY pay) FROM s WINDOW w AS (PARTITION BY dept ORDER BY pay DESC);

-- == grouping sets ==
CREATE TABLE s (a text, b text, n int);

INSERT INTO s VALUES ('x', 'p', 1), ('x', 'q', 2), ('y', 'p', 3);

CREATE TABLE r AS SELECT a, b, grouping(a, b) AS g, sum(n) FROM s GROUP BY GROUPING SETS ((a, b), ROLLUP (a)), () ORDER BY 1, 2, 3;

CREATE TABLE q AS SELECT DISTINCT ON (a) a, n FROM s ORDER BY a, n DESC;

-- == generated data ==
CREATE TABLE t (id int, body text, at timestamp);

SELECT setseed(0.5);

INSERT INTO t SELECT i, md5(i::text), '2020-01-01'::timestamp + i * interval '1 hour' FROM generate_series(1, 500) i;

UPDATE t SET body = NULL WHERE id % 7 = 0;

-- == json functions ==
CREATE TABLE t AS SELECT e.key, e.value FROM jsonb_each('{"a;": 1, "b": {"c": [1, 2, ";"]}}') e;

CREATE TABLE u AS SELECT * FROM jsonb_to_recordset('[{"a": 1, "b": "x"}, {"a": 2}]') AS x (a int, b text);

CREATE TABLE v AS SELECT json_build_object('k', json_agg(a ORDER BY a)) AS j, jsonb_path_query_array('{"a": [1, 5]}', '$.a[*] ? (@ > 2)') AS p, '{"a": {"b": 1}}'::jsonb -> 'a' ->> 'b' AS q, '{"a":1}'::jsonb ?| ARRAY['a'] AS has, '{"a":1}'::jsonb @? '$.a' AS exists FROM u;

-- == xml functions ==
CREATE TABLE t AS SELECT xmlelement(name "a;", xmlattributes('x' AS b), 'c') AS x, (xpath('/r/v/text()', '<r><v>1;</v></r>'))[1]::text AS v;

CREATE TABLE u AS SELECT * FROM xmltable('/r/i' PASSING '<r><i n="1">a</i><i n="2">b</i></r>' COLUMNS n int PATH '@n', v text PATH '.');

-- == likes and regular expressions ==
CREATE TABLE t AS SELECT 'a;b' LIKE '%;%' AS a, 'a\b' LIKE 'a\\b' AS b, 'a_b' LIKE 'a!_b' ESCAPE '!' AS c, 'abc' SIMILAR TO '%(b|d)%' AS d, regexp_replace('a;b;c', ';', '\&-', 'g') AS e, 'x' ~* '^X$' AS f, 'it''s' ~ '''' AS g;

-- == a row for each form of a literal ==
CREATE TABLE t AS SELECT 'plain' AS a, 'it''s; quoted' AS b, E'it\'s\n; \\ \x41 \u00e4' AS c, U&'d\0061t\+000061;' AS d, U&'d!0061;' UESCAPE '!' AS e, $$dollar;'$$ AS f, B'101' AS g, X'1F' AS h, N'national;' AS i, 'one' 
  'two;' AS j, E'a\\'
  'b;' AS k;

-- == numbers of every form ==
CREATE TABLE t AS SELECT 1 AS a, -1.5 AS b, .5 AS c, 5. AS d, 1e10 AS e, 1.5E-3 AS f, 42::bigint AS g, CAST('7' AS smallint) AS h, int '9' AS i, '10'::int4 AS j, 2^3 AS k, |/ 9.0 AS l, @ -5 AS m, 7 % 3 AS n, 5 # 3 AS o, ~1 AS p, 1 << 4 AS q;

-- == strings that go on in the next line ==
CREATE TABLE t (a text);

INSERT INTO t VALUES ('first'
'second; third'
'fourth');

INSERT INTO t VALUES (E'x\''
  '\' still; inside');

INSERT INTO t VALUES ('a
b;
c');

-- == backslashes ==
CREATE TABLE t (a text);

INSERT INTO t VALUES ('C:\dir\'), ('a\\'), ('\'';');

INSERT INTO t VALUES (E'C:\\dir\\'), (E'\';'), (E'a\\\';');

-- == strings that do not conform ==
SET standard_conforming_strings = off;

SET escape_string_warning = off;

SET backslash_quote = on;

CREATE TABLE t (a text);

INSERT INTO t VALUES ('it\'s; here'), ('a\\'), ('b\n;');

SET standard_conforming_strings = on;

INSERT INTO t VALUES ('c\'), ('; d');

-- == quoted names ==
CREATE TABLE "a;b" ("c""d" int, "select" text, "e'f" int, "--" int, "/*" int, "$$" int, U&"\0441\043B" int, U&"d!0061" UESCAPE '!' int);

INSERT INTO "a;b" ("c""d", "select", "e'f", "--", "/*", "$$") VALUES (1, 'x', 2, 3, 4, 5);

CREATE INDEX "i;" ON "a;b" ("c""d");

-- == names in other letters ==
CREATE TABLE größe (straße text, "Ünï" int, имя text, 表 text);

INSERT INTO größe (straße, имя, 表) VALUES ('Weg; 5', 'да', '値;');

-- == words that are names ==
CREATE TABLE event (begin date, "end" date, if int, loop int, while int, repeat int, language text, function int, procedure int, trigger int, "order" int, "case" int, declare int, exception int, atomic int, delimiter text);

INSERT INTO event (begin, if, loop, atomic) VALUES ('2020-01-01', 1, 2, 3);

CREATE VIEW begin AS SELECT begin AS begin, "end", e.begin AS "case" FROM event e;

CREATE TABLE function (atomic int, begin int);

SELECT begin atomic FROM event;

CREATE INDEX function_begin ON function (begin, atomic);

-- == aliases that are words of blocks ==
CREATE TABLE t AS SELECT 1 AS begin, 2 AS end, 3 AS case, 4 AS if, 5 AS loop, 6 AS commit;

UPDATE t SET begin = CASE WHEN if = 4 THEN begin + 1 ELSE loop END, commit = 7;
