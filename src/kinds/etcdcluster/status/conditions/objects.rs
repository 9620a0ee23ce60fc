//! What conditions say of objects by their names. Pure.

use super::super::messages;
use super::Facts;
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{Fact, Found, Owner};
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
        let growing = self.seen.volumes.elements().filter(|(_, volume)| {
            let is_smaller = volume.capacity.is_some_and(|capacity| capacity < volume.size);
            volume.owner == Owner::Ours && !volume.is_deleting && is_smaller
        });
        let claims: Vec<_> = growing.map(|(ordinal, _)| names::claim(self.name, ordinal)).collect();
        let verb = if claims.len() == 1 { "has" } else { "have" };
        (!claims.is_empty())
            .then(|| format!("{} {verb} not grown to storage.size yet", messages::listed(&claims)))
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
