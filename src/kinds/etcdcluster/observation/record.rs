//! What the status keeps from one reconciliation to the next: facts that are stored nowhere else, and intents.

use serde::{Deserialize, Serialize};

use super::{ClusterId, Ordinal, Uid, Version};
use crate::api::words::words;
pub use crate::kinds::etcdcluster::api::status::Operation as OperationKind;

/// What the status remembers. It is written before what it announces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Record {
    /// The cluster. Once recorded it never changes, and no member is ever started as a seed again.
    pub cluster_id: Option<ClusterId>,
    /// The change that is under way.
    pub operation: Option<Operation>,
    /// The last recovery from a lost quorum.
    pub recovery: Option<Recovery>,
}

/// A change that takes more than one reconciliation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Operation {
    /// What is done.
    pub kind: OperationKind,
    /// To what end.
    pub target: Target,
    /// How far it has come.
    pub phase: Phase,
}

impl Operation {
    /// Whether a member is removed in the course of it that another one is to take the place of.
    #[must_use]
    pub const fn is_replacement(&self) -> bool {
        !matches!(self.kind, OperationKind::ScaleIn)
            && matches!(self.phase, Phase::Removing | Phase::RemovingLeader)
    }
}

/// What an operation leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Target {
    /// A member.
    Member(Ordinal),
    /// A version.
    Version(Version),
    /// A template of the version that runs.
    Template,
}

words! {
    /// How far an operation has come.
    #[derive(PartialOrd, Ord, Deserialize)]
    Phase:
    /// What the change needs is being made.
    Preparing,
    /// A member is being added.
    Adding,
    /// It starts and catches up.
    Joining,
    /// It is made a voter.
    Promoting,
    /// Leadership is handed to another member.
    MovingLeader,
    /// A member is being removed.
    Removing,
    /// The leader is being removed, since no other member took over.
    RemovingLeader,
    /// Pods are restarted, one at a time.
    Rolling,
    /// The leader's pod is restarted, after the others and whether or not another member took over.
    RollingLeader,
}

/// A recovery from a lost quorum.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Recovery {
    /// The request that asked for it.
    pub token: String,
    /// The member whose data are kept; none where the request was refused before one was chosen.
    pub survivor: Option<Ordinal>,
    /// Last committed entry that it had.
    pub raft_index: u64,
    /// How far it has come.
    pub phase: RecoveryPhase,
    /// The pod that has to be gone before the phase is over.
    pub pod: Option<Uid>,
}

words! {
    /// How far a recovery has come.
    #[derive(PartialOrd, Ord, Deserialize)]
    RecoveryPhase:
    /// All other members are stopped and their volumes kept.
    Fencing,
    /// The survivor's data are copied beside them, and it makes a cluster of its own. The point of no return.
    Forcing,
    /// It is started once more, as a member like any other.
    Clearing,
    /// It serves.
    Done,
    /// Before the point of no return the quorum came back, or the request was withdrawn.
    Cancelled,
    /// What a newer release has written: nothing is known of it.
    Unreadable,
}

impl RecoveryPhase {
    /// Whether something is left to do.
    #[must_use]
    pub const fn is_active(self) -> bool {
        !matches!(self, Self::Done | Self::Cancelled)
    }
}
