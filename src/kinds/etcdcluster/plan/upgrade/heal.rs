//! A pod that does not come up and has cost the quorum: one or two voters are rolled at that price. Pure.
//!
//! Guarantees: nothing happens before the quorum has been lost for its grace period, nor where data end with their pod;
//! no pod of a member that answers is touched; one in which etcd may run goes only once all that went before it are
//! back; no member is brought to another minor, nor to a higher patch.

use super::super::cluster_state::ClusterState;
use super::super::decision::Decision;
use super::super::recovery;
use super::{is_stuck, kind};
use crate::kinds::etcdcluster::actions::{Action, Precondition};
use crate::kinds::etcdcluster::observation::{
    ConfigEntry, Ordinal, Phase, Pod, PodPhase, Purpose, StatefulSet, Template,
};

/// Makes pods that do not come up from what is asked for by now. No member is left to report the member list: each gets
/// the entry it had before.
pub fn heal(cluster: &ClusterState) -> Option<Decision> {
    let set = cluster.stateful_set()?;
    let target = cluster.desired.template;
    let goes_up = target.version.minor != set.template.version.minor || target.version > set.template.version;
    let is_due = recovery::is_quorum_lost(cluster) && cluster.seen.certificates.is_usable();
    if !is_due || goes_up || cluster.desired.is_in_memory {
        return None;
    }
    let (kind, target_of) = kind(cluster, target);
    let operate =
        |phase, action: Option<Action>| Some(Decision::operate(cluster, (kind, target_of, phase), action));
    if set.template != target {
        let does_not_come_up = cluster.occupied().into_iter().any(|ordinal| is_down(cluster, set, ordinal));
        return does_not_come_up
            .then(|| operate(Phase::Preparing, cluster.apply_stateful_set(set.replicas, target)))
            .flatten();
    }
    let stuck = cluster.seen.pods.elements().filter(|(ordinal, pod)| {
        pod.template != target
            && !pod.is_deleting
            && cluster.status(*ordinal).is_none()
            && is_stuck(cluster, *ordinal, pod)
            && !(may_vote(pod) > 0 && is_one_awaited(cluster, target, pod))
    });
    let mut stuck: Vec<_> = stuck.collect();
    stuck.sort_by_key(|(ordinal, pod)| (may_vote(pod), *ordinal));
    let delete = |(ordinal, pod): (Ordinal, &Pod)| {
        Some((ordinal, cluster.delete_pod(ordinal, pod, Some(Precondition::QuorumLost))?))
    };
    let (ordinal, delete) = stuck.into_iter().find_map(delete)?;
    let entry = cluster.seen.entry(ordinal).found().filter(|entry| entry.purpose == Purpose::Run)?;
    let action = if entry.template == target {
        Some(delete)
    } else {
        cluster.write_entry(ordinal, ConfigEntry { template: target, ..entry.clone() })
    };
    operate(Phase::Rolling, action)
}

/// How likely a pod that does not answer votes all the same, and is part of a quorum that cannot be reached.
const fn may_vote(pod: &Pod) -> u8 {
    match pod.phase {
        PodPhase::Up => 2,
        PodPhase::Starting => 1,
        PodPhase::Pending(_) | PodPhase::Waiting | PodPhase::Failing(_) | PodPhase::Terminal(_) => 0,
    }
}

/// Whether a pod that may vote has to wait for another member: that one has been stopped for another template and is not
/// back yet, or does not run and this one does. Nothing waits for data that are gone.
fn is_one_awaited(cluster: &ClusterState, target: Template, pod: &Pod) -> bool {
    let comes = |other: &Pod| {
        let is_stopped = other.template == target || pod.phase == PodPhase::Up;
        other.is_deleting || (is_stopped && other.phase != PodPhase::Up)
    };
    let mut others = cluster.occupied().into_iter().filter(|ordinal| !cluster.has_lost_data(*ordinal));
    others.any(|ordinal| cluster.pod(ordinal).is_none_or(comes))
}

/// Whether a member does not come up as the StatefulSet has it now: its pod is stuck, or cannot be made.
fn is_down(cluster: &ClusterState, set: &StatefulSet, ordinal: Ordinal) -> bool {
    if cluster.status(ordinal).is_some() || cluster.seen.pods.is_unknown() {
        return false;
    }
    cluster.pod(ordinal).is_none_or(|pod| pod.template == set.template && is_stuck(cluster, ordinal, pod))
}
