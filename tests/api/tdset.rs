//! A TDSet and the workload that it makes.
//!
//! Spans of seconds or minutes stand for the windows of a day: what resolves their boundaries is the same. Two
//! boundaries are waited for on the real clock, one of a workload that is made and one of a StatefulSet that is there
//! ([`with_span_ahead`]). For all others an operator has a clock that jumps ([`site`]).

use std::time::Duration;

use gatehouse::runtime::clock;
use jiff::{SignedDuration, Timestamp};
use kit::bed::{Bed, Namespace};
use kit::kstatus::kstatus;
use kit::wait::{PATIENCE, eventually, timeout};
use serde_json::{Value, json};

use crate::Test;
use crate::site::Looks;
use watched::Counts;

pub mod alone;
pub mod autoscalers;
pub mod conflicts;
pub mod counts;
pub mod crashing_operator;
pub mod crowd;
pub mod dates;
pub mod other_tools;
pub mod outage;
pub mod refusals;
pub mod reported;
pub mod targets;
mod watched;

pub const TESTS: &[Test] = &kit::tests![
    the_count_follows_the_schedule_to_the_second,
    a_deployment_and_a_service_are_made_and_go,
    a_suspended_schedule_leaves_the_count_alone,
    the_list_tells_the_story,
    clients_that_wait_see_when_it_is_ready,
    between_boundaries_nothing_is_written,
    the_old_version_is_worked_as_well,
];

const TDSETS: &str = "tdsets.v1.gatehouse.dev";

/// A TDSet with one replica, and these fields besides.
fn tdset(name: &str, fields: &Value) -> Value {
    let mut object = json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": name},
        "spec": {"timeZone": "Europe/Berlin", "defaultReplicas": 1,
            "target": {"create": {"image": "registry.k8s.io/pause:3.10", "port": 8080}}}});
    for (key, value) in fields.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object
}

/// A TDSet for a workload that is there, with two replicas, and these fields besides.
fn for_workload(name: &str, api_version: &str, kind: &str, workload: &str, fields: &Value) -> Value {
    let target = json!({"ref": {"apiVersion": api_version, "kind": kind, "name": workload}});
    let mut object = tdset(name, &json!({"defaultReplicas": 2, "target": target}));
    for (key, value) in fields.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object
}

/// An absolute span between two times, with that count.
pub fn span(name: &str, from: Timestamp, until: Timestamp, replicas: u32) -> Value {
    let between = json!({"start": from.to_string(), "end": until.to_string()});
    json!({"name": name, "between": between, "replicas": replicas})
}

/// No pod runs here, so that only a workload of none is ready.
fn clients_that_wait_see_when_it_is_ready(bed: &Bed) {
    let namespace = bed.namespace();
    let created = namespace.create(&tdset("waited", &json!({})));
    assert_eq!(kstatus(&created), "InProgress", "nothing has observed it: {created}");
    let object = until_condition(&namespace, "waited", "Ready", "False", "PodsNotReady");
    assert_eq!(kstatus(&object), "InProgress", "{object}");
    let changed = namespace.change("tdset/waited", &json!({"spec": {"defaultReplicas": 0}}));
    assert_eq!(kstatus(&changed), "InProgress", "{changed}");
    namespace.kubectl(&["wait", "--for=condition=Ready", "tdset/waited", &timeout(PATIENCE)]).ok();
    let object = namespace.get("tdset", "waited");
    assert_eq!(kstatus(&object), "Current", "{object}");
    namespace.change("tdset/waited", &json!({"spec": {"defaultReplicas": 1}}));
    let object = until_condition(&namespace, "waited", "Ready", "False", "PodsNotReady");
    assert_eq!(kstatus(&object), "InProgress", "{object}");
}

/// A Deployment that another client makes.
fn foreign(namespace: &Namespace, name: &str, replicas: u32) {
    namespace.create(&workload("Deployment", name, replicas));
}

