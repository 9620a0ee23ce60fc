//! Conversion under the API server's own reading and writing: lists, watches, patches, and what it does not cost.

use std::process::Command;

use kit::bed::{Bed, Namespace};
use kit::objects::{Ask, http_get, of};
use kit::program::Gate;
use kit::wait::{PATIENCE, eventually, patient};
use serde_json::{Value, json};

use crate::Test;
use crate::corpus::bare;

mod cost;
mod remembered;

/// With no operator that reconciles so many objects.
pub const ON_BARE: &[Test] =
    &kit::tests![lists_hold_every_object_in_both_versions, cost::what_conversion_costs_is_counted];
pub const TESTS: &[Test] = &kit::tests![
    a_watch_of_the_old_version_sees_an_edit_of_the_new_one,
    managed_fields_read_the_same_in_both_versions,
    sixty_windows_go_through_the_old_version,
    a_window_edited_beside_others_keeps_what_the_old_version_cannot_say,
    remembered::an_object_is_accepted_as_long_as_the_old_version_can_carry_it,
    remembered::an_object_that_the_old_version_can_no_longer_carry_is_written_as_v1_only,
    remembered::a_late_manifest_of_the_old_version_changes_nothing_that_it_cannot_show,
    a_write_of_what_was_read_writes_nothing,
    a_namespace_is_written_down_as_manifests,
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
        "spec": {"timeZone": "Europe/Berlin", "defaultReplicas": 2, "overlap": "Max",
            "windows": [{"name": "office", "from": "08:30", "to": "18:15", "days": ["Mon"], "replicas": 6}],
            "target": {"create": {"image": "shop", "port": 80}}}})
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().expect("a list");
    items.iter().map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
}

/// Waits until the operator has made what the object asks for: as many replicas are there as are asked for, or none
/// where no controllers make them.
fn settled(namespace: &Namespace, name: &str) {
    let has_controllers = namespace.bed.cluster.has_controller_manager();
    namespace.bed.objects.until(&format!("tdset/{name}"), &namespace.name, |object| {
        let (made, asked) = (&object["status"]["replicas"], &object["status"]["scheduledReplicas"]);
        let is_made = if has_controllers { made == asked } else { *made == 0 };
        if asked.is_number() && is_made { Ok(()) } else { Err(object["status"].to_string()) }
    });
}

/// Writes an object as it was read, but for an edit; again where the operator wrote its status in between. What was
/// read, and what is there then.
fn rewrite(namespace: &Namespace, path: &str, edit: impl Fn(&mut Value)) -> (Value, Value) {
    let (read, written, _) = rewrite_warned(namespace, path, edit);
    (read, written)
}

/// The same, with what the author is warned of.
fn rewrite_warned(
    namespace: &Namespace,
    path: &str,
    edit: impl Fn(&mut Value),
) -> (Value, Value, Vec<String>) {
    eventually(|| {
        let read = namespace.bed.objects.at(path);
        let mut object = read.clone();
        edit(&mut object);
        match namespace.bed.objects.warned(Ask::put(path, object)) {
            (Ok(written), warnings) => Ok((read, written, warnings)),
            (Err(refusal), _) if refusal.code == 409 => Err(refusal.message),
            (Err(refusal), _) => panic!("{path}: {}", refusal.message),
        }
    })
}

/// How many objects of a kind a gate has converted.
fn converted(gate: &Gate, kind: &str) -> u64 {
    let page = http_get(gate.health, "/metrics");
    let name = "gatehouse_conversion_objects_total{";
    let counts = page.lines().filter_map(|line| line.strip_prefix(name)?.split_once("} "));
    let of_ours = format!(r#"kind="{kind}",result="success""#);
    let ours = counts.filter(|(labels, _)| labels.ends_with(&of_ours));
    ours.map(|(_, count)| count.parse::<u64>().expect("a number")).sum()
}

fn lists_hold_every_object_in_both_versions(bed: &Bed) {
    let bare = bare::beside(bed);
    let _turn = bare.turn_of_many();
    let (namespace, objects) = (bare.bed.namespace(), &bare.bed.objects);
    let before = converted(&bare.converter, "TDSet");
    let name = |index: usize| format!("many-{index:03}");
    let object = |index: usize| if index.is_multiple_of(2) { old(&name(index)) } else { new(&name(index)) };
    for outcome in objects.all((0..MANY).map(|index| Ask::create(&object(index), &namespace.name)).collect())
    {
        outcome.unwrap_or_else(|refusal| panic!("{}", refusal.message));
    }
    let expected: Vec<_> = (0..MANY).map(name).collect();
    let (hub, spoke) = (of("v1", &namespace.name, "tdsets"), of("v1alpha1", &namespace.name, "tdsets"));
    for path in [&hub, &spoke] {
        assert_eq!(names(&objects.at(path)), expected, "{path}");
    }
    assert!(converted(&bare.converter, "TDSet") >= before + MANY as u64, "each was converted");
    let raw: Value = serde_json::from_str(&bare.bed.kubectl(&["get", "--raw", &spoke]).ok()).expect("JSON");
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
        let page = objects.at(&format!("{spoke}?limit=70&continue={more}"));
        pages.extend(names(&page));
        match page["metadata"]["continue"].as_str() {
            Some(token) if !token.is_empty() => token.clone_into(&mut more),
            _ => break,
        }
    }
    assert_eq!(pages, expected, "page by page");

    // An API server deletes those of a collection one after the other, within the time that a request may take.
    for _ in 0..MANY.div_ceil(50) {
        objects.must(Ask::delete(format!("{spoke}?limit=50")));
    }
    for path in [&hub, &spoke] {
        assert!(names(&objects.at(path)).is_empty(), "{path}");
    }
}

