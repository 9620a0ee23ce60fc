//! What a run on PostgreSQL does, and what it refuses.

use kit::databases::Servers;
use serde_json::json;

use super::bed::Bed;

fn three(bed: &mut Bed<'_>) {
    bed.script("001", "CREATE TABLE ledger (id text); INSERT INTO ledger VALUES ('001');");
    bed.script("002", "INSERT INTO ledger VALUES ('002');")["kind"] = json!("Data");
    bed.script("003", "CREATE INDEX CONCURRENTLY ledger_idx ON ledger (id)")["transaction"] = json!("None");
}

pub fn three_scripts_run_once_however_often_they_are_asked_for(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    three(&mut bed);
    let scripts = bed.assignment["scripts"].clone();
    bed.assignment["scripts"].as_array_mut().unwrap().truncate(1);
    let result = bed.succeeds("r1");
    assert_eq!((&result["outcome"], &result["appliedNow"]), (&json!("Succeeded"), &json!(1)), "{result}");
    bed.assignment["scripts"] = scripts;
    let result = bed.succeeds("r2");
    assert_eq!(result["appliedNow"], 2);
    assert_eq!(result["applied"][2]["id"], "003");
    assert_eq!(result["applied"][2]["run"], "r2");
    assert!(result["server"]["version"].as_str().unwrap().starts_with("15."), "{result}");
    for run in ["r3", "r4"] {
        let result = bed.succeeds(run);
        assert_eq!((&result["appliedNow"], &result["appliedCount"]), (&json!(0), &json!(3)));
        assert_eq!(result["plan"]["pendingCount"], 0);
    }
    assert_eq!(bed.sql("SELECT id FROM ledger ORDER BY id"), [["001"], ["002"]]);
    assert_eq!(bed.history(), ["001 applied", "002 applied", "003 applied"]);
}

pub fn an_edited_script_is_blocked_with_both_checksums(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    three(&mut bed);
    let before = bed.succeeds("r1")["applied"][0]["checksum"].clone();
    bed.script("001", "CREATE TABLE ledger (id text); SELECT 'edited';");
    bed.script("004", "CREATE TABLE later ()");
    let result = bed.fails("r2", 20);
    let blocked = &result["blocked"];
    assert_eq!(
        (&result["outcome"], &blocked["reason"], &blocked["id"], &blocked["expected"]),
        (&json!("Blocked"), &json!("ChecksumMismatch"), &json!("001"), &before)
    );
    let (found, message) = (blocked["found"].as_str().unwrap(), blocked["message"].as_str().unwrap());
    assert!(message.contains(found) && message.contains(before.as_str().unwrap()), "{message}");
    assert_eq!(bed.value("SELECT to_regclass('later')::text"), "NULL", "nothing else runs");
    bed.assignment["acceptChecksums"] = json!({ "001": found });
    bed.succeeds("r3");
    bed.assignment["acceptChecksums"] = json!({});
    bed.succeeds("r4");
    assert_eq!(bed.value("SELECT to_regclass('later')::text"), "later");
    bed.assignment["scripts"].as_array_mut().unwrap().remove(1);
    assert_eq!(bed.fails("r5", 20)["blocked"]["reason"], "HistoryDiverged");
}

pub fn an_accepted_checksum_changes_nothing_else_of_its_row(servers: &Servers) {
    for server in [&servers.postgres, &servers.mariadb] {
        let mut bed = Bed::new(server);
        bed.script("001", "CREATE TABLE a (b int)");
        bed.succeeds("r1");
        let cast = if server.engine == "PostgreSQL" { "text" } else { "char" };
        let columns = ["position", "state", "changed_at", "duration_ms", "run", "object_uid", "session"];
        let columns = columns.map(|column| format!("CAST({column} AS {cast})")).join(", ");
        let rest = format!("SELECT {columns} FROM gatehouse_migrations");
        let (before, checksum) = (bed.sql(&rest), bed.value("SELECT checksum FROM gatehouse_migrations"));
        bed.script("001", "CREATE TABLE a (b int) -- edited");
        let found = bed.fails("r2", 20)["blocked"]["found"].clone();
        bed.assignment["acceptChecksums"] = json!({ "001": found });
        bed.assignment["object"]["uid"] = json!("another");
        let applied = bed.succeeds("r3")["applied"].clone();
        assert_eq!((&applied[0]["checksum"], &applied[0]["run"]), (&found, &json!("r1")));
        assert_eq!(bed.sql(&rest), before);
        assert_ne!(bed.value("SELECT checksum FROM gatehouse_migrations"), checksum);
    }
}

