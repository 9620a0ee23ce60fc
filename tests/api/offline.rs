//! `gatehouse validate` and an API server, which is asked as kubectl does, have the same verdict.

use gatehouse::kinds::KINDS;
use kit::bed::Bed;
use kit::call::Call;
use kit::objects::{Ask, of};
use serde_json::{Value, json};

use crate::Test;

pub const TESTS: &[Test] = &[
    ("offline_and_at_the_server_the_verdict_on_metadata_is_the_same", metadata_have_one_verdict),
    ("errors_of_structure_and_of_meaning_come_in_one_answer", errors_come_in_one_answer),
];

/// What is merged into a sound object, and whether it is accepted then.
fn changes() -> Vec<(Value, bool)> {
    let of_metadata = |metadata: Value| json!({ "metadata": metadata });
    vec![
        (json!({}), true),
        (of_metadata(json!({"label": {"a": "b"}})), false),
        (of_metadata(json!({"Labels": {"a": "b"}})), false),
        (of_metadata(json!({"clusterName": "a"})), false),
        (of_metadata(json!({"labels": {"a": 1}})), false),
        (of_metadata(json!({"labels": {"a": true}})), false),
        (of_metadata(json!({"labels": ["a"]})), false),
        (of_metadata(json!({"labels": "a"})), false),
        (of_metadata(json!({"labels": {"a b": "c"}})), false),
        (of_metadata(json!({"labels": {"a": "b c"}})), false),
        (of_metadata(json!({"labels": {"example.com/a": "b", "c": ""}})), true),
        (of_metadata(json!({"annotations": {"a": 1}})), false),
        (of_metadata(json!({"annotations": {"a": {"b": "c"}}})), false),
        (of_metadata(json!({"annotations": {"a/b/c": ""}})), false),
        (of_metadata(json!({"annotations": {"Example.com/A_b": "any text\n"}})), true),
        (of_metadata(json!({"annotations": {"a": "x".repeat(300_000)}})), false),
        (of_metadata(json!({"finalizers": "a"})), false),
        (of_metadata(json!({"finalizers": ["a b"]})), false),
        (of_metadata(json!({"finalizers": ["example.com/a"]})), true),
    ]
}

/// The same of what clients seldom write, and of what is beside the metadata.
fn other_changes() -> Vec<(Value, bool)> {
    let of_metadata = |metadata: Value| json!({ "metadata": metadata });
    let owner = |change: Value| {
        let mut owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"});
        json_patch::merge(&mut owner, &change);
        owner
    };
    let owners = |owners: Vec<Value>| of_metadata(json!({ "ownerReferences": owners }));
    vec![
        (of_metadata(json!({"generation": "3"})), false),
        (
            of_metadata(json!({"generation": 3, "uid": "a", "creationTimestamp": "2026-01-01T00:00:00Z"})),
            true,
        ),
        (of_metadata(json!({"creationTimestamp": "yesterday"})), false),
        // As `kubectl get -o yaml` prints it: an update needs one, and a creation in earnest is refused.
        (of_metadata(json!({"resourceVersion": "1"})), true),
        (of_metadata(json!({"resourceVersion": 1})), false),
        (of_metadata(json!({"namespace": 1})), false),
        (of_metadata(json!({"name": 1})), false),
        (of_metadata(json!({"name": ""})), false),
        (of_metadata(json!({"name": "A_b"})), false),
        (owners(vec![owner(json!({}))]), true),
        (
            owners(vec![owner(json!({"controller": true})), owner(json!({"uid": "c", "controller": true}))]),
            false,
        ),
        (owners(vec![owner(json!({"uid": ""}))]), false),
        (owners(vec![owner(json!({"uid": null}))]), false),
        (owners(vec![owner(json!({"id": "a"}))]), false),
        (owners(vec![owner(json!({"controller": "yes"}))]), false),
        (json!({"metadata": "a"}), false),
        (json!({"metadata": []}), false),
        (json!({"specs": {}}), false),
        (json!({"Spec": {}}), false),
        (json!({"data": {"a": "b"}}), false),
        (json!({"spec": []}), false),
        (json!({"spec": "a"}), false),
        (json!({"status": {"phases": 1}}), false),
        (json!({"status": {}}), true),
    ]
}

