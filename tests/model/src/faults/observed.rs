//! An operator that overlooks what is on claims and pods, and how far members have got.

use gatehouse::kinds::etcdcluster::actions::Action as Effect;
use gatehouse::kinds::etcdcluster::observation::{
    Fact, Membership, Observation, PodPhase, RecoveryPhase, Role,
};
use gatehouse::kinds::etcdcluster::plan::Plan;

use super::{Fault, deletes, surroundings};

/// What it takes what it read for.
pub fn look(fault: Fault, seen: &mut Observation) {
    match fault {
        Fault::ForgetsWhatWasSetAside => {
            let recovery = seen.record.recovery.as_ref();
            let is_over = recovery.is_some_and(|recovery| recovery.phase == RecoveryPhase::Done);
            if let (true, Fact::Known(volumes)) = (is_over, &mut seen.volumes) {
                for volume in volumes.values_mut() {
                    volume.is_set_aside = false;
                }
            }
        }
        Fault::RecoversPastHeldClaims => {
            let recovery = seen.record.recovery.as_ref();
            let is_active = recovery.is_some_and(|recovery| recovery.phase.is_active());
            if let (true, Fact::Known(volumes)) = (is_active, &mut seen.volumes) {
                for volume in volumes.values_mut() {
                    volume.is_deleting = false;
                }
            }
        }
        Fault::LeavesPodsUnlabelled => {
            if let Fact::Known(set) = &mut seen.stateful_set {
                set.labels_voters = true;
            }
        }
        Fault::AddsWhoServes => {
            let members = seen.membership.known().into_iter().flat_map(|list| &list.members);
            let members: Vec<_> = members.filter_map(|member| member.ordinal).collect();
            if let Fact::Known(pods) = &mut seen.pods {
                let others = pods.iter_mut().filter(|(ordinal, _)| !members.contains(ordinal));
                others.for_each(|(_, pod)| pod.role = None);
            }
        }
        Fault::OverlooksLabels => {
            let voters = seen.membership.known().into_iter().flat_map(Membership::voters);
            let voters: Vec<_> = voters.filter_map(|voter| voter.ordinal).collect();
            if let Fact::Known(pods) = &mut seen.pods {
                let unlabelled = pods.iter_mut().filter(|(ordinal, _)| voters.contains(ordinal));
                unlabelled.for_each(|(_, pod)| pod.role = Some(Role::Voter));
            }
        }
        Fault::OverlooksOwnWords => {
            if let Fact::Known(pods) = &mut seen.pods {
                for pod in pods.values_mut() {
                    pod.own_print = None;
                }
            }
        }
        Fault::OverlooksLag => {
            for status in seen.statuses.values_mut() {
                if let Fact::Known(status) = status {
                    status.raft_applied_index = u64::MAX / 100;
                }
            }
        }
        other => surroundings::look(other, seen),
    }
}

/// Restarts a member that does not answer, for another template.
pub fn restarts_the_silent(seen: &Observation) -> Option<Effect> {
    seen.membership.known()?;
    let template = seen.stateful_set.known()?.template;
    let mut silent = seen.pods.elements().filter(|(ordinal, pod)| {
        pod.phase == PodPhase::Up
            && pod.startup_age.is_past()
            && !pod.is_deleting
            && pod.template != template
            && seen.status(*ordinal).is_unknown()
            && seen.entry(*ordinal).is_known_and(|entry| entry.template == template)
    });
    silent.next().map(|(ordinal, pod)| deletes(ordinal, pod))
}

/// Leaves the entries of those out whose claims are being deleted.
pub fn writes_only_for_claims_that_stay(seen: &Observation, plan: &mut Plan) {
    for effect in &mut plan.actions {
        if let Effect::WriteConfig { entries, .. } = effect {
            let goes = |ordinal| seen.volume(ordinal).is_known_and(|volume| volume.is_deleting);
            entries.retain(|ordinal, _| seen.entry(*ordinal).known().is_some() || !goes(*ordinal));
        }
    }
    plan.actions
        .retain(|effect| !matches!(effect, Effect::WriteConfig { entries, .. } if entries.is_empty()));
}