pub fn a_script_before_an_applied_one_runs_where_that_is_allowed(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "CREATE TABLE ledger (id text)");
    bed.script("003", "INSERT INTO ledger VALUES ('003')");
    bed.succeeds("r1");
    bed.script("002", "INSERT INTO ledger VALUES ('002')");
    bed.assignment["scripts"].as_array_mut().unwrap().swap(1, 2);
    let blocked = bed.fails("r2", 20)["blocked"].clone();
    assert_eq!(
        (&blocked["reason"], &blocked["id"], &blocked["found"]),
        (&json!("OutOfOrder"), &json!("002"), &json!("003")),
        "{blocked}"
    );
    assert_eq!(bed.history(), ["001 applied", "003 applied"]);
    assert_eq!(bed.sql("SELECT id FROM ledger"), [["003"]]);
    bed.assignment["outOfOrder"] = json!("Allow");
    assert_eq!(bed.succeeds("r3")["appliedNow"], 1);
    assert_eq!(bed.history(), ["001 applied", "003 applied", "002 applied"], "as they ran");
    assert_eq!(bed.sql("SELECT id FROM ledger ORDER BY id"), [["002"], ["003"]]);
    bed.assignment["outOfOrder"] = json!("Reject");
    assert_eq!(bed.succeeds("r4")["appliedNow"], 0, "none stands before an applied one any more");
}

pub fn a_plan_and_a_rehearsal_write_nothing(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "CREATE TABLE a (b int)");
    bed.script("002", "INSERT INTO a VALUES (1)");
    bed.script("003", "SELECT 1 FROM a WHERE b > 1")["kind"] = json!("Check");
    bed.assignment["mode"] = json!("Plan");
    let plan = bed.succeeds("r1")["plan"].clone();
    assert_eq!((&plan["pending"], &plan["pendingCount"]), (&json!(["001", "002", "003"]), &json!(3)));
    bed.assignment["mode"] = json!("Rehearse");
    let result = bed.succeeds("r2");
    assert_eq!((&result["outcome"], &result["plan"]), (&json!("Rehearsed"), &plan));
    let tables = "SELECT count(*)::text FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(bed.value(tables), "0");
    bed.script("002", "INSERT INTO a VALUES (1);\nINSERT INTO absent VALUES (2)");
    let error = bed.fails("r3", 20)["lastError"].clone();
    assert_eq!(
        (&error["id"], &error["statement"], &error["sqlState"]),
        (&json!("002"), &json!(2), &json!("42P01"))
    );
    assert_eq!(error["message"], "relation \"absent\" does not exist in line 2");
    assert_eq!(bed.value(tables), "0");
}

pub fn a_rehearsal_is_like_applying(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "CREATE TABLE a (b int); SET search_path = ''");
    bed.script("002", "SELECT 1 FROM a WHERE b > 1")["kind"] = json!("Check");
    bed.script("003", "INSERT INTO a VALUES (1)");
    bed.assignment["mode"] = json!("Rehearse");
    assert_eq!(bed.succeeds("r1")["outcome"], "Rehearsed");
    // A check only reads.
    bed.script("002", "INSERT INTO a VALUES (2) RETURNING 1")["kind"] = json!("Check");
    let error = bed.fails("r2", 20)["lastError"].clone();
    assert_eq!((&error["id"], &error["sqlState"]), (&json!("002"), &json!("25006")), "{error}");
    // Its timeouts count.
    bed.script("002", "SELECT 1 FROM a WHERE b > 1");
    bed.sql(&format!("CREATE TABLE held (b int); ALTER TABLE held OWNER TO {}", bed.user));
    bed.script("004", "ALTER TABLE held ADD c int")["timeouts"] = json!({ "lock": "50ms" });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let holder = bed.server.postgres_options().database(&bed.name);
    let mut holder = runtime.block_on(sqlx::ConnectOptions::connect(&holder)).unwrap();
    runtime.block_on(sqlx::raw_sql("BEGIN; LOCK TABLE held").execute(&mut holder)).unwrap();
    assert_eq!(bed.fails("r3", 10)["lastError"]["class"], "LockTimeout");
    bed.script("004", "ALTER TABLE held ADD c int")["timeouts"] =
        json!({ "lock": "2m", "statement": "100ms" });
    assert_eq!(
        bed.fails("r4", 20)["lastError"]["class"],
        "StatementTimeout",
        "the lock is waited for for longer"
    );
    // An end of the transaction would not be seen in what cannot be split.
    bed.script("004", "CREATE TABLE stays (); COMMIT; SELECT 'open");
    assert_eq!(bed.fails("r5", 20)["blocked"]["reason"], "NotRunnable");
    let tables = "SELECT count(*)::text FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(bed.value(tables), "1");
}

