//! Turns Kubernetes objects into facts of an observation. Pure.
//!
//! Guarantees: an object is taken for ours only by the uid that it names; a pod whose phase is unclear counts as
//! [`PodPhase::Starting`], see [`super::phase`].

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Amount;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::phase;
use crate::api::quantity::Quantity;
use crate::controllers::deviation::Deviation;
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{
    Age, Budget, Config, Fact, GrowthHindrance, Handle, Ordinal, Owner, Pod, ResourceVersion, Role,
    StatefulSet, Template, Uid, Version, Volume,
};
use crate::kinds::etcdcluster::resources::{budget as budgets, config as entries};
use crate::kinds::etcdcluster::spec::Spec;

/// The label of a PersistentVolume that is kept for the claim that it had.
pub const RETAINED: &str = "gatehouse.dev/retained";

/// What no pod is made from: of an object that does not say.
const NOTHING: Template = Template { version: Version::new(0, 0), revision: 0 };

/// An object as it was seen.
pub fn handle(metadata: &ObjectMeta) -> Handle {
    Handle {
        uid: Uid(metadata.uid.clone().unwrap_or_default()),
        resource_version: ResourceVersion(metadata.resource_version.clone().unwrap_or_default()),
    }
}

/// Whose an object is whose controller should be `uid`.
pub fn owner(metadata: &ObjectMeta, uid: &str) -> Owner {
    let mut owners = metadata.owner_references.iter().flatten();
    let is_ours = owners.any(|owner| owner.controller == Some(true) && owner.uid == uid);
    if is_ours { Owner::Ours } else { Owner::Foreign }
}

fn template(metadata: Option<&ObjectMeta>) -> Option<Template> {
    names::template_of(metadata?.annotations.as_ref()?.get(names::TEMPLATE)?)
}

/// The StatefulSet of the cluster of that uid, as against the image of the guard that it should have.
pub fn stateful_set(set: &v1::StatefulSet, cluster: &str, guard_image: &str) -> StatefulSet {
    let spec = set.spec.as_ref();
    let labels = spec.and_then(|spec| spec.template.metadata.as_ref()?.labels.as_ref());
    let pod = spec.and_then(|spec| spec.template.spec.as_ref());
    let mut guards = pod.into_iter().flat_map(|pod| pod.init_containers.iter().flatten());
    let replicas = spec.and_then(|spec| spec.replicas).unwrap_or(1);
    StatefulSet {
        handle: handle(&set.metadata),
        owner: owner(&set.metadata, cluster),
        replicas: u32::try_from(replicas).unwrap_or(0),
        template: template(spec.and_then(|spec| spec.template.metadata.as_ref())).unwrap_or(NOTHING),
        has_our_guard: guards
            .any(|one| one.name == names::GUARD && one.image.as_deref() == Some(guard_image)),
        labels_voters: labels.and_then(|labels| labels.get(names::ROLE)).map(String::as_str)
            == Some(names::role_text(Role::Voter)),
        is_altered: false,
    }
}

/// Pods, of which `set` should be the StatefulSet.
pub fn pods(pods: &BTreeMap<Ordinal, core::Pod>, set: &Fact<StatefulSet>) -> BTreeMap<Ordinal, Pod> {
    pods.iter().map(|(ordinal, one)| (*ordinal, pod(one, set))).collect()
}

/// A pod, of which `set` should be the StatefulSet.
pub fn pod(pod: &core::Pod, set: &Fact<StatefulSet>) -> Pod {
    let metadata = &pod.metadata;
    let made_from = template(Some(metadata));
    Pod {
        handle: handle(metadata),
        owner: made_from.map_or(Owner::Foreign, |_| owner_of_pod(metadata, set)),
        template: made_from.unwrap_or(NOTHING),
        phase: phase::of(pod),
        is_deleting: metadata.deletion_timestamp.is_some(),
        startup_age: age(!is_ready(pod)),
        role: role(pod),
        own_print: None,
    }
}

