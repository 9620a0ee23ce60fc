//! The objects that are applied as a whole: Services, StatefulSet, PodDisruptionBudget.
//!
//! Guarantees: one that is there is changed only as it was seen, and with force; one that was not there is made only
//! where it still is not, and without force. See [`crate::controllers::step`].

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{Failure, Hands};
use crate::controllers::etcdcluster::observation::{Handle, Owner, Template};
use crate::controllers::etcdcluster::observe::kubernetes::{handle, owner};
use crate::controllers::etcdcluster::resources::names::MANAGER;
use crate::controllers::etcdcluster::resources::{
    budget as budgets, services as service, stateful_set as sets,
};
use crate::controllers::manifest::Manifest;
use crate::controllers::step::{Apply, Step};

/// The Services, those that are as they should be left alone.
pub async fn services(hands: Hands<'_>) -> Result<(), Failure> {
    for manifest in service::manifests(hands.cluster) {
        let found: Option<Service> = hands.read(&manifest.place.name).await?;
        let found = match &found {
            Some(found) if !is_ours(hands, &found.metadata) => {
                return Err(Failure::refused(format!("{} is somebody else's", manifest.place)));
            }
            Some(found) if !manifest.missing_from(found) => continue,
            found => found.as_ref().map(|found| handle(&found.metadata)),
        };
        apply(hands, manifest, found.as_ref()).await?;
    }
    Ok(())
}

/// The StatefulSet.
pub async fn stateful_set(
    hands: Hands<'_>,
    found: Option<&Handle>,
    replicas: u32,
    template: &Template,
) -> Result<(), Failure> {
    let (cluster, image) = (hands.cluster, &hands.operator.guard_image);
    let new = sets::manifest(cluster, template, replicas, image);
    let live: Option<StatefulSet> = as_seen(hands, &new, found).await?;
    let revision = hands.desired.template.revision;
    let over = |live| sets::over(&live, cluster, template, replicas, image, revision);
    let manifest = live.map_or(new, over);
    apply(hands, manifest, found).await
}

/// The PodDisruptionBudget.
pub async fn budget(hands: Hands<'_>, found: Option<&Handle>, min_available: u32) -> Result<(), Failure> {
    let manifest = budgets::manifest(hands.cluster, min_available);
    as_seen::<PodDisruptionBudget>(hands, &manifest, found).await?;
    apply(hands, manifest, found).await
}

/// The object where it is still as it was seen, or still not there.
async fn as_seen<K>(
    hands: Hands<'_>,
    manifest: &Manifest,
    seen: Option<&Handle>,
) -> Result<Option<K>, Failure>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    let place = &manifest.place;
    let live: Option<K> = hands.read(&place.name).await?;
    if live.as_ref().map(|live| handle(live.meta())).as_ref() != seen {
        return Err(Failure::refused(format!("{place} has changed")));
    }
    if live.as_ref().is_some_and(|live| !is_ours(hands, live.meta())) {
        return Err(Failure::refused(format!("{place} is somebody else's")));
    }
    Ok(live)
}

/// Whether an object is controlled by the cluster.
pub fn is_ours(hands: Hands<'_>, metadata: &ObjectMeta) -> bool {
    hands.cluster.uid().is_some_and(|uid| owner(metadata, &uid) == Owner::Ours)
}

/// Applies a manifest over what was found, or where there must be nothing.
pub async fn apply(hands: Hands<'_>, manifest: Manifest, found: Option<&Handle>) -> Result<(), Failure> {
    let mut manifest = manifest;
    if let Some(found) = found {
        manifest = manifest.only_for(&found.uid.0);
        manifest.object["metadata"]["resourceVersion"] = json!(found.resource_version.0);
    }
    let seen = found.map(|found| found.resource_version.0.clone());
    hands.perform(&Step::Apply(Apply { manifest, manager: MANAGER, seen })).await
}