pub fn a_plan_is_reported_once_the_history_is_read(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "CREATE TABLE a ()");
    bed.assignment["database"]["port"] = json!(1);
    for mode in ["Plan", "Rehearse", "Apply"] {
        bed.assignment["mode"] = json!(mode);
        let result = bed.fails(&format!("r_{mode}"), 10);
        assert_eq!(
            (&result["plan"], &result["lastError"]["class"]),
            (&json!(null), &json!("Connection")),
            "{result}"
        );
    }
}

pub fn another_plan_than_the_approved_one_does_not_run(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "CREATE TABLE a ()");
    bed.assignment["mode"] = json!("Plan");
    let hash = bed.succeeds("r1")["plan"]["hash"].clone();
    bed.assignment["mode"] = json!("Apply");
    bed.assignment["approvedPlanHash"] = hash.clone();
    bed.script("001", "CREATE TABLE b ()");
    for mode in ["Rehearse", "Revert", "Apply"] {
        bed.assignment["mode"] = json!(mode);
        let blocked = bed.fails("r2", 20)["blocked"].clone();
        assert_eq!((&blocked["reason"], &blocked["expected"]), (&json!("PlanChanged"), &hash), "{mode}");
    }
    bed.script("001", "CREATE TABLE a ()")["planned"] = json!(format!("sha256:{}", "0".repeat(64)));
    assert_eq!(bed.fails("r3", 20)["blocked"]["reason"], "SourceChanged");
    bed.script("001", "CREATE TABLE a ()").as_object_mut().unwrap().remove("planned");
    bed.succeeds("r4");
    assert_eq!(bed.value("SELECT to_regclass('a')::text || coalesce(to_regclass('b')::text, '')"), "a");
}

pub fn a_baseline_counts_as_applied(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.sql("CREATE TABLE of_old (a int)");
    bed.script("001", "CREATE TABLE of_old (a int)");
    bed.script("002", "CREATE TABLE of_now (a int)");
    bed.assignment["mode"] = json!("Plan");
    let warnings = bed.succeeds("r0")["plan"]["warnings"].clone();
    assert!(warnings[0].as_str().unwrap().contains("baseline"), "{warnings}");
    bed.assignment["mode"] = json!("Apply");
    bed.assignment["baseline"] = json!("001");
    let result = bed.succeeds("r1");
    assert_eq!((&result["appliedNow"], &result["appliedCount"]), (&json!(1), &json!(2)));
    assert_eq!(bed.history(), ["001 baseline", "002 applied"]);
    bed.script("001", "CREATE TABLE of_old (a bigint)");
    assert_eq!(bed.fails("r2", 20)["blocked"]["id"], "001");
}

pub fn a_baseline_that_was_forgotten_counts_from_the_next_run_on(servers: &Servers) {
    for server in [&servers.postgres, &servers.mariadb] {
        let mut bed = Bed::new(server);
        bed.sql("CREATE TABLE of_old (a int)");
        bed.script("001", "CREATE TABLE of_old (a int)");
        bed.script("002", "CREATE TABLE of_now (a int)");
        assert_eq!(bed.fails("r1", 20)["lastError"]["id"], "001");
        assert_eq!(bed.history(), ["001 failed"]);
        bed.assignment["baseline"] = json!("001");
        assert_eq!(bed.succeeds("r2")["appliedNow"], 1);
        assert_eq!(bed.history(), ["001 baseline", "002 applied"]);
    }
}

pub fn a_check_that_finds_rows_fails(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "CREATE TABLE a (b text); INSERT INTO a VALUES ('private')");
    bed.script("002", "SELECT b FROM a")["kind"] = json!("Check");
    bed.script("003", "INSERT INTO a VALUES ('more')")["kind"] = json!("Check");
    let error = bed.fails("r1", 20)["lastError"].clone();
    assert_eq!((&error["class"], &error["id"]), (&json!("CheckFailed"), &json!("002")));
    assert!(!error["message"].as_str().unwrap().contains("private"));
    bed.sql("DELETE FROM a");
    let error = bed.fails("r2", 20)["lastError"].clone();
    assert_eq!((&error["id"], &error["sqlState"]), (&json!("003"), &json!("25006")), "a check only reads");
    assert_eq!(error["class"], "Permission");
    assert_eq!(bed.history(), ["001 applied", "002 applied", "003 failed"]);
}

