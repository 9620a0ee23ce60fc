//! Several at once: runs of one series, readers of a table that a script changes, builders of an index.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use kit::databases::Servers;
use kit::wait::eventually;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, ConnectOptions as _};

use super::bed::{Bed, report as report_in};

/// How often two runs are let loose on one database.
const ROUNDS: usize = 20;
/// Of these, side by side.
const AT_ONCE: usize = 5;

pub fn two_runs_at_once_apply_each_script_once(servers: &Servers) {
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                for _ in 0..ROUNDS / AT_ONCE {
                    round(servers);
                }
            });
        }
    });
    println!("figure: rounds of two runs at once on PostgreSQL: {ROUNDS}");
}

fn round(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "CREATE TABLE ledger (id text); INSERT INTO ledger VALUES ('001')");
    bed.script("002", "CREATE INDEX CONCURRENTLY ledger_idx ON ledger (id)")["transaction"] = json!("None");
    bed.script("003", "INSERT INTO ledger VALUES ('003')");
    let (one, other) = (bed.start("one"), bed.start("other"));
    let codes = [one.0.code(), other.0.code()];
    let reports = [report_in(&one.1), report_in(&other.1)];
    assert_eq!(codes, [Some(0), Some(0)], "{reports:?}");
    let applied: u64 = reports.iter().map(|report| report["appliedNow"].as_u64().unwrap()).sum();
    assert_eq!(applied, 3, "{reports:?}");
    assert_eq!(bed.sql("SELECT id FROM ledger ORDER BY id"), [["001"], ["003"]]);
    assert_eq!(
        bed.value("SELECT indisvalid::text FROM pg_index WHERE indexrelid = 'ledger_idx'::regclass"),
        "true"
    );
    assert_eq!(deadlocks(&bed), "0");
}

/// How many deadlocks the server has found in the database so far. A session has told of its own by the time it is gone.
fn deadlocks(bed: &Bed<'_>) -> String {
    let others = "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() \
                  AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
    eventually(|| (bed.value(others) == "0").then_some(()).ok_or("other sessions are there"));
    bed.value("SELECT deadlocks::text FROM pg_stat_database WHERE datname = current_database()")
}

pub fn a_failed_concurrent_index_never_counts_as_applied(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "CREATE TABLE a (b text); INSERT INTO a VALUES ('private'), ('private')");
    let index = "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS a_idx ON a (b)";
    bed.script("002", index)["transaction"] = json!("None");
    let error = bed.fails("r1", 20)["lastError"].clone();
    assert_eq!((&error["class"], &error["sqlState"]), (&json!("InvalidIndex"), &json!("23505")), "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("public.a_idx") && !message.contains("private"), "{message}");
    bed.sql("DELETE FROM a");
    for run in ["r2", "r3"] {
        // The server answers that the index is there, and it is not valid.
        assert_eq!(bed.fails(run, 20)["lastError"]["class"], "InvalidIndex");
        assert_eq!(bed.history(), ["001 applied", "002 failed"]);
    }
    bed.sql("DROP INDEX a_idx");
    bed.succeeds("r4");
    assert_eq!(
        bed.value("SELECT indisvalid::text FROM pg_index WHERE indexrelid = 'a_idx'::regclass"),
        "true"
    );
}

