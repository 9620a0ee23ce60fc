//! The way to the Kubernetes API.

use kube::{Client, Config};

use crate::runtime::fail_point;

/// There is no way.
#[derive(Debug, thiserror::Error)]
#[error("unable to find a Kubernetes API: expected KUBECONFIG or a pod's service account, or --webhook-only")]
pub(super) struct NoCluster {
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// Finds the Kubernetes API: by `KUBECONFIG`, or by the service account of the pod that this is.
pub(super) async fn connect() -> Result<(Config, Client), NoCluster> {
    let no_cluster = |source| NoCluster { source };
    let config = Config::infer().await.map_err(|source| no_cluster(source.into()))?;
    let client = fail_point::client(config.clone()).map_err(|source| no_cluster(source.into()))?;
    Ok((config, client))
}
