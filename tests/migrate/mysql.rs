//! MariaDB and MySQL, which commit before and after each change of the schema.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use kit::databases::Server;
use kit::wait::eventually;
use serde_json::json;
use sqlx::ConnectOptions as _;

use super::bed::{Bed, report as report_in};
use super::concurrent::Over;

pub fn a_script_goes_on_behind_what_has_run_of_it(server: &Server) {
    let mut bed = Bed::new(server);
    bed.script("001", "CREATE TABLE a (b int);\nCREATE INDEX i ON absent (b);\nCREATE TABLE c (d int);");
    let error = bed.fails("r1", 20)["lastError"].clone();
    assert_eq!((&error["id"], &error["statement"]), (&json!("001"), &json!(2)), "{error}");
    assert_eq!(bed.history(), ["001 failed"]);
    bed.script("001", "CREATE TABLE a (b bigint);\nCREATE INDEX i ON a (b);\nCREATE TABLE c (d int);");
    assert_eq!(bed.fails("r2", 20)["blocked"]["reason"], "ChecksumMismatch", "what has run is edited");
    bed.script("001", "CREATE TABLE a (b int);\nCREATE INDEX i ON a (b);\nCREATE TABLE c (d int);");
    bed.script(
        "002",
        "CREATE PROCEDURE p()\nBEGIN\n  SELECT 1;\n  SELECT 2;\nEND;\nINSERT INTO a VALUES (1)",
    );
    let result = bed.succeeds("r3");
    assert_eq!(result["appliedNow"], 2);
    assert_eq!(bed.succeeds("r4")["appliedNow"], 0);
    assert_eq!(bed.history(), ["001 applied", "002 applied"]);
    assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM a"), "1");
}

pub fn changes_of_rows_are_taken_back(server: &Server) {
    let mut bed = Bed::new(server);
    bed.script("001", "CREATE TABLE a (b int PRIMARY KEY)");
    bed.script("002", "INSERT INTO a VALUES (1); INSERT INTO a VALUES (2); INSERT INTO a VALUES (1)");
    bed.script("003", "SELECT * FROM a WHERE b > 1")["kind"] = json!("Check");
    let error = bed.fails("r1", 20)["lastError"].clone();
    assert_eq!((&error["statement"], &error["class"]), (&json!(3), &json!("Constraint")));
    assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM a"), "0");
    bed.script("002", "INSERT INTO a VALUES (1)");
    bed.succeeds("r2");
    assert_eq!(bed.history(), ["001 applied", "002 applied", "003 applied"]);
    bed.assignment["mode"] = json!("Rehearse");
    bed.script("004", "INSERT INTO a VALUES (9)");
    assert_eq!(bed.fails("r3", 20)["blocked"]["reason"], "NotRehearsable");
}

pub fn nothing_is_taken_back_beneath_a_script_that_is_half_applied(server: &Server) {
    let mut bed = Bed::new(server);
    bed.assignment["onFailure"] = json!("RevertThisRun");
    bed.script("001", "CREATE TABLE a (b int)");
    bed.down("001", "DROP TABLE a");
    bed.script("002", "INSERT INTO a VALUES (1);\nCREATE INDEX i ON absent (b)");
    bed.down("002", "DROP INDEX i ON a");
    let result = bed.fails("r1", 20);
    assert_eq!((&result["lastError"]["id"], &result["reverted"]), (&json!("002"), &json!(null)), "{result}");
    assert_eq!(result["appliedNow"], 1, "{result}");
    bed.assignment["mode"] = json!("Revert");
    let result = bed.fails("r2", 20);
    let error = &result["lastError"];
    assert_eq!((&error["id"], &error["statement"]), (&json!("002"), &json!(2)), "{error}");
    assert!(error["message"].as_str().unwrap().contains("apply the rest first"), "{error}");
    assert_eq!(result["reverted"], json!(null), "{result}");
    assert_eq!(bed.history(), ["001 applied", "002 failed"]);
    assert_eq!(bed.value("SELECT CAST(b AS CHAR) FROM a"), "1", "what the rest rests on is there");
    bed.assignment["mode"] = json!("Apply");
    bed.script("002", "INSERT INTO a VALUES (1);\nCREATE INDEX i ON a (b)");
    bed.succeeds("r3");
    bed.assignment["mode"] = json!("Revert");
    assert_eq!(bed.succeeds("r4")["reverted"], json!(["002", "001"]));
}

