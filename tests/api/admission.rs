//! What the gate refuses, what it says, and what it lets pass.

use kit::bed::{Bed, Namespace};
use kit::objects::Ask;
use serde_json::json;

use crate::Test;

pub const TESTS: &[Test] = &kit::tests![
    five_faults_are_reported_in_one_answer,
    the_same_faults_are_reported_in_the_old_versions_paths,
    a_converted_request_is_answered_in_its_authors_paths,
    a_protected_object_is_not_deleted,
    immutable_fields_stay,
    a_timetable_is_warned_of_once,
    what_absent_fields_mean_is_written_at_creation,
];

const NEW: &str = "etcdclusters.v1.gatehouse.dev";
const OLD: &str = "etcdclusters.v1alpha1.gatehouse.dev";

/// The fields that a refusal names. kubectl prints `The KIND "NAME" is invalid:` and one line for each cause, as it
/// does for built-in kinds, where the answer is a 422 with causes, and only there.
fn causes(namespace: &Namespace, manifest: &serde_json::Value) -> Vec<String> {
    let said = namespace.kubectl(&["create"]).input(manifest.to_string()).fails();
    assert!(said.contains("is invalid: \n"), "{said}");
    let causes = said.lines().filter_map(|line| line.strip_prefix("* ")?.split_once(": "));
    let mut fields: Vec<_> = causes.map(|(field, _)| field.to_owned()).collect();
    fields.sort();
    fields
}

fn five_faults_are_reported_in_one_answer(bed: &Bed) {
    let manifest = json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "five"},
        "spec": {"replicas": 12, "version": "3.9.1", "storage": {"size": "-1Gi"}, "tls": {"mode": "Sometimes"},
            "backup": {"schedule": "61 * * * *", "timeZone": "Europe/Atlantis",
                "destination": {"persistentVolumeClaim": {"claimName": "b"}}}}});
    assert_eq!(
        causes(&bed.namespace(), &manifest),
        [
            "spec.backup.schedule",
            "spec.backup.timeZone",
            "spec.replicas",
            "spec.storage.size",
            "spec.tls.mode",
            "spec.version"
        ]
    );
}

fn the_same_faults_are_reported_in_the_old_versions_paths(bed: &Bed) {
    let manifest = json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "EtcdCluster",
        "metadata": {"name": "a-name-that-is-far-too-long-for-its-backup-cron-job"},
        "spec": {"size": 12, "version": "3.9.1", "storageSize": "-1Gi", "backupSchedule": "61 * * * *"}});
    assert_eq!(
        causes(&bed.namespace(), &manifest),
        ["metadata.name", "spec.backupSchedule", "spec.size", "spec.storageSize", "spec.version"]
    );
}

fn a_converted_request_is_answered_in_its_authors_paths(bed: &Bed) {
    let manifest = json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet", "metadata": {"name": "old"},
        "spec": {"container": {"image": "", "port": 0}, "defaultReplica": -1,
            "schedulingConfig": [{"startTime": 8, "endTime": 9, "replica": 1}, {"startTime": 9, "endTime": 24, "replica": 1}]}});
    assert_eq!(
        causes(&bed.namespace(), &manifest),
        [
            "spec.container.image",
            "spec.container.port",
            "spec.defaultReplica",
            "spec.schedulingConfig[1].endTime"
        ]
    );
}

fn a_protected_object_is_not_deleted(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(
        &json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "dear"},
        "spec": {"deletionProtection": true}}),
    );
    for resource in [NEW, OLD] {
        let refused = namespace.kubectl(&["delete", resource, "dear"]).fails();
        assert!(refused.contains("deletionProtection"), "{refused}");
    }
    namespace.change("etcdcluster/dear", &json!({"spec": {"deletionProtection": false}}));
    namespace.delete("etcdcluster/dear");
}

fn immutable_fields_stay(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(
        &json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "firm"},
        "spec": {"storage": {"size": "10Gi", "storageClassName": "fast"}}}),
    );
    for (version, spec, field) in [
        (NEW, json!({"storage": {"size": "5Gi"}}), "spec.storage.size"),
        (NEW, json!({"storage": {"storageClassName": "slow"}}), "spec.storage.storageClassName"),
        (NEW, json!({"tls": {"mode": "Disabled"}}), "spec.tls.mode"),
        (OLD, json!({"storageSize": "5Gi"}), "spec.storageSize"),
    ] {
        let path = namespace.path(&format!("{version}/firm"));
        let refusal = bed.objects.one(Ask::patch(path, json!({"spec": spec}))).expect_err("it stays");
        assert!(refusal.message.contains(field), "{refusal:?}");
    }
    namespace.change("etcdcluster/firm", &json!({"spec": {"storage": {"size": "20Gi"}}}));
}

fn what_absent_fields_mean_is_written_at_creation(bed: &Bed) {
    let namespace = bed.namespace();
    let bare = |version: &str, name: &str| {
        let version = format!("gatehouse.dev/{version}");
        json!({"apiVersion": version, "kind": "EtcdCluster", "metadata": {"name": name}, "spec": {}})
    };
    namespace.create(&bare("v1", "new"));
    let (made, warned) = bed.objects.warned(Ask::create(&bare("v1alpha1", "old"), &namespace.name));
    made.unwrap_or_else(|refusal| panic!("{}", refusal.message));
    assert!(warned.iter().any(|warning| warning.contains("plain HTTP")), "{warned:?}");
    let spec = |name: &str| namespace.get(NEW, name)["spec"].clone();
    assert_eq!((&spec("new")["replicas"], &spec("new")["tls"]["mode"]), (&json!(3), &json!("Automatic")));
    assert_eq!((&spec("old")["replicas"], &spec("old")["tls"]["mode"]), (&json!(1), &json!("Disabled")));
    assert_eq!(spec("new")["storage"]["size"], "10Gi");
}

/// What kubectl prints as warnings.
fn warnings(said: &str) -> Vec<&str> {
    said.lines().filter_map(|line| line.strip_prefix("Warning: ")).collect()
}

fn a_timetable_is_warned_of_once(bed: &Bed) {
    let namespace = bed.namespace();
    let window =
        |name: &str, replicas| json!({"name": name, "from": "00:00", "to": "24:00", "replicas": replicas});
    let mut object = json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": "told"},
        "spec": {"timeZone": "Etc/UTC", "defaultReplicas": 1, "windows": [window("day", 5), window("shadow", 2)],
            "target": {"create": {"image": "registry.k8s.io/pause:3.10", "port": 8080}}}});
    let never =
        "spec.windows[1]: shadow is never active: windows above it cover it (overlap FirstMatch)".to_owned();
    let apply = |object: &serde_json::Value, dry: &[&str]| {
        let words = [&["apply", "--server-side"], dry].concat();
        let said = namespace.kubectl(&words).input(object.to_string()).warnings();
        warnings(&said).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(apply(&object, &[]), std::slice::from_ref(&never));
    assert!(apply(&object, &[]).is_empty(), "nothing has changed");
    object["spec"]["target"]["create"]["image"] = json!("registry.k8s.io/pause:3.9");
    assert!(apply(&object, &[]).is_empty(), "the timetable has not changed");
    object["spec"]["windows"][0]["replicas"] = json!(0);
    let at_once = "spec.windows[0].replicas: 5 -> 0 now, window day".to_owned();
    assert_eq!(apply(&object, &["--dry-run=server"]), [at_once, never]);
    assert_eq!(
        namespace.get("tdsets.v1.gatehouse.dev", "told")["spec"]["windows"][0]["replicas"],
        5,
        "a dry run changes nothing"
    );
}