fn a_watch_of_the_old_version_sees_an_edit_of_the_new_one(bed: &Bed) {
    let namespace = bed.namespace();
    let objects = &bed.objects;
    namespace.create(&new("watched"));
    let list = objects.at(&of("v1alpha1", &namespace.name, "tdsets"));
    let version = list["metadata"]["resourceVersion"].as_str().expect("a version");
    let watch = format!(
        "{}?watch=true&timeoutSeconds={}&resourceVersion={version}",
        of("v1alpha1", &namespace.name, "tdsets"),
        patient(PATIENCE).as_secs()
    );
    let edit = Ask::patch(namespace.path("tdset/watched"), json!({"spec": {"defaultReplicas": 7}}));
    // The operator writes the status meanwhile.
    let event = objects.event_after(&watch, edit, |event| event["object"]["spec"]["defaultReplica"] != 2);
    assert_eq!(event["type"], "MODIFIED");
    assert_eq!(event["object"]["apiVersion"], "gatehouse.dev/v1alpha1");
    assert_eq!(event["object"]["spec"]["defaultReplica"], 7);
}

fn managed_fields_read_the_same_in_both_versions(bed: &Bed) {
    let namespace = bed.namespace();
    let apply = ["apply", "--server-side", "--field-manager", "old-manager"];
    namespace.kubectl(&apply).input(old("owned").to_string()).ok();
    namespace.change("tdset/owned", &json!({"spec": {"timeZone": "Europe/Berlin"}}));
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
            "season": {"first": "2026-01-01", "last": "2026-12-31"}, "replicas": index})
    };
    let mut object = new(name);
    object["spec"]["windows"] = (0..60).map(window).collect();
    object
}

fn sixty_windows_go_through_the_old_version(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(&timetable("long"));
    let (hub, spoke) = (namespace.path("tdset/long"), namespace.path("tdsets.v1alpha1.gatehouse.dev/long"));
    let stored = bed.objects.at(&hub)["spec"].clone();
    let (shown, _) = rewrite(&namespace, &spoke, |_| ());
    assert_eq!(shown["spec"]["schedulingConfig"].as_array().expect("a list").len(), 60);
    assert_eq!(bed.objects.at(&hub)["spec"], stored);

    // An edit of one hour through the old version, by a client that writes only what that version shows.
    rewrite(&namespace, &spoke, |edited| {
        let metadata = edited["metadata"].as_object_mut().expect("metadata");
        metadata.retain(|key, _| ["name", "namespace", "resourceVersion"].contains(&&**key));
        edited["spec"]["schedulingConfig"][30]["replica"] = 99.into();
    });
    let mut expected = stored;
    expected["windows"][30]["replicas"] = 99.into();
    assert_eq!(bed.objects.at(&hub)["spec"], expected);
}

