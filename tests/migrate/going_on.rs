//! Scripts of MariaDB and MySQL that go on in another session, and what is in doubt.

use kit::databases::Server;
use kit::wait::eventually;
use serde_json::json;
use sqlx::ConnectOptions as _;

use super::bed::{Bed, Ended};

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

/// The refused statement changes a table that knows transactions: the statement before it is done, and does not run again.
pub fn rows_that_nothing_takes_back_stay_before_a_refused_statement(server: &Server) {
    for (engine, statement, expected) in [
        ("MyISAM", "UPDATE plain SET n = n + 1", "2,3"),
        ("MyISAM", "DELETE FROM plain ORDER BY n LIMIT 1", "2"),
        ("MyISAM", "REPLACE INTO plain VALUES (7)", "1,2,7"),
        ("MEMORY", "INSERT INTO plain VALUES (7)", "1,2,7"),
    ] {
        let mut bed = Bed::new(server);
        bed.sql(&format!("CREATE TABLE plain (n int) ENGINE={engine}; INSERT INTO plain VALUES (1), (2)"));
        bed.sql("CREATE TABLE own (n int PRIMARY KEY); INSERT INTO own VALUES (1)");
        bed.script("001", &format!("{statement};\nINSERT INTO own VALUES (1)"));
        let result = bed.fails("r1", 20);
        assert_eq!(result["lastError"]["statement"], 2, "{statement}: {result}");
        let rows = "SELECT GROUP_CONCAT(n ORDER BY n) FROM plain";
        assert_eq!(bed.value(rows), expected, "{statement}");
        bed.script("001", &format!("{statement};\nINSERT INTO own VALUES (2)"));
        bed.succeeds("r2");
        assert_eq!(bed.value(rows), expected, "{statement} in {engine} ran once");
        assert_eq!(bed.value("SELECT GROUP_CONCAT(n ORDER BY n) FROM own"), "1,2", "{statement}");
    }
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

/// Definitions whose objects show whether the statement took effect.
const DEFINITIONS: [&str; 19] = [
    "CREATE TABLE a (n int PRIMARY KEY, v int)",
    "CREATE TABLE gone (n int)",
    "ALTER TABLE a ADD COLUMN w int, ADD KEY kw (w)",
    "ALTER TABLE a CHANGE v u bigint",
    "ALTER TABLE a ADD (x int, y int)",
    "ALTER TABLE a RENAME COLUMN x TO z, DROP y",
    "ALTER TABLE a ADD CONSTRAINT c CHECK (n > 0)",
    "CREATE TABLE b (n int, CONSTRAINT f FOREIGN KEY (n) REFERENCES a (n))",
    "ALTER TABLE b DROP FOREIGN KEY f",
    "CREATE UNIQUE INDEX i ON a (u)",
    "DROP INDEX kw ON a",
    "DROP TABLE gone",
    "RENAME TABLE b TO c",
    "ALTER TABLE c RENAME TO d",
    "CREATE VIEW v AS SELECT n FROM a",
    "CREATE PROCEDURE p() SELECT 1",
    "CREATE FUNCTION f() RETURNS int DETERMINISTIC RETURN 1",
    "CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW SET NEW.w = 7",
    "DROP VIEW v",
];

/// Changes of rows and statements that may run again, which also show how they ended.
const CHANGES: [&str; 7] = [
    "INSERT INTO a (n, u) VALUES (1, 1), (2, 2)",
    "UPDATE a SET u = u + 1 ORDER BY u DESC",
    "ALTER TABLE a MODIFY z bigint, COMMENT = 'changed'",
    "CREATE TABLE IF NOT EXISTS g (n int)",
    "INSERT INTO g SELECT u FROM a",
    "DROP TABLE IF EXISTS absent",
    "DELETE FROM a WHERE n = 2",
];

/// A run that dies at a point.
fn dies(bed: &Bed<'_>, run: &str, point: &str) -> Ended {
    let (mut command, report) = bed.command(run);
    command.env("GATEHOUSE_FAIL_POINTS", format!("kill:{}:{point}", bed.path(run).display()));
    bed.ended(command, &report)
}

/// How many runs die one after the other, until a run ends.
fn deaths(bed: &Bed<'_>, point: &str) -> usize {
    let most = DEFINITIONS.len() + CHANGES.len();
    let ended = (0..=most).find(|number| match dies(bed, &format!("run{number}"), point).code {
        None => false,
        Some(code) => {
            assert_eq!(code, 0, "run {number}");
            true
        }
    });
    ended.expect("each run brings the script on")
}

pub fn a_statement_whose_effect_shows_is_no_doubt(server: &Server) {
    let mut bed = Bed::new(server);
    bed.script("001", &DEFINITIONS.join(";\n"));
    // Each run takes up the statement at which the run before it died, and the statement that took effect does not run again.
    assert_eq!(deaths(&bed, "migrate.statement.after#1"), DEFINITIONS.len());
    assert_eq!(bed.history(), ["001 applied"]);

    let mut bed = Bed::new(server);
    let all: Vec<_> = DEFINITIONS.into_iter().chain(CHANGES).collect();
    bed.script("001", &all.join(";\n"));
    assert_eq!(deaths(&bed, "migrate.statement.before#2"), all.len() - 1);
    assert_eq!(bed.history(), ["001 applied"]);
    assert_eq!(bed.sql("SELECT CAST(u AS CHAR), CAST(w AS CHAR) FROM a"), [["2", "7"]]);
    assert_eq!(bed.value("SELECT GROUP_CONCAT(n ORDER BY n) FROM g"), "2,3");
}

pub fn rows_and_their_row_of_the_history_are_committed_together(server: &Server) {
    for point in ["statement.after#3", "commit.before#2", "commit.after#2", "row.written#2"] {
        let mut bed = Bed::new(server);
        bed.script(
            "001",
            "CREATE TABLE a (n int);\nINSERT INTO a VALUES (1);\nUPDATE a SET n = n + 1;\nINSERT INTO a VALUES (7)",
        );
        assert_eq!(dies(&bed, "r1", &format!("migrate.{point}")).code, None, "{point}");
        bed.succeeds("r2");
        assert_eq!(bed.value("SELECT GROUP_CONCAT(n ORDER BY n) FROM a"), "2,7", "{point}");
    }
}

/// What another client changes meanwhile, and a statement that nothing shows, are for a person to judge.
pub fn a_statement_whose_effect_does_not_show_is_in_doubt(server: &Server) {
    let cases = [
        ("ALTER TABLE a DROP v, ADD w int", "ALTER TABLE a ADD v int"),
        ("TRUNCATE TABLE a", "INSERT INTO a VALUES (1, 1)"),
    ];
    for (statement, by_another_client) in cases {
        let mut bed = Bed::new(server);
        bed.sql("CREATE TABLE a (n int, v int); INSERT INTO a VALUES (1, 1)");
        bed.script("001", statement);
        assert_eq!(dies(&bed, "r1", "migrate.statement.after#1").code, None, "{statement}");
        bed.sql(by_another_client);
        let doubt = json!({ "id": "001", "run": "r1", "statement": 1 });
        assert_eq!(bed.fails("r2", 30)["inDoubt"], doubt, "{statement}");
        bed.assignment["mode"] = json!("Status");
        let status = bed.run("status");
        assert_eq!(status.result["inDoubt"], doubt, "a look knows the doubt: {status:?}");
        bed.assignment["mode"] = json!("Apply");
        bed.assignment["resolve"] = json!({ "id": "001", "as": "applied" });
        assert_eq!(bed.succeeds("r3")["appliedNow"], 0, "{statement}");
        assert_eq!(bed.history(), ["001 applied"]);
    }
}

/// A plan finds in the database how the statement ended. A run that applies writes that into the history first.
pub fn an_answer_about_what_the_database_shows_counts_for_nothing(server: &Server) {
    for answer in ["retry", "applied"] {
        let mut bed = Bed::new(server);
        bed.script("001", "CREATE TABLE a (n int);\nCREATE TABLE b (n int)");
        assert_eq!(dies(&bed, "r1", "migrate.statement.after#1").code, None, "{answer}");
        bed.assignment["resolve"] = json!({ "id": "001", "as": answer });
        bed.assignment["mode"] = json!("Plan");
        // The session of the run that died may hold the lock for a moment.
        let planned = eventually(|| {
            let ended = bed.run("plan");
            if ended.code == Some(0) { Ok(ended.result) } else { Err(format!("{ended:?}")) }
        });
        bed.assignment["mode"] = json!("Apply");
        let applied = bed.succeeds("r2");
        for (result, reason) in [
            (&planned, "the database shows that its statement 1 has taken effect, and does not run again"),
            (&applied, "the script is not in doubt and goes on with statement 2"),
        ] {
            let warnings = result["plan"]["warnings"].to_string();
            let expected = format!("the answer about script 001 counts for nothing: {reason}");
            assert!(warnings.contains(&expected), "{answer}: {result}");
        }
        assert_eq!(applied["appliedNow"], 1, "{answer}: {applied}");
        assert_eq!(bed.history(), ["001 applied"]);
        assert_eq!(
            bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM a JOIN b USING (n)"),
            "0",
            "both tables are there"
        );
    }
}

/// A rollback uses up numbers that later statements may name.
pub fn rows_that_get_numbers_are_in_doubt(server: &Server) {
    for (insert, numbered) in [
        ("INSERT INTO p (n) VALUES ('x'), ('y')", true),
        ("REPLACE p SET n = 'x'", true),
        ("INSERT INTO p (n) SELECT 'x'", true),
        ("INSERT INTO c VALUES (7)", false),
        ("UPDATE c SET p = 7", false),
    ] {
        let mut bed = Bed::new(server);
        bed.sql("CREATE TABLE p (id int AUTO_INCREMENT PRIMARY KEY, n text); CREATE TABLE c (p int)");
        bed.script(
            "001",
            &format!(
                "CREATE TABLE d (p int);\n{insert};\nINSERT INTO d VALUES (1);\nALTER TABLE d ADD q int"
            ),
        );
        assert_eq!(dies(&bed, "r1", "migrate.statement.after#2").code, None, "{insert}");
        if numbered {
            assert_eq!(bed.fails("r2", 30)["inDoubt"]["statement"], 2, "{insert}");
            assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM p"), "0", "{insert}");
            bed.sql("ALTER TABLE p AUTO_INCREMENT = 1");
            bed.assignment["resolve"] = json!({ "id": "001", "as": "retry" });
        }
        bed.succeeds("r3");
        let joined = "SELECT CAST(COUNT(*) AS CHAR) FROM p JOIN d ON p.id = d.p";
        assert_eq!(bed.value(joined), if numbered { "1" } else { "0" }, "{insert}");
    }
    let mut bed = Bed::new(server);
    bed.sql("CREATE TABLE p (id int AUTO_INCREMENT PRIMARY KEY, n text); CREATE VIEW v AS SELECT n FROM p");
    bed.script("001", "CREATE TABLE d (p int);\nINSERT INTO v (n) VALUES ('x');\nINSERT INTO d VALUES (1)");
    assert_eq!(dies(&bed, "r1", "migrate.statement.before#2").code, None);
    assert_eq!(bed.fails("r2", 30)["inDoubt"]["statement"], 2, "a view may hide such a table");
}

/// The row of a commit has how the next statement shows, of which nothing has run yet.
pub fn a_statement_that_was_never_sent_did_not_take_effect(server: &Server) {
    let mut bed = Bed::new(server);
    bed.sql("CREATE TABLE a (n int); CREATE TABLE b (n int, c text)");
    bed.script("001", "INSERT INTO a SELECT 1;\nALTER TABLE b ADD c int");
    assert_eq!(dies(&bed, "r1", "migrate.commit.after#1").code, None);
    let result = bed.fails("r2", 30);
    assert_eq!(result["inDoubt"]["statement"], 2, "the column was there before: {result}");
    assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM a"), "1");
}

pub fn a_first_statement_that_may_run_again_may_have_run(server: &Server) {
    let mut bed = Bed::new(server);
    bed.script("001", "CREATE TABLE IF NOT EXISTS a (n int);\nCREATE TABLE b (n int)");
    bed.down("001", "DROP TABLE b; DROP TABLE a");
    assert_eq!(dies(&bed, "r1", "migrate.statement.after#1").code, None);
    bed.assignment["mode"] = json!("Revert");
    let error = bed.fails("r2", 20)["lastError"].clone();
    assert!(error["message"].as_str().unwrap().contains("apply the rest first"), "{error}");
    bed.assignment["mode"] = json!("Apply");
    bed.succeeds("r3");
    // gatehouse does not look for the objects of a down script, because its text may have changed since.
    bed.assignment["mode"] = json!("Revert");
    assert_eq!(dies(&bed, "r4", "migrate.statement.after#1").code, None);
    assert_eq!(bed.fails("r5", 30)["inDoubt"], json!({ "id": "001", "run": "r4", "statement": 1 }));
    bed.assignment["resolve"] = json!({ "id": "001", "as": "applied" });
    assert_eq!(bed.succeeds("r6")["reverted"], json!(["001"]));
}

pub fn statements_that_share_a_transaction_stay_if_one_is_refused(server: &Server) {
    let mut bed = Bed::new(server);
    bed.sql("CREATE TABLE a (n int PRIMARY KEY)");
    bed.script("001", "CREATE TABLE b (n int);\nINSERT INTO a VALUES (1);\nINSERT INTO a VALUES (2);\nINSERT INTO a VALUES (2)");
    assert_eq!(bed.fails("r1", 20)["lastError"]["statement"], 4);
    assert_eq!(bed.value("SELECT GROUP_CONCAT(n ORDER BY n) FROM a"), "1,2");
    bed.script("001", "CREATE TABLE b (n int);\nINSERT INTO a VALUES (1);\nINSERT INTO a VALUES (2);\nINSERT INTO a VALUES (3)");
    bed.succeeds("r2");
    assert_eq!(bed.value("SELECT GROUP_CONCAT(n ORDER BY n) FROM a"), "1,2,3");
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
    let value = "y".repeat(longest);
    for (begin, end) in [
        ("INSERT INTO a VALUES ('", "')"),
        ("UPDATE a SET t = '", "'"),
        ("CREATE PROCEDURE p()\nBEGIN\n SELECT 1;\n SELECT '", "';\nEND"),
    ] {
        bed.script("001", &format!("INSERT INTO a VALUES ('x');\n{begin}{value}{end}"));
        let error = bed.fails("r1", 20)["lastError"].clone();
        assert!(error["message"].as_str().unwrap().contains("max_allowed_packet"), "{begin}: {error}");
        assert!(error["message"].as_str().unwrap().contains("line 2"), "{begin}: {error}");
        assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM a"), "0", "{begin}");
    }
    // One that just fits is sent in whole.
    let short = format!("INSERT INTO a VALUES ('{}')", "z".repeat(longest - 64));
    bed.script("001", &short);
    bed.succeeds("r2");
    assert_eq!(bed.value("SELECT CAST(LENGTH(t) AS CHAR) FROM a"), (longest - 64).to_string());
}

pub fn a_right_that_lacks_is_the_scripts(server: &Server) {
    let mut bed = Bed::new(server);
    server.sql("", &format!("REVOKE CREATE ROUTINE ON {}.* FROM {}@'%'", bed.name, bed.user));
    for text in [
        "CREATE DATABASE not_allowed_here",
        "USE mysql",
        "LOAD DATA INFILE '/x' INTO TABLE a",
        "CREATE PROCEDURE p() SELECT 1",
        "CREATE FUNCTION f() RETURNS int DETERMINISTIC RETURN 1",
    ] {
        bed.script("001", &format!("CREATE TABLE IF NOT EXISTS a (n int);\n{text}"));
        let error = bed.fails("r1", 20)["lastError"].clone();
        assert_eq!(error["class"], "Permission", "{text}: {error}");
        assert_eq!((&error["id"], &error["statement"]), (&json!("001"), &json!(2)), "{text}: {error}");
        bed.sql("DELETE FROM gatehouse_migrations");
    }
}
