//! The finalizer: a deletion waits until pods are gone and volumes are as the spec says.
//!
//! Guarantees: the list is written as a whole and only as it was read, since others have theirs in it.

use kube::ResourceExt as _;
use serde_json::json;

use super::{Failure, Hands};
use crate::api::etcdcluster::v1::EtcdCluster;
use crate::controllers::etcdcluster::resources::names::FINALIZER;

/// Puts it there.
pub async fn add(hands: Hands<'_>) -> Result<(), Failure> {
    let live = live(hands).await?;
    if live.metadata.deletion_timestamp.is_some() {
        return Err(Failure::refused("the object is being deleted"));
    }
    set(hands, &live, true).await
}

/// Takes it away.
pub async fn remove(hands: Hands<'_>) -> Result<(), Failure> {
    let live = live(hands).await?;
    if live.metadata.deletion_timestamp.is_none() {
        return Err(Failure::refused("the object is not being deleted"));
    }
    set(hands, &live, false).await
}

async fn live(hands: Hands<'_>) -> Result<EtcdCluster, Failure> {
    let live: Option<EtcdCluster> = hands.read(&hands.name()).await?;
    let live = live.filter(|live| live.metadata.uid == hands.cluster.metadata.uid);
    live.ok_or_else(|| Failure::refused("the object is gone"))
}

async fn set(hands: Hands<'_>, live: &EtcdCluster, on: bool) -> Result<(), Failure> {
    let others = live.finalizers().iter().map(String::as_str).filter(|name| *name != FINALIZER);
    let all: Vec<_> = others.chain(on.then_some(FINALIZER)).collect();
    let (uid, version) = (live.uid().unwrap_or_default(), live.resource_version());
    let fields = json!({"metadata": {"finalizers": all}});
    hands.merge::<EtcdCluster>(&hands.name(), &uid, version.as_deref(), fields).await
}
