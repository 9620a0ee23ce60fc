//! Scaling: more members or fewer, one at a time, under the preconditions. Pure.
//!
//! Guarantees: a member is added as a learner, for a pod whose guard already waits on an empty volume, so that nothing
//! that cannot be scheduled or pulled is ever counted; one leaves that the others can spare, the sick before the sound,
//! the highest ordinal first; never the last one. The spec is read again for each step.

use super::cluster_state::{ClusterState, fails_on_data};
use super::decision::Decision;
use super::{cleanup, housekeeping, preconditions, replace};
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::observation::{
    Fact, Member, OperationKind, Ordinal, Owner, Phase, PodPhase, Role, Target,
};

/// What growing at an ordinal is called: the second half of a replacement, or more members.
pub fn growth_kind(cluster: &ClusterState, ordinal: Ordinal) -> OperationKind {
    let replaces = cluster.seen.record.operation.is_some_and(|operation| {
        operation.kind == OperationKind::Replace && operation.target == Target::Member(ordinal)
    });
    if replaces { OperationKind::Replace } else { OperationKind::ScaleOut }
}

/// Grows where a failed member was removed: that comes before anything that takes another one down.
pub fn regrow(cluster: &ClusterState) -> Option<Decision> {
    let ordinal = cluster.next_ordinal()?;
    if growth_kind(cluster, ordinal) == OperationKind::Replace { grow(cluster) } else { None }
}

/// Adds the next member, where one is missing.
pub fn grow(cluster: &ClusterState) -> Option<Decision> {
    let ordinal = cluster.next_ordinal()?;
    if !preconditions::hold(cluster) || !cluster.seen.entry(ordinal).is_absent() {
        return None;
    }
    let kind = growth_kind(cluster, ordinal);
    let decide = |phase, action: Option<Action>| {
        Some(Decision::operate(cluster, (kind, Target::Member(ordinal), phase), action))
    };
    if let Some(raise) = housekeeping::raise_budget(cluster, cluster.voter_count() + 1) {
        return decide(Phase::Preparing, Some(raise));
    }
    let set = cluster.stateful_set()?;
    if set.replicas <= ordinal.0 {
        return decide(Phase::Preparing, cluster.apply_stateful_set(ordinal.0 + 1, set.template));
    }
    let Some(pod) = cluster.pod(ordinal).filter(|pod| !pod.is_deleting) else {
        return decide(Phase::Preparing, None);
    };
    let volume = cluster.seen.volume(ordinal).found();
    // A claim that goes is held by its pod.
    let holds = cleanup::keeps_claim(pod) && volume.is_some_and(|volume| volume.is_deleting);
    if pod.template != set.template || fails_on_data(pod) || holds {
        let delete = Action::DeletePod { pod: pod.handle.clone(), ordinal, precondition: None };
        return decide(Phase::Preparing, Some(delete));
    }
    let empty = volume
        .filter(|volume| volume.owner == Owner::Ours && !volume.is_deleting && !volume.is_set_aside)
        // A learner serves no clients: they must not find its pod.
        .filter(|_| pod.role != Some(Role::Voter));
    match (pod.phase, empty) {
        (PodPhase::Waiting, Some(volume)) => {
            let add = Action::MemberAdd {
                membership: cluster.guard()?,
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
pub fn shrink(cluster: &ClusterState) -> Option<Decision> {
    let desired = usize::try_from(cluster.desired.replicas).unwrap_or(usize::MAX);
    // One that another client has added makes none of ours too many.
    if desired == 0 || cluster.own_member_count() <= desired {
        return None;
    }
    let (ordinal, member) = victim(cluster)?;
    cluster
        .can_spare(member)
        .then(|| replace::remove(cluster, OperationKind::ScaleIn, ordinal, member))
        .flatten()
}

/// Who leaves. A sick one may leave while the gate is closed: that is the safe removal. Then one whose claim is being
/// deleted, for its data end with its pod.
fn victim<'a>(cluster: &ClusterState<'a>) -> Option<(Ordinal, &'a Member)> {
    let voters = cluster.voters();
    let sick = voters.iter().rfind(|(ordinal, _)| is_sick(cluster, *ordinal));
    let held = || voters.iter().rfind(|(ordinal, _)| cluster.holds_claim(*ordinal));
    match sick {
        Some(sick) => Some(*sick),
        None if preconditions::hold(cluster) => held().or_else(|| voters.last()).copied(),
        None => None,
    }
}

/// Whether a member has been down for longer than a restart takes, or for ever.
fn is_sick(cluster: &ClusterState, ordinal: Ordinal) -> bool {
    let overdue = match cluster.seen.pod(ordinal) {
        Fact::Known(pod) => pod.startup_age.is_past(),
        Fact::Absent | Fact::Unknown => false,
    };
    !cluster.is_healthy(ordinal)
        && cluster.status(ordinal).is_none()
        && (overdue || cluster.has_lost_data(ordinal))
}
