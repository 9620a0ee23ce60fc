-- == views ==
CREATE TABLE t (a int, b text);

CREATE VIEW v AS SELECT a, b || ';' AS b FROM t WHERE a > 0 WITH LOCAL CHECK OPTION;

CREATE OR REPLACE VIEW v AS SELECT a, b || ';' AS b, 1 AS c FROM t WHERE a > 1;

CREATE VIEW w (x, "y;") WITH (security_invoker = true, check_option = cascaded) AS SELECT a, a FROM t;

ALTER VIEW v ALTER COLUMN c SET DEFAULT 5;

ALTER VIEW w RENAME COLUMN x TO "case";

-- == views of many parts ==
CREATE TABLE a (id int, n int);

CREATE TABLE b (id int, a_id int);

CREATE VIEW v AS
  WITH s AS (SELECT a.id, sum(n) AS total FROM a GROUP BY a.id HAVING sum(n) > 0)
  SELECT s.id, CASE WHEN total > 10 THEN 'big' WHEN total IS NULL THEN NULL ELSE 'small' END AS size,
    row_number() OVER (PARTITION BY s.id ORDER BY total DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS place,
    (SELECT count(*) FROM b WHERE b.a_id = s.id) AS bs
  FROM s LEFT JOIN LATERAL (SELECT * FROM b WHERE b.a_id = s.id LIMIT 1) x ON true
  UNION ALL SELECT 1, 'x', 2, 3;

-- == recursive views ==
CREATE RECURSIVE VIEW n (i) AS VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 5;

CREATE TABLE sums AS SELECT sum(i) FROM n;

CREATE TEMP VIEW tv AS SELECT 1 AS one;

-- == materialized views ==
CREATE TABLE t (a int);

INSERT INTO t SELECT generate_series(1, 5);

CREATE MATERIALIZED VIEW mv AS SELECT a, a * a AS sq FROM t;

CREATE UNIQUE INDEX mv_a ON mv (a);

INSERT INTO t VALUES (6);

REFRESH MATERIALIZED VIEW mv;

REFRESH MATERIALIZED VIEW CONCURRENTLY mv;

CREATE MATERIALIZED VIEW IF NOT EXISTS mw TABLESPACE pg_default AS SELECT 1 AS one WITH NO DATA;

ALTER MATERIALIZED VIEW mw RENAME TO "m;w";

-- == a view that triggers make writable ==
CREATE TABLE t (a int);

CREATE VIEW v AS SELECT a + 1 AS a FROM t;

CREATE FUNCTION put() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (NEW.a - 1);
  RETURN NEW;
END $$;

CREATE TRIGGER put INSTEAD OF INSERT ON v FOR EACH ROW EXECUTE FUNCTION put();

INSERT INTO v VALUES (10), (20);
