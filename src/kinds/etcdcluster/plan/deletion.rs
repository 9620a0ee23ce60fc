//! An object that is being deleted: pods stop, volumes go or stay as the spec says, the object is let go. No member is
//! removed from etcd, so that volumes that stay are a whole cluster. Pure.

use super::cluster_state::ClusterState;
use super::decision::Decision;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::observation::{Fact, Owner};

/// Lets the object go. What could not be read is waited for.
pub fn leave(cluster: &ClusterState) -> Option<Decision> {
    if !cluster.desired.is_deleting {
        return None;
    }
    let wait = || Some(Decision::wait(cluster));
    if !cluster.seen.has_finalizer || cluster.desired.is_protected {
        return wait();
    }
    match &cluster.seen.stateful_set {
        Fact::Unknown => return wait(),
        Fact::Known(set) if set.owner == Owner::Ours && set.replicas > 0 => {
            return Decision::act(cluster, cluster.apply_stateful_set(0, set.template));
        }
        Fact::Known(_) | Fact::Absent => {}
    }
    if cluster.seen.pods.is_unknown() {
        return wait();
    }
    if let Some((ordinal, pod)) = cluster.seen.pods.elements().find(|(_, pod)| pod.owner == Owner::Ours) {
        // Without its StatefulSet nothing else deletes it.
        let orphan = cluster.seen.stateful_set.is_absent() && !pod.is_deleting;
        let delete =
            orphan.then(|| Action::DeletePod { pod: pod.handle.clone(), ordinal, precondition: None });
        return Decision::act(cluster, delete).or_else(wait);
    }
    if cluster.desired.deletes_volumes && !cluster.desired.is_in_memory {
        if cluster.seen.volumes.is_unknown() {
            return wait();
        }
        let mut ours = cluster.seen.volumes.elements().filter(|(_, volume)| volume.owner == Owner::Ours);
        if let Some((ordinal, volume)) = ours.next() {
            let rest = std::iter::once((ordinal, volume)).chain(ours);
            let delete = rest.filter(|(_, volume)| !volume.is_deleting).map(|(ordinal, volume)| {
                Action::DeleteVolume {
                    volume: volume.handle.clone(),
                    ordinal,
                    membership: None,
                    keeps_data: false,
                }
            });
            return Decision::act(cluster, delete.take(1)).or_else(wait);
        }
    }
    Decision::act(cluster, [Action::RemoveFinalizer])
}
