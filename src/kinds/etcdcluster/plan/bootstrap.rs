//! The first member, made once: a seed on an empty volume, until the identity of its cluster is recorded. Pure.
//!
//! Guarantees: a seed is written only while no cluster is recorded; by then its entry says that its data must be there.
//! Until then no pod is labelled a voter, so that no client has written through the Service: a seed whose data were
//! lost may begin again. Where more than a first member was ever made, a record that is gone is read again from etcd.

use std::collections::BTreeMap;

use super::cluster_state::{ClusterState, fails_on_data};
use super::decision::Decision;
use super::housekeeping;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::observation::{
    ConfigEntry, Fact, OperationKind, Ordinal, Owner, Phase, PodPhase, Purpose, Record, Target, Template,
};

/// Where the first member lives.
const SEED: Ordinal = Ordinal(0);

/// Makes the first member and records its cluster.
pub fn first_member(cluster: &ClusterState) -> Option<Decision> {
    if cluster.cluster_id().is_some() {
        return None;
    }
    if has_members(cluster) {
        return adopt(cluster);
    }
    if !cluster.desired.is_valid || cluster.desired.replicas == 0 {
        return Some(Decision::wait(cluster));
    }
    let decide = |phase, action: Option<Action>| {
        let bootstrap = (OperationKind::Bootstrap, Target::Member(SEED), phase);
        Some(Decision::operate(cluster, bootstrap, action))
    };
    if let Some(action) = prepare(cluster) {
        return decide(Phase::Preparing, Some(action));
    }
    if !cluster.seen.certificates.is_usable() {
        return decide(Phase::Preparing, None);
    }
    if let Some(action) = start(cluster) {
        return decide(Phase::Joining, Some(action));
    }
    record(cluster).or_else(|| decide(Phase::Joining, None))
}

/// Whether there are members already: more than the first one was made, or clients were let in, which comes after its
/// cluster is recorded. The record was lost.
fn has_members(cluster: &ClusterState) -> bool {
    cluster.seen.entries().any(|(ordinal, _)| ordinal != SEED)
        || cluster.stateful_set().is_some_and(|set| set.replicas > 1 || set.labels_voters)
}

/// Records the cluster again that our pods are. Until one answers they are started, and nothing else.
fn adopt(cluster: &ClusterState) -> Option<Decision> {
    let membership = cluster.seen.membership.known()?;
    let record = Record { cluster_id: Some(membership.cluster_id), ..cluster.seen.record.clone() };
    Some(Decision { record, ..Decision::wait(cluster) })
}

/// What comes before the pod. Services that the API server refuses are tried again after everything else: a
/// StatefulSet or a ConfigMap that is deleted meanwhile is made again without them.
fn prepare(cluster: &ClusterState) -> Option<Action> {
    if cluster.needs_finalizer() {
        return Some(Action::AddFinalizer);
    }
    housekeeping::apply_services(cluster).filter(|_| !cluster.seen.refusals.services)
}

/// What the pod is made from: what is asked for, or what the StatefulSet has while the API server refuses that.
fn template(cluster: &ClusterState) -> Template {
    let wanted = cluster.desired.template;
    let set = cluster.stateful_set().filter(|_| cluster.seen.refusals.template == Some(wanted));
    set.map_or(wanted, |set| set.template)
}

/// The pod, and its entry.
fn start(cluster: &ClusterState) -> Option<Action> {
    let template = template(cluster);
    if let Some(action) = cluster.apply_stateful_set(1, template) {
        return Some(action);
    }
    let outdated = cluster.pod(SEED).filter(|pod| pod.template != template && cluster.status(SEED).is_none());
    if let Some(pod) = outdated.filter(|pod| !pod.is_deleting) {
        return Some(Action::DeletePod { pod: pod.handle.clone(), ordinal: SEED, precondition: None });
    }
    if cluster.pod(SEED).is_some_and(fails_on_data) || is_stillborn(cluster) {
        return wipe(cluster);
    }
    if !may_begin(cluster) {
        return None;
    }
    let wanted = cluster.entry_for(SEED, Purpose::Seed, template)?;
    let is_told = match cluster.seen.entry(SEED) {
        Fact::Known(entry) => {
            let is_for_pod = entry.purpose == Purpose::Run || entry.pod == wanted.pod;
            entry.volume == wanted.volume && entry.template == wanted.template && is_for_pod
        }
        Fact::Absent => false,
        Fact::Unknown => true,
    };
    let is_altered = cluster.seen.config.is_known_and(|config| config.is_altered);
    let altered = cluster.seen.entry(SEED).found().filter(|_| is_altered);
    match altered {
        Some(entry) if is_told => seed(cluster, entry.clone()),
        _ if is_told => settle(cluster),
        _ => seed(cluster, wanted),
    }
}

