//! Reviews of admission: what is defaulted, kept and allowed, and what pods get.

use super::*;

#[test]
fn a_creation_in_the_old_version_is_defaulted_and_the_second_pass_adds_nothing() {
    let spec = json!({"container": {"image": "a", "port": 80}, "schedulingConfig": [], "defaultReplica": 1});
    let mut object = json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet",
        "metadata": {"name": "a", "namespace": "b"}, "spec": spec});
    let request = json!({"operation": "CREATE", "kind": kind("v1alpha1"), "name": "a", "object": object});
    let response = admission(Endpoint::Mutate, &request);
    assert_eq!(response["allowed"], true, "{response}");
    if let Some(patch) = response.get("patch") {
        assert_eq!(response["patchType"], "JSONPatch");
        let patch =
            base64::Engine::decode(&base64::engine::general_purpose::STANDARD, patch.as_str().unwrap())
                .unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
    }
    let again = json!({"operation": "CREATE", "kind": kind("v1alpha1"), "name": "a", "object": object});
    let again = admission(Endpoint::Mutate, &again);
    assert!(again.get("patch").is_none() && again.get("patchType").is_none(), "{again}");
}

#[test]
fn an_update_through_the_old_version_keeps_what_only_the_new_one_says() {
    let spec = |zone: bool, replicas: i32| {
        let mut spec = json!({"target": {"create": {"image": "a", "port": 80}}, "defaultReplicas": replicas});
        if zone {
            spec["timeZone"] = json!("Europe/Berlin");
        }
        json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": "a"}, "spec": spec})
    };
    let request = json!({"operation": "UPDATE", "kind": kind("v1"), "requestKind": kind("v1alpha1"), "name": "a",
        "object": spec(false, 5), "oldObject": spec(true, 1)});
    let response = admission(Endpoint::Mutate, &request);
    let patch = base64::Engine::decode(
        &base64::engine::general_purpose::STANDARD,
        response["patch"].as_str().unwrap(),
    );
    let patch: Value = serde_json::from_slice(&patch.unwrap()).unwrap();
    assert_eq!(patch, json!([{"op": "add", "path": "/spec/timeZone", "value": "Europe/Berlin"}]));
    assert!(!response.to_string().contains(PREFIX));
}

#[test]
fn a_replace_through_the_old_version_keeps_spec_and_status_whole() {
    let object = |spec: Value, status: Option<Value>| {
        let mut object = json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "a"}, "spec": spec});
        object.as_object_mut().unwrap().extend(status.map(|status| ("status".to_owned(), status)));
        object
    };
    let status = json!({"clusterID": "ab", "members": [{"name": "a-0", "id": "1"}]});
    let stored = object(
        json!({"replicas": 3, "version": "3.6.16", "storage": {"size": "1Gi"}, "tls": {"mode": "Automatic"}}),
        Some(status.clone()),
    );
    let of = |version: &str| json!({"group": "gatehouse.dev", "version": version, "kind": "EtcdCluster"});
    for shown in [None, Some(json!({"members": [{"name": "a-0"}]}))] {
        let request = json!({"operation": "UPDATE", "kind": of("v1"), "requestKind": of("v1alpha1"), "name": "a",
            "object": object(json!({"replicas": 3}), shown.clone()), "oldObject": stored});
        let response = admission(Endpoint::Mutate, &request);
        let patch = base64::Engine::decode(
            &base64::engine::general_purpose::STANDARD,
            response["patch"].as_str().unwrap(),
        );
        let patch: json_patch::Patch = serde_json::from_slice(&patch.unwrap()).unwrap();
        let mut object = object(json!({"replicas": 3}), shown);
        json_patch::patch(&mut object, &patch).unwrap();
        assert_eq!(object, stored);
    }
}

