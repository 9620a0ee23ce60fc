//! Every verb that users have, through both versions.

use gatehouse::api::Version;
use gatehouse::kinds::KINDS;
use kit::bed::{Bed, Namespace};
use kit::objects::Ask;
use kit::wait::eventually;
use serde_json::{Value, json};

use crate::Test;

pub const TESTS: &[Test] = &kit::tests![
    apply_again_changes_nothing,
    two_managers_in_two_versions_never_loop,
    an_object_reads_in_both_versions,
    create_replace_and_patch_work_in_both_versions,
    replace_through_the_old_version_drops_nothing,
    what_a_later_write_leaves_out_stays,
    what_a_manager_gives_up_stays,
    scale_works_and_keeps_to_the_rules,
    a_dry_run_tells_defaults_and_stores_nothing,
    explain_documents_every_field,
    strict_validation_names_unknown_fields,
    status_writes_and_labels_pass,
    annotations_of_the_old_version_change_no_status,
    what_is_to_be_new_conflicts_with_what_is_there,
];

const OLD: &str = "etcdclusters.v1alpha1.gatehouse.dev";
const NEW: &str = "etcdclusters.v1.gatehouse.dev";
const SETS: &str = "tdsets.v1.gatehouse.dev";

fn old(name: &str, size: i32) -> Value {
    json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "EtcdCluster", "metadata": {"name": name},
        "spec": {"size": size, "version": "3.6.16", "storageSize": "10Gi"}})
}

fn new(name: &str, replicas: i32) -> Value {
    json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": name},
        "spec": {"replicas": replicas, "version": "3.6.16", "storage": {"size": "10Gi", "storageClassName": "fast"},
            "pod": {"priorityClassName": "high"}}})
}

/// What users have written of an object, and who owns it. The operator writes its status.
fn written(namespace: &Namespace, name: &str) -> Value {
    let mut object = namespace.get(NEW, name);
    object["status"] = Value::Null;
    let metadata = &mut object["metadata"];
    metadata["resourceVersion"] = Value::Null;
    let managers = metadata["managedFields"].as_array_mut().expect("managers");
    managers.retain(|entry| entry["subresource"].is_null());
    object
}

fn apply_again_changes_nothing(bed: &Bed) {
    let namespace = bed.namespace();
    for (name, manifest) in [("old", old("old", 3)), ("new", new("new", 3))] {
        let apply = || namespace.kubectl(&["apply"]).input(manifest.to_string()).ok();
        apply();
        let before = written(&namespace, name);
        assert!(apply().contains("unchanged"));
        assert_eq!(written(&namespace, name), before);
    }
}

fn two_managers_in_two_versions_never_loop(bed: &Bed) {
    let namespace = bed.namespace();
    let of_new = json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "both"},
        "spec": {"image": {"pullPolicy": "Always"}, "pod": {"priorityClassName": "high"}}});
    let apply = |manager: &str, manifest: &Value| {
        let words = ["apply", "--server-side", "--field-manager", manager];
        namespace.kubectl(&words).input(manifest.to_string()).ok();
    };
    apply("old-manager", &old("both", 3));
    apply("new-manager", &of_new);
    let before = written(&namespace, "both");
    for _ in 0..3 {
        apply("old-manager", &old("both", 3));
        apply("new-manager", &of_new);
    }
    assert_eq!(written(&namespace, "both"), before, "a repeated apply writes nothing");

    apply("old-manager", &old("both", 5));
    let object = namespace.get(NEW, "both");
    assert_eq!(object["spec"]["replicas"], 5);
    assert_eq!(object["spec"]["image"], json!({"pullPolicy": "Always"}));
    assert_eq!(object["spec"]["pod"]["priorityClassName"], "high");
    apply("new-manager", &of_new);
    assert_eq!(namespace.get(OLD, "both")["spec"]["size"], 5, "the other manager's edit stays");

    let managers = object["metadata"]["managedFields"].as_array().unwrap();
    let applied: Vec<_> = managers.iter().filter(|one| one["operation"] == "Apply").collect();
    assert_eq!(applied.len(), 2, "{managers:?}");
    let shrunk = json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "both"},
        "spec": {"image": {"pullPolicy": "Always"}}});
    apply("new-manager", &shrunk);
    let object = namespace.get(NEW, "both");
    assert!(object["spec"].get("pod").is_none(), "what its only manager gives up goes: {object}");
    assert_eq!(object["spec"]["replicas"], 5);
}

