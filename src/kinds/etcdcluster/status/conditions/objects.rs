//! Messages of conditions about objects that they name. Pure.

use super::super::messages;
use super::Facts;
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{Fact, Found, GrowthHindrance, Owner, Volume};
use crate::kinds::etcdcluster::plan::fixed_volumes;

impl Facts<'_> {
    /// What stands where something is to be made.
    pub(super) fn taken(&self) -> String {
        let foreign = |owner: Option<Owner>| owner == Some(Owner::Foreign);
        let seen = self.seen;
        let mut taken = vec![
            (foreign(seen.stateful_set.known().map(|set| set.owner)), format!("StatefulSet {}", self.name)),
            (seen.services == Fact::Known(Found::Foreign), format!("a Service of {}", self.name)),
            (
                foreign(seen.config.known().map(|config| config.owner)),
                format!("ConfigMap {}", names::config(self.name)),
            ),
            (
                foreign(seen.budget.known().map(|budget| budget.owner)),
                format!("PodDisruptionBudget {}", self.name),
            ),
        ];
        let pods = seen.pods.elements();
        taken.extend(pods.map(|(ordinal, pod)| {
            (foreign(Some(pod.owner)), format!("Pod {}", names::member(self.name, ordinal)))
        }));
        let volumes = seen.volumes.elements();
        taken.extend(volumes.map(|(ordinal, volume)| {
            let claim = format!("PersistentVolumeClaim {}", names::claim(self.name, ordinal));
            (foreign(Some(volume.owner)), claim)
        }));
        let taken: Vec<_> =
            taken.into_iter().filter_map(|(is_taken, what)| is_taken.then_some(what)).collect();
        messages::listed(&taken)
    }

    /// Claims that were asked to grow and have not: what drives them does so by itself, and some of it not before the pod is
    /// started again.
    pub(super) fn growing_volumes(&self) -> Option<String> {
        let growing =
            self.seen.volumes.elements().filter(|(_, volume)| {
                volume.owner == Owner::Ours && !volume.is_deleting && volume.is_growing()
            });
        let growing: Vec<_> = growing.collect();
        let claims = |is_meant: &dyn Fn(&Volume) -> bool| {
            let meant = growing.iter().filter(|(_, volume)| is_meant(volume));
            meant.map(|(ordinal, _)| names::claim(self.name, *ordinal)).collect::<Vec<_>>()
        };
        let all = claims(&|_| true);
        let verb = if all.len() == 1 { "has" } else { "have" };
        let mut said = format!("{} {verb} not grown to storage.size yet", messages::listed(&all));
        for (hindrance, why) in [
            (
                GrowthHindrance::FileSystem,
                "the file system grows on the node, or when the pod is started again",
            ),
            (GrowthHindrance::Error, "what drives the volume reports an error: see its events"),
        ] {
            let hindered = claims(&|volume| volume.hindrance == Some(hindrance));
            if !hindered.is_empty() {
                said = format!("{said}; of {}, {why}", messages::listed(&hindered));
            }
        }
        (!all.is_empty()).then_some(said)
    }

    /// Claims that are smaller than the spec asks for, and cannot grow.
    pub(super) fn fixed_volumes(&self) -> String {
        let size = self.spec.storage.size.bytes().unwrap_or_default();
        let members = fixed_volumes(size, self.seen);
        let claims: Vec<_> = members.map(|ordinal| names::claim(self.name, ordinal)).collect();
        let verb = if claims.len() == 1 { "stays" } else { "stay" };
        format!(
            "{} {verb} smaller than storage.size: the StorageClass lets no volume grow",
            messages::listed(&claims)
        )
    }
}
