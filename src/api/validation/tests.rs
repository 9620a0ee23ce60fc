mod structure;
mod warnings;

use serde_json::json;

use super::*;
use crate::kinds::etcdcluster::api::EtcdClusterKind;

fn cluster(spec: &Value) -> Value {
    json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "a"}, "spec": spec})
}

fn validated(new: &Value, old: Option<&Value>, author: Version) -> Validation {
    let written = |object| Written { version: Version::V1, object };
    let now = "2026-11-21T12:00:00Z".parse().unwrap();
    validate(&EtcdClusterKind, &Change { new: written(new), old: old.map(written), author, now })
}

fn fields(validation: &Validation) -> Vec<String> {
    validation.errors.iter().map(|fault| fault.path.to_string()).collect()
}

#[test]
fn what_a_schema_refuses_hides_nothing_of_what_is_wrong_besides() {
    let spec = json!({"replicas": "three", "version": "v3.6.16", "tls": {"mode": "Maybe"}});
    let validation = validated(&cluster(&spec), None, Version::V1);
    assert_eq!(fields(&validation), ["spec.replicas", "spec.tls.mode", "spec.version"]);
}

#[test]
fn an_integer_beyond_its_format_is_named_and_hides_nothing() {
    let term = json!({"weight": 3_000_000_000_u64, "podAffinityTerm": {"topologyKey": "a"}});
    let affinity = json!({"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}});
    let spec = json!({"replicas": 3_000_000_000_u64, "version": "2.0.0", "pod": {"affinity": affinity}});
    let validation = validated(&cluster(&spec), None, Version::V1);
    let weight = "spec.pod.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: \
         3000000000: must be an integer from -2147483648 to 2147483647";
    let replicas = "spec.replicas: Invalid value: 3000000000: must be an integer from 0 to 7";
    let told: Vec<_> = validation.errors.iter().map(ToString::to_string).collect();
    assert_eq!(told[..2], [weight, replicas]);
    assert_eq!(fields(&validation)[2..], ["spec.version"]);
}

#[test]
fn what_was_stored_wrong_warns_and_what_is_new_is_refused() {
    let stored = cluster(&json!({"version": "2.0.0", "replicas": 3}));
    let mut edited = stored.clone();
    edited["metadata"]["labels"] = json!({"colour": "red"});
    let validation = validated(&edited, Some(&stored), Version::V1);
    assert!(validation.accepted(), "{validation:?}");
    assert!(validation.warnings.iter().any(|one| one.as_str().contains("spec.version")), "{validation:?}");
    edited["spec"]["replicas"] = json!(12);
    assert_eq!(fields(&validated(&edited, Some(&stored), Version::V1)), ["spec.replicas"]);
}

#[test]
fn one_stored_fault_excuses_one_fault() {
    let tdset = |names: &[&str]| {
        let exception = |name: &&str| json!({"name": name, "dates": ["2030-01-01"], "skipWindows": ["gone"]});
        let exceptions: Vec<_> = names.iter().map(exception).collect();
        json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": "a"},
            "spec": {"defaultReplicas": 1, "timeZone": "Etc/UTC", "exceptions": exceptions,
                "target": {"create": {"image": "a", "port": 80}}}})
    };
    let (stored, edited) = (tdset(&["x"]), tdset(&["x", "y"]));
    let written = |object| Written { version: Version::V1, object };
    let now = "2026-11-21T12:00:00Z".parse().unwrap();
    let change = Change { new: written(&edited), old: Some(written(&stored)), author: Version::V1, now };
    let validation = validate(&crate::kinds::tdset::api::TDSetKind, &change);
    assert_eq!(fields(&validation), ["spec.exceptions[1].skipWindows[0]"]);
    assert!(validation.warnings.iter().any(|one| one.as_str().contains("still invalid")), "{validation:?}");
}

