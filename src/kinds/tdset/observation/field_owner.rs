//! Who wrote the count of an object last, and when: read from its managed fields. Pure.
//!
//! Guarantees: the result follows from the object alone, so it survives restarts and changes of the leader.
//! Assumes: the API server's clock and ours agree to a second, which is all that managed fields tell, where they tell
//! a time at all.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, ObjectMeta, Time};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::names::{COUNT_MANAGER, MANAGER};

/// Fields that hold a count, as managed fields name them.
const COUNTS: [&str; 3] = ["/f:spec/f:replicas", "/f:spec/f:minReplicas", "/f:spec/f:minReplicaCount"];

/// The same of fields that hold the upper bound of an autoscaler.
const MAXIMA: [&str; 2] = ["/f:spec/f:maxReplicas", "/f:spec/f:maxReplicaCount"];

/// Field managers of tools that apply a repository again and again, by themselves: no person decides on
/// such a write when it is made. Argo CD and Flux (their own names for their field managers).
const RECONCILERS: [&str; 5] = [
    "argocd-controller",
    "argocd-application-controller",
    "kustomize-controller",
    "helm-controller",
    "flux-client-side-apply",
];

/// The fields of the spec that an entry has where it owns no more than a count.
const COUNT_ALONE: &str = r#"{"f:replicas":{}}"#;

/// The subresource by which counts are written whose field is not known.
const SCALE: &str = "scale";

/// Another client's hand in the count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldOwner {
    /// Its field manager.
    pub manager: String,
    /// When it wrote last, to the second; none where it wrote by the scale subresource of a built-in kind.
    pub time: Option<Timestamp>,
}

impl FieldOwner {
    /// Whether it writes again and again by itself, and not because a person wanted that count now.
    #[must_use]
    pub fn is_reconciler(&self) -> bool {
        RECONCILERS.contains(&self.manager.as_str())
    }
}

/// Takes out of managed fields what does not tell whose the count is. What is left of a tree of fields is one text with
/// the paths of those that matter: of thousands of objects, each node of a tree takes half a kilobyte.
pub fn trim(metadata: &mut ObjectMeta) {
    metadata.managed_fields = metadata.managed_fields.take().map(|entries| {
        let entries = entries.into_iter().map(|entry| FoundEntry {
            fields_v1: entry.fields_v1.and_then(|tree| Fields::deserialize(tree.0).ok()),
            manager: entry.manager,
            operation: entry.operation,
            subresource: entry.subresource,
            time: entry.time,
        });
        trimmed(entries.collect())
    });
}

/// Leaves of managed fields the entries of other clients alone, which few of the objects have that we make.
pub fn retain_others(metadata: &mut ObjectMeta) {
    let is_other = |entry: &ManagedFieldsEntry| {
        let writer = (entry.manager.as_deref(), entry.operation.as_deref());
        entry.subresource.is_none() && writer != (Some(MANAGER), Some("Apply"))
    };
    let entries = metadata.managed_fields.take().into_iter().flatten();
    let others: Vec<_> = entries.filter(is_other).collect();
    metadata.managed_fields = Some(others).filter(|others| !others.is_empty());
}

/// The entries that tell whose the count is.
pub(super) fn trimmed(entries: Vec<FoundEntry>) -> Vec<ManagedFieldsEntry> {
    entries.into_iter().filter_map(FoundEntry::trimmed).collect()
}

/// The entries of other clients that own more of the spec than a count, as managed fields have them.
pub(super) fn others(entries: &[FoundEntry]) -> Vec<ManagedFieldsEntry> {
    entries.iter().filter_map(FoundEntry::of_another).collect()
}

/// An entry of managed fields as it is watched. No tree is made of its fields, which of a Deployment takes longer than
/// reading all else of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FoundEntry {
    manager: Option<String>,
    operation: Option<String>,
    subresource: Option<String>,
    time: Option<Time>,
    fields_v1: Option<Fields>,
}

