//! Labels pods, and restarts them.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::{Execution, Failure, membership, volumes};
use crate::kinds::etcdcluster::actions::Precondition;
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{Handle, Ordinal, Role};

/// Labels the pod with its member's role, for Service and PodDisruptionBudget.
pub async fn label(
    execution: Execution<'_>,
    pod: &Handle,
    ordinal: Ordinal,
    role: Option<Role>,
) -> Result<(), Failure> {
    let labels = json!({"metadata": {"labels": {names::ROLE: role.map(names::role_text)}}});
    let name = names::member(&execution.name(), ordinal);
    // Whatever else has changed of this very pod: what its member is stays the same.
    execution.merge::<Pod>(&name, &pod.uid.0, None, labels).await
}

/// Deletes the pod, in the grace period that it has, unless the claim that it holds is being deleted.
pub async fn delete(
    execution: Execution<'_>,
    pod: &Handle,
    ordinal: Ordinal,
    precondition: Option<Precondition>,
) -> Result<(), Failure> {
    match precondition {
        Some(Precondition::OthersServe { membership, member }) => {
            membership::others_serve(execution, membership, member).await?;
        }
        Some(Precondition::QuorumLost) => membership::quorum_is_lost(execution).await?,
        None => {}
    }
    volumes::stay(execution, [ordinal]).await?;
    execution.delete::<Pod>(&names::member(&execution.name(), ordinal), pod).await
}
