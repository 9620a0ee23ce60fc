mod changes;
mod members;

use serde_json::{Value, json};

use super::*;

/// A sound object with `patch` laid over its spec; a null removes.
fn cluster(patch: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "gatehouse.dev/v1",
        "kind": "EtcdCluster",
        "metadata": { "name": "my-cluster" },
        "spec": { "replicas": 3, "version": "3.6.16", "storage": { "size": "10Gi" }, "tls": { "mode": "Automatic" },
            "pod": { "resources": { "requests": { "cpu": "1", "memory": "4Gi" } } } }
    });
    merge(&mut object["spec"], patch);
    object
}

fn merge(base: &mut Value, patch: &Value) {
    match (base, patch) {
        (Value::Object(fields), Value::Object(changes)) => {
            for (name, change) in changes {
                if change.is_null() {
                    fields.remove(name);
                } else {
                    merge(fields.entry(name).or_insert(Value::Null), change);
                }
            }
        }
        (base, change) => *base = change.clone(),
    }
}

fn seen(mut object: Value, status: &Value) -> Value {
    object["status"] = status.clone();
    object
}

/// The paths of all faults, in order.
fn refused(validation: &Validation) -> Vec<String> {
    validation.errors.iter().map(|fault| fault.path.to_string()).collect()
}

fn warned(validation: &Validation) -> bool {
    !validation.warnings.is_empty()
}

/// Validates each patch as a new object: what is refused, and whether a warning is given.
fn validate_each(table: &[(Value, &[&str], bool)]) {
    for (patch, paths, warns) in table {
        let validation = validate(&cluster(patch), None);
        assert_eq!(refused(&validation), *paths, "{patch}: {:?}", validation.errors);
        assert_eq!(warned(&validation), *warns, "{patch}: {:?}", validation.warnings);
    }
}

const FINE: &[&str] = &[];

/// All that mode Secrets needs.
fn secrets() -> Value {
    json!({ "serverRef": { "name": "a" }, "peerRef": { "name": "b" }, "clientRef": { "name": "c" } })
}

#[test]
fn a_sound_object_is_accepted_without_a_word() {
    validate_each(&[(json!({}), FINE, false)]);
}

#[test]
fn replicas_are_zero_to_seven_and_odd() {
    let path: &[&str] = &["spec.replicas"];
    let memory = json!({ "medium": "Memory" });
    validate_each(&[
        (json!({ "replicas": 0 }), FINE, false),
        (json!({ "replicas": 1 }), FINE, false),
        (json!({ "replicas": 2 }), FINE, true),
        (json!({ "replicas": 5 }), FINE, false),
        (json!({ "replicas": 7 }), FINE, true),
        (json!({ "replicas": 8 }), path, false),
        (json!({ "replicas": -1 }), path, false),
        (json!({ "replicas": 0, "storage": memory }), path, false),
        (json!({ "replicas": 1, "storage": memory }), FINE, true),
        (json!({ "replicas": 3, "storage": memory }), FINE, false),
    ]);
}

#[test]
fn versions_are_supported_ones_without_a_leading_v() {
    let path: &[&str] = &["spec.version"];
    validate_each(&[
        (json!({ "version": "3.7.3" }), FINE, false),
        (json!({ "version": "3.6.0" }), FINE, false),
        (json!({ "version": "3.6.99" }), FINE, true),
        (json!({ "version": "3.5.33" }), FINE, true),
        (json!({ "version": "3.5.9" }), FINE, true),
        (json!({ "version": "v3.6.16" }), path, false),
        (json!({ "version": "3.6" }), path, false),
        (json!({ "version": "3.4.30" }), path, false),
        (json!({ "version": "3.8.0" }), path, false),
        (json!({ "version": "4.0.0" }), path, false),
        (json!({ "version": "latest" }), path, false),
        (json!({ "version": "3.6.16-rc.0" }), path, false),
    ]);
}

#[test]
fn sizes_are_whole_bytes_with_room_for_the_quota() {
    let size: &[&str] = &["spec.storage.size"];
    let quota: &[&str] = &["spec.options.quotaBackendBytes"];
    let both = |size: &str, quota: &str| json!({ "storage": { "size": size }, "options": { "quotaBackendBytes": quota } });
    validate_each(&[
        (json!({ "storage": { "size": 10_737_418_240_i64 } }), FINE, false),
        (json!({ "storage": { "size": "1Gi" } }), FINE, true),
        (both("128M", "32Mi"), FINE, false),
        (both("122Mi", "32Mi"), size, false),
        (json!({ "storage": { "size": "0" } }), size, false),
        (json!({ "storage": { "size": "-1Gi" } }), size, false),
        (json!({ "storage": { "size": "1500m" } }), size, false),
        (json!({ "storage": { "size": "10gi" } }), size, false),
        (json!({ "storage": { "size": "ten" } }), size, false),
        (json!({ "storage": { "size": 0 } }), size, false),
        (both("10Gi", "5Gi"), FINE, false),
        (both("10Gi", "6Gi"), FINE, true),
        (both("20Gi", "9Gi"), FINE, true),
        (both("1Gi", "1024Mi"), FINE, true),
        (both("1Gi", "2Gi"), quota, false),
        (both("10Gi", "lots"), quota, false),
        (json!({ "storage": { "storageClassName": "fast" } }), FINE, false),
        (json!({ "storage": { "storageClassName": "Fast!" } }), &["spec.storage.storageClassName"], false),
        (json!({ "storage": { "medium": "Memory", "reclaimPolicy": "Delete" } }), FINE, true),
    ]);
}

