//! The URLs of a cluster's members.
//!
//! Guarantees: a URL that is written here reads back. URLs are in etcd's list of members, so these URLs are permanent.

use super::Spec;
use crate::kinds::etcdcluster::names::{self, CLIENT_PORT, PEER_PORT};
use crate::kinds::etcdcluster::observation::Ordinal;

impl Spec {
    /// The scheme of what is served.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// The name under which a member is found by others.
    #[must_use]
    pub fn host(&self, ordinal: Ordinal) -> String {
        let (name, namespace) = (self.name(), self.namespace());
        format!("{}.{name}.{namespace}.svc", names::member(name, ordinal))
    }

    /// Where the other members find one.
    #[must_use]
    pub fn peer_url(&self, ordinal: Ordinal) -> String {
        format!("{}://{}:{PEER_PORT}", self.scheme(), self.host(ordinal))
    }

    /// Where clients find a member.
    #[must_use]
    pub fn client_url(&self, ordinal: Ordinal) -> String {
        format!("{}://{}:{CLIENT_PORT}", self.scheme(), self.host(ordinal))
    }

    /// The ordinal whose peer URL that is; none: it is not one of ours.
    #[must_use]
    pub fn ordinal_of(&self, peer_url: &str) -> Option<Ordinal> {
        let (_, rest) = peer_url.split_once("://")?;
        let (pod, _) = rest.split_once('.')?;
        let ordinal = names::ordinal(self.name(), pod)?;
        (self.peer_url(ordinal) == peer_url).then_some(ordinal)
    }
}
