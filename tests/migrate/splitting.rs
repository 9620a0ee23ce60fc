//! Scripts as MariaDB and MySQL take them: which statement ends where, and the session that they find.

use kit::databases::Server;
use serde_json::json;

use super::bed::Bed;

pub fn a_name_that_is_a_keyword_opens_no_block(server: &Server) {
    let mut bed = Bed::new(server);
    bed.script(
        "001",
        "CREATE TABLE account (id int PRIMARY KEY, balance int);\nINSERT INTO account VALUES (1,100);\n\
         CREATE TABLE slot (id int, begin date, finish date, `end` int);\n\
         CREATE TRIGGER t BEFORE INSERT ON slot FOR EACH ROW BEGIN SET NEW.finish = COALESCE(NEW.finish, NEW.begin); END;\n\
         UPDATE account SET balance = balance - 10 WHERE id = 1;\nINSERT INTO fee VALUES (10);",
    );
    let error = bed.fails("r1", 20)["lastError"].clone();
    assert_eq!(error["statement"], 6, "{error}");
    assert!(error["message"].as_str().unwrap().contains("in line 6 (INSERT INTO)"), "{error}");
    bed.sql("CREATE TABLE fee (n int)");
    bed.succeeds("r2");
    assert_eq!(bed.value("SELECT CAST(balance AS CHAR) FROM account"), "90");
}

pub fn several_statements_in_one_text_do_nothing(server: &Server) {
    let mut bed = Bed::new(server);
    bed.sql("CREATE TABLE a (n int)");
    // What the server runs of a comment goes to it as one text.
    bed.script("001", "/*!40101 INSERT INTO a VALUES (1); INSERT INTO a VALUES (2) */;");
    let error = bed.fails("r1", 20)["lastError"].clone();
    assert_eq!(error["class"], "Syntax", "{error}");
    assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM a"), "0");
}

pub fn a_delimiter_is_the_clients(server: &Server) {
    let mut bed = Bed::new(server);
    // By the user of the bed: MySQL lets it drop no program of a superuser.
    bed.script("000", "CREATE PROCEDURE price() SELECT 1");
    bed.script(
        "001",
        "DROP PROCEDURE IF EXISTS price;\nDELIMITER $$\nCREATE PROCEDURE price() BEGIN SELECT 10; SELECT 20; END$$\n\
         CREATE FUNCTION twice(n int) RETURNS int DETERMINISTIC BEGIN RETURN 2 * n; END$$\nDELIMITER ;\n\
         CREATE TABLE a AS SELECT twice(21) AS n;\nCALL price();",
    );
    bed.succeeds("r1");
    assert_eq!(bed.value("SELECT CAST(n AS CHAR) FROM a"), "42");
    bed.script("002", "DROP PROCEDURE price;\nDELIMITER");
    let blocked = bed.fails("r2", 20)["blocked"].clone();
    assert!(blocked["message"].as_str().unwrap().contains("DELIMITER in line 2"), "{blocked}");
    assert_eq!(
        bed.value(
            "SELECT CAST(COUNT(*) AS CHAR) FROM information_schema.routines WHERE routine_schema = DATABASE()"
        ),
        "2"
    );
}

pub fn every_form_of_a_program_is_one_statement(server: &Server) {
    let mut bed = Bed::new(server);
    bed.script(
        "001",
        "CREATE TABLE slot (begin int, `end` int);\n\
         CREATE TRIGGER a BEFORE INSERT ON slot FOR EACH ROW IF NEW.begin > 9 THEN SET NEW.begin = 9; ELSE SET NEW.end = 1; END IF;\n\
         CREATE PROCEDURE b(n int) CASE n WHEN 1 THEN INSERT INTO slot VALUES (1, 0); ELSE BEGIN END; END CASE;\n\
         CREATE PROCEDURE c() l: LOOP INSERT INTO slot VALUES (2, 0); LEAVE l; END LOOP l;\n\
         CREATE PROCEDURE d(n int) WHILE n > 0 DO INSERT INTO slot VALUES (3, 0); SET n = n - 1; END WHILE;\n\
         CREATE PROCEDURE e(n int) REPEAT INSERT INTO slot VALUES (4, 0); SET n = n - 1; UNTIL n = 0 END REPEAT;\n\
         CREATE PROCEDURE f() BEGIN DECLARE x int; DECLARE EXIT HANDLER FOR SQLEXCEPTION, NOT FOUND BEGIN END; \
         SELECT CASE WHEN begin > `end` THEN 1 END INTO x FROM slot LIMIT 1; INSERT INTO slot VALUES (20, x); END;\n\
         CREATE EVENT g ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01' DO BEGIN SET @a = 1; SET @b = 2; END;\n\
         ALTER EVENT g DO BEGIN SET @a = 1; SET @b = 3; END;\n\
         CALL b(1);\nCALL c();\nCALL d(2);\nCALL e(2);\nCALL f();",
    );
    bed.succeeds("r1");
    assert_eq!(bed.value("SELECT GROUP_CONCAT(begin ORDER BY begin) FROM slot"), "1,2,3,3,4,4,9");
    if server.engine == "MariaDB" {
        bed.script(
            "002",
            "BEGIN NOT ATOMIC INSERT INTO slot VALUES (5, 0); INSERT INTO slot VALUES (6, 0); END;\n\
             FOR i IN 7..8 DO INSERT INTO slot VALUES (i, 0); END FOR;\n\
             SET sql_mode = 'ORACLE';\nCREATE PROCEDURE h AS n int := 1; BEGIN INSERT INTO \"slot\" VALUES (n, 0); END;\n\
             CREATE PACKAGE p AS PROCEDURE q(a INT); END;\n\
             CREATE PACKAGE BODY p AS PROCEDURE q(a INT) AS BEGIN INSERT INTO slot VALUES (a, 0); END; END;\nCALL p.q(3);",
        );
        bed.script(
            "003",
            "SET sql_mode = ORACLE;\nDECLARE\n  n INT := 1;\nBEGIN\n  WHILE n < 3 LOOP INSERT INTO slot VALUES (n, 0); n := n + 1; END LOOP;\nEND;\n\
             BEGIN INSERT INTO slot VALUES (3, 0); END;\nBEGIN NULL; END;",
        );
        bed.succeeds("r2");
        assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM slot"), "15");
    }
}

