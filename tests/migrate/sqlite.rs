//! Files of SQLite.

use std::process::Command;

use kit::databases::Servers;
use kit::program::Program;
use kit::wait::eventually;
use serde_json::{Value, json};
use tempfile::TempDir;

struct Bed {
    folder: TempDir,
    assignment: Value,
}

impl Bed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("base.db");
        let assignment = json!({
            "version": 1, "database": { "engine": "SQLite", "name": file }, "run": { "uid": "r" }, "mode": "Apply",
            "object": { "namespace": "shop", "name": "shop", "uid": "u1" }, "scripts": [],
        });
        Self { folder, assignment }
    }

    fn script(&mut self, id: &str, text: &str) {
        std::fs::write(self.folder.path().join(id), text).unwrap();
        let scripts = self.assignment["scripts"].as_array_mut().unwrap();
        if !scripts.iter().any(|script| script["id"] == id) {
            scripts.push(json!({ "id": id, "up": { "file": id } }));
        }
    }

    fn command(&self, run: &str) -> Command {
        let mut assignment = self.assignment.clone();
        assignment["run"]["uid"] = json!(run);
        let file = self.folder.path().join(format!("{run}.json"));
        std::fs::write(&file, assignment.to_string()).unwrap();
        let mut command = Program::gatehouse(kit::gatehouse!(), &["migrate", "run"]);
        command.arg("--assignment").arg(file).arg("--scripts").arg(self.folder.path());
        command.arg("--termination-log").arg(self.folder.path().join(format!("{run}.report")));
        command
    }

    fn run(&self, run: &str) -> (Option<i32>, Value) {
        let output = self.command(run).output().unwrap();
        let result = serde_json::from_slice(&output.stdout);
        (
            output.status.code(),
            result.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr))),
        )
    }

    /// How many rows a table has; none where it is not there, or its file is not yet.
    fn count(&self, table: &str) -> Option<i64> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let name = self.folder.path().join("base.db");
        runtime.block_on(async {
            use sqlx::ConnectOptions as _;
            let mut connection =
                sqlx::sqlite::SqliteConnectOptions::new().filename(name).connect().await.ok()?;
            let sql = sqlx::AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
            sqlx::query_scalar(sql).fetch_one(&mut connection).await.ok()
        })
    }
}

pub fn scripts_run_once_and_fail_whole(_: &Servers) {
    let mut bed = Bed::new();
    bed.script(
        "1",
        "CREATE TABLE a (b text UNIQUE); CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END;",
    );
    bed.script("2", "CREATE TABLE c (d); INSERT INTO a VALUES ('private'); INSERT INTO a VALUES ('private')");
    let (code, result) = bed.run("r1");
    assert_eq!(code, Some(20), "{result}");
    let error = &result["lastError"];
    assert_eq!(
        (&error["class"], &error["statement"], &error["id"]),
        (&json!("Constraint"), &json!(3), &json!("2"))
    );
    assert!(!result.to_string().contains("private"));
    assert_eq!((bed.count("a"), bed.count("c")), (Some(0), None));
    bed.script("2", "CREATE TABLE c (d); INSERT INTO a VALUES ('x')");
    assert_eq!(bed.run("r2").1["appliedNow"], 1);
    assert_eq!(bed.run("r3").1["appliedNow"], 0);
    assert_eq!((bed.count("a"), bed.count("c")), (Some(1), Some(0)));
    bed.script("1", "SELECT 1");
    assert_eq!(bed.run("r4").1["blocked"]["reason"], "ChecksumMismatch");
}

pub fn a_baseline_that_was_forgotten_counts_from_the_next_run_on(_: &Servers) {
    let mut bed = Bed::new();
    bed.script("1", "CREATE TABLE a (b)");
    assert_eq!(bed.run("r1").0, Some(0));
    // Of another series, the table is one of others.
    bed.assignment["history"] = json!({ "series": "other" });
    bed.script("2", "CREATE TABLE c (d)");
    assert_eq!(bed.run("r2").1["lastError"]["id"], "1");
    bed.assignment["baseline"] = json!("1");
    let (code, result) = bed.run("r3");
    assert_eq!(
        (code, &result["appliedNow"], &result["appliedCount"]),
        (Some(0), &json!(1), &json!(2)),
        "{result}"
    );
    assert_eq!(bed.count("gatehouse_migrations WHERE series = 'other' AND state = 'baseline'"), Some(1));
}

