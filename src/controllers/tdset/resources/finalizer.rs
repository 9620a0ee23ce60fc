//! The finalizer of a TDSet that leaves a stated count behind. No other TDSet has one.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use super::names::MANAGER;
use crate::api::tdset::v1::TDSet;
use crate::controllers::manifest::{Manifest, Place};
use crate::controllers::step::{Merge, Step};
use crate::controllers::tdset::spec::Spec;

/// Its name.
pub const NAME: &str = "gatehouse.dev/replicas-on-deletion";

/// Whether it is there.
#[must_use]
pub fn is_on(metadata: &ObjectMeta) -> bool {
    metadata.finalizers.iter().flatten().any(|name| name == NAME)
}

/// Puts it there, or takes it away, as the spec has it.
#[must_use]
pub fn settled(spec: &Spec) -> Option<Step> {
    let wanted = spec.replicas_on_deletion().is_some();
    (wanted != is_on(&spec.metadata)).then(|| set(&spec.metadata, wanted))
}

/// Takes it away, if it is there.
#[must_use]
pub fn taken(metadata: &ObjectMeta) -> Option<Step> {
    is_on(metadata).then(|| set(metadata, false))
}

/// With the resource version: the list is written as a whole, and others have theirs in it.
#[must_use]
pub fn set(metadata: &ObjectMeta, on: bool) -> Step {
    let others = metadata.finalizers.iter().flatten().filter(|name| *name != NAME);
    let all: Vec<_> = others.map(String::as_str).chain(on.then_some(NAME)).collect();
    let object = json!({
        "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version, "finalizers": all},
    });
    let place = Place::of_metadata::<TDSet>(metadata);
    let seen = metadata.resource_version.clone();
    Step::Merge(Merge { manifest: Manifest { place, object }, manager: MANAGER, scale: false, seen })
}