/// Whether an entry is of use to the pod: it has not ended for good, and where several before it ended at once, its guard
/// runs. A node that evicts each pod costs no write for each.
fn may_begin(cluster: &ClusterState) -> bool {
    let is_rejected = cluster.seen.hindered.rejected.contains(&SEED);
    cluster.pod(SEED).is_none_or(|pod| match pod.phase {
        PodPhase::Terminal(_) => false,
        PodPhase::Pending(_) => !is_rejected,
        PodPhase::Waiting | PodPhase::Starting | PodPhase::Up | PodPhase::Failing(_) => true,
    })
}

fn seed(cluster: &ClusterState, entry: ConfigEntry) -> Option<Action> {
    match cluster.write_config(BTreeMap::from([(SEED, entry)]))? {
        Action::WriteConfig { found, entries, .. } => {
            Some(Action::WriteConfig { found, entries, initial_cluster: vec![SEED] })
        }
        other => Some(other),
    }
}

/// Whether the seed serves and has never led. One that dies before the first entries of its log are written finds a log
/// without members, and waits for a leader for ever.
fn is_stillborn(cluster: &ClusterState) -> bool {
    let is_seed = cluster.seen.entry(SEED).is_known_and(|entry| entry.purpose == Purpose::Seed);
    let is_led = cluster.status(SEED).is_none_or(|status| status.leader.is_some());
    is_seed && !is_led && cluster.seen.operation_age.is_past() && cluster.seen.health_age.is_past()
}

/// A seed whose data are beyond use, before its cluster was recorded: it begins again.
fn wipe(cluster: &ClusterState) -> Option<Action> {
    let volume = cluster.seen.volume(SEED).found();
    if volume.is_some_and(|volume| volume.is_set_aside || volume.owner != Owner::Ours) {
        return None;
    }
    if let Some(volume) = volume.filter(|volume| !volume.is_deleting && !cluster.desired.is_in_memory) {
        return Some(Action::DeleteVolume {
            volume: volume.handle.clone(),
            ordinal: SEED,
            membership: None,
            keeps_data: false,
        });
    }
    // The next pod would read the same entry, and fail on it again. As a seed no other pod begins.
    if cluster.seen.entry(SEED).is_known_and(|entry| entry.purpose == Purpose::Run) {
        let config = cluster.seen.config.known()?;
        return Some(Action::WithdrawConfig { found: config.handle.clone(), ordinal: SEED });
    }
    let pod = cluster.pod(SEED).filter(|pod| !pod.is_deleting)?;
    Some(Action::DeletePod { pod: pod.handle.clone(), ordinal: SEED, precondition: None })
}

/// The seed serves: from now on its data must be there.
fn settle(cluster: &ClusterState) -> Option<Action> {
    let status = cluster.status(SEED).filter(|status| status.leader.is_some())?;
    let entry = cluster.seen.entry(SEED).found()?;
    if entry.purpose == Purpose::Run && entry.member == Some(status.member_id) {
        return None;
    }
    let entry = ConfigEntry { member: Some(status.member_id), ..entry.turned(Purpose::Run) };
    cluster.write_entry(SEED, entry)
}

/// Its cluster is recorded.
fn record(cluster: &ClusterState) -> Option<Decision> {
    let status = cluster.status(SEED).filter(|status| status.leader.is_some())?;
    let entry = cluster.seen.entry(SEED).found()?;
    let is_settled = entry.purpose == Purpose::Run && entry.member == Some(status.member_id);
    let record = Record { cluster_id: Some(status.cluster_id), ..cluster.seen.record.clone() };
    is_settled.then(|| Decision { record, ..Decision::wait(cluster) })
}
