//! A voter whose data are beyond use, or will be once its pod ends: it is removed, while the others can spare it;
//! another one grows in its place. Pure.
//!
//! Guarantees: remove comes before add, since etcd refuses to add while a voter is not connected; a voter that is
//! merely down is never removed; the cause is the data or nothing. A voter that says itself that its data differ is
//! removed only once a comparison has found a majority that agrees without it, at the revision that the voter names. A
//! voter that serves, and whose claim is being deleted, is removed only while all is well and two others stay.

use super::cluster_state::ClusterState;
use super::decision::Decision;
use super::{housekeeping, preconditions};
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::observation::{Member, OperationKind, Ordinal, Phase, Target};

/// Removes a voter whose data are beyond use.
pub fn failed_voter(cluster: &ClusterState) -> Option<Decision> {
    let mut voters = cluster.voters();
    let can_be_moved = voters.len() > 2 && preconditions::hold(cluster);
    voters.retain(|(ordinal, _)| cluster.may_replace(*ordinal));
    let failed = voters.iter().rfind(|(ordinal, _)| cluster.has_lost_data(*ordinal));
    let different = || voters.iter().rfind(|(ordinal, member)| cluster.is_found_different(*ordinal, member));
    let held = || voters.iter().rfind(|(ordinal, _)| can_be_moved && cluster.holds_claim(*ordinal));
    let (ordinal, member) = *failed.or_else(different).or_else(held)?;
    cluster.can_spare(member).then(|| remove(cluster, OperationKind::Replace, ordinal, member)).flatten()
}

/// Removes a member, after the leadership is with another one. That a hand-over fails holds nothing up for long: etcd
/// hands over by itself when it stops.
pub fn remove(
    cluster: &ClusterState,
    kind: OperationKind,
    ordinal: Ordinal,
    member: &Member,
) -> Option<Decision> {
    let target = Target::Member(ordinal);
    let after = cluster.voter_count().saturating_sub(usize::from(!member.is_learner));
    if let Some(raise) = housekeeping::raise_budget(cluster, after) {
        return Some(Decision::operate(cluster, (kind, target, Phase::Preparing), [raise]));
    }
    if let Some(hand_over) = hand_over(cluster, kind, target, ordinal) {
        return Some(hand_over);
    }
    let remove = Action::MemberRemove { membership: cluster.guard()?, member: member.id, ordinal };
    let phase = if cluster.leader() == Some(ordinal) { Phase::RemovingLeader } else { Phase::Removing };
    Some(Decision::operate(cluster, (kind, target, phase), [remove]))
}

/// Hands leadership from `ordinal` to another member, where it is there and that has not been tried for too long.
pub fn hand_over(
    cluster: &ClusterState,
    kind: OperationKind,
    target: Target,
    ordinal: Ordinal,
) -> Option<Decision> {
    let recorded = cluster.seen.record.operation;
    let begun = recorded.filter(|operation| (operation.kind, operation.target) == (kind, target));
    let given_up = match begun.map(|operation| operation.phase) {
        Some(Phase::MovingLeader) => cluster.seen.operation_age.is_past(),
        Some(phase) => matches!(phase, Phase::RemovingLeader | Phase::RollingLeader),
        None => false,
    };
    if given_up {
        return None;
    }
    let action = cluster.move_leader_from(ordinal)?;
    Some(Decision::operate(cluster, (kind, target, Phase::MovingLeader), [action]))
}