#[test]
fn what_is_no_fault_of_the_stored_object_excuses_none() {
    let tdset = |times: &[&str]| {
        let window = |time: &&str| json!({"name": format!("w{}", &time[..2]), "from": time, "to": time, "replicas": 1});
        let windows: Vec<_> = times.iter().map(window).collect();
        json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": "a"},
            "spec": {"defaultReplicas": 1, "timeZone": "Etc/UTC", "windows": windows,
                "target": {"create": {"image": "a", "port": 80}}}})
    };
    // A window of no length may stay, and no other one may come.
    let (stored, edited) = (tdset(&["08:00"]), tdset(&["08:00", "09:00"]));
    let written = |object| Written { version: Version::V1, object };
    let now = "2026-11-21T12:00:00Z".parse().unwrap();
    let change = Change { new: written(&edited), old: Some(written(&stored)), author: Version::V1, now };
    let validation = validate(&crate::kinds::tdset::api::TDSetKind, &change);
    assert_eq!(fields(&validation), ["spec.windows[1].to"]);
}

#[test]
fn an_object_that_lacks_something_takes_labels_and_no_other_nonsense() {
    let spec = json!({"backup": {"destination": {"persistentVolumeClaim": {}}}});
    let stored = cluster(&spec);
    let mut edited = stored.clone();
    edited["metadata"]["labels"] = json!({"colour": "red"});
    assert!(validated(&edited, Some(&stored), Version::V1).accepted());
    edited["spec"]["version"] = json!("2.0.0");
    assert!(!validated(&edited, Some(&stored), Version::V1).accepted());
}

#[test]
fn what_the_old_version_could_not_carry_is_refused() {
    let mut object = cluster(&json!({"replicas": 3, "tls": {"mode": "Automatic"}}));
    assert!(validated(&object, None, Version::V1).accepted());
    object["metadata"]["annotations"] = json!({"example.org/notes": "x".repeat(262_100)});
    let validation = validated(&object, None, Version::V1);
    assert!(validation.errors.iter().any(|fault| fault.message().contains("256 KiB")), "{validation:?}");
}

#[test]
fn an_answer_is_bounded() {
    let extra: serde_json::Map<_, _> =
        (0..5000).map(|index| (format!("no-such-{index}"), json!("x"))).collect();
    let validation = validated(&cluster(&json!({"options": {"extra": extra}})), None, Version::V1);
    assert!((1..=MOST_FAULTS).contains(&validation.errors.len()), "{}", validation.errors.len());
}

#[test]
fn an_object_that_is_being_deleted_lets_go_and_takes_no_nonsense() {
    let mut stored = cluster(&json!({"replicas": 12}));
    stored["metadata"]["finalizers"] = json!(["example.com/kept"]);
    stored["metadata"]["deletionTimestamp"] = json!("2026-11-21T12:00:00Z");
    assert_eq!(fields(&validated(&stored, None, Version::V1)), ["spec.replicas"]);
    let mut released = stored.clone();
    released["metadata"]["finalizers"] = json!([]);
    assert!(validated(&released, Some(&stored), Version::V1).accepted());
    released["spec"]["version"] = json!("2.0.0");
    assert_eq!(fields(&validated(&released, Some(&stored), Version::V1)), ["spec.version"]);
}

#[test]
fn an_author_of_the_old_version_gets_the_annotation_of_what_it_cannot_say() {
    let spec = json!({"replicas": 12, "tls": {"mode": "Maybe"}});
    let validation = validated(&cluster(&spec), None, Version::V1Alpha1);
    let annotation = "metadata.annotations[conversion.gatehouse.dev/spec.tls.mode]";
    assert_eq!(fields(&validation), ["spec.size", annotation]);
    assert!(validation.errors[1].message().contains("spec.tls.mode"), "{validation:?}");
}

fn of_kind(kind: &str, spec: &Value) -> Value {
    json!({"apiVersion": "gatehouse.dev/v1", "kind": kind, "metadata": {"name": "a", "namespace": "b"}, "spec": spec})
}

