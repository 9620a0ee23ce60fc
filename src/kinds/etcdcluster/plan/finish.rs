//! What was begun is finished before anything else begins: whoever is in etcd's list gets an entry to start by; of
//! whoever is not, nothing stays. Pure.
//!
//! Guarantees: a member that is in the list already is adopted, never added again, whoever added it; nothing of a
//! member is deleted before a linearizable list without it; the claim of a member that a recovery set aside goes after
//! its data were made to outlive it.

use std::collections::BTreeMap;

use super::decision::Decision;
use super::view::View;
use crate::kinds::etcdcluster::effect::Effect;
use crate::kinds::etcdcluster::observation::{
    ConfigEntry, Fact, Member, Ordinal, Owner, PodPhase, Purpose, Volume,
};

/// Tells every member's pod what its member is.
pub fn entries(view: &View) -> Option<Decision> {
    let membership = view.membership()?;
    if view.seen.config.is_unknown() {
        return None;
    }
    let placed = membership.members.iter().filter_map(|member| Some((member.ordinal?, member)));
    let untold: BTreeMap<_, _> = placed
        .filter_map(|(ordinal, member)| Some((ordinal, entry_of(view, ordinal, member)?)))
        .chain(retired(view))
        .collect();
    Decision::act(view, view.write_config(untold))
}

/// The entry that a member ought to have, where it has another one.
fn entry_of(view: &View, ordinal: Ordinal, member: &Member) -> Option<ConfigEntry> {
    let Fact::Known(entry) = view.seen.entry(ordinal) else {
        let purpose = if member.is_started { Purpose::Run } else { Purpose::Join };
        let template = view.pod(ordinal).map_or_else(|| view.template(), |pod| pod.template);
        return view.entry_for(ordinal, purpose, template);
    };
    if entry.member.is_some_and(|told| told != member.id) {
        // What is left of the member before goes first.
        return None;
    }
    let serves = view.status(ordinal).is_some_and(|status| status.member_id == member.id);
    let purpose = match entry.purpose {
        Purpose::Seed | Purpose::Join if member.is_started && serves => Purpose::Run,
        // A recovery was cancelled: the member is one like any other.
        Purpose::Force | Purpose::Retired | Purpose::SetAside => Purpose::Run,
        Purpose::Seed | Purpose::Join | Purpose::Run => {
            let member = Some(member.id);
            return (entry.member != member).then(|| ConfigEntry { member, ..entry.clone() });
        }
    };
    Some(ConfigEntry { member: Some(member.id), ..entry.turned(purpose) })
}

/// Entries of members that are no longer in the list: their pods do not start again.
fn retired(view: &View) -> Vec<(Ordinal, ConfigEntry)> {
    let gone = view
        .seen
        .entries()
        .filter(|(ordinal, entry)| !entry.purpose.is_stopped() && !is_member(view, *ordinal, entry));
    gone.map(|(ordinal, entry)| (ordinal, entry.turned(Purpose::Retired))).collect()
}

/// Whether an entry is that of a member in the list.
fn is_member(view: &View, ordinal: Ordinal, entry: &ConfigEntry) -> bool {
    view.member(ordinal).is_some_and(|member| entry.member.is_none_or(|told| told == member.id))
}

/// Deletes what removed members left, and what was made for members that never came.
pub fn leftovers(view: &View) -> Option<Decision> {
    view.membership()?;
    if !matches!(view.seen.config, Fact::Known(_))
        || view.seen.pods.is_unknown()
        || view.seen.volumes.is_unknown()
    {
        return None;
    }
    let kept = replicas(view);
    if let Some(set) = view.stateful_set().filter(|set| set.replicas > kept) {
        return Decision::act(view, view.apply_stateful_set(kept, set.template));
    }
    let clean = left(view).find_map(|(ordinal, entry)| clean(view, ordinal, entry, kept));
    Decision::act(view, clean.or_else(|| orphan(view, kept)))
}

