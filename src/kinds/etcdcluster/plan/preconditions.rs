//! The preconditions of every change that is not a repair: the cluster is healthy, and has been for a while. Pure.

use serde::Serialize;

use super::cleanup;
use super::cluster_state::ClusterState;
use crate::kinds::etcdcluster::observation::{AlarmKind, Audit, Fact, Ordinal, Purpose};

/// What keeps a change from beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum BlockedReason {
    /// The member list could not be read.
    MembersUnknown,
    /// A member has a peer URL that is not of ours.
    ForeignMember,
    /// A member does not vote yet.
    Learner(Ordinal),
    /// A member is counted and has not started yet.
    Unstarted(Ordinal),
    /// A member does not serve.
    Down(Ordinal),
    /// A member does not start because its data differ from another member's: they are compared before anything else.
    Inconsistent(Ordinal),
    /// A member serves, and lacks much of the log.
    CatchingUp(Ordinal),
    /// All serve, not yet for long enough.
    Settling,
    /// Which alarms are armed could not be found out.
    AlarmsUnknown,
    /// A member's data differ from the others'.
    Corrupt,
    /// The entries of the pods could not be read.
    ConfigUnknown,
    /// What pods are made from could not be found out.
    StatefulSetUnknown,
    /// How strict the PodDisruptionBudget is could not be found out.
    BudgetUnknown,
    /// What a removed member left is still there.
    Leftovers(Ordinal),
    /// So is what a recovery set aside, and it does not outlive its claim yet.
    Unkept(Ordinal),
    /// The claim of a member is being deleted, and its pod is all that holds it: that pod stays.
    ClaimTerminating(Ordinal),
    /// All else is well, and the members' data were found to differ.
    Different,
    /// All is well, and the members' data are compared before pods are restarted.
    Uncompared,
    /// All is well, and the volume of a member is smaller than the quota that it would be restarted with.
    SmallerThanQuota(Ordinal),
}

/// Whether a change may begin. An alarm about space does not close the gate: a larger quota is such a change.
pub fn check(cluster: &ClusterState) -> Result<(), BlockedReason> {
    let membership = cluster.membership().ok_or(BlockedReason::MembersUnknown)?;
    for member in &membership.members {
        let ordinal = member.ordinal.ok_or(BlockedReason::ForeignMember)?;
        if !member.is_started {
            return Err(BlockedReason::Unstarted(ordinal));
        }
        if member.is_learner {
            return Err(BlockedReason::Learner(ordinal));
        }
        if cluster.says_different(ordinal, member) {
            return Err(BlockedReason::Inconsistent(ordinal));
        }
        if !cluster.is_healthy(ordinal) {
            return Err(BlockedReason::Down(ordinal));
        }
        if cluster.lags(ordinal) {
            return Err(BlockedReason::CatchingUp(ordinal));
        }
    }
    if cluster.seen.config.is_unknown() {
        return Err(BlockedReason::ConfigUnknown);
    }
    if cluster.seen.stateful_set.is_unknown() {
        return Err(BlockedReason::StatefulSetUnknown);
    }
    if let Some((ordinal, entry)) = cluster.seen.entries().find(|(_, entry)| entry.purpose.is_stopped()) {
        let is_kept = entry.purpose != Purpose::SetAside
            || cluster.seen.volume(ordinal).found().is_none_or(cleanup::is_safe)
            || cluster.desired.is_in_memory;
        return Err(if is_kept { BlockedReason::Leftovers(ordinal) } else { BlockedReason::Unkept(ordinal) });
    }
    let Fact::Known(alarms) = &cluster.seen.alarms else { return Err(BlockedReason::AlarmsUnknown) };
    if alarms.iter().any(|alarm| alarm.kind == AlarmKind::Corrupt) {
        return Err(BlockedReason::Corrupt);
    }
    if cluster.seen.budget.is_unknown() {
        return Err(BlockedReason::BudgetUnknown);
    }
    if !cluster.seen.health_age.is_past() {
        return Err(BlockedReason::Settling);
    }
    match cluster.seen.audit.known() {
        Some(Audit::Different { .. }) => Err(BlockedReason::Different),
        Some(Audit::Equal) | None => Ok(()),
    }
}

/// Whether no change begins until a person has done something, although nothing else says so.
pub fn needs_a_person(cluster: &ClusterState) -> bool {
    matches!(check(cluster), Err(BlockedReason::ForeignMember | BlockedReason::Unkept(_)))
}

/// Whether a change may begin.
pub fn hold(cluster: &ClusterState) -> bool {
    check(cluster).is_ok()
}

/// What keeps a change from beginning, or a change that has begun from its end.
pub fn blocked(cluster: &ClusterState) -> Option<BlockedReason> {
    let held = || cluster.held_claims().next().map(BlockedReason::ClaimTerminating);
    check(cluster).err().or_else(held)
}