#[test]
fn secrets_go_with_their_mode_and_are_complete() {
    let secrets = secrets();
    validate_each(&[
        (json!({ "tls": { "mode": "Disabled" } }), FINE, false),
        (json!({ "tls": { "mode": "Secrets", "secrets": secrets } }), FINE, false),
        (json!({ "tls": { "mode": "Secrets" } }), &["spec.tls.secrets"], false),
        (json!({ "tls": { "mode": "Automatic", "secrets": secrets } }), &["spec.tls.secrets"], false),
        (json!({ "tls": { "mode": null, "secrets": secrets } }), &["spec.tls.secrets"], false),
        (
            json!({ "tls": { "mode": "Secrets", "secrets": { "serverRef": { "name": "a" }, "clientCARef": { "name": "X!" } } } }),
            &["spec.tls.secrets.peerRef", "spec.tls.secrets.clientRef", "spec.tls.secrets.clientCARef.name"],
            false,
        ),
    ]);
}

#[test]
fn names_beside_those_of_the_services_are_names() {
    validate_each(&[
        (json!({ "tls": { "extraNames": ["etcd.example.com", "*.example.com", "::1"] } }), FINE, false),
        (
            json!({ "tls": { "extraNames": ["a", "https://b", "*.", "192.0.2.300", "192.0.2"] } }),
            &[
                "spec.tls.extraNames[1]",
                "spec.tls.extraNames[2]",
                "spec.tls.extraNames[3]",
                "spec.tls.extraNames[4]",
            ],
            false,
        ),
        (json!({ "tls": { "mode": "Disabled", "extraNames": [] } }), FINE, false),
        (json!({ "tls": { "mode": "Disabled", "extraNames": ["a"] } }), &["spec.tls.extraNames"], false),
    ]);
}

#[test]
fn authentication_needs_certificates() {
    validate_each(&[
        (json!({ "auth": { "enabled": true, "rootSecretRef": { "name": "root" } } }), FINE, false),
        (
            json!({ "auth": { "enabled": true }, "tls": { "mode": "Disabled" } }),
            &["spec.auth.enabled"],
            false,
        ),
        (json!({ "auth": { "rootSecretRef": { "name": "root" } } }), FINE, true),
        (
            json!({ "auth": { "enabled": true, "rootSecretRef": { "name": "Root" } } }),
            &["spec.auth.rootSecretRef.name"],
            false,
        ),
    ]);
}

#[test]
fn what_this_release_cannot_do_is_refused_whatever_it_holds() {
    let to = |destination: Value| json!({ "backup": { "schedule": "@daily", "destination": destination } });
    let store = json!({ "bucket": "a", "secretRef": { "name": "b" } });
    let claim = json!({ "persistentVolumeClaim": { "claimName": "b" }, "gcs": store });
    for (patch, path) in [
        (to(json!({ "s3": store })), "spec.backup.destination.s3"),
        (to(json!({ "gcs": {} })), "spec.backup.destination.gcs"),
        (to(json!({ "azure": { "account": 5 } })), "spec.backup.destination.azure"),
        (to(claim), "spec.backup.destination.gcs"),
        (json!({ "restore": {} }), "spec.restore"),
        (json!({ "restore": { "from": { "name": "latest" } } }), "spec.restore"),
    ] {
        let validation = validate(&cluster(&patch), None);
        let faults: Vec<_> = validation.errors.iter().map(ToString::to_string).collect();
        assert_eq!(faults, [format!("{path}: Forbidden: not supported by this release")], "{patch}");
    }
}

#[test]
fn a_name_leaves_room_for_the_names_made_of_it() {
    let named = |metadata: Value| {
        let mut object = cluster(&json!({}));
        object["metadata"] = metadata;
        refused(&validate(&object, None))
    };
    assert_eq!(named(json!({ "name": "a".repeat(45) })), FINE);
    assert_eq!(named(json!({ "generateName": "etcd-" })), FINE);
    for name in [&"a".repeat(46), "my.cluster", "1st", "My", ""] {
        assert_eq!(named(json!({ "name": name })), ["metadata.name"], "{name:?}");
    }
}

#[test]
fn every_fault_is_reported_at_once() {
    let validation = validate(
        &cluster(&json!({
            "replicas": 9, "version": "v3.6.16", "storage": { "size": "10GB" },
            "backup": { "schedule": "0 25 * * *", "timeZone": "berlin" }
        })),
        None,
    );
    assert_eq!(
        refused(&validation),
        [
            "spec.replicas",
            "spec.version",
            "spec.storage.size",
            "spec.backup.schedule",
            "spec.backup.timeZone",
            "spec.backup.destination"
        ]
    );
}

#[test]
fn a_spec_that_does_not_decode_is_one_fault() {
    assert_eq!(refused(&validate(&cluster(&json!({ "replicas": "three" })), None)), ["spec"]);
}
