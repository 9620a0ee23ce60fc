//! Scripts of MariaDB and MySQL that go on in another session, and what is in doubt.

use kit::databases::Server;
use serde_json::json;
use sqlx::ConnectOptions as _;

use super::bed::Bed;

/// The script that fails at its fourth statement, which goes well once the table is there.
const LOST: &str = "CREATE TABLE p (id int AUTO_INCREMENT PRIMARY KEY, n text);\nCREATE TABLE k (p int);\n\
                    INSERT INTO p (n) VALUES ('x');\n{SET};\nINSERT INTO k VALUES ({USE});\nINSERT INTO nope VALUES (1);\n\
                    INSERT INTO k VALUES ({USE})";

pub fn a_script_that_needs_its_session_is_refused_by_line(server: &Server) {
    for (set, used) in [
        ("SET @pid = LAST_INSERT_ID()", "@pid"),
        ("SELECT MAX(id) INTO @pid FROM p", "@pid"),
        ("SET @pid = (SELECT MAX(id) FROM p)", "@pid"),
        ("SELECT @pid := 1", "@pid"),
        ("SELECT 1", "LAST_INSERT_ID()"),
    ] {
        let mut bed = Bed::new(server);
        let text = LOST.replace("{SET}", set).replace("{USE}", used);
        bed.script("001", &text);
        assert_eq!(bed.fails("r1", 20)["lastError"]["statement"], 6, "{set}");
        bed.sql("CREATE TABLE nope (n int)");
        let blocked = bed.fails("r2", 20)["blocked"].clone();
        let message = blocked["message"].as_str().unwrap();
        assert!(message.contains("statement 7 in line 7"), "{message}");
        assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM nope"), "0", "nothing ran");
        // What is not done may be edited.
        let (done, rest) = text.split_at(text.find("INSERT INTO nope").unwrap());
        bed.script("001", &format!("{done}SET @pid = 1; {}", rest.replace("LAST_INSERT_ID()", "@pid")));
        bed.succeeds("r3");
        assert_eq!(bed.value("SELECT GROUP_CONCAT(p) FROM k"), "1,1", "{set}");
    }
}

pub fn a_temporary_table_and_a_value_of_no_return_are_lost(server: &Server) {
    let mut bed = Bed::new(server);
    bed.script(
        "001",
        "CREATE TABLE k (v varchar(99));\nCREATE TEMPORARY TABLE tt (v int);\nINSERT INTO nope VALUES (1);\nSELECT * FROM tt",
    );
    bed.script("002", "SELECT 1");
    bed.fails("r1", 20);
    let blocked = bed.fails("r2", 20)["blocked"].clone();
    assert!(blocked["message"].as_str().unwrap().contains("temporary table TT"), "{blocked}");
    // A value that no statement has used yet is set again.
    let mut bed = Bed::new(server);
    bed.script("001", "CREATE TABLE k (v varchar(99));\nSET @u = UUID();\nINSERT INTO nope VALUES (@u);\nINSERT INTO k VALUES (@u)");
    bed.fails("r1", 20);
    bed.sql("CREATE TABLE nope (v varchar(99))");
    bed.succeeds("r2");
    assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM k JOIN nope USING (v)"), "1");
}

pub fn a_statement_that_is_tried_again_has_its_session(server: &Server) {
    let mut bed = Bed::new(server);
    bed.sql("CREATE TABLE a (n int PRIMARY KEY); INSERT INTO a VALUES (1)");
    bed.assignment["lockWait"] = json!("60s");
    bed.script(
        "001",
        "CREATE TABLE p (id int AUTO_INCREMENT PRIMARY KEY, n int);\nINSERT INTO p (n) VALUES (1);\n\
         SET @pid = LAST_INSERT_ID();\nINSERT INTO p (n) VALUES (@pid);\nALTER TABLE a ADD COLUMN c int;\n\
         INSERT INTO a (n) VALUES (@pid + 1)",
    )["timeouts"] = json!({ "lock": "1s" });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut reader = runtime.block_on(server.mysql_options(&bed.name).connect()).unwrap();
    runtime.block_on(sqlx::raw_sql("START TRANSACTION; SELECT * FROM a").execute(&mut reader)).unwrap();
    let (program, _) = bed.start("r1");
    program.logs("script is tried again");
    runtime.block_on(sqlx::raw_sql("COMMIT").execute(&mut reader)).unwrap();
    assert_eq!(program.code(), Some(0));
    assert_eq!(bed.value("SELECT GROUP_CONCAT(n ORDER BY n) FROM a"), "1,2");
}

