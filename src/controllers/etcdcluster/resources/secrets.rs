//! The Secrets with certificates: whose they are, and where pods find them.

use kube::ResourceExt as _;

use super::names;
use crate::api::etcdcluster::v1::{EtcdCluster, NamedReference, TlsMode};

/// Where a pod finds what its member shows to clients.
pub const SERVER: &str = "/etc/gatehouse/tls/server";

/// Where a pod finds what its member shows to the others.
pub const PEER: &str = "/etc/gatehouse/tls/peer";

/// Where a pod finds whom clients are judged by, if that is a Secret of its own.
pub const CLIENT_AUTHORITY: &str = "/etc/gatehouse/tls/client-ca";

/// Where a pod finds whom the other members are judged by, if that is a Secret of its own.
pub const PEER_AUTHORITY: &str = "/etc/gatehouse/tls/peer-ca";

/// Names of the Secrets of a cluster that speaks TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    /// With what members show to clients.
    pub server: String,
    /// With what members show to each other.
    pub peer: String,
    /// With what the operator shows.
    pub client: String,
    /// With whom clients are judged by; none: with `server`.
    pub client_authority: Option<String>,
    /// With whom peers are judged by; none: with `peer`.
    pub peer_authority: Option<String>,
}

impl Secrets {
    /// Where a pod finds whom clients are judged by.
    #[must_use]
    pub const fn client_authority_path(&self) -> &'static str {
        if self.client_authority.is_some() { CLIENT_AUTHORITY } else { SERVER }
    }

    /// Where a pod finds whom the other members are judged by.
    #[must_use]
    pub const fn peer_authority_path(&self) -> &'static str {
        if self.peer_authority.is_some() { PEER_AUTHORITY } else { PEER }
    }

    /// What pods mount: a name of the volume, the Secret, and where.
    #[must_use]
    pub fn mounts(&self) -> Vec<(&'static str, &str, &'static str)> {
        let own = [("server-tls", self.server.as_str(), SERVER), ("peer-tls", &self.peer, PEER)];
        let authorities = [
            ("client-ca", self.client_authority.as_deref(), CLIENT_AUTHORITY),
            ("peer-ca", self.peer_authority.as_deref(), PEER_AUTHORITY),
        ];
        let authorities =
            authorities.into_iter().filter_map(|(name, secret, path)| Some((name, secret?, path)));
        own.into_iter().chain(authorities).collect()
    }
}

/// The Secrets of a cluster; none where it speaks plain HTTP. Those that the operator keeps are named after it; so are
/// those that the spec ought to name and does not, which no judge passes.
#[must_use]
pub fn of(cluster: &EtcdCluster) -> Option<Secrets> {
    if !names::has_tls(cluster) {
        return None;
    }
    let named = cluster.spec.tls.as_ref().filter(|tls| tls.mode == Some(TlsMode::Secrets));
    let given = named.and_then(|tls| tls.secrets.clone()).unwrap_or_default();
    let name = cluster.name_any();
    let own = |given: Option<NamedReference>, part: &str| {
        given.map_or_else(|| format!("{name}-{part}-tls"), |secret| secret.name)
    };
    Some(Secrets {
        server: own(given.server, "server"),
        peer: own(given.peer, "peer"),
        client: own(given.client, "client"),
        client_authority: given.client_ca.map(|secret| secret.name),
        peer_authority: given.peer_ca.map(|secret| secret.name),
    })
}

/// The Secret with the password of etcd's user root, where the spec names one.
#[must_use]
pub fn root(cluster: &EtcdCluster) -> Option<&str> {
    Some(&cluster.spec.auth.as_ref()?.root_secret_ref.as_ref()?.name)
}

/// The Secret with the certificate authority that the operator keeps.
#[must_use]
pub fn authority(cluster: &str) -> String {
    format!("{cluster}-ca")
}