/// A file that has a table of others, and scripts of which the second makes that table.
fn older() -> Bed {
    use sqlx::ConnectOptions as _;

    let mut bed = Bed::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(bed.folder.path().join("base.db"));
    let mut connection = runtime.block_on(options.create_if_missing(true).connect()).unwrap();
    runtime.block_on(sqlx::raw_sql("CREATE TABLE of_old (a)").execute(&mut connection)).unwrap();
    bed.script("1", "CREATE TABLE marks (a)");
    bed.script("2", "CREATE TABLE IF NOT EXISTS of_old (a)");
    bed.script("3", "CREATE TABLE of_now (a)");
    bed
}

pub fn a_forgotten_baseline_runs_nothing(_: &Servers) {
    let mut bed = older();
    for mode in ["Plan", "Apply"] {
        bed.assignment["mode"] = json!(mode);
        let (code, result) = bed.run("r1");
        let blocked = &result["blocked"];
        assert_eq!((code, &blocked["reason"]), (Some(20), &json!("BaselineRequired")), "{result}");
        let message = blocked["message"].as_str().unwrap();
        assert!(message.contains("of_old") && message.contains("--no-baseline"), "{message}");
        assert_eq!((bed.count("marks"), bed.count("of_now")), (None, None), "{mode}");
    }
    bed.assignment["baseline"] = json!("2");
    let (code, result) = bed.run("r2");
    assert_eq!((code, &result["appliedNow"]), (Some(0), &json!(1)), "{result}");
    assert_eq!((bed.count("marks"), bed.count("of_now")), (None, Some(0)));
}

pub fn all_scripts_run_where_that_is_asked_for(_: &Servers) {
    let mut bed = older();
    bed.assignment["existingTables"] = json!("Ignore");
    let (code, result) = bed.run("r1");
    assert_eq!((code, &result["appliedNow"]), (Some(0), &json!(3)), "{result}");
    assert_eq!((bed.count("marks"), bed.count("of_now")), (Some(0), Some(0)));
    // The file has a history by then.
    bed.assignment.as_object_mut().unwrap().remove("existingTables");
    bed.script("4", "CREATE TABLE of_later (a)");
    assert_eq!(bed.run("r2").1["appliedNow"], 1);
}

pub fn two_runs_at_once_apply_each_script_once(_: &Servers) {
    let mut bed = Bed::new();
    bed.script("1", "CREATE TABLE ledger (id); INSERT INTO ledger VALUES (1)");
    bed.script("2", "INSERT INTO ledger VALUES (2)");
    let start =
        |run: &str| Program::start(&bed.command(run), &bed.folder.path().join(format!("{run}.log"))).unwrap();
    let (one, other) = (start("one"), start("other"));
    assert_eq!((one.code(), other.code()), (Some(0), Some(0)));
    assert_eq!(bed.count("ledger"), Some(2));
}

pub fn a_rehearsal_leaves_nothing(_: &Servers) {
    let mut bed = Bed::new();
    bed.script("1", "CREATE TABLE a (b)");
    bed.assignment["mode"] = json!("Rehearse");
    let (code, result) = bed.run("r1");
    assert_eq!((code, &result["outcome"]), (Some(0), &json!("Rehearsed")), "{result}");
    assert_eq!((bed.count("a"), bed.count("gatehouse_migrations")), (None, None));
    // A check only reads.
    bed.script("2", "INSERT INTO a VALUES (1) RETURNING b");
    bed.assignment["scripts"][1]["kind"] = json!("Check");
    let (code, result) = bed.run("r2");
    assert_eq!((code, &result["lastError"]["class"]), (Some(20), &json!("Permission")), "{result}");
    bed.script("2", "SELECT b FROM a");
    bed.script("3", "INSERT INTO a VALUES (1)");
    let (code, result) = bed.run("r3");
    assert_eq!((code, &result["outcome"]), (Some(0), &json!("Rehearsed")), "{result}");
}

