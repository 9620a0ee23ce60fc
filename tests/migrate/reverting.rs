//! What was applied, taken back.

use kit::databases::{Server, Servers};
use serde_json::json;

use super::bed::Bed;

fn with_downs(bed: &mut Bed<'_>) {
    bed.script("001", "CREATE TABLE a (b int)");
    bed.down("001", "DROP TABLE a");
    bed.script("002", "CREATE INDEX CONCURRENTLY i ON a (b)")["transaction"] = json!("None");
    bed.down("002", "DROP INDEX CONCURRENTLY i");
    bed.script("003", "SELECT 1 FROM a")["kind"] = json!("Check");
}

pub fn what_this_object_applied_is_taken_back(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.sql("CREATE TABLE of_old ()");
    bed.script("000", "CREATE TABLE of_old ()");
    bed.assignment["baseline"] = json!("000");
    with_downs(&mut bed);
    bed.succeeds("r1");
    bed.assignment["object"]["uid"] = json!("another");
    bed.script("004", "CREATE TABLE of_another ()");
    bed.succeeds("r2");
    bed.assignment["object"]["uid"] = json!("u1");
    bed.assignment["mode"] = json!("Revert");
    let result = bed.succeeds("r3");
    assert_eq!(
        (&result["outcome"], &result["reverted"]),
        (&json!("Reverted"), &json!(["003", "002", "001"]))
    );
    assert_eq!(
        bed.history(),
        ["000 baseline", "001 reverted", "002 reverted", "003 reverted", "004 applied"]
    );
    assert_eq!(bed.value("SELECT to_regclass('a')::text"), "NULL");
    assert_eq!(bed.value("SELECT to_regclass('of_another')::text"), "of_another");
    assert_eq!(bed.succeeds("r4")["reverted"], json!(null), "a second time there is nothing to take back");
}

pub fn a_failed_run_is_taken_back_where_that_is_asked_for(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.assignment["onFailure"] = json!("RevertThisRun");
    with_downs(&mut bed);
    let scripts = bed.assignment["scripts"].clone();
    bed.assignment["scripts"] = json!([scripts[0]]);
    bed.succeeds("r1");
    bed.assignment["scripts"] = scripts;
    bed.script("004", "SELECT * FROM absent");
    let result = bed.fails("r2", 20);
    assert_eq!(result["reverted"], json!(["003", "002"]), "{result}");
    assert_eq!(result["lastError"]["id"], "004");
    assert_eq!(bed.history()[..3], ["001 applied", "002 reverted", "003 reverted"]);
    bed.script("004", "SELECT 1");
    bed.succeeds("r3");
    assert_eq!(bed.value("SELECT indisvalid::text FROM pg_index WHERE indexrelid = 'i'::regclass"), "true");
}

pub fn nothing_is_taken_back_where_a_down_script_lacks(servers: &Servers) {
    let mut bed = Bed::new(&servers.postgres);
    bed.script("001", "CREATE TABLE a (b int)");
    bed.script("002", "CREATE TABLE c ()");
    bed.down("002", "DROP TABLE c");
    bed.succeeds("r1");
    bed.assignment["mode"] = json!("Revert");
    let blocked = bed.fails("r2", 20)["blocked"].clone();
    assert_eq!((&blocked["reason"], &blocked["id"]), (&json!("NoDownScript"), &json!("001")));
    assert_eq!(bed.history(), ["001 applied", "002 applied"]);
    bed.down("001", "DROP TABLE absent");
    let error = bed.fails("r3", 20)["lastError"].clone();
    assert_eq!((&error["id"], &error["sqlState"]), (&json!("001"), &json!("42P01")));
    assert_eq!(bed.history(), ["001 applied", "002 reverted"], "what could not be taken back is applied");
}

/// Twelve scripts, and more than the fifty that are reported.
pub fn many_scripts_run_and_are_taken_back_in_order(server: &Server) {
    for count in [12, 60] {
        let mut bed = Bed::new(server);
        bed.script("001", "CREATE TABLE s (v int); INSERT INTO s VALUES (1)");
        bed.down("001", "UPDATE s SET v = v");
        for number in 2..=count {
            let id = format!("{number:03}");
            let before = number - 1;
            bed.script(&id, &format!("UPDATE s SET v = {number} WHERE v = {before}"));
            bed.down(&id, &format!("UPDATE s SET v = {before} WHERE v = {number}"));
        }
        let ids: Vec<_> = (1..=count).map(|number| format!("{number:03}")).collect();
        bed.assignment["mode"] = json!("Plan");
        assert_eq!(bed.succeeds("plan")["plan"]["pending"], json!(ids));
        bed.assignment["mode"] = json!("Apply");
        let result = bed.succeeds("apply");
        assert_eq!((&result["appliedNow"], &result["appliedCount"]), (&json!(count), &json!(count)));
        assert_eq!(bed.sql("SELECT v FROM s"), [[count.to_string()]]);
        bed.assignment["mode"] = json!("Status");
        let told = bed.succeeds("status")["applied"].clone();
        let told: Vec<_> = told.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
        assert!(
            told.len() > 9 && ids.ends_with(&told.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>()),
            "{told:?}"
        );
        bed.assignment["mode"] = json!("Revert");
        let reverted: Vec<_> = ids.iter().rev().collect();
        assert_eq!(bed.succeeds("revert")["reverted"], json!(reverted));
        assert_eq!(bed.sql("SELECT v FROM s"), [["1"]]);
    }
}
