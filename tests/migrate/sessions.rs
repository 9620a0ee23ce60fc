//! MariaDB and MySQL take nothing back that a script set, so that each script has a session of its own. Here there is none
//! to be had, or the lock does not reach it.

use kit::databases::Server;
use kit::wait::eventually;
use serde_json::json;
use sqlx::{AssertSqlSafe, ConnectOptions as _, MySqlConnection, Row as _};
use tokio::runtime::Runtime;

use super::bed::{Bed, report as report_in};

pub fn a_script_that_no_other_session_follows_is_applied(server: &Server) {
    let limited = |count: u32| {
        let mut bed = Bed::new(server);
        server.sql("", &format!("ALTER USER {}@'%' WITH MAX_USER_CONNECTIONS 1", bed.user));
        for number in 1..=count {
            bed.script(&format!("00{number}"), &format!("CREATE TABLE a{number} (b int)"));
        }
        bed
    };
    assert_eq!(limited(1).succeeds("r1")["appliedNow"], 1, "nothing follows");
    let bed = limited(2);
    let result = bed.fails("r1", 10);
    assert_eq!((&result["appliedNow"], &result["appliedCount"]), (&json!(1), &json!(1)), "{result}");
    let error = &result["lastError"];
    assert_eq!((&error["class"], &error["id"]), (&json!("Connection"), &json!(null)), "{error}");
    assert!(error["message"].as_str().unwrap().contains("no session for script 002"), "{error}");
    assert_eq!(bed.history(), ["001 applied"]);
    server.sql("", &format!("ALTER USER {}@'%' WITH MAX_USER_CONNECTIONS 0", bed.user));
    assert_eq!(bed.succeeds("r2")["appliedNow"], 1);
}

pub fn nothing_is_taken_back_for_want_of_a_session(server: &Server) {
    let mut bed = Bed::new(server);
    bed.assignment["onFailure"] = json!("RevertThisRun");
    bed.script("001", "CREATE TABLE a (b int)");
    bed.down("001", "DROP TABLE a");
    // No other session gets in by the old one.
    let password = if server.engine == "MySQL" { "'another'" } else { "PASSWORD('another')" };
    bed.script("002", &format!("SET PASSWORD = {password}"));
    bed.script("003", "INSERT INTO a VALUES (3)");
    let result = bed.fails("r1", 20);
    assert_eq!(result["lastError"]["class"], "Authentication", "{result}");
    assert_eq!((&result["appliedNow"], &result["reverted"]), (&json!(2), &json!(null)), "{result}");
    assert_eq!(bed.history(), ["001 applied", "002 applied"]);
    std::fs::write(bed.path("credentials/password"), "another").unwrap();
    assert_eq!(bed.succeeds("r2")["appliedNow"], 1);
    assert_eq!(bed.value("SELECT CAST(b AS CHAR) FROM a"), "3");
}

/// Another session, which takes the lock of a run, as the next run could.
struct Thief {
    runtime: Runtime,
    session: MySqlConnection,
    gate: String,
}

impl Thief {
    fn new(bed: &Bed<'_>) -> Self {
        let runtime = Runtime::new().unwrap();
        let session = runtime.block_on(bed.server.mysql_options(&bed.name).connect()).unwrap();
        let mut thief = Self { runtime, session, gate: format!("{}/gate", bed.name) };
        thief.take(&format!("'{}'", thief.gate));
        thief
    }

    fn ask(&mut self, text: &str) -> String {
        let sql = sqlx::raw_sql(AssertSqlSafe(text.to_owned()));
        let row = self.runtime.block_on(sql.fetch_one(&mut self.session)).unwrap();
        row.try_get_unchecked(0).unwrap()
    }

    fn take(&mut self, name: &str) {
        assert_eq!(self.ask(&format!("SELECT CAST(GET_LOCK({name}, 0) AS CHAR)")), "1", "{name} is free");
    }

    /// What a script does to lose the lock, and to wait then until it is stolen.
    fn bait(&self) -> String {
        format!("SELECT RELEASE_ALL_LOCKS(); SELECT GET_LOCK('{}', 120)", self.gate)
    }

    /// Takes the second half of the lock once a script waits, and lets the script go on.
    fn steal(&mut self, bed: &Bed<'_>) {
        let waiting = format!(
            "SELECT CAST(COUNT(*) AS CHAR) FROM information_schema.processlist WHERE info LIKE '%{}%' \
             AND info NOT LIKE '%processlist%'",
            self.gate
        );
        eventually(|| (bed.value(&waiting) == "1").then_some(()).ok_or("no script waits"));
        let series = format!("gatehouse/{}.gatehouse_migrations/shop", bed.name);
        self.take(&format!(
            "CONCAT('gatehouse/', TRIM(LEADING '0' FROM LEFT(SHA2('{series}', 256), 16)), '/2')"
        ));
        self.ask(&format!("SELECT CAST(RELEASE_LOCK('{}') AS CHAR)", self.gate));
    }
}

/// Scripts of which the second one loses the lock and then writes to that table.
fn with_bait(bed: &mut Bed<'_>, table: &str) -> Thief {
    let thief = Thief::new(bed);
    bed.assignment["onFailure"] = json!("RevertThisRun");
    bed.script("001", "CREATE TABLE a (b int)");
    bed.down("001", "DROP TABLE a");
    bed.script("002", &format!("{}; INSERT INTO {table} VALUES (2)", thief.bait()));
    bed.script("003", "INSERT INTO a VALUES (3)");
    thief
}

pub fn no_script_runs_where_the_lock_was_not_passed_on(server: &Server) {
    let mut bed = Bed::new(server);
    let mut thief = with_bait(&mut bed, "a");
    let (program, report) = bed.start("r1");
    thief.steal(&bed);
    assert_eq!(program.code(), Some(10));
    let result = report_in(&report);
    assert_eq!(result["lastError"]["class"], "Busy", "{result}");
    assert_eq!((&result["appliedNow"], &result["appliedCount"]), (&json!(2), &json!(2)), "{result}");
    assert_eq!(bed.history(), ["001 applied", "002 applied"]);
    drop(thief);
    assert_eq!(bed.succeeds("r2")["appliedNow"], 1);
}

pub fn nothing_is_taken_back_without_the_lock(server: &Server) {
    let mut bed = Bed::new(server);
    let mut thief = with_bait(&mut bed, "absent");
    let (program, report) = bed.start("r1");
    thief.steal(&bed);
    assert_eq!(program.code(), Some(20));
    let result = report_in(&report);
    assert_eq!((&result["lastError"]["id"], &result["reverted"]), (&json!("002"), &json!(null)), "{result}");
    assert_eq!(bed.history(), ["001 applied", "002 failed"]);
    assert_eq!(bed.value("SELECT CAST(COUNT(*) AS CHAR) FROM a"), "0");
}