pub fn a_server_that_takes_no_writes_is_tried_again(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "CREATE TABLE a ()");
    bed.sql(&format!("ALTER ROLE {} SET default_transaction_read_only = on", bed.user));
    let error = bed.fails("r1", 10)["lastError"].clone();
    assert_eq!((&error["class"], &error["sqlState"]), (&json!("ReadOnly"), &json!("25006")), "{error}");
    bed.sql(&format!("ALTER ROLE {} RESET default_transaction_read_only", bed.user));
    bed.succeeds("r2");
    assert_eq!(bed.history(), ["001 applied"]);
}

pub fn a_statement_that_takes_too_long_is_ended(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "CREATE TABLE a (); SELECT pg_sleep(600)")["timeouts"] =
        json!({ "statement": "300ms" });
    let error = bed.fails("r1", 20)["lastError"].clone();
    assert_eq!((&error["class"], &error["statement"]), (&json!("StatementTimeout"), &json!(2)));
    assert_eq!(bed.value("SELECT to_regclass('a')::text"), "NULL");
}

pub fn a_script_cannot_leave_its_transaction(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "CREATE TABLE a ();\nCOMMIT;\nCREATE TABLE b ()");
    let blocked = bed.fails("r1", 20)["blocked"].clone();
    assert_eq!(blocked["reason"], "NotRunnable");
    assert!(blocked["message"].as_str().unwrap().contains("COMMIT in line 2"), "{blocked}");
    // What a script sets does not reach the next one, nor does it lose the history.
    bed.script("001", "SELECT set_config('search_path', '', false); SET client_min_messages = debug5");
    bed.script("002", "CREATE TABLE c (); CREATE TEMP TABLE d ()");
    bed.succeeds("r2");
    assert_eq!(bed.value("SELECT to_regclass('public.c')::text"), "c");
}

pub fn what_a_script_leaves_in_its_session_does_not_reach_the_next_one(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    let left = "CREATE TEMP TABLE kept (a int); INSERT INTO kept VALUES (1); LISTEN news; \
                DECLARE c CURSOR WITH HOLD FOR SELECT * FROM kept";
    let seen = "SELECT to_regclass('pg_temp.kept')::text AS found UNION ALL SELECT name FROM pg_cursors WHERE name = 'c' \
                UNION ALL SELECT pg_listening_channels()";
    bed.script("001", left);
    bed.script(
        "002",
        &format!("CREATE TABLE seen AS SELECT found FROM ({seen}) AS s WHERE found IS NOT NULL"),
    );
    let check = format!("SELECT found FROM ({seen}) AS s WHERE found IS NOT NULL");
    bed.script("003", &check)["kind"] = json!("Check");
    bed.assignment["mode"] = json!("Rehearse");
    bed.succeeds("r1");
    bed.assignment["mode"] = json!("Apply");
    bed.succeeds("r2");
    assert_eq!(bed.sql("SELECT found FROM seen"), [[""; 1]; 0]);
    // The same where it failed, and its failure is written in the session that it left.
    bed.script("004", &format!("{left}; SELECT * FROM absent"));
    bed.fails("r3", 20);
    assert_eq!(bed.history()[3], "004 failed");
}

pub fn the_server_keeps_a_quiet_connection(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "SET tcp_keepalives_idle = 7200");
    // What a script sets does not reach the next one.
    bed.script("002", "CREATE TABLE a AS SELECT current_setting('tcp_keepalives_idle') AS idle");
    bed.succeeds("r1");
    assert_eq!(bed.value("SELECT idle FROM a"), "60");
}

pub fn scripts_of_a_folder_run_without_an_assignment(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("2_b", "CREATE INDEX CONCURRENTLY i ON a (b)");
    bed.script("1_a", "CREATE TABLE a (b int)");
    let port = servers.postgres.port.to_string();
    let call = |words: &[&str]| {
        let mut command = kit::program::Program::gatehouse(kit::gatehouse!(), words);
        command.args([
            "--engine",
            "PostgreSQL",
            "--host",
            "127.0.0.1",
            "--port",
            &port,
            "--tls-mode",
            "Disable",
        ]);
        command.args(["--database", &bed.name]);
        command.env("GATEHOUSE_DATABASE_USERNAME", &bed.user);
        command.env("GATEHOUSE_DATABASE_PASSWORD", super::bed::PASSWORD);
        command
    };
    let scripts = bed.path("scripts").display().to_string();
    let run = ["migrate", "run", "--scripts", &scripts, "--without-transaction", "2_b"];
    let ended = bed.ended(call(&run), &bed.path("none"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(bed.history(), ["1_a applied", "2_b applied"]);
    let output = call(&["migrate", "status"]).output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&status["outcome"], &status["appliedCount"]), (&json!("Read"), &json!(2)));
    let output = call(&["migrate", "run", "--scripts", "/nowhere"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere"));
}