fn examples() -> [Value; 3] {
    ["etcdcluster/minimal", "tdset/night", "databasemigration/minimal"].map(|name| {
        let text =
            std::fs::read_to_string(kit::root().join(format!("examples/{name}.yaml"))).expect("an example");
        serde_saphyr::from_str(&text).expect("YAML")
    })
}

/// Nulls of the changes stay: kubectl writes some.
fn merge(object: &mut Value, change: &Value) {
    match (object, change) {
        (Value::Object(fields), Value::Object(changes)) => {
            for (name, change) in changes {
                merge(fields.entry(name.clone()).or_insert(Value::Null), change);
            }
        }
        (object, change) => *object = change.clone(),
    }
}

fn metadata_have_one_verdict(bed: &Bed) {
    let namespace = bed.namespace();
    let mut nulls = vec![];
    for field in ["labels", "annotations", "creationTimestamp", "ownerReferences"] {
        nulls.push((json!({"metadata": {field: null}}), true));
    }
    let mut manifests = Vec::new();
    for (change, is_sound) in changes().into_iter().chain(other_changes()).chain(nulls) {
        for mut object in examples() {
            object["metadata"] = json!({"name": "sound", "namespace": namespace.name});
            merge(&mut object, &change);
            manifests.push((object, is_sound));
        }
    }
    let text: Vec<_> = manifests.iter().map(|(object, _)| object.to_string()).collect();
    let call = Call::gatehouse(kit::gatehouse!(), &["validate", "-o", "json"]).input(text.join("\n---\n"));
    let report: Value = serde_json::from_str(&call.fails()).expect("JSON");
    let offline = report["objects"].as_array().expect("a list");
    assert_eq!(offline.len(), manifests.len());
    let create = |object: &Value| {
        let name = object["kind"].as_str().expect("a kind");
        let kind = KINDS.iter().find(|kind| kind.names().kind == name).expect("a kind of ours");
        let path = of("v1", &namespace.name, kind.names().plural);
        Ask::post(format!("{path}?dryRun=All&fieldValidation=Strict"), object.clone())
    };
    let at_server = bed.objects.all(manifests.iter().map(|(object, _)| create(object)).collect());
    let mut doubts = Vec::new();
    for (((object, is_sound), offline), at_server) in manifests.iter().zip(offline).zip(at_server) {
        let is_accepted = offline["verdict"] == "accepted";
        if is_accepted != *is_sound || at_server.is_ok() != *is_sound {
            let said = at_server.err().map(|refusal| refusal.message);
            doubts
                .push(format!("- {object:.300}\n  offline {}\n  the server {said:.300?}", offline["faults"]));
        }
    }
    assert!(doubts.is_empty(), "{}", doubts.join("\n"));
}

fn errors_come_in_one_answer(bed: &Bed) {
    let namespace = bed.namespace();
    let window = |change: Value| {
        let mut window = json!({"name": "a", "from": "08:00", "to": "09:00", "replicas": 1});
        json_patch::merge(&mut window, &change);
        window
    };
    let set = |windows: Value| {
        json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": "mixed"},
            "spec": {"defaultReplicas": 1, "timeZone": "CET+1", "windows": windows,
                "target": {"create": {"image": "a", "port": 80}}}})
    };
    for (object, fields) in [
        (
            set(json!([window(json!({"days": ["Monday"]}))])),
            &["spec.timeZone", "spec.windows[0].days[0]"][..],
        ),
        (set(json!([window(json!({"replicas": "three"}))])), &["spec.timeZone", "spec.windows[0].replicas"]),
        (set(json!([window(json!({"name": null}))])), &["spec.timeZone", "spec.windows[0].name"]),
    ] {
        let refused = bed.objects.one(Ask::create(&object, &namespace.name)).expect_err("it is refused");
        let named: Vec<_> = refused.fields.iter().map(String::as_str).collect();
        assert_eq!(named, fields, "{}", refused.message);
    }
}