/// A statement that writes, and does not end by itself.
const ENDLESS: &str = "CREATE TABLE a AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                       SELECT COUNT(*) FROM n";

pub fn a_rehearsal_says_how_its_script_failed(_: &Servers) {
    let mut bed = Bed::new();
    bed.assignment["mode"] = json!("Rehearse");
    // SQLite rolls back what it is asked to end while it writes, so that there is nothing left to roll back.
    bed.script("1", ENDLESS);
    let program = Program::start(&bed.command("r1"), &bed.folder.path().join("log")).unwrap();
    program.logs("script begun");
    program.terminate();
    assert_eq!(program.code(), Some(10));
    let report = std::fs::read_to_string(bed.folder.path().join("r1.report")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&report).unwrap()["lastError"]["class"], "Interrupted");
    bed.assignment["scripts"][0]["timeouts"] = json!({ "statement": "200ms" });
    let (code, result) = bed.run("r2");
    assert_eq!((code, &result["lastError"]["class"]), (Some(20), &json!("StatementTimeout")), "{result}");
    assert_eq!(bed.count("a"), None);
}

pub fn a_run_that_is_asked_to_end_ends_its_statement_first(_: &Servers) {
    let mut bed = Bed::new();
    bed.script("1", ENDLESS);
    let program = Program::start(&bed.command("r1"), &bed.folder.path().join("log")).unwrap();
    program.logs("script begun");
    program.terminate();
    assert_eq!(program.code(), Some(10));
    assert_eq!(bed.count("a"), None);
    bed.assignment["scripts"][0]["timeouts"] = json!({ "statement": "200ms" });
    let (code, result) = bed.run("r2");
    assert_eq!((code, &result["lastError"]["class"]), (Some(20), &json!("StatementTimeout")));
}

pub fn a_run_at_work_is_not_in_doubt(_: &Servers) {
    let mut bed = Bed::new();
    let endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n";
    bed.script("1", endless);
    bed.assignment["scripts"][0]["transaction"] = json!("None");
    let program = Program::start(&bed.command("r1"), &bed.folder.path().join("log")).unwrap();
    program.logs("script begun");
    let running = "gatehouse_migrations WHERE state = 'running'";
    eventually(|| (bed.count(running) == Some(1)).then_some(()).ok_or("no script is running"));
    let outcome = |mode: &str| {
        let mut assignment = bed.assignment.clone();
        assignment["mode"] = json!(mode);
        let bed = Bed { folder: tempfile::tempdir().unwrap(), assignment };
        std::fs::write(bed.folder.path().join("1"), endless).unwrap();
        let (code, result) = bed.run("other");
        (code, result["outcome"].clone())
    };
    assert_eq!(outcome("Status"), (Some(0), json!("Read")));
    assert_eq!(outcome("Plan"), (Some(10), json!("Failed")), "another run is at work");
    program.kill();
    for mode in ["Status", "Plan"] {
        eventually(|| {
            let found = outcome(mode);
            if found == (Some(30), json!("InDoubt")) { Ok(()) } else { Err(format!("{found:?}")) }
        });
    }
}

pub fn nothing_is_taken_back_before_a_doubt_is_settled(_: &Servers) {
    let mut bed = Bed::new();
    bed.script("1", "CREATE TABLE a (b)");
    bed.script(
        "2",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n",
    );
    std::fs::write(bed.folder.path().join("down"), "DROP TABLE a").unwrap();
    bed.assignment["scripts"][0]["down"] = json!({ "file": "down" });
    // By itself it would run again from its start, which a run that takes back does not do.
    bed.assignment["scripts"][1]["transaction"] = json!("None");
    bed.assignment["scripts"][1]["idempotent"] = json!(true);
    let program = Program::start(&bed.command("r1"), &bed.folder.path().join("log")).unwrap();
    let running = "gatehouse_migrations WHERE state = 'running'";
    eventually(|| (bed.count(running) == Some(1)).then_some(()).ok_or("no script is running"));
    program.kill();
    bed.assignment["mode"] = json!("Revert");
    eventually(|| {
        let (code, result) = bed.run("r2");
        let is_in_doubt = (code, &result["inDoubt"]["id"]) == (Some(30), &json!("2"));
        is_in_doubt.then_some(()).ok_or_else(|| result.to_string())
    });
    assert_eq!(bed.count("a"), Some(0));
    bed.assignment["resolve"] = json!({ "id": "2", "as": "retry" });
    let (code, result) = bed.run("r3");
    assert_eq!((code, &result["reverted"]), (Some(0), &json!(["1"])), "{result}");
    assert_eq!((bed.count(running), bed.count("a")), (Some(0), None));
}