#[test]
fn an_update_through_the_old_version_without_a_spec_keeps_the_whole_one() {
    let object = |spec: Option<Value>| {
        let mut object =
            json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "a"}});
        object.as_object_mut().unwrap().extend(spec.map(|spec| ("spec".to_owned(), spec)));
        object
    };
    let spec = json!({"replicas": 3, "version": "3.6.16", "storage": {"size": "1Gi"}, "paused": true,
        "tls": {"mode": "Automatic"}});
    let of = |version: &str| json!({"group": "gatehouse.dev", "version": version, "kind": "EtcdCluster"});
    for said in [None, Some(Value::Null)] {
        let request = json!({"operation": "UPDATE", "kind": of("v1"), "requestKind": of("v1alpha1"), "name": "a",
            "object": object(said), "oldObject": object(Some(spec.clone()))});
        let response = admission(Endpoint::Mutate, &request);
        let patch = base64::Engine::decode(
            &base64::engine::general_purpose::STANDARD,
            response["patch"].as_str().unwrap(),
        );
        let patch: json_patch::Patch = serde_json::from_slice(&patch.unwrap()).unwrap();
        let mut patched = request["object"].clone();
        json_patch::patch(&mut patched, &patch).unwrap();
        for field in ["paused", "tls", "storage", "version"] {
            assert_eq!(patched["spec"][field], spec[field], "{patched}");
        }
    }
}

#[test]
fn what_no_rule_asks_for_is_not_allowed() {
    let object = json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": "a"}});
    for (operation, sub_resource, allowed) in [
        ("UPDATE", "status", true),
        ("UPDATE", "exec", false),
        ("CONNECT", "", false),
        ("CREATE", "status", false),
    ] {
        let request = json!({"operation": operation, "subResource": sub_resource, "kind": kind("v1"), "name": "a",
            "object": object, "oldObject": object});
        let response = admission(Endpoint::Validate, &request);
        assert_eq!(response["allowed"], allowed, "{operation} {sub_resource}: {response}");
    }
}

/// A pod, as the API server asks about it.
fn pod(labels: &Value, annotation: &str) -> Value {
    json!({"kind": {"group": "", "version": "v1", "kind": "Pod"}, "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE", "namespace": "shop", "object": {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"generateName": "shop-", "labels": labels,
                "annotations": {"gatehouse.dev/wait-for-migration": annotation}},
            "spec": {"containers": [{"name": "app", "image": "app"}]}}})
}

#[test]
fn a_pod_gets_what_it_asks_for_and_no_other_one_is_touched() {
    let asks = json!({"gatehouse.dev/wait-for-migration": "true"});
    let file = r#"{"database": {"engine": "SQLite", "file": {"claimName": "a", "path": "b"}}, "history": {"series": "shop"}, "script": "1"}"#;
    let response = admission(Endpoint::Mutate, &pod(&asks, file));
    assert_eq!((&response["allowed"], &response["patchType"]), (&json!(true), &json!("JSONPatch")));
    let plain = admission(Endpoint::Mutate, &pod(&json!({}), "nonsense"));
    assert_eq!(plain, json!({"uid": "u-1", "allowed": true}));
    let refused = admission(Endpoint::Mutate, &pod(&asks, "nonsense"));
    assert_eq!((&refused["allowed"], &refused["status"]["code"]), (&json!(false), &json!(422)));
    let message = refused["status"]["message"].as_str().unwrap();
    let expected = "Pod \"shop-\" is invalid: metadata.annotations[gatehouse.dev/wait-for-migration]: Invalid value: must be JSON";
    assert!(message.starts_with(expected), "{message}");
    // What validates objects knows nothing of pods.
    assert_eq!(admission(Endpoint::Validate, &pod(&asks, file))["status"]["code"], 400);
}

