//! A TDSet and the workload that it makes, on the real clock.
//!
//! Spans of seconds from now stand for the windows of a day: what resolves their boundaries is the same.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::Test;
use crate::support::{Bed, Namespace, eventually};

pub const TESTS: &[Test] = &[
    ("the_count_follows_the_schedule_to_the_second", the_count_follows_the_schedule_to_the_second),
    ("a_deployment_and_a_service_are_made_and_go", a_deployment_and_a_service_are_made_and_go),
    ("a_count_that_somebody_else_writes_is_taken_back", a_count_that_somebody_else_writes_is_taken_back),
    ("a_suspended_schedule_leaves_the_count_alone", a_suspended_schedule_leaves_the_count_alone),
    ("a_foreign_deployment_is_never_adopted", a_foreign_deployment_is_never_adopted),
    ("what_is_not_acted_on_is_said", what_is_not_acted_on_is_said),
    ("between_boundaries_nothing_is_written", between_boundaries_nothing_is_written),
    ("the_old_version_is_worked_as_well", the_old_version_is_worked_as_well),
];

const TDSETS: &str = "tdsets.v1.gatehouse.dev";

/// A TDSet with one replica, and these fields besides.
fn tdset(name: &str, fields: &Value) -> String {
    let mut object = json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": name},
        "spec": {"timeZone": "Europe/Berlin", "replicas": 1,
            "target": {"create": {"image": "registry.k8s.io/pause:3.10", "port": 8080}}}});
    for (key, value) in fields.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object.to_string()
}

fn seconds_from_now(seconds: u64) -> String {
    let instant = SystemTime::UNIX_EPOCH.elapsed().unwrap() + Duration::from_secs(seconds);
    jiff::Timestamp::new(i64::try_from(instant.as_secs()).unwrap(), 0).unwrap().to_string()
}

fn condition(object: &Value, name: &str) -> (String, String) {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|one| one["type"] == name).unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

#[track_caller]
fn until_condition(namespace: &Namespace, name: &str, about: &str, status: &str, reason: &str) -> Value {
    eventually(|| {
        let object = namespace.get(TDSETS, name);
        let found = condition(&object, about);
        if found == (status.into(), reason.into()) {
            Ok(object)
        } else {
            Err(format!("{about} is {found:?}"))
        }
    })
}

fn the_count_follows_the_schedule_to_the_second(bed: &Bed) {
    let namespace = bed.namespace();
    let span = json!({"start": seconds_from_now(4), "end": seconds_from_now(8)});
    let exceptions = json!([{"name": "rush", "between": span, "replicas": 4}]);
    let manifest = tdset("rush", &json!({"exceptions": exceptions, "resyncMinutes": 1440}));
    namespace.kubectl(&["create"]).input(manifest).ok();
    namespace.until_created("deployment/rush");
    assert_eq!(namespace.get("deployment", "rush")["spec"]["replicas"], 1);
    let next = namespace.get(TDSETS, "rush")["status"]["nextTransition"].clone();
    assert_eq!((&next["window"], &next["replicas"]), (&json!("exception/rush"), &json!(4)), "{next}");

    namespace.until("deployment/rush", "{.spec.replicas}", "4");
    namespace.until("tdset/rush", "{.status.activeWindow}", "exception/rush");
    namespace.until("deployment/rush", "{.spec.replicas}", "1");
    namespace.until("tdset/rush", "{.status.lastTransition.to.replicas}", "1");
    let transition = namespace.get(TDSETS, "rush")["status"]["lastTransition"].clone();
    let lateness = transition["latenessMs"].as_i64().unwrap();
    assert!((0..2000).contains(&lateness), "{transition}");

    let events = eventually(|| {
        let list = namespace.kubectl(&["get", "events.events.k8s.io", "-o", "json"]).ok();
        let list: Value = serde_json::from_str(&list).unwrap();
        let scaled = |event: &&Value| event["reason"] == "Scaled" && event["regarding"]["kind"] == "TDSet";
        let notes: Vec<_> =
            list["items"].as_array().unwrap().iter().filter(scaled).map(|one| one["note"].clone()).collect();
        if notes.len() >= 2 { Ok(notes) } else { Err(format!("{notes:?}")) }
    });
    assert_eq!(events.len(), 2, "one event for each transition: {events:?}");
}

