//! Conversion under the API server's own reading and writing: lists, watches, patches, and what it costs nobody.

use serde_json::{Value, json};

use crate::Test;
use crate::direct::{Call, Direct, http_get, of};
use crate::support::{Bed, Namespace, eventually};

pub const TESTS: &[Test] = &[
    ("lists_hold_every_object_in_both_versions", lists_hold_every_object_in_both_versions),
    (
        "a_watch_of_the_old_version_sees_an_edit_of_the_new_one",
        a_watch_of_the_old_version_sees_an_edit_of_the_new_one,
    ),
    ("managed_fields_read_the_same_in_both_versions", managed_fields_read_the_same_in_both_versions),
    ("sixty_windows_go_through_the_old_version", sixty_windows_go_through_the_old_version),
    ("a_write_of_what_was_read_writes_nothing", a_write_of_what_was_read_writes_nothing),
];

/// How many objects make a long list.
const MANY: usize = 200;

fn old(name: &str) -> Value {
    json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet", "metadata": {"name": name},
        "spec": {"container": {"image": "shop", "port": 80}, "service": {"port": 80}, "defaultReplica": 2,
            "schedulingConfig": [{"startTime": 8, "endTime": 18, "replica": 6}]}})
}

fn new(name: &str) -> Value {
    json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": name},
        "spec": {"timeZone": "Europe/Berlin", "replicas": 2, "overlap": "Max",
            "windows": [{"name": "office", "from": "08:30", "to": "18:15", "days": ["Mon"], "replicas": 6}],
            "target": {"create": {"image": "shop", "port": 80}}}})
}

fn create(namespace: &str, object: Value) -> Call {
    let version = object["apiVersion"].as_str().and_then(|text| text.strip_prefix("gatehouse.dev/"));
    Call { method: "POST", path: of(version.expect("ours"), namespace, "tdsets"), body: object }
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().expect("a list");
    items.iter().map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
}

/// Waits until the operator has made what the object asks for, and writes to it no more.
fn settled(namespace: &Namespace, name: &str) {
    eventually(|| {
        let status = namespace.get("tdsets.v1.gatehouse.dev", name)["status"].clone();
        let done = status["replicas"].is_number() && status["replicas"] == status["scheduledReplicas"];
        if done { Ok(()) } else { Err(status.to_string()) }
    });
}

/// How many TDSets the gate has converted.
fn converted(bed: &Bed) -> u64 {
    let page = http_get(bed.gate(|gate| gate.health), "/metrics");
    let line = r#"gatehouse_conversion_objects_total{kind="TDSet",result="success"} "#;
    page.lines().find_map(|one| one.strip_prefix(line)).map_or(0, |count| count.parse().expect("a number"))
}

fn lists_hold_every_object_in_both_versions(bed: &Bed) {
    let namespace = bed.namespace();
    let direct = Direct::new(bed.cluster.kubeconfig());
    let before = converted(bed);
    let name = |index: usize| format!("many-{index:03}");
    let object = |index: usize| if index.is_multiple_of(2) { old(&name(index)) } else { new(&name(index)) };
    for outcome in direct.all((0..MANY).map(|index| create(&namespace.name, object(index))).collect()) {
        outcome.unwrap_or_else(|refusal| panic!("{}", refusal.message));
    }
    let expected: Vec<_> = (0..MANY).map(name).collect();
    let (hub, spoke) = (of("v1", &namespace.name, "tdsets"), of("v1alpha1", &namespace.name, "tdsets"));
    for path in [&hub, &spoke] {
        assert_eq!(names(&direct.get(path)), expected, "{path}");
    }
    assert!(converted(bed) >= before + MANY as u64, "each was converted");
    let raw: Value = serde_json::from_str(&bed.kubectl(&["get", "--raw", &spoke]).ok()).expect("JSON");
    assert_eq!(names(&raw), expected);
    assert!(raw["items"].as_array().expect("a list").iter().enumerate().all(|(index, item)| {
        let zoned = item["metadata"]["annotations"]["conversion.gatehouse.dev/spec.timeZone"].is_string();
        item["apiVersion"] == "gatehouse.dev/v1alpha1"
            && item["spec"]["defaultReplica"] == 2
            && (zoned || index % 2 == 0)
    }));

    let mut pages = Vec::new();
    let mut more = String::new();
    loop {
        let page = direct.get(&format!("{spoke}?limit=70&continue={more}"));
        pages.extend(names(&page));
        match page["metadata"]["continue"].as_str() {
            Some(token) if !token.is_empty() => token.clone_into(&mut more),
            _ => break,
        }
    }
    assert_eq!(pages, expected, "page by page");

    direct.one(Call { method: "DELETE", path: spoke.clone(), body: Value::Null }).expect("all are deleted");
    for path in [&hub, &spoke] {
        assert!(names(&direct.get(path)).is_empty(), "{path}");
    }
}

