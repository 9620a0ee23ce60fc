//! What dumps and scripts of other tools have in them, on PostgreSQL: settings that turn limits off, what is meant for psql,
//! what hides the end of a transaction, and what no transaction takes.

use kit::databases::Servers;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection};
use tokio::runtime::{Builder, Runtime};

use super::bed::Bed;

/// A session of the superuser that holds what these statements lock.
struct Holder {
    runtime: Runtime,
    session: PgConnection,
}

impl Holder {
    fn of(bed: &Bed<'_>, sql: &str) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let options = bed.server.postgres_options().database(&bed.name);
        let mut session = runtime.block_on(options.connect()).unwrap();
        runtime
            .block_on(sqlx::raw_sql(AssertSqlSafe(format!("BEGIN; {sql}"))).execute(&mut session))
            .unwrap();
        Self { runtime, session }
    }

    /// It has held all the time.
    fn ends(mut self) {
        self.runtime.block_on(sqlx::raw_sql("COMMIT").execute(&mut self.session)).unwrap();
    }
}

fn own(bed: &Bed<'_>, table: &str) -> String {
    format!("ALTER TABLE {table} OWNER TO {}", bed.user)
}

pub fn a_limit_holds_whatever_a_script_sets(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.sql(&format!("CREATE TABLE held (id int PRIMARY KEY); {}", own(&bed, "held")));
    bed.sql(&format!(
        "ALTER ROLE {} SET lock_timeout = 0; ALTER ROLE {0} SET statement_timeout = 0",
        bed.user
    ));
    bed.assignment["lockWait"] = json!("1ms");
    let holder = Holder::of(&bed, "LOCK TABLE held");
    for (number, sets) in [
        "SET lock_timeout = 0",
        "SET LOCAL lock_timeout = 0",
        "RESET ALL",
        "SELECT set_config('lock_timeout', '0', false)",
        "DO $$ BEGIN SET lock_timeout = 0; ALTER TABLE held ADD d int; END $$",
    ]
    .iter()
    .enumerate()
    {
        bed.script("001", &format!("{sets};\nALTER TABLE held ADD c int"))["timeouts"] =
            json!({ "lock": "300ms" });
        let error = bed.fails(&format!("lock{number}"), 10)["lastError"].clone();
        assert_eq!(
            (&error["class"], &error["id"]),
            (&json!("LockTimeout"), &json!("001")),
            "{sets}: {error}"
        );
    }
    let alone = "DO $$ BEGIN PERFORM set_config('lock_timeout', '0', false); LOCK TABLE held; END $$";
    bed.script("001", alone)["transaction"] = json!("None");
    assert_eq!(bed.fails("alone", 10)["lastError"]["class"], "LockTimeout");
    holder.ends();

    bed.script("001", "SET statement_timeout = 0;\nSELECT pg_sleep(600)");
    bed.assignment["scripts"][0] = json!({
        "id": "001", "up": { "file": "001.sql" }, "timeouts": { "statement": "300ms" },
    });
    let error = bed.fails("statement", 20)["lastError"].clone();
    assert_eq!((&error["class"], &error["statement"]), (&json!("StatementTimeout"), &json!(2)), "{error}");
}

pub fn a_limit_holds_while_a_script_is_committed(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script(
        "001",
        "CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (1);\
         CREATE TABLE child (id int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)",
    );
    bed.succeeds("r1");
    bed.assignment["lockWait"] = json!("1ms");
    let holder = Holder::of(&bed, "SELECT * FROM parent FOR UPDATE");
    bed.script("002", "SET lock_timeout = 0; INSERT INTO child VALUES (1)")["timeouts"] =
        json!({ "lock": "300ms" });
    let error = bed.fails("r2", 10)["lastError"].clone();
    assert_eq!((&error["class"], &error["id"]), (&json!("LockTimeout"), &json!("002")), "{error}");
    holder.ends();
    bed.succeeds("r3");
}

