//! Applies whole objects: Services, StatefulSet, PodDisruptionBudget.
//!
//! Guarantees: one that is there is changed only as it was seen, and with force; one that was not there is made only
//! where it still is not, and without force. See [`crate::controllers::api_write`].

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{Execution, Failure, volumes};
use crate::controllers::api_write::{ApiWrite, Apply, Merge};
use crate::controllers::deviation::Deviation;
use crate::controllers::manifest::Manifest;
use crate::kinds::etcdcluster::names::MANAGER;
use crate::kinds::etcdcluster::observation::{Handle, Ordinal, Owner, Template};
use crate::kinds::etcdcluster::observe::kubernetes::{handle, owner};
use crate::kinds::etcdcluster::plan;
use crate::kinds::etcdcluster::resources::{budget as budgets, services as service, stateful_set as sets};

/// The Services, those that are as they should be left alone. One that is refused does not keep the other from being
/// applied.
pub async fn services(execution: Execution<'_>) -> Result<(), Failure> {
    let mut outcome = Ok(());
    for manifest in service::manifests(execution.spec) {
        outcome = outcome.and(service(execution, manifest).await);
    }
    outcome
}

async fn service(execution: Execution<'_>, manifest: Manifest) -> Result<(), Failure> {
    let found: Option<Service> = execution.read(&manifest.place.name).await?;
    match &found {
        Some(found) if !is_ours(execution, &found.metadata) => {
            Err(Failure::moved(format!("{} belongs to another owner", manifest.place)))
        }
        Some(found) if manifest.deviation(found, MANAGER) == Deviation::Nothing => Ok(()),
        found => put(execution, manifest, found.as_ref()).await,
    }
}

/// The StatefulSet.
pub async fn stateful_set(
    execution: Execution<'_>,
    found: Option<&Handle>,
    replicas: u32,
    template: &Template,
) -> Result<(), Failure> {
    let (spec, image) = (execution.spec, &execution.context.image);
    let serves = plan::labels_voters(&execution.seen.desired, execution.observation());
    let new = sets::manifest(spec, template, replicas, image, serves);
    let live: Option<StatefulSet> = as_seen(execution, &new, found).await?;
    let count = live.as_ref().and_then(|live| live.spec.as_ref()?.replicas);
    let ends = replicas..count.and_then(|count| u32::try_from(count).ok()).unwrap_or(replicas);
    volumes::stay(execution, ends.map(Ordinal)).await?;
    let revision = execution.seen.desired.template.revision;
    let manifest = match &live {
        Some(live) => sets::over(live, spec, (template, replicas), image, revision, serves),
        None => new,
    };
    put(execution, manifest, live.as_ref()).await
}

/// The PodDisruptionBudget.
pub async fn budget(
    execution: Execution<'_>,
    found: Option<&Handle>,
    min_available: u32,
) -> Result<(), Failure> {
    let manifest = budgets::manifest(execution.spec, min_available);
    let live: Option<PodDisruptionBudget> = as_seen(execution, &manifest, found).await?;
    put(execution, manifest, live.as_ref()).await
}

/// The object where it is still as it was seen, or still not there.
async fn as_seen<K>(
    execution: Execution<'_>,
    manifest: &Manifest,
    seen: Option<&Handle>,
) -> Result<Option<K>, Failure>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    let place = &manifest.place;
    let live: Option<K> = execution.read(&place.name).await?;
    if live.as_ref().map(|live| handle(live.meta())).as_ref() != seen {
        return Err(Failure::moved(format!("{place} has changed")));
    }
    if live.as_ref().is_some_and(|live| !is_ours(execution, live.meta())) {
        return Err(Failure::moved(format!("{place} belongs to another owner")));
    }
    Ok(live)
}

/// Whether an object is controlled by the cluster.
pub fn is_ours(execution: Execution<'_>, metadata: &ObjectMeta) -> bool {
    owner(metadata, execution.spec.uid()) == Owner::Ours
}

/// Applies a manifest over what was found, or where there must be nothing. What other clients added is removed first.
pub async fn put<K>(execution: Execution<'_>, manifest: Manifest, found: Option<&K>) -> Result<(), Failure>
where
    K: Resource<DynamicType = ()> + Serialize,
{
    let mut manifest = manifest;
    let mut seen = None;
    if let Some(found) = found {
        let Handle { uid, resource_version } = handle(found.meta());
        seen = Some(resource_version.0);
        if manifest.deviation(found, MANAGER) == Deviation::Added {
            let manifest = manifest.repair(found, MANAGER);
            let merge = Merge { manifest, manager: MANAGER, scale: false, seen };
            seen = execution.perform(&ApiWrite::Merge(merge)).await?.resource_version;
        }
        manifest = manifest.only_for(&uid.0);
        manifest.object["metadata"]["resourceVersion"] = json!(seen);
    }
    execution.write(&ApiWrite::Apply(Apply { manifest, manager: MANAGER, seen })).await
}
