use super::*;
use crate::api::default::complete;
use crate::kinds::etcdcluster::api::EtcdClusterKind;

fn object(spec: &Value) -> Value {
    json!({ "metadata": { "name": "a" }, "spec": spec })
}

fn completed(spec: &Value, stored: Option<&Value>, written: Version) -> (Value, Vec<String>) {
    let mut object = object(spec);
    let warnings = complete(&EtcdClusterKind, &mut object, stored, written).warnings;
    let once = object.clone();
    assert_eq!(
        complete(&EtcdClusterKind, &mut object, stored, written).warnings,
        [],
        "a second pass says nothing"
    );
    assert_eq!(object, once, "a second pass adds nothing");
    (object["spec"].take(), warnings.iter().map(|one| one.as_str().to_owned()).collect())
}

fn created(spec: &Value, written: Version) -> (Value, Vec<String>) {
    completed(spec, None, written)
}

#[test]
fn an_empty_v1_object_is_three_members_with_certificates() {
    let (spec, warnings) = created(&Value::Null, Version::V1);
    assert_eq!(
        spec,
        json!({ "replicas": 3, "version": NEWEST, "storage": { "size": "10Gi" }, "tls": { "mode": "Automatic" } })
    );
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn an_empty_v1alpha1_object_is_one_member_on_plain_http_and_says_so() {
    let (spec, warnings) = created(&json!({}), Version::V1Alpha1);
    assert_eq!(
        spec,
        json!({ "replicas": 1, "version": NEWEST, "storage": { "size": "10Gi" }, "tls": { "mode": "Disabled" } })
    );
    assert_eq!(warnings.len(), 1);
}

fn full() -> Value {
    json!({
        "replicas": 0, "version": "3.5.33", "storage": { "size": 5, "medium": "Memory" }, "tls": { "mode": "Disabled" },
        "backup": { "schedule": "@daily", "timeZone": "Europe/Berlin", "retention": { "maxAge": "24h" },
                    "destination": { "persistentVolumeClaim": { "claimName": "b" } } }
    })
}

#[test]
fn what_is_there_stays() {
    for written in Version::ALL {
        for stored in [None, Some(object(&json!({ "replicas": 5, "version": "3.6.16" })))] {
            assert_eq!(completed(&full(), stored.as_ref(), written), (full(), Vec::new()));
        }
    }
}

#[test]
fn null_is_absent() {
    let (spec, _) = created(&json!({ "replicas": null, "storage": null }), Version::V1);
    assert_eq!((&spec["replicas"], &spec["storage"]["size"]), (&json!(3), &json!("10Gi")));
}

#[test]
fn a_schedule_brings_zone_and_retention_and_from_v1alpha1_a_destination() {
    let (spec, _) = created(&json!({ "backup": { "schedule": "0 2 * * *" } }), Version::V1);
    assert_eq!(
        spec["backup"],
        json!({ "schedule": "0 2 * * *", "timeZone": "Etc/UTC", "retention": { "keepLast": 7 } })
    );
    let (spec, warnings) = created(&json!({ "backup": { "schedule": "0 2 * * *" } }), Version::V1Alpha1);
    assert_eq!(
        spec["backup"]["destination"],
        json!({ "persistentVolumeClaim": { "claimName": "a-backup" } })
    );
    assert_eq!(warnings.len(), 2);
    let (spec, _) = created(&json!({ "backup": { "suspend": true } }), Version::V1);
    assert_eq!(spec["backup"], json!({ "suspend": true }));
}

#[test]
fn what_a_later_write_leaves_out_stays_with_a_warning() {
    let stored = object(&full());
    let (spec, warnings) =
        completed(&json!({ "storage": { "medium": "Memory" } }), Some(&stored), Version::V1);
    let kept = json!({ "replicas": 0, "version": "3.5.33", "storage": { "medium": "Memory", "size": 5 },
                       "tls": { "mode": "Disabled" } });
    assert_eq!(spec, kept, "backups may be taken away");
    assert_eq!(
        warnings,
        [
            "spec.replicas: not given, stays 0",
            "spec.version: not given, stays 3.5.33",
            "spec.storage.size: not given, stays 5",
            "spec.tls.mode: not given, stays Disabled",
        ]
    );
    let schedule = json!({ "backup": { "schedule": "@hourly", "destination": { "persistentVolumeClaim": { "claimName": "b" } } } });
    let (spec, _) = completed(&schedule, Some(&stored), Version::V1);
    assert_eq!(spec["backup"]["timeZone"], "Europe/Berlin");
    assert_eq!(spec["backup"]["retention"], json!({ "maxAge": "24h" }));
}

#[test]
fn an_author_of_v1alpha1_is_warned_in_its_fields() {
    let stored = object(&json!({ "replicas": 5, "version": "3.6.16", "storage": { "size": "1Gi" },
                                 "tls": { "mode": "Disabled" } }));
    let (spec, warnings) = completed(&json!({}), Some(&stored), Version::V1Alpha1);
    assert_eq!(spec, stored["spec"]);
    assert_eq!(warnings[0], "spec.size: not given, stays 5");
    assert_eq!(warnings[2], "spec.storageSize: not given, stays 1Gi");
}

#[test]
fn a_schedule_added_later_gets_what_it_would_have_got_at_creation() {
    let stored = object(&json!({ "replicas": 1 }));
    let added = json!({ "backup": { "schedule": "@daily" } });
    let (spec, _) = completed(&added, Some(&stored), Version::V1Alpha1);
    assert_eq!(spec.pointer("/backup/destination/persistentVolumeClaim/claimName"), Some(&json!("a-backup")));
    let (spec, _) = completed(&added, Some(&stored), Version::V1);
    assert_eq!(
        spec["backup"],
        json!({ "schedule": "@daily", "timeZone": "Etc/UTC", "retention": { "keepLast": 7 } })
    );
}

#[test]
fn what_was_stored_without_a_field_stays_without_it() {
    let stored = object(&json!({ "backup": { "schedule": "@daily" } }));
    for written in Version::ALL {
        assert_eq!(completed(&stored["spec"], Some(&stored), written), (stored["spec"].clone(), Vec::new()));
    }
}

#[test]
fn what_is_being_deleted_keeps_what_is_stored_as_well() {
    let mut stored = object(&json!({"replicas": 1, "tls": {"mode": "Disabled"}}));
    stored["metadata"]["deletionTimestamp"] = json!("2026-11-21T12:00:00Z");
    assert_eq!(completed(&json!({}), Some(&stored), Version::V1).0, stored["spec"]);
}

#[test]
fn what_is_no_object_is_left_to_the_schema() {
    for mut object in [json!(3), json!({ "spec": [] }), json!({ "spec": { "storage": "big" } })] {
        let _ = complete(&EtcdClusterKind, &mut object, None, Version::V1);
    }
}
