//! The connection to the Kubernetes API.

use kube::{Client, Config};

use crate::runtime::call::impatient;

/// There is no way.
#[derive(Debug, thiserror::Error)]
#[error("unable to find a Kubernetes API: expected {expected}")]
pub(super) struct NoCluster {
    expected: &'static str,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// Finds the Kubernetes API, and makes a client of its configuration. `expected` is what an error says to give.
pub(super) async fn infer<Made>(
    expected: &'static str,
    client: impl FnOnce(Config) -> kube::Result<Made>,
) -> Result<Made, NoCluster> {
    let no_cluster = |source| NoCluster { expected, source };
    let config = Config::infer().await.map_err(|source| no_cluster(source.into()))?;
    client(impatient(config)).map_err(|source| no_cluster(source.into()))
}

/// Finds the Kubernetes API: by `KUBECONFIG`, or by the service account of the pod that this is.
pub(super) async fn connect() -> Result<(Config, Client), NoCluster> {
    let expected = "KUBECONFIG or a pod's service account, or --webhook-only";
    infer(expected, |config| Ok((config.clone(), Client::try_from(config)?))).await
}
