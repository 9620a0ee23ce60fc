//! Where members keep their data.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::quantity::Quantity;

/// Where members keep their data.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// Size of each member's volume in bytes, as a quantity such as 10Gi. It can grow and never shrink. Absent at
    /// creation: 10Gi.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = Rule::new("isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0')) && quantity(string(self)).isInteger()")
            .message("must be a whole number of bytes above zero, such as 10Gi, 500M or 1073741824"),
        validation = Rule::new("!isQuantity(string(self)) || !isQuantity(string(oldSelf)) || quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0")
            .message("a volume can grow and never shrink")
    )]
    pub size: Option<Quantity>,

    /// StorageClass of the volumes; immutable. Absent: the default class of the Kubernetes cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub class_name: Option<String>,

    /// Where data lie; immutable. Absent: PersistentVolume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub medium: Option<Medium>,

    /// What happens to the volumes when the cluster is deleted. Absent: Retain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclaim_policy: Option<ReclaimPolicy>,
}

/// Where data lie: PersistentVolume outlives pods; Memory (a tmpfs) is lost with its pod.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A PersistentVolumeClaim a member.
    PersistentVolume,
    /// A tmpfs: a member that restarts comes back empty, as a new member.
    Memory,
}

/// What happens to volumes when the cluster is deleted: Retain keeps them, Delete removes them with it.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimPolicy {
    /// The claims stay.
    Retain,
    /// The claims go with the cluster.
    Delete,
}
