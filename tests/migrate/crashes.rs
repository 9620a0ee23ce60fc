//! Runs that die, runs that are asked to end, and runs whose server ends, at work on PostgreSQL.

use std::fs;

use kit::databases::{Server, Servers};
use kit::wait::eventually;
use serde_json::json;
use sqlx::ConnectOptions as _;

use super::bed::{Bed, report as report_in};

/// Waits until a session of the database is at a statement that begins so; its process.
fn at_work(bed: &Bed<'_>, statement: &str) -> String {
    let sql = format!(
        "SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' \
         AND pid <> pg_backend_pid() AND ltrim(query, E'\\n') LIKE '{statement}%'"
    );
    eventually(|| {
        bed.sql(&sql).first().map(|row| row[0].clone()).ok_or_else(|| format!("nothing is at {statement}"))
    })
}

fn until_gone(bed: &Bed<'_>, process: &str) {
    let sql = format!("SELECT pid::text FROM pg_stat_activity WHERE pid = {process}");
    eventually(|| bed.sql(&sql).is_empty().then_some(()).ok_or("the session is still there"));
}

pub fn a_run_that_is_killed_in_a_transaction_leaves_nothing(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.sql("CREATE TABLE pace (seconds int); INSERT INTO pace VALUES (600); GRANT ALL ON pace TO PUBLIC");
    bed.script(
        "001",
        "CREATE TABLE a (b int);\nINSERT INTO a VALUES (1);\nSELECT pg_sleep(seconds) FROM pace",
    );
    let (program, _) = bed.start("r1");
    let process = at_work(&bed, "SELECT pg_sleep");
    program.kill();
    bed.sql("UPDATE pace SET seconds = 0");
    // The server finds that its client is gone, ends the statement, and the lock goes with the session.
    let result = bed.succeeds("r2");
    assert_eq!(result["appliedNow"], 1);
    until_gone(&bed, &process);
    assert_eq!(bed.value("SELECT count(*)::text FROM a"), "1");
    assert_eq!(bed.history(), ["001 applied"]);
}

/// Kills a run whose CREATE INDEX CONCURRENTLY waits for a writer.
fn doubt(bed: &mut Bed<'_>, name: &str) {
    let index = format!("CREATE INDEX CONCURRENTLY {name} ON a (b)");
    bed.script(name, &index)["transaction"] = json!("None");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut writer = runtime.block_on(bed.server.postgres_options().database(&bed.name).connect()).unwrap();
    runtime.block_on(sqlx::raw_sql("BEGIN; INSERT INTO a VALUES (1)").execute(&mut writer)).unwrap();
    let (program, _) = bed.start(&format!("killed_{name}"));
    let process = at_work(bed, "CREATE INDEX");
    program.kill();
    until_gone(bed, &process);
    runtime.block_on(sqlx::raw_sql("ROLLBACK").execute(&mut writer)).unwrap();
    let result = bed.fails(&format!("after_{name}"), 30);
    assert_eq!((&result["outcome"], &result["inDoubt"]["id"]), (&json!("InDoubt"), &json!(name)), "{result}");
    assert_eq!(result["inDoubt"]["statement"], 1);
}

pub fn a_run_that_is_killed_outside_of_one_leaves_a_doubt_that_is_resolved_both_ways(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "CREATE TABLE a (b int)");
    bed.succeeds("first");
    doubt(&mut bed, "one");
    // It does not count as applied while the index is not valid, whatever a person says.
    bed.assignment["resolve"] = json!({ "id": "one", "as": "applied" });
    assert_eq!(bed.fails("early", 20)["lastError"]["class"], "InvalidIndex");
    bed.assignment.as_object_mut().unwrap().remove("resolve");
    bed.fails("still", 30);
    bed.sql("DROP INDEX one; CREATE INDEX one ON a (b)");
    bed.assignment["resolve"] = json!({ "id": "one", "as": "applied" });
    assert_eq!(bed.succeeds("applied")["appliedNow"], 0);
    bed.assignment.as_object_mut().unwrap().remove("resolve");
    doubt(&mut bed, "other");
    bed.sql("DROP INDEX other");
    bed.assignment["resolve"] = json!({ "id": "other", "as": "retry" });
    assert_eq!(bed.succeeds("retry")["appliedNow"], 1);
    assert_eq!(bed.history(), ["001 applied", "one applied", "other applied"]);
    assert_eq!(bed.value("SELECT count(*)::text FROM pg_index WHERE NOT indisvalid"), "0");
}

pub fn an_idempotent_script_runs_again_after_a_doubt(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.sql("CREATE TABLE pace (seconds int); INSERT INTO pace VALUES (600); GRANT ALL ON pace TO PUBLIC");
    let script = bed.script("001", "SELECT pg_sleep(seconds) FROM pace");
    script["transaction"] = json!("None");
    script["idempotent"] = json!(true);
    let (program, _) = bed.start("r1");
    at_work(&bed, "SELECT pg_sleep");
    assert_eq!(bed.history(), ["001 running"], "the history has it before the server is done");
    program.kill();
    bed.sql("UPDATE pace SET seconds = 0");
    assert_eq!(bed.succeeds("r2")["appliedNow"], 1);
}