/// A Deployment or a StatefulSet.
fn workload(kind: &str, name: &str, replicas: u32) -> Value {
    let labels = json!({"app": name});
    let container = json!({"name": "pause", "image": "registry.k8s.io/pause:3.10"});
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}})
}

/// What `kubectl scale` does, as users do it.
fn scale(namespace: &Namespace, workload: &str, replicas: u32) {
    namespace.kubectl(&["scale", workload, &format!("--replicas={replicas}")]).ok();
}

fn label(namespace: &Namespace, object: &str, value: &str) {
    namespace.change(object, &json!({"metadata": {"labels": {"colour": value}}}));
}

fn patch(namespace: &Namespace, name: &str, spec: &Value) {
    namespace.change(&format!("tdset/{name}"), &json!({"spec": spec}));
}

/// Deletes a TDSet, and waits until it is gone.
#[track_caller]
fn delete(namespace: &Namespace, name: &str) {
    let tdset = format!("tdset/{name}");
    namespace.delete(&tdset);
    namespace.until_gone(&tdset);
}

/// The notes of events with that reason that are about the TDSet, in their order.
fn notes(namespace: &Namespace, name: &str, reason: &str) -> Vec<String> {
    let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", namespace.name);
    let list = namespace.bed.objects.at(&path);
    let about = |event: &&Value| {
        event["reason"] == *reason
            && event["regarding"]["kind"] == "TDSet"
            && event["regarding"]["name"] == *name
    };
    let mut found: Vec<_> = list["items"].as_array().unwrap().iter().filter(about).collect();
    found.sort_by_key(|event| event["eventTime"].to_string());
    found.into_iter().map(|event| event["note"].as_str().unwrap().to_owned()).collect()
}

/// The same, once there are as many.
#[track_caller]
fn until_notes(namespace: &Namespace, name: &str, reason: &str, count: usize) -> Vec<String> {
    eventually(|| {
        let notes = notes(namespace, name, reason);
        if notes.len() >= count { Ok(notes) } else { Err(format!("{notes:?}")) }
    })
}

/// Waits until an object is older than what managed fields tell apart, which is whole seconds: what is written in that of
/// the creation is what the object came with.
fn until_seconds_old(namespace: &Namespace, resource: &str, name: &str) {
    let object = namespace.get(resource, name);
    let made: Timestamp = object["metadata"]["creationTimestamp"].as_str().unwrap().parse().unwrap();
    eventually(|| if clock::now().duration_since(made).as_secs() > 1 { Ok(()) } else { Err("it is new") });
}

/// The field managers that own the count of a workload.
fn owners_of_count(object: &Value) -> Vec<String> {
    let managers = object["metadata"]["managedFields"].as_array().unwrap().iter();
    let owning = managers.filter(|one| one["fieldsV1"].pointer("/f:spec/f:replicas").is_some());
    owning.map(|one| one["manager"].as_str().unwrap().to_owned()).collect()
}

/// A whole second, about so long from now.
fn from_now(time: Duration) -> Timestamp {
    let time = clock::now() + SignedDuration::try_from(time).unwrap();
    Timestamp::from_second(time.as_second()).unwrap()
}

/// A TDSet with a span of that count, and what its workload counts. The operator has heard of the span before it
/// begins, however slow the machine is: one that it hears of too late is left alone, and another has longer until its
/// own begins. `make` makes a TDSet and its workload; `lasts` is how long the span is, in parts of the time until it
/// begins.
fn with_span_ahead(
    namespace: &Namespace,
    replicas: u32,
    lasts: u32,
    make: impl Fn(&str),
    plural: &str,
) -> (String, Counts) {
    let mut lead = Duration::from_secs(2);
    for attempt in 0.. {
        let name = format!("rush-{attempt}");
        let counts = Counts::of(namespace, plural, &name);
        make(&name);
        namespace.until(&format!("tdset/{name}"), "{.status.observedGeneration}", "1");
        let (start, end) = (from_now(lead), from_now(lead * (lasts + 1)));
        patch(namespace, &name, &json!({"exceptions": [span("rush", start, end, replicas)]}));
        let next = until_seen(namespace, &name)["nextTransition"].clone();
        if next["time"] == *start.to_string() {
            assert_eq!(next["replicas"], replicas, "{next}");
            return (name, counts);
        }
        println!("{name}: the operator has not heard within {lead:?}");
        lead *= 2;
    }
    unreachable!("numbers end")
}

