-- == routines of one statement ==
CREATE TABLE t (a INT, b VARCHAR(20));

CREATE PROCEDURE p(IN x INT, OUT y INT, INOUT z INT) COMMENT 'it''s; ok' MODIFIES SQL DATA SET y = x + z;

CREATE FUNCTION f(a INT) RETURNS VARCHAR(20) DETERMINISTIC NO SQL RETURN CONCAT(a, ';');

CREATE PROCEDURE put(n INT) INSERT INTO t VALUES (n, f(n));

SET @z = 5;

CALL p(1, @y, @z);

CALL put(@y);

-- == a block bare ==
CREATE TABLE t (a INT);

CREATE PROCEDURE p()
BEGIN
  DECLARE x INT DEFAULT 5;
  DECLARE y, z VARCHAR(10) DEFAULT ';';
  SET x = x + 1, y = 'a;b';
  INSERT INTO t VALUES (x);
  SELECT LENGTH(y) INTO x;
  INSERT INTO t VALUES (x);
END;

CALL p();

INSERT INTO t VALUES (100);

-- == nested blocks with labels bare ==
CREATE TABLE t (a INT);

CREATE PROCEDURE p()
outer_block: BEGIN
  DECLARE n INT DEFAULT 0;
  BEGIN
    DECLARE n INT DEFAULT 10;
    inner_block: BEGIN
      IF n > 5 THEN LEAVE inner_block; END IF;
      INSERT INTO t VALUES (-1);
    END inner_block;
    INSERT INTO t VALUES (n);
  END;
  IF n = 0 THEN LEAVE outer_block; END IF;
  INSERT INTO t VALUES (-2);
END outer_block;

CALL p();

-- == if of every form bare ==
CREATE TABLE t (a VARCHAR(20));

CREATE PROCEDURE p(n INT)
BEGIN
  IF n = 1 THEN INSERT INTO t VALUES ('one;');
  ELSEIF n = 2 THEN
    IF n IS NOT NULL THEN INSERT INTO t VALUES (IF(n > 1, 'two', 'x')); END IF;
  ELSE
    INSERT INTO t VALUES ('many');
  END IF;
END;

CALL p(1);

CALL p(2);

CALL p(3);

-- == case of every form bare ==
CREATE TABLE t (a VARCHAR(20));

CREATE PROCEDURE p(n INT)
BEGIN
  CASE n
    WHEN 1 THEN INSERT INTO t VALUES (CASE WHEN n = 1 THEN 'one' ELSE 'x' END);
    ELSE BEGIN END;
  END CASE;
  CASE WHEN n > 1 THEN SET n = CASE n WHEN 2 THEN 20 END; INSERT INTO t VALUES (n); ELSE SELECT 1; END CASE;
END;

CALL p(1);

CALL p(2);

-- == loops of every form bare ==
CREATE TABLE t (a INT, b CHAR(1));

CREATE PROCEDURE p()
BEGIN
  DECLARE i INT DEFAULT 0;
  WHILE i < 3 DO
    SET i = i + 1;
    INSERT INTO t VALUES (i, 'w');
  END WHILE;
  REPEAT
    SET i = i - 1;
    INSERT INTO t VALUES (i, 'r');
  UNTIL i = 0 END REPEAT;
  l: LOOP
    SET i = i + 1;
    IF i = 2 THEN ITERATE l; END IF;
    IF i > 4 THEN LEAVE l; END IF;
    INSERT INTO t VALUES (i, 'l');
  END LOOP l;
  w: WHILE TRUE DO LEAVE w; END WHILE w;
  r: REPEAT SET i = LENGTH(REPEAT('x', 3)); UNTIL TRUE END REPEAT r;
END;

CALL p();

-- == cursors and handlers bare ==
CREATE TABLE s (a INT);

CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(30));

INSERT INTO s VALUES (1), (2), (1);

