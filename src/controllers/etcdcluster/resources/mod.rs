//! What an EtcdCluster is made into. Pure: each builder takes the object and gives what is applied, and cannot fail.

pub mod backup;
pub mod budget;
pub mod certificates;
pub mod config;
pub mod etcd;
pub mod names;
pub mod pod;
pub mod record;
pub mod secrets;
pub mod services;
pub mod stateful_set;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource as _;

use crate::api::etcdcluster::v1::EtcdCluster;

/// Metadata of an object of that name that is made for `cluster`.
fn metadata(cluster: &EtcdCluster, name: String) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: cluster.metadata.namespace.clone(),
        labels: Some(names::labels(cluster)),
        owner_references: Some(Vec::from_iter(owner(cluster))),
        ..ObjectMeta::default()
    }
}

/// Says that `cluster` is the controller, and that its foreground deletion waits for what is made.
fn owner(cluster: &EtcdCluster) -> Option<OwnerReference> {
    cluster
        .controller_owner_ref(&())
        .map(|owner| OwnerReference { block_owner_deletion: Some(true), ..owner })
}

#[cfg(test)]
pub(super) mod tests;