pub fn rows_that_nothing_takes_back_do_not_double(server: &Server) {
    let mut bed = Bed::new(server);
    bed.sql("CREATE TABLE plain (n int PRIMARY KEY) ENGINE=MyISAM; CREATE TABLE own (n int)");
    bed.script(
        "001",
        "INSERT INTO plain VALUES (1);\nINSERT INTO own VALUES (1);\nINSERT INTO plain VALUES (2), (1), (3);\n\
         INSERT INTO own VALUES (2)",
    );
    let result = bed.fails("r1", 30);
    assert_eq!(result["inDoubt"], json!({ "id": "001", "run": "r1", "statement": 3 }), "{result}");
    assert!(result["lastError"]["message"].as_str().unwrap().contains("in line 3"), "{result}");
    let result = bed.fails("r2", 30);
    assert!(result["lastError"]["message"].as_str().unwrap().contains("line 3 (INSERT INTO)"), "{result}");
    bed.sql("INSERT INTO plain VALUES (3)");
    bed.assignment["resolve"] = json!({ "id": "001", "as": "applied" });
    bed.succeeds("r3");
    assert_eq!(bed.value("SELECT GROUP_CONCAT(n ORDER BY n) FROM plain"), "1,2,3");
    assert_eq!(bed.value("SELECT GROUP_CONCAT(n ORDER BY n) FROM own"), "1,2");
}

pub fn rows_that_a_trigger_leaves_are_in_doubt(server: &Server) {
    let mut bed = Bed::new(server);
    bed.sql("CREATE TABLE journal (n int) ENGINE=MyISAM; CREATE TABLE own (n int PRIMARY KEY)");
    bed.sql("CREATE TRIGGER t AFTER INSERT ON own FOR EACH ROW INSERT INTO journal VALUES (NEW.n)");
    bed.script("001", "INSERT INTO own VALUES (1);\nINSERT INTO own VALUES (1)");
    let result = bed.fails("r1", 30);
    assert_eq!(result["inDoubt"]["id"], "001", "{result}");
    assert!(result["lastError"]["message"].as_str().unwrap().contains("no transactions"), "{result}");
    assert_eq!(bed.fails("r2", 30)["inDoubt"]["id"], "001");
    assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM own"), "0");
    bed.sql("DELETE FROM journal");
    bed.script("001", "INSERT INTO own VALUES (1);\nINSERT INTO own VALUES (2)");
    bed.assignment["resolve"] = json!({ "id": "001", "as": "retry" });
    bed.succeeds("r3");
    assert_eq!(bed.value("SELECT GROUP_CONCAT(n ORDER BY n) FROM journal"), "1,2");
}