fn an_object_reads_in_both_versions(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(&new("seen", 3));
    // Both of one moment: the operator writes its status meanwhile.
    let (shown, stored) = eventually(|| {
        let (shown, stored) = (namespace.get(OLD, "seen"), namespace.get(NEW, "seen"));
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        if version(&shown) == version(&stored) {
            Ok((shown, stored))
        } else {
            Err("written between".to_owned())
        }
    });
    assert_eq!(shown["spec"], json!({"size": 3, "version": "3.6.16", "storageSize": "10Gi"}));
    assert_eq!(stored["spec"]["storage"]["storageClassName"], "fast");
    assert!(stored["metadata"].get("annotations").is_none(), "{stored}");
    let (one, other) = (&stored["metadata"], &shown["metadata"]);
    for field in ["uid", "generation", "creationTimestamp"] {
        assert_eq!(one[field], other[field], "{field}");
    }
    for resource in [OLD, NEW] {
        assert!(namespace.kubectl(&["get", resource, "-o", "yaml"]).ok().contains("name: seen"));
    }
    assert!(namespace.kubectl(&["get", "gatehouse"]).ok().contains("seen"), "the category lists it");
    assert!(namespace.kubectl(&["get", "etcd"]).warnings().is_empty(), "the hub is not deprecated");
    let warned = namespace.kubectl(&["get", OLD]).warnings();
    assert!(
        warned.contains("gatehouse.dev/v1alpha1 EtcdCluster is deprecated; use gatehouse.dev/v1"),
        "{warned}"
    );
}

/// Replaces an object, again where the operator wrote its status in between.
fn replace(namespace: &Namespace, manifest: &Value) {
    eventually(|| match namespace.kubectl(&["replace"]).input(manifest.to_string()).run() {
        Err(why) if !why.contains("Error from server (Conflict)") => panic!("{why}"),
        outcome => outcome,
    });
}

fn create_replace_and_patch_work_in_both_versions(bed: &Bed) {
    let namespace = bed.namespace();
    for (resource, field, manifest) in
        [(OLD, "size", old as fn(&str, i32) -> Value), (NEW, "replicas", new as fn(&str, i32) -> Value)]
    {
        namespace.kubectl(&["create"]).input(manifest(field, 1).to_string()).ok();
        replace(&namespace, &manifest(field, 3));
        assert_eq!(namespace.get(resource, field)["spec"][field], 3);
        let merge = json!({"spec": {field: 5}}).to_string();
        namespace.kubectl(&["patch", resource, field, "--type=merge", "-p", &merge]).ok();
        let path = format!("/spec/{field}");
        let steps =
            json!([{"op": "test", "path": path, "value": 5}, {"op": "replace", "path": path, "value": 3}]);
        namespace.kubectl(&["patch", resource, field, "--type=json", "-p", &steps.to_string()]).ok();
        assert_eq!(namespace.get(resource, field)["spec"][field], 3);
        namespace.kubectl(&["delete", resource, field]).ok();
    }
}

fn replace_through_the_old_version_drops_nothing(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(&new("kept", 3));
    replace(&namespace, &old("kept", 5));
    let object = namespace.get(NEW, "kept");
    assert_eq!(object["spec"]["replicas"], 5);
    assert_eq!(object["spec"]["storage"]["storageClassName"], "fast");
    assert_eq!(object["spec"]["pod"]["priorityClassName"], "high");
    assert_eq!(object["spec"]["tls"]["mode"], "Automatic");
}

/// Replaces an object by one that says nothing of what is there; the warnings.
fn replace_warned(namespace: &Namespace, resource: &str, manifest: &Value) -> Vec<String> {
    let name = manifest["metadata"]["name"].as_str().expect("a name");
    eventually(|| {
        let mut object = manifest.clone();
        object["metadata"]["resourceVersion"] =
            namespace.get(resource, name)["metadata"]["resourceVersion"].clone();
        match namespace.bed.objects.warned(Ask::put(namespace.path(&format!("{resource}/{name}")), object)) {
            (Ok(_), warnings) => Ok(warnings),
            (Err(refusal), _) if refusal.code == 409 => Err(refusal.message),
            (Err(refusal), _) => panic!("{}", refusal.message),
        }
    })
}

