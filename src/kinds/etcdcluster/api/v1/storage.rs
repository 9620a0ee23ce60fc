//! Where members keep their data.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::quantity::Quantity;
use crate::kinds::etcdcluster::api::rules;

/// Where members keep their data.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// Size of each member's volume in bytes, as a quantity such as 10Gi. It can grow and never shrink. Defaults to
    /// 10Gi at creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = Rule::new(rules::BYTES.0).message(rules::BYTES.1),
        validation = Rule::new(rules::GROWS.0).message(rules::GROWS.1)
    )]
    pub size: Option<Quantity>,

    /// StorageClass of the volumes; immutable. Defaults to the default class of the Kubernetes cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub storage_class_name: Option<String>,

    /// Where data lie.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub medium: Option<Medium>,

    /// What happens to the volumes when the cluster is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclaim_policy: Option<ReclaimPolicy>,
}

/// Where data lie: PersistentVolume outlives pods; Memory (a tmpfs) is lost with its pod. Immutable. Defaults to
/// PersistentVolume.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A PersistentVolumeClaim a member.
    PersistentVolume,
    /// A tmpfs: a member that restarts comes back empty, as a new member.
    Memory,
}

/// What happens to the volumes when the cluster is deleted: Retain keeps them, Delete removes them with it. Defaults
/// to Retain.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimPolicy {
    /// The claims stay.
    Retain,
    /// The claims go with the cluster.
    Delete,
}