fn a_window_edited_beside_others_keeps_what_the_old_version_cannot_say(bed: &Bed) {
    let namespace = bed.namespace();
    let mut object = new("kept");
    let night = json!({"name": "night", "from": "20:45", "to": "23:15", "days": ["Tue"], "replicas": 3});
    object["spec"]["windows"].as_array_mut().expect("a list").push(night);
    namespace.create(&object);
    let (hub, spoke) = (namespace.path("tdset/kept"), namespace.path("tdsets.v1alpha1.gatehouse.dev/kept"));
    let windows = |replicas: [u32; 2]| {
        let mut windows = bed.objects.at(&hub)["spec"]["windows"].clone();
        let windows = windows.as_array_mut().expect("a list");
        let mut expected = object["spec"]["windows"].clone();
        for (window, replicas) in expected.as_array_mut().expect("a list").iter_mut().zip(replicas) {
            window["replicas"] = replicas.into();
        }
        (std::mem::take(windows), expected.as_array().expect("a list").clone())
    };
    let manifest = bed.objects.at(&spoke);
    let added = json!({"startTime": 1, "endTime": 2, "replica": 1});
    let gone =
        |warnings: &[String]| warnings.iter().any(|one| one.starts_with("spec.schedulingConfig: a new item"));

    // One is edited, and another one inserted before it, by a client that writes no annotations.
    let (_, _, warnings) = rewrite_warned(&namespace, &spoke, |edited| {
        let metadata = edited["metadata"].as_object_mut().expect("metadata");
        metadata.retain(|key, _| ["name", "namespace", "resourceVersion"].contains(&&**key));
        edited["spec"]["schedulingConfig"][0]["replica"] = 7.into();
        edited["spec"]["schedulingConfig"].as_array_mut().expect("a list").insert(0, added.clone());
    });
    assert!(!gone(&warnings), "{warnings:?}");
    let (found, expected) = windows([7, 3]);
    assert_eq!(found[1..], expected);
    assert_eq!(found[0]["from"], "01:00");

    // The earlier manifest replaces it, with its annotations and an edit.
    let (_, _, warnings) = rewrite_warned(&namespace, &spoke, |edited| {
        let read = edited["metadata"]["resourceVersion"].take();
        *edited = manifest.clone();
        edited["metadata"]["resourceVersion"] = read;
        edited["spec"]["schedulingConfig"][1]["replica"] = 9.into();
    });
    assert!(!gone(&warnings), "{warnings:?}");
    let (found, expected) = windows([6, 9]);
    assert_eq!(found, expected);

    // One is taken away, the other one edited, and another one added.
    let (_, _, warnings) = rewrite_warned(&namespace, &spoke, |edited| {
        let windows = edited["spec"]["schedulingConfig"].as_array_mut().expect("a list");
        windows.remove(0);
        windows[0]["replica"] = 2.into();
        windows.push(added.clone());
    });
    assert!(gone(&warnings), "{warnings:?}");
    let (found, expected) = windows([6, 2]);
    assert_eq!(found[0], expected[1]);
    assert_eq!((&found[1]["from"], found[1].get("days")), (&json!("01:00"), None));
}

fn a_write_of_what_was_read_writes_nothing(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(&timetable("same"));
    namespace.create(&old("same-old"));
    for name in ["same", "same-old"] {
        settled(&namespace, name);
        for version in ["v1alpha1", "v1"] {
            let path = format!("{}/{name}", of(version, &namespace.name, "tdsets"));
            let (read, written) = rewrite(&namespace, &path, |_| ());
            assert_eq!(
                written["metadata"]["resourceVersion"], read["metadata"]["resourceVersion"],
                "{name} {version}"
            );
            assert_eq!(written["metadata"]["generation"], 1, "{name} {version}");
        }
    }
}

/// The manifests of a namespace as another user would keep them, who takes them to another namespace.
fn a_namespace_is_written_down_as_manifests(bed: &Bed) {
    let namespace = bed.namespace();
    for object in [old("old"), new("new")] {
        namespace.create(&object);
    }
    let mut made = new("made");
    let owner = namespace.get("tdsets.v1.gatehouse.dev", "new");
    made["metadata"]["ownerReferences"] = json!([{"apiVersion": "gatehouse.dev/v1", "kind": "TDSet",
        "name": "new", "uid": owner["metadata"]["uid"], "controller": true}]);
    namespace.create(&made);
    let written = |words: &[&str]| {
        let words = [&["convert", "--from-cluster"], words].concat();
        let mut command = Command::new(kit::gatehouse!());
        let ran = command.args(words).env("KUBECONFIG", bed.cluster.kubeconfig()).output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it writes UTF-8");
        assert!(ran.status.success(), "{}", text(ran.stderr));
        (text(ran.stdout), text(ran.stderr))
    };
    let (manifests, said) = written(&["-n", &namespace.name]);
    assert!(said.contains("/made: left out: TDSet new makes it"), "{said}");
    for live in ["status:", "uid:", "managedFields:", "resourceVersion:", "finalizers:", "v1alpha1"] {
        assert!(!manifests.contains(live), "{live} in {manifests}");
    }
    let elsewhere = bed.namespace();
    let moved = manifests
        .replace(&format!("namespace: {}", namespace.name), &format!("namespace: {}", elsewhere.name));
    elsewhere.kubectl(&["apply"]).input(moved).ok();
    for name in ["old", "new"] {
        let (one, other) = (namespace.get("tdsets", name), elsewhere.get("tdsets", name));
        assert_eq!(one["spec"], other["spec"], "{name}");
    }
    // Applied where they came from, they change nothing.
    let generation = |name: &str| namespace.get("tdsets", name)["metadata"]["generation"].clone();
    let before = ["old", "new"].map(generation);
    namespace.kubectl(&["apply", "--server-side"]).input(manifests).ok();
    assert_eq!(["old", "new"].map(generation), before);
    let (old_ones, _) = written(&["-n", &namespace.name, "--to", "v1alpha1"]);
    assert!(old_ones.contains("gatehouse.dev/v1alpha1"), "{old_ones}");
    let (everywhere, _) = written(&["-A"]);
    for name in [&namespace.name, &elsewhere.name] {
        assert!(everywhere.contains(&format!("namespace: {name}")), "{everywhere}");
    }
}
