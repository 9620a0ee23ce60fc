//! Pods of members that are there: all start, at once and in any order, on their own volumes and under their own
//! identities. Where the ConfigMap that has these is gone, they are those that the status lists. Pure.
//!
//! Guarantees: no member is added or removed, no volume touched; it needs no quorum. A StatefulSet is never made
//! smaller.

use std::collections::BTreeMap;

use super::cluster_state::ClusterState;
use super::decision::Decision;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::observation::{ConfigEntry, Found, Ordinal, PodPhase, Purpose, RecoveryPhase};

/// Starts what does not run.
pub fn restart(cluster: &ClusterState) -> Option<Decision> {
    let mut actions = Vec::new();
    if cluster.needs_finalizer() {
        actions.push(Action::AddFinalizer);
    }
    if cluster.seen.services.is_known_and(|found| *found == Found::Outdated) {
        actions.push(Action::ApplyServices);
    }
    actions.extend(pods(cluster));
    let entries = retold(cluster).into_iter().chain(rebuilt(cluster));
    actions.extend(cluster.write_config(entries.collect()));
    actions.extend(terminal(cluster));
    Decision::act(cluster, actions)
}

/// The StatefulSet, with a pod for every member.
fn pods(cluster: &ClusterState) -> Option<Action> {
    let kept = cluster.stateful_set().map_or(0, |set| set.replicas);
    let replicas = kept.max(cluster.least_replicas());
    if replicas == 0 { None } else { cluster.apply_stateful_set(replicas, cluster.template()) }
}

/// Entries for pods that came back, on the volume that the entry was made for, as another pod or from another template;
/// and for those that a recovery stopped which was then cancelled.
fn retold(cluster: &ClusterState) -> BTreeMap<Ordinal, ConfigEntry> {
    let recovery = cluster.seen.record.recovery.as_ref();
    // With a list, the members in it get their entries by that.
    let is_cancelled = cluster.membership().is_none()
        && recovery.is_some_and(|one| one.phase == RecoveryPhase::Cancelled && one.survivor.is_some());
    let waiting = cluster.seen.entries().filter_map(|(ordinal, entry)| {
        match entry.purpose {
            Purpose::SetAside | Purpose::Force if is_cancelled => {
                return Some((ordinal, entry.turned(Purpose::Run)));
            }
            // The recovery itself names who makes a cluster of the data.
            Purpose::Force => return None,
            _ => {}
        }
        let pod = cluster.pod(ordinal)?;
        let volume = cluster.seen.volume(ordinal).found()?;
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

/// Entries of the members that the status lists, where the ConfigMap is gone and etcd cannot be asked. A wrong entry does
/// no harm: the guard in the pod does not start etcd on the data of another member or on an empty volume. During a
/// recovery nothing is rebuilt, because only the ConfigMap knew which members the recovery had set aside.
fn rebuilt(cluster: &ClusterState) -> BTreeMap<Ordinal, ConfigEntry> {
    let recovery = cluster.seen.record.recovery.as_ref();
    if !cluster.seen.config.is_absent() || recovery.is_some_and(|recovery| recovery.phase.is_active()) {
        return BTreeMap::new();
    }
    let rebuilt = cluster.remembered().iter().filter_map(|(ordinal, id)| {
        let template = cluster.pod(*ordinal).map_or_else(|| cluster.template(), |pod| pod.template);
        let entry = cluster.entry_for(*ordinal, Purpose::Run, template)?;
        Some((*ordinal, ConfigEntry { member: Some(*id), ..entry }))
    });
    rebuilt.collect()
}

/// A pod that has ended for good: its volume is intact, another one takes its place.
fn terminal(cluster: &ClusterState) -> Option<Action> {
    let mut ended = cluster
        .seen
        .pods
        .elements()
        .filter(|(_, pod)| matches!(pod.phase, PodPhase::Terminal(_)) && !pod.is_deleting);
    ended.next().map(|(ordinal, pod)| Action::DeletePod {
        pod: pod.handle.clone(),
        ordinal,
        precondition: None,
    })
}
