//! Runs whose lock is void, as it is behind a pooler that hands one session to several clients: the row of the series in
//! the database is what keeps them apart.

use kit::databases::Servers;
use kit::wait::eventually;
use serde_json::json;
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection};
use tokio::runtime::Runtime;

use super::bed::{Bed, report as report_in};

/// What a script waits at, until the test opens it.
struct Gate {
    runtime: Runtime,
    holder: PgConnection,
}

impl Gate {
    /// Adds a table, a check that waits at the gate, and a script behind that.
    fn in_the_middle_of(bed: &mut Bed<'_>) -> Self {
        // As a pooler does, this makes the lock of the run void.
        bed.script("001", "CREATE TABLE ledger (id text); SELECT pg_advisory_unlock_all()");
        let wait = "SELECT 1 FROM (SELECT count(*) FROM pg_advisory_xact_lock_shared(42)) AS gate (opened) WHERE opened = 0";
        let script = bed.script("002", wait);
        script["kind"] = json!("Check");
        script["timeouts"] = json!({ "lock": "2m" });
        bed.script("003", "INSERT INTO ledger VALUES ('003')");
        let runtime = Runtime::new().unwrap();
        let options = bed.server.postgres_options().database(&bed.name);
        let holder = runtime.block_on(options.connect()).unwrap();
        let mut gate = Self { runtime, holder };
        gate.sql("SELECT pg_advisory_lock(42)");
        gate
    }

    fn sql(&mut self, text: &str) {
        self.runtime
            .block_on(sqlx::raw_sql(AssertSqlSafe(text.to_owned())).execute(&mut self.holder))
            .unwrap();
    }

    /// Waits until that many sessions wait at the gate.
    fn reached_by(bed: &Bed<'_>, count: usize) {
        let waiting = "SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = 42 \
                       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        eventually(|| {
            let found = bed.value(waiting);
            (found == count.to_string()).then_some(()).ok_or_else(|| format!("{found} wait at the gate"))
        });
    }

    fn open(mut self) {
        self.sql("SELECT pg_advisory_unlock(42)");
    }
}

pub fn a_run_whose_series_was_taken_over_commits_nothing_more(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    let gate = Gate::in_the_middle_of(&mut bed);
    let (program, report) = bed.start("r1");
    Gate::reached_by(&bed, 1);
    // Another pod of the same Job has the same run.
    bed.sql("UPDATE gatehouse_migrations_lock SET run = 'r1'");
    gate.open();
    assert_eq!(program.code(), Some(10));
    let error = report_in(&report)["lastError"].clone();
    assert_eq!(
        (&error["class"], &error["message"]),
        (&json!("Busy"), &json!("another run took over the series shop")),
        "{error}"
    );
    assert_eq!(bed.value("SELECT count(*)::text FROM ledger"), "0");
    assert_eq!(bed.history(), ["001 applied"]);
    bed.succeeds("r2");
    assert_eq!(bed.value("SELECT count(*)::text FROM ledger"), "1");
}

pub fn two_pods_of_one_run_apply_each_script_once(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    let gate = Gate::in_the_middle_of(&mut bed);
    let (one, report_of_one) = bed.start_of("one", "r1");
    Gate::reached_by(&bed, 1);
    let (other, report_of_other) = bed.start_of("other", "r1");
    Gate::reached_by(&bed, 2);
    gate.open();
    let codes = [one.code(), other.code()];
    let reports = [report_in(&report_of_one), report_in(&report_of_other)];
    assert_eq!(codes, [Some(10), Some(0)], "{reports:?}");
    assert_eq!(bed.sql("SELECT id FROM ledger"), [["003"]], "{reports:?}");
    assert_eq!(bed.history(), ["001 applied", "002 applied", "003 applied"]);
}
