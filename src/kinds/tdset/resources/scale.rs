//! The count of a workload that another client made.
//!
//! Merged and not applied: others apply the whole workload, and what is applied by two is a conflict for one of them.

use serde_json::json;

use crate::controllers::api_write::{ApiWrite, Merge};
use crate::controllers::manifest::Manifest;
use crate::kinds::tdset::names::COUNT_MANAGER;
use crate::kinds::tdset::observation::Scaled;

/// Writes the count through the scale subresource.
#[must_use]
pub fn count(of: &Scaled, replicas: i32) -> ApiWrite {
    let metadata = &of.scale.metadata;
    let object = json!({
        "metadata": {"uid": metadata.uid},
        "spec": {"replicas": replicas},
    });
    ApiWrite::Merge(Merge {
        manifest: Manifest { place: of.place.clone(), object },
        manager: COUNT_MANAGER,
        scale: true,
        seen: metadata.resource_version.clone(),
    })
}
