//! More members or fewer, one at a time, behind the gate. Pure.
//!
//! Guarantees: a member is added as a learner, for a pod whose guard already waits on an empty volume, so that nothing
//! that cannot be scheduled or pulled is ever counted; one leaves that the others can spare, the sick before the sound,
//! the highest ordinal first; never the last one. The spec is read anew for each step.

use super::decision::Decision;
use super::view::{View, fails_on_data};
use super::{gate, housekeeping, replace};
use crate::kinds::etcdcluster::effect::Effect;
use crate::kinds::etcdcluster::observation::{
    Fact, Member, OperationKind, Ordinal, Owner, Phase, PodPhase, Target,
};

/// What growing at an ordinal is called: the second half of a replacement, or more members.
pub fn growth_kind(view: &View, ordinal: Ordinal) -> OperationKind {
    let replaces = view.seen.record.operation.is_some_and(|operation| {
        operation.kind == OperationKind::Replace && operation.target == Target::Member(ordinal)
    });
    if replaces { OperationKind::Replace } else { OperationKind::ScaleOut }
}

/// Grows where a failed member was removed: that comes before anything that takes another one down.
pub fn regrow(view: &View) -> Option<Decision> {
    let ordinal = view.next_ordinal()?;
    if growth_kind(view, ordinal) == OperationKind::Replace { grow(view) } else { None }
}

/// Adds the next member, where one is missing.
pub fn grow(view: &View) -> Option<Decision> {
    let ordinal = view.next_ordinal()?;
    if !gate::is_open(view) || !view.seen.entry(ordinal).is_absent() {
        return None;
    }
    let kind = growth_kind(view, ordinal);
    let decide = |phase, effect: Option<Effect>| {
        Some(Decision::operate(view, (kind, Target::Member(ordinal), phase), effect))
    };
    if let Some(raise) = housekeeping::raise_budget(view, view.voter_count() + 1) {
        return decide(Phase::Preparing, Some(raise));
    }
    let set = view.stateful_set()?;
    if set.replicas <= ordinal.0 {
        return decide(Phase::Preparing, view.apply_stateful_set(ordinal.0 + 1, set.template));
    }
    let Some(pod) = view.pod(ordinal).filter(|pod| !pod.is_deleting) else {
        return decide(Phase::Preparing, None);
    };
    let volume = view.seen.volume(ordinal).found();
    // A claim that goes is held by its pod.
    let holds = !matches!(pod.phase, PodPhase::Pending(_)) && volume.is_some_and(|volume| volume.is_deleting);
    if pod.template != set.template || fails_on_data(pod) || holds {
        let delete = Effect::DeletePod { pod: pod.handle.clone(), ordinal, only_if: None };
        return decide(Phase::Preparing, Some(delete));
    }
    let empty = volume.filter(|volume| volume.owner == Owner::Ours && !volume.is_deleting);
    match (pod.phase, empty) {
        (PodPhase::Waiting, Some(volume)) => {
            let add = Effect::MemberAdd {
                membership: view.guard()?,
                ordinal,
                pod: pod.handle.uid.clone(),
                volume: volume.handle.uid.clone(),
            };
            decide(Phase::Adding, Some(add))
        }
        _ => decide(Phase::Preparing, None),
    }
}

/// Removes a member, where there are too many.
pub fn shrink(view: &View) -> Option<Decision> {
    let desired = usize::try_from(view.desired.replicas).unwrap_or(usize::MAX);
    if desired == 0 || view.member_count() <= desired {
        return None;
    }
    let (ordinal, member) = victim(view)?;
    view.can_spare(member).then(|| replace::remove(view, OperationKind::ScaleIn, ordinal, member)).flatten()
}

/// Who leaves. A sick one may leave while the gate is closed: that is the safe removal.
fn victim<'a>(view: &View<'a>) -> Option<(Ordinal, &'a Member)> {
    let voters = view.voters();
    let sick = voters.iter().rfind(|(ordinal, _)| is_sick(view, *ordinal));
    match sick {
        Some(sick) => Some(*sick),
        None if gate::is_open(view) => voters.last().copied(),
        None => None,
    }
}

/// Whether a member has been down for longer than a restart takes, or for ever.
fn is_sick(view: &View, ordinal: Ordinal) -> bool {
    let overdue = match view.seen.pod(ordinal) {
        Fact::Known(pod) => pod.startup_age.is_past(),
        Fact::Absent | Fact::Unknown => false,
    };
    !view.is_healthy(ordinal) && view.status(ordinal).is_none() && (overdue || view.has_lost_data(ordinal))
}
