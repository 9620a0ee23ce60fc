//! Deviations by the managed fields that an API server wrote for such changes.

use serde_json::{Value, json};

use super::*;

const OURS: &str = "gatehouse-test";

fn manifest() -> Value {
    let container = json!({"name": "app", "image": "a:1", "args": ["a", "b"],
        "env": [{"name": "A", "value": "1"}, {"name": "EMPTY", "value": ""}],
        "ports": [{"name": "http", "containerPort": 80}],
        "resources": {"requests": {"cpu": "1000m"}}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop", "labels": {"app": "shop"}},
        "spec": {"selector": {"matchLabels": {"app": "shop"}},
            "template": {"metadata": {"labels": {"app": "shop"}},
                "spec": {"containers": [container], "tolerations": [{"key": "a", "operator": "Exists"}]}}}})
}

/// What the API server makes of it: with defaults, and without zero values.
fn applied() -> Value {
    let mut actual = manifest();
    let spec = &mut actual["spec"];
    (spec["replicas"], spec["progressDeadlineSeconds"]) = (json!(3), json!(600));
    let pod = &mut spec["template"]["spec"];
    pod["dnsPolicy"] = json!("ClusterFirst");
    let container = &mut pod["containers"][0];
    container["env"][1] = json!({"name": "EMPTY"});
    container["ports"][0]["protocol"] = json!("TCP");
    container["resources"]["requests"]["cpu"] = json!("1");
    container["imagePullPolicy"] = json!("IfNotPresent");
    let entry = json!({"manager": OURS, "operation": "Apply", "fieldsV1": {"f:spec": {"f:paused": {}}}});
    actual["metadata"]["managedFields"] = json!([entry]);
    actual
}

/// The same once `change` was made by a client that owns these fields since.
fn changed(fields: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut actual = applied();
    change(&mut actual);
    let entry = json!({"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:spec": fields}});
    actual["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
    actual
}

fn below(pod: &Value) -> Value {
    json!({"f:template": {"f:spec": pod}})
}

fn of_container(fields: &Value) -> Value {
    below(&json!({"f:containers": {"k:{\"name\":\"app\"}": fields}}))
}

fn container(actual: &mut Value) -> &mut Value {
    &mut actual["spec"]["template"]["spec"]["containers"][0]
}

/// The patch applied, as RFC 7386 says.
fn merged(actual: &Value, patch: &Map<String, Value>) -> Value {
    fn merge(target: &mut Value, patch: &Value) {
        let Value::Object(fields) = patch else {
            *target = patch.clone();
            return;
        };
        if !target.is_object() {
            *target = json!({});
        }
        let target = target.as_object_mut().unwrap();
        for (name, value) in fields {
            if value.is_null() {
                target.remove(name);
            } else {
                merge(target.entry(name).or_insert(Value::Null), value);
            }
        }
    }
    let mut target = actual.clone();
    merge(&mut target, &Value::Object(patch.clone()));
    target
}