pub fn a_script_in_doubt_is_taken_back_once_it_is_known_how_it_ended(server: &Server) {
    let mut bed = Bed::new(server);
    bed.script("001", SLOW);
    bed.down("001", "DROP TABLE a, c, d");
    let (program, _) = bed.start("r1");
    let session = at_work(&bed);
    program.kill();
    server.sql("", &format!("KILL {session}"));
    bed.assignment["mode"] = json!("Revert");
    assert_eq!(bed.fails("r2", 30)["inDoubt"], json!({ "id": "001", "run": "r1", "statement": 2 }));
    bed.assignment["resolve"] = json!({ "id": "001", "as": "retry" });
    for run in ["r3", "r4"] {
        let error = bed.fails(run, 20)["lastError"].clone();
        assert_eq!((&error["id"], &error["statement"]), (&json!("001"), &json!(2)), "{error}");
        assert_eq!(bed.history(), ["001 failed"]);
        bed.assignment.as_object_mut().unwrap().remove("resolve");
    }
    bed.script("001", &SLOW.replace("SLEEP(600)", "SLEEP(0)"));
    bed.assignment["mode"] = json!("Apply");
    bed.succeeds("r5");
    bed.assignment["mode"] = json!("Revert");
    assert_eq!(bed.succeeds("r6")["reverted"], json!(["001"]));
}

/// Waits until a session of the database sleeps; its number.
pub fn at_work(bed: &Bed<'_>) -> String {
    let sql = format!(
        "SELECT CAST(id AS CHAR) FROM information_schema.processlist WHERE db = '{}' AND info LIKE '%SLEEP%' \
         AND info NOT LIKE '%processlist%'",
        bed.name
    );
    eventually(|| bed.sql(&sql).first().map(|row| row[0].clone()).ok_or("no session sleeps"))
}

/// A statement that sleeps for two rows: MySQL ends a sleep that it is asked to end, and looks before the next row whether
/// the statement is to end, too.
const SLOW: &str = "CREATE TABLE a (b int);\nCREATE TABLE c AS SELECT SLEEP(600) AS s FROM (SELECT 1 UNION SELECT 2) AS t;\n\
                    CREATE TABLE d (e int)";

pub fn a_run_that_is_killed_leaves_a_doubt(server: &Server) {
    for (word, table) in [("applied", "CREATE TABLE c (s int)"), ("retry", "")] {
        let mut bed = Bed::new(server);
        bed.script("001", SLOW);
        let (program, _) = bed.start("r1");
        let session = at_work(&bed);
        program.kill();
        // This server runs on for a client that is gone.
        server.sql("", &format!("KILL {session}"));
        let result = bed.fails("r2", 30);
        assert_eq!(result["inDoubt"], json!({ "id": "001", "run": "r1", "statement": 2 }));
        bed.assignment["resolve"] = json!({ "id": "001", "as": word });
        if table.is_empty() {
            // The statement in doubt may be mended: nothing before it is.
            bed.script("001", &SLOW.replace("SLEEP(600)", "SLEEP(0)"));
        } else {
            bed.sql(table);
        }
        bed.succeeds("r3");
        assert_eq!(bed.history(), ["001 applied"]);
        assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM d"), "0", "the rest ran");
    }
}

pub fn two_runs_at_once_apply_each_script_once(server: &Server) {
    for _ in 0..3 {
        let mut bed = Bed::new(server);
        bed.script("001", "CREATE TABLE ledger (id int); INSERT INTO ledger VALUES (1)");
        bed.script("002", "INSERT INTO ledger VALUES (2)");
        let (one, other) = (bed.start("one"), bed.start("other"));
        assert_eq!([one.0.code(), other.0.code()], [Some(0), Some(0)]);
        let applied = [&one.1, &other.1].map(|report| report_in(report)["appliedNow"].as_u64().unwrap());
        assert_eq!(applied.iter().sum::<u64>(), 2, "{applied:?}");
        assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM ledger"), "2");
    }
}