fn a_deployment_and_a_service_are_made_and_go(bed: &Bed) {
    let namespace = bed.namespace();
    let create = json!({"image": "registry.k8s.io/pause:3.10", "port": 8080, "servicePort": 80,
        "env": [{"name": "COLOUR", "value": "red"}], "resources": {"requests": {"cpu": "10m"}},
        "podTemplate": {"metadata": {"labels": {"team": "a"}}, "priorityClassName": "system-node-critical"}});
    namespace.kubectl(&["create"]).input(tdset("shop", &json!({"target": {"create": create}}))).ok();
    namespace.until_created("service/shop");
    let deployment = namespace.get("deployment", "shop");
    let pod = &deployment["spec"]["template"];
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["image"], "registry.k8s.io/pause:3.10");
    assert_eq!(container["ports"][0]["containerPort"], 8080);
    assert_eq!(container["env"], json!([{"name": "COLOUR", "value": "red"}]));
    assert_eq!(container["resources"]["requests"]["cpu"], "10m");
    assert_eq!(pod["metadata"]["labels"]["team"], "a");
    assert_eq!(pod["spec"]["priorityClassName"], "system-node-critical");
    let service = namespace.get("service", "shop");
    assert_eq!(service["spec"]["ports"][0]["port"], 80);
    for object in [&deployment, &service] {
        let owner = &object["metadata"]["ownerReferences"][0];
        assert_eq!(
            (&owner["kind"], &owner["name"], &owner["controller"]),
            (&json!("TDSet"), &json!("shop"), &json!(true))
        );
        let managers = object["metadata"]["managedFields"].as_array().unwrap();
        assert!(
            managers.iter().any(|one| one["operation"] == "Apply" && one["manager"] == "gatehouse-tdset")
        );
    }
    let labels = service["spec"]["selector"].as_object().unwrap();
    assert!(
        labels.iter().all(|(key, value)| pod["metadata"]["labels"][key] == *value),
        "the Service finds the pods"
    );

    let without = r#"[{"op": "remove", "path": "/spec/target/create/servicePort"}]"#;
    namespace.kubectl(&["patch", TDSETS, "shop", "--type=json", "-p", without]).ok();
    namespace.until_gone("service/shop");
    namespace.kubectl(&["patch", TDSETS, "shop", "--type=json", "-p", r#"[{"op": "replace", "path": "/spec/target/create/image", "value": "registry.k8s.io/pause:3.9"}]"#]).ok();
    namespace.until(
        "deployment/shop",
        "{.spec.template.spec.containers[0].image}",
        "registry.k8s.io/pause:3.9",
    );
    namespace.kubectl(&["delete", TDSETS, "shop"]).ok();
    if bed.cluster.has_controller_manager() {
        namespace.until_gone("deployment/shop");
    }
}

fn a_count_that_somebody_else_writes_is_taken_back(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.kubectl(&["create"]).input(tdset("firm", &json!({}))).ok();
    namespace.until_created("deployment/firm");
    namespace.kubectl(&["scale", "deployment/firm", "--replicas=7"]).ok();
    namespace.until("deployment/firm", "{.spec.replicas}", "1");
    let delete = namespace.kubectl(&["delete", "deployment", "firm", "--wait=false"]);
    delete.ok();
    namespace.until_created("deployment/firm");
}

fn a_suspended_schedule_leaves_the_count_alone(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.kubectl(&["create"]).input(tdset("held", &json!({}))).ok();
    namespace.until_created("deployment/held");
    namespace.kubectl(&["patch", TDSETS, "held", "--type=merge", "-p", r#"{"spec":{"suspend":true}}"#]).ok();
    until_condition(&namespace, "held", "Suspended", "True", "SuspendedBySpec");
    namespace.kubectl(&["scale", "deployment/held", "--replicas=6"]).ok();
    let image = r#"{"spec":{"target":{"create":{"image":"registry.k8s.io/pause:3.9"}}}}"#;
    namespace.kubectl(&["patch", TDSETS, "held", "--type=merge", "-p", image]).ok();
    namespace.until(
        "deployment/held",
        "{.spec.template.spec.containers[0].image}",
        "registry.k8s.io/pause:3.9",
    );
    assert_eq!(
        namespace.get("deployment", "held")["spec"]["replicas"],
        6,
        "the rest rolls out, the count stays"
    );
    namespace.kubectl(&["patch", TDSETS, "held", "--type=merge", "-p", r#"{"spec":{"suspend":false}}"#]).ok();
    namespace.until("deployment/held", "{.spec.replicas}", "1");
}

fn a_foreign_deployment_is_never_adopted(bed: &Bed) {
    let namespace = bed.namespace();
    namespace
        .kubectl(&["create", "deployment", "taken", "--image=registry.k8s.io/pause:3.8", "--replicas=2"])
        .ok();
    let before = namespace.get("deployment", "taken");
    namespace.kubectl(&["create"]).input(tdset("taken", &json!({}))).ok();
    until_condition(&namespace, "taken", "Conflict", "True", "NameTaken");
    let after = namespace.get("deployment", "taken");
    assert_eq!(before["spec"], after["spec"]);
    assert!(after["metadata"].get("ownerReferences").is_none());
    namespace.kubectl(&["delete", "deployment", "taken"]).ok();
    // A foreign Deployment is not watched; an edit asks for a look before the next one is due.
    namespace
        .kubectl(&["patch", TDSETS, "taken", "--type=merge", "-p", r#"{"spec":{"resyncMinutes":60}}"#])
        .ok();
    until_condition(&namespace, "taken", "Conflict", "False", "NoConflict");
    namespace.until("deployment/taken", "{.spec.replicas}", "1");
}

fn what_is_not_acted_on_is_said(bed: &Bed) {
    let namespace = bed.namespace();
    let target = json!({"ref": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "database"}});
    namespace.kubectl(&["create"]).input(tdset("later", &json!({"target": target}))).ok();
    let object = until_condition(&namespace, "later", "Ready", "False", "NotSupported");
    assert!(object.to_string().contains("not acted on by this release"), "{object}");
}

fn between_boundaries_nothing_is_written(bed: &Bed) {
    let namespace = bed.namespace();
    let window = json!([{"name": "always", "from": "00:00", "to": "24:00", "replicas": 2}]);
    namespace.kubectl(&["create"]).input(tdset("quiet", &json!({"windows": window}))).ok();
    namespace.until("deployment/quiet", "{.status.replicas}", "2");
    namespace.until("tdset/quiet", "{.status.replicas}", "2");
    let version = |resource: &str| namespace.get(resource, "quiet")["metadata"]["resourceVersion"].clone();
    // What somebody else writes wakes the controller; that it has looked is seen by an object made afterwards.
    namespace.kubectl(&["label", "deployment", "quiet", "colour=red"]).ok();
    let before = (version("deployment"), version(TDSETS));
    namespace.kubectl(&["create"]).input(tdset("after", &json!({}))).ok();
    namespace.until("tdset/after", "{.status.replicas}", "1");
    assert_eq!((version("deployment"), version(TDSETS)), before);
}

fn the_old_version_is_worked_as_well(bed: &Bed) {
    let namespace = bed.namespace();
    let manifest = json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet", "metadata": {"name": "old"},
        "spec": {"container": {"image": "registry.k8s.io/pause:3.10", "port": 8000}, "service": {"port": 80},
            "schedulingConfig": [{"startTime": 0, "endTime": 12, "replica": 3}, {"startTime": 12, "endTime": 0, "replica": 3}],
            "defaultReplica": 2, "intervalMint": 1440}});
    namespace.kubectl(&["create"]).input(manifest.to_string()).ok();
    namespace.until_created("service/old");
    namespace.until("deployment/old", "{.spec.replicas}", "3");
    namespace.until("tdsets.v1alpha1.gatehouse.dev/old", "{.status.scheduledReplicas}", "3");
}
