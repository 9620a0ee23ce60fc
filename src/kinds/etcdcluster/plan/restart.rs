//! Pods of members that are there: all start, at once and in any order, on their own volumes and under their own
//! identities. Pure.
//!
//! Guarantees: no member is added or removed, no volume touched; it needs no quorum. A StatefulSet is never made
//! smaller.

use std::collections::BTreeMap;

use super::decision::Decision;
use super::view::View;
use crate::kinds::etcdcluster::effect::Effect;
use crate::kinds::etcdcluster::observation::{ConfigEntry, Found, Ordinal, PodPhase, Purpose, RecoveryPhase};

/// Starts what does not run.
pub fn restart(view: &View) -> Option<Decision> {
    let mut effects = Vec::new();
    if view.lacks_hold() {
        effects.push(Effect::AddFinalizer);
    }
    if view.seen.services.is_known_and(|found| *found == Found::Outdated) {
        effects.push(Effect::ApplyServices);
    }
    effects.extend(pods(view));
    effects.extend(view.write_config(retold(view)));
    effects.extend(terminal(view));
    Decision::act(view, effects)
}

/// The StatefulSet, with a pod for every member.
fn pods(view: &View) -> Option<Effect> {
    let kept = view.stateful_set().map_or(0, |set| set.replicas);
    let replicas = kept.max(view.least_replicas());
    if replicas == 0 { None } else { view.apply_stateful_set(replicas, view.template()) }
}

/// Entries for pods that came back, on the volume that the entry was made for, as another pod or from another template;
/// and for those that a recovery stopped which was then cancelled.
fn retold(view: &View) -> BTreeMap<Ordinal, ConfigEntry> {
    let recovery = view.seen.record.recovery.as_ref();
    // With a list, whoever is in it is told by that.
    let is_cancelled = view.membership().is_none()
        && recovery.is_some_and(|one| one.phase == RecoveryPhase::Cancelled && one.survivor.is_some());
    let waiting = view.seen.entries().filter_map(|(ordinal, entry)| {
        match entry.purpose {
            Purpose::SetAside | Purpose::Force if is_cancelled => {
                return Some((ordinal, entry.turned(Purpose::Run)));
            }
            // The recovery itself names who makes a cluster of the data.
            Purpose::Force => return None,
            _ => {}
        }
        let pod = view.pod(ordinal)?;
        let volume = view.seen.volume(ordinal).found()?;
        let waits = pod.phase == PodPhase::Waiting && !pod.is_deleting && !entry.purpose.is_stopped();
        if !waits || volume.handle.uid != entry.volume {
            return None;
        }
        let begins = entry.pod.as_ref().map(|_| pod.handle.uid.clone());
        let retold = ConfigEntry { template: pod.template, pod: begins, ..entry.clone() };
        (retold != *entry).then_some((ordinal, retold))
    });
    waiting.collect()
}

/// A pod that has ended for good: its volume is intact, another one takes its place.
fn terminal(view: &View) -> Option<Effect> {
    let mut ended = view
        .seen
        .pods
        .elements()
        .filter(|(_, pod)| matches!(pod.phase, PodPhase::Terminal(_)) && !pod.is_deleting);
    ended.next().map(|(ordinal, pod)| Effect::DeletePod { pod: pod.handle.clone(), ordinal, only_if: None })
}