pub fn a_run_that_is_asked_to_end_ends_its_statement_first(server: &Server) {
    let mut bed = Bed::new(server);
    bed.script("001", SLOW);
    let (program, report) = bed.start("r1");
    at_work(&bed);
    program.terminate();
    assert_eq!(program.code(), Some(10));
    assert_eq!(report_in(&report)["lastError"]["class"], "Interrupted");
    let sleeps = "SELECT CAST(COUNT(*) AS CHAR) FROM information_schema.processlist WHERE info LIKE '%SLEEP(600)%' \
                  AND info NOT LIKE '%processlist%' AND db = DATABASE()";
    assert_eq!(bed.value(sleeps), "0", "the server has ended it");
    bed.script("001", SLOW)["timeouts"] = json!({ "statement": "300ms" });
    let error = bed.fails("r2", 20)["lastError"].clone();
    assert_eq!((&error["class"], &error["statement"]), (&json!("StatementTimeout"), &json!(2)));
}

pub fn values_are_not_shown(server: &Server) {
    let mut bed = Bed::new(server);
    let value = "a.person@example.org";
    bed.script(
        "001",
        &format!("CREATE TABLE a (b varchar(99) UNIQUE, n int); INSERT INTO a VALUES ('{value}', 1)"),
    );
    bed.succeeds("r0");
    for (number, text) in [
        format!("INSERT INTO a VALUES ('{value}', 2)"),
        format!("INSERT INTO a VALUES ('x', '{value}')"),
        format!("SELEC '{value}'"),
        format!("INSERT INTO a (b) VALUES (`{value}`)"),
        format!("SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{value}'"),
    ]
    .into_iter()
    .enumerate()
    {
        bed.script("002", &text);
        let ended = bed.run(&format!("r{}", number + 1));
        assert_eq!(ended.code, Some(20), "{ended:?}");
        assert!(!ended.stderr.contains(value) && !ended.result.to_string().contains(value), "{ended:?}");
    }
}

pub fn a_run_at_work_is_not_in_doubt(server: &Server) {
    let mut bed = Bed::new(server);
    bed.script("001", SLOW);
    let (program, _) = bed.start("r1");
    let session = at_work(&bed);
    assert_eq!(bed.history(), ["001 running"]);
    bed.assignment["mode"] = json!("Status");
    assert_eq!(bed.succeeds("status")["outcome"], "Read");
    bed.assignment["mode"] = json!("Plan");
    let error = bed.fails("plan", 10)["lastError"].clone();
    assert_eq!((&error["class"], &error["id"]), (&json!("Busy"), &json!("001")), "{error}");
    program.kill();
    server.sql("", &format!("KILL {session}"));
    for mode in ["Status", "Plan"] {
        bed.assignment["mode"] = json!(mode);
        // The lock goes with the session, which the server ends soon.
        eventually(|| {
            let ended = bed.run("after");
            let doubt = &ended.result["inDoubt"];
            if *doubt == json!({ "id": "001", "run": "r1", "statement": 2 }) {
                Ok(())
            } else {
                Err(format!("{ended:?}"))
            }
        });
    }
}

/// Another database, which the bed's user may use, too.
fn other_database(bed: &Bed<'_>) -> String {
    let other = format!("{}_other", bed.name);
    bed.server.sql("", &format!("CREATE DATABASE {other}"));
    bed.server.sql("", &format!("GRANT ALL ON {other}.* TO {}@'%'", bed.user));
    other
}

pub fn what_a_script_set_is_set_again_where_it_goes_on(server: &Server) {
    let mut bed = Bed::new(server);
    let other = other_database(&bed);
    bed.sql("CREATE TABLE a (b int); CREATE TABLE parent (id int PRIMARY KEY)");
    server.sql(&other, "CREATE TABLE a (b int)");
    let text = format!(
        "SET @wanted = 7;\nUSE {other};\nSET foreign_key_checks = 0;\n\
         CREATE TABLE child (p int, FOREIGN KEY (p) REFERENCES {}.parent (id));\n\
         CREATE INDEX i ON absent (b);\nINSERT INTO a VALUES (@wanted);\nINSERT INTO child VALUES (1)",
        bed.name
    );
    bed.script("001", &text);
    let error = bed.fails("r1", 20)["lastError"].clone();
    assert_eq!(error["statement"], 5, "{error}");
    bed.script("001", &text.replace("ON absent", "ON a"));
    bed.succeeds("r2");
    let value = |of: &str, sql: &str| server.sql(of, sql)[0][0].clone();
    assert_eq!(value(&other, "SELECT CAST(b AS CHAR) FROM a"), "7");
    assert_eq!(value(&other, "SELECT CAST(COUNT(*) AS CHAR) FROM child"), "1");
    assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM a"), "0");
}

