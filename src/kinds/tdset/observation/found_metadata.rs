//! Metadata of objects as they are watched: read without what no reconciliation looks at, in one go. Pure.
//!
//! The types of Kubernetes make a tree of all managed fields. Those are most of what a watch sends of an object, and come
//! with each change of its status.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta, OwnerReference, Time};
use kube::Resource;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::{Deserialize, Deserializer};

use super::field_owner::{FoundEntry, others, trimmed};
use crate::controllers::difference::Difference;

/// An object of any type, of which only the metadata is read.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct FoundMetadata {
    /// They. Of the managed fields, what [`trim`](super::trim) leaves.
    #[serde(default, deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
}

/// Reads the metadata of an object; of the managed fields, what [`trim`](super::trim) leaves.
///
/// # Errors
/// It is no metadata.
pub(super) fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    Ok(metadata_and_others(deserializer)?.0)
}

/// The same, and the managed fields of other clients that own more of the spec than a count.
///
/// # Errors
/// It is no metadata.
pub(super) fn metadata_and_others<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<(ObjectMeta, Vec<ManagedFieldsEntry>), D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Found {
        name: Option<String>,
        namespace: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
        generation: Option<i64>,
        creation_timestamp: Option<Time>,
        deletion_timestamp: Option<Time>,
        labels: Option<BTreeMap<String, String>>,
        annotations: Option<BTreeMap<String, String>>,
        owner_references: Option<Vec<OwnerReference>>,
        finalizers: Option<Vec<String>>,
        managed_fields: Option<Vec<FoundEntry>>,
    }
    let found = Found::deserialize(deserializer)?;
    let others = found.managed_fields.as_deref().map(others).unwrap_or_default();
    let metadata = ObjectMeta {
        name: found.name,
        namespace: found.namespace,
        uid: found.uid,
        resource_version: found.resource_version,
        generation: found.generation,
        creation_timestamp: found.creation_timestamp,
        deletion_timestamp: found.deletion_timestamp,
        labels: found.labels,
        annotations: found.annotations,
        owner_references: found.owner_references,
        finalizers: found.finalizers,
        managed_fields: found.managed_fields.map(trimmed),
        ..ObjectMeta::default()
    };
    Ok((metadata, others))
}

impl FoundMetadata {
    /// How much the object differs from what it was `before`: where its generation is the same, in no more than its status,
    /// which tells how many replicas there are.
    #[must_use]
    pub fn difference(before: &Self, after: &Self) -> Difference {
        let (before, after) = (&before.metadata, &after.metadata);
        if before.resource_version == after.resource_version {
            Difference::Nothing
        } else if after.generation.is_some() && is_same_metadata(before, after) {
            Difference::Numbers
        } else {
            Difference::More
        }
    }
}

/// Whether metadata differ in nothing but the resource version.
pub(super) fn is_same_metadata(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    ObjectMeta { resource_version: other.resource_version.clone(), ..one.clone() } == *other
}

impl Resource for FoundMetadata {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_is_left_out_that_the_types_of_kubernetes_have_and_trimming_leaves() {
        let entry = |manager: &str, subresource: &str, fields: serde_json::Value| {
            json!({"manager": manager, "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
                "time": "2026-01-01T00:00:01Z", "subresource": subresource, "fieldsV1": fields})
        };
        let mut whole = entry("kubectl", "", json!({"f:spec": {"f:template": {"k:{\"name\":\"a\"}": {}}}}));
        whole.as_object_mut().unwrap().remove("subresource");
        let fields = json!([
            whole,
            entry("a", "", json!({"f:metadata": {}, "f:spec": {".": {}, "f:replicas": {}, "f:paused": {}}})),
            entry("b", "", json!({"f:spec": {"f:minReplicas": {}, "f:maxReplicas": {}}})),
            entry("c", "", json!({"f:spec": {"f:minReplicaCount": {}, "f:maxReplicaCount": {}}})),
            entry("d", "scale", json!({"f:spec": {"f:size": {}}})),
            entry("e", "status", json!({"f:status": {"f:replicas": {}}})),
            entry("f", "", json!({"f:metadata": {"f:labels": {}}})),
            {"manager": "g", "subresource": "scale"},
            {"manager": "h"},
        ]);
        let metadata = json!({"name": "shop", "namespace": "a", "uid": "u", "resourceVersion": "7", "generation": 3,
            "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-02T00:00:00Z",
            "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["e"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": true}],
            "managedFields": fields});
        for metadata in [metadata, json!({"name": "shop", "managedFields": null}), json!({})] {
            let mut expected: ObjectMeta = serde_json::from_value(metadata.clone()).unwrap();
            super::super::trim(&mut expected);
            let text = json!({"kind": "A", "metadata": metadata, "spec": {"replicas": 1}}).to_string();
            let found: FoundMetadata = serde_json::from_str(&text).unwrap();
            assert_eq!(found.metadata, expected, "{text}");
        }
        let found: FoundMetadata = serde_json::from_str("{}").unwrap();
        assert_eq!(found.metadata, ObjectMeta::default());
        let kept = |fields: serde_json::Value| {
            let text = json!({"metadata": {"managedFields": fields}}).to_string();
            let found: FoundMetadata = serde_json::from_str(&text).unwrap();
            let kept = found.metadata.managed_fields.unwrap().into_iter();
            kept.map(|entry| (entry.manager.unwrap(), entry.fields_v1.map(|fields| fields.0)))
                .collect::<Vec<_>>()
        };
        let expected = [
            ("kubectl", None),
            ("a", Some("/f:spec/f:replicas")),
            ("b", Some("/f:spec/f:minReplicas /f:spec/f:maxReplicas")),
            ("c", Some("/f:spec/f:minReplicaCount /f:spec/f:maxReplicaCount")),
            ("d", None),
            ("g", None),
        ];
        let expected = expected.map(|(manager, paths)| (manager.to_owned(), paths.map(Into::into)));
        assert_eq!(kept(fields), expected);
    }
    #[test]
    fn a_change_of_the_status_alone_is_one_of_numbers_where_that_is_known() {
        let found = |metadata: serde_json::Value| -> FoundMetadata {
            serde_json::from_value(json!({"metadata": metadata})).unwrap()
        };
        let with = |field: &str, value: serde_json::Value| {
            let mut metadata = json!({"name": "web", "generation": 3, "resourceVersion": "8"});
            metadata[field] = value;
            found(metadata)
        };
        let before = with("resourceVersion", json!("7"));
        let entry = json!([{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]);
        let owner = json!([{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": true}]);
        for (after, difference) in [
            (with("resourceVersion", json!("7")), Difference::Nothing),
            (with("resourceVersion", json!("9")), Difference::Numbers),
            (with("generation", json!(4)), Difference::More),
            (with("uid", json!("u")), Difference::More),
            (with("managedFields", entry), Difference::More),
            (with("ownerReferences", owner), Difference::More),
            (with("deletionTimestamp", json!("2026-01-01T00:00:00Z")), Difference::More),
        ] {
            assert_eq!(FoundMetadata::difference(&before, &after), difference, "{after:?}");
        }
        // A ConfigMap has no generation: what has changed may be all of it.
        let days = |version: &str| found(json!({"name": "days", "resourceVersion": version}));
        assert_eq!(FoundMetadata::difference(&days("7"), &days("8")), Difference::More);
    }
}
