//! The manifests of the kind that DatabaseMigration descends from, carried out.

use kit::call::Call;
use kit::databases::Servers;
use kit::root;
use serde_json::Value;

use super::bed::Bed;

/// What `gatehouse convert` makes of a file below `examples`.
fn converted(file: &str) -> Value {
    let path = root().join("examples").join(file);
    let words = ["convert", "--explicit", "-o", "json", "-f", path.to_str().unwrap()];
    serde_json::from_str(&Call::gatehouse(kit::gatehouse!(), &words).ok()).unwrap()
}

pub fn their_samples_run(servers: &Servers) {
    let texts = &converted("databasemigration/scripts-of-ancestors.yaml")["data"];
    for (sample, server, count) in [
        ("databasemigration", &servers.postgres, 3),
        ("databasemigration_bluegreen", &servers.postgres, 3),
        ("databasemigration_mysql", &servers.mariadb, 2),
    ] {
        let migration = converted(&format!("ancestors/database_v1alpha1_{sample}.yaml"));
        let mut bed = Bed::new(server);
        for script in migration["spec"]["scripts"].as_array().unwrap() {
            let source = &script["up"]["configMapKeyRef"];
            assert_eq!(source["name"], "migrations");
            let text = texts[source["key"].as_str().unwrap()].as_str().unwrap();
            bed.script(script["id"].as_str().unwrap(), text)["kind"] = script["kind"].clone();
        }
        assert_eq!(bed.succeeds("r1")["appliedNow"], count, "{sample}");
        assert_eq!(bed.succeeds("r2")["appliedNow"], 0, "{sample}");
    }
}
