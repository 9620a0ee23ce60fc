//! What was begun is finished before anything else begins: a member in etcd's list gets an entry to start by; of
//! any other, nothing stays. Pure.
//!
//! Guarantees: a member that is in the list already is adopted, never added again, even if another client added it;
//! nothing of a member is deleted before a linearizable list without it; the claim of a member that a recovery set
//! aside goes after its data were made to outlive it.

use std::collections::BTreeMap;

use super::cluster_state::ClusterState;
use super::decision::Decision;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::observation::{
    Cause, ConfigEntry, Fact, Member, Ordinal, Owner, Pod, PodPhase, Purpose, Volume,
};

/// Writes the entry of every member's pod.
pub fn entries(cluster: &ClusterState) -> Option<Decision> {
    let membership = cluster.membership()?;
    if cluster.seen.config.is_unknown() {
        return None;
    }
    let placed = membership.members.iter().filter_map(|member| Some((member.ordinal?, member)));
    let untold: BTreeMap<_, _> = placed
        .filter_map(|(ordinal, member)| Some((ordinal, entry_of(cluster, ordinal, member)?)))
        .chain(retired(cluster))
        .collect();
    Decision::act(cluster, cluster.write_config(untold))
}

/// The entry that a member ought to have, where it has another one.
fn entry_of(cluster: &ClusterState, ordinal: Ordinal, member: &Member) -> Option<ConfigEntry> {
    let Fact::Known(entry) = cluster.seen.entry(ordinal) else {
        let purpose = if member.is_started { Purpose::Run } else { Purpose::Join };
        let template = cluster.pod(ordinal).map_or_else(|| cluster.template(), |pod| pod.template);
        return cluster.entry_for(ordinal, purpose, template);
    };
    if entry.member.is_some_and(|told| told != member.id) {
        // What is left of the member before goes first.
        return None;
    }
    let serves = cluster.status(ordinal).is_some_and(|status| status.member_id == member.id);
    let purpose = match entry.purpose {
        Purpose::Seed | Purpose::Join if member.is_started && serves => Purpose::Run,
        // A recovery was cancelled: the member is one like any other.
        Purpose::Force | Purpose::Retired | Purpose::SetAside => Purpose::Run,
        Purpose::Seed | Purpose::Join | Purpose::Run => {
            // A pod may end at any time, and etcd then starts by what is written here.
            let told = cluster.seen.sized(ConfigEntry { member: Some(member.id), ..entry.clone() });
            return (told != *entry).then_some(told);
        }
    };
    Some(ConfigEntry { member: Some(member.id), ..entry.turned(purpose) })
}

/// Entries of members that are no longer in the list: their pods do not start again.
fn retired(cluster: &ClusterState) -> Vec<(Ordinal, ConfigEntry)> {
    let gone = cluster
        .seen
        .entries()
        .filter(|(ordinal, entry)| !entry.purpose.is_stopped() && !is_member(cluster, *ordinal, entry));
    gone.map(|(ordinal, entry)| (ordinal, entry.turned(Purpose::Retired))).collect()
}

/// Whether an entry is that of a member in the list.
fn is_member(cluster: &ClusterState, ordinal: Ordinal, entry: &ConfigEntry) -> bool {
    cluster.member(ordinal).is_some_and(|member| entry.member.is_none_or(|told| told == member.id))
}

/// Takes it back that a recovery has set a member aside, which is one like any other: the recovery was cancelled.
pub fn taken_back(cluster: &ClusterState) -> Option<Decision> {
    cluster.membership()?;
    let mut members = cluster.seen.volumes.elements().filter(|(ordinal, volume)| {
        let entry = cluster.seen.entry(*ordinal).found();
        volume.is_set_aside
            && volume.owner == Owner::Ours
            && cluster.member(*ordinal).is_some()
            && entry.is_some_and(|entry| {
                entry.purpose == Purpose::Run
                    && entry.volume == volume.handle.uid
                    && is_member(cluster, *ordinal, entry)
            })
    });
    let action = members.next().map(|(ordinal, volume)| Action::SetAsideVolume {
        volume: volume.handle.clone(),
        ordinal,
        is_set_aside: false,
    });
    Decision::act(cluster, action)
}

/// Deletes what removed members left, and what was made for members that never came.
pub fn leftovers(cluster: &ClusterState) -> Option<Decision> {
    cluster.membership()?;
    if !matches!(cluster.seen.config, Fact::Known(_))
        || cluster.seen.pods.is_unknown()
        || cluster.seen.volumes.is_unknown()
    {
        return None;
    }
    let kept = replicas(cluster);
    if let Some(set) = cluster.stateful_set().filter(|set| set.replicas > kept) {
        return Decision::act(cluster, cluster.apply_stateful_set(kept, set.template));
    }
    let clean = left(cluster).find_map(|(ordinal, entry)| clean(cluster, ordinal, entry, kept));
    Decision::act(cluster, clean.or_else(|| orphan(cluster, kept)))
}