/// The answer to a write by the old version, and what is stored then: as an API server has it converted for each hook.
fn written_by_spoke(stored: &Value, edit: &dyn Fn(&mut Value)) -> (Value, Value) {
    let name = stored["kind"].as_str().unwrap();
    let lens = crate::kinds::find(name).unwrap().lens();
    let up = |object: &Value| lens.convert(object.clone(), Version::V1Alpha1, Version::V1);
    let down = |object: &Value| lens.convert(object.clone(), Version::V1, Version::V1Alpha1);
    let of = |version: &str| json!({"group": "gatehouse.dev", "version": version, "kind": name});
    let shown = down(stored);
    let mut object = shown.clone();
    edit(&mut object);
    let request = json!({"operation": "UPDATE", "kind": of("v1"), "requestKind": of("v1alpha1"), "name": "a",
        "object": up(&object), "oldObject": up(&shown)});
    let response = admission(Endpoint::Mutate, &request);
    if response["allowed"] == false {
        return (response, object);
    }
    if let Some(patch) = response["patch"].as_str() {
        let patch = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, patch).unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
        let mut patched = up(&object);
        json_patch::patch(&mut patched, &patch).unwrap();
        object = down(&patched);
    }
    let request = json!({"operation": "UPDATE", "kind": of("v1alpha1"), "name": "a", "object": object, "oldObject": shown});
    (admission(Endpoint::Validate, &request), up(&object))
}

/// An object of each kind, with a field that the old version lacks, whose text is so long, and an edit.
fn hidden(length: usize) -> Vec<(Value, &'static str, Value)> {
    let text = "x".repeat(length);
    let object = |kind: &str, spec: Value| json!({"apiVersion": "gatehouse.dev/v1", "kind": kind, "metadata": {"name": "a", "namespace": "b"}, "spec": spec});
    let cluster = json!({"replicas": 3, "version": "3.6.16", "storage": {"size": "10Gi"}, "tls": {"mode": "Automatic"},
        "deletionProtection": true, "pod": {"annotations": {"note": text}}});
    let set = json!({"defaultReplicas": 2, "timeZone": "Europe/Berlin", "overlap": "Max",
        "target": {"create": {"image": "a", "port": 80, "pod": {"annotations": {"note": text}}}}});
    let database = json!({"engine": "PostgreSQL", "host": "pg", "port": 5432, "name": "a",
        "credentialsSecret": {"name": "a"}, "tls": {"mode": "Require"}});
    let script = json!({"id": "1", "kind": "Schema", "up": {"inline": "CREATE TABLE a (b int)"},
        "down": {"inline": format!("DROP TABLE a -- {text}")}});
    vec![
        (object("EtcdCluster", cluster), "/spec", json!({"backupSchedule": "@daily"})),
        (object("TDSet", set), "/spec", json!({"defaultReplica": 5})),
        (
            object("DatabaseMigration", json!({"database": database, "scripts": [script]})),
            "/spec/database",
            json!({"port": 6000}),
        ),
    ]
}

#[test]
fn no_write_by_the_old_version_drops_what_it_cannot_show() {
    let without_annotations = |object: &mut Value| {
        object["metadata"].as_object_mut().unwrap().remove("annotations");
    };
    for length in [10, 360_000] {
        for (stored, place, change) in hidden(length) {
            let edited = |object: &mut Value| json_patch::merge(object.pointer_mut(place).unwrap(), &change);
            let labelled = |object: &mut Value| object["metadata"]["labels"] = json!({"a": "b"});
            let foreign =
                |object: &mut Value| object["metadata"]["annotations"] = json!({"example.org/a": "b"});
            let replaced = |object: &mut Value| {
                without_annotations(object);
                edited(object);
            };
            let edits: [&dyn Fn(&mut Value); 6] =
                [&|_: &mut Value| (), &edited, &labelled, &without_annotations, &foreign, &replaced];
            for (at, edit) in edits.iter().enumerate() {
                let (response, after) = written_by_spoke(&stored, *edit);
                let case = format!("edit {at} of {} with {length} bytes: {response:.300}", stored["kind"]);
                assert_eq!(response["allowed"], length == 10, "{case}");
                if length == 10 {
                    let own = json!({"backup": null, "defaultReplicas": null, "database": {"port": null}});
                    let [before, after] = [stored.clone(), after].map(|mut object| {
                        json_patch::merge(&mut object["spec"], &own);
                        object["spec"].take()
                    });
                    assert_eq!(after, before, "{case}");
                } else {
                    let message = response["status"]["message"].as_str().unwrap();
                    assert!(message.contains("256 KiB") && message.contains("gatehouse.dev/v1"), "{case}");
                }
            }
        }
    }
}