CREATE PROCEDURE p()
BEGIN
  DECLARE done INT DEFAULT FALSE;
  DECLARE v INT;
  DECLARE no_row CONDITION FOR SQLSTATE '02000';
  DECLARE c CURSOR FOR SELECT a FROM s;
  DECLARE CONTINUE HANDLER FOR no_row SET done = TRUE;
  DECLARE CONTINUE HANDLER FOR 1062
  BEGIN
    UPDATE t SET b = 'again; twice' WHERE a = v;
  END;
  OPEN c;
  read_all: LOOP
    FETCH c INTO v;
    IF done THEN LEAVE read_all; END IF;
    INSERT INTO t VALUES (v, 'first');
  END LOOP;
  CLOSE c;
END;

CALL p();

-- == handlers of every kind bare ==
CREATE TABLE t (a VARCHAR(90));

CREATE PROCEDURE p()
BEGIN
  DECLARE EXIT HANDLER FOR SQLEXCEPTION, SQLWARNING
  BEGIN
    GET DIAGNOSTICS CONDITION 1 @state = RETURNED_SQLSTATE, @msg = MESSAGE_TEXT;
    INSERT INTO t VALUES (CONCAT(@state, ';', @msg));
  END;
  INSERT INTO t VALUES ('before');
  SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'it''s; wrong', MYSQL_ERRNO = 5000;
  INSERT INTO t VALUES ('never');
END;

CALL p();

-- == functions with blocks bare ==
CREATE FUNCTION fact(n INT) RETURNS BIGINT DETERMINISTIC
BEGIN
  DECLARE r BIGINT DEFAULT 1;
  WHILE n > 1 DO SET r = r * n, n = n - 1; END WHILE;
  RETURN r;
END;

CREATE FUNCTION size(n INT) RETURNS VARCHAR(10) CHARSET utf8mb4 NO SQL
RETURN CASE WHEN n > 10 THEN 'big;' ELSE 'small' END;

CREATE TABLE t AS SELECT fact(5) AS f, size(5) AS s, size(50) AS b;

-- == triggers bare ==
CREATE TABLE t (a INT, b INT, begin DATE, finish DATE);

CREATE TABLE log (n INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(30));

CREATE TRIGGER t_bi BEFORE INSERT ON t FOR EACH ROW SET NEW.b = COALESCE(NEW.b, NEW.a * 2);

CREATE TRIGGER t_bi2 BEFORE INSERT ON t FOR EACH ROW FOLLOWS t_bi BEGIN SET NEW.finish = COALESCE(NEW.finish, NEW.begin); END;

CREATE TRIGGER t_au AFTER UPDATE ON t FOR EACH ROW
BEGIN
  IF NOT (OLD.a <=> NEW.a) THEN
    INSERT INTO log (what) VALUES (CONCAT('a; ', OLD.a, ' to ', NEW.a));
  END IF;
END;

CREATE TRIGGER t_ad AFTER DELETE ON t FOR EACH ROW INSERT INTO log (what) VALUES ('gone;');

INSERT INTO t (a, begin) VALUES (1, '2020-01-01'), (2, NULL);

UPDATE t SET a = a + 1;

DELETE FROM t WHERE a = 2;

DROP TRIGGER t_ad;

DELETE FROM t;

-- == a trigger with if and without begin bare ==
CREATE TABLE t (a INT);

CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW IF NEW.a < 0 THEN SET NEW.a = 0; END IF;

INSERT INTO t VALUES (-5), (5);

CREATE TABLE after_it (x INT);

-- == programs with other blocks as bodies bare ==
CREATE TABLE t (a INT);

CREATE PROCEDURE p1(n INT) IF n > 0 THEN INSERT INTO t VALUES (n); ELSE INSERT INTO t VALUES (0); END IF;

CREATE PROCEDURE p2(n INT) CASE n WHEN 1 THEN INSERT INTO t VALUES (10); ELSE INSERT INTO t VALUES (20); END CASE;

CREATE PROCEDURE p3(n INT) WHILE n > 0 DO INSERT INTO t VALUES (n); SET n = n - 1; END WHILE;

