//! Pods of members that are there: all start, at once and in any order, on their own volumes and under their own
//! identities. Where the ConfigMap that has these is gone, or what is in it, they are those that the status lists. Pure.
//!
//! Guarantees: no member is added or removed, no volume touched but to grow; it needs no quorum. A StatefulSet is never made
//! smaller.

use std::collections::BTreeMap;

use super::cluster_state::ClusterState;
use super::decision::Decision;
use super::housekeeping;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::observation::{
    ConfigEntry, Ordinal, Owner, PodPhase, Purpose, Recovery, RecoveryPhase, Volume,
};

/// Starts what does not run.
pub fn restart(cluster: &ClusterState) -> Option<Decision> {
    let mut actions = Vec::new();
    if cluster.needs_finalizer() {
        actions.push(Action::AddFinalizer);
    }
    if !cluster.seen.refusals.services {
        actions.extend(housekeeping::apply_services(cluster));
    }
    if !cluster.seen.refusals.budget {
        actions.extend(housekeeping::restore_budget(cluster));
    }
    actions.extend(pods(cluster));
    let entries = altered(cluster).into_iter().chain(retold(cluster)).chain(rebuilt(cluster));
    actions.extend(cluster.write_config(entries.collect()));
    actions.extend(terminal(cluster));
    if cluster.seen.refusals.volume.is_none() {
        actions.extend(housekeeping::grow_volume(cluster));
    }
    Decision::act(cluster, actions)
}

/// The StatefulSet, with a pod for every member.
fn pods(cluster: &ClusterState) -> Option<Action> {
    let kept = cluster.stateful_set().map_or(0, |set| set.replicas);
    let replicas = kept.max(cluster.least_replicas());
    if replicas == 0 { None } else { cluster.apply_stateful_set(replicas, cluster.template()) }
}

/// The entries beside whose options another client has written others: they are written again, with those of the spec.
fn altered(cluster: &ClusterState) -> BTreeMap<Ordinal, ConfigEntry> {
    if !cluster.seen.config.is_known_and(|config| config.is_altered) {
        return BTreeMap::new();
    }
    // The entry of one that joins names the members, which a list alone has.
    let is_known = |entry: &ConfigEntry| entry.purpose != Purpose::Join || cluster.membership().is_some();
    let entries = cluster.seen.entries().filter(|(_, entry)| is_known(entry));
    entries.map(|(ordinal, entry)| (ordinal, entry.clone())).collect()
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
        // The entry of one that joins names the members, which a list alone has.
        if entry.purpose == Purpose::Join && cluster.membership().is_none() {
            return None;
        }
        let begins = entry.pod.as_ref().map(|_| pod.handle.uid.clone());
        let retold = ConfigEntry { template: pod.template, pod: begins, ..entry.clone() };
        (retold != *entry).then_some((ordinal, retold))
    });
    waiting.collect()
}

/// Entries that are gone, with the ConfigMap or from it: those of the members that the status lists, where etcd cannot be asked; and
/// of those that a recovery set aside, which their claims say. A wrong entry does no harm: the guard in the pod does not
/// start etcd on the data of another member or on an empty volume.
fn rebuilt(cluster: &ClusterState) -> BTreeMap<Ordinal, ConfigEntry> {
    if cluster.cluster_id().is_none() || cluster.seen.config.is_unknown() {
        return BTreeMap::new();
    }
    let recovery = cluster.seen.record.recovery.as_ref();
    if let Some(recovery) = recovery.filter(|recovery| recovery.phase.is_active()) {
        return rebuilt_in(cluster, recovery);
    }
    let untold = cluster.remembered().keys().filter(|ordinal| cluster.seen.entry(**ordinal).is_absent());
    let mut rebuilt: BTreeMap<_, _> =
        untold.filter_map(|ordinal| Some((*ordinal, running(cluster, *ordinal)?))).collect();
    let is_cancelled = recovery.is_some_and(|recovery| recovery.phase == RecoveryPhase::Cancelled);
    let volumes = cluster.seen.volumes.elements().filter(|(ordinal, volume)| {
        let is_member = if cluster.membership().is_some() {
            cluster.member(*ordinal).is_some()
        } else {
            is_cancelled && cluster.seen.remembered.contains_key(ordinal)
        };
        volume.is_set_aside && !is_member && is_untold(cluster, *ordinal, volume) && !volume.is_deleting
    });
    rebuilt.extend(volumes.filter_map(|(ordinal, _)| Some((ordinal, set_aside(cluster, ordinal)?))));
    rebuilt
}

