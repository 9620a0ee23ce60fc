-- == comments of every form ==
-- a comment; with ' a quote and ` and /* no block
CREATE TABLE t (a INT /* inner; ' */, b INT); -- after; it

# a hash; comment '
/* a block; */ INSERT INTO t VALUES (1, 2); # after; too

/* '; */ INSERT INTO t VALUES (3 /* ; */, 4) /* ; -- */ ; -- end

INSERT INTO t VALUES (5--1, 6 # ; here
);

INSERT INTO t VALUES (7 -- ; here
, 8);

--
INSERT INTO t VALUES (9, 9);

-- == dashes without a blank ==
CREATE TABLE t (a INT);

INSERT INTO t VALUES (1--1), (5--3), (--2);

INSERT INTO t SELECT 4 --	tab after; it
;

-- == versioned comments ==
/*!50001 CREATE TABLE t (a INT) */;

/*! CREATE TABLE u (a INT DEFAULT 5) */;

CREATE TABLE v (a INT /*!50001 , b VARCHAR(5) DEFAULT ';' */ /*!999999 , c INT */);

INSERT /*!50000 IGNORE */ INTO v (a) VALUES (1 /*!50000 + 1 */);

/*!40101 SET @x = 'a;b' */;

/*!50003 CREATE*/ /*!50003 TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.a = NEW.a + 1 */;

INSERT INTO t VALUES (1);

INSERT INTO v (a, b) VALUES (2, LENGTH(@x)) /*!99999 garbage here ' */;

-- == hints ==
CREATE TABLE t (a INT, KEY k (a));

SELECT /*+ MAX_EXECUTION_TIME(1000) */ * FROM t USE INDEX (k);

INSERT /*+ SET_VAR(sort_buffer_size = 16777216) */ INTO t VALUES (1);

SELECT STRAIGHT_JOIN SQL_NO_CACHE HIGH_PRIORITY a FROM t FORCE INDEX FOR ORDER BY (k) ORDER BY a;

-- == empty statements ==
CREATE TABLE t (a INT);

/* ; */

INSERT INTO t VALUES (1)
-- == no semicolon at the end ==
CREATE TABLE t (a INT);

INSERT INTO t VALUES (1), (2)
-- == many on a line ==
CREATE TABLE a (x INT);¶ CREATE TABLE b (y INT);¶INSERT INTO a VALUES (1);¶ INSERT INTO b SELECT x FROM a;¶-- trailing

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
CREATE TABLE `t;` (`a;` VARCHAR(50) DEFAULT ';' COMMENT ';', CHECK (`a;` <> ';;')) COMMENT ";"; # ;

INSERT INTO `t;` VALUES ('x;'), ("y;"), ('\';'), ("\";"), (';'';' /* ; */); -- ;

INSERT INTO `t;` SELECT ';' FROM DUAL WHERE ';' = ";";

-- == only comments ==
-- nothing to do here; for this engine
# nor; here
/* and nothing; here */
-- == ansi quotes bare ==
SET sql_mode = 'ANSI_QUOTES';

CREATE TABLE "t;" ("a;b" INT, "c""d" VARCHAR(20), "--" INT);

INSERT INTO "t;" ("a;b", "c""d", "--") VALUES (1, 'x;\'', 3);

CREATE VIEW "v" AS SELECT "a;b" AS "begin" FROM "t;";

-- == no backslash escapes ==
SET sql_mode = 'NO_BACKSLASH_ESCAPES';

CREATE TABLE t (a VARCHAR(20));

INSERT INTO t VALUES ('C:\'), ('a\b;'), ("c\"), ('d\''; e');

SET sql_mode = '';

INSERT INTO t VALUES ('back\'; again'), ('x\\');

-- == pipes as concat ==
SET SESSION sql_mode = 'PIPES_AS_CONCAT,STRICT_TRANS_TABLES';

CREATE TABLE t AS SELECT 'a' || ';' || 'b' AS c;

CREATE PROCEDURE p() INSERT INTO t VALUES ('x' || 'y');

CALL p();

-- == the mode ansi ==
SET sql_mode = 'ANSI';

CREATE TABLE "order" ("begin" INT, "end" VARCHAR(5));

INSERT INTO "order" VALUES (1, 'a' || ';');

SELECT COUNT (*), MAX ("begin") FROM "order";

SET sql_mode = DEFAULT;

INSERT INTO `order` VALUES (2, "b;");

-- == a mode that a program keeps ==
SET @old = @@sql_mode, sql_mode = 'ANSI_QUOTES';

CREATE FUNCTION f() RETURNS VARCHAR(20) DETERMINISTIC RETURN (SELECT "x" FROM (SELECT 'val;' AS "x") AS "y");

SET sql_mode = @old;

CREATE TABLE t AS SELECT f() AS a, "b;" AS b;

-- == a header as dumps have it ==
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;
/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;
/*!40101 SET NAMES utf8mb4 */;

/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */;
/*!40103 SET TIME_ZONE='+00:00' */;
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;

DROP TABLE IF EXISTS `t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `t` (
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `at` timestamp NOT NULL DEFAULT current_timestamp(),
  `body` varchar(100) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `t` DISABLE KEYS */;

INSERT INTO `t` VALUES (0,'2020-01-01 00:00:00','a;\'b\n'),(2,'2020-01-02 00:00:00',NULL);

/*!40000 ALTER TABLE `t` ENABLE KEYS */;

/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */;
/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;
/*!40014 SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */;

INSERT INTO t (body, at) VALUES ('behind the dump', '2020-01-03');

-- == a view as dumps have it ==
CREATE TABLE t (a INT);

/*!50001 DROP VIEW IF EXISTS `v`*/;
/*!50001 CREATE VIEW `v` AS SELECT
 1 AS `a` */;

/*!50001 DROP VIEW IF EXISTS `v`*/;
/*!50001 SET @saved_cs_client          = @@character_set_client */;
/*!50001 SET @saved_col_connection     = @@collation_connection */;
/*!50001 SET character_set_client      = utf8mb4 */;
/*!50001 SET collation_connection      = utf8mb4_general_ci */;
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */
/*!50001 VIEW `v` AS select `t`.`a` AS `a` from `t` */;
/*!50001 SET character_set_client      = @saved_cs_client */;
/*!50001 SET collation_connection      = @saved_col_connection */;

INSERT INTO v VALUES (3);

-- == a long script ==
CREATE TABLE t (id INT PRIMARY KEY, body TEXT);

INSERT INTO t VALUES (1, REPEAT('long; ', 500)), (2, 'x');

INSERT INTO t SELECT id + 2, CONCAT(body, '-- no comment') FROM t;

INSERT INTO t SELECT id + 4, REPLACE(body, ';', '''') FROM t;

DELETE FROM t WHERE id = 3;

-- == carriage returns ==
CREATE TABLE t (a VARCHAR(10));␍
␍
INSERT INTO t VALUES ('x;'), ('y');␍
INSERT INTO t VALUES ('z') -- ;␍
;␍

-- == help for the client that the server gets ==
CREATE TABLE help (status INT, source INT, use_it INT, quit INT, clear INT, `use` INT, exit_at INT, edit INT);

INSERT INTO help
(status, source,
quit, clear)
VALUES (1, 2, 3, 4);

SELECT
status
FROM
help;

-- == questions and percents ==
CREATE TABLE t AS SELECT '? $1 %s {} ${x} :a @b' AS a, 7 % 2 AS b, '?' AS `?`;

INSERT INTO t VALUES ('?', 1, ';');