fn a_watch_of_the_old_version_sees_an_edit_of_the_new_one(bed: &Bed) {
    let namespace = bed.namespace();
    let direct = Direct::new(bed.cluster.kubeconfig());
    direct.one(create(&namespace.name, new("watched"))).expect("created");
    let list = direct.get(&of("v1alpha1", &namespace.name, "tdsets"));
    let version = list["metadata"]["resourceVersion"].as_str().expect("a version");
    let watch = format!(
        "{}?watch=true&timeoutSeconds=30&resourceVersion={version}",
        of("v1alpha1", &namespace.name, "tdsets")
    );
    let edit = Call {
        method: "PATCH",
        path: of("v1", &namespace.name, "tdsets") + "/watched",
        body: json!({"spec": {"replicas": 7}}),
    };
    // The operator writes the status meanwhile.
    let event = direct.event_after(&watch, edit, |event| event["object"]["spec"]["defaultReplica"] != 2);
    assert_eq!(event["type"], "MODIFIED");
    assert_eq!(event["object"]["apiVersion"], "gatehouse.dev/v1alpha1");
    assert_eq!(event["object"]["spec"]["defaultReplica"], 7);
}

fn managed_fields_read_the_same_in_both_versions(bed: &Bed) {
    let namespace = bed.namespace();
    let apply = ["apply", "--server-side", "--field-manager", "old-manager"];
    namespace.kubectl(&apply).input(old("owned").to_string()).ok();
    let edit = r#"{"spec":{"timeZone":"Europe/Berlin"}}"#;
    namespace.kubectl(&["patch", "tdsets.v1.gatehouse.dev", "owned", "--type=merge", "-p", edit]).ok();
    settled(&namespace, "owned");
    let fields = |resource: &str| namespace.get(resource, "owned")["metadata"]["managedFields"].clone();
    let managed = fields("tdsets.v1.gatehouse.dev");
    assert_eq!(managed, fields("tdsets.v1alpha1.gatehouse.dev"));
    let managers = managed.as_array().expect("a list");
    let of_old = managers.iter().find(|one| one["manager"] == "old-manager").expect("still an owner");
    assert_eq!(of_old["apiVersion"], "gatehouse.dev/v1alpha1");
    assert!(of_old.pointer("/fieldsV1/f:spec/f:container/f:image").is_some(), "{of_old}");
    assert!(managers.iter().any(|one| one.pointer("/fieldsV1/f:spec/f:timeZone").is_some()), "{managed}");
}

/// A timetable that the old version cannot say: minutes, days, seasons.
fn timetable(name: &str) -> Value {
    let window = |index: usize| {
        json!({"name": format!("w{index}"), "from": format!("{:02}:{:02}", index % 24, index % 60),
            "to": format!("{:02}:{:02}", (index + 1) % 24, (index + 7) % 60), "days": ["Mon", "Wed"],
            "season": {"from": "2026-01-01", "to": "2026-12-31"}, "replicas": index})
    };
    let mut object = new(name);
    object["spec"]["windows"] = (0..60).map(window).collect();
    object
}

fn sixty_windows_go_through_the_old_version(bed: &Bed) {
    let namespace = bed.namespace();
    let direct = Direct::new(bed.cluster.kubeconfig());
    direct.one(create(&namespace.name, timetable("long"))).expect("created");
    let (hub, spoke) =
        (of("v1", &namespace.name, "tdsets") + "/long", of("v1alpha1", &namespace.name, "tdsets") + "/long");
    settled(&namespace, "long");
    let stored = direct.get(&hub);
    let shown = direct.get(&spoke);
    assert_eq!(shown["spec"]["schedulingConfig"].as_array().expect("a list").len(), 60);

    namespace.kubectl(&["replace"]).input(shown.to_string()).ok();
    assert_eq!(direct.get(&hub)["spec"], stored["spec"]);

    // An edit of one hour through the old version, by somebody who writes what that version shows and no more.
    let mut edited = shown;
    let metadata = edited["metadata"].as_object_mut().expect("metadata");
    metadata.retain(|key, _| key == "name" || key == "namespace");
    edited["spec"]["schedulingConfig"][30]["replica"] = 99.into();
    namespace.kubectl(&["replace"]).input(edited.to_string()).ok();
    let mut expected = stored["spec"].clone();
    expected["windows"][30]["replicas"] = 99.into();
    assert_eq!(direct.get(&hub)["spec"], expected);
}

fn a_write_of_what_was_read_writes_nothing(bed: &Bed) {
    let namespace = bed.namespace();
    let direct = Direct::new(bed.cluster.kubeconfig());
    direct.one(create(&namespace.name, timetable("same"))).expect("created");
    direct.one(create(&namespace.name, old("same-old"))).expect("created");
    for name in ["same", "same-old"] {
        settled(&namespace, name);
        for version in ["v1alpha1", "v1"] {
            let path = format!("{}/{name}", of(version, &namespace.name, "tdsets"));
            let read = direct.get(&path);
            let written = direct.one(Call { method: "PUT", path, body: read.clone() }).expect("written");
            assert_eq!(
                written["metadata"]["resourceVersion"], read["metadata"]["resourceVersion"],
                "{name} {version}"
            );
            assert_eq!(written["metadata"]["generation"], 1, "{name} {version}");
        }
    }
}
