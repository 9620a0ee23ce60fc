use super::*;

fn texts(text: &str) -> Vec<&str> {
    read(text, Modes::default())
}

fn read(text: &str, modes: Modes) -> Vec<&str> {
    let statements = split(Engine::MariaDB, text, modes).unwrap_or_else(|error| panic!("{text}: {error}"));
    statements.iter().map(|one| text[one.start..one.end].trim()).collect()
}

/// The statement stays whole, without DELIMITER and with it.
#[track_caller]
fn is_whole(statement: &str) {
    let text = format!("SELECT 1;\n{statement};\nSELECT 2;");
    assert_eq!(texts(&text), ["SELECT 1", statement, "SELECT 2"], "{statement}");
    let text = format!("SELECT 1;\nDELIMITER $$\n{statement}$$\nDELIMITER ;\nSELECT 2;");
    assert_eq!(texts(&text), ["SELECT 1", statement, "SELECT 2"], "{statement}");
    let text = format!("DELIMITER //\n{statement};\n//\nSELECT 2//");
    assert_eq!(texts(&text), [statement, "SELECT 2"], "{statement}");
}

const BODIES: &[&str] = &[
    "BEGIN END",
    "BEGIN SELECT 1; SELECT 2; END",
    "SELECT CASE WHEN 1 THEN 2 END",
    "BEGIN SELECT CASE a WHEN 1 THEN 2 ELSE 3 END; SELECT 2; END",
    "BEGIN SELECT t.begin, t.end FROM slot t; UPDATE slot SET begin = end, `if` = 1; END",
    "IF @a THEN SELECT 1; ELSEIF 2 THEN SELECT 3; ELSE SELECT 4; END IF",
    "IF CASE @a WHEN 1 THEN 0 ELSE 1 END THEN SELECT 1; END IF",
    "IF EXISTS (SELECT CASE WHEN end > begin THEN 1 END FROM slot) THEN SELECT 1; END IF",
    "IF IF(1, 2, 3) = 2 THEN IF 1 THEN SELECT 1; END IF; ELSE IF 2 THEN SELECT 2; END IF; END IF",
    "CASE @a WHEN 1 THEN SELECT 1; SELECT 2; ELSE BEGIN END; END CASE",
    "CASE WHEN CASE 1 WHEN 1 THEN 1 END THEN SELECT 1; END CASE",
    "LOOP SELECT 1; LEAVE l; END LOOP",
    "outer_one: LOOP SELECT 1; LEAVE outer_one; END LOOP outer_one",
    "`l`: BEGIN SELECT 1; END `l`",
    "WHILE @a < 3 DO SET @a = @a + 1; END WHILE",
    "WHILE (SELECT 1) DO SELECT 1; END WHILE",
    "REPEAT SET @a = 1; SET @b = 2; UNTIL @a = 1 END REPEAT",
    "REPEAT SELECT 1; UNTIL CASE WHEN 1 THEN 1 END END REPEAT",
    "FOR i IN 1..3 DO SELECT i; SELECT 2; END FOR",
    "FOR r IN (SELECT a FROM b) DO SELECT r.a; END FOR",
    "BEGIN DECLARE a, b INT DEFAULT 0; DECLARE c CURSOR FOR SELECT 1; OPEN c; CLOSE c; END",
    "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; SELECT 1; END",
    "BEGIN DECLARE CONTINUE HANDLER FOR SQLSTATE VALUE '02000', 1062, NOT FOUND BEGIN END; SELECT 1; END",
    "BEGIN DECLARE CONTINUE HANDLER FOR NOT FOUND SET @a = 1; SELECT 1; END",
    "BEGIN DECLARE done CONDITION FOR 1051; DECLARE EXIT HANDLER FOR done IF 1 THEN SELECT 1; END IF; END",
    "BEGIN IF a THEN BEGIN SELECT 1; END; END IF; WHILE 0 DO LOOP SELECT 1; END LOOP; END WHILE; END",
    "BEGIN -- END;\n SELECT ';END;', \"; END\"; /* END; */ # END;\n SELECT 1; END",
    "BEGIN DROP TABLE IF EXISTS a; CREATE TABLE IF NOT EXISTS b (i int); END",
    "BEGIN START TRANSACTION; INSERT INTO a VALUES (REPEAT('x', 3)); COMMIT; END",
    "BEGIN SET a = 1; SELECT 1 AS begin; SELECT 2 AS end; END",
];