/// Makes the data of a member that a recovery set aside outlive its claim, which goes after that.
pub fn keep_data(view: &View) -> Option<Decision> {
    view.membership()?;
    let mut unsafe_ones = left(view).filter_map(|(ordinal, entry)| {
        let volume = view.seen.volume(ordinal).found()?;
        let is_due = keeps_data(view, entry)
            && volume.handle.uid == entry.volume
            && volume.owner == Owner::Ours
            && !volume.is_deleting
            && !is_safe(volume);
        is_due.then(|| Effect::RetainVolume { volume: volume.handle.clone(), ordinal })
    });
    Decision::act(view, unsafe_ones.next())
}

/// Entries of who is stopped and is no member.
fn left<'a>(view: &'a View) -> impl Iterator<Item = (Ordinal, &'a ConfigEntry)> {
    let entries = view.seen.entries();
    entries.filter(|(ordinal, entry)| entry.purpose.is_stopped() && !is_member(view, *ordinal, entry))
}

/// Whether what is on a volume has to outlive its claim.
fn keeps_data(view: &View, entry: &ConfigEntry) -> bool {
    entry.purpose == Purpose::SetAside && !view.desired.is_in_memory
}

/// Pods that the StatefulSet keeps: one for each member, and one for the member that comes next.
fn replicas(view: &View) -> u32 {
    let next = view.next_ordinal().filter(|_| view.desired.is_valid).map_or(0, |next| next.0 + 1);
    let kept = view.stateful_set().map_or(0, |set| set.replicas);
    view.least_replicas().max(next.min(kept))
}

/// The next step of deleting what a removed member left. Below the StatefulSet's count a pod comes back at once: there
/// the claim goes first, held by its pod until that is gone.
fn clean(view: &View, ordinal: Ordinal, entry: &ConfigEntry, kept: u32) -> Option<Effect> {
    let comes_back = ordinal.0 < kept;
    let pod = view.pod(ordinal);
    if !comes_back && pod.is_some() {
        return None;
    }
    let volume = view.seen.volume(ordinal).found().filter(|volume| volume.handle.uid == entry.volume);
    let Some(volume) = volume else {
        let config = view.seen.config.known()?;
        return Some(Effect::WithdrawConfig { found: config.handle.clone(), ordinal });
    };
    if volume.owner != Owner::Ours {
        return None;
    }
    let handle = volume.handle.clone();
    let keeps_data = keeps_data(view, entry);
    if keeps_data && !volume.is_deleting && !is_safe(volume) {
        return None;
    }
    if !volume.is_deleting && !view.desired.is_in_memory {
        return Some(Effect::DeleteVolume { volume: handle, ordinal, membership: view.guard(), keeps_data });
    }
    let holds = pod.filter(|pod| !pod.is_deleting && !matches!(pod.phase, PodPhase::Pending(_)))?;
    Some(Effect::DeletePod { pod: holds.handle.clone(), ordinal, only_if: None })
}

/// Whether nothing is lost with the claim of a member that a recovery set aside.
pub fn is_safe(volume: &Volume) -> bool {
    matches!(volume.is_retained, Fact::Known(true) | Fact::Absent)
}

/// A volume beyond the StatefulSet's count that no member and no entry speaks of.
fn orphan(view: &View, kept: u32) -> Option<Effect> {
    if view.desired.is_in_memory {
        return None;
    }
    let mut orphans = view.seen.volumes.elements().filter(|(ordinal, volume)| {
        let is_spoken_of = view.member(*ordinal).is_some() || !view.seen.entry(*ordinal).is_absent();
        ordinal.0 >= kept
            && !is_spoken_of
            && view.seen.pod(*ordinal).is_absent()
            && volume.owner == Owner::Ours
            && !volume.is_deleting
    });
    let (ordinal, volume) = orphans.next()?;
    Some(Effect::DeleteVolume {
        volume: volume.handle.clone(),
        ordinal,
        membership: view.guard(),
        keeps_data: false,
    })
}