pub fn what_a_script_sets_does_not_reach_the_next_one(server: &Server) {
    let mut bed = Bed::new(server);
    let other = other_database(&bed);
    bed.script(
        "001",
        "CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child (p int REFERENCES parent (id))",
    );
    bed.script("002", "CREATE TABLE kin (p int, FOREIGN KEY (p) REFERENCES parent (id))");
    bed.script(
        "003",
        &format!("SET foreign_key_checks = 0; SET @x = 1; CREATE TEMPORARY TABLE t (i int); USE {other}"),
    );
    bed.script("004", "CREATE TABLE here (x int); INSERT INTO here VALUES (@x)");
    bed.script("005", "SET foreign_key_checks = 0; INSERT INTO kin VALUES (1)");
    bed.script("006", "INSERT INTO kin VALUES (2)");
    let error = bed.fails("r1", 20)["lastError"].clone();
    assert_eq!((&error["id"], &error["class"]), (&json!("006"), &json!("Constraint")), "{error}");
    assert_eq!(bed.value("SELECT COALESCE(CAST(x AS CHAR), 'none') FROM here"), "none");
    assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM kin"), "1");
    // The lock has gone from session to session, and is let go.
    bed.script("006", "SELECT 1");
    bed.succeeds("r2");
}

pub fn what_commits_by_itself_runs_statement_by_statement(server: &Server) {
    let mut bed = Bed::new(server);
    bed.script("001", "CREATE TABLE a (b int PRIMARY KEY)");
    let text = "SET autocommit = 0;\nINSERT INTO a VALUES (1);\nSET autocommit = 1;\nINSERT INTO a VALUES ";
    bed.script("002", &format!("{text}(1)"));
    let error = bed.fails("r1", 20)["lastError"].clone();
    assert_eq!((&error["id"], &error["statement"]), (&json!("002"), &json!(4)), "{error}");
    assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM a"), "1");
    bed.script("002", &format!("{text}(2)"));
    bed.succeeds("r2");
    assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM a"), "2", "nothing ran twice");
    bed.script("003", "SET autocommit = 0; INSERT INTO a VALUES (3)");
    bed.succeeds("r3");
    assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM a"), "3");
}

/// On MySQL alone, whose users have `caching_sha2_password`.
pub fn it_asks_for_an_encrypted_connection(server: &Server) {
    let mut bed = Bed::new(server);
    bed.script("001", "CREATE TABLE a (b int)");
    bed.assignment["database"]["tls"] = json!("Disable");
    let error = bed.fails("r1", 20)["lastError"].clone();
    assert_eq!(error["class"], "Tls", "{error}");
    assert!(error["message"].as_str().unwrap().contains("tls"), "{error}");
    bed.assignment["database"]["tls"] = json!("Require");
    bed.succeeds("r2");
}

pub fn a_reader_is_waited_for_no_longer_than_the_lock_timeout(server: &Server) {
    let mut bed = Bed::new(server);
    bed.sql("CREATE TABLE a (b int)");
    bed.script("001", "ALTER TABLE a ADD COLUMN c int")["timeouts"] = json!({ "lock": "1s" });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut reader = runtime.block_on(server.mysql_options(&bed.name).connect()).unwrap();
    runtime.block_on(sqlx::raw_sql("START TRANSACTION; SELECT * FROM a").execute(&mut reader)).unwrap();
    bed.assignment["lockWait"] = json!("1s");
    let error = bed.fails("r1", 10)["lastError"].clone();
    assert_eq!((&error["class"], &error["id"]), (&json!("LockTimeout"), &json!("001")), "{error}");
    assert_eq!(bed.history(), ["001 failed"]);
    bed.assignment["lockWait"] = json!("60s");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let application = scope.spawn(|| {
            let mut reads = 0;
            while !is_over.load(Ordering::Relaxed) {
                // The server ends a SELECT that waits for longer than any machine is late: without a lock timeout it
                // would wait for as long as the reader.
                bed.sql("SET SESSION lock_wait_timeout = 30; SELECT * FROM a");
                reads += 1;
            }
            reads
        });
        let over = Over(&is_over);
        let (program, report) = bed.start("r2");
        program.logs("script is tried again");
        // While the reader keeps the script out, the server alone ends the application's waits.
        drop(over);
        assert!(application.join().unwrap() > 0);
        runtime.block_on(sqlx::raw_sql("COMMIT").execute(&mut reader)).unwrap();
        assert_eq!(program.code(), Some(0), "{}", report_in(&report));
    });
    assert_eq!(bed.history(), ["001 applied"]);
}
