//! What absent fields of a new EtcdCluster mean, written down so that it is seen and never changes later.
//!
//! Guarantees: adds what is absent (or null) and touches nothing else; a second pass adds nothing and says nothing.
//! Never: runs on updates, but for [`on_update`], which gives a schedule that comes through `v1alpha1` the
//! destination that `v1alpha1` has no field for.

use serde_json::{Map, Value, json};

use super::versions::NEWEST;
use crate::api::Version;
use crate::api::field::Warning;

/// Members of a cluster written as `v1`.
pub const REPLICAS: i32 = 3;
/// Members of a cluster written as `v1alpha1`: what that API promised.
pub const REPLICAS_V1ALPHA1: i32 = 1;
/// Size of a member's volume.
pub const STORAGE_SIZE: &str = "10Gi";
/// Zone of a schedule.
pub const TIME_ZONE: &str = "Etc/UTC";
/// Backups that are kept.
pub const KEEP_LAST: i32 = 7;

/// Fills in a new object, in the hub's version; `written` is the version of its author.
pub fn on_create(object: &mut Value, written: Version) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let (replicas, tls) = match written {
        Version::V1Alpha1 => (REPLICAS_V1ALPHA1, "Disabled"),
        Version::V1 => (REPLICAS, "Automatic"),
    };
    fill(object, &["spec", "replicas"], || json!(replicas));
    fill(object, &["spec", "version"], || json!(NEWEST));
    fill(object, &["spec", "storage", "size"], || json!(STORAGE_SIZE));
    let filled = fill(object, &["spec", "tls", "mode"], || json!(tls));
    if filled && written == Version::V1Alpha1 {
        warnings.push(Warning::new(
            "clients and members talk plain HTTP, as v1alpha1 promises; v1 has spec.tls.mode: Automatic",
        ));
    }
    warnings.extend(complete_backup(object, written));
    warnings
}

/// Fills in what an update through `v1alpha1` cannot say: where the backups of a schedule that it adds go. Where
/// there is a destination already, nothing is added.
pub fn on_update(object: &mut Value, written: Version) -> Vec<Warning> {
    let placed = object.pointer("/spec/backup/destination").is_some_and(|there| !there.is_null());
    if written == Version::V1 || placed { Vec::new() } else { complete_backup(object, written) }
}

/// Completes a backup that has a schedule.
fn complete_backup(object: &mut Value, written: Version) -> Vec<Warning> {
    if !object.pointer("/spec/backup/schedule").is_some_and(Value::is_string) {
        return Vec::new();
    }
    fill(object, &["spec", "backup", "timeZone"], || json!(TIME_ZONE));
    fill(object, &["spec", "backup", "retention"], || json!({ "keepLast": KEEP_LAST }));
    if written == Version::V1 {
        return Vec::new();
    }
    // With generateName the name is not known yet: the judge then says that the destination is missing.
    let Some(name) = object.pointer("/metadata/name").and_then(Value::as_str).filter(|name| !name.is_empty())
    else {
        return Vec::new();
    };
    let claim = format!("{name}-backup");
    let warning =
        Warning::new(format!("backups go to the PersistentVolumeClaim {claim}; v1 has other places"));
    let filled = fill(
        object,
        &["spec", "backup", "destination"],
        || json!({ "persistentVolumeClaim": { "claimName": claim } }),
    );
    if filled { vec![warning] } else { Vec::new() }
}

