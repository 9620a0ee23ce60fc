//! The objects of a cluster, as the API server has them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Age, Fact, MemberId, Ordinal, Version};
pub use crate::kinds::etcdcluster::agent::entry::Purpose;

/// Identity of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Uid(pub String);

/// Version of an object, compared for equality alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ResourceVersion(pub String);

/// An object as it was seen: what a write to it is conditional on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Handle {
    /// Which object.
    pub uid: Uid,
    /// In which state.
    pub resource_version: ResourceVersion,
}

/// Whose an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Owner {
    /// Made for this EtcdCluster, of this uid.
    Ours,
    /// Another owner's, or of a cluster of this name that was there before.
    Foreign,
}

/// How objects that depend on no member were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Found {
    /// As they should be.
    Current,
    /// One is missing or differs.
    Outdated,
    /// One of our names belongs to another owner.
    Foreign,
}

/// What a pod is made from: etcd's version, and everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Template {
    /// Version of etcd.
    pub version: Version,
    /// Digest of the rest: options, resources, certificate authorities, the overlay.
    pub revision: u64,
}

/// The StatefulSet.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StatefulSet {
    /// As it was seen.
    pub handle: Handle,
    /// Whose it is.
    pub owner: Owner,
    /// Pods that it keeps.
    pub replicas: u32,
    /// What it makes them from.
    pub template: Template,
    /// Whether it makes them with the guard of this release.
    pub has_our_guard: bool,
    /// Whether it makes them with the label of a voter, so that Service and PodDisruptionBudget find pods that come back
    /// while gatehouse does not run.
    pub labels_voters: bool,
    /// Whether another client has changed something else of it.
    #[serde(default)]
    pub is_altered: bool,
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pod {
    /// As it was seen.
    pub handle: Handle,
    /// Whose it is.
    pub owner: Owner,
    /// What it was made from.
    pub template: Template,
    /// How far it has come.
    pub phase: PodPhase,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether it has not served for longer than a start takes.
    pub startup_age: Age,
    /// The role in its label, by which Service and PodDisruptionBudget select.
    pub role: Option<Role>,
    /// The hash of its data that etcd gave when it ended in this pod because they differ from another member's. None once
    /// it has come up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_print: Option<OwnPrint>,
}

/// The hash that a member has made of its own data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OwnPrint {
    /// Whose data they are.
    pub member: MemberId,
    /// The revision up to which they were hashed.
    pub revision: u64,
    /// The revision up to which older ones were dropped; -1: none was.
    pub compact_revision: i64,
    /// Their hash.
    pub hash: u32,
}

/// How far a pod has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PodPhase {
    /// It does not run yet: no node, no volume, no image.
    Pending(Option<Cause>),
    /// Its guard waits for an entry that is made for it.
    Waiting,
    /// The guard let etcd start.
    Starting,
    /// Etcd runs.
    Up,
    /// It fails again and again.
    Failing(Cause),
    /// It has ended and will not come back: phase Failed or Succeeded.
    Terminal(Cause),
}

/// Why a pod does not come up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Cause {
    /// No node takes it.
    Unschedulable,
    /// The image cannot be pulled.
    Image,
    /// It was killed from outside: eviction, node shutdown, memory.
    Killed,
    /// Etcd refuses its flags.
    Flags,
    /// The guard found an empty volume under a member that has had data.
    DataLost,
    /// The guard found data of another member or cluster.
    DataForeign,
    /// The volume has no room for the copy that a recovery makes of the data first.
    NoRoom,
    /// Etcd cannot read its log or database.
    DataCorrupt,
    /// Etcd does not start because its data differ from another member's. Whose are wrong it cannot tell.
    Inconsistent,
    /// Etcd says that its member has been removed.
    Removed,
    /// Anything else.
    Other,
}

impl Cause {
    /// Whether the data of the member are beyond use. Nothing else justifies to wipe a volume.
    #[must_use]
    pub const fn is_data(self) -> bool {
        match self {
            Self::DataLost | Self::DataForeign | Self::DataCorrupt | Self::Removed => true,
            Self::Unschedulable
            | Self::Image
            | Self::Killed
            | Self::Flags
            | Self::NoRoom
            | Self::Inconsistent
            | Self::Other => false,
        }
    }
}