/// The role of a member in its pod's label, by which Service and PodDisruptionBudget select.
pub fn role(pod: &core::Pod) -> Option<Role> {
    names::role_of(pod.metadata.labels.as_ref()?.get(names::ROLE)?)
}

/// Without its StatefulSet a pod of our labels and template can only have been that one's; the StatefulSet that is made
/// next adopts it.
fn owner_of_pod(metadata: &ObjectMeta, set: &Fact<StatefulSet>) -> Owner {
    let mut owners = metadata.owner_references.iter().flatten();
    let Some(controller) = owners.find(|owner| owner.controller == Some(true)) else {
        return Owner::Ours;
    };
    let is_ours = match set {
        Fact::Known(set) => set.handle.uid.0 == controller.uid,
        Fact::Absent | Fact::Unknown => controller.kind == "StatefulSet",
    };
    if is_ours { Owner::Ours } else { Owner::Foreign }
}

/// Whether a pod is ready. How long it has not been is for what is remembered of the cluster to say, by its own clock.
fn is_ready(pod: &core::Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.and_then(|all| all.iter().find(|one| one.type_ == "Ready"));
    ready.is_some_and(|ready| ready.status == "True")
}

/// Past its deadline or not.
pub const fn age(is_past: bool) -> Age {
    if is_past { Age::PastDeadline } else { Age::Fresh }
}

/// A member's volume on a claim. `expandable` and `backing` were asked for only where they matter.
pub fn volume(
    claim: &PersistentVolumeClaim,
    cluster: &str,
    expandable: Fact<bool>,
    backing: Fact<&PersistentVolume>,
) -> Volume {
    let annotations = claim.metadata.annotations.as_ref();
    let made_for = annotations.and_then(|annotations| annotations.get(names::CLUSTER));
    let is_ours = made_for.is_some_and(|uid| uid == cluster);
    Volume {
        handle: handle(&claim.metadata),
        owner: if is_ours { Owner::Ours } else { Owner::Foreign },
        size: size(claim),
        capacity: claim.status.as_ref().and_then(|status| bytes(status.capacity.as_ref())),
        hindrance: hindrance(claim),
        is_expandable: expandable,
        is_deleting: claim.metadata.deletion_timestamp.is_some(),
        is_retained: backing.map(|backing| is_retained(backing, claim)),
        is_set_aside: is_set_aside(claim),
    }
}

/// What a claim says that keeps its volume from growing.
fn hindrance(claim: &PersistentVolumeClaim) -> Option<GrowthHindrance> {
    let conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let hindrances =
        conditions.filter(|one| one.status == "True").filter_map(|one| match one.type_.as_str() {
            "FileSystemResizePending" => Some(GrowthHindrance::FileSystem),
            "ControllerResizeError" | "NodeResizeError" => Some(GrowthHindrance::Error),
            _ => None,
        });
    hindrances.max()
}

/// Whether a claim says that a recovery set the member aside whose data are on it.
pub fn is_set_aside(claim: &PersistentVolumeClaim) -> bool {
    claim.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(names::SET_ASIDE))
}

/// Bytes that a claim asks for.
pub fn size(claim: &PersistentVolumeClaim) -> u64 {
    let resources = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref());
    resources.and_then(|resources| bytes(resources.requests.as_ref())).unwrap_or(0)
}

/// Bytes of storage among amounts of resources.
fn bytes(amounts: Option<&BTreeMap<String, Amount>>) -> Option<u64> {
    Quantity::from(amounts?.get("storage")?.0.as_str()).bytes().ok()
}

/// Whether what is on the PersistentVolume of a claim outlives the claim.
pub fn is_retained(backing: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let policy = backing.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    let is_labelled = backing.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(RETAINED));
    is_labelled && policy == Some("Retain") && backs(backing, &claim.metadata)
}

/// Whether a PersistentVolume is bound to the claim of that metadata.
pub fn backs(backing: &PersistentVolume, claim: &ObjectMeta) -> bool {
    let bound = backing.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    claim.uid.is_some() && bound.is_some_and(|bound| bound.uid == claim.uid)
}