pub fn what_only_reads_makes_no_file(_: &Servers) {
    let mut bed = Bed::new();
    bed.script("1", "CREATE TABLE a (b)");
    bed.assignment["mode"] = json!("Plan");
    let (code, result) = bed.run("plan");
    assert_eq!((code, &result["plan"]["pending"]), (Some(0), &json!(["1"])), "{result}");
    let file = bed.folder.path().join("base.db");
    for (words, expected) in [(&["status"][..], 2), (&["wait", "--min-id=1", "--timeout=1ms"], 1)] {
        let mut command = Program::gatehouse(kit::gatehouse!(), &["migrate"]);
        command.args(words).args(["--engine=SQLite", "--series=shop", "--database"]).arg(&file);
        let code = command.output().unwrap().status.code();
        assert_eq!(code, Some(expected), "{words:?}");
        assert!(!file.exists(), "{words:?}");
    }
    bed.assignment["mode"] = json!("Apply");
    assert_eq!(bed.run("apply").1["appliedNow"], 1);
}

pub fn a_reader_at_the_commit_keeps_the_script_out_until_it_ends(_: &Servers) {
    use sqlx::ConnectOptions as _;

    let mut bed = Bed::new();
    bed.script("1", "CREATE TABLE a (b)");
    assert_eq!(bed.run("r1").0, Some(0));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(bed.folder.path().join("base.db"));
    let mut reader = runtime.block_on(options.connect()).unwrap();
    runtime.block_on(sqlx::raw_sql("BEGIN; SELECT * FROM a").execute(&mut reader)).unwrap();
    bed.script("2", "INSERT INTO a VALUES (1)");
    // Longer than a connection waits by itself: there is a second try.
    bed.assignment["lockWait"] = json!("7s");
    let (code, result) = bed.run("r2");
    assert_eq!((code, &result["lastError"]["class"]), (Some(10), &json!("LockTimeout")), "{result}");
    assert_eq!((&result["appliedCount"], bed.count("a")), (&json!(1), Some(0)), "{result}");
    runtime.block_on(sqlx::raw_sql("COMMIT").execute(&mut reader)).unwrap();
    assert_eq!(bed.run("r3").0, Some(0));
    assert_eq!(bed.count("a"), Some(1));
}

/// Twelve scripts, and more than the fifty that are reported.
pub fn many_scripts_run_and_are_taken_back_in_order(_: &Servers) {
    for count in [12_i64, 60] {
        let mut bed = Bed::new();
        for number in 1..=count {
            let (id, before) = (format!("{number:03}"), number - 1);
            let text = format!("UPDATE s SET v = {number} WHERE v = {before}");
            let text = if number == 1 { "CREATE TABLE s AS SELECT 1 AS v".to_owned() } else { text };
            bed.script(&id, &text);
            let down = format!("UPDATE s SET v = {before} WHERE v = {number}");
            let down = if number == 1 { "UPDATE s SET v = v".to_owned() } else { down };
            std::fs::write(bed.folder.path().join(format!("{id}.down")), down).unwrap();
            bed.assignment["scripts"].as_array_mut().unwrap().last_mut().unwrap()["down"] =
                json!({ "file": format!("{id}.down") });
        }
        let (code, result) = bed.run("apply");
        assert_eq!((code, &result["appliedCount"]), (Some(0), &json!(count)), "{result}");
        assert_eq!(result["applied"].as_array().unwrap().last().unwrap()["id"], format!("{count:03}"));
        bed.assignment["mode"] = json!("Revert");
        let reverted: Vec<_> = (1..=count).rev().map(|number| format!("{number:03}")).collect();
        assert_eq!(bed.run("revert").1["reverted"], json!(reverted));
        assert_eq!(bed.count("s WHERE v = 1"), Some(1));
    }
}