/// What a change of an object in the hub's version is refused for.
fn refused(new: &Value, old: Option<&Value>) -> Vec<String> {
    let kind = crate::kinds::find(new["kind"].as_str().unwrap()).unwrap();
    let written = |object| Written { version: Version::V1, object };
    let now = "2026-11-21T12:00:00Z".parse().unwrap();
    let change = Change { new: written(new), old: old.map(written), author: Version::V1, now };
    fields(&validate(kind, &change))
}

/// A sound spec of each kind.
fn sound(kind: &str) -> Value {
    match kind {
        "EtcdCluster" => json!({"replicas": 3, "version": "3.6.16", "storage": {"size": "10Gi"}}),
        "TDSet" => {
            json!({"defaultReplicas": 1, "timeZone": "Etc/UTC", "target": {"create": {"image": "a", "port": 80}}})
        }
        _ => json!({
            "database": {"engine": "PostgreSQL", "host": "pg", "name": "a", "credentialsSecret": {"name": "a"}},
            "scripts": [{"id": "1", "kind": "Schema", "up": {"inline": "CREATE TABLE a (b int)"}}]
        }),
    }
}

/// A kind, what is stored wrong in its spec, what replaces it, and the field.
type Exchange = (&'static str, Value, Value, &'static str);

fn exchanges_in_clusters() -> Vec<Exchange> {
    vec![
        (
            "EtcdCluster",
            json!({"options": {"extra": {"data-dir": "/a"}}}),
            json!({"options": {"extra": {"data-dir": "/b"}}}),
            "spec.options.extra[data-dir]",
        ),
        (
            "EtcdCluster",
            json!({"restore": {"from": {"name": "a"}}}),
            json!({"restore": {"from": {"name": "b"}}}),
            "spec.restore",
        ),
        (
            "EtcdCluster",
            json!({"backup": {"destination": {"s3": {"bucket": "abc"}}}}),
            json!({"backup": {"destination": {"s3": {"bucket": "xyz"}}}}),
            "spec.backup.destination.s3",
        ),
        (
            "EtcdCluster",
            json!({"tls": {"mode": "Automatic", "secrets": {"serverRef": {"name": "a"}}}}),
            json!({"tls": {"mode": "Automatic", "secrets": {"serverRef": {"name": "b"}}}}),
            "spec.tls.secrets",
        ),
        (
            "EtcdCluster",
            json!({"tls": {"mode": "Disabled", "extraNames": ["a.example.com"]}}),
            json!({"tls": {"mode": "Disabled", "extraNames": ["b.example.com"]}}),
            "spec.tls.extraNames",
        ),
        (
            "EtcdCluster",
            json!({"pod": {"labels": {"gatehouse.dev/a": "b"}}}),
            json!({"pod": {"labels": {"gatehouse.dev/a": "c"}}}),
            "spec.pod.labels[gatehouse.dev/a]",
        ),
    ]
}

fn other_exchanges() -> Vec<Exchange> {
    let left = |replicas: u32| {
        let reference = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "replicasOnDeletion": replicas});
        json!({"autoscaler": {"name": "a"}, "target": {"create": null, "ref": reference}})
    };
    let long = |end: &str| json!({"timeZone": format!("{}{end}", "Europe/".repeat(30))});
    let inline = |text: &str| json!({"scripts": [{"id": "1", "kind": "Schema", "up": {"inline": text}}]});
    let window = |season: Value| json!({"windows": [{"name": "a", "from": "08:00", "to": "09:00", "replicas": 1, "season": season}]});
    vec![
        ("TDSet", long("a"), long("b"), "spec.timeZone"),
        (
            "TDSet",
            window(json!({"first": "2026-02-01", "last": "2026-01-01"})),
            window(json!({"first": "2026-02-01", "last": "2026-01-02"})),
            "spec.windows[0].season.last",
        ),
        ("TDSet", left(3), left(4), "spec.target.ref.replicasOnDeletion"),
        (
            "DatabaseMigration",
            inline("COMMIT; SELECT 1"),
            inline("COMMIT; SELECT 2"),
            "spec.scripts[0].up.inline",
        ),
        (
            "DatabaseMigration",
            json!({"history": {"schema": "a"}, "database": {"engine": "MariaDB"}}),
            json!({"history": {"schema": "b"}, "database": {"engine": "MariaDB"}}),
            "spec.history.schema",
        ),
    ]
}