pub fn an_index_that_another_session_left_is_not_the_scripts(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    own_table(&bed);
    bed.sql("CREATE TABLE bills (b int); INSERT INTO bills VALUES (1), (1)");
    let script = bed.script("001", "CREATE INDEX CONCURRENTLY a_idx ON a (b)");
    script["transaction"] = json!("None");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut writer =
        runtime.block_on(servers.postgres.postgres_options().database(&bed.name).connect()).unwrap();
    runtime.block_on(sqlx::raw_sql("BEGIN; INSERT INTO a VALUES (1)").execute(&mut writer)).unwrap();
    let (program, report) = bed.start("r1");
    let waits = "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() \
                 AND query LIKE 'CREATE INDEX%' AND wait_event_type = 'Lock'";
    eventually(|| (bed.value(waits) == "1").then_some(()).ok_or("it does not wait"));
    // Meanwhile another session fails to build one of its own.
    servers
        .postgres
        .try_sql(&bed.name, "CREATE UNIQUE INDEX CONCURRENTLY bills_idx ON bills (b)")
        .unwrap_err();
    runtime.block_on(sqlx::raw_sql("COMMIT").execute(&mut writer)).unwrap();
    assert_eq!(program.code(), Some(0), "{}", report_in(&report));
    assert_eq!(bed.value("SELECT count(*)::text FROM pg_index WHERE NOT indisvalid"), "1");
    assert_eq!(bed.history(), ["001 applied"]);
}

/// A table that scripts may change.
fn own_table(bed: &Bed<'_>) {
    bed.sql(&format!("CREATE TABLE a (b int); ALTER TABLE a OWNER TO {}", bed.user));
}

/// Ends what runs beside a test, also where the test fails.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub fn a_reader_is_waited_for_no_longer_than_the_lock_timeout(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    own_table(&bed);
    bed.script("001", "ALTER TABLE a ADD COLUMN c int")["timeouts"] = json!({ "lock": "500ms" });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut reader =
        runtime.block_on(servers.postgres.postgres_options().database(&bed.name).connect()).unwrap();
    let read = |connection: &mut sqlx::PgConnection, text: &str| {
        runtime.block_on(sqlx::raw_sql(AssertSqlSafe(text.to_owned())).execute(connection)).map(|_| ())
    };
    read(&mut reader, "BEGIN; SELECT * FROM a").unwrap();
    let (program, report) = bed.start("r1");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let application = scope.spawn(|| {
            let mut reads = 0;
            while !is_over.load(Ordering::Relaxed) {
                // The server ends a SELECT that waits for longer than any machine is late: without a lock timeout it
                // would wait for as long as the reader.
                bed.sql("SET statement_timeout = '30s'; SELECT * FROM a");
                reads += 1;
            }
            reads
        });
        let over = Over(&is_over);
        eventually(|| {
            program.log().text().contains("script is tried again").then_some(()).ok_or("not tried again")
        });
        // The application reads only while the reader keeps the script out: the server alone ends its waits then, and
        // no pause of the run, which holds the table once the script has it, counts among them.
        drop(over);
        assert!(application.join().unwrap() > 0);
        read(&mut reader, "COMMIT").unwrap();
        assert_eq!(program.code(), Some(0), "{}", report_in(&report));
    });
    assert_eq!(bed.history(), ["001 applied"]);
}

pub fn a_concurrent_index_outwaits_the_lock_timeout(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    own_table(&bed);
    let script = bed.script("001", "CREATE INDEX CONCURRENTLY a_idx ON a (b)");
    script["transaction"] = json!("None");
    script["timeouts"] = json!({ "lock": "200ms" });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut writer =
        runtime.block_on(servers.postgres.postgres_options().database(&bed.name).connect()).unwrap();
    runtime.block_on(sqlx::raw_sql("BEGIN; INSERT INTO a VALUES (1)").execute(&mut writer)).unwrap();
    let (program, report) = bed.start("r1");
    // A run tells every few seconds how far its script is.
    let mut told = program.log().from_the_start();
    let waits = |line: &Value| line["phase"] == "waiting for writers before build";
    let line = eventually(|| told().into_iter().find(waits).ok_or("it does not say what it waits for"));
    assert_eq!((&line["message"], &line["script"]), (&json!("script at work"), &json!("001")), "{line}");
    runtime.block_on(sqlx::raw_sql("COMMIT").execute(&mut writer)).unwrap();
    assert_eq!(program.code(), Some(0), "{}", report_in(&report));
    assert_eq!(
        bed.value("SELECT indisvalid::text FROM pg_index WHERE indexrelid = 'a_idx'::regclass"),
        "true"
    );
}