pub fn a_session_is_the_clients(server: &Server) {
    let mut bed = Bed::new(server);
    bed.script("001", "CREATE TABLE a (position int)");
    bed.script(
        "002",
        "CREATE TABLE mode AS SELECT @@sql_mode AS m, @@character_set_client AS c, @@collation_connection AS o;\n\
         CREATE TABLE count (count int, date_add int);\nINSERT INTO count (count, date_add) VALUES (1, 2);\n\
         CREATE PROCEDURE changed() BEGIN UPDATE count SET count = 1; INSERT INTO a VALUES (ROW_COUNT()); END;\nCALL changed()",
    );
    bed.succeeds("r1");
    assert_eq!(bed.value("SELECT m FROM mode"), bed.value("SELECT @@GLOBAL.sql_mode"));
    assert_eq!(bed.value("SELECT c FROM mode"), "utf8mb4");
    assert_eq!(bed.value("SELECT CAST(position AS CHAR) FROM a"), "0", "of rows that were changed");
}

pub fn quotes_are_read_as_the_session_reads_them(server: &Server) {
    let mut bed = Bed::new(server);
    bed.script(
        "001",
        "CREATE TABLE a (t varchar(99));\nINSERT INTO a VALUES ('x\\';y'), (\"p;q\");\n\
         SET @old = @@sql_mode, sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES,NO_BACKSLASH_ESCAPES');\n\
         INSERT INTO \"a\" (\"t\") VALUES ('z\\');\nSET sql_mode = @old;\nINSERT INTO a VALUES ('w\\'v');",
    );
    // The mode is a word without quotes, a name in quotes, or a variable of the server.
    bed.script(
        "002",
        "SET sql_mode = NO_BACKSLASH_ESCAPES;\nINSERT INTO a VALUES ('u\\');\nSET sql_mode = ANSI_QUOTES;\n\
         INSERT INTO \"a\" VALUES ('t\\';');\nSET SESSION sql_mode = \"NO_BACKSLASH_ESCAPES\";\nINSERT INTO a VALUES ('s\\');\n\
         SET sql_mode = `ANSI`;\nINSERT INTO \"a\" VALUES ('r');\nSET sql_mode = @@GLOBAL.sql_mode;\nINSERT INTO a VALUES (\"q\\\";\");",
    );
    bed.succeeds("r1");
    let texts = bed.value("SELECT GROUP_CONCAT(t ORDER BY t SEPARATOR ' ') FROM a");
    assert_eq!(texts, "p;q q\"; r s\\ t'; u\\ w'v x';y z\\");
}

pub fn what_takes_locks_or_transactions_is_refused_before_anything_runs(server: &Server) {
    let mut bed = Bed::new(server);
    for (text, part) in [
        ("CREATE TABLE a (n int);\nLOCK TABLES a WRITE", "--skip-add-locks"),
        ("CREATE TABLE a (n int);\nSTART TRANSACTION;\nCOMMIT", "phpMyAdmin"),
        ("CREATE TABLE a (n int);\nBEGIN", "BEGIN in line 2"),
        ("CREATE TABLE a (n int);\nXA START 'x'", "XA in line 2"),
        ("CREATE TABLE a (n int);\nINSERT INTO a VALUES (1);\nSET @n = ROW_COUNT()", "ROW_COUNT in line 3"),
        ("CREATE TABLE a (n int);\nCREATE PROCEDURE p() BEGIN SELECT 1;", "END of the statement in line 2"),
        ("CREATE TABLE a (n int);\nINSERT INTO a VALUES ('1)", "quote that begins in line 2"),
    ] {
        bed.script("001", text);
        let blocked = bed.fails("r1", 20)["blocked"].clone();
        assert_eq!(blocked["reason"], json!("NotRunnable"), "{blocked}");
        assert!(blocked["message"].as_str().unwrap().contains(part), "{blocked}");
    }
    assert_eq!(bed.sql("SHOW TABLES LIKE 'a'"), [[""; 0]; 0]);
}