pub fn what_did_not_run_is_no_doubt(server: &Server) {
    let mut bed = Bed::new(server);
    bed.sql("CREATE TABLE a (n int); CREATE PROCEDURE one(n int) SELECT n");
    for (text, statement) in [
        ("CALL nope()", 1),
        ("CALL one()", 1),
        ("PREPARE st FROM 'ALTER TABLE a DROP COLUMN absent';\nEXECUTE st", 2),
        (
            "SET @s = IF((SELECT COUNT(*) FROM information_schema.tables) > 0, 'ALTER TABLE a DROP COLUMN absent', 'SELECT 1');\n\
          PREPARE st FROM @s;\nEXECUTE st;\nDEALLOCATE PREPARE st",
            3,
        ),
    ] {
        bed.script("001", text);
        for run in ["r1", "r2"] {
            let result = bed.fails(run, 20);
            assert_eq!(result["lastError"]["statement"], statement, "{result}");
        }
        // Nothing of it is done.
        bed.sql("DELETE FROM gatehouse_migrations");
    }
    unreadable_programs(&mut bed);
    bed.script(
        "001",
        "SET @s = 'ALTER TABLE a ADD COLUMN c int';\nPREPARE st FROM @s;\nEXECUTE st;\nDEALLOCATE PREPARE st",
    );
    bed.succeeds("r3");
}

/// Programs that the server cannot read have not run; an error of that kind from within one leaves a doubt.
fn unreadable_programs(bed: &mut Bed<'_>) {
    bed.sql("CREATE PROCEDURE wrong() BEGIN INSERT INTO a VALUES (1); PREPARE st FROM 'SELEC'; END");
    let mut texts = vec![("CALL one(", 20), ("CALL one(1) oops", 20), ("CALL wrong()", 30)];
    if bed.server.engine == "MariaDB" {
        texts.extend([
            ("BEGIN NOT ATOMIC INSERT INTO a VALUES (1); SELEC 2; END", 20),
            ("IF 1 THEN INSERT INTO a VALUES (1); LEAVE absent; END IF", 20),
            ("FOR i IN 1..2 DO INSERT INTO a VALUES (i); SET absent = i; END FOR", 20),
            ("SET sql_mode = ORACLE;\nDECLARE n INT := 1; BEGIN INSERT INTO a VALUES (n); oops(; END", 20),
            ("BEGIN NOT ATOMIC INSERT INTO a VALUES (1); EXECUTE IMMEDIATE 'SELEC'; END", 30),
        ]);
    }
    for (text, code) in texts {
        bed.script("001", text);
        let result = bed.fails("r1", code);
        assert_eq!(result["lastError"]["id"], "001", "{text}: {result}");
        let rows = if code == 30 { "1" } else { "0" };
        assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM a"), rows, "{text}");
        bed.sql("DELETE FROM gatehouse_migrations; DELETE FROM a");
    }
}

pub fn a_statement_that_is_too_long_is_found_before_anything_runs(server: &Server) {
    let mut bed = Bed::new(server);
    bed.sql("CREATE TABLE a (t longtext)");
    let longest = 1024 * 1024;
    server.sql("", &format!("SET GLOBAL max_allowed_packet = {longest}"));
    let text = format!("INSERT INTO a VALUES ('x');\nINSERT INTO a VALUES ('{}')", "y".repeat(longest));
    bed.script("001", &text);
    let error = bed.fails("r1", 20)["lastError"].clone();
    assert!(error["message"].as_str().unwrap().contains("max_allowed_packet"), "{error}");
    assert!(error["message"].as_str().unwrap().contains("line 2"), "{error}");
    assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM a"), "0");
    // One that just fits is sent in whole.
    let short = format!("INSERT INTO a VALUES ('{}')", "z".repeat(longest - 64));
    bed.script("001", &short);
    bed.succeeds("r2");
    assert_eq!(bed.value("SELECT CAST(LENGTH(t) AS CHAR) FROM a"), (longest - 64).to_string());
}

pub fn a_right_that_lacks_is_the_scripts(server: &Server) {
    let mut bed = Bed::new(server);
    for text in ["CREATE DATABASE not_allowed_here", "USE mysql", "LOAD DATA INFILE '/x' INTO TABLE a"] {
        bed.script("001", &format!("CREATE TABLE IF NOT EXISTS a (n int);\n{text}"));
        let error = bed.fails("r1", 20)["lastError"].clone();
        assert_eq!(error["class"], "Permission", "{text}: {error}");
        bed.sql("DELETE FROM gatehouse_migrations");
    }
}
