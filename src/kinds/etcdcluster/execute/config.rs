//! Writes the ConfigMap with an entry for each pod.
//!
//! Guarantees: an entry is written only into the ConfigMap as it was seen, so that no entry is written on top of one
//! that the plan has not known; other entries stay as they are.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde_json::{Map, Value, json};
use tracing::debug;

use super::{Execution, Failure};
use crate::controllers::api_write::ApiWrite;
use crate::kinds::etcdcluster::names::{self, MANAGER};
use crate::kinds::etcdcluster::observation::{ConfigEntry, Handle, Ordinal};
use crate::kinds::etcdcluster::observe::kubernetes::handle;
use crate::kinds::etcdcluster::resources::config;

/// Writes entries.
pub async fn write(
    execution: Execution<'_>,
    found: Option<&Handle>,
    entries: &BTreeMap<Ordinal, ConfigEntry>,
    initial_cluster: &[Ordinal],
) -> Result<(), Failure> {
    let name = names::config(&execution.name());
    let live: Option<ConfigMap> = execution.read(&name).await?;
    if live.as_ref().map(|live| handle(&live.metadata)).as_ref() != found {
        return Err(Failure::moved(format!("configmap {name} has changed")));
    }
    if let (Some(live), Some(found)) = (live, found) {
        let revision = execution.seen.desired.template.revision;
        let data = config::data_over(execution.spec, entries, initial_cluster, &live, revision);
        merge(execution, &name, found, json!(data)).await?;
    } else {
        let data = config::data(execution.spec, entries, initial_cluster);
        let manifest = config::manifest(execution.spec, &data);
        execution.write(&ApiWrite::Create { manifest, manager: MANAGER }).await?;
    }
    hasten(execution, entries.keys().copied()).await;
    Ok(())
}

/// Takes an entry away.
pub async fn withdraw(execution: Execution<'_>, found: &Handle, ordinal: Ordinal) -> Result<(), Failure> {
    let name = execution.name();
    let gone: Map<_, _> = config::keys(&name, ordinal).map(|key| (key, Value::Null)).into_iter().collect();
    merge(execution, &names::config(&name), found, gone.into()).await
}

async fn merge(execution: Execution<'_>, name: &str, found: &Handle, data: Value) -> Result<(), Failure> {
    let version = found.resource_version.0.as_str();
    execution.merge::<ConfigMap>(name, &found.uid.0, Some(version), json!({ "data": data })).await
}

/// Changes the pods that mount it: the kubelet then refreshes the mount at once, instead of within a minute. That this
/// fails costs that minute and nothing else.
async fn hasten(execution: Execution<'_>, ordinals: impl Iterator<Item = Ordinal>) {
    let name = execution.name();
    let version = match execution.read::<ConfigMap>(&names::config(&name)).await {
        Ok(found) => found.and_then(|config| config.metadata.resource_version),
        Err(_) => None,
    };
    for ordinal in ordinals {
        let Some(pod) = execution.observation().pod(ordinal).found().filter(|pod| !pod.is_deleting) else {
            continue;
        };
        let told = json!({"metadata": {"annotations": {names::CONFIG_VERSION: version}}});
        let pod = (names::member(&name, ordinal), &pod.handle.uid.0);
        if let Err(error) = execution.merge::<Pod>(&pod.0, pod.1, None, told).await {
            debug!(pod = pod.0, %error, "failed to hasten a mount");
        }
    }
}
