-- == partitions by range ==
CREATE TABLE m (day date NOT NULL, n int) PARTITION BY RANGE (day);

CREATE TABLE m_2020 PARTITION OF m FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');

CREATE TABLE m_rest PARTITION OF m DEFAULT;

CREATE INDEX ON m (n);

INSERT INTO m VALUES ('2020-05-05', 1), ('2022-01-01', 2);

-- == partitions by list ==
CREATE TABLE l (k text, v int, PRIMARY KEY (k, v)) PARTITION BY LIST (k);

CREATE TABLE l_a PARTITION OF l FOR VALUES IN ('a', 'b;') WITH (fillfactor = 70);

CREATE TABLE l_n PARTITION OF l (v DEFAULT 5) FOR VALUES IN ('n');

INSERT INTO l VALUES ('b;', 2);

-- == partitions by hash ==
CREATE TABLE h (id int, v text) PARTITION BY HASH (id);

CREATE TABLE h0 PARTITION OF h FOR VALUES WITH (MODULUS 2, REMAINDER 0);

CREATE TABLE h1 PARTITION OF h FOR VALUES WITH (MODULUS 2, REMAINDER 1);

INSERT INTO h SELECT i, repeat('x', i) FROM generate_series(1, 10) i;

-- == partitions below partitions ==
CREATE TABLE p (a int, b int) PARTITION BY RANGE (a);

CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (MINVALUE) TO (10) PARTITION BY LIST (b);

CREATE TABLE p1x PARTITION OF p1 FOR VALUES IN (1, 2);

CREATE TABLE p2 (a int, b int);

ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (10) TO (MAXVALUE);

INSERT INTO p VALUES (1, 2), (20, 3);

ALTER TABLE p DETACH PARTITION p2;

-- == partitions that a loop makes ==
CREATE TABLE e (at timestamp NOT NULL, body text) PARTITION BY RANGE (at);

DO $do$
DECLARE
  m date;
BEGIN
  FOR m IN SELECT generate_series('2021-01-01'::date, '2021-06-01', '1 month')::date LOOP
    EXECUTE format('CREATE TABLE e_%s PARTITION OF e FOR VALUES FROM (%L) TO (%L);', to_char(m, 'YYYYMM'), m, m + interval '1 month');
  END LOOP;
END
$do$;

INSERT INTO e VALUES ('2021-03-03', 'begin; end;');

-- == an index on partitions by parts ==
CREATE TABLE q (a int) PARTITION BY LIST (a);

CREATE TABLE q1 PARTITION OF q FOR VALUES IN (1);

CREATE INDEX q_i ON ONLY q (a);

CREATE INDEX q1_i ON q1 (a);

ALTER INDEX q_i ATTACH PARTITION q1_i;

-- == indexes of every method ==
CREATE EXTENSION btree_gist;

CREATE TABLE t (a int, b text, c int[], d point, e tsvector, f jsonb, g inet);

CREATE INDEX i1 ON t USING btree (a DESC NULLS LAST, lower(b) COLLATE "C" text_pattern_ops);

CREATE UNIQUE INDEX i2 ON t (a, b) NULLS NOT DISTINCT WHERE a > 0 AND b <> ';';

CREATE INDEX i3 ON t USING hash (b);

CREATE INDEX i4 ON t USING gin (c) WITH (fastupdate = off);

CREATE INDEX i5 ON t USING gist (d, a);

CREATE INDEX i6 ON t USING spgist (g);

CREATE INDEX i7 ON t USING brin (a) WITH (pages_per_range = 4);

CREATE INDEX IF NOT EXISTS i8 ON t USING gin (f jsonb_path_ops, e);

ALTER INDEX i8 RENAME TO "I 8";

ALTER INDEX i1 SET (fillfactor = 60);

REINDEX INDEX i3;

DROP INDEX i3, i4;

-- == an index with an expression that has a case ==
CREATE TABLE t (a int, begin int, "end" int);

CREATE INDEX i ON t ((CASE WHEN begin IS NULL THEN "end" ELSE begin END), (coalesce(a, 0)));

CREATE UNIQUE INDEX ON t ((a IS NULL)) WHERE a IS NULL;

-- == concurrent/1 ==
CREATE TABLE t (a int);

INSERT INTO t SELECT generate_series(1, 10);

-- == concurrent/2 none ==
CREATE INDEX CONCURRENTLY IF NOT EXISTS t_a ON t (a);

-- == concurrent/3 ==
ALTER TABLE t ADD b text DEFAULT 'later';

-- == enum value/1 ==
CREATE TYPE mood AS ENUM ('sad', 'ok');

CREATE TABLE person (m mood);

-- == enum value/2 ==
ALTER TYPE mood ADD VALUE IF NOT EXISTS 'happy' BEFORE 'ok';

-- == enum value/3 ==
INSERT INTO person VALUES ('happy'), ('sad');

-- == reindexed concurrently/1 ==
CREATE TABLE t (a int);

CREATE INDEX t_a ON t (a);

-- == reindexed concurrently/2 none ==
REINDEX INDEX CONCURRENTLY t_a;

-- == reindexed concurrently/3 none ==
VACUUM (ANALYZE) t;

-- == reindexed concurrently/4 none ==
DROP INDEX CONCURRENTLY t_a;