/// The passes of the shared operator from now on.
fn looks(namespace: &Namespace) -> Looks {
    namespace.bed.gate(|gate| Looks::from_now(gate.log(), &namespace.name))
}

/// A TDSet as it is once that has come true.
#[track_caller]
fn until_status(namespace: &Namespace, name: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    namespace.bed.objects.until(&format!("tdset/{name}"), &namespace.name, |object| {
        if is_so(&object["status"]) {
            Ok(object["status"].clone())
        } else {
            Err(object["status"].to_string())
        }
    })
}

/// The status that is about the spec as it is.
#[track_caller]
fn until_seen(namespace: &Namespace, name: &str) -> Value {
    let generation = namespace.get(TDSETS, name)["metadata"]["generation"].clone();
    until_status(namespace, name, |status| status["observedGeneration"] == generation)
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
    namespace.bed.objects.until(&format!("tdset/{name}"), &namespace.name, |object| {
        let found = condition(object, about);
        if found == (status.into(), reason.into()) {
            Ok(object.clone())
        } else {
            Err(format!("{about} is {found:?}"))
        }
    })
}

fn the_count_follows_the_schedule_to_the_second(bed: &Bed) {
    let namespace = bed.namespace();
    let make = |name: &str| {
        namespace.create(&tdset(name, &json!({"resyncMinutes": 1440})));
    };
    let (name, counts) = with_span_ahead(&namespace, 4, 10, make, "deployments");
    counts.until(&[1, 4, 1]);
    let is_over = |status: &Value| status["lastTransition"]["from"]["window"] == "exception/rush";
    let status = until_status(&namespace, &name, is_over);
    println!("the second transition was {} ms late", status["lastTransition"]["latenessMs"]);
    // What an edit asks for comes after all that the transitions have brought about.
    patch(&namespace, &name, &json!({"defaultReplicas": 2}));
    counts.until(&[1, 4, 1, 2]);
    let events = until_notes(&namespace, &name, "ReplicasScheduled", 3);
    let heads =
        ["replicas 1 → 4: exception rush, ", "replicas 4 → 1: outside all windows, ", "replicas 1 → 2: "];
    let is_head = |(event, head): (&String, &str)| event.starts_with(head);
    assert_eq!(events.len(), heads.len(), "one event for each transition: {events:?}");
    assert!(events.iter().zip(heads).all(is_head), "one event for each transition: {events:?}");
    let is_by_the_clock = |event: &String| event.ends_with(" ms late");
    assert_eq!(events.iter().filter(|event| is_by_the_clock(event)).count(), 2, "{events:?}");
}

fn a_deployment_and_a_service_are_made_and_go(bed: &Bed) {
    let namespace = bed.namespace();
    let create = json!({"image": "registry.k8s.io/pause:3.10", "port": 8080, "servicePort": 80,
        "env": [{"name": "COLOUR", "value": "red"}], "resources": {"requests": {"cpu": "10m"}},
        "pod": {"labels": {"team": "a"}, "priorityClassName": "system-node-critical"}});
    namespace.create(&tdset("shop", &json!({"target": {"create": create}})));
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

    patch(&namespace, "shop", &json!({"target": {"create": {"servicePort": null}}}));
    namespace.until_gone("service/shop");
    let image = "{.spec.template.spec.containers[0].image}";
    patch(&namespace, "shop", &json!({"target": {"create": {"image": "registry.k8s.io/pause:3.9"}}}));
    namespace.until("deployment/shop", image, "registry.k8s.io/pause:3.9");
    namespace.delete("tdset/shop");
    namespace.until_gone("deployment/shop");
}

