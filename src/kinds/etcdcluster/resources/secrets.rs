//! The Secrets with certificates: where pods find them.

use crate::kinds::etcdcluster::spec::Secrets;

/// Where a pod finds the certificate that its member shows to clients.
pub const SERVER: &str = "/etc/gatehouse/tls/server";

/// Where a pod finds the certificate that its member shows to the others.
pub const PEER: &str = "/etc/gatehouse/tls/peer";

/// Where a pod finds the authorities of clients, if that is a Secret of its own.
pub const CLIENT_AUTHORITY: &str = "/etc/gatehouse/tls/client-ca";

/// Where a pod finds the authorities of the other members, if that is a Secret of its own.
pub const PEER_AUTHORITY: &str = "/etc/gatehouse/tls/peer-ca";

impl Secrets {
    /// Where a pod finds the authorities of clients.
    #[must_use]
    pub const fn client_authority_path(&self) -> &'static str {
        if self.client_authority.is_some() { CLIENT_AUTHORITY } else { SERVER }
    }

    /// Where a pod finds the authorities of the other members.
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