/// The same during a recovery. None of the others may run once the survivor may have begun; and the survivor makes a
/// cluster of its data where it may have been about to.
fn rebuilt_in(cluster: &ClusterState, recovery: &Recovery) -> BTreeMap<Ordinal, ConfigEntry> {
    let Some(survivor) = recovery.survivor.filter(|_| !cluster.seen.pods.is_unknown()) else {
        return BTreeMap::new();
    };
    let others = cluster.seen.volumes.elements();
    let others = others.filter(|(ordinal, volume)| {
        let is_remembered = || cluster.seen.remembered.contains_key(ordinal);
        *ordinal != survivor
            && is_untold(cluster, *ordinal, volume)
            && (volume.is_set_aside || is_remembered() || cluster.has_lost_config())
    });
    let others = others.filter_map(|(ordinal, volume)| {
        let is_first = recovery.phase == RecoveryPhase::Fencing && !volume.is_set_aside;
        let runs = is_first && cluster.seen.remembered.contains_key(&ordinal);
        let entry = if runs { running(cluster, ordinal) } else { set_aside(cluster, ordinal) };
        Some((ordinal, entry?))
    });
    let mut rebuilt: BTreeMap<_, _> = others.collect();
    if cluster.seen.entry(survivor).is_absent()
        && let Some(entry) = of_survivor(cluster, recovery, survivor)
    {
        rebuilt.insert(survivor, entry);
    }
    rebuilt
}

/// The survivor's entry. A pod that came after the one that had to go may have had the entry to make a cluster of the
/// data, and may be gone: there is no way back, and no pod gets that entry again before the data show whether a cluster
/// was made.
fn of_survivor(cluster: &ClusterState, recovery: &Recovery, survivor: Ordinal) -> Option<ConfigEntry> {
    let entry = running(cluster, survivor)?;
    match &recovery.pod {
        Some(before) if recovery.phase == RecoveryPhase::Forcing => {
            let is_first = cluster.pod(survivor).is_some_and(|pod| pod.handle.uid == *before);
            let forced = entry.forced(recovery.raft_index);
            Some(ConfigEntry { pod: (!is_first).then(|| before.clone()), ..forced })
        }
        _ => Some(entry),
    }
}

/// Whether nothing in the ConfigMap speaks of a volume of ours.
fn is_untold(cluster: &ClusterState, ordinal: Ordinal, volume: &Volume) -> bool {
    volume.owner == Owner::Ours && cluster.seen.entry(ordinal).is_absent()
}

/// The entry of a member that runs, with the identity that the status or etcd lists.
fn running(cluster: &ClusterState, ordinal: Ordinal) -> Option<ConfigEntry> {
    let template = cluster.pod(ordinal).map_or_else(|| cluster.template(), |pod| pod.template);
    let listed = cluster.member(ordinal).map(|member| member.id);
    let member = listed.or_else(|| cluster.seen.remembered.get(&ordinal).copied());
    let entry = cluster.entry_for(ordinal, Purpose::Run, template)?;
    Some(ConfigEntry { member, ..entry })
}

/// The entry of a member that a recovery set aside. The pod that is there may have another one mounted.
fn set_aside(cluster: &ClusterState, ordinal: Ordinal) -> Option<ConfigEntry> {
    Some(running(cluster, ordinal)?.set_aside(cluster.pod(ordinal)))
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