#[test]
fn a_wrong_value_excuses_no_other_one() {
    for (kind, stored, other, field) in exchanges_in_clusters().into_iter().chain(other_exchanges()) {
        let object = |change: &Value| {
            let mut object = of_kind(kind, &sound(kind));
            json_patch::merge(&mut object["spec"], change);
            object
        };
        let [old, new] = [&stored, &other].map(object);
        assert!(
            refused(&old, None).contains(&field.to_owned()),
            "{stored} is wrong: {:?}",
            refused(&old, None)
        );
        assert_eq!(refused(&old, Some(&old)), [""; 0], "{stored} stays");
        assert_eq!(refused(&new, Some(&old)), [field], "{stored} becomes {other}");
        let mut elsewhere = old.clone();
        elsewhere["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(refused(&elsewhere, Some(&old)), [""; 0], "{stored} takes labels");
    }
}

#[test]
fn a_wrong_item_stays_the_one_that_it_is_wherever_it_lies() {
    let variable = |name: &str| json!({"name": name, "value": "x"});
    let cluster = |names: &[&str]| {
        let env: Vec<_> = names.iter().map(|name| variable(name)).collect();
        cluster(&json!({"pod": {"env": env}}))
    };
    let stored = cluster(&["A", "ETCD_NAME", "B", "ETCD_DEBUG"]);
    for sound in [
        &["ETCD_NAME", "B", "ETCD_DEBUG"][..],
        &["ETCD_DEBUG", "ETCD_NAME"],
        &["C", "A", "ETCD_NAME", "B"],
        &["A", "ETCD_NAME", "B", "ETCD_DEBUG", "C"],
    ] {
        assert_eq!(refused(&cluster(sound), Some(&stored)), [""; 0], "{sound:?}");
    }
    for (edited, field) in [
        (&["A", "ETCD_OTHER"][..], "spec.pod.env[1].name"),
        (&["ETCD_NAME", "ETCD_DEBUG", "ETCD_NEW"], "spec.pod.env[2].name"),
    ] {
        assert_eq!(refused(&cluster(edited), Some(&stored)), [field], "{edited:?}");
    }
    // A name that comes twice is one fault, whatever else the items say.
    let window = |name: &str, replicas: u32| json!({"name": name, "from": "08:00", "to": "09:00", "replicas": replicas});
    let set = |windows: Value| {
        let mut set = of_kind("TDSet", &sound("TDSet"));
        set["spec"]["windows"] = windows;
        set
    };
    let stored = set(json!([window("a", 1), window("a", 2)]));
    assert_eq!(refused(&set(json!([window("a", 1), window("a", 3)])), Some(&stored)), [""; 0]);
    let other = set(json!([window("a", 1), window("a", 2), window("b", 1), window("b", 2)]));
    assert_eq!(refused(&other, Some(&stored)), ["spec.windows[3]"]);
}

#[test]
fn a_stored_object_that_cannot_be_decoded_excuses_no_forbidden_change() {
    let stored =
        cluster(&json!({"paused": "yes", "tls": {"mode": "Automatic"}, "storage": {"medium": "Memory"}}));
    let mut labelled = stored.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(refused(&labelled, Some(&stored)), [""; 0]);
    let mut changed = stored.clone();
    changed["spec"]["tls"]["mode"] = json!("Disabled");
    assert_eq!(refused(&changed, Some(&stored)), ["spec.tls.mode"]);
}