CREATE PROCEDURE p4(n INT) REPEAT INSERT INTO t VALUES (n); SET n = n - 1; UNTIL n < 0 END REPEAT;

CREATE PROCEDURE p5(n INT) l: LOOP SET n = n - 1; INSERT INTO t VALUES (n + 100); IF n < 1 THEN LEAVE l; END IF; END LOOP l;

CALL p1(1);¶ CALL p2(1);¶ CALL p3(2);¶ CALL p4(1);¶ CALL p5(2);

INSERT INTO t VALUES (1000);

-- == columns of a program that are called begin and end bare ==
CREATE TABLE slot (id INT, begin DATE, `end` DATE, finish DATE);

CREATE TABLE account (id INT PRIMARY KEY, balance INT);

INSERT INTO account VALUES (1, 100);

CREATE TRIGGER tr BEFORE INSERT ON slot FOR EACH ROW BEGIN SET NEW.finish = COALESCE(NEW.finish, NEW.begin), NEW.end = NEW.begin; END;

CREATE PROCEDURE p() BEGIN SELECT begin, s.begin AS begin FROM slot s WHERE begin IS NULL; UPDATE slot SET begin = finish, slot.end = begin; END;

UPDATE account SET balance = balance - 10 WHERE id = 1;

INSERT INTO slot (id, begin) VALUES (1, '2020-01-01');

CALL p();

-- == a delimiter ==
CREATE TABLE t (a INT);

DROP PROCEDURE IF EXISTS price;

DELIMITER $$

CREATE PROCEDURE price()
BEGIN
  INSERT INTO t VALUES (10);
  INSERT INTO t VALUES (20);
END$$

CALL price()$$

DELIMITER ;

CALL price();

-- == delimiters of every form ==
CREATE TABLE t (a VARCHAR(20));

delimiter //

CREATE PROCEDURE p1() BEGIN INSERT INTO t VALUES ('//'); INSERT INTO t VALUES (';'); END//

CREATE TABLE u (a INT DEFAULT 5)//

DELIMITER ;;

CREATE PROCEDURE p2() BEGIN INSERT INTO t VALUES (';;'); END;;

DELIMITER |

CREATE PROCEDURE p3() BEGIN INSERT INTO t VALUES ('|'); END|

DELIMITER END_OF

CREATE PROCEDURE p4() BEGIN INSERT INTO t VALUES ('e'); END END_OF

DELIMITER ;

CALL p1();¶ CALL p2();¶ CALL p3();¶ CALL p4();

-- == programs as dumps have them ==
CREATE TABLE t (a INT);

/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER tr BEFORE INSERT ON t FOR EACH ROW BEGIN
  SET NEW.a = NEW.a + 1;
  SET @seen = ';';
END */;;

CREATE DEFINER=`root`@`localhost` PROCEDURE `p`()
BEGIN
  INSERT INTO t VALUES (1);
  -- it's; a comment
END ;;

DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;

CALL p();

-- == events bare ==
CREATE TABLE t (a INT);

CREATE EVENT e1 ON SCHEDULE EVERY 1 DAY STARTS '2035-01-01 00:00:00' ENDS '2036-01-01 00:00:00' ON COMPLETION PRESERVE DISABLE COMMENT 'a;b' DO INSERT INTO t VALUES (1);

CREATE EVENT IF NOT EXISTS e2 ON SCHEDULE AT '2035-01-01 10:00:00' ON COMPLETION NOT PRESERVE DO BEGIN INSERT INTO t VALUES (1); DELETE FROM t; END;

ALTER EVENT e1 RENAME TO `end`;

DROP EVENT e2;

CREATE EVENT `begin` ON SCHEDULE EVERY '1:30' HOUR_MINUTE STARTS '2035-01-01 00:00:00' DO CALL nothing();

INSERT INTO t VALUES (5);

-- == comments in bodies bare ==
CREATE TABLE t (a INT);

CREATE PROCEDURE p()
BEGIN
  -- END; it's; a comment
  # END; "and another
  /* BEGIN; ' */
  INSERT INTO t VALUES (1); /* END; */
  INSERT INTO t VALUES (2) -- END;
  ;
