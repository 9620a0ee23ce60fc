//! The recovery of a lost quorum from one member, at a user's request. Pure.
//!
//! Guarantees: nothing happens without a request; a request acts at most once, and not at all while there is a quorum;
//! no member whose data differ from the others', or may, is chosen but by its name;
//! every other member is stopped, its volume kept, before the survivor makes a cluster of its own, and until it has;
//! that a member is set aside is written onto its claim before the ConfigMap says so, and outlives that;
//! which entry of the log was kept is recorded first; a survivor whose data end with its pod is left as it is; data of
//! which a cluster may have been made must be known to be another member's before one is made of them again.
//! Assumes: the guard in the survivor's pod copies its data before etcd is started to make a cluster of them.

use std::collections::BTreeMap;

use super::cluster_state::ClusterState;
use super::decision::Decision;
use crate::kinds::etcdcluster::actions::{Action, Precondition};
use crate::kinds::etcdcluster::observation::{
    Audit, Cause, ConfigEntry, Fact, MemberId, MemberStatus, Observation, Ordinal, Owner, Pod, PodPhase,
    Purpose, Recovery, RecoveryPhase, RecoveryRequest, StatefulSet, Template, Uid,
};

/// Whether fewer voters than a majority have answered and followed a leader for longer than the grace period.
pub fn is_quorum_lost(cluster: &ClusterState) -> bool {
    cluster.cluster_id().is_some()
        && cluster.membership().is_none()
        && cluster.seen.quorum_loss_age.is_past()
        && cluster.seen.lacks_majority()
}

/// Carries a requested recovery on, or consumes a request that came to nothing.
pub fn recover(cluster: &ClusterState) -> Option<Decision> {
    let recorded = cluster.seen.record.recovery.as_ref();
    if let Some(recovery) = recorded.filter(|recovery| recovery.phase.is_active()) {
        return Some(advance(cluster, recovery));
    }
    let request = cluster.desired.recovery.as_ref()?;
    if recorded.is_some_and(|recovery| recovery.token == request.token) || !is_cleared_up(cluster) {
        return None;
    }
    if cluster.membership().is_some() {
        let recovery = Recovery {
            token: request.token.clone(),
            survivor: None,
            raft_index: 0,
            phase: RecoveryPhase::Cancelled,
            pod: None,
        };
        return Some(Decision::recover(cluster, recovery, None));
    }
    if is_quorum_lost(cluster) && !cluster.desired.is_in_memory { choose(cluster, request) } else { None }
}

/// Whether nothing is left of a recovery before. What it set aside is kept by what is recorded of it.
fn is_cleared_up(cluster: &ClusterState) -> bool {
    cluster.seen.config.is_known_and(|config| {
        let mut entries = config.entries.values();
        !entries.any(|entry| entry.purpose == Purpose::SetAside)
    })
}

/// Whether what is asked for would drop the last data: the survivor has to be started again, and data in memory end
/// with their pod.
pub fn drops_data(cluster: &ClusterState) -> bool {
    let recorded = cluster.seen.record.recovery.as_ref().map(|recovery| &recovery.token);
    let request = cluster.desired.recovery.as_ref().map(|request| &request.token);
    cluster.desired.is_in_memory && request.is_some() && request != recorded && is_quorum_lost(cluster)
}

/// Chooses the survivor: the one that was named, or the one whose log is committed furthest.
fn choose(cluster: &ClusterState, request: &RecoveryRequest) -> Option<Decision> {
    // One that missed a single question may be the one that is furthest.
    if !cluster.seen.health_age.is_past() || (request.survivor.is_none() && may_come(cluster)) {
        return None;
    }
    let (survivor, status) = survivor(cluster.seen, request.survivor)?;
    if cluster.holds_claim(survivor) {
        // Its pod has to be recreated, and its data would end with the pod. Which other data to keep is for a person.
        return None;
    }
    let recovery = Recovery {
        token: request.token.clone(),
        survivor: Some(survivor),
        raft_index: status.raft_index,
        phase: RecoveryPhase::Fencing,
        pod: None,
    };
    Some(Decision::recover(cluster, recovery, None))
}

/// Whose data a recovery goes on from: the member that was named, or of those whose data nothing speaks against the one
/// whose log is committed furthest, where it answers.
#[must_use]
pub fn survivor(seen: &Observation, named: Option<Ordinal>) -> Option<(Ordinal, &MemberStatus)> {
    let chosen = candidates(seen).filter(|(ordinal, status)| match named {
        Some(named) => named == *ordinal,
        None => !is_suspect(seen, *ordinal, status.member_id),
    });
    chosen.max_by_key(|(ordinal, status)| (status.raft_index, std::cmp::Reverse(*ordinal)))
}

