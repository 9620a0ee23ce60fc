//! DatabaseMigrations whose Jobs run, in gatehouse's own image.

use kit::objects::condition;
use serde_json::{Value, json};

use crate::Test;
use crate::cluster::{Bed, Namespace};
use crate::release::Way;

pub const TESTS: &[Test] = &[("scripts_are_applied_and_taken_back", scripts_are_applied_and_taken_back)];

/// The claim that the database is in.
const CLAIM: &str = "database";

fn migration(ids: &[&str]) -> Value {
    let script = |id: &&str| {
        json!({"id": id, "kind": "Schema", "up": {"configMapKeyRef": {"name": "sql", "key": format!("{id}.sql")}},
            "down": {"inline": format!("DROP TABLE \"{id}\"")}})
    };
    json!({"apiVersion": "gatehouse.dev/v1", "kind": "DatabaseMigration", "metadata": {"name": "shop"},
        "spec": {"database": {"engine": "SQLite", "file": {"claimName": CLAIM, "path": "shop.db"}},
            "scripts": ids.iter().map(script).collect::<Vec<_>>(), "deletionPolicy": "Revert",
            "retry": {"limit": 5, "backoff": "1s"}}})
}

/// Waits until so many scripts are applied and Ready says so.
fn until_applied(namespace: &Namespace<'_>, count: u32) {
    namespace.until("databasemigration/shop", |found| {
        let ready = condition(found, "Ready");
        let is_current = found["status"]["observedGeneration"] == found["metadata"]["generation"];
        let is_applied = ready["reason"] == "Applied" && found["status"]["appliedCount"] == count;
        if is_current && is_applied {
            Ok(())
        } else {
            Err(format!("{count} scripts are not applied: {ready}"))
        }
    });
}

fn scripts_are_applied_and_taken_back(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("migrations");
    namespace
        .apply(&json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": CLAIM},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}}}));
    let tables =
        ["1", "2", "3"].map(|id| (format!("{id}.sql"), json!(format!("CREATE TABLE \"{id}\" (a INTEGER)"))));
    let data: Value = tables.into_iter().collect::<serde_json::Map<_, _>>().into();
    namespace
        .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sql"}, "data": data}));
    namespace.apply(&migration(&["1", "2"]));
    until_applied(&namespace, 2);

    // A Job that is gone leaves nothing behind, and what it has applied is not run again.
    let jobs = namespace.list("jobs", "app.kubernetes.io/instance=shop");
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    let run = jobs[0]["metadata"]["name"].as_str().expect("a name").to_owned();
    namespace.kubectl(&["delete", "job", &run, "--timeout=60s"]).ok();
    namespace.until_gone(&format!("configmap/{run}"));
    namespace.apply(&migration(&["1", "2", "3"]));
    until_applied(&namespace, 3);

    namespace.kubectl(&["delete", "databasemigration", "shop", "--timeout=120s"]).ok();
    // All tables are gone, so that they can be made again.
    namespace.apply(&migration(&["1", "2", "3"]));
    until_applied(&namespace, 3);
    namespace.kubectl(&["delete", "databasemigration", "shop", "--timeout=120s"]).ok();
}
