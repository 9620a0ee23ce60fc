//! Databases that have tables before gatehouse meets them.

use kit::databases::Servers;
use serde_json::json;

use super::bed::Bed;

/// A bed as it is for users: tables that are there before the first run are not ignored.
fn bed(server: &kit::databases::Server) -> Bed<'_> {
    let mut bed = Bed::new(server);
    bed.assignment.as_object_mut().unwrap().remove("existingTables");
    bed
}

pub fn a_forgotten_baseline_runs_nothing(servers: &Servers) {
    for server in [&servers.postgres, &servers.mariadb] {
        let mut bed = bed(server);
        bed.sql("CREATE TABLE of_old (a int); INSERT INTO of_old VALUES (1)");
        bed.script("001", "CREATE TABLE IF NOT EXISTS marks (a int)");
        bed.script("002", "CREATE TABLE of_old (a int)");
        bed.script("003", "CREATE TABLE of_now (a int)");
        for mode in ["Plan", "Apply"] {
            bed.assignment["mode"] = json!(mode);
            let blocked = bed.fails("r1", 20)["blocked"].clone();
            assert_eq!(blocked["reason"], "BaselineRequired", "{blocked}");
            let message = blocked["message"].as_str().unwrap();
            assert!(message.contains("of_old") && message.contains("--no-baseline"), "{message}");
        }
        bed.assignment["baseline"] = json!("002");
        assert_eq!(bed.succeeds("r2")["appliedNow"], 1);
        assert_eq!(bed.history(), ["001 baseline", "002 baseline", "003 applied"]);
        // A database with a history is not met for the first time, by another series either.
        bed.assignment["history"] = json!({ "series": "other" });
        bed.assignment["scripts"] = json!([]);
        bed.assignment.as_object_mut().unwrap().remove("baseline");
        bed.script("001", "CREATE TABLE of_other (a int)");
        assert_eq!(bed.succeeds("r3")["appliedNow"], 1);
    }
}

pub fn all_scripts_run_where_that_is_asked_for(servers: &Servers) {
    let mut bed = bed(&servers.postgres);
    bed.sql("CREATE TABLE of_others (a int)");
    bed.script("001", "CREATE TABLE a (b int)");
    bed.assignment["existingTables"] = json!("Ignore");
    bed.succeeds("r1");
    bed.assignment.as_object_mut().unwrap().remove("existingTables");
    bed.script("002", "CREATE TABLE c (b int)");
    assert_eq!(bed.succeeds("r2")["appliedNow"], 1);
}

pub fn tables_that_are_not_where_scripts_make_theirs_are_no_reason(servers: &Servers) {
    let mut bed = bed(&servers.postgres);
    bed.sql("CREATE SCHEMA of_others; CREATE TABLE of_others.a (b int)");
    // A table of an extension, as PostGIS has one in public.
    bed.sql("CREATE TABLE public.of_extension (a int)");
    let belongs = "INSERT INTO pg_depend SELECT 'pg_class'::regclass, 'public.of_extension'::regclass, 0, \
                   'pg_extension'::regclass, oid, 0, 'e' FROM pg_extension WHERE extname = 'plpgsql'";
    bed.sql(&format!("SET allow_system_table_mods = on; {belongs}"));
    bed.script("001", "CREATE TABLE a (b int)");
    let result = bed.succeeds("r1");
    assert_eq!(result["plan"]["warnings"].as_array().map(Vec::len), Some(1), "{result}");
    assert_eq!(bed.history(), ["001 applied"]);
}

pub fn what_a_script_set_before_it_failed_is_no_change(servers: &Servers) {
    let mut bed = bed(&servers.mariadb);
    bed.sql("CREATE TABLE of_old (a int)");
    bed.script("001", "SET foreign_key_checks = 0;\nCREATE TABLE of_old (a int)");
    bed.script("002", "CREATE TABLE of_now (a int)");
    bed.assignment["existingTables"] = json!("Ignore");
    assert_eq!(bed.fails("r1", 20)["lastError"]["statement"], 2);
    assert_eq!(bed.history(), ["001 failed"]);
    bed.assignment["baseline"] = json!("001");
    assert_eq!(bed.succeeds("r2")["appliedNow"], 1);
    assert_eq!(bed.history(), ["001 baseline", "002 applied"]);
}

pub fn a_baseline_that_does_not_count_is_named(servers: &Servers) {
    for server in [&servers.postgres, &servers.mariadb] {
        let mut bed = bed(server);
        bed.sql("CREATE TABLE of_old (a int)");
        bed.script("001", "CREATE TABLE marks (a int)");
        bed.script("002", "CREATE TABLE of_old (a int)");
        bed.assignment["existingTables"] = json!("Ignore");
        assert_eq!(bed.fails("r1", 20)["lastError"]["id"], "002");
        bed.assignment["baseline"] = json!("002");
        // An object names it for all of its databases, also for those that were empty.
        assert_eq!(bed.fails("r2", 20)["plan"]["warnings"].as_array().map(Vec::len), Some(1));
        bed.assignment.as_object_mut().unwrap().remove("object");
        let blocked = bed.fails("r3", 20)["blocked"].clone();
        assert_eq!(
            (&blocked["reason"], &blocked["id"]),
            (&json!("BaselineIgnored"), &json!("002")),
            "{blocked}"
        );
        let message = blocked["message"].as_str().unwrap();
        assert!(message.contains("baseline 002") && message.contains("001"), "{message}");
        bed.sql("DELETE FROM gatehouse_migrations");
        assert_eq!(bed.succeeds("r4")["appliedNow"], 0);
        assert_eq!(bed.history(), ["001 baseline", "002 baseline"]);
    }
}

pub fn an_empty_database_gets_all_scripts_whatever_baseline_is_named(servers: &Servers) {
    let mut bed = bed(&servers.postgres);
    bed.script("001", "CREATE TABLE a (b int)");
    bed.script("002", "SELECT * FROM absent");
    bed.assignment["baseline"] = json!("002");
    bed.fails("r1", 20);
    // The next run goes on, since the object may have begun on an empty database.
    bed.script("002", "SELECT 1");
    assert_eq!(bed.succeeds("r2")["appliedNow"], 1);
    assert_eq!(bed.history(), ["001 applied", "002 applied"]);
}