fn what_a_later_write_leaves_out_stays(bed: &Bed) {
    let namespace = bed.namespace();
    let bare = |version: &str, kind: &str, spec: Value| {
        json!({"apiVersion": format!("gatehouse.dev/{version}"), "kind": kind,
            "metadata": {"name": version}, "spec": spec})
    };
    // None of these is a default of its version.
    for (resource, version, spec, fields) in [
        (
            OLD,
            "v1alpha1",
            json!({"size": 5, "version": "3.6.15", "storageSize": "20Gi"}),
            ["size", "version", "storageSize"],
        ),
        (
            NEW,
            "v1",
            json!({"replicas": 5, "version": "3.6.15", "storage": {"size": "20Gi"}}),
            ["replicas", "version", "storage.size"],
        ),
    ] {
        namespace.create(&bare(version, "EtcdCluster", spec));
        let before = namespace.get(NEW, version)["spec"].clone();
        let warnings = replace_warned(&namespace, resource, &bare(version, "EtcdCluster", json!({})));
        assert_eq!(namespace.get(NEW, version)["spec"], before, "{version}");
        for (field, value) in fields.into_iter().zip(["5", "3.6.15", "20Gi"]) {
            let said = format!("spec.{field}: not given, stays {value}");
            assert!(warnings.contains(&said), "{said}: {warnings:?}");
        }
    }
    let target = json!({"create": {"image": "example.org/app:1", "port": 80}});
    let zoned =
        bare("v1", "TDSet", json!({"defaultReplicas": 1, "timeZone": "Europe/Berlin", "target": target}));
    namespace.create(&zoned);
    let bare = bare("v1", "TDSet", json!({"defaultReplicas": 2, "target": target}));
    let warnings = replace_warned(&namespace, SETS, &bare);
    let spec = namespace.get(SETS, "v1")["spec"].clone();
    assert_eq!((&spec["timeZone"], &spec["defaultReplicas"]), (&json!("Europe/Berlin"), &json!(2)));
    assert!(warnings.contains(&"spec.timeZone: not given, stays Europe/Berlin".to_owned()), "{warnings:?}");
}

fn what_a_manager_gives_up_stays(bed: &Bed) {
    let namespace = bed.namespace();
    let apply = |kind: &str, version: &str, spec: &Value| {
        let object = json!({"apiVersion": format!("gatehouse.dev/{version}"), "kind": kind,
            "metadata": {"name": version}, "spec": spec});
        bed.objects.warned(Ask::apply(&object, &namespace.name, ""))
    };
    let stays = |warnings: &[String]| warnings.iter().filter(|one| one.contains("not given, stays")).count();
    for (version, spec) in [
        ("v1", json!({"replicas": 5, "version": "3.6.16", "storage": {"size": "2Gi"}})),
        ("v1alpha1", json!({"size": 5, "version": "3.6.16", "storageSize": "2Gi"})),
    ] {
        apply("EtcdCluster", version, &spec).0.expect("applied");
        let before = namespace.get(NEW, version)["spec"].clone();
        let (outcome, warnings) = apply("EtcdCluster", version, &json!({}));
        outcome.expect("applied");
        assert_eq!(namespace.get(NEW, version)["spec"], before, "{version}");
        assert!(stays(&warnings) >= 3, "{warnings:?}");
        let written = written(&namespace, version);
        let (outcome, warnings) = apply("EtcdCluster", version, &json!({}));
        outcome.expect("applied");
        assert_eq!(self::written(&namespace, version), written, "applied again, nothing is written");
        assert_eq!(stays(&warnings), 0, "{warnings:?}");
    }
    let mut spec = json!({"defaultReplicas": 1, "timeZone": "Europe/Berlin",
        "target": {"create": {"image": "example.org/app:1", "port": 80}}});
    apply("TDSet", "v1", &spec).0.expect("applied");
    let before = namespace.get(SETS, "v1")["spec"].clone();
    spec.as_object_mut().expect("an object").remove("timeZone");
    let (outcome, warnings) = apply("TDSet", "v1", &spec);
    outcome.expect("applied");
    assert_eq!(namespace.get(SETS, "v1")["spec"], before);
    assert!(warnings.contains(&"spec.timeZone: not given, stays Europe/Berlin".to_owned()), "{warnings:?}");
}

fn scale_works_and_keeps_to_the_rules(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(&new("scaled", 3));
    for resource in [OLD, NEW] {
        for replicas in ["5", "3"] {
            namespace.kubectl(&["scale", &format!("{resource}/scaled"), "--replicas", replicas]).ok();
            assert_eq!(namespace.get(NEW, "scaled")["spec"]["replicas"].to_string(), replicas);
        }
        let refused = namespace.kubectl(&["scale", &format!("{resource}/scaled"), "--replicas=99"]).fails();
        assert!(refused.contains("Invalid value: 99"), "{refused}");
    }
    assert_eq!(namespace.get(NEW, "scaled")["spec"]["storage"]["storageClassName"], "fast");
}

fn a_dry_run_tells_defaults_and_stores_nothing(bed: &Bed) {
    let namespace = bed.namespace();
    let manifest = r#"{"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "dry"}, "spec": {}}"#;
    let shown = namespace.kubectl(&["apply", "--dry-run=server", "-o", "json"]).input(manifest).ok();
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["spec"]["replicas"], 3);
    assert_eq!(shown["spec"]["tls"]["mode"], "Automatic");
    let missing = namespace.kubectl(&["get", NEW, "dry"]).fails();
    assert!(missing.contains("not found"), "{missing}");
}