pub fn no_end_of_a_transaction_hides(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    let half = "CREATE TABLE half ();\n";
    for (number, text) in [
        "SELECT E'a'\n'\\''; COMMIT; --'",
        "-- a\rCOMMIT;",
        "CREATE FUNCTION f() RETURNS date BEGIN ATOMIC SELECT begin FROM (VALUES (now()::date)) AS slot (begin); END;\nCOMMIT;",
        "SELECT (1;\nCOMMIT;",
        "SELECT 'open;\nCOMMIT;",
    ]
    .iter()
    .enumerate()
    {
        bed.script("001", &format!("{half}{text}\nSELECT * FROM absent"));
        let blocked = bed.fails(&format!("r{number}"), 20)["blocked"].clone();
        assert_eq!(blocked["reason"], "NotRunnable", "{text}: {blocked}");
    }
    // A session in which a backslash escapes ends this text earlier than it is read here.
    bed.sql(&format!("ALTER ROLE {} SET standard_conforming_strings = off", bed.user));
    bed.script("001", &format!("{half}SELECT 'a\\'' ; COMMIT; --'\n;SELECT * FROM absent"));
    let error = bed.fails("escape", 20)["lastError"].clone();
    assert_eq!((&error["statement"], &error["sqlState"]), (&json!(2), &json!("42601")), "{error}");
    assert_eq!(bed.value("SELECT to_regclass('half')::text"), "NULL");
    bed.sql(&format!("ALTER ROLE {} RESET standard_conforming_strings", bed.user));
    // The same words where they end nothing.
    bed.script(
        "001",
        "CREATE FUNCTION f() RETURNS date BEGIN ATOMIC SELECT begin FROM (VALUES (now()::date)) AS slot (begin); END;\n\
         CREATE TABLE a AS SELECT E'a'\n'\\'; COMMIT; ' AS b; SELECT 'x; end', $t$x; commit$t$;",
    );
    bed.succeeds("whole");
    assert_eq!(bed.value("SELECT b FROM a"), "a'; COMMIT; ");
}

pub fn what_is_for_another_program_is_refused_by_name(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    for (number, (text, said)) in [
        ("\\restrict abc\nCREATE TABLE a ()", "has \\restrict in line 1: a command of psql"),
        ("CREATE TABLE a ();\n\\connect shop", "has \\connect in line 2"),
        ("CREATE TABLE a (b text);\nCOPY a (b) FROM stdin;\nit's\n\\.\n", "has COPY FROM STDIN in line 2"),
        ("CREATE TABLE a ();\nCOPY a TO STDOUT", "has COPY TO STDOUT in line 2"),
        ("CREATE TABLE a ();\nSET client_encoding = 'LATIN1'", "has SET client_encoding in line 2"),
    ]
    .iter()
    .enumerate()
    {
        bed.script("001", text);
        for mode in ["Plan", "Rehearse", "Apply"] {
            bed.assignment["mode"] = json!(mode);
            let blocked = bed.fails(&format!("{mode}{number}"), 20)["blocked"].clone();
            assert_eq!(
                (&blocked["reason"], &blocked["id"]),
                (&json!("NotRunnable"), &json!("001")),
                "{blocked}"
            );
            assert!(blocked["message"].as_str().unwrap().contains(said), "{blocked}");
        }
    }
    assert_eq!(bed.value("SELECT to_regclass('a')::text"), "NULL");
    // A script that counts as applied does not run.
    bed.sql("CREATE TABLE of_old ()");
    bed.script("002", "CREATE TABLE of_now ()");
    bed.assignment["baseline"] = json!("001");
    assert_eq!(bed.succeeds("baseline")["appliedNow"], 1);
}

pub fn every_answer_of_the_server_is_understood(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "LISTEN c; NOTIFY c; CREATE TABLE a ()");
    bed.script("002", "DO $$ BEGIN LISTEN c; NOTIFY c; END $$; CREATE TABLE b ()");
    bed.script("003", "DO $$ BEGIN LISTEN c; NOTIFY c; CREATE TABLE d (); END $$")["transaction"] =
        json!("None");
    bed.script("004", "CREATE TABLE e ()");
    assert_eq!(bed.succeeds("r1")["appliedNow"], 4);
    let fails = |bed: &Bed<'_>, run: &str| {
        let error = bed.fails(run, 20)["lastError"].clone();
        assert_eq!(error["id"], "005", "{error}");
        error
    };
    bed.script("005", "CREATE TABLE f (); SELECT set_config('client_encoding', 'LATIN1', false)");
    let error = fails(&bed, "r2");
    assert!(error["message"].as_str().unwrap().contains("client_encoding"), "{error}");
    // The answer is not in UTF-8.
    bed.script("005", "SELECT set_config('client_encoding', 'LATIN1', false); SELECT 1 FROM \"a\u{fc}\"");
    fails(&bed, "r3");
    assert_eq!(bed.value("SELECT to_regclass('f')::text"), "NULL");
    assert_eq!(bed.history()[4], "005 failed");
}