/// The volume in memory that a pod has.
pub fn volume_in_memory(pod: &Pod) -> Volume {
    Volume {
        handle: pod.handle.clone(),
        owner: pod.owner,
        size: 0,
        capacity: None,
        hindrance: None,
        is_expandable: Fact::Absent,
        is_deleting: pod.is_deleting,
        is_retained: Fact::Absent,
        is_set_aside: false,
    }
}

/// The ConfigMap of the cluster of that name and uid.
pub fn config(config: &ConfigMap, name: &str, cluster: &str) -> Config {
    Config {
        handle: handle(&config.metadata),
        owner: owner(&config.metadata, cluster),
        entries: entries::entries(config, name),
        is_altered: false,
    }
}

/// The PodDisruptionBudget, as against how that of the cluster should be.
pub fn budget(budget: &PodDisruptionBudget, of: &Spec) -> Budget {
    let least = budget.spec.as_ref().and_then(|spec| spec.min_available.as_ref());
    let least = match least {
        Some(IntOrString::Int(least)) => u32::try_from(*least).unwrap_or(0),
        // A share belongs to another owner doing.
        Some(IntOrString::String(_)) | None => 0,
    };
    Budget {
        handle: handle(&budget.metadata),
        owner: owner(&budget.metadata, of.uid()),
        min_available: least,
        is_current: budgets::manifest(of, least).deviation(budget, names::MANAGER) == Deviation::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_ours_by_the_uid_of_its_controller_alone() {
        let metadata =
            |owners| -> ObjectMeta { serde_json::from_value(json!({"ownerReferences": owners})).unwrap() };
        let reference = |uid: &str, controller: bool| json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "name": "c", "uid": uid, "controller": controller});
        assert_eq!(owner(&metadata(json!([reference("a", true)])), "a"), Owner::Ours);
        for owners in [json!([]), json!([reference("b", true)]), json!([reference("a", false)])] {
            assert_eq!(owner(&metadata(owners), "a"), Owner::Foreign);
        }
    }

    #[test]
    fn what_a_volume_has_is_reported_beside_what_it_is_to_have() {
        let claim: PersistentVolumeClaim = serde_json::from_value(json!({
            "spec": {"resources": {"requests": {"storage": "2Gi"}}}, "status": {"capacity": {"storage": "1Gi"}}
        }))
        .unwrap();
        let told = volume(&claim, "now", Fact::Unknown, Fact::Unknown);
        assert_eq!((told.size, told.capacity), (2 << 30, Some(1 << 30)));
        let told = volume(&PersistentVolumeClaim::default(), "now", Fact::Unknown, Fact::Unknown);
        assert_eq!((told.size, told.capacity), (0, None));
    }

    #[test]
    fn what_keeps_a_volume_from_growing_is_read_from_its_claim() {
        let told = |of: &[(&str, &str)]| {
            let conditions = of.iter().map(|(about, status)| json!({"type": about, "status": status}));
            let conditions: Vec<_> = conditions.collect();
            let claim = json!({"metadata": {}, "status": {"conditions": conditions}});
            hindrance(&serde_json::from_value(claim).unwrap())
        };
        assert_eq!(told(&[("Resizing", "True"), ("ControllerResizeError", "False")]), None);
        let waits = ("FileSystemResizePending", "True");
        assert_eq!(told(&[waits]), Some(GrowthHindrance::FileSystem));
        assert_eq!(told(&[("NodeResizeError", "True"), waits]), Some(GrowthHindrance::Error));
    }

    #[test]
    fn a_claim_of_a_cluster_that_was_there_before_is_not_ours() {
        let claim = |annotations| -> PersistentVolumeClaim {
            serde_json::from_value(json!({"metadata": {"uid": "v", "annotations": annotations}})).unwrap()
        };
        let of = |annotations| volume(&claim(annotations), "now", Fact::Unknown, Fact::Unknown).owner;
        assert_eq!(of(json!({names::CLUSTER: "now"})), Owner::Ours);
        assert_eq!(of(json!({names::CLUSTER: "before"})), Owner::Foreign);
        assert_eq!(of(json!({})), Owner::Foreign);
    }
}