/// The voters that answer, and that a recovery does not go on from unless they are named: their data differ from the
/// others', or may.
pub fn suspects(seen: &Observation) -> impl Iterator<Item = Ordinal> {
    let suspects = candidates(seen).filter(|(ordinal, status)| is_suspect(seen, *ordinal, status.member_id));
    suspects.map(|(ordinal, _)| ordinal)
}

/// The voters that answer.
fn candidates(seen: &Observation) -> impl Iterator<Item = (Ordinal, &MemberStatus)> {
    seen.answers().filter(|(ordinal, status)| {
        !status.is_learner
            && seen.entry(*ordinal).is_known_and(|entry| {
                entry.purpose == Purpose::Run && seen.answer_of(*ordinal, entry.member).is_some()
            })
    })
}

/// Whether the data of a member differ from the others', as far as known, or may: by the last comparison, or by an alarm
/// that any member has stored. An alarm goes by the leader's data: without a comparison whose data are wrong is not known.
fn is_suspect(seen: &Observation, ordinal: Ordinal, member: MemberId) -> bool {
    let mut alarmed = seen.answers().flat_map(|(_, status)| &status.corrupt);
    match seen.audit.known() {
        Some(Audit::Different { minority, .. }) if !minority.is_empty() => {
            minority.contains(&ordinal) || alarmed.any(|named| *named == member)
        }
        Some(Audit::Different { .. }) => true,
        Some(Audit::Equal) | None => alarmed.next().is_some(),
    }
}

/// Whether a voter that does not answer may yet, by itself. One that starts may take as long as its startup probe lets
/// it, and one that is pending as long as its volume takes to be attached.
fn may_come(cluster: &ClusterState) -> bool {
    let entries = cluster.seen.entries().filter(|(_, entry)| entry.purpose == Purpose::Run);
    let mut silent =
        entries.filter(|(ordinal, entry)| cluster.seen.answer_of(*ordinal, entry.member).is_none());
    silent.any(|(ordinal, _)| cluster.pod(ordinal).is_some_and(is_on_its_way))
}

/// Whether a pod that does not serve is on its way.
#[must_use]
pub fn is_on_its_way(pod: &Pod) -> bool {
    let comes = match pod.phase {
        PodPhase::Pending(Some(cause)) => cause != Cause::Unschedulable,
        PodPhase::Pending(None) | PodPhase::Starting => true,
        PodPhase::Waiting | PodPhase::Up => !pod.startup_age.is_past(),
        PodPhase::Failing(_) | PodPhase::Terminal(_) => false,
    };
    comes && !pod.is_deleting
}

fn advance(cluster: &ClusterState, recovery: &Recovery) -> Decision {
    let Some(survivor) = recovery.survivor else { return Decision::wait(cluster) };
    let stay = |actions: Vec<Action>| Decision::recover(cluster, recovery.clone(), actions);
    let turn = |phase| Decision::recover(cluster, Recovery { phase, pod: None, ..recovery.clone() }, None);
    let start = |purpose, next| match started_anew(cluster, survivor, recovery, purpose) {
        Anew::Serves => turn(next),
        Anew::Before(pod) => {
            Decision::recover(cluster, Recovery { pod: Some(pod), ..recovery.clone() }, None)
        }
        Anew::Shows(phase) => turn(phase),
        Anew::Incomplete(actions) => stay(actions),
    };
    match (recovery.phase, fence(cluster, survivor, recovery)) {
        _ if !is_past_return(cluster, survivor, recovery)
            && (cluster.membership().is_some() || is_taken_back(cluster, recovery)) =>
        {
            turn(RecoveryPhase::Cancelled)
        }
        // What is left of one that cannot be read is for the release that knows more.
        (RecoveryPhase::Done | RecoveryPhase::Cancelled | RecoveryPhase::Unreadable, _) => {
            Decision::wait(cluster)
        }
        (_, Fence::Incomplete(actions)) => stay(actions),
        (RecoveryPhase::Fencing, Fence::Standing) => turn(RecoveryPhase::Forcing),
        (RecoveryPhase::Forcing, Fence::Standing) => start(Purpose::Force, RecoveryPhase::Clearing),
        (RecoveryPhase::Clearing, Fence::Standing) => start(Purpose::Run, RecoveryPhase::Done),
    }
}