/// What a member is to clients and disruptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    /// It votes and serves clients.
    Voter,
    /// It follows.
    Learner,
}

/// The volume of a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Volume {
    /// As it was seen.
    pub handle: Handle,
    /// Whose it is.
    pub owner: Owner,
    /// Bytes asked for.
    pub size: u64,
    /// Bytes that it has; none: not reported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// What keeps it from having what is asked for, as its claim says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hindrance: Option<GrowthHindrance>,
    /// Whether its class lets it grow.
    pub is_expandable: Fact<bool>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether its data outlive its claim: the PersistentVolume is labelled and retained. Absent where there is none.
    /// Looked for only where a recovery set the member aside.
    pub is_retained: Fact<bool>,
    /// Whether its claim says that a recovery set the member aside whose data are on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_set_aside: bool,
}

impl Volume {
    /// Whether it has less than its claim asks for, as far as known.
    #[must_use]
    pub fn is_growing(&self) -> bool {
        self.capacity.is_some_and(|capacity| capacity < self.size)
    }
}

/// What keeps a volume from growing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum GrowthHindrance {
    /// The file system is still to grow, on the node, which some drivers do only before a pod starts.
    FileSystem,
    /// What drives the volume reports an error.
    Error,
}

/// The ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Config {
    /// As it was seen.
    pub handle: Handle,
    /// Whose it is.
    pub owner: Owner,
    /// The entries of the pods.
    pub entries: BTreeMap<Ordinal, ConfigEntry>,
    /// Whether another client has changed the options beside an entry.
    #[serde(default)]
    pub is_altered: bool,
}

/// The entry of the pod at an ordinal. Its guard starts etcd only where the entry is made for the pod's template and
/// the volume is as the purpose says; the copy that it takes stays the same for the life of the pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ConfigEntry {
    /// How etcd is started.
    pub purpose: Purpose,
    /// The member; none for a seed, whose identity is not known before it runs.
    pub member: Option<MemberId>,
    /// The volume that the member's data lie on.
    pub volume: Uid,
    /// The template that the flags are made for.
    pub template: Template,
    /// The only pod that may begin on an empty volume, or make a cluster of the data; none: no pod may. A pod that
    /// comes after it may have another volume under the same name, and may read late that a recovery is over. With
    /// [`Purpose::SetAside`] the pod that was there then.
    pub pod: Option<Uid>,
    /// Last committed entry of the log that a recovery found, by which the copy of the data is named that is made
    /// first; only with [`Purpose::Force`].
    pub raft_index: Option<u64>,
    /// Whether etcd starts without a comparison of its data with the other members', which there are too many of.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skips_check: bool,
}

impl ConfigEntry {
    /// The same for another purpose, by which no pod begins on an empty volume and nothing is forced.
    #[must_use]
    pub fn turned(&self, purpose: Purpose) -> Self {
        Self { purpose, pod: None, raft_index: None, ..self.clone() }
    }

    /// The same for a member that a recovery stops. The existing pod may have read its entry before.
    #[must_use]
    pub fn set_aside(&self, pod: Option<&Pod>) -> Self {
        Self { pod: pod.map(|pod| pod.handle.uid.clone()), ..self.turned(Purpose::SetAside) }
    }

    /// The same as the only member of a cluster made of its data, of which those up to an entry of the log are kept.
    #[must_use]
    pub fn forced(&self, raft_index: u64) -> Self {
        Self { raft_index: Some(raft_index), ..self.turned(Purpose::Force) }
    }
}

/// The PodDisruptionBudget.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Budget {
    /// As it was seen.
    pub handle: Handle,
    /// Whose it is.
    pub owner: Owner,
    /// Voters that evictions leave.
    pub min_available: u32,
    /// Whether the rest of it is as it should be.
    #[serde(default = "yes")]
    pub is_current: bool,
}

/// Where it is not given.
const fn yes() -> bool {
    true
}
