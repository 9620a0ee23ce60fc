//! Scripts that were cut off between two of their statements, and what a later run makes of the rest: on MariaDB and MySQL,
//! where nothing takes back what has run.

use std::fs;

use kit::databases::{Server, Servers};
use serde_json::json;
use sqlx::ConnectOptions as _;

use super::bed::Bed;
use super::mysql::at_work;

pub fn a_baseline_counts_whole_or_not_at_all(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.sql("CREATE TABLE ledger (id text); GRANT ALL ON ledger TO PUBLIC");
    for id in ["001", "002", "003", "004"] {
        bed.script(id, &format!("INSERT INTO ledger VALUES ('{id}')"));
    }
    bed.assignment["baseline"] = json!("003");
    let points = bed.path("points");
    let (mut command, report) = bed.command("first");
    command.env("GATEHOUSE_FAIL_POINTS", format!("kill:{}:migrate.row", points.display()));
    let ended = bed.ended(command, &report);
    assert_eq!((ended.code, &*fs::read_to_string(points).unwrap()), (None, "migrate.row.written\n"));
    bed.succeeds("next");
    assert_eq!(bed.history(), ["001 baseline", "002 baseline", "003 baseline", "004 applied"]);
    assert_eq!(bed.sql("SELECT id FROM ledger"), [["004"]]);
}

pub fn what_is_left_of_a_script_goes_on_where_it_stood(server: &Server) {
    let mut bed = Bed::new(server);
    bed.script("001", "CREATE TABLE a (b int)");
    bed.script("002", "INSERT INTO a VALUES (1);\nALTER TABLE absent ADD COLUMN c int");
    let error = bed.fails("r1", 20)["lastError"].clone();
    assert_eq!((&error["id"], &error["statement"]), (&json!("002"), &json!(2)), "{error}");
    // Without what failed, the script only changes rows, and would run in a transaction by itself.
    bed.script("002", "INSERT INTO a VALUES (1)");
    bed.succeeds("r2");
    assert_eq!(bed.history(), ["001 applied", "002 applied"]);
    assert_eq!(bed.value("SELECT GROUP_CONCAT(b) FROM a"), "1");
    bed.script("003", "INSERT INTO a VALUES (3);\nALTER TABLE absent ADD COLUMN c int");
    bed.fails("r3", 20);
    bed.script("003", "INSERT INTO a VALUES (3);\nINSERT INTO a VALUES (4)");
    bed.succeeds("r4");
    assert_eq!(bed.value("SELECT GROUP_CONCAT(b ORDER BY b) FROM a"), "1,3,4");
}

/// A procedure whose first statement is done when its second one meets a lock.
pub fn a_call_that_failed_half_way_is_in_doubt(server: &Server) {
    let mut bed = Bed::new(server);
    bed.script(
        "001",
        "CREATE TABLE a (n int); CREATE TABLE b (n int PRIMARY KEY); INSERT INTO b VALUES (1);\n\
         CREATE PROCEDURE p()\nBEGIN\n  INSERT INTO a VALUES (1);\n  UPDATE b SET n = 2;\nEND",
    );
    bed.succeeds("r1");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut other = runtime.block_on(server.mysql_options(&bed.name).connect()).unwrap();
    let locks = "START TRANSACTION; SELECT n FROM b FOR UPDATE";
    runtime.block_on(sqlx::raw_sql(locks).execute(&mut other)).unwrap();
    bed.script("002", "CALL p()")["timeouts"] = json!({ "lock": "1s" });
    let result = bed.fails("r2", 30);
    assert_eq!(result["inDoubt"], json!({ "id": "002", "run": "r2", "statement": 1 }), "{result}");
    assert_eq!(result["lastError"]["class"], "LockTimeout", "{result}");
    runtime.block_on(sqlx::raw_sql("ROLLBACK").execute(&mut other)).unwrap();
    assert_eq!(bed.fails("r3", 30)["inDoubt"]["id"], "002");
    bed.sql("UPDATE b SET n = 2");
    bed.assignment["resolve"] = json!({ "id": "002", "as": "applied" });
    bed.succeeds("r4");
    assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM a"), "1", "nothing ran twice");
}

