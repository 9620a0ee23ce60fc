//! What the API server prints for `kubectl get`, where no operator writes the status.

use std::collections::BTreeMap;

use hyper::Request;
use kit::bed::Bed;
use kit::objects::{Ask, path_of};
use serde_json::{Value, json};

use crate::Test;

pub const TESTS: &[Test] = &[("columns_show_what_the_status_says", columns_show_what_the_status_says)];

fn columns_show_what_the_status_says(bed: &Bed) {
    let namespace = bed.namespace();
    let ready = json!({"type": "Ready", "status": "False", "reason": "Because", "message": "",
        "lastTransitionTime": "2026-11-26T09:00:00Z"});
    let certificates = json!({"type": "CertificatesReady", "status": "True", "reason": "CertificatesValid",
        "message": "", "lastTransitionTime": "2026-11-26T09:00:00Z"});
    let member = |number: u8, leads: bool| json!({"name": format!("shown-{number}"), "leader": leads, "dbSize": 1000 + i32::from(number)});
    let next = json!({"time": "2026-11-26T17:00:00Z", "local": "2026-11-26T18:00+01:00[Europe/Berlin]",
        "display": "Thu 2026-11-26 18:00 CET", "window": "", "replicas": 2});
    let script = json!({"id": "001", "kind": "Schema", "up": {"inline": "CREATE TABLE notes (id INTEGER)"}});
    let kinds = [
        (
            "EtcdCluster",
            json!({"paused": true, "replicas": 3}),
            json!({"conditions": [ready, certificates], "members": [member(0, false), member(1, true)]}),
            vec![
                ("Ready", json!("False")),
                ("Reason", json!("Because")),
                ("Desired", json!(3)),
                ("DBSize", json!(1001)),
                ("Certs", json!("CertificatesValid")),
                ("Paused", json!(true)),
            ],
        ),
        (
            "TDSet",
            json!({"defaultReplicas": 2, "target": {"ref": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}),
            json!({"conditions": [ready], "readyReplicas": 4, "nextTransition": next}),
            vec![
                ("Ready", json!("False")),
                ("Reason", json!("Because")),
                ("Next", json!("Thu 2026-11-26 18:00 CET")),
                ("Then", json!(2)),
                ("ReadyReplicas", json!(4)),
            ],
        ),
        (
            "DatabaseMigration",
            json!({"database": {"engine": "SQLite", "file": {"claimName": "data", "path": "shop.db"}},
                "scripts": [script]}),
            json!({"conditions": [ready], "phase": "Failed"}),
            vec![("Ready", json!("False")), ("Reason", json!("Because")), ("Phase", json!("Failed"))],
        ),
    ];
    for (kind, spec, status, expected) in kinds {
        namespace
            .create(&json!({"apiVersion": "gatehouse.dev/v1", "kind": kind, "metadata": {"name": "shown"},
            "spec": spec}));
        let resource = format!("{}s", kind.to_lowercase());
        let path = format!("{}/shown", path_of(&resource, &namespace.name));
        bed.objects.must(Ask::patch(format!("{path}/status"), json!({"status": status})));
        let shown = printed(bed, &path);
        let found: Vec<_> = expected.iter().map(|(column, _)| (*column, shown[*column].clone())).collect();
        assert_eq!(found, expected, "{kind}");
    }
}

/// The cells of the object's row, by column, those of `-o wide` too.
fn printed(bed: &Bed, path: &str) -> BTreeMap<String, Value> {
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let request = Request::get(path).header("accept", accept).body(Vec::new()).expect("a request");
    let table: Value = bed.objects.with(async |client| client.request(request).await).expect("a table");
    let columns = table["columnDefinitions"].as_array().expect("columns");
    let cells = table["rows"][0]["cells"].as_array().expect("cells");
    let name = |column: &Value| column["name"].as_str().expect("a name").to_owned();
    columns.iter().map(name).zip(cells.iter().cloned()).collect()
}
