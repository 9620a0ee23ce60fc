//! Pods: what they are labelled, and their restart.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::{Failure, Hands, membership};
use crate::controllers::etcdcluster::effect::OnlyIf;
use crate::controllers::etcdcluster::observation::{Handle, Ordinal, Role};
use crate::controllers::etcdcluster::resources::names;

/// Tells Service and PodDisruptionBudget what the pod's member is.
pub async fn label(
    hands: Hands<'_>,
    pod: &Handle,
    ordinal: Ordinal,
    role: Option<Role>,
) -> Result<(), Failure> {
    let labels = json!({"metadata": {"labels": {names::ROLE: role.map(names::role_text)}}});
    let name = names::member(&hands.name(), ordinal);
    hands.merge::<Pod>(&name, &pod.uid.0, Some(&pod.resource_version.0), labels).await
}

/// Deletes the pod, in the grace period that it has.
pub async fn delete(
    hands: Hands<'_>,
    pod: &Handle,
    ordinal: Ordinal,
    only_if: Option<OnlyIf>,
) -> Result<(), Failure> {
    match only_if {
        Some(OnlyIf::OthersServe { membership, member }) => {
            membership::others_serve(hands, membership, member).await?;
        }
        Some(OnlyIf::QuorumLost) => membership::quorum_is_lost(hands).await?,
        None => {}
    }
    hands.delete::<Pod>(&names::member(&hands.name(), ordinal), pod).await
}