/// Whether a pod had, or may have had, the entry to make a cluster of the survivor's data.
fn is_past_return(cluster: &ClusterState, survivor: Ordinal, recovery: &Recovery) -> bool {
    match recovery.phase {
        RecoveryPhase::Fencing => false,
        RecoveryPhase::Forcing => !cluster
            .seen
            .entry(survivor)
            .is_known_and(|entry| entry.purpose == Purpose::Run || entry.pod.is_none()),
        RecoveryPhase::Clearing
        | RecoveryPhase::Done
        | RecoveryPhase::Cancelled
        | RecoveryPhase::Unreadable => true,
    }
}

/// Whether the request is no longer there. Another one is acted on after this one has been dropped.
fn is_taken_back(cluster: &ClusterState, recovery: &Recovery) -> bool {
    cluster.desired.recovery.as_ref().is_none_or(|request| request.token != recovery.token)
}

/// Whether all other members are stopped.
enum Fence {
    Standing,
    Incomplete(Vec<Action>),
}

fn fence(cluster: &ClusterState, survivor: Ordinal, recovery: &Recovery) -> Fence {
    if !matches!(cluster.seen.config, Fact::Known(_)) || cluster.seen.pods.is_unknown() {
        return Fence::Incomplete(Vec::new());
    }
    let others = || cluster.seen.entries().filter(|(ordinal, _)| *ordinal != survivor);
    let untold: BTreeMap<_, _> = others()
        .filter(|(_, entry)| !entry.purpose.is_stopped())
        .map(|(ordinal, entry)| (ordinal, entry.set_aside(cluster.pod(ordinal))))
        .collect();
    if !untold.is_empty() {
        if cluster.seen.volumes.is_unknown() {
            return Fence::Incomplete(Vec::new());
        }
        let claims = set_aside(cluster, untold.keys().copied());
        let is_written = claims.is_empty();
        let entries = || Vec::from_iter(cluster.write_config(untold));
        return Fence::Incomplete(if is_written { entries() } else { claims });
    }
    let running = cluster.seen.pods.elements();
    let running =
        running.filter(|(ordinal, pod)| *ordinal != survivor && may_run(cluster.seen, *ordinal, pod));
    let mut running: Vec<_> = running.collect();
    running.sort_by_key(|(ordinal, pod)| (pod.is_deleting, *ordinal));
    if let Some((ordinal, pod)) = running.first() {
        // Once the survivor had the entry to go on alone it may be the remaining quorum.
        let precondition = (!is_past_return(cluster, survivor, recovery)).then_some(Precondition::QuorumLost);
        // Without the client's certificate no member could say that there is a quorum.
        if precondition.is_some() && !cluster.seen.certificates.is_usable() {
            return Fence::Incomplete(Vec::new());
        }
        let delete = cluster.delete_pod(*ordinal, pod, precondition);
        return Fence::Incomplete(Vec::from_iter(delete.filter(|_| !pod.is_deleting)));
    }
    let answers = cluster.seen.answers().any(|(ordinal, _)| ordinal != survivor);
    if answers { Fence::Incomplete(Vec::new()) } else { Fence::Standing }
}

/// Has the claims of those members say that they are set aside.
fn set_aside(cluster: &ClusterState, ordinals: impl Iterator<Item = Ordinal>) -> Vec<Action> {
    let volumes = ordinals.filter_map(|ordinal| {
        let entry = cluster.seen.entry(ordinal).found()?;
        let volume = cluster.seen.volume(ordinal).found()?;
        let is_due = volume.owner == Owner::Ours && volume.handle.uid == entry.volume && !volume.is_set_aside;
        is_due.then(|| Action::SetAsideVolume { volume: volume.handle.clone(), ordinal, is_set_aside: true })
    });
    volumes.collect()
}

/// Whether a pod may start etcd by an entry from before its member was set aside: the pod that was there then may have
/// it mounted. One that came later, and waits, has read that it is to wait.
#[must_use]
pub fn may_run(seen: &Observation, ordinal: Ordinal, pod: &Pod) -> bool {
    let was_there = seen.entry(ordinal).is_known_and(|entry| entry.pod.as_ref() == Some(&pod.handle.uid));
    was_there || !matches!(pod.phase, PodPhase::Waiting | PodPhase::Pending(_))
}

/// How far the survivor's pod is from being recreated.
enum Anew {
    /// It is its cluster's only member.
    Serves,
    /// This pod may have begun by the entry before.
    Before(Uid),
    /// Whether a cluster was made of its data has to be seen, or was: the recovery goes on in that phase.
    Shows(RecoveryPhase),
    /// It has not come up yet.
    Incomplete(Vec<Action>),
}

