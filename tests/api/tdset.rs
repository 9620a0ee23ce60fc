//! A TDSet and the workload that it makes, on the real clock.
//!
//! Spans of seconds from now stand for the windows of a day: what resolves their boundaries is the same.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::Test;
use crate::support::{Bed, Namespace, eventually};

pub mod alone;
pub mod autoscalers;
pub mod conflicts;
pub mod counts;
pub mod dates;
pub mod mortal;
pub mod targets;

pub const TESTS: &[Test] = &[
    ("the_count_follows_the_schedule_to_the_second", the_count_follows_the_schedule_to_the_second),
    ("a_deployment_and_a_service_are_made_and_go", a_deployment_and_a_service_are_made_and_go),
    ("a_suspended_schedule_leaves_the_count_alone", a_suspended_schedule_leaves_the_count_alone),
    ("the_list_tells_the_story", the_list_tells_the_story),
    ("between_boundaries_nothing_is_written", between_boundaries_nothing_is_written),
    ("the_old_version_is_worked_as_well", the_old_version_is_worked_as_well),
];

const TDSETS: &str = "tdsets.v1.gatehouse.dev";

/// A TDSet with one replica, and these fields besides.
fn object(name: &str, fields: &Value) -> Value {
    let mut object = json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": name},
        "spec": {"timeZone": "Europe/Berlin", "replicas": 1,
            "target": {"create": {"image": "registry.k8s.io/pause:3.10", "port": 8080}}}});
    for (key, value) in fields.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object
}

fn tdset(name: &str, fields: &Value) -> String {
    object(name, fields).to_string()
}

/// A TDSet for a workload that is there, with two replicas, and these fields besides.
fn for_workload(name: &str, api_version: &str, kind: &str, workload: &str, fields: &Value) -> String {
    let target = json!({"ref": {"apiVersion": api_version, "kind": kind, "name": workload}});
    let mut object = object(name, &json!({"replicas": 2, "target": target}));
    for (key, value) in fields.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object.to_string()
}

/// An absolute span from and until so many seconds from now, with that count.
fn span(name: &str, from: u64, until: u64, replicas: u32) -> Value {
    let between = json!({"start": seconds_from_now(from), "end": seconds_from_now(until)});
    json!({"name": name, "between": between, "replicas": replicas})
}

/// A Deployment that somebody else makes.
fn foreign(namespace: &Namespace, name: &str, replicas: u32) {
    let replicas = format!("--replicas={replicas}");
    namespace.kubectl(&["create", "deployment", name, "--image=registry.k8s.io/pause:3.10", &replicas]).ok();
}

fn patch(namespace: &Namespace, name: &str, spec: &Value) {
    let patch = json!({"spec": spec}).to_string();
    namespace.kubectl(&["patch", TDSETS, name, "--type=merge", "-p", &patch]).ok();
}

/// The notes of events with that reason that are about the TDSet.
fn notes(namespace: &Namespace, name: &str, reason: &str) -> Vec<String> {
    let list = namespace.kubectl(&["get", "events.events.k8s.io", "-o", "json"]).ok();
    let list: Value = serde_json::from_str(&list).unwrap();
    let about = |event: &&Value| {
        event["reason"] == *reason
            && event["regarding"]["kind"] == "TDSet"
            && event["regarding"]["name"] == *name
    };
    let found = list["items"].as_array().unwrap().iter().filter(about);
    found.map(|event| event["note"].as_str().unwrap().to_owned()).collect()
}

/// The field managers that own the count of a workload.
fn owners_of_count(object: &Value) -> Vec<String> {
    let managers = object["metadata"]["managedFields"].as_array().unwrap().iter();
    let owning = managers.filter(|one| one["fieldsV1"].pointer("/f:spec/f:replicas").is_some());
    owning.map(|one| one["manager"].as_str().unwrap().to_owned()).collect()
}

fn seconds_from_now(seconds: u64) -> String {
    let instant = SystemTime::UNIX_EPOCH.elapsed().unwrap() + Duration::from_secs(seconds);
    jiff::Timestamp::new(i64::try_from(instant.as_secs()).unwrap(), 0).unwrap().to_string()
}

fn condition(object: &Value, name: &str) -> (String, String) {
    let text = |field: &str| of_condition(object, name, field);
    (text("status"), text("reason"))
}

fn message(object: &Value, name: &str) -> String {
    of_condition(object, name, "message")
}

fn of_condition(object: &Value, name: &str, field: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|one| one["type"] == name).unwrap_or_default();
    found[field].as_str().unwrap_or_default().to_owned()
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
    let span = json!({"start": seconds_from_now(15), "end": seconds_from_now(19)});
    let exceptions = json!([{"name": "rush", "between": span, "replicas": 4}]);
    let manifest = tdset("rush", &json!({"exceptions": exceptions, "resyncMinutes": 1440}));
    namespace.kubectl(&["create"]).input(manifest).ok();
    namespace.until_created("deployment/rush");
    assert_eq!(namespace.get("deployment", "rush")["spec"]["replicas"], 1);
    namespace.until("tdset/rush", "{.status.nextTransition.window}", "exception/rush");
    let next = namespace.get(TDSETS, "rush")["status"]["nextTransition"].clone();
    assert_eq!(next["replicas"], 4, "{next}");

    namespace.until("deployment/rush", "{.spec.replicas}", "4");
    namespace.until("tdset/rush", "{.status.activeWindow}", "exception/rush");
    namespace.until("deployment/rush", "{.spec.replicas}", "1");
    namespace.until("tdset/rush", "{.status.lastTransition.to.replicas}", "1");
    let transition = namespace.get(TDSETS, "rush")["status"]["lastTransition"].clone();
    let lateness = transition["latenessMs"].as_i64().unwrap();
    assert!((0..2000).contains(&lateness), "{transition}");

    let events = eventually(|| {
        let notes = notes(&namespace, "rush", "Scaled");
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

fn the_list_tells_the_story(bed: &Bed) {
    let namespace = bed.namespace();
    let exceptions = json!([span("rush", 0, 7200, 2)]);
    namespace.kubectl(&["create"]).input(tdset("told", &json!({"exceptions": exceptions}))).ok();
    namespace.until("tdset/told", "{.status.replicas}", "2");
    let list = namespace.kubectl(&["get", TDSETS]).ok();
    let rows: Vec<Vec<_>> = list.lines().map(|line| line.split_whitespace().collect()).collect();
    let head = ["NAME", "WINDOW", "SCHEDULED", "REPLICAS", "STATE", "NEXT", "THEN", "AGE"];
    assert_eq!(rows[0], head, "{list}");
    assert_eq!(rows[1][..5], ["told", "exception/rush", "2", "2", "PodsNotReady"], "{list}");
    assert_eq!(rows[1][6], "1", "{list}");
}