impl FoundEntry {
    /// What is kept of it, if it tells whose the count is.
    fn trimmed(self) -> Option<ManagedFieldsEntry> {
        let Self { manager, subresource, time, fields_v1, .. } = self;
        let Fields { spec, paths } = fields_v1.unwrap_or_default();
        let is_kept = !paths.is_empty()
            || subresource.as_deref() == Some(SCALE)
            || (spec.is_some() && subresource.is_none());
        let fields_v1 = (!paths.is_empty()).then(|| FieldsV1(Value::String(paths.join(" "))));
        let entry =
            ManagedFieldsEntry { manager, subresource, time, fields_v1, ..ManagedFieldsEntry::default() };
        is_kept.then_some(entry)
    }

    /// The entry with the fields of the spec, if it is of another client and has more of them than a count. What we
    /// merge counts too: only an apply removes a field that is no longer wanted.
    fn of_another(&self) -> Option<ManagedFieldsEntry> {
        let is_ours = self.manager.as_deref() == Some(MANAGER) && self.operation.as_deref() == Some("Apply");
        let spec = self.fields_v1.as_ref()?.spec.as_deref().filter(|_| !is_ours)?;
        if self.subresource.is_some() || spec.get() == COUNT_ALONE {
            return None;
        }
        let fields = json!({"f:spec": serde_json::from_str::<Value>(spec.get()).ok()?});
        Some(ManagedFieldsEntry {
            manager: self.manager.clone(),
            operation: self.operation.clone(),
            fields_v1: Some(FieldsV1(fields)),
            ..ManagedFieldsEntry::default()
        })
    }
}

/// What is read of a tree of fields, or of what [`trim`] leaves of one.
#[derive(Default)]
struct Fields {
    /// Those in the spec, if there are any.
    spec: Option<Box<RawValue>>,
    /// The paths of those that hold counts and upper bounds.
    paths: Vec<&'static str>,
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Tree {
            #[serde(rename = "f:spec")]
            spec: Option<Box<RawValue>>,
        }

        /// In the order of the constants.
        #[derive(Deserialize)]
        struct OfSpec {
            #[serde(rename = "f:replicas")]
            replicas: Option<IgnoredAny>,
            #[serde(rename = "f:minReplicas")]
            min_replicas: Option<IgnoredAny>,
            #[serde(rename = "f:minReplicaCount")]
            min_replica_count: Option<IgnoredAny>,
            #[serde(rename = "f:maxReplicas")]
            max_replicas: Option<IgnoredAny>,
            #[serde(rename = "f:maxReplicaCount")]
            max_replica_count: Option<IgnoredAny>,
        }

        struct Found;

        impl<'de> Visitor<'de> for Found {
            type Value = Fields;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a tree of fields, or their paths")
            }

            fn visit_map<A: MapAccess<'de>>(self, tree: A) -> Result<Fields, A::Error> {
                let Tree { spec } = Tree::deserialize(MapAccessDeserializer::new(tree))?;
                let Some(text) = spec else { return Ok(Fields::default()) };
                let spec: OfSpec = serde_json::from_str(text.get()).map_err(A::Error::custom)?;
                let counts = [spec.replicas, spec.min_replicas, spec.min_replica_count];
                let all =
                    counts.into_iter().chain([spec.max_replicas, spec.max_replica_count]).zip(all_paths());
                Ok(Fields {
                    spec: Some(text),
                    paths: all.filter_map(|(field, path)| field.map(|_| path)).collect(),
                })
            }

            fn visit_str<E>(self, text: &str) -> Result<Fields, E> {
                let paths: Vec<_> = all_paths().filter(|path| is_in(text, path)).collect();
                Ok(Fields { spec: None, paths })
            }
        }

        deserializer.deserialize_any(Found)
    }
}

/// The paths of all fields that hold counts and upper bounds.
fn all_paths() -> impl Iterator<Item = &'static str> {
    COUNTS.into_iter().chain(MAXIMA)
}

/// Whether a path is among these.
fn is_in(paths: &str, path: &str) -> bool {
    paths.split(' ').any(|one| one == path)
}

/// Whether a field is among these, which are a tree, or what [`trim`] leaves of one.
fn has(fields: &Value, path: &str) -> bool {
    match fields {
        Value::String(paths) => is_in(paths, path),
        tree => tree.pointer(path).is_some(),
    }
}

