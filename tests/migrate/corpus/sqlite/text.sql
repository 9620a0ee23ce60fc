-- == comments of every form ==
-- a comment; with ' a quote and " and /* no block
CREATE TABLE t (a INT /* inner; ' */, b INT); -- after; it

/* a block; */ /* no nesting /* here */ INSERT INTO t VALUES (1, 2);

/* '; */ INSERT INTO t VALUES (3 /* ; */, 4) /* ; -- */ ; -- end

--no blank; here
INSERT INTO t VALUES (5--;
, 6);

-- == an open comment at the end ==
CREATE TABLE t (a);

INSERT INTO t VALUES (1); /* it is not; closed
-- == empty statements ==
;;;

CREATE TABLE t (a);;

;

/* ; */;

INSERT INTO t VALUES (1);
-- == no semicolon at the end ==
CREATE TABLE t (a);

INSERT INTO t VALUES (1), (2)
-- == no semicolon behind a trigger ==
CREATE TABLE t (a);

INSERT INTO t VALUES (1);

CREATE TRIGGER tr AFTER INSERT ON t BEGIN SELECT 1; SELECT 2; END
-- == many on a line ==
CREATE TABLE a (x);¶ CREATE TABLE b (y);¶INSERT INTO a VALUES (1);¶ INSERT INTO b SELECT x FROM a;¶-- trailing

-- == blanks of every kind ==
	CREATE	TABLE t (a	INT) ;
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
CREATE TABLE "t;" ([a;] TEXT DEFAULT ';', CHECK ("a;" <> '!;')); -- ;

INSERT INTO `t;` VALUES ('x;'), (';'';'), (';' /* ; */); -- ;

INSERT INTO [t;] SELECT ';' WHERE ';' = ';';

-- == only comments ==
-- nothing to do here; for this engine
/* and nothing; here */
-- == only selects ==
SELECT 1;

SELECT ';' AS "a;b";

VALUES (1), (2);

-- == carriage returns ==
CREATE TABLE t (a);␍
␍
INSERT INTO t VALUES ('x;'), ('y');␍
INSERT INTO t VALUES ('z') -- ;␍
;␍

-- == letters in upper and lower ==
create Table MixedCase (A int, "B" int);

cReAtE tRiGgEr Tr aFtEr iNsErT oN mixedcase bEgIn sElEcT 1; eNd;

iNsErT iNtO MIXEDCASE VALUES (1, 2);

-- == what looks like commands of the shell ==
CREATE TABLE t (a
, b -- .read nothing
, c);

INSERT INTO t VALUES ('
.quit
', '.tables', 1 +
.5);

-- == parameters in quotes ==
CREATE TABLE t (a);

INSERT INTO t VALUES ('?'), (':a'), ('@b'), ('$c'), ('%s {} ${x}');

-- == triggers on a line ==
CREATE TABLE t (a);¶ CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; END;¶ CREATE TRIGGER b AFTER INSERT ON t BEGIN SELECT 1; SELECT CASE WHEN 1 THEN 2 END; END;¶INSERT INTO t VALUES (1);

-- == an explained trigger ==
CREATE TABLE t (a);

EXPLAIN CREATE TRIGGER tr AFTER INSERT ON t BEGIN SELECT 1; SELECT 2; END;

INSERT INTO t VALUES (1);

-- == a long script ==
CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT);

INSERT INTO t VALUES (1, replace(hex(zeroblob(2000)), '00', 'long; '));

INSERT INTO t SELECT id + 1, body || ' -- no comment' FROM t;

INSERT INTO t SELECT id + 2, replace(body, ';', '''') FROM t;

DELETE FROM t WHERE id = 1;
