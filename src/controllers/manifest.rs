//! An object to apply, as data, with its API resource, namespace and name. Pure.
//!
//! Guarantees: [`Manifest::missing_from`] is false for an object that this manifest was applied to and whose fields no
//! other client has changed since; so what is settled is never written again. Two questions are asked:
//!
//! - Was *this* applied last? A hash of the manifest rides in an annotation, so that a field which a manifest no
//!   longer has is noticed too.
//! - Is it all still there, and nothing besides that changes its meaning? [`deviation`](super::deviation) answers that.
//!   What the API server adds (defaults), leaves out (zero values) or spells in another way (quantities) makes no
//!   difference.

use std::collections::BTreeMap;
use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;
use kube::core::ApiResource;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::deviation::{self, Deviation};
use crate::api::checksum::hexadecimal;

/// The annotation with the hash of what was applied last.
pub const APPLIED_HASH: &str = "gatehouse.dev/applied-hash";

/// A resource version that no object has: etcd begins with it, empty.
const BEFORE_ALL: &str = "1";

/// Bytes of the hash that are kept.
const HASH_LENGTH: usize = 16;

/// Where an object is.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Its type.
    pub resource: ApiResource,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Place {
    /// Where `object` is.
    pub fn of<K: Resource<DynamicType = ()>>(object: &K) -> Self {
        Self::of_metadata::<K>(object.meta())
    }

    /// Where the object of that metadata is.
    #[must_use]
    pub fn of_metadata<K: Resource<DynamicType = ()>>(metadata: &ObjectMeta) -> Self {
        Self {
            resource: ApiResource::erase::<K>(&()),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        }
    }

    /// Where the object of that name is.
    #[must_use]
    pub fn named<K: Resource<DynamicType = ()>>(namespace: &str, name: &str) -> Self {
        let resource = ApiResource::erase::<K>(&());
        Self { resource, namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl fmt::Display for Place {
    /// `deployments shop/cart`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}/{}", self.resource.plural, self.namespace, self.name)
    }
}

/// An object to apply: only the fields that are ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Where it belongs.
    pub place: Place,
    /// The fields.
    pub object: Value,
}

impl Manifest {
    /// The fields that `object` has. What cannot be written as JSON, which no type of the API is, becomes empty.
    pub fn of<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Self {
        let place = Place::of(object);
        let mut fields = json!({"apiVersion": place.resource.api_version, "kind": place.resource.kind});
        if let (Value::Object(fields), Ok(Value::Object(more))) = (&mut fields, serde_json::to_value(object))
        {
            fields.extend(more);
            fields.remove("status");
        }
        Self { place, object: fields }
    }

    /// Only `fields`, for the object of that `uid` that is at `place`: another one of that name is left alone, for
    /// the API server answers a foreign uid with a conflict.
    #[must_use]
    pub fn part(place: Place, uid: &str, fields: Value) -> Self {
        let mut object = json!({
            "apiVersion": place.resource.api_version,
            "kind": place.resource.kind,
            "metadata": {"name": place.name, "namespace": place.namespace, "uid": uid},
        });
        if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
            object.extend(fields);
        }
        Self { place, object }
    }

    /// With the annotation that distinguishes it from the one applied before.
    #[must_use]
    pub fn stamped(self) -> Self {
        let hash = hash(&self.object.to_string(), HASH_LENGTH);
        self.with_stamp(&hash)
    }

    /// With that value of the annotation.
    #[must_use]
    pub fn with_stamp(mut self, stamp: &str) -> Self {
        if let Some(annotations) = annotations(&mut self.object) {
            annotations.insert(APPLIED_HASH.to_owned(), stamp.into());
        }
        self
    }

    /// The hash in that annotation.
    #[must_use]
    pub fn stamp(&self) -> Option<&str> {
        self.object.pointer("/metadata/annotations")?.get(APPLIED_HASH)?.as_str()
    }

    /// For the object of that `uid` alone.
    #[must_use]
    pub fn only_for(mut self, uid: &str) -> Self {
        if let Some(Value::Object(metadata)) = self.object.get_mut("metadata") {
            metadata.insert("uid".to_owned(), uid.into());
        }
        self
    }

    /// Only where there is no such object. One that is there has another resource version, which the API server answers
    /// with a conflict; what is not there it makes, whatever version is named (kubernetes
    /// `staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go`, `Update`).
    #[must_use]
    pub fn only_new(mut self) -> Self {
        if let Some(Value::Object(metadata)) = self.object.get_mut("metadata") {
            metadata.insert("resourceVersion".to_owned(), BEFORE_ALL.into());
        }
        self
    }

    /// Whether some of this is missing of `actual`.
    pub fn missing_from<K: Serialize>(&self, actual: &K) -> bool {
        let actual = serde_json::to_value(actual);
        actual.map_or(true, |actual| deviation::is_missing(&self.object, &actual))
    }

    /// How `actual` deviates from this, which `manager` applies.
    pub fn deviation<K: Serialize>(&self, actual: &K, manager: &str) -> Deviation {
        let actual = serde_json::to_value(actual);
        actual.map_or(Deviation::Missing, |actual| deviation::between(&self.object, &actual, manager))
    }

    /// Whether another client than `manager` owns some of this in `actual`.
    pub fn is_owned_by_another<K: Serialize>(&self, actual: &K, manager: &str) -> bool {
        let actual = serde_json::to_value(actual);
        actual.is_ok_and(|actual| deviation::has_other_owner(&self.object, &actual, manager))
    }

    /// Without the annotation that distinguishes it from the one applied before.
    #[must_use]
    pub fn unstamped(mut self) -> Self {
        if let Some(annotations) = annotations(&mut self.object) {
            annotations.remove(APPLIED_HASH);
        }
        self
    }

    /// What is merged into `actual`, as it was seen, to remove what other clients added and to write what is missing.
    #[must_use]
    pub fn repair<K>(&self, actual: &K, manager: &str) -> Self
    where
        K: Resource + Serialize,
    {
        let ObjectMeta { uid, resource_version, .. } = actual.meta();
        let fields = serde_json::to_value(actual);
        let fields = fields.map(|actual| deviation::repair(&self.object, &actual, manager));
        let mut object = json!({"metadata": {"uid": uid, "resourceVersion": resource_version}});
        if let Value::Object(object) = &mut object {
            object.extend(fields.unwrap_or_default());
        }
        Self { place: self.place.clone(), object }
    }
}