/// The entries that own one of these fields. Where the field is not known, those that may.
fn owners<'a>(metadata: &'a ObjectMeta, names: &'a [&str]) -> Vec<&'a ManagedFieldsEntry> {
    let sure: Vec<_> = sure_owners(metadata, names).collect();
    if sure.is_empty() { metadata.managed_fields.iter().flatten().collect() } else { sure }
}

/// The entries that own one of these fields, as they say themselves.
fn sure_owners<'a>(
    metadata: &'a ObjectMeta,
    names: &'a [&str],
) -> impl Iterator<Item = &'a ManagedFieldsEntry> {
    let has = |entry: &ManagedFieldsEntry| {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
        fields.is_some_and(|fields| names.iter().any(|name| has(fields, name)))
    };
    let scales = |entry: &ManagedFieldsEntry| entry.subresource.as_deref() == Some(SCALE);
    metadata.managed_fields.iter().flatten().filter(move |entry| has(entry) || scales(entry))
}

/// Whether managed fields say who wrote the count. Where a workload was applied without its count, the API server keeps
/// no manager that scales it (kubernetes `apimachinery/pkg/util/managedfields/internal/skipnonapplied.go`).
#[must_use]
pub fn is_owned(metadata: &ObjectMeta) -> bool {
    sure_owners(metadata, &COUNTS).next().is_some()
}

/// Whether managed fields say that we wrote the count.
#[must_use]
pub fn is_written_by_us(metadata: &ObjectMeta) -> bool {
    sure_owners(metadata, &COUNTS).any(is_ours)
}

fn is_ours(entry: &ManagedFieldsEntry) -> bool {
    matches!(entry.manager.as_deref(), Some(MANAGER | COUNT_MANAGER))
}

/// Another client who wrote the count last; none while it is ours, without an owner, or the one that the object was
/// created with, since the client that creates a workload overrules no one.
#[must_use]
pub fn other(metadata: &ObjectMeta) -> Option<FieldOwner> {
    other_of(metadata, &COUNTS)
}

/// The same of the upper bound of an autoscaler.
#[must_use]
pub fn other_of_max(metadata: &ObjectMeta) -> Option<FieldOwner> {
    other_of(metadata, &MAXIMA)
}

fn other_of(metadata: &ObjectMeta, names: &[&str]) -> Option<FieldOwner> {
    let owners = owners(metadata, names);
    if owners.iter().any(|entry| is_ours(entry)) {
        return None;
    }
    let last = owners.into_iter().max_by_key(|entry| entry.time.as_ref().map(|time| time.0))?;
    let time = last.time.as_ref().map(|time| time.0);
    let made = metadata.creation_timestamp.as_ref().map(|time| time.0);
    if made.is_some_and(|made| time.is_some_and(|time| time <= made)) {
        return None;
    }
    Some(FieldOwner { manager: last.manager.clone().unwrap_or_default(), time })
}