pub fn what_a_script_leaves_in_its_session_does_not_reach_the_next_one(_: &Servers) {
    let mut bed = Bed::new();
    bed.script(
        "1",
        "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES p ON DELETE CASCADE); \
         INSERT INTO p VALUES (1); INSERT INTO c VALUES (1); CREATE TEMP TABLE left_over (a)",
    );
    bed.script("2", "PRAGMA foreign_keys = ON");
    bed.assignment["scripts"][1]["transaction"] = json!("None");
    bed.script("3", "CREATE TABLE n (id INTEGER PRIMARY KEY); INSERT INTO n SELECT * FROM p; DROP TABLE p; ALTER TABLE n RENAME TO p");
    bed.script("4", "CREATE TABLE found AS SELECT name FROM sqlite_temp_master");
    bed.script("5", "PRAGMA recursive_triggers = ON; PRAGMA case_sensitive_like = ON; SELECT * FROM absent");
    let (code, result) = bed.run("r1");
    assert_eq!((code, &result["lastError"]["id"]), (Some(20), &json!("5")), "{result}");
    assert_eq!(
        (bed.count("c"), bed.count("found")),
        (Some(1), Some(0)),
        "as if each script had a run of its own"
    );
    bed.script("5", "CREATE TABLE kept AS SELECT recursive_triggers FROM pragma_recursive_triggers");
    assert_eq!(bed.run("r2").0, Some(0));
    assert_eq!(bed.count("kept WHERE recursive_triggers = 0"), Some(1));
}

pub fn a_failure_names_its_cause_and_its_line(_: &Servers) {
    let mut bed = Bed::new();
    for (number, (text, said)) in [
        ("SELECT 1;\n\nSELECT frobnicate(1)", "no such function: frobnicate in line 3"),
        (
            "CREATE TABLE a (b, c);\nINSERT INTO a VALUES (1)",
            "table a has 2 columns but 1 values were supplied in line 2",
        ),
        ("CREATE TABLE a (b);\nCREATE VIEW a AS SELECT 1", "table a already exists in line 2"),
        (
            "CREATE TABLE a (b);\nCREATE INDEX i ON a (b);\nCREATE INDEX i ON a (b)",
            "index i already exists in line 3",
        ),
        ("SELECT 1;\nSELEC 2", "syntax error in line 2"),
        ("SELECT abs(-4), 1;\nSELECT abs(1, 2)", "wrong number of arguments to function abs() in line 2"),
    ]
    .iter()
    .enumerate()
    {
        bed.script("1", text);
        let (code, result) = bed.run(&format!("r{number}"));
        assert_eq!((code, &result["lastError"]["message"]), (Some(20), &json!(said)), "{result}");
    }
}

pub fn what_needs_no_transaction_is_known_before_anything_runs(_: &Servers) {
    let mut bed = Bed::new();
    bed.script("1", "CREATE TABLE a (b)");
    for (number, (text, said)) in [
        ("SELECT 1;\nVACUUM", "VACUUM in line 2"),
        ("PRAGMA journal_mode = WAL", "PRAGMA journal_mode = WAL in line 1"),
        ("\u{feff}COMMIT;\nSELECT * FROM absent", "COMMIT in line 1"),
        ("SELECT '1", "cannot be split"),
    ]
    .iter()
    .enumerate()
    {
        bed.script("2", text);
        let (code, result) = bed.run(&format!("r{number}"));
        assert_eq!((code, &result["blocked"]["reason"]), (Some(20), &json!("NotRunnable")), "{result}");
        assert!(result["blocked"]["message"].as_str().unwrap().contains(said), "{result}");
    }
    assert_eq!(bed.count("a"), None);
    bed.script("2", "VACUUM");
    bed.assignment["mode"] = json!("Rehearse");
    bed.assignment["scripts"][1]["transaction"] = json!("None");
    let (code, result) = bed.run("rehearse");
    assert_eq!((code, &result["outcome"]), (Some(0), &json!("Rehearsed")), "{result}");
    bed.assignment["mode"] = json!("Apply");
    assert_eq!(bed.run("apply").1["appliedNow"], 2);
}
