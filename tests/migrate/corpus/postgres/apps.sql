-- == a shop ==
CREATE TABLE customers (id bigserial PRIMARY KEY, email text NOT NULL, created timestamptz NOT NULL DEFAULT '2020-01-01 00:00+00');

CREATE UNIQUE INDEX customers_email ON customers (lower(email));

CREATE TYPE order_state AS ENUM ('open', 'paid', 'sent');

CREATE TABLE orders (id bigserial PRIMARY KEY, customer bigint NOT NULL REFERENCES customers ON DELETE RESTRICT, state order_state NOT NULL DEFAULT 'open', total numeric(12,2) NOT NULL CHECK (total >= 0));

CREATE INDEX ON orders (customer) WHERE state = 'open';

INSERT INTO customers (email) SELECT format('user%s@example.org', i) FROM generate_series(1, 20) i;

INSERT INTO orders (customer, total) SELECT id, id * 1.5 FROM customers WHERE id % 2 = 0;

ALTER TABLE orders ADD COLUMN currency char(3);

UPDATE orders SET currency = 'EUR' WHERE currency IS NULL;

ALTER TABLE orders ALTER currency SET NOT NULL;

-- == a column that moves ==
CREATE TABLE users (id int PRIMARY KEY, full_name text);

INSERT INTO users VALUES (1, 'Ada Lovelace'), (2, 'Bob');

ALTER TABLE users ADD first text, ADD last text;

UPDATE users SET first = split_part(full_name, ' ', 1), last = NULLIF(split_part(full_name, ' ', 2), '');

ALTER TABLE users DROP full_name;

-- == audit by triggers on many tables ==
CREATE TABLE audit (tbl text, op text, row_data jsonb);

CREATE FUNCTION audited() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $fn$
BEGIN
  INSERT INTO audit VALUES (TG_TABLE_NAME, TG_OP, to_jsonb(COALESCE(NEW, OLD)));
  RETURN NULL;
END;
$fn$;

CREATE TABLE a (x int);¶ CREATE TABLE b (y text);

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['a', 'b'] LOOP
    EXECUTE format('CREATE TRIGGER audit_%1$s AFTER INSERT OR UPDATE OR DELETE ON %1$I FOR EACH ROW EXECUTE FUNCTION audited()', t);
  END LOOP;
END;
$$;

INSERT INTO a VALUES (1);

INSERT INTO b VALUES ('it''s;');

DELETE FROM a;

-- == a tree ==
CREATE TABLE node (id int PRIMARY KEY, parent int REFERENCES node, name text);

INSERT INTO node VALUES (1, NULL, 'root'), (2, 1, 'a'), (3, 1, 'b'), (4, 2, 'a/c');

CREATE VIEW paths AS WITH RECURSIVE p AS (SELECT id, name, ARRAY[id] AS path FROM node WHERE parent IS NULL UNION ALL SELECT n.id, n.name, p.path || n.id FROM node n JOIN p ON n.parent = p.id) SEARCH DEPTH FIRST BY id SET ord CYCLE id SET is_cycle USING cyc SELECT id, name, path FROM p;

CREATE TABLE flat AS SELECT * FROM paths ORDER BY id;

-- == a queue ==
CREATE TABLE job (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload jsonb NOT NULL DEFAULT '{}', taken boolean NOT NULL DEFAULT false);

CREATE FUNCTION take() RETURNS job LANGUAGE sql AS $$
  UPDATE job SET taken = true WHERE id = (SELECT id FROM job WHERE NOT taken ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING *;
$$;

INSERT INTO job (payload) VALUES ('{"n": 1}'), ('{"n": 2}');

SELECT take();

-- == money that is posted ==
CREATE TABLE acct (id int PRIMARY KEY, balance numeric NOT NULL CHECK (balance >= 0));

INSERT INTO acct VALUES (1, 100), (2, 0);

CREATE PROCEDURE transfer(from_id int, to_id int, amount numeric) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE acct SET balance = balance - amount WHERE id = from_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no account %; sorry', from_id;
  END IF;
  UPDATE acct SET balance = balance + amount WHERE id = to_id;
END;
$$;

CALL transfer(1, 2, 25);

CALL transfer(2, 1, 5);

-- == a table that is rebuilt ==
CREATE TABLE t (id int PRIMARY KEY, v text);

INSERT INTO t VALUES (1, 'a'), (2, 'b');

CREATE TABLE t_new (LIKE t INCLUDING DEFAULTS, w int NOT NULL DEFAULT 0);

INSERT INTO t_new SELECT id, v FROM t;

DROP TABLE t;

ALTER TABLE t_new RENAME TO t;

ALTER TABLE t ADD PRIMARY KEY (id);

-- == idempotent statements ==
CREATE TABLE IF NOT EXISTS t (a int);

CREATE INDEX IF NOT EXISTS i ON t (a);

ALTER TABLE t ADD COLUMN IF NOT EXISTS b int;

DO $$ BEGIN CREATE TYPE m AS ENUM ('x'); EXCEPTION WHEN duplicate_object THEN NULL; END $$;

DROP TRIGGER IF EXISTS nothing ON t;

INSERT INTO t (a) SELECT 1 WHERE NOT EXISTS (SELECT FROM t WHERE a = 1);

-- == tenants in schemas ==
DO $$ BEGIN FOR i IN 1..3 LOOP EXECUTE format('CREATE SCHEMA tenant_%s', i); EXECUTE format('CREATE TABLE tenant_%s.t (a int DEFAULT %s)', i, i); END LOOP; END $$;

SET search_path TO tenant_2, public;

INSERT INTO t DEFAULT VALUES;

RESET search_path;

INSERT INTO tenant_3.t VALUES (DEFAULT), (7);

-- == versions of rows ==
CREATE TABLE doc (id int, v int, body text, PRIMARY KEY (id, v));

CREATE FUNCTION bump() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := COALESCE((SELECT max(v) FROM doc WHERE id = NEW.id), 0) + 1; RETURN NEW; END $$;

CREATE TRIGGER bump BEFORE INSERT ON doc FOR EACH ROW EXECUTE FUNCTION bump();

INSERT INTO doc (id, body) VALUES (1, 'a');¶INSERT INTO doc (id, body) VALUES (1, 'b'), (1, 'c');

CREATE VIEW latest AS SELECT DISTINCT ON (id) * FROM doc ORDER BY id, v DESC;

-- == what is found by full text ==
CREATE TABLE page (title text, body text);

ALTER TABLE page ADD search tsvector GENERATED ALWAYS AS (setweight(to_tsvector('simple', title), 'A') || setweight(to_tsvector('simple', coalesce(body, '')), 'B')) STORED;

CREATE INDEX page_search ON page USING gin (search);

INSERT INTO page VALUES ('Begin; here', 'the end'), ('Other', NULL);

CREATE TABLE hits AS SELECT title, ts_rank(search, q) > 0 AS hit, ts_headline('simple', body, q) FROM page, to_tsquery('simple', 'end & begin') q WHERE search @@ q;

-- == statistics of a day ==
CREATE TABLE ev (at timestamp, n int);

INSERT INTO ev SELECT timestamp '2020-01-01' + i * interval '37 minutes', i % 5 FROM generate_series(0, 60) i;

CREATE MATERIALIZED VIEW per_hour AS SELECT date_trunc('hour', at) AS hour, count(*) AS c, sum(n) AS s, percentile_cont(0.5) WITHIN GROUP (ORDER BY n) AS med FROM ev GROUP BY 1;

CREATE UNIQUE INDEX ON per_hour (hour);

REFRESH MATERIALIZED VIEW per_hour;
