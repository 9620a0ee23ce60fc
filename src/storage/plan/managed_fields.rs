//! The managed fields of an object without entries of versions that are gone.
//!
//! An entry of a version that a definition no longer has fails every write that has to compare it:
//! `request to convert CR to an invalid group/version` (kubernetes/kubernetes#111937). It must go before the version
//! does.
//!
//! Where versions differ in `apiVersion` alone, the fields of an entry are the same in each of them, and the entry is
//! kept under another version: its manager loses nothing. Where a webhook converts, it is unknown what the fields are
//! called in another version, and the entry goes: its manager owns again what it applies next, and fields that it
//! leaves out at that moment stay.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use serde_json::{Map, Value, json};

/// The manager of the entry that stands where no other is left. An object without any is taken for one without tracked
/// managers, and the next apply would share all of its fields with a manager `before-first-apply`.
pub use super::checkpoint::MANAGER;

/// What happens to entries of other versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// They stay.
    Keep,
    /// Those of versions that are not served go: no client writes by them any more.
    #[default]
    Unserved,
    /// Those of every version but the storage version go.
    Others,
}

/// The entries as they should be; none where they are. Those go of which `is_stale` says so by their `apiVersion`;
/// where `is_alike`, they are kept as entries of `api_version`.
#[must_use]
pub fn cleaned(
    entries: &[ManagedFieldsEntry],
    is_stale: impl Fn(&str) -> bool,
    api_version: &str,
    is_alike: bool,
) -> Option<Vec<ManagedFieldsEntry>> {
    let is_stale = |entry: &ManagedFieldsEntry| is_stale(entry.api_version.as_deref().unwrap_or_default());
    // Of most objects nothing goes: their entries are not copied.
    if !entries.iter().any(is_stale) {
        return None;
    }
    let (stale, mut kept): (Vec<_>, Vec<_>) = entries.iter().cloned().partition(is_stale);
    if is_alike {
        for mut entry in stale {
            entry.api_version = Some(api_version.to_owned());
            match kept.iter_mut().find(|other| is_of_same(other, &entry)) {
                Some(other) => unite(other, entry),
                None => kept.push(entry),
            }
        }
    }
    if kept.is_empty() {
        kept.push(ManagedFieldsEntry {
            api_version: Some(api_version.to_owned()),
            fields_type: Some("FieldsV1".to_owned()),
            fields_v1: Some(FieldsV1(json!({"f:metadata": {"f:name": {}}}))),
            manager: Some(MANAGER.to_owned()),
            operation: Some("Update".to_owned()),
            subresource: None,
            time: None,
        });
    }
    Some(kept)
}

/// Whether two entries of one version are one manager's by the same means: there may be one such entry.
fn is_of_same(one: &ManagedFieldsEntry, other: &ManagedFieldsEntry) -> bool {
    let subresource = |entry: &ManagedFieldsEntry| entry.subresource.clone().unwrap_or_default();
    (&one.manager, &one.operation, &one.api_version) == (&other.manager, &other.operation, &other.api_version)
        && subresource(one) == subresource(other)
}

fn unite(entry: &mut ManagedFieldsEntry, other: ManagedFieldsEntry) {
    let time = |entry: &ManagedFieldsEntry| entry.time.as_ref().map(|time| time.0);
    if time(&other) > time(entry) {
        entry.time = other.time;
    }
    match (&mut entry.fields_v1, other.fields_v1) {
        (Some(FieldsV1(Value::Object(fields))), Some(FieldsV1(Value::Object(more)))) => add(fields, more),
        (fields, more) => *fields = fields.take().or(more),
    }
}

/// Adds a set of fields to another: each is a tree whose nodes are in the set or have members in it.
fn add(fields: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, below) in more {
        match (fields.get_mut(&name), below) {
            (Some(Value::Object(fields)), Value::Object(more)) => add(fields, more),
            (Some(_), _) => {}
            (None, below) => drop(fields.insert(name, below)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, version: &str, fields: &Value) -> ManagedFieldsEntry {
        serde_json::from_value(json!({"manager": manager, "operation": "Apply", "fieldsType": "FieldsV1",
            "apiVersion": format!("a.dev/{version}"), "fieldsV1": fields}))
        .unwrap()
    }

    fn written(entries: &[ManagedFieldsEntry], is_alike: bool) -> Option<Value> {
        let cleaned = cleaned(entries, |version| version == "a.dev/v1alpha1", "a.dev/v1", is_alike);
        cleaned.map(|entries| {
            entries.iter().map(|entry| json!([entry.manager, entry.api_version, entry.fields_v1])).collect()
        })
    }

    #[test]
    fn entries_of_other_versions_are_left_alone() {
        assert_eq!(written(&[], true), None);
        assert_eq!(written(&[entry("helm", "v1", &json!({"f:spec": {}}))], false), None);
    }

    #[test]
    fn where_a_webhook_converts_entries_go_and_one_stays() {
        let (old, new) = (json!({"f:spec": {"f:size": {}}}), json!({"f:spec": {"f:replicas": {}}}));
        let both = [entry("helm", "v1alpha1", &old), entry("kubectl", "v1", &new)];
        assert_eq!(written(&both, false), Some(json!([["kubectl", "a.dev/v1", new]])));
        let seed = json!([[MANAGER, "a.dev/v1", {"f:metadata": {"f:name": {}}}]]);
        assert_eq!(written(&both[..1], false), Some(seed));
    }

    #[test]
    fn where_versions_are_alike_no_manager_loses_a_field() {
        let (old, new) =
            (json!({"f:spec": {"f:a": {}, "f:b": {"f:c": {}}}}), json!({"f:spec": {"f:b": {".": {}}}}));
        let three =
            [entry("helm", "v1alpha1", &old), entry("helm", "v1", &new), entry("kubectl", "v1alpha1", &new)];
        let both = json!({"f:spec": {"f:b": {".": {}, "f:c": {}}, "f:a": {}}});
        let wanted = json!([["helm", "a.dev/v1", both], ["kubectl", "a.dev/v1", new]]);
        assert_eq!(written(&three, true), Some(wanted));
    }
}
