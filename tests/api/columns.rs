//! What the API server prints for `kubectl get`, where no operator writes the status.

use std::collections::BTreeMap;

use gatehouse::api::Version;
use gatehouse::kinds::KINDS;
use hyper::Request;
use kit::bed::Bed;
use kit::examples::smallest;
use kit::objects::{Ask, path_of};
use serde_json::{Value, json};

use crate::Test;

pub const TESTS: &[Test] = &kit::tests![columns_show_what_the_status_says];

fn columns_show_what_the_status_says(bed: &Bed) {
    let namespace = bed.namespace();
    let ready = json!({"type": "Ready", "status": "False", "reason": "Because", "message": "",
        "lastTransitionTime": "2026-11-26T09:00:00Z"});
    let certificates = json!({"type": "CertificatesReady", "status": "True", "reason": "CertificatesValid",
        "message": "", "lastTransitionTime": "2026-11-26T09:00:00Z"});
    let member = |number: u8, leads: bool| json!({"name": format!("shown-{number}"), "leader": leads, "dbSize": 1000 + i32::from(number)});
    let next = json!({"time": "2026-11-26T17:00:00Z", "local": "2026-11-26T18:00+01:00[Europe/Berlin]",
        "display": "Thu 2026-11-26 18:00 CET", "window": "", "replicas": 2});
    for kind in KINDS {
        let (spec, mut status, own) = match kind.names().kind {
            "EtcdCluster" => (
                json!({"paused": true, "replicas": 3}),
                json!({"members": [member(0, false), member(1, true)]}),
                vec![
                    ("Desired", json!(3)),
                    ("DBSize", json!(1001)),
                    ("Certs", json!("CertificatesValid")),
                    ("Paused", json!(true)),
                ],
            ),
            "TDSet" => (
                json!({}),
                json!({"readyReplicas": 4, "nextTransition": next}),
                vec![
                    ("Next", json!("Thu 2026-11-26 18:00 CET")),
                    ("Then", json!(2)),
                    ("ReadyReplicas", json!(4)),
                ],
            ),
            "DatabaseMigration" => (json!({}), json!({"phase": "Failed"}), vec![("Phase", json!("Failed"))]),
            _ => (json!({}), json!({}), vec![]),
        };
        let mut object = smallest(*kind, Version::V1);
        json_patch::merge(&mut object, &json!({"metadata": {"name": "shown"}, "spec": spec}));
        namespace.create(&object);
        let path = format!("{}/shown", path_of(kind.names().plural, &namespace.name));
        status["conditions"] = json!([ready, certificates]);
        bed.objects.must(Ask::patch(format!("{path}/status"), json!({"status": status})));
        let expected = [&[("Ready", json!("False")), ("Reason", json!("Because"))], &*own].concat();
        let shown = printed(bed, &path);
        let found: Vec<_> = expected.iter().map(|(column, _)| (*column, shown[*column].clone())).collect();
        assert_eq!(found, expected, "{}", kind.names().kind);
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
