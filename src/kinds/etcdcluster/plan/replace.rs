//! A voter whose data are beyond use: it is removed, while the others can spare it; another one grows in its place.
//! Pure.
//!
//! Guarantees: remove comes before add, since etcd refuses to add while a voter is not connected; a voter that is
//! merely down is never removed; the cause is the data or nothing.

use super::decision::Decision;
use super::housekeeping;
use super::view::View;
use crate::kinds::etcdcluster::effect::Effect;
use crate::kinds::etcdcluster::observation::{Member, OperationKind, Ordinal, Phase, Target};

/// Removes a voter whose data are beyond use.
pub fn failed_voter(view: &View) -> Option<Decision> {
    if !view.seen.replacement_age.is_past() {
        return None;
    }
    let voters = view.voters();
    let mut failed = voters.into_iter().filter(|(ordinal, _)| view.has_lost_data(*ordinal));
    let (ordinal, member) = failed.next_back()?;
    view.can_spare(member).then(|| remove(view, OperationKind::Replace, ordinal, member)).flatten()
}

/// Removes a member, after the leadership is with another one. That a hand-over fails holds nothing up for long: etcd
/// hands over by itself when it stops.
pub fn remove(view: &View, kind: OperationKind, ordinal: Ordinal, member: &Member) -> Option<Decision> {
    let target = Target::Member(ordinal);
    let after = view.voter_count().saturating_sub(usize::from(!member.is_learner));
    if let Some(raise) = housekeeping::raise_budget(view, after) {
        return Some(Decision::operate(view, (kind, target, Phase::Preparing), [raise]));
    }
    if let Some(hand_over) = hand_over(view, kind, target, ordinal) {
        return Some(hand_over);
    }
    let remove = Effect::MemberRemove { membership: view.guard()?, member: member.id, ordinal };
    let phase = if view.leader() == Some(ordinal) { Phase::RemovingLeader } else { Phase::Removing };
    Some(Decision::operate(view, (kind, target, phase), [remove]))
}

/// Hands leadership from `ordinal` to another member, where it is there and that has not been tried for too long.
pub fn hand_over(view: &View, kind: OperationKind, target: Target, ordinal: Ordinal) -> Option<Decision> {
    let recorded = view.seen.record.operation;
    let begun = recorded.filter(|operation| (operation.kind, operation.target) == (kind, target));
    let given_up = match begun.map(|operation| operation.phase) {
        Some(Phase::MovingLeader) => view.seen.operation_age.is_past(),
        Some(phase) => matches!(phase, Phase::RemovingLeader | Phase::RollingLeader),
        None => false,
    };
    if given_up {
        return None;
    }
    let effect = view.move_leader_from(ordinal)?;
    Some(Decision::operate(view, (kind, target, Phase::MovingLeader), [effect]))
}