fn explain_documents_every_field(bed: &Bed) {
    for (field, version, says) in [
        ("etcdclusters.spec.storage.size", "v1", "quantity"),
        ("etcdclusters.spec.size", "v1alpha1", "Voting members"),
        ("tdsets.spec.windows.from", "v1", "HH:MM"),
        ("tdsets.spec.schedulingConfig.startTime", "v1alpha1", "hour"),
    ] {
        let version = format!("--api-version=gatehouse.dev/{version}");
        let text = bed.kubectl(&["explain", field, &version]).ok();
        assert!(text.to_lowercase().contains(&says.to_lowercase()), "{field}: {text}");
    }
    for kind in KINDS {
        for version in Version::ALL {
            let version = format!("--api-version={}", version.api_version());
            let text = bed.kubectl(&["explain", kind.names().plural, "--recursive", &version]).ok();
            assert!(!text.contains("<no description>"), "{text}");
        }
    }
}

fn strict_validation_names_unknown_fields(bed: &Bed) {
    let namespace = bed.namespace();
    for manifest in [
        r#"{"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "x"}, "spec": {"size": 3}}"#,
        r#"{"apiVersion": "gatehouse.dev/v1alpha1", "kind": "EtcdCluster", "metadata": {"name": "x"}, "spec": {"replicas": 3}}"#,
        r#"{"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": "x"}, "spec": {"replicas": 3}}"#,
    ] {
        let refused = namespace.kubectl(&["apply"]).input(manifest).fails();
        assert!(refused.contains("unknown field \"spec."), "{refused}");
    }
}

fn status_writes_and_labels_pass(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(&new("worn", 3));
    // The operator goes on from the identity, and says of members what it sees.
    let status = json!({"clusterID": "ab", "members": [{"name": "worn-0"}, {"name": "worn-1"}]});
    bed.objects.must(Ask::patch(namespace.path("etcdcluster/worn") + "/status", json!({"status": status})));
    eventually(|| {
        let (nodes, members) = (namespace.get(OLD, "worn"), namespace.get(NEW, "worn"));
        let (nodes, members) = (&nodes["status"]["nodes"], members["status"]["members"].as_array().cloned());
        let names: Vec<_> = members.unwrap_or_default().iter().map(|member| member["name"].clone()).collect();
        if *nodes == json!(names) { Ok(()) } else { Err(format!("{nodes} of {names:?}")) }
    });
    namespace.kubectl(&["label", OLD, "worn", "colour=red"]).ok();
    namespace.change(&format!("{OLD}/worn"), &json!({"spec": {"size": 5}}));
    let object = namespace.get(NEW, "worn");
    assert_eq!(object["status"]["clusterID"], "ab", "a write through the old version keeps the status whole");
    assert_eq!(object["spec"]["replicas"], 5);
}

/// A part of the status rides in annotations there, which a manager may leave out or make up.
fn annotations_of_the_old_version_change_no_status(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(&new("kept", 3));
    let status = json!({"status": {"clusterID": "ab"}});
    bed.objects.must(Ask::patch(namespace.path("etcdcluster/kept") + "/status", status));
    let key = "conversion.gatehouse.dev/status.clusterID";
    let shown = namespace.get(OLD, "kept");
    assert_eq!(shown["metadata"]["annotations"][key], json!("\"ab\""), "{shown}");
    for forged in [Value::Null, json!("\"cd\"")] {
        namespace.change(&format!("{OLD}/kept"), &json!({"metadata": {"annotations": {key: forged}}}));
        assert_eq!(namespace.get(NEW, "kept")["status"]["clusterID"], "ab", "after {forged}");
    }

    let mut made = old("made", 3);
    made["metadata"]["annotations"] = json!({key: "\"cd\""});
    assert_ne!(namespace.create(&made)["metadata"]["annotations"][key], made["metadata"]["annotations"][key]);
    assert_ne!(namespace.get(NEW, "made")["status"]["clusterID"], "cd");
}

/// By this the operator makes objects that it has not asked for before.
fn what_is_to_be_new_conflicts_with_what_is_there(bed: &Bed) {
    let namespace = bed.namespace();
    let ports = json!([{"port": 80, "protocol": "TCP", "targetPort": 80}]);
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "new", "resourceVersion": "1"}, "spec": {"ports": ports}});
    let apply = || bed.objects.one(Ask::apply(&service, &namespace.name, ""));
    let made = apply().expect("it is made");
    let refusal = apply().expect_err("it is there");
    assert_eq!(refusal.code, 409, "{}", refusal.message);
    let found = namespace.get("service", "new");
    assert_eq!(found["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
}