#[test]
fn every_form_of_a_body_stays_whole() {
    for body in BODIES {
        for head in [
            "CREATE PROCEDURE p()",
            "CREATE OR REPLACE DEFINER = `a b`@`%` PROCEDURE IF NOT EXISTS x.begin(IN begin INT, OUT e DECIMAL(9, 2))\n\
             COMMENT 'BEGIN' MODIFIES SQL DATA SQL SECURITY INVOKER",
            "CREATE DEFINER=root@localhost TRIGGER t BEFORE INSERT ON slot FOR EACH ROW",
            "CREATE TRIGGER begin AFTER UPDATE ON event FOR EACH ROW FOLLOWS begin",
            "CREATE DEFINER=CURRENT_USER() EVENT IF NOT EXISTS e ON SCHEDULE EVERY 1 DAY STARTS NOW() DO",
            "ALTER DEFINER = a@b EVENT e ON COMPLETION PRESERVE DO",
            "/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 PROCEDURE `p`()",
        ] {
            let end = if head.starts_with("/*") { " */" } else { "" };
            is_whole(&format!("{head}\n{body}{end}"));
        }
    }
}

#[test]
fn a_function_ends_with_its_return() {
    for statement in [
        "CREATE FUNCTION f(a INT) RETURNS VARCHAR(9) CHARACTER SET utf8 DETERMINISTIC RETURN CASE a WHEN 1 THEN 2 END",
        "CREATE FUNCTION f() RETURNS SET('a', 'b') BEGIN RETURN 1; END",
        "CREATE AGGREGATE FUNCTION f RETURNS STRING SONAME 'x.so'",
        "CREATE FUNCTION f() RETURNS INT IF 1 THEN RETURN 1; ELSE RETURN 2; END IF",
    ] {
        is_whole(statement);
    }
}

#[test]
fn compound_statements_stand_alone() {
    for body in BODIES.iter().filter(|body| !body.starts_with("BEGIN") && !body.starts_with("SELECT")) {
        is_whole(body);
    }
    is_whole("BEGIN NOT ATOMIC SELECT 1; SELECT 2; END");
    is_whole("l: BEGIN NOT ATOMIC SELECT 1; END l");
    assert_eq!(texts("BEGIN; SELECT 1; COMMIT"), ["BEGIN", "SELECT 1", "COMMIT"]);
    assert_eq!(texts("BEGIN WORK; SELECT 1"), ["BEGIN WORK", "SELECT 1"]);
}

#[test]
fn programs_are_read_as_in_oracle_where_the_session_is_so() {
    let oracle = Modes::of("ORACLE");
    for statement in [
        "CREATE PROCEDURE p AS a INT; b INT := 1; BEGIN SELECT a; SELECT b; END p",
        "CREATE OR REPLACE FUNCTION f(a IN INT) RETURN INT IS BEGIN RETURN a; END",
        "DECLARE a INT; BEGIN SELECT a; END",
        "BEGIN SELECT 1; SELECT 2; EXCEPTION WHEN OTHERS THEN SELECT 3; SELECT 4; END",
        "CREATE PROCEDURE p AS BEGIN <<l>> LOOP a := 1; EXIT l WHEN a = 1; END LOOP; END",
        "CREATE PROCEDURE p AS BEGIN IF a THEN b; ELSIF c THEN d; END IF; WHILE a LOOP b; END LOOP; END",
        "CREATE PROCEDURE p AS BEGIN DECLARE x INT; BEGIN SELECT x; END; SELECT 1; END",
        "CREATE PACKAGE k AS PROCEDURE p(a INT); FUNCTION f RETURN INT; END",
        "CREATE PACKAGE BODY k AS x INT; PROCEDURE p(a INT) AS BEGIN SELECT 1; END; FUNCTION f RETURN INT AS b INT; \
         BEGIN RETURN 1; END; BEGIN x := 1; END",
    ] {
        let text = format!("SELECT 1;\n{statement};\nSELECT \"a;\"\"b\"");
        assert_eq!(read(&text, oracle), ["SELECT 1", statement, "SELECT \"a;\"\"b\""], "{statement}");
        let text = format!("SET sql_mode = 'ORACLE';\n{statement};\nSELECT 2");
        assert_eq!(read(&text, Modes::default()).len(), 3, "{statement}");
    }
    is_whole("CREATE PACKAGE k PROCEDURE p(a INT); FUNCTION f() RETURNS INT; END");
    is_whole(
        "CREATE PACKAGE BODY k PROCEDURE p(a INT) BEGIN SELECT 1; END; FUNCTION f() RETURNS INT RETURN 1; END",
    );
}

