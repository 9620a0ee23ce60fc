//! The marker that a guard writes on a volume: the volume's owner, and how far etcd has come on it. Pure.

use serde::{Deserialize, Serialize};

/// Whose a volume is.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Marker {
    /// Uid of the volume, as the entry had it by which it was begun.
    pub volume: String,
    /// Uid of the EtcdCluster.
    pub cluster: String,
    /// Identity of the member in hexadecimal, as far as the guard knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Uid of the pod that began it.
    pub pod: String,
    /// How far etcd has come.
    pub stage: Stage,
    /// Uid of the last pod in which etcd was let make a cluster of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<String>,
}

/// How far etcd has come on a volume.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Etcd has not been started.
    Begun,
    /// It has been started, in a folder that was made for it before. So a folder that is missing was taken away, while
    /// an etcd that refused its flags or reached no other member has left it empty.
    Started,
    /// Its log has been seen.
    Written,
}