pub fn what_needs_no_transaction_is_known_before_anything_runs(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "CREATE TABLE a (b int)");
    for (number, (text, named)) in [
        ("CREATE INDEX CONCURRENTLY i ON a (b)", "CREATE INDEX CONCURRENTLY"),
        ("SELECT 1;\nVACUUM a", "VACUUM in line 2"),
        ("REINDEX (CONCURRENTLY) TABLE a", "REINDEX CONCURRENTLY"),
        ("ALTER SYSTEM SET work_mem = '4MB'", "ALTER SYSTEM"),
        ("DISCARD ALL", "DISCARD ALL"),
        ("CLUSTER", "CLUSTER"),
        ("ALTER TABLE a DETACH PARTITION p CONCURRENTLY", "DETACH PARTITION CONCURRENTLY"),
    ]
    .iter()
    .enumerate()
    {
        bed.script("002", text);
        for mode in ["Plan", "Apply"] {
            bed.assignment["mode"] = json!(mode);
            let blocked = bed.fails(&format!("{mode}{number}"), 20)["blocked"].clone();
            let message = blocked["message"].as_str().unwrap();
            assert_eq!(
                (&blocked["reason"], &blocked["id"]),
                (&json!("NotRunnable"), &json!("002")),
                "{blocked}"
            );
            for part in [named, "transaction: None", "--without-transaction"] {
                assert!(message.contains(part), "{message}");
            }
        }
    }
    assert_eq!(bed.value("SELECT to_regclass('a')::text"), "NULL");
    // The server alone knows what a block does.
    bed.script("002", "DO $$ BEGIN INSERT INTO a VALUES (1); COMMIT; END $$");
    let error = bed.fails("block", 20)["lastError"].clone();
    assert_eq!(error["sqlState"], "2D000");
    assert!(error["message"].as_str().unwrap().contains("--without-transaction"), "{error}");
}

pub fn a_rehearsal_skips_what_needs_no_transaction(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "CREATE TABLE a (b int)");
    bed.script("002", "CREATE INDEX CONCURRENTLY i ON a (b)")["transaction"] = json!("None");
    bed.script("003", "INSERT INTO a VALUES (1)");
    bed.assignment["mode"] = json!("Rehearse");
    let result = bed.succeeds("r1");
    assert_eq!(result["outcome"], "Rehearsed");
    assert!(result["plan"]["warnings"][0].as_str().unwrap().contains("script 002 "), "{result}");
    bed.script("003", "ALTER TABLE a ADD CONSTRAINT c UNIQUE USING INDEX i");
    let error = bed.fails("r2", 20)["lastError"].clone();
    assert_eq!(error["id"], "003");
    assert!(error["message"].as_str().unwrap().contains("script 002 ahead of it"), "{error}");
}

pub fn a_rehearsal_reports_what_it_cannot_show(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "CREATE TYPE mood AS ENUM ('sad'); CREATE TABLE c (m mood)");
    bed.succeeds("r1");
    bed.script("11", "ALTER TYPE mood ADD VALUE 'glad'");
    bed.script("12", "INSERT INTO c VALUES ('glad')");
    bed.assignment["mode"] = json!("Rehearse");
    let blocked = bed.fails("r2", 20)["blocked"].clone();
    assert_eq!((&blocked["reason"], &blocked["id"]), (&json!("NotRehearsable"), &json!("12")), "{blocked}");
    bed.assignment["mode"] = json!("Apply");
    assert_eq!(bed.succeeds("r3")["appliedNow"], 2);
    // A script that fails by itself is not the rehearsal's.
    bed.script("31", "ALTER TYPE mood ADD VALUE 'calm'; INSERT INTO c VALUES ('calm')");
    bed.assignment["mode"] = json!("Rehearse");
    assert_eq!(bed.fails("own", 20)["lastError"]["sqlState"], "55P04");
}

/// Tables with constraints of each kind that a commit checks, and none of their names beside.
const DEFERRED: &str = "CREATE TABLE p (id int PRIMARY KEY); \
    CREATE TABLE c (p int REFERENCES p DEFERRABLE INITIALLY DEFERRED); \
    CREATE TABLE u (n int CONSTRAINT \"Un;ique\" UNIQUE DEFERRABLE INITIALLY DEFERRED); \
    CREATE TABLE x (r int4range, EXCLUDE USING gist (r WITH &&) DEFERRABLE INITIALLY DEFERRED); \
    CREATE TABLE now (p int REFERENCES p DEFERRABLE, n int UNIQUE DEFERRABLE); \
    CREATE TABLE t (n int); \
    CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS \
    $$ BEGIN IF NEW.n % 2 = 0 THEN RAISE check_violation; END IF; INSERT INTO p VALUES (NEW.n); RETURN NEW; END $$; \
    CREATE CONSTRAINT TRIGGER odd AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED \
    FOR EACH ROW EXECUTE FUNCTION odd(); \
    CREATE SCHEMA apart; CREATE TABLE apart.c (p int REFERENCES p DEFERRABLE INITIALLY DEFERRED)";

