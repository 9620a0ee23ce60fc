//! The entry that the operator writes for the pod of a member: JSON under the pod's name in the cluster's ConfigMap.
//! Pure.

use serde::{Deserialize, Serialize};

/// The entry of a member's pod.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// How etcd is started.
    pub purpose: Purpose,
    /// Identity of the member in hexadecimal, as etcd prints it; none for a seed, whose identity is not known before
    /// it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Uid of the volume that the member's data lie on: of its claim, or of the pod where data lie in memory.
    pub volume: String,
    /// The template that the flags are made for, as the pod's annotation has it.
    pub template: String,
    /// Uid of the only pod that may begin on an empty volume, or make a cluster of the data; none: no pod may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Last committed entry of the log that a recovery found, by which the copy of the data is named that is made
    /// before etcd starts; only with [`Purpose::Force`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raft_index: Option<u64>,
    /// Whether the flags have etcd start without a comparison of its data with the other members'. Nothing in the pod
    /// reads it: the operator tells by it what it has written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skips_check: bool,
}

/// How etcd is started.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Purpose {
    /// As the first member of a new cluster, on an empty volume. Only while no cluster is recorded.
    Seed,
    /// As a member that joins, on an empty volume or its own.
    Join,
    /// As the member that it was: an empty volume is refused.
    Run,
    /// Once, as the only member of a cluster made of its own data, of which a copy is made first.
    Force,
    /// Not at all: its member was removed, its data can go.
    Retired,
    /// Not at all: a recovery took another member's data, its own are kept.
    SetAside,
}

impl Purpose {
    /// Whether the pod is kept from starting etcd.
    #[must_use]
    pub const fn is_stopped(self) -> bool {
        matches!(self, Self::Retired | Self::SetAside)
    }
}
