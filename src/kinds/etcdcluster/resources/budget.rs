//! The PodDisruptionBudget: how many voters evictions leave.

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::metadata;
use crate::controllers::manifest::Manifest;
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::spec::Spec;

/// The budget that leaves `min_available` voters.
#[must_use]
pub fn manifest(spec: &Spec, min_available: u32) -> Manifest {
    let least = i32::try_from(min_available).unwrap_or(i32::MAX);
    let budget = PodDisruptionBudget {
        metadata: metadata(spec, spec.name().to_owned()),
        spec: Some(PodDisruptionBudgetSpec {
            min_available: Some(IntOrString::Int(least)),
            // One that is not ready would hold up a drain for as long as it is not. Data in memory would end with it.
            unhealthy_pod_eviction_policy: (!spec.storage.is_in_memory).then(|| "AlwaysAllow".to_owned()),
            selector: Some(LabelSelector {
                match_labels: Some(names::voters(spec.name())),
                match_expressions: None,
            }),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    };
    Manifest::of(&budget).stamped()
}