pub fn a_rehearsal_checks_what_a_commit_checks(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", DEFERRED);
    bed.succeeds("r1");
    for (number, text) in [
        "INSERT INTO c VALUES (8)",
        "INSERT INTO apart.c VALUES (8)",
        "INSERT INTO u VALUES (1), (1)",
        "INSERT INTO x VALUES ('[1,3]'), ('[2,4]')",
        "INSERT INTO t VALUES (2)",
        "SET CONSTRAINTS ALL DEFERRED; INSERT INTO now VALUES (8)",
        "CREATE TABLE fresh (p int REFERENCES p DEFERRABLE INITIALLY DEFERRED); INSERT INTO fresh VALUES (8)",
    ]
    .into_iter()
    .enumerate()
    {
        bed.script("002", text);
        let failure = |bed: &mut Bed, mode: &str| {
            bed.assignment["mode"] = json!(mode);
            bed.fails(&format!("{mode}{number}"), 20)["lastError"].clone()
        };
        let rehearsed = failure(&mut bed, "Rehearse");
        assert_eq!(rehearsed, failure(&mut bed, "Apply"), "{text}");
        assert_eq!(rehearsed["id"], "002", "{text}: {rehearsed}");
        assert!(rehearsed["sqlState"].as_str().is_some_and(|state| state.starts_with("23")), "{rehearsed}");
    }
}

/// Each script begins with the constraints as they are by themselves, and finds nothing that is still to be checked.
pub fn a_rehearsal_defers_constraints_within_each_script(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", DEFERRED);
    let texts = [
        "INSERT INTO c VALUES (1); INSERT INTO p VALUES (1); INSERT INTO u VALUES (1)",
        // The events of the script before have run, or the table could not be changed.
        "ALTER TABLE c ADD n int; INSERT INTO c VALUES (2); INSERT INTO p VALUES (2)",
        "UPDATE u SET n = 2; INSERT INTO u VALUES (2), (1); DELETE FROM u WHERE n = 2",
        "SET CONSTRAINTS ALL DEFERRED; INSERT INTO now VALUES (4, 4), (4, 4); INSERT INTO p VALUES (4); \
         DELETE FROM now",
        // A constraint that is not deferred by itself is not deferred by the script before.
        "DO $$ BEGIN INSERT INTO now VALUES (8, 8); EXCEPTION WHEN foreign_key_violation THEN NULL; END $$",
        "SET CONSTRAINTS ALL IMMEDIATE; INSERT INTO t VALUES (5)",
        // Of the trigger that was deferred, the row is there.
        "DELETE FROM p WHERE id = 5; INSERT INTO t VALUES (7)",
        "DELETE FROM p WHERE id = 7; SELECT 1 / (CASE WHEN EXISTS (SELECT FROM p WHERE id IN (5, 7)) THEN 0 ELSE 1 END)",
        "CREATE TABLE late (p int REFERENCES p DEFERRABLE INITIALLY DEFERRED); INSERT INTO late VALUES (9); \
         INSERT INTO p VALUES (9)",
        "INSERT INTO late VALUES (10); INSERT INTO p VALUES (10); DROP TABLE apart.c",
    ];
    for (number, text) in texts.iter().enumerate() {
        bed.script(&format!("{:03}", number + 2), text);
    }
    for (mode, outcome) in [("Rehearse", "Rehearsed"), ("Apply", "Succeeded")] {
        bed.assignment["mode"] = json!(mode);
        assert_eq!(bed.succeeds(mode)["outcome"], outcome);
    }
}

pub fn a_failure_names_its_statement_and_its_line(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    for (number, (text, statement, line)) in [
        ("SELECT 1;\nSELECT 2;\nSELEC 3;\nSELECT 4;\nSELECT 5", 3, 3),
        ("SELECT 1;\n/* \u{fc} */ SELECT\n  \u{fc}\n;", 2, 3),
        ("SELECT 1;\n\nSELECT 1 /\n0", 2, 3),
        ("SELECT 1;\nSELECT 'it''s';\nSELECT\n1 FROM absent", 3, 4),
    ]
    .iter()
    .enumerate()
    {
        bed.script("001", text);
        let error: Value = bed.fails(&format!("r{number}"), 20)["lastError"].clone();
        let end = format!(" in line {line}");
        assert_eq!(error["statement"], json!(statement), "{text}: {error}");
        assert!(error["message"].as_str().unwrap().ends_with(&end), "{text}: {error}");
    }
}