#[test]
fn names_that_are_keywords_open_nothing() {
    for statement in [
        "CREATE TABLE slot (id int, begin date, finish date, `if` int, end date)",
        "CREATE TABLE event (begin datetime, loop_one int, `case` int)",
        "INSERT INTO event (begin, end) VALUES (1, 2)",
        "CREATE INDEX trigger_one ON event (begin)",
        "CREATE VIEW event AS SELECT CASE WHEN end > begin THEN 1 END AS procedure_one FROM slot",
        "ALTER TABLE event ADD COLUMN begin int",
        "UPDATE slot SET begin = NULL WHERE end IS NULL",
        "SELECT begin FROM slot",
        "ALTER PROCEDURE begin COMMENT 'x'",
        "CREATE USER event@localhost IDENTIFIED BY 'begin;'",
        "DROP TRIGGER IF EXISTS begin",
    ] {
        is_whole(statement);
    }
    let text = "CREATE TRIGGER t BEFORE INSERT ON slot FOR EACH ROW BEGIN SET NEW.finish = COALESCE(NEW.finish, NEW.begin); \
                END;\nUPDATE account SET balance = balance - 10 WHERE id = 1;\nINSERT INTO fee VALUES (10);";
    assert_eq!(texts(text).len(), 3);
}

#[test]
fn the_delimiter_is_the_clients() {
    let export = "DROP PROCEDURE IF EXISTS price;\nDELIMITER $$\nCREATE PROCEDURE price() BEGIN SELECT 10; SELECT 20; END$$\n\
                  DELIMITER ;\nSELECT 1;";
    assert_eq!(texts(export)[1], "CREATE PROCEDURE price() BEGIN SELECT 10; SELECT 20; END");
    for (text, expected) in [
        (
            "delimiter ;;\r\nSELECT 1;;\r\nSELECT 2 ;;\r\ndelimiter ;\r\nSELECT 3;",
            &["SELECT 1", "SELECT 2", "SELECT 3"][..],
        ),
        ("DELIMITER //\nSELECT 1; SELECT 2 //", &["SELECT 1", "SELECT 2"]),
        ("DELIMITER $$\nSELECT '$$', `$$` -- $$\n$$ SELECT 2$$", &["SELECT '$$', `$$` -- $$", "SELECT 2"]),
        ("DELIMITER $$\nSELECT 1\nDELIMITER ;\nSELECT 2;", &["SELECT 1", "SELECT 2"]),
        ("DELIMITER '|' \nSELECT 1|SELECT 2", &["SELECT 1", "SELECT 2"]),
        (
            "CREATE TABLE a (\n  delimiter int,\n  delimiter_two int\n);\nSELECT 1",
            &["CREATE TABLE a (\n  delimiter int,\n  delimiter_two int\n)", "SELECT 1"],
        ),
        ("  DELIMITER GO\nSELECT 1 GO\nSELECT 2 GO", &["SELECT 1", "SELECT 2"]),
    ] {
        assert_eq!(texts(text), expected, "{text}");
    }
    for text in ["SELECT 1;\nDELIMITER", "SELECT 1;\nDELIMITER \\\nSELECT 2"] {
        let error = split(Engine::MySQL, text, Modes::default()).unwrap_err();
        assert!(error.contains("DELIMITER in line 2"), "{error}");
    }
}

