//! A learner: made a voter when it has caught up, removed when it cannot or is no longer wanted. Pure.
//!
//! Guarantees: a learner is promoted only where the voters and it are a majority of what there will be, and only by an
//! entry that demands its data; to remove one is always safe, for it never voted.

use super::decision::Decision;
use super::view::{View, quorum};
use super::{housekeeping, scale};
use crate::kinds::etcdcluster::effect::Effect;
use crate::kinds::etcdcluster::observation::{Member, OperationKind, Ordinal, Phase, Purpose, Target};

/// Promotes or removes a learner; nothing while it catches up.
pub fn settle(view: &View) -> Option<Decision> {
    let (ordinal, member) = view.learners().into_iter().next()?;
    if is_surplus(view, ordinal) {
        return remove(view, OperationKind::ScaleIn, ordinal, member);
    }
    if view.has_lost_data(ordinal) {
        let kind = scale::growth_kind(view, ordinal);
        return if view.seen.replacement_age.is_past() { remove(view, kind, ordinal, member) } else { None };
    }
    if is_in_sync(view, ordinal, member) { promote(view, ordinal, member) } else { None }
}

/// Whether there are members enough without it, or its place is not wanted.
fn is_surplus(view: &View, ordinal: Ordinal) -> bool {
    let desired = usize::try_from(view.desired.replicas).unwrap_or(usize::MAX);
    ordinal.0 >= view.desired.replicas && view.voter_count() >= desired
        || view.member_count() > desired.saturating_add(1)
}

fn remove(view: &View, kind: OperationKind, ordinal: Ordinal, member: &Member) -> Option<Decision> {
    let remove = Effect::MemberRemove { membership: view.guard()?, member: member.id, ordinal };
    Some(Decision::operate(view, (kind, Target::Member(ordinal), Phase::Removing), [remove]))
}

/// Whether it has all but the last of the leader's log. Etcd asks the same again.
fn is_in_sync(view: &View, ordinal: Ordinal, member: &Member) -> bool {
    let leader = view.leader().and_then(|leader| view.status(leader));
    let (Some(status), Some(leader)) = (view.status(ordinal), leader) else { return false };
    let is_told = view
        .seen
        .entry(ordinal)
        .is_known_and(|entry| entry.purpose == Purpose::Run && entry.member == Some(member.id));
    let has_log = u128::from(status.raft_applied_index) * 10 >= u128::from(leader.raft_applied_index) * 9;
    is_told && has_log && status.is_learner && view.is_healthy(ordinal)
}

fn promote(view: &View, ordinal: Ordinal, member: &Member) -> Option<Decision> {
    let after = view.voter_count() + 1;
    if view.healthy_voters_but(None) + 1 < quorum(after) {
        return None;
    }
    let kind = scale::growth_kind(view, ordinal);
    let operation = (kind, Target::Member(ordinal), Phase::Promoting);
    if let Some(raise) = housekeeping::raise_budget(view, after) {
        return Some(Decision::operate(view, operation, [raise]));
    }
    let promote = Effect::MemberPromote { membership: view.guard()?, member: member.id, ordinal };
    Some(Decision::operate(view, operation, [promote]))
}