/// Makes the data of a member that a recovery set aside outlive its claim, which goes after that.
pub fn keep_data(cluster: &ClusterState) -> Option<Decision> {
    cluster.membership()?;
    let mut unsafe_ones = left(cluster).filter_map(|(ordinal, entry)| {
        let volume = cluster.seen.volume(ordinal).found()?;
        let is_due = keeps_data(cluster, entry)
            && volume.handle.uid == entry.volume
            && volume.owner == Owner::Ours
            && !volume.is_deleting
            && !is_safe(volume);
        is_due.then(|| Action::RetainVolume { volume: volume.handle.clone(), ordinal })
    });
    Decision::act(cluster, unsafe_ones.next())
}

/// Entries of who is stopped and is no member.
fn left<'a>(cluster: &'a ClusterState) -> impl Iterator<Item = (Ordinal, &'a ConfigEntry)> {
    let entries = cluster.seen.entries();
    entries.filter(|(ordinal, entry)| entry.purpose.is_stopped() && !is_member(cluster, *ordinal, entry))
}

/// Whether what is on a volume has to outlive its claim.
fn keeps_data(cluster: &ClusterState, entry: &ConfigEntry) -> bool {
    entry.purpose == Purpose::SetAside && !cluster.desired.is_in_memory
}

/// Pods that the StatefulSet keeps: one for each member, and one for the member that comes next.
fn replicas(cluster: &ClusterState) -> u32 {
    let next = cluster.next_ordinal().filter(|_| cluster.desired.is_valid).map_or(0, |next| next.0 + 1);
    let kept = cluster.stateful_set().map_or(0, |set| set.replicas);
    cluster.least_replicas().max(next.min(kept))
}

/// The next step of deleting what a removed member left. Below the StatefulSet's count a pod comes back at once: there
/// the claim goes first, held by its pod until that is gone.
fn clean(cluster: &ClusterState, ordinal: Ordinal, entry: &ConfigEntry, kept: u32) -> Option<Action> {
    let comes_back = ordinal.0 < kept;
    let pod = cluster.pod(ordinal);
    if !comes_back && pod.is_some() {
        return None;
    }
    let volume = cluster.seen.volume(ordinal).found().filter(|volume| volume.handle.uid == entry.volume);
    let Some(volume) = volume else {
        let config = cluster.seen.config.known()?;
        return Some(Action::WithdrawConfig { found: config.handle.clone(), ordinal });
    };
    if volume.owner != Owner::Ours {
        return None;
    }
    let handle = volume.handle.clone();
    let keeps_data = keeps_data(cluster, entry);
    if keeps_data && !volume.is_deleting && !is_safe(volume) {
        return None;
    }
    if !volume.is_deleting && !cluster.desired.is_in_memory {
        return Some(Action::DeleteVolume {
            volume: handle,
            ordinal,
            membership: cluster.guard(),
            keeps_data,
        });
    }
    let holds = pod.filter(|pod| !pod.is_deleting && keeps_claim(pod))?;
    Some(Action::DeletePod { pod: holds.handle.clone(), ordinal, precondition: None })
}

/// Whether a claim that is being deleted stays because of this pod: Kubernetes keeps it while a pod names it that has a
/// node. One that has waited for its volume or its image for long has one.
pub const fn keeps_claim(pod: &Pod) -> bool {
    match pod.phase {
        PodPhase::Pending(Some(Cause::Unschedulable)) => false,
        PodPhase::Pending(_) => pod.startup_age.is_past(),
        PodPhase::Waiting
        | PodPhase::Starting
        | PodPhase::Up
        | PodPhase::Failing(_)
        | PodPhase::Terminal(_) => true,
    }
}

/// Whether nothing is lost with the claim of a member that a recovery set aside.
pub fn is_safe(volume: &Volume) -> bool {
    matches!(volume.is_retained, Fact::Known(true) | Fact::Absent)
}

/// A volume beyond the StatefulSet's count that no member and no entry speaks of, and that no recovery set aside.
fn orphan(cluster: &ClusterState, kept: u32) -> Option<Action> {
    if cluster.desired.is_in_memory {
        return None;
    }
    let mut orphans = cluster.seen.volumes.elements().filter(|(ordinal, volume)| {
        let is_spoken_of = cluster.member(*ordinal).is_some() || !cluster.seen.entry(*ordinal).is_absent();
        ordinal.0 >= kept
            && !is_spoken_of
            && cluster.seen.pod(*ordinal).is_absent()
            && volume.owner == Owner::Ours
            && !volume.is_deleting
            && !volume.is_set_aside
    });
    let (ordinal, volume) = orphans.next()?;
    Some(Action::DeleteVolume {
        volume: volume.handle.clone(),
        ordinal,
        membership: cluster.guard(),
        keeps_data: false,
    })
}
