-- == a shop ==
CREATE TABLE customers (id INTEGER PRIMARY KEY AUTOINCREMENT, email TEXT NOT NULL COLLATE NOCASE, created TEXT NOT NULL DEFAULT '2020-01-01');

CREATE UNIQUE INDEX customers_email ON customers (email);

CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INT NOT NULL REFERENCES customers ON DELETE RESTRICT, state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'paid;', 'sent')), total NUMERIC NOT NULL CHECK (total >= 0));

INSERT INTO customers (email) VALUES ('a@example.org'), ('b@example.org');

INSERT INTO orders (customer, total) SELECT id, id * 1.5 FROM customers;

ALTER TABLE orders ADD COLUMN currency TEXT;

UPDATE orders SET currency = 'EUR' WHERE currency IS NULL;

-- == a column that moves ==
CREATE TABLE users (id INTEGER PRIMARY KEY, full_name TEXT);

INSERT INTO users VALUES (1, 'Ada Lovelace'), (2, 'Bob');

ALTER TABLE users ADD first TEXT;¶ALTER TABLE users ADD last TEXT;

UPDATE users SET first = substr(full_name, 1, instr(full_name || ' ', ' ') - 1), last = nullif(substr(full_name, instr(full_name || ' ', ' ') + 1), '');

ALTER TABLE users DROP COLUMN full_name;

-- == a tree ==
CREATE TABLE node (id INTEGER PRIMARY KEY, parent REFERENCES node, name);

INSERT INTO node VALUES (1, NULL, 'root'), (2, 1, 'a'), (3, 1, 'b;'), (4, 2, 'a/c');

CREATE VIEW paths AS WITH RECURSIVE p (id, path) AS (SELECT id, name FROM node WHERE parent IS NULL UNION ALL SELECT n.id, p.path || '/' || n.name FROM node n JOIN p ON n.parent = p.id ORDER BY 2) SELECT id, path FROM p;

CREATE TABLE flat AS SELECT * FROM paths;

-- == audit by triggers ==
CREATE TABLE t (id INTEGER PRIMARY KEY, v);

CREATE TABLE audit (n INTEGER PRIMARY KEY, op, old_row, new_row);

CREATE TRIGGER t_ai AFTER INSERT ON t BEGIN INSERT INTO audit (op, new_row) VALUES ('insert;', json_object('id', NEW.id, 'v', NEW.v)); END;

CREATE TRIGGER t_au AFTER UPDATE ON t WHEN OLD.v IS NOT NEW.v BEGIN
  INSERT INTO audit (op, old_row, new_row) VALUES ('update', json_object('v', OLD.v), json_object('v', NEW.v));
END;

INSERT INTO t VALUES (1, 'a'), (2, 'b');

UPDATE t SET v = 'c;' WHERE id = 1;

-- == a queue ==
CREATE TABLE job (id INTEGER PRIMARY KEY, payload TEXT DEFAULT '{}', taken INT DEFAULT 0);

INSERT INTO job (payload) VALUES ('{"n": 1}'), ('{"n": ";"}');

UPDATE job SET taken = 1 WHERE id = (SELECT id FROM job WHERE NOT taken ORDER BY id LIMIT 1) RETURNING id, payload;

-- == versions of rows ==
CREATE TABLE doc (id INT, v INT, body TEXT, PRIMARY KEY (id, v)) WITHOUT ROWID;

CREATE VIEW latest AS SELECT id, max(v) AS v, body FROM doc GROUP BY id;

CREATE TRIGGER put INSTEAD OF INSERT ON latest BEGIN INSERT INTO doc SELECT NEW.id, coalesce(max(v), 0) + 1, NEW.body FROM doc WHERE id = NEW.id; END;

INSERT INTO latest (id, body) VALUES (1, 'a;');¶INSERT INTO latest (id, body) VALUES (1, 'b');

-- == settings with defaults ==
CREATE TABLE setting (key TEXT PRIMARY KEY NOT NULL, value TEXT) WITHOUT ROWID;

INSERT INTO setting VALUES ('theme', 'dark;') ON CONFLICT (key) DO NOTHING;

INSERT OR FAIL INTO setting VALUES ('lang', 'de');

INSERT INTO setting VALUES ('lang', 'en') ON CONFLICT (key) DO UPDATE SET value = excluded.value || ';' || value;

-- == dump of a small database ==
PRAGMA foreign_keys=OFF;

CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);

INSERT INTO t VALUES(1,'x;');¶
INSERT INTO t VALUES(2,replace('line\none','\n',char(10)));

CREATE TABLE u(k TEXT, v BLOB);

INSERT INTO u VALUES('it''s',X'00ff');

CREATE INDEX u_k ON u(k);

CREATE TRIGGER tr AFTER INSERT ON t BEGIN UPDATE u SET v = NULL; END;

