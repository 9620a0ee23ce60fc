//! A lost quorum, brought back from one member because a person asked for it. Pure.
//!
//! Guarantees: nothing happens without a request; a request acts at most once, and not at all while there is a quorum;
//! every other member is stopped, its volume kept, before the survivor makes a cluster of its own; which entry of the
//! log was kept is recorded first; a survivor whose data end with its pod is left as it is.

use std::collections::BTreeMap;

use super::decision::Decision;
use super::view::{View, quorum};
use crate::controllers::etcdcluster::effect::Effect;
use crate::controllers::etcdcluster::observation::{
    Fact, Membership, Ordinal, Pod, PodPhase, Purpose, Recovery, RecoveryPhase, RecoveryRequest, Uid,
};

/// Whether fewer voters than a majority have answered for longer than the grace period.
pub fn is_quorum_lost(view: &View) -> bool {
    let is_counted = |purpose: Purpose| !purpose.is_stopped();
    let voters: Vec<Ordinal> = match &view.seen.last_membership {
        Fact::Known(Membership { members, .. }) => {
            members.iter().filter(|member| !member.is_learner).filter_map(|member| member.ordinal).collect()
        }
        Fact::Absent | Fact::Unknown => {
            let told = view.seen.entries().filter(|(_, entry)| is_counted(entry.purpose));
            told.map(|(ordinal, _)| ordinal).collect()
        }
    };
    let answers = voters.iter().filter(|ordinal| view.status(**ordinal).is_some()).count();
    view.cluster_id().is_some()
        && view.membership().is_none()
        && view.seen.quorum_loss_age.is_past()
        && answers < quorum(voters.len())
}

/// Carries a requested recovery on, or consumes a request that came to nothing.
pub fn recover(view: &View) -> Option<Decision> {
    let recorded = view.seen.record.recovery.as_ref();
    if let Some(recovery) = recorded.filter(|recovery| recovery.phase.is_active()) {
        return Some(advance(view, recovery));
    }
    let request = view.desired.recovery.as_ref()?;
    if recorded.is_some_and(|recovery| recovery.token == request.token) {
        return None;
    }
    if view.membership().is_some() {
        let recovery = Recovery {
            token: request.token.clone(),
            survivor: None,
            raft_index: 0,
            phase: RecoveryPhase::Cancelled,
            pod: None,
        };
        return Some(Decision::recover(view, recovery, None));
    }
    if is_quorum_lost(view) && !view.desired.is_in_memory { choose(view, request) } else { None }
}

/// Whether what is asked for would drop the last data: the survivor has to be started anew, and data in memory end with
/// their pod.
pub fn drops_data(view: &View) -> bool {
    let recorded = view.seen.record.recovery.as_ref().map(|recovery| &recovery.token);
    let request = view.desired.recovery.as_ref().map(|request| &request.token);
    view.desired.is_in_memory && request.is_some() && request != recorded && is_quorum_lost(view)
}

/// Chooses the survivor: the one that was named, or the one whose log is committed furthest.
fn choose(view: &View, request: &RecoveryRequest) -> Option<Decision> {
    let candidates = view.seen.answers().filter(|(ordinal, status)| {
        let is_named = request.survivor.is_none_or(|named| named == *ordinal);
        is_named
            && !status.is_learner
            && view.seen.entry(*ordinal).is_known_and(|entry| entry.purpose == Purpose::Run)
    });
    let furthest =
        candidates.max_by_key(|(ordinal, status)| (status.raft_index, std::cmp::Reverse(*ordinal)));
    let (survivor, status) = furthest?;
    let recovery = Recovery {
        token: request.token.clone(),
        survivor: Some(survivor),
        raft_index: status.raft_index,
        phase: RecoveryPhase::Fencing,
        pod: None,
    };
    Some(Decision::recover(view, recovery, None))
}

