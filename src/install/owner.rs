//! Who owns the webhook configurations.
//!
//! Guarantees: what is owned goes with its owner. The garbage collector removes configurations whose ClusterRole is
//! gone, so that an uninstall, which deletes it, leaves nothing behind that points at a gate which is gone too. The uid
//! is read again for each writing: with that of a ClusterRole from before, they would be removed at once.
//! Never: owns definitions. Those stay, and the users' objects with them.

use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Client, Resource};

use super::Plan;
use crate::runtime::call::{self, call};

/// The owner is not known.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such ClusterRole.
    #[error("clusterroles/{name} does not exist: it is to own the webhook configurations")]
    Missing {
        /// Its name.
        name: String,
    },
    /// The API server did not say.
    #[error("failed to read clusterroles/{name}: {source}")]
    Call {
        /// Its name.
        name: String,
        /// Why.
        source: call::Error,
    },
}

/// Reads the owner of the configurations of `plan`, if there is one.
///
/// # Errors
/// When there is no such ClusterRole, or the API server does not say.
pub(super) async fn of(client: &Client, plan: &Plan) -> Result<Option<OwnerReference>, Error> {
    let Some(name) = plan.cluster_role.clone() else { return Ok(None) };
    let api = Api::<ClusterRole>::all(client.clone());
    match call(api.get_metadata(&name)).await {
        Ok(role) => Ok(role.metadata.uid.map(|uid| reference(name, uid))),
        Err(error) if error.is_not_found() => Err(Error::Missing { name }),
        Err(source) => Err(Error::Call { name, source }),
    }
}

/// Blocks nothing and controls nothing: it only goes along.
fn reference(name: String, uid: String) -> OwnerReference {
    OwnerReference {
        api_version: ClusterRole::api_version(&()).into_owned(),
        kind: ClusterRole::kind(&()).into_owned(),
        name,
        uid,
        ..OwnerReference::default()
    }
}

/// `object`, owned by `owner`.
pub(super) fn owned<K: Resource>(mut object: K, owner: Option<&OwnerReference>) -> K {
    object.meta_mut().owner_references = owner.cloned().map(|owner| vec![owner]);
    object
}
