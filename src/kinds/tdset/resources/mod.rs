//! The objects of a TDSet. Pure: each builder takes the spec, returns the object, and cannot fail.

pub mod autoscaler;
pub mod deployment;
pub mod scale;
pub mod service;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::names;
use super::spec::Spec;
use crate::controllers::manifest::owned_by;
use crate::kinds::tdset::api::v1::TDSet;

/// Metadata of everything that is made for a TDSet.
fn metadata(spec: &Spec) -> ObjectMeta {
    ObjectMeta {
        name: spec.metadata.name.clone(),
        labels: Some(names::labels(spec.name())),
        ..owned_by::<TDSet>(&spec.metadata)
    }
}