fn a_suspended_schedule_leaves_the_count_alone(bed: &Bed) {
    let namespace = bed.namespace();
    let counts = Counts::of(&namespace, "deployments", "held");
    namespace.create(&tdset("held", &json!({})));
    counts.until(&[1]);
    patch(&namespace, "held", &json!({"suspend": true}));
    until_condition(&namespace, "held", "Suspended", "True", "SuspendedBySpec");
    scale(&namespace, "deployment/held", 6);
    // The rest rolls out, the count stays.
    patch(&namespace, "held", &json!({"target": {"create": {"image": "registry.k8s.io/pause:3.9"}}}));
    let image = "{.spec.template.spec.containers[0].image}";
    namespace.until("deployment/held", image, "registry.k8s.io/pause:3.9");
    assert_eq!(namespace.get("deployment", "held")["spec"]["replicas"], 6);
    patch(&namespace, "held", &json!({"suspend": false}));
    counts.until(&[1, 6, 1]);
}

fn between_boundaries_nothing_is_written(bed: &Bed) {
    let namespace = bed.namespace();
    let window = json!([{"name": "always", "from": "00:00", "to": "24:00", "replicas": 2}]);
    namespace.create(&tdset("quiet", &json!({"windows": window})));
    // Nothing follows: there is no node for the pods.
    until_condition(&namespace, "quiet", "Progressing", "True", "PodsNotReady");
    let written = || {
        let (tdset, deployment) = (namespace.get(TDSETS, "quiet"), namespace.get("deployment", "quiet"));
        let ours = deployment["metadata"]["managedFields"].as_array().unwrap().iter();
        let ours: Vec<_> =
            ours.filter(|one| one["manager"].to_string().contains("gatehouse")).cloned().collect();
        (tdset["metadata"]["resourceVersion"].clone(), deployment["metadata"]["generation"].clone(), ours)
    };
    let before = written();
    // What another client writes wakes the operator. Of two looks one began after that was written.
    for colour in ["red", "blue"] {
        let looks = looks(&namespace);
        label(&namespace, "deployment/quiet", colour);
        looks.until_over(&["quiet"]);
    }
    assert_eq!(written(), before);
}

fn the_old_version_is_worked_as_well(bed: &Bed) {
    let namespace = bed.namespace();
    let manifest = json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet", "metadata": {"name": "old"},
        "spec": {"container": {"image": "registry.k8s.io/pause:3.10", "port": 8000}, "service": {"port": 80},
            "schedulingConfig": [{"startTime": 0, "endTime": 12, "replica": 3}, {"startTime": 12, "endTime": 0, "replica": 3}],
            "defaultReplica": 2, "intervalMint": 1440}});
    namespace.create(&manifest);
    namespace.until_created("service/old");
    namespace.until("deployment/old", "{.spec.replicas}", "3");
    namespace.until("tdsets.v1alpha1.gatehouse.dev/old", "{.status.scheduledReplicas}", "3");
}

fn the_list_tells_the_story(bed: &Bed) {
    let namespace = bed.namespace();
    let exceptions = json!([span("rush", from_now(Duration::ZERO), from_now(Duration::from_hours(2)), 2)]);
    namespace.create(&tdset("told", &json!({"exceptions": exceptions})));
    namespace.until("tdset/told", "{.status.replicas}", "2");
    let list = namespace.kubectl(&["get", TDSETS]).ok();
    let rows: Vec<Vec<_>> = list.lines().map(|line| line.split_whitespace().collect()).collect();
    let head = ["NAME", "READY", "REASON", "WINDOW", "SCHEDULED", "REPLICAS", "NEXT", "THEN", "AGE"];
    assert_eq!(rows[0], head, "{list}");
    assert_eq!(rows[1][..6], ["told", "False", "PodsNotReady", "exception/rush", "2", "2"], "{list}");
    // The next time has a weekday, a date, a time and a zone.
    assert_eq!(rows[1][10], "1", "{list}");
}