#[test]
fn quotes_are_read_in_the_mode_that_counts() {
    let plain = Modes { no_backslash_escapes: true, ..Modes::default() };
    let ansi = Modes { ansi_quotes: true, ..Modes::default() };
    assert_eq!(texts("SELECT 'a\\';b'; SELECT \"c\\\";\"").len(), 2);
    assert_eq!(read("SELECT 'a\\'; SELECT 2", plain).len(), 2);
    assert_eq!(read("SELECT \"a\\\"; SELECT 'b\\';'", ansi).len(), 2);
    let text = "SELECT 'a\\';';\nSET @old = @@sql_mode, sql_mode = 'NO_BACKSLASH_ESCAPES';\nSELECT 'b\\';\n\
                SET sql_mode = @old;\nSELECT 'c\\';'";
    assert_eq!(texts(text).len(), 5);
    assert_eq!(texts("SELECT 'a'';b', N'c;', _utf8mb4'd;', x'00'; SELECT `e``;`").len(), 2);
}

#[test]
fn comments_are_those_of_the_server() {
    for (text, expected) in [
        ("-- a;\n# b;\n/* c; */ SELECT 1", &["SELECT 1"][..]),
        ("SELECT 1--1; SELECT 2-- 3;\n", &["SELECT 1--1", "SELECT 2-- 3;"]),
        ("--a;\nSELECT 1", &["SELECT 1"]),
        ("SELECT 1 --\n; SELECT 2", &["SELECT 1 --", "SELECT 2"]),
        ("SELECT 1 /*!40101 , 2 */; SELECT 3", &["SELECT 1 /*!40101 , 2 */", "SELECT 3"]),
        (
            "/*!40101 SET a = 1 */;\n/*M!100100 SET b = 1 */;",
            &["/*!40101 SET a = 1 */", "/*M!100100 SET b = 1 */"],
        ),
        ("/*M!999999\\- enable the sandbox mode */ \nSELECT 1;", &["SELECT 1"]),
        ("/*!80000 SET it's */ SELECT 1;", &["SELECT 1"]),
        ("/*!40101 SET a = 1; */ ;SELECT 2", &["/*!40101 SET a = 1; */", "SELECT 2"]),
        (
            "SELECT /*+ MAX_EXECUTION_TIME(1) */ 1; SELECT 2",
            &["SELECT /*+ MAX_EXECUTION_TIME(1) */ 1", "SELECT 2"],
        ),
    ] {
        assert_eq!(texts(text), expected, "{text}");
    }
    assert_eq!(
        split(Engine::MySQL, "/*M!100100 ; SET b = 1 */ SELECT 1", Modes::default()).unwrap().len(),
        1
    );
    let dollars =
        "CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS $js$ let a = 1; return a; $js$; SELECT 1";
    assert_eq!(split(Engine::MySQL, dollars, Modes::default()).unwrap().len(), 2);
}

#[test]
fn a_text_that_is_not_closed_is_refused_with_its_line() {
    for (text, part) in [
        ("SELECT 1;\nSELECT 'secret", "quote that begins in line 2"),
        ("SELECT 1;\n\nSELECT `secret", "quote that begins in line 3"),
        ("/* secret", "comment that begins in line 1"),
        ("/*!40101 SET a = 1", "comment that begins in line 1"),
        ("\nCREATE PROCEDURE p() BEGIN SELECT 1;\nSELECT 'secret';", "statement in line 2"),
    ] {
        let error = split(Engine::MySQL, text, Modes::default()).unwrap_err();
        assert!(error.contains(part) && !error.contains("secret"), "{error}");
    }
}

#[test]
fn a_megabyte_is_read_in_linear_time() {
    let line = "INSERT INTO a (b, c) VALUES (1, 'it''s; a \\' text'), (2, \"x\");\n";
    for separator in ["", "\n"] {
        let text = format!("{}{separator}", line.trim_end()).repeat(20_000);
        assert!(text.len() > 1_000_000);
        assert_eq!(split(Engine::MySQL, &text, Modes::default()).unwrap().len(), 20_000);
    }
    let many = "x".repeat(1_000_000);
    assert_eq!(split(Engine::MySQL, &format!("SELECT '{many}'"), Modes::default()).unwrap().len(), 1);
}