END;

CALL p();

INSERT INTO t VALUES (3);

-- == a body with strings that look like ends bare ==
CREATE TABLE t (a VARCHAR(50));

CREATE PROCEDURE `begin`()
BEGIN
  INSERT INTO t VALUES ('END;'), ("BEGIN; 'x'"), ('it''s END'), ('\'; END;');
  SET @`end;` = 'END IF; END LOOP;';
  INSERT INTO t SELECT `a` FROM (SELECT 'x' AS `a`) AS `end`;
END;

CALL `begin`();

-- == if functions and exists in bodies bare ==
CREATE TABLE t (a INT);

CREATE PROCEDURE p()
BEGIN
  DROP TABLE IF EXISTS u;
  CREATE TABLE IF NOT EXISTS u (a INT);
  INSERT INTO u VALUES (IF(1 > 0, 1, 0)), (REPEAT('1', 2));
  IF EXISTS (SELECT 1 FROM u WHERE a = IF(a > 5, 11, 1)) THEN
    INSERT INTO t SELECT a FROM u;
  END IF;
  ALTER TABLE u ADD b INT;
END;

CALL p();

-- == a procedure with a transaction in it bare ==
CREATE TABLE t (a INT);

CREATE PROCEDURE p()
BEGIN
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  START TRANSACTION;
  INSERT INTO t VALUES (1);
  COMMIT;
  START TRANSACTION READ WRITE;
  INSERT INTO t VALUES (2);
  ROLLBACK;
END;

CALL p();

-- == a procedure that answers often bare ==
CREATE TABLE t (a INT);

CREATE PROCEDURE p() BEGIN SELECT 1; INSERT INTO t VALUES (1); SELECT 2, ';'; SELECT * FROM t; END;

CALL p();

CALL p;

INSERT INTO t VALUES (2);

-- == programs that loop over generated data bare ==
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20));

CREATE PROCEDURE fill(IN n INT)
BEGIN
  DECLARE i INT DEFAULT 1;
  WHILE i <= n DO
    INSERT INTO t VALUES (i, CONCAT('row; ', i));
    SET i = i + 1;
  END WHILE;
END;

CALL fill(50);

DROP PROCEDURE fill;

-- == prepared in a program bare ==
CREATE TABLE t (a INT);

CREATE PROCEDURE run_it(IN what TEXT)
BEGIN
  SET @what = what;
  PREPARE s FROM @what;
  EXECUTE s;
  DEALLOCATE PREPARE s;
END;

CALL run_it('INSERT INTO t VALUES (1)');

CALL run_it("ALTER TABLE t ADD b VARCHAR(9) DEFAULT ';'");

-- == programs that are changed bare ==
CREATE PROCEDURE p() COMMENT 'one' SELECT 1;

ALTER PROCEDURE p COMMENT 'two;' SQL SECURITY INVOKER;

CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN 1;

DROP FUNCTION f;

CREATE FUNCTION f() RETURNS VARCHAR(5) DETERMINISTIC READS SQL DATA SQL SECURITY INVOKER BEGIN RETURN 'a;'; END;

-- == labels that are words bare ==
CREATE TABLE t (a INT);

CREATE PROCEDURE p()
work: BEGIN
  `end`: LOOP
    INSERT INTO t VALUES (1);
    LEAVE `end`;
  END LOOP `end`;
  LEAVE work;
END work;

CALL p();

-- == many programs in a row bare ==
CREATE TABLE t (a INT);

CREATE PROCEDURE p1() BEGIN END;¶ CREATE PROCEDURE p2() BEGIN CALL p1(); END;¶ CREATE PROCEDURE p3() BEGIN BEGIN BEGIN END; END; END;

CREATE FUNCTION f1() RETURNS INT DETERMINISTIC BEGIN RETURN 1; END;¶ INSERT INTO t VALUES (f1());

CALL p2();¶CALL p3();

INSERT INTO t VALUES (2);