-- == many tables at once ==
CREATE TABLE a (x); CREATE TABLE b (x); CREATE TABLE c (x); INSERT INTO a VALUES (1); INSERT INTO b SELECT x + 1 FROM a; INSERT INTO c SELECT x + 1 FROM b; DELETE FROM a;

CREATE TABLE d (x);

-- == tags ==
CREATE TABLE item (id INTEGER PRIMARY KEY, tags TEXT DEFAULT '[]' CHECK (json_type(tags) = 'array'));

INSERT INTO item (tags) VALUES ('["a;", "b"]'), ('["b"]');

-- == counters by triggers ==
CREATE TABLE post (id INTEGER PRIMARY KEY, comments INT NOT NULL DEFAULT 0);

CREATE TABLE comment (id INTEGER PRIMARY KEY, post INT REFERENCES post ON DELETE CASCADE);

CREATE TRIGGER up AFTER INSERT ON comment BEGIN UPDATE post SET comments = comments + 1 WHERE id = NEW.post; END;

CREATE TRIGGER down AFTER DELETE ON comment BEGIN UPDATE post SET comments = comments - 1 WHERE id = OLD.post; END;

INSERT INTO post (id) VALUES (1), (2);

INSERT INTO comment (post) VALUES (1), (1), (2);

DELETE FROM comment WHERE id = 1;

-- == a matrix in rows ==
CREATE TABLE m (r INT, c INT, v REAL, PRIMARY KEY (r, c));

INSERT INTO m WITH RECURSIVE i (n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM i WHERE n < 24) SELECT n / 5, n % 5, n * 0.5 FROM i;

CREATE VIEW t AS SELECT c AS r, r AS c, v FROM m;

CREATE TABLE traces AS SELECT sum(v) AS tr FROM m WHERE r = c;

-- == search over two tables ==
CREATE TABLE a (id INTEGER PRIMARY KEY, t TEXT);¶ CREATE TABLE b (id INTEGER PRIMARY KEY, t TEXT);

CREATE VIRTUAL TABLE s USING fts5(t, src UNINDEXED, tokenize = "unicode61 remove_diacritics 2 tokenchars '-_'");

CREATE TRIGGER a_s AFTER INSERT ON a BEGIN INSERT INTO s VALUES (NEW.t, 'a;' || NEW.id); END;

CREATE TRIGGER b_s AFTER INSERT ON b BEGIN INSERT INTO s VALUES (NEW.t, 'b;' || NEW.id); END;

INSERT INTO a (t) VALUES ('some-word; here');

INSERT INTO b (t) VALUES ('Überall');

CREATE TABLE hits AS SELECT src FROM s WHERE s MATCH '"some-word" OR uberall' ORDER BY src;

-- == periods that do not overlap ==
CREATE TABLE booking (room INT, start TEXT, finish TEXT, CHECK (start < finish));

CREATE TRIGGER no_overlap BEFORE INSERT ON booking BEGIN
  SELECT RAISE(FAIL, 'rooms; overlap') WHERE EXISTS (SELECT 1 FROM booking b WHERE b.room = NEW.room AND b.start < NEW.finish AND NEW.start < b.finish);
END;

INSERT INTO booking VALUES (1, '2020-01-01', '2020-01-03'), (1, '2020-01-03', '2020-01-05');

-- == statistics of days ==
CREATE TABLE ev (at TEXT, n INT);

INSERT INTO ev WITH RECURSIVE i (k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM i WHERE k < 50) SELECT datetime('2020-01-01', k * 37 || ' minutes'), k % 5 FROM i;

CREATE TABLE per_hour AS SELECT strftime('%H', at) AS h, count(*) AS c, avg(n) AS a FROM ev GROUP BY 1 ORDER BY 1;

-- == rows that are deduplicated ==
CREATE TABLE t (email TEXT, n INT);

INSERT INTO t VALUES ('a;', 1), ('a;', 2), ('b', 3);

DELETE FROM t WHERE rowid NOT IN (SELECT min(rowid) FROM t GROUP BY email);

CREATE UNIQUE INDEX t_email ON t (email);

-- == a type by a check ==
CREATE TABLE money (amount INT NOT NULL CHECK (typeof(amount) = 'integer'), currency TEXT NOT NULL CHECK (length(currency) = 3 AND currency = upper(currency)), at TEXT CHECK (at IS NULL OR datetime(at) IS NOT NULL));

INSERT INTO money VALUES (100, 'EUR', '2020-01-01 10:00:00'), (5, 'USD', NULL);

-- == keys that change in cascade ==
PRAGMA foreign_keys = ON;

CREATE TABLE p (id TEXT PRIMARY KEY);

CREATE TABLE c (id INTEGER PRIMARY KEY, p TEXT REFERENCES p ON UPDATE CASCADE ON DELETE SET DEFAULT DEFAULT 'z');

INSERT INTO p VALUES ('a'), ('z');¶ INSERT INTO c (p) VALUES ('a');

UPDATE p SET id = 'a;' WHERE id = 'a';