pub fn a_run_that_is_asked_to_end_ends_its_statement_first(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.sql("CREATE TABLE pace (seconds int); INSERT INTO pace VALUES (600); GRANT ALL ON pace TO PUBLIC");
    bed.script("001", "CREATE TABLE a (); SELECT pg_sleep(seconds) FROM pace");
    bed.script("002", "SELECT pg_sleep(seconds) FROM pace")["transaction"] = json!("None");
    for (run, statement, history) in
        [("r1", "SELECT pg_sleep", "001 failed"), ("r2", "SELECT pg_sleep", "002 failed")]
    {
        let (program, report) = bed.start(run);
        let process = at_work(&bed, statement);
        program.terminate();
        assert_eq!(program.code(), Some(10), "another try may go well");
        assert_eq!(report_in(&report)["lastError"]["class"], "Interrupted");
        until_gone(&bed, &process);
        assert_eq!(bed.history().last().map(String::as_str), Some(history));
        if run == "r1" {
            assert_eq!(bed.value("SELECT to_regclass('a')::text"), "NULL");
            bed.sql("UPDATE pace SET seconds = 0");
            let (own, rest) = (bed.assignment["scripts"].clone(), json!([bed.assignment["scripts"][0]]));
            bed.assignment["scripts"] = rest;
            bed.succeeds("between");
            bed.assignment["scripts"] = own;
            bed.sql("UPDATE pace SET seconds = 600");
        }
    }
    bed.sql("UPDATE pace SET seconds = 0");
    bed.succeeds("r3");
}

/// The points at which a run is killed, in the order in which it comes to them; the answer to the doubt that it leaves;
/// and how many scripts are left to the next run.
const POINTS: [(&str, Option<&str>, u64); 6] = [
    ("migrate.commit.before", None, 3),
    ("migrate.commit.after", None, 2),
    ("migrate.row.written", None, 2),
    ("migrate.statement.before", Some("retry"), 2),
    ("migrate.statement.after", Some("applied"), 1),
    ("migrate.report.before", None, 0),
];

/// One run after another, each with a database of its own, dies at the first point that none before it died at.
pub fn a_run_that_is_killed_at_any_point_applies_each_script_once(servers: &Servers) {
    let folder = tempfile::tempdir().unwrap();
    let points = folder.path().join("points");
    let begun = || {
        let mut bed = Bed::new(&servers.postgres);
        bed.script("001", "CREATE TABLE ledger (id text); INSERT INTO ledger VALUES ('001')");
        bed.script("002", "INSERT INTO ledger VALUES ('002')")["transaction"] = json!("None");
        bed.script("003", "INSERT INTO ledger VALUES ('003')");
        let (mut command, report) = bed.command("first");
        command.env("GATEHOUSE_FAIL_POINTS", format!("kill:{}:migrate", points.display()));
        let ended = bed.ended(command, &report);
        (bed, ended)
    };
    for (point, doubt, left) in POINTS {
        let (mut bed, ended) = begun();
        let reached = fs::read_to_string(&points).unwrap();
        assert_eq!((ended.code, reached.lines().last()), (None, Some(point)), "{ended:?}");
        if let Some(word) = doubt {
            let result = bed.fails("doubtful", 30);
            assert_eq!(result["inDoubt"], json!({ "id": "002", "run": "first", "statement": 1 }), "{point}");
            bed.assignment["resolve"] = json!({ "id": "002", "as": word });
        }
        assert_eq!(bed.succeeds("next")["appliedNow"], left, "{point}");
        assert_eq!(bed.sql("SELECT id FROM ledger ORDER BY id"), [["001"], ["002"], ["003"]], "{point}");
        assert_eq!(bed.history(), ["001 applied", "002 applied", "003 applied"], "{point}");
    }
    let (_, ended) = begun();
    assert_eq!(ended.code, Some(0), "there is a point that the test does not name: {ended:?}");
}

pub fn a_server_that_restarts_leaves_nothing_of_a_transaction_and_a_doubt_outside_of_one(_: &Servers) {
    let server = Server::postgres_alone().unwrap();
    for end in [Server::stop, Server::kill] {
        let mut bed = Bed::new(&server);
        bed.sql(
            "CREATE TABLE pace (seconds int); INSERT INTO pace VALUES (600); GRANT ALL ON pace TO PUBLIC",
        );
        let restarted = |bed: &Bed<'_>, run: &str, statement: &str| {
            let (program, report) = bed.start(run);
            at_work(bed, statement);
            end(&server);
            server.start();
            (program.code(), report_in(&report))
        };
        bed.script(
            "001",
            "CREATE TABLE ledger (id text);\nINSERT INTO ledger VALUES ('001');\nSELECT pg_sleep(seconds) FROM pace",
        );
        let (code, result) = restarted(&bed, "r1", "SELECT pg_sleep");
        let error = &result["lastError"];
        assert_eq!(
            (code, &error["class"], &error["id"]),
            (Some(10), &json!("Connection"), &json!("001")),
            "another try may go well: {result}"
        );
        bed.sql("UPDATE pace SET seconds = 0");
        assert_eq!(bed.succeeds("r2")["appliedNow"], 1);

        bed.sql("UPDATE pace SET seconds = 600");
        let slow = "INSERT INTO ledger SELECT '002' FROM pace, pg_sleep(pace.seconds)";
        bed.script("002", slow)["transaction"] = json!("None");
        let (code, result) = restarted(&bed, "r3", "INSERT INTO ledger SELECT");
        let doubt = json!({ "id": "002", "run": "r3", "statement": 1 });
        assert_eq!((code, &result["inDoubt"]), (Some(30), &doubt), "{result}");
        assert_eq!(bed.fails("r4", 30)["inDoubt"], doubt);
        assert_eq!(bed.history(), ["001 applied", "002 running"]);
        bed.sql("UPDATE pace SET seconds = 0");
        bed.assignment["resolve"] = json!({ "id": "002", "as": "retry" });
        assert_eq!(bed.succeeds("r5")["appliedNow"], 1);
        assert_eq!(bed.sql("SELECT id FROM ledger ORDER BY id"), [["001"], ["002"]]);
        assert_eq!(bed.history(), ["001 applied", "002 applied"]);
    }
}