/// Whether the survivor has come up as the member that it was and stays so: it read its entry late.
fn is_not_alone(cluster: &ClusterState, survivor: Ordinal) -> bool {
    cluster.membership().is_none()
        && cluster.status(survivor).is_some()
        && cluster.seen.last_membership.is_known_and(|list| list.members.len() > 1)
        && cluster.seen.health_age.is_past()
}

/// Recreates the survivor's pod for `purpose`. The pod that is there once the entry is written is recorded and deleted:
/// whatever comes after it has read the entry. It runs the version that the survivor ran, whatever was asked for when
/// the quorum was lost, and for the rest is made from what is asked for now: what keeps it from starting can be put
/// right.
fn started_anew(cluster: &ClusterState, survivor: Ordinal, recovery: &Recovery, purpose: Purpose) -> Anew {
    let Fact::Known(entry) = cluster.seen.entry(survivor) else { return Anew::Incomplete(Vec::new()) };
    let Some(set) = cluster.stateful_set() else { return Anew::Incomplete(Vec::new()) };
    let version = cluster.status(survivor).map_or(set.template.version, |status| status.version);
    // Without the certificates it is not known what is asked for.
    let asked = if cluster.seen.certificates.is_usable() { cluster.desired.template } else { set.template };
    if let Some(apply) = cluster.apply_stateful_set(set.replicas, Template { version, ..asked }) {
        return Anew::Incomplete(vec![apply]);
    }
    if entry.purpose != purpose {
        let (guard, turned) = match purpose {
            Purpose::Force => (our_guard(cluster, set), entry.forced(recovery.raft_index)),
            other => (None, entry.turned(other)),
        };
        return Anew::Incomplete(guard.into_iter().chain(cluster.write_entry(survivor, turned)).collect());
    }
    let Some(pod) = cluster.pod(survivor).filter(|pod| !pod.is_deleting) else {
        return Anew::Incomplete(Vec::new());
    };
    let is_outdated = pod.template != set.template && cluster.status(survivor).is_none();
    let delete = || Vec::from_iter(cluster.delete_pod(survivor, pod, None));
    match &recovery.pod {
        None => Anew::Before(pod.handle.uid.clone()),
        Some(before) if is_outdated || *before == pod.handle.uid => Anew::Incomplete(delete()),
        Some(_) if is_not_alone(cluster, survivor) => match purpose {
            // The pod that was named has not made a cluster of the data: the next one may.
            Purpose::Force if entry.pod.is_some() => {
                let unnamed = cluster.write_entry(survivor, entry.forced(recovery.raft_index));
                Anew::Incomplete(unnamed.into_iter().chain(delete()).collect())
            }
            Purpose::Force => Anew::Incomplete(delete()),
            _ => Anew::Shows(RecoveryPhase::Forcing),
        },
        Some(_) if cluster.member_count() == 1 && cluster.is_healthy(survivor) => Anew::Serves,
        Some(_) if waits_after_another(entry, pod) => Anew::Shows(RecoveryPhase::Clearing),
        Some(_) => Anew::Incomplete(Vec::from_iter(named(cluster, survivor, entry, pod))),
    }
}

/// Whether the pod that was named is gone before it was known to serve. It may have made a cluster of the data, and
/// have acknowledged writes since: etcd would drop the last ones if it made another one. Started as the member that it
/// is, it shows whether it is alone.
fn waits_after_another(entry: &ConfigEntry, pod: &Pod) -> bool {
    let is_other = entry.pod.as_ref().is_some_and(|named| *named != pod.handle.uid);
    entry.purpose == Purpose::Force && pod.phase == PodPhase::Waiting && is_other
}

/// The StatefulSet with the guard of this release, whose copy is relied on. Once, with the entry, and not until it is
/// so: another client may write another image there.
fn our_guard(cluster: &ClusterState, set: &StatefulSet) -> Option<Action> {
    let StatefulSet { handle, replicas, template, .. } = set.clone();
    let is_due = !set.has_our_guard && cluster.seen.certificates.is_usable();
    is_due.then_some(Action::ApplyStatefulSet { found: Some(handle), from: replicas, replicas, template })
}

/// Names the pod that may make a cluster of the data, once it waits for that.
fn named(cluster: &ClusterState, survivor: Ordinal, entry: &ConfigEntry, pod: &Pod) -> Option<Action> {
    let volume = cluster.seen.volume(survivor).found()?;
    let is_due = entry.purpose == Purpose::Force
        && pod.phase == PodPhase::Waiting
        && volume.handle.uid == entry.volume
        && entry.pod.is_none();
    let named = ConfigEntry { template: pod.template, pod: Some(pod.handle.uid.clone()), ..entry.clone() };
    if is_due { cluster.write_entry(survivor, named) } else { None }
}
