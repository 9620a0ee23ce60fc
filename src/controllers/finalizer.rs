//! Finalizers: a deletion waits until the last of them is removed.
//!
//! Guarantees: the list is written as a whole and only into the object as it was read, since others have theirs in it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde_json::json;

use super::api_write::{ApiWrite, Merge};
use super::manifest::{Manifest, Place};

/// Whether that finalizer is on the object.
#[must_use]
pub fn is_on(metadata: &ObjectMeta, finalizer: &str) -> bool {
    metadata.finalizers.iter().flatten().any(|name| name == finalizer)
}

/// Puts that finalizer on the `Object`, or takes it away.
#[must_use]
pub fn write<Object: Resource<DynamicType = ()>>(
    metadata: &ObjectMeta,
    finalizer: &str,
    on: bool,
    manager: &'static str,
) -> ApiWrite {
    let others = metadata.finalizers.iter().flatten().filter(|name| *name != finalizer);
    let all: Vec<_> = others.map(String::as_str).chain(on.then_some(finalizer)).collect();
    let object = json!({
        "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version, "finalizers": all},
    });
    let place = Place::of_metadata::<Object>(metadata);
    let seen = metadata.resource_version.clone();
    ApiWrite::Merge(Merge { manifest: Manifest { place, object }, manager, scale: false, seen })
}