/// Writes a value where there is none, with the objects above it. False where there was one, or where what stands
/// above it is no object: that is for the schema to refuse.
fn fill(object: &mut Value, path: &[&str], value: impl FnOnce() -> Value) -> bool {
    let Some((last, above)) = path.split_last() else { return false };
    let mut place = object;
    for name in above {
        let Some(fields) = place.as_object_mut() else { return false };
        place = fields.entry(*name).or_insert(Value::Null);
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
    }
    let Some(fields) = place.as_object_mut() else { return false };
    let field = fields.entry(*last).or_insert(Value::Null);
    if !field.is_null() {
        return false;
    }
    *field = value();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaulted(spec: &Value, written: Version) -> (Value, Vec<Warning>) {
        let mut object = json!({ "metadata": { "name": "a" }, "spec": spec });
        let warnings = on_create(&mut object, written);
        let once = object.clone();
        assert_eq!(on_create(&mut object, written), [], "a second pass says nothing");
        assert_eq!(object, once, "a second pass adds nothing");
        (object["spec"].take(), warnings)
    }

    #[test]
    fn an_empty_v1_object_is_three_members_with_certificates() {
        let (spec, warnings) = defaulted(&Value::Null, Version::V1);
        assert_eq!(
            spec,
            json!({ "replicas": 3, "version": NEWEST, "storage": { "size": "10Gi" }, "tls": { "mode": "Automatic" } })
        );
        assert_eq!(warnings, []);
    }

    #[test]
    fn an_empty_v1alpha1_object_is_one_member_on_plain_http_and_says_so() {
        let (spec, warnings) = defaulted(&json!({}), Version::V1Alpha1);
        assert_eq!(
            spec,
            json!({ "replicas": 1, "version": NEWEST, "storage": { "size": "10Gi" }, "tls": { "mode": "Disabled" } })
        );
        assert_eq!(warnings.len(), 1);
    }

    #[test]
    fn what_is_there_stays() {
        let spec = json!({
            "replicas": 0, "version": "3.5.33", "storage": { "size": 5, "medium": "Memory" }, "tls": { "mode": "Disabled" },
            "backup": { "schedule": "@daily", "timeZone": "Europe/Berlin", "retention": { "maxAge": "24h" },
                        "destination": { "s3": { "bucket": "abc" } } }
        });
        for written in Version::ALL {
            assert_eq!(defaulted(&spec, written), (spec.clone(), Vec::new()));
        }
    }

    #[test]
    fn null_is_absent() {
        let (spec, _) = defaulted(&json!({ "replicas": null, "storage": null }), Version::V1);
        assert_eq!((&spec["replicas"], &spec["storage"]["size"]), (&json!(3), &json!("10Gi")));
    }

    #[test]
    fn a_schedule_brings_zone_and_retention_and_from_v1alpha1_a_destination() {
        let (spec, _) = defaulted(&json!({ "backup": { "schedule": "0 2 * * *" } }), Version::V1);
        assert_eq!(
            spec["backup"],
            json!({ "schedule": "0 2 * * *", "timeZone": "Etc/UTC", "retention": { "keepLast": 7 } })
        );
        let (spec, warnings) =
            defaulted(&json!({ "backup": { "schedule": "0 2 * * *" } }), Version::V1Alpha1);
        assert_eq!(
            spec["backup"]["destination"],
            json!({ "persistentVolumeClaim": { "claimName": "a-backup" } })
        );
        assert_eq!(warnings.len(), 2);
        let (spec, _) = defaulted(&json!({ "backup": { "suspend": true } }), Version::V1);
        assert_eq!(spec["backup"], json!({ "suspend": true }));
    }

    #[test]
    fn a_schedule_added_through_v1alpha1_gets_its_destination_and_nothing_else() {
        let mut object =
            json!({ "metadata": { "name": "a" }, "spec": { "backup": { "schedule": "@daily" } } });
        assert_eq!(on_update(&mut object, Version::V1Alpha1).len(), 1);
        assert!(object.pointer("/spec/backup/destination/persistentVolumeClaim").is_some());
        assert!(object.pointer("/spec/replicas").is_none());
    }

    #[test]
    fn what_is_no_object_is_left_to_the_schema() {
        for mut object in [json!(3), json!({ "spec": [] }), json!({ "spec": { "storage": "big" } })] {
            let _ = on_create(&mut object, Version::V1);
        }
    }
}