/// A name, the fields that another client has, and the change.
type Case = (&'static str, Value, fn(&mut Value));

#[test]
fn an_object_that_was_applied_does_not_deviate() {
    assert_eq!(between(&manifest(), &applied(), OURS), Deviation::Nothing);
    assert_eq!(repair(&manifest(), &applied(), OURS), Map::new());
}

#[test]
fn what_another_client_adds_is_removed_and_all_else_stays() {
    let cases: [Case; 9] = [
        (
            "a sidecar",
            below(&json!({"f:containers": {"k:{\"name\":\"proxy\"}": {".": {}, "f:name": {}}}})),
            |one| {
                let all = one["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap();
                all.insert(0, json!({"name": "proxy", "image": "p"}));
            },
        ),
        (
            "a variable",
            of_container(&json!({"f:env": {"k:{\"name\":\"B\"}": {".": {}, "f:value": {}}}})),
            |one| {
                container(one)["env"].as_array_mut().unwrap().push(json!({"name": "B", "value": "2"}));
            },
        ),
        (
            "another number of a port",
            of_container(&json!({"f:ports": {
                "k:{\"containerPort\":81,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:name": {}}}})),
            |one| container(one)["ports"][0]["containerPort"] = json!(81),
        ),
        ("a strategy", json!({"f:strategy": {"f:type": {}}}), |one| {
            one["spec"]["strategy"] = json!({"type": "Recreate"});
        }),
        ("a pause", json!({"f:paused": {}}), |one| one["spec"]["paused"] = json!(true)),
        ("another default", json!({"f:progressDeadlineSeconds": {}}), |one| {
            one["spec"]["progressDeadlineSeconds"] = json!(5);
        }),
        ("a label", json!({"f:template": {"f:metadata": {"f:labels": {"f:x": {}}}}}), |one| {
            one["spec"]["template"]["metadata"]["labels"]["x"] = json!("y");
        }),
        ("a selector of nodes", below(&json!({"f:nodeSelector": {}})), |one| {
            one["spec"]["template"]["spec"]["nodeSelector"] = json!({"a/b": "c~d"});
        }),
        ("a command", of_container(&json!({"f:command": {}})), |one| {
            container(one)["command"] = json!(["sh"]);
        }),
    ];
    for (case, fields, change) in cases {
        let actual = changed(&fields, change);
        assert_eq!(between(&manifest(), &actual, OURS), Deviation::Added, "{case}");
        let repaired = merged(&actual, &repair(&manifest(), &actual, OURS));
        assert_eq!(between(&manifest(), &repaired, OURS), Deviation::Nothing, "{case}: {repaired:#}");
        assert_eq!(repaired["spec"]["replicas"], 3, "{case}");
        assert_eq!(repaired["spec"]["template"]["spec"]["dnsPolicy"], "ClusterFirst", "{case}");
    }
}

#[test]
fn what_an_apply_restores_is_missing() {
    let cases: [Case; 4] = [
        ("another image", of_container(&json!({"f:image": {}})), |one| {
            container(one)["image"] = json!("b:1");
        }),
        ("more arguments", of_container(&json!({"f:args": {}})), |one| {
            container(one)["args"] = json!(["a", "b", "c"]);
        }),
        ("another toleration", below(&json!({"f:tolerations": {}})), |one| {
            let all = one["spec"]["template"]["spec"]["tolerations"].as_array_mut().unwrap();
            all.push(json!({"operator": "Exists"}));
        }),
        ("another label to select by", json!({"f:selector": {}}), |one| {
            one["spec"]["selector"]["matchLabels"]["x"] = json!("y");
        }),
    ];
    for (case, fields, change) in cases {
        let actual = changed(&fields, change);
        assert_eq!(between(&manifest(), &actual, OURS), Deviation::Missing, "{case}");
        assert!(has_other_owner(&manifest(), &actual, OURS), "{case}");
    }
}

#[test]
fn what_belongs_to_other_clients_is_no_deviation() {
    let restart =
        json!({"f:template": {"f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/restartedAt": {}}}}});
    let cases: [Case; 4] = [
        ("a restart", restart, |one| {
            one["spec"]["template"]["metadata"]["annotations"] =
                json!({"kubectl.kubernetes.io/restartedAt": "now"});
        }),
        ("a count", json!({"f:replicas": {}}), |one| one["spec"]["replicas"] = json!(9)),
        ("a default", json!({"f:progressDeadlineSeconds": {}}), |_| {}),
        ("the same", of_container(&json!({"f:image": {}})), |_| {}),
    ];
    for (case, fields, change) in cases {
        let actual = changed(&fields, change);
        assert_eq!(between(&manifest(), &actual, OURS), Deviation::Nothing, "{case}");
    }
    // A webhook changes what we write: managed fields name no manager for it.
    let mut mutated = applied();
    mutated["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "proxy"}));
    assert_eq!(between(&manifest(), &mutated, OURS), Deviation::Nothing);
    // Metadata are for everyone, and a status is written by controllers.
    let mut marked = applied();
    let tree = json!({"f:metadata": {"f:labels": {"f:x": {}}}});
    let label = json!({"manager": "kubectl", "operation": "Update", "fieldsV1": tree});
    let status = json!({"manager": "kcm", "operation": "Update", "subresource": "status",
        "fieldsV1": {"f:spec": {"f:strategy": {}}}});
    marked["metadata"]["labels"]["x"] = json!("y");
    marked["metadata"]["managedFields"].as_array_mut().unwrap().extend([label, status]);
    assert_eq!(between(&manifest(), &marked, OURS), Deviation::Nothing);
}

#[test]
fn what_we_merged_once_is_removed_when_it_is_no_longer_wanted() {
    let actual = changed(&of_container(&json!({"f:env": {"k:{\"name\":\"B\"}": {".": {}}}})), |one| {
        container(one)["env"].as_array_mut().unwrap().push(json!({"name": "B", "value": "2"}));
        one["metadata"]["managedFields"][0]["operation"] = json!("Apply");
    });
    let text = actual.to_string().replace("kubectl-edit", OURS);
    let actual: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(between(&manifest(), &actual, OURS), Deviation::Added);
    assert!(!has_other_owner(&manifest(), &actual, OURS));
}

#[test]
fn more_keys_of_a_selector_or_of_data_are_a_difference_without_any_managed_field() {
    let wanted = json!({"kind": "Service", "spec": {"selector": {"app": "shop"}}});
    let more = json!({"spec": {"selector": {"app": "shop", "rollouts-pod-template-hash": "a"}}});
    assert!(!is_missing(&wanted, &wanted) && is_missing(&wanted, &more));
    let wanted = json!({"kind": "ConfigMap", "data": {"a": "b"}});
    assert!(!is_missing(&wanted, &wanted));
    assert!(is_missing(&wanted, &json!({"data": {"a": "b", "c": "d"}})));
}

#[test]
fn a_bundle_of_another_client_stays_where_a_condition_is_removed() {
    let hook = json!({"name": "a", "clientConfig": {"url": "u"}, "timeoutSeconds": 5});
    let wanted = json!({"kind": "ValidatingWebhookConfiguration", "webhooks": [hook]});
    let mut actual = wanted.clone();
    actual["webhooks"][0]["clientConfig"]["caBundle"] = json!("Zm9v");
    let injects = json!({"manager": "injector", "operation": "Update", "fieldsV1": {"f:webhooks": {
        "k:{\"name\":\"a\"}": {"f:clientConfig": {"f:caBundle": {}}}}}});
    actual["metadata"] = json!({"managedFields": [injects]});
    assert_eq!(between(&wanted, &actual, OURS), Deviation::Nothing);
    actual["webhooks"][0]["matchConditions"] = json!([{"name": "never", "expression": "false"}]);
    let adds = json!({"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:webhooks": {
        "k:{\"name\":\"a\"}": {"f:matchConditions": {".": {}, "k:{\"name\":\"never\"}": {".": {}}}}}}});
    actual["metadata"]["managedFields"].as_array_mut().unwrap().push(adds);
    assert_eq!(between(&wanted, &actual, OURS), Deviation::Added);
    let repaired = merged(&actual, &repair(&wanted, &actual, OURS));
    assert_eq!(repaired["webhooks"][0].get("matchConditions"), None);
    assert_eq!(repaired["webhooks"][0]["clientConfig"]["caBundle"], "Zm9v");
}
