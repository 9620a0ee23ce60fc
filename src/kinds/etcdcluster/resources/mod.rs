//! What an EtcdCluster is made into. Pure: each builder takes what is asked for and gives what is applied, and cannot
//! fail.

pub mod backup;
pub mod budget;
pub mod certificates;
pub mod config;
pub mod etcd;
pub mod pod;
pub mod record;
pub mod secrets;
pub mod services;
pub mod stateful_set;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::names;
use super::spec::Spec;
use crate::controllers::manifest::owned_by;
use crate::kinds::etcdcluster::api::v1::EtcdCluster;

/// Metadata of an object of that name that is made for a cluster.
fn metadata(spec: &Spec, name: String) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        labels: Some(names::labels(spec.name())),
        ..owned_by::<EtcdCluster>(&spec.metadata)
    }
}

#[cfg(test)]
pub(super) mod tests;