/// Whether the count would be lost if what [`MANAGER`] applies did not have it: that owns it, and no other manager does.
#[must_use]
pub fn is_only_in_the_template(metadata: &ObjectMeta) -> bool {
    let mut owners = sure_owners(metadata, &COUNTS).peekable();
    owners.peek().is_some() && owners.all(|entry| entry.manager.as_deref() == Some(MANAGER))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(entries: &serde_json::Value) -> ObjectMeta {
        let mut metadata: ObjectMeta = serde_json::from_value(json!({"managedFields": entries})).unwrap();
        trim(&mut metadata);
        metadata
    }

    #[test]
    fn the_last_one_who_wrote_the_count_is_named() {
        let of = |entries: serde_json::Value| other(&metadata(&entries)).map(|hand| hand.manager);
        let count = json!({"f:spec": {"f:replicas": {}}});
        let template = json!({"f:spec": {"f:template": {}}});
        let size = json!({"f:spec": {"f:size": {}}});
        let entry = |manager: &str, fields: &serde_json::Value, time: &str, subresource: &str| json!({"manager": manager, "fieldsV1": fields, "time": time, "subresource": subresource});
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
        let ours = entry(COUNT_MANAGER, &count, early, SCALE);
        assert_eq!(of(json!([ours, entry("helm", &template, late, "")])), None);
        assert_eq!(
            of(json!([entry("kubectl", &count, early, SCALE), entry("helm", &template, late, "")])),
            Some("kubectl".to_owned())
        );
        // The field of a custom kind is not known: it is the last client that wrote to the spec.
        assert_eq!(of(json!([entry(COUNT_MANAGER, &size, early, SCALE)])), None);
        let edit = json!({"manager": "edit", "fieldsV1": size, "time": late});
        assert_eq!(of(json!([edit])), Some("edit".to_owned()));
        assert_eq!(of(json!([])), None);
    }

    #[test]
    fn each_bound_of_an_autoscaler_has_its_own_writer() {
        let entry =
            |manager: &str, field: &str| json!({"manager": manager, "fieldsV1": {"f:spec": {field: {}}}});
        for (min, max) in [("f:minReplicas", "f:maxReplicas"), ("f:minReplicaCount", "f:maxReplicaCount")] {
            let metadata = metadata(&json!([entry(COUNT_MANAGER, min), entry("argo", max)]));
            assert_eq!(other(&metadata), None);
            assert_eq!(other_of_max(&metadata).map(|hand| hand.manager).as_deref(), Some("argo"));
        }
    }

    #[test]
    fn of_two_writers_of_a_bound_the_last_one_counts_and_none_of_the_other_bound() {
        let entry = |manager: &str, fields: &[&str], second: u32| {
            let fields: serde_json::Map<_, _> =
                fields.iter().map(|field| ((*field).to_owned(), json!({}))).collect();
            let time = format!("2026-01-01T00:00:0{second}Z");
            json!({"manager": manager, "fieldsV1": {"f:spec": fields}, "time": time})
        };
        for (min, max) in [("f:minReplicas", "f:maxReplicas"), ("f:minReplicaCount", "f:maxReplicaCount")] {
            let metadata = metadata(&json!([
                entry("late", &[min], 2),
                entry("early", &[min, max], 1),
                entry("later", &[max], 3),
                entry("latest", &["f:metrics"], 4),
            ]));
            let of = |owner: Option<FieldOwner>| owner.map(|owner| (owner.manager, owner.time));
            let time = |second: i8| Some(format!("2026-01-01T00:00:0{second}Z").parse().unwrap());
            assert_eq!(of(other(&metadata)), Some(("late".to_owned(), time(2))), "{min}");
            assert_eq!(of(other_of_max(&metadata)), Some(("later".to_owned(), time(3))), "{max}");
        }
    }

    #[test]
    fn the_count_that_an_object_was_made_with_has_no_owner() {
        let entry = json!({"manager": "kubectl", "fieldsV1": {"f:spec": {"f:replicas": {}}}, "time": "2026-01-01T00:00:01Z"});
        for (made, by) in [("2026-01-01T00:00:01Z", None), ("2026-01-01T00:00:00Z", Some("kubectl"))] {
            let metadata = json!({"creationTimestamp": made, "managedFields": [entry]});
            let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap();
            assert_eq!(other(&metadata).map(|hand| hand.manager).as_deref(), by, "made at {made}");
        }
    }

    #[test]
    fn a_count_that_came_with_the_template_has_no_owner_of_its_own() {
        let count = json!({"f:spec": {"f:replicas": {}, "f:template": {}}});
        let template = json!({"manager": MANAGER, "fieldsV1": count});
        assert!(is_only_in_the_template(&metadata(&json!([template]))));
        let own = json!({"manager": COUNT_MANAGER, "fieldsV1": count});
        assert!(!is_only_in_the_template(&metadata(&json!([template, own]))));
        let without = json!({"manager": MANAGER, "fieldsV1": {"f:spec": {"f:template": {}}}});
        assert!(!is_only_in_the_template(&metadata(&json!([without]))), "nothing of it is lost");
        assert!(!is_only_in_the_template(&ObjectMeta::default()));
    }
}
