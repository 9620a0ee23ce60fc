//! The StatefulSet that makes the pods and their claims.
//!
//! All pods start at once, for members that run need each other; none is recreated because the template changed, for
//! when that is done hangs on the members. A claim outlives its pod, whatever becomes of the StatefulSet.

use k8s_openapi::api::apps::v1::{
    StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec, StatefulSetUpdateStrategy,
};
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::{metadata, pod};
use crate::controllers::manifest::{Manifest, pairs};
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{Role, Template};
use crate::kinds::etcdcluster::spec::Spec;

/// The StatefulSet that keeps `replicas` pods made from `template`, whose guard is of `guard_image`: to be made.
/// `labels_voters`: see [`label_voters`].
#[must_use]
pub fn manifest(
    spec: &Spec,
    template: &Template,
    replicas: u32,
    guard_image: &str,
    labels_voters: bool,
) -> Manifest {
    let mut set = built(spec, template, replicas, guard_image);
    label_voters(&mut set, labels_voters);
    stamped(&set, set.clone())
}

/// The same over one that is there. Immutable fields stay as they are; so does what pods are made from, where that is
/// to be another template than that of `revision`, which the spec has now. The stamp is computed from the manifest of a new
/// StatefulSet: the fields taken from `live` contain defaults of the API server.
#[must_use]
pub fn over(
    live: &StatefulSet,
    spec: &Spec,
    (template, replicas): (&Template, u32),
    guard_image: &str,
    revision: u64,
    labels_voters: bool,
) -> Manifest {
    let mut set = built(spec, template, replicas, guard_image);
    label_voters(&mut set, labels_voters);
    let new = set.clone();
    if let (Some(wanted), Some(live)) = (&mut set.spec, live.spec.clone()) {
        wanted.selector = live.selector;
        wanted.service_name = live.service_name;
        wanted.pod_management_policy = live.pod_management_policy;
        wanted.volume_claim_templates = live.volume_claim_templates;
        if template.revision != revision {
            wanted.template = live.template;
        }
    }
    label_voters(&mut set, labels_voters);
    stamped(&set, new)
}

/// The manifest of `set` with the stamp of a `new` one, without the claims: a larger volume changes them, and no
/// StatefulSet that is there.
fn stamped(set: &StatefulSet, mut new: StatefulSet) -> Manifest {
    if let Some(spec) = &mut new.spec {
        spec.volume_claim_templates = None;
    }
    let new = Manifest::of(&new).stamped();
    Manifest::of(set).with_stamp(new.stamp().unwrap_or_default())
}

/// Has pods come up with the label of a voter, by which Service and PodDisruptionBudget select: a member that comes back
/// on its volume is found whether or not gatehouse runs. Not before clients may come in. A pod is not made again for it:
/// its template is named by [`names::TEMPLATE`], which stays the same.
fn label_voters(set: &mut StatefulSet, labels_voters: bool) {
    let Some(spec) = set.spec.as_mut().filter(|_| labels_voters) else { return };
    let labels = spec.template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.extend(pairs([(names::ROLE, names::role_text(Role::Voter))]));
}

/// What a StatefulSet, or a pod, was made from, by its annotations.
#[must_use]
pub fn template_of(metadata: &ObjectMeta) -> Option<Template> {
    names::template_of(metadata.annotations.as_ref()?.get(names::TEMPLATE)?)
}

fn built(spec: &Spec, template: &Template, replicas: u32, guard_image: &str) -> StatefulSet {
    let retain = || Some("Retain".to_owned());
    let claims = (!spec.storage.is_in_memory).then(|| vec![claim(spec)]);
    StatefulSet {
        metadata: metadata(spec, spec.name().to_owned()),
        spec: Some(StatefulSetSpec {
            replicas: Some(i32::try_from(replicas).unwrap_or(i32::MAX)),
            selector: LabelSelector {
                match_labels: Some(names::labels(spec.name())),
                match_expressions: None,
            },
            service_name: Some(spec.name().to_owned()),
            pod_management_policy: Some("Parallel".to_owned()),
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some("OnDelete".to_owned()),
                rolling_update: None,
            }),
            persistent_volume_claim_retention_policy: Some(StatefulSetPersistentVolumeClaimRetentionPolicy {
                when_deleted: retain(),
                when_scaled: retain(),
            }),
            template: pod::template(spec, template, guard_image),
            volume_claim_templates: claims,
            ..StatefulSetSpec::default()
        }),
        status: None,
    }
}

/// The claim of a member, with the uid of its cluster: one of an earlier cluster is recognised by it.
fn claim(spec: &Spec) -> PersistentVolumeClaim {
    let size = Quantity(spec.storage.size.to_string());
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(names::DATA.to_owned()),
            labels: Some(names::labels(spec.name())),
            annotations: Some(pairs([(names::CLUSTER, spec.uid())])),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            storage_class_name: spec.storage.class.clone(),
            volume_mode: Some("Filesystem".to_owned()),
            resources: Some(VolumeResourceRequirements {
                requests: Some([("storage".to_owned(), size)].into()),
                ..VolumeResourceRequirements::default()
            }),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}

#[cfg(test)]
mod tests;
