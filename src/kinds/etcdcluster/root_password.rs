//! The password of etcd's user root: read from the Secret that the spec names, and held against what etcd takes.
//!
//! Guarantees: the password is read again whenever it is needed, and sent only to a member that has just answered as
//! one of the recorded cluster, over TLS. Etcd is asked again only after its users or the Secret have changed, for to
//! compare a password costs it a tenth of a second.
//! Never: keeps a password, or anything made of it, beyond the reconciliation; writes a Secret.

pub mod decision;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use tracing::debug;

use super::member_clients::MemberClients;
use super::observation::{ClusterId, Fact, Handle, RootPassword, Unreadable};
use super::observe::etcd::{self as asking, EtcdResponses};
use super::observe::kubernetes::handle;
use super::spec::Spec;
use crate::kinds::etcdcluster::etcd::{Password, Refusal};
use crate::runtime::call::call;

/// The user, and the role, that may do everything.
pub const ROOT: &str = "root";

/// What a Secret has for root.
#[derive(Debug)]
pub enum Offer {
    /// None is named.
    None,
    /// None that could be used.
    Unreadable(Unreadable),
    /// A password, of that state of the Secret.
    Fit(Handle, Password),
}

/// Etcd's answer to a password.
#[derive(Clone, Debug)]
pub struct Proven {
    /// The Secret that had it.
    secret: Handle,
    /// Revision of etcd's users and roles.
    revision: u64,
    /// Its answer.
    found: RootPassword,
}

/// Reads the Secret, where authentication is wanted.
pub async fn read(client: &Client, spec: &Spec) -> Offer {
    let is_due = spec.refused.is_empty() && spec.authenticates && spec.tls.is_some();
    let Some(name) = spec.root_secret.as_deref().filter(|_| is_due) else { return Offer::None };
    let api: Api<Secret> = Api::namespaced(client.clone(), spec.namespace());
    match call(api.get_opt(name)).await {
        Ok(Some(secret)) => match decision::password(&secret) {
            Ok(password) => Offer::Fit(handle(&secret.metadata), password),
            Err(why) => Offer::Unreadable(why),
        },
        Ok(None) => Offer::Unreadable(Unreadable::Missing),
        Err(error) => {
            debug!(name, %error, "failed to read a Secret");
            Offer::Unreadable(Unreadable::Unanswered)
        }
    }
}

/// How it compares with the one that root has. `recorded`: the cluster that may get the password; `known`: what was
/// found last.
pub async fn look(
    offer: Offer,
    (said, reach, recorded): (&EtcdResponses, &MemberClients, Option<ClusterId>),
    known: &mut Option<Proven>,
) -> Fact<RootPassword> {
    let (secret, password) = match offer {
        Offer::None => return Fact::Absent,
        Offer::Unreadable(why) => return Fact::Known(RootPassword::Unreadable(why)),
        Offer::Fit(secret, password) => (secret, password),
    };
    let is_ours = said.membership.is_known_and(|membership| Some(membership.cluster_id) == recorded);
    let Some(auth) = said.auth.known().filter(|_| is_ours) else { return Fact::Unknown };
    if !auth.enabled {
        return Fact::Known(RootPassword::Outdated { secret });
    }
    let is_same = |proven: &Proven| proven.secret == secret && proven.revision == auth.revision;
    if let Some(proven) = known.as_ref().filter(|proven| is_same(proven)) {
        return Fact::Known(proven.found.clone());
    }
    let Some(client) = witness(said, reach, recorded) else { return Fact::Unknown };
    let found = match client.authenticate(ROOT, &password).await {
        Ok(()) => RootPassword::Current,
        Err(error) => match error.refusal() {
            Some(Refusal::AuthFailed) => RootPassword::Outdated { secret: secret.clone() },
            Some(Refusal::NoPasswordUser) => RootPassword::Barred,
            _ => {
                debug!(%error, "whether root has its password could not be found out");
                return Fact::Unknown;
            }
        },
    };
    let proven = Proven { secret, revision: auth.revision, found: found.clone() };
    *known = Some(proven);
    Fact::Known(found)
}

/// A member of that cluster.
fn witness<'a>(
    said: &EtcdResponses,
    reach: &'a MemberClients,
    recorded: Option<ClusterId>,
) -> Option<&'a crate::kinds::etcdcluster::etcd::Client> {
    let is_ours = |ordinal: &_| {
        let status = said.statuses.get(ordinal).and_then(Fact::known);
        status.is_some_and(|status| Some(status.cluster_id) == recorded)
    };
    asking::order(&said.statuses).into_iter().find(is_ours).and_then(|ordinal| reach.client(ordinal))
}
