//! When nothing may be done: what must not be touched, and what cannot be touched now. Pure.

use std::collections::BTreeMap;

use super::alarms;
use super::cluster_state::ClusterState;
use super::decision::{Decision, Wake};
use crate::kinds::etcdcluster::observation::{Fact, Found, Observation, Ordinal, Owner, Pod};

/// Work rests because the spec says so.
pub fn paused(cluster: &ClusterState) -> Option<Decision> {
    cluster.desired.is_paused.then(|| Decision { wake: Wake::Later, ..Decision::wait(cluster) })
}

/// An object of one of our names belongs to another owner: it is never adopted, and nothing is built beside it.
pub fn blocked(cluster: &ClusterState) -> Option<Decision> {
    is_name_taken(cluster.seen).then(|| Decision { wake: Wake::Later, ..Decision::wait(cluster) })
}

/// Whether an object of one of our names belongs to another owner.
pub fn is_name_taken(seen: &Observation) -> bool {
    let foreign = |owner: &Owner| *owner == Owner::Foreign;
    seen.services.is_known_and(|found| *found == Found::Foreign)
        || seen.stateful_set.is_known_and(|set| foreign(&set.owner))
        || seen.config.is_known_and(|config| foreign(&config.owner))
        || seen.budget.is_known_and(|budget| foreign(&budget.owner))
        || seen.pods.elements().any(|(_, pod)| foreign(&pod.owner))
}

/// The first of our pods that has a volume of another owner, or of a cluster of this name that was there before. No
/// member is made on it; others go on.
pub fn taken_volume(seen: &Observation) -> Option<Ordinal> {
    let mut volumes = seen.volumes.elements().filter(|(_, volume)| volume.owner == Owner::Foreign);
    volumes.find(|(ordinal, _)| seen.pod(*ordinal).known().is_some()).map(|(ordinal, _)| ordinal)
}

/// No members are asked for: all pods stop, the data and what is known of the members stay. Nothing is stopped while a
/// pod is all that holds the claim of a member.
pub fn stopped(cluster: &ClusterState) -> Option<Decision> {
    if !is_asked_to_stop(cluster) {
        return None;
    }
    if cluster.held_claims().next().is_some() {
        return Some(Decision::wait(cluster));
    }
    let stop = cluster.stateful_set().and_then(|set| cluster.apply_stateful_set(0, set.template));
    let is_gone = |pods: &BTreeMap<Ordinal, Pod>| !pods.values().any(|pod| pod.owner == Owner::Ours);
    Decision::act(cluster, stop).or_else(|| {
        let rests = !cluster.seen.stateful_set.is_unknown() && cluster.seen.pods.is_known_and(is_gone);
        Some(if rests { Decision::settled(cluster) } else { Decision::wait(cluster) })
    })
}

/// Whether no members are asked for. In memory there is no data to keep: such a stop is refused.
pub fn is_asked_to_stop(cluster: &ClusterState) -> bool {
    let drops_data = cluster.desired.is_in_memory && cluster.cluster_id().is_some();
    cluster.desired.is_valid && cluster.desired.replicas == 0 && !drops_data
}

/// A member answers as one of another etcd cluster: a person has to look.
pub fn mismatched(cluster: &ClusterState) -> Option<Decision> {
    is_mismatched(cluster.seen).then(|| Decision { wake: Wake::Later, ..Decision::wait(cluster) })
}

/// Whether anything answers as another etcd cluster than the recorded one.
pub fn is_mismatched(seen: &Observation) -> bool {
    let Some(recorded) = seen.record.cluster_id else { return false };
    let lists = matches!(&seen.membership, Fact::Known(membership) if membership.cluster_id != recorded);
    lists || seen.answers().any(|(_, status)| status.cluster_id != recorded)
}

/// The gate would have refused the spec: restarts aside, members are left as they are.
pub fn invalid(cluster: &ClusterState) -> Option<Decision> {
    (!cluster.desired.is_valid).then(|| Decision { wake: Wake::Later, ..Decision::wait(cluster) })
}

/// A member that starts now would not be taken by the others: none is added, and none is removed that another one would
/// have to follow.
pub fn uncertified(cluster: &ClusterState) -> Option<Decision> {
    let is_usable = cluster.seen.certificates.is_usable();
    (!is_usable).then(|| alarms::no_space(cluster).unwrap_or_else(|| Decision::wait(cluster)))
}

/// The members are not known: nothing that depends on who they are can be decided.
pub fn without_quorum(cluster: &ClusterState) -> Option<Decision> {
    cluster.membership().is_none().then(|| Decision::wait(cluster))
}