/// The first bytes of a hash of `text`, as hexadecimal digits.
#[must_use]
pub fn hash(text: &str, bytes: usize) -> String {
    let hash = digest(&SHA256, text.as_bytes());
    let hash = hash.as_ref();
    hexadecimal(hash.get(..bytes).unwrap_or(hash))
}

fn annotations(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    metadata.entry("annotations").or_insert_with(|| json!({})).as_object_mut()
}

/// Metadata of what is made for the `Owner` of that metadata: it is its controller, and its foreground deletion waits
/// for what is made.
#[must_use]
pub fn owned_by<Owner: Resource<DynamicType = ()>>(owner: &ObjectMeta) -> ObjectMeta {
    let reference = || {
        Some(OwnerReference {
            api_version: Owner::api_version(&()).into_owned(),
            kind: Owner::kind(&()).into_owned(),
            name: owner.name.clone()?,
            uid: owner.uid.clone()?,
            controller: Some(true),
            block_owner_deletion: Some(true),
        })
    };
    ObjectMeta {
        namespace: owner.namespace.clone(),
        owner_references: Some(Vec::from_iter(reference())),
        ..ObjectMeta::default()
    }
}

/// Labels or annotations from pairs.
#[must_use]
pub fn pairs<const COUNT: usize>(of: [(&str, &str); COUNT]) -> BTreeMap<String, String> {
    of.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn settled(wanted: &Value, actual: &Value) -> bool {
        !Manifest { place: Place::named::<ConfigMap>("a", "b"), object: wanted.clone() }.missing_from(actual)
    }

    #[test]
    fn what_the_api_server_adds_leaves_out_or_spells_otherwise_is_no_difference() {
        let wanted = json!({"spec": {
            "env": [{"name": "A", "value": ""}],
            "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}},
            "args": ["a", "b"],
        }});
        let actual = json!({"spec": {
            "env": [{"name": "INJECTED", "value": "1"}, {"name": "A"}],
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {}},
            "args": ["a", "b"],
            "dnsPolicy": "ClusterFirst",
        }});
        assert!(settled(&wanted, &actual));
    }

    #[test]
    fn a_field_that_another_changed_or_removed_is_missing() {
        let wanted = json!({"spec": {"image": "a:1.0", "args": ["a"], "env": [{"name": "A", "value": "1"}], "on": true}});
        assert!(settled(&wanted, &wanted));
        for (path, value) in [
            ("/spec/image", json!("a:1.00")),
            ("/spec/args", json!(["a", "b"])),
            ("/spec/env/0/value", json!("2")),
            ("/spec/env", json!([])),
            ("/spec/on", json!(null)),
        ] {
            let mut actual = wanted.clone();
            *actual.pointer_mut(path).unwrap() = value;
            assert!(!settled(&wanted, &actual), "{path}");
        }
        assert!(!settled(&wanted, &json!({"metadata": {}})));
    }

    #[test]
    fn a_field_that_is_no_longer_wanted_shows_in_the_hash() {
        let stamp = |object: Value| Manifest { place: Place::named::<ConfigMap>("a", "b"), object }.stamped();
        let before = stamp(json!({"metadata": {"name": "b"}, "data": {"x": "1", "y": "2"}}));
        let after = stamp(json!({"metadata": {"name": "b"}, "data": {"x": "1"}}));
        assert!(!before.missing_from(&before.object));
        assert!(after.missing_from(&before.object));
    }
}
