//! A pod that does not come up and has cost the quorum: one or two voters are rolled at that price. Pure.
//!
//! Guarantees: nothing happens before the quorum has been lost for its grace period, nor where data end with their pod;
//! no pod of a member that answers is touched; nobody is brought to another minor, nor to a higher patch.

use super::super::decision::Decision;
use super::super::recovery;
use super::super::view::View;
use super::{is_stuck, kind};
use crate::kinds::etcdcluster::effect::{Effect, OnlyIf};
use crate::kinds::etcdcluster::observation::{ConfigEntry, Ordinal, Phase, Purpose, StatefulSet};

/// Makes pods that do not come up from what is asked for by now. Who the members are nobody is left to say: they are told
/// what they were told before.
pub fn heal(view: &View) -> Option<Decision> {
    let set = view.stateful_set()?;
    let target = view.desired.template;
    let goes_up = target.version.minor != set.template.version.minor || target.version > set.template.version;
    let is_due = recovery::is_quorum_lost(view) && view.seen.certificates.is_usable();
    if !is_due || goes_up || view.desired.is_in_memory {
        return None;
    }
    let (kind, target_of) = kind(view, target);
    let operate =
        |phase, effect: Option<Effect>| Some(Decision::operate(view, (kind, target_of, phase), effect));
    if set.template != target {
        let does_not_come_up = view.occupied().into_iter().any(|ordinal| is_down(view, set, ordinal));
        return does_not_come_up
            .then(|| operate(Phase::Preparing, view.apply_stateful_set(set.replicas, target)))
            .flatten();
    }
    let mut stuck = view.seen.pods.elements().filter(|(ordinal, pod)| {
        pod.template != target
            && !pod.is_deleting
            && view.status(*ordinal).is_none()
            && is_stuck(view, *ordinal, pod)
    });
    let (ordinal, pod) = stuck.next()?;
    let entry = view.seen.entry(ordinal).found().filter(|entry| entry.purpose == Purpose::Run)?;
    let effect = if entry.template == target {
        let only_if = Some(OnlyIf::QuorumLost);
        Some(Effect::DeletePod { pod: pod.handle.clone(), ordinal, only_if })
    } else {
        view.write_entry(ordinal, ConfigEntry { template: target, ..entry.clone() })
    };
    operate(Phase::Rolling, effect)
}

/// Whether a member does not come up as the StatefulSet has it now: its pod is stuck, or cannot be made.
fn is_down(view: &View, set: &StatefulSet, ordinal: Ordinal) -> bool {
    if view.status(ordinal).is_some() || view.seen.pods.is_unknown() {
        return false;
    }
    view.pod(ordinal).is_none_or(|pod| pod.template == set.template && is_stuck(view, ordinal, pod))
}