/// Two scripts whose first one's down script keeps the count of `a`.
fn counted(server: &Server) -> Bed<'_> {
    let mut bed = Bed::new(server);
    bed.script("001", "CREATE TABLE a (n int); INSERT INTO a VALUES (9)");
    bed.down("001", "CREATE TABLE kept AS SELECT n FROM a; DROP TABLE a");
    bed.script("002", "ALTER TABLE a ADD COLUMN c int");
    bed
}

const WRONG: &str = "UPDATE a SET n = n - 1;\nALTER TABLE a DROP COLUMN absent";
const RIGHT: &str = "UPDATE a SET n = n - 1;\nALTER TABLE a DROP COLUMN c";

pub fn a_down_script_goes_on_behind_what_has_run_of_it(server: &Server) {
    let mut bed = counted(server);
    bed.down("002", WRONG);
    bed.succeeds("r1");
    bed.assignment["mode"] = json!("Revert");
    let error = bed.fails("r2", 20)["lastError"].clone();
    assert_eq!((&error["id"], &error["statement"]), (&json!("002"), &json!(2)), "{error}");
    bed.down("002", "ALTER TABLE a DROP COLUMN c");
    assert_eq!(bed.fails("r3", 20)["blocked"]["reason"], "ChecksumMismatch", "what has run is edited");
    bed.down("002", RIGHT);
    assert_eq!(bed.succeeds("r4")["reverted"], json!(["002", "001"]));
    assert_eq!(bed.history(), ["001 reverted", "002 reverted"]);
    assert_eq!(bed.value("SELECT CAST(n AS CHAR) FROM kept"), "8");
}

pub fn what_is_half_taken_back_is_taken_back_before_it_runs_again(server: &Server) {
    let mut bed = counted(server);
    bed.down("002", WRONG);
    bed.succeeds("r1");
    bed.assignment["mode"] = json!("Revert");
    bed.fails("r2", 20);
    bed.assignment["mode"] = json!("Apply");
    bed.down("002", RIGHT);
    assert_eq!(bed.succeeds("r3")["appliedNow"], 1);
    assert_eq!(bed.history(), ["001 applied", "002 applied"]);
    assert_eq!(bed.value("SELECT CAST(n AS CHAR) FROM a WHERE c IS NULL"), "8");
    assert_eq!(bed.succeeds("r4")["appliedNow"], 0);
}

/// The statement in the middle sleeps for two rows: see `mysql::SLOW`.
const SLOW: &str = "UPDATE a SET n = n - 1;\n\
                    CREATE TABLE slow AS SELECT SLEEP(600) AS s FROM (SELECT 1 UNION SELECT 2) AS t;\n\
                    UPDATE a SET n = n - 2";

pub fn a_down_script_in_doubt_goes_on_as_the_answer_says(server: &Server) {
    for word in ["applied", "retry"] {
        let mut bed = counted(server);
        bed.down("002", SLOW);
        bed.succeeds("r1");
        bed.assignment["mode"] = json!("Revert");
        let (program, _) = bed.start("r2");
        let session = at_work(&bed);
        program.kill();
        server.sql("", &format!("KILL {session}"));
        assert_eq!(bed.fails("r3", 30)["inDoubt"], json!({ "id": "002", "run": "r2", "statement": 2 }));
        if word == "applied" {
            bed.sql("CREATE TABLE slow (s int)");
        } else {
            bed.down("002", &SLOW.replace("SLEEP(600)", "SLEEP(0)"));
        }
        bed.assignment["resolve"] = json!({ "id": "002", "as": word });
        assert_eq!(bed.succeeds("r4")["reverted"], json!(["002", "001"]), "{word}");
        assert_eq!(bed.value("SELECT CAST(n AS CHAR) FROM kept"), "6", "{word}: each statement ran once");
        assert_eq!(
            bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM slow"),
            if word == "applied" { "0" } else { "2" }
        );
    }
}
