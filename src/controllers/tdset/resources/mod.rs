//! What a TDSet is made into. Pure: each builder takes the object and gives what is applied, and cannot fail.

pub mod autoscaler;
pub mod deployment;
pub mod finalizer;
pub mod names;
pub mod scale;
pub mod service;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource as _;

use crate::api::tdset::v1::TDSet;

/// Metadata of everything that is made for `tdset`.
fn metadata(tdset: &TDSet) -> ObjectMeta {
    ObjectMeta {
        name: tdset.metadata.name.clone(),
        namespace: tdset.metadata.namespace.clone(),
        labels: Some(names::labels(tdset)),
        owner_references: Some(Vec::from_iter(owner(tdset))),
        ..ObjectMeta::default()
    }
}

/// Says that `tdset` is the controller, and that its foreground deletion waits for what is made.
fn owner(tdset: &TDSet) -> Option<OwnerReference> {
    tdset.controller_owner_ref(&()).map(|owner| OwnerReference { block_owner_deletion: Some(true), ..owner })
}
