//! A learner: made a voter when it has caught up, removed when it cannot or is no longer wanted. Pure.
//!
//! Guarantees: a learner is promoted only where the voters and it are a majority of what there will be, and only by an
//! entry that demands its data; to remove one is always safe, for it never voted.

use super::cluster_state::{ClusterState, quorum};
use super::decision::Decision;
use super::{housekeeping, scale};
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::observation::{Member, OperationKind, Ordinal, Phase, Purpose, Target};

/// Promotes or removes a learner; nothing while it catches up.
pub fn settle(cluster: &ClusterState) -> Option<Decision> {
    let (ordinal, member) = cluster.learners().into_iter().next()?;
    if is_surplus(cluster, ordinal) {
        return remove(cluster, OperationKind::ScaleIn, ordinal, member);
    }
    let is_lost = cluster.has_lost_data(ordinal) || cluster.says_different(ordinal, member);
    if is_lost || cluster.holds_claim(ordinal) {
        let kind = scale::growth_kind(cluster, ordinal);
        return cluster.may_replace(ordinal).then(|| remove(cluster, kind, ordinal, member)).flatten();
    }
    if is_in_sync(cluster, ordinal, member) { promote(cluster, ordinal, member) } else { None }
}

/// Whether there are members enough without it, or its place is not wanted.
fn is_surplus(cluster: &ClusterState, ordinal: Ordinal) -> bool {
    let desired = usize::try_from(cluster.desired.replicas).unwrap_or(usize::MAX);
    ordinal.0 >= cluster.desired.replicas && cluster.voter_count() >= desired
        || cluster.own_member_count() > desired.saturating_add(1)
}

fn remove(
    cluster: &ClusterState,
    kind: OperationKind,
    ordinal: Ordinal,
    member: &Member,
) -> Option<Decision> {
    let remove = Action::MemberRemove { membership: cluster.guard()?, member: member.id, ordinal };
    Some(Decision::operate(cluster, (kind, Target::Member(ordinal), Phase::Removing), [remove]))
}

/// Whether it has all but the last of the leader's log, and what it lacks of that gets less: one that is slower than the
/// writers would slow them down once its vote counts. Etcd asks for nine tenths of the log, which of a long one leaves more
/// than a follower catches up with at once.
fn is_in_sync(cluster: &ClusterState, ordinal: Ordinal, member: &Member) -> bool {
    let leader = cluster.leader().and_then(|leader| cluster.status(leader));
    let (Some(status), Some(leader)) = (cluster.status(ordinal), leader) else { return false };
    let is_told = cluster
        .seen
        .entry(ordinal)
        .is_known_and(|entry| entry.purpose == Purpose::Run && entry.member == Some(member.id));
    let has_log = u128::from(status.raft_applied_index) * 10 >= u128::from(leader.raft_applied_index) * 9
        && !cluster.lags(ordinal);
    is_told && has_log && !status.falls_behind && status.is_learner && cluster.is_healthy(ordinal)
}

fn promote(cluster: &ClusterState, ordinal: Ordinal, member: &Member) -> Option<Decision> {
    let after = cluster.voter_count() + 1;
    if cluster.healthy_voters_but(None) + 1 < quorum(after) {
        return None;
    }
    let kind = scale::growth_kind(cluster, ordinal);
    let operation = (kind, Target::Member(ordinal), Phase::Promoting);
    if let Some(raise) = housekeeping::raise_budget(cluster, after) {
        return Some(Decision::operate(cluster, operation, [raise]));
    }
    let promote = Action::MemberPromote { membership: cluster.guard()?, member: member.id, ordinal };
    Some(Decision::operate(cluster, operation, [promote]))
}