fn advance(view: &View, recovery: &Recovery) -> Decision {
    let Some(survivor) = recovery.survivor else { return Decision::wait(view) };
    let stay = |effects: Vec<Effect>| Decision::recover(view, recovery.clone(), effects);
    let turn = |phase| Decision::recover(view, Recovery { phase, pod: None, ..recovery.clone() }, None);
    let start = |purpose, next| match started_anew(view, survivor, recovery, purpose) {
        Anew::Serves => turn(next),
        Anew::Before(pod) => Decision::recover(view, Recovery { pod: Some(pod), ..recovery.clone() }, None),
        Anew::Incomplete(effects) => stay(effects),
    };
    match recovery.phase {
        RecoveryPhase::Fencing | RecoveryPhase::Snapshotting if view.membership().is_some() => {
            turn(RecoveryPhase::Cancelled)
        }
        RecoveryPhase::Fencing => match fence(view, survivor) {
            Fence::Standing => turn(RecoveryPhase::Snapshotting),
            Fence::Incomplete(effects) => stay(effects),
        },
        RecoveryPhase::Snapshotting if view.seen.survivor_snapshot.is_known_and(|()| true) => {
            turn(RecoveryPhase::Forcing)
        }
        RecoveryPhase::Snapshotting => stay(Vec::from_iter(snapshot(view, survivor))),
        RecoveryPhase::Forcing => start(Purpose::Force, RecoveryPhase::Clearing),
        RecoveryPhase::Clearing => start(Purpose::Run, RecoveryPhase::Done),
        RecoveryPhase::Done | RecoveryPhase::Cancelled => Decision::wait(view),
    }
}

/// Whether all other members are stopped.
enum Fence {
    Standing,
    Incomplete(Vec<Effect>),
}

fn fence(view: &View, survivor: Ordinal) -> Fence {
    if !matches!(view.seen.config, Fact::Known(_)) || view.seen.pods.is_unknown() {
        return Fence::Incomplete(Vec::new());
    }
    let others = || view.seen.entries().filter(|(ordinal, _)| *ordinal != survivor);
    let untold: BTreeMap<_, _> = others()
        .filter(|(_, entry)| !entry.purpose.is_stopped())
        .map(|(ordinal, entry)| (ordinal, entry.turned(Purpose::SetAside)))
        .collect();
    if !untold.is_empty() {
        return Fence::Incomplete(Vec::from_iter(view.write_config(untold)));
    }
    // A pod that waits or is pending has not read its entry yet, and will not get past it.
    let runs = |pod: &Pod| pod.is_deleting || !matches!(pod.phase, PodPhase::Waiting | PodPhase::Pending(_));
    let running = view.seen.pods.elements().filter(|(ordinal, pod)| *ordinal != survivor && runs(pod));
    let mut running: Vec<_> = running.collect();
    running.sort_by_key(|(ordinal, pod)| (pod.is_deleting, *ordinal));
    if let Some((ordinal, pod)) = running.first() {
        let delete = Effect::DeletePod { pod: pod.handle.clone(), ordinal: *ordinal };
        return Fence::Incomplete(Vec::from_iter((!pod.is_deleting).then_some(delete)));
    }
    let answers = view.seen.answers().any(|(ordinal, _)| ordinal != survivor);
    if answers { Fence::Incomplete(Vec::new()) } else { Fence::Standing }
}

fn snapshot(view: &View, survivor: Ordinal) -> Option<Effect> {
    let status = view.status(survivor)?;
    let cluster_id = view.cluster_id()?;
    view.seen.survivor_snapshot.is_absent().then_some(Effect::SnapshotSurvivor {
        cluster_id,
        member: status.member_id,
        ordinal: survivor,
    })
}

/// How far the survivor's pod is from being made anew.
enum Anew {
    /// It is its cluster's only member.
    Serves,
    /// This pod may have begun by the entry before.
    Before(Uid),
    /// It has not come up yet.
    Incomplete(Vec<Effect>),
}

/// Makes the survivor's pod anew for `purpose`. The pod that is there once the entry is written is recorded and
/// deleted: whatever comes after it has read the entry.
fn started_anew(view: &View, survivor: Ordinal, recovery: &Recovery, purpose: Purpose) -> Anew {
    let Fact::Known(entry) = view.seen.entry(survivor) else { return Anew::Incomplete(Vec::new()) };
    if entry.purpose != purpose {
        return Anew::Incomplete(Vec::from_iter(view.write_entry(survivor, entry.turned(purpose))));
    }
    let Some(pod) = view.pod(survivor).filter(|pod| !pod.is_deleting) else {
        return Anew::Incomplete(Vec::new());
    };
    match &recovery.pod {
        None => Anew::Before(pod.handle.uid.clone()),
        Some(before) if *before == pod.handle.uid => {
            let delete = Effect::DeletePod { pod: pod.handle.clone(), ordinal: survivor };
            Anew::Incomplete(vec![delete])
        }
        Some(_) if view.member_count() == 1 && view.is_healthy(survivor) => Anew::Serves,
        Some(_) => Anew::Incomplete(Vec::new()),
    }
}
