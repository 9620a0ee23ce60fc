//! An object that is being deleted: pods stop, volumes go or stay as the spec says, the object is let go. No member is
//! removed from etcd, so that volumes that stay are a whole cluster. Pure.

use super::decision::Decision;
use super::view::View;
use crate::kinds::etcdcluster::effect::Effect;
use crate::kinds::etcdcluster::observation::{Fact, Owner};

/// Lets the object go. What could not be read is waited for.
pub fn leave(view: &View) -> Option<Decision> {
    if !view.desired.is_deleting {
        return None;
    }
    let wait = || Some(Decision::wait(view));
    if !view.seen.has_finalizer || view.desired.is_protected {
        return wait();
    }
    match &view.seen.stateful_set {
        Fact::Unknown => return wait(),
        Fact::Known(set) if set.owner == Owner::Ours && set.replicas > 0 => {
            return Decision::act(view, view.apply_stateful_set(0, set.template));
        }
        Fact::Known(_) | Fact::Absent => {}
    }
    if view.seen.pods.is_unknown() {
        return wait();
    }
    if let Some((ordinal, pod)) = view.seen.pods.elements().find(|(_, pod)| pod.owner == Owner::Ours) {
        // Without its StatefulSet nobody else deletes it.
        let orphan = view.seen.stateful_set.is_absent() && !pod.is_deleting;
        let delete = orphan.then(|| Effect::DeletePod { pod: pod.handle.clone(), ordinal, only_if: None });
        return Decision::act(view, delete).or_else(wait);
    }
    if view.desired.deletes_volumes && !view.desired.is_in_memory {
        if view.seen.volumes.is_unknown() {
            return wait();
        }
        let mut ours = view.seen.volumes.elements().filter(|(_, volume)| volume.owner == Owner::Ours);
        if let Some((ordinal, volume)) = ours.next() {
            let rest = std::iter::once((ordinal, volume)).chain(ours);
            let delete = rest.filter(|(_, volume)| !volume.is_deleting).map(|(ordinal, volume)| {
                Effect::DeleteVolume {
                    volume: volume.handle.clone(),
                    ordinal,
                    membership: None,
                    keeps_data: false,
                }
            });
            return Decision::act(view, delete.take(1)).or_else(wait);
        }
    }
    Decision::act(view, [Effect::RemoveFinalizer])
}
