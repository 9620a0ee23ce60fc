//! Etcd's users: root, as whom the operator authenticates, and its password.
//!
//! Guarantees: the member that is asked has just answered as one of the cluster that is meant; a password comes from
//! the Secret as it was seen, and from no other state of it.

use k8s_openapi::api::core::v1::Secret;

use super::maintenance::any;
use super::{Execution, Failure, unless_refused};
use crate::kinds::etcdcluster::etcd::{Password, Refusal};
use crate::kinds::etcdcluster::observation::{ClusterId, Handle};
use crate::kinds::etcdcluster::observe::kubernetes::handle;
use crate::kinds::etcdcluster::root_password::{ROOT, decision};

/// Creates root in etcd, and enables authentication.
///
/// Root may be there already, of a reconciliation that ended here or of a person who turned authentication off, and may
/// be a user that never has a password. Authentication is not enabled yet, so root can be recreated. It has a password
/// that is none until it has that of the Secret, so that it may get one later: etcd gives none to a user that was made
/// without.
pub async fn authenticate(
    execution: Execution<'_>,
    cluster_id: ClusterId,
    secret: Option<&Handle>,
) -> Result<(), Failure> {
    let password = match secret {
        Some(seen) => offered(execution, seen).await?,
        None => Password::default(),
    };
    let client = any(execution, cluster_id).await?;
    unless_refused(client.delete_user(ROOT).await, Refusal::UserNotFound)?;
    client.add_user_for_a_password(ROOT).await?;
    client.change_password(ROOT, &password).await?;
    unless_refused(client.add_role(ROOT).await, Refusal::RoleExists)?;
    client.grant_role(ROOT, ROOT).await?;
    Ok(client.enable_auth().await?)
}

/// Gives root the password of the Secret. That it has it already is fine.
pub async fn set_password(
    execution: Execution<'_>,
    cluster_id: ClusterId,
    secret: &Handle,
) -> Result<(), Failure> {
    let password = offered(execution, secret).await?;
    Ok(any(execution, cluster_id).await?.change_password(ROOT, &password).await?)
}

/// The password in the Secret, where that is as it was seen.
async fn offered(execution: Execution<'_>, seen: &Handle) -> Result<Password, Failure> {
    let name = execution.spec.root_secret.as_deref().unwrap_or_default();
    let changed = || Failure::moved(format!("secret {name} has changed"));
    let secret = execution.read::<Secret>(name).await?.filter(|secret| handle(&secret.metadata) == *seen);
    decision::password(&secret.ok_or_else(changed)?).map_err(|_| changed())
}
