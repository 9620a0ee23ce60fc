//! What the members report about themselves.

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use serde::{Deserialize, Serialize};

pub use crate::kinds::etcdcluster::api::versions::Version;

use super::{Age, Fact, Ordinal};

/// Identity of an etcd cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClusterId(pub u64);

/// Identity of a member. A member that lost its data comes back with another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MemberId(pub u64);

/// A minor of etcd 3: 6 stands for 3.6.
pub type Minor = u64;

/// Etcd's list of its members.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Membership {
    /// The cluster that answered.
    pub cluster_id: ClusterId,
    /// Its members, by identity.
    pub members: Vec<Member>,
}

impl Membership {
    /// The fingerprint of this list, within one process.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// The member whose peer URL is that of an ordinal.
    #[must_use]
    pub fn at(&self, ordinal: Ordinal) -> Option<&Member> {
        self.members.iter().find(|member| member.ordinal == Some(ordinal))
    }

    /// The member of an identity.
    #[must_use]
    pub fn find(&self, id: MemberId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    /// Those that vote.
    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.is_learner)
    }

    /// Those that do not vote yet.
    pub fn learners(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.is_learner)
    }
}

/// A member as the list has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Member {
    /// Its identity.
    pub id: MemberId,
    /// The ordinal whose peer URL it has; none: a URL that is not of ours.
    pub ordinal: Option<Ordinal>,
    /// Whether it follows and does not vote yet.
    pub is_learner: bool,
    /// Whether it has ever started: it has a name.
    pub is_started: bool,
}

/// What a member answered to Status.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MemberStatus {
    /// The cluster that it belongs to.
    pub cluster_id: ClusterId,
    /// Its identity.
    pub member_id: MemberId,
    /// What it runs.
    pub version: Version,
    /// Whom it takes for the leader.
    pub leader: Option<MemberId>,
    /// Whether it does not vote yet.
    pub is_learner: bool,
    /// Whether it reports errors, alarms aside.
    pub has_errors: bool,
    /// Last entry of the log that it knows to be committed.
    pub raft_index: u64,
    /// Last entry of the log that it has applied.
    pub raft_applied_index: u64,
    /// Size of its database file in bytes.
    pub db_size: u64,
    /// Bytes of that file in use.
    pub db_size_in_use: u64,
    /// Largest size of the database: what the member says, and before 3.6 what it was started with.
    pub quota: u64,
    /// The minor of its storage schema; absent before 3.6.
    pub storage_version: Fact<Minor>,
    /// The minor that the cluster is being downgraded to; absent where it is not.
    pub downgrade_target: Fact<Minor>,
    /// Whether it has saved a snapshot on disk since the last member before 3.6 was seen: what such a member logs when it
    /// starts lies before that snapshot.
    pub has_saved_snapshot: Fact<bool>,
    /// Whether it was defragmented too recently for once more.
    pub defragmented: Age,
    /// Whether it lacks much of the log, as a learner, and no less than when it was looked at before, or this is the
    /// first look.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub falls_behind: bool,
    /// The members whose data differ from the others' by alarms that it has stored, which it says without a majority too; 0:
    /// it is unknown whose.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub corrupt: BTreeSet<MemberId>,
}

/// An alarm that is armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Alarm {
    /// The member that raised it; 0: it is unknown which.
    pub member: MemberId,
    /// What it is about.
    pub kind: AlarmKind,
}

/// What an alarm is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AlarmKind {
    /// The database has reached its quota.
    NoSpace,
    /// The member's data differ from the others'.
    Corrupt,
}

impl AlarmKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::NoSpace, Self::Corrupt];

    /// Etcd's word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSpace => "NOSPACE",
            Self::Corrupt => "CORRUPT",
        }
    }
}

/// Revisions of the key space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Keyspace {
    /// The newest.
    pub revision: u64,
    /// The one up to which older ones were dropped.
    pub compact_revision: u64,
}
