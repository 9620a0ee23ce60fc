//! The certificates that the operator manages for a cluster: the Secrets, and the profiles of their leaves.
//!
//! Guarantees: a leaf has all names by which its holder is dialled, for every ordinal that a cluster can have, so that
//! no change of the cluster's size touches a certificate.
//!
//! Etcd looks at more than a TLS library: a member that shows a certificate to another has to come from an address that
//! one of the certificate's names resolves to (`checkCertSAN` in `client/pkg/transport/listener_tls.go`). First it asks
//! which name the address has, which ends in the cluster's domain; then for the address of each name, wildcards left
//! out.

use std::collections::{BTreeMap, BTreeSet};

use core::net::IpAddr;

use jiff::SignedDuration;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::metadata;
use crate::certs::certificate::{Bundle, Certificate};
use crate::certs::mint::{Profile, Usage};
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{CertificateId, Ordinal, Trust};
use crate::kinds::etcdcluster::spec::Spec;

/// How long an authority holds. A member goes on trusting what it read when it started, so its successor has to come
/// years before.
pub const AUTHORITY_LIFETIME: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);

/// How long a leaf holds. Etcd reads it again for each connection, so it could be short; but a cluster whose operator
/// is away, or whose work rests, is to live on.
pub const LEAF_LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);

/// The key of a leaf's Secret for the certificate.
pub const CERTIFICATE: &str = "tls.crt";
/// The key of a leaf's Secret for its private key.
pub const KEY: &str = "tls.key";
/// The key of a leaf's Secret for all authorities that are to be trusted.
pub const AUTHORITY: &str = "ca.crt";

/// The type of a Secret with a leaf.
pub const LEAF_TYPE: &str = "kubernetes.io/tls";
/// The type of the Secret with the authority.
pub const AUTHORITY_TYPE: &str = "Opaque";

/// The user of etcd that may do everything: as whom the operator authenticates where authentication is enabled.
const ROOT: &str = "root";
/// Members that a cluster can have.
pub const MEMBERS: u32 = 7;
/// The domain that most Kubernetes clusters have. In others, names that end in it are never asked for.
const DOMAIN: &str = "cluster.local";

/// Whom members are to trust: the authorities by which they verify clients, and those by which they verify each other;
/// none where there are none of either. The same for the same certificates, however they are written and ordered.
#[must_use]
pub fn trust(clients: &[Certificate], peers: &[Certificate]) -> Option<Trust> {
    let pem = |certificates: &[Certificate]| {
        Bundle::of(certificates.iter().cloned()).map(|bundle| bundle.pem().to_vec())
    };
    // No text in PEM has a zero in it.
    let both = [pem(clients)?, pem(peers)?].join(&0);
    Some(Trust(names::digest(&both)))
}

/// The identity of a certificate.
#[must_use]
pub fn id(certificate: &Certificate) -> CertificateId {
    CertificateId(names::digest(certificate.der()))
}

/// The identity of a signer: its name and key.
#[must_use]
pub fn identity(certificate: &Certificate) -> u64 {
    names::digest(&certificate.identity().bytes())
}

/// A leaf that the operator keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The Secret that holds it.
    pub secret: String,
    /// Its common name: a user of etcd to members that it is shown to.
    pub common_name: String,
    /// Its DNS names and IP addresses.
    pub names: Vec<String>,
    /// Those of them that the spec adds to what the cluster itself needs.
    pub extra_names: Vec<String>,
    /// What it is for.
    pub usages: &'static [Usage],
}

impl Leaf {
    /// What goes into the certificate.
    #[must_use]
    pub fn profile(&self) -> Profile<'_> {
        Profile {
            common_name: &self.common_name,
            names: &self.names,
            usages: self.usages,
            lifetime: LEAF_LIFETIME,
        }
    }

    /// All names, each as a certificate has it.
    #[must_use]
    pub fn all_names(&self) -> BTreeSet<String> {
        let written = |name: &String| {
            name.parse::<IpAddr>().map_or_else(|_| name.clone(), |address| address.to_string())
        };
        self.names.iter().map(written).collect()
    }

    /// The names that members, and clients of the Services, dial one by.
    #[must_use]
    pub fn dialled(&self) -> Vec<String> {
        let needed = self.names.iter().filter(|name| !self.extra_names.contains(name));
        needed.filter(|name| !name.starts_with('*')).cloned().collect()
    }
}

/// The leaves of a cluster: of a member to clients, of a member to others, and of the operator. None where it speaks
/// plain HTTP.
#[must_use]
pub fn leaves(spec: &Spec) -> Option<[Leaf; 3]> {
    let secrets = spec.secrets()?;
    let name = spec.name();
    let both: &'static [Usage] = &[Usage::Server, Usage::Client];
    let needed = server_names(spec);
    let extra = spec.tls.iter().flat_map(|tls| tls.extra_names.clone());
    let extra_names: Vec<_> = extra.filter(|name| !needed.contains(name)).collect();
    let server = Leaf {
        secret: secrets.server.clone(),
        common_name: format!("{name}-server"),
        names: [needed, extra_names.clone()].concat(),
        extra_names,
        // Etcd's gateway for JSON is a client of its own member, by the member's certificate.
        usages: both,
    };
    let peer = Leaf {
        secret: secrets.peer.clone(),
        common_name: format!("{name}-peer"),
        names: member_names(spec),
        extra_names: Vec::new(),
        usages: both,
    };
    let client = Leaf {
        secret: secrets.client.clone(),
        common_name: ROOT.to_owned(),
        names: Vec::new(),
        extra_names: Vec::new(),
        usages: &[Usage::Client],
    };
    Some([server, peer, client])
}

/// What the authority of a cluster is called.
#[must_use]
pub fn authority_name(spec: &Spec) -> String {
    format!("{} etcd authority", spec.name())
}

/// A Secret of this cluster.
#[must_use]
pub fn secret(spec: &Spec, name: &str, kind: &str, data: BTreeMap<&str, ByteString>) -> Secret {
    Secret {
        metadata: metadata(spec, name.to_owned()),
        type_: Some(kind.to_owned()),
        data: Some(data.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ..Secret::default()
    }
}

/// The names of members: each for itself, since etcd resolves them, and all at once.
fn member_names(spec: &Spec) -> Vec<String> {
    let domain = format!("{}.{}.svc", spec.name(), spec.namespace());
    let members = (0..MEMBERS).map(|ordinal| spec.host(Ordinal(ordinal)));
    members.chain([format!("*.{domain}"), format!("*.{domain}.{DOMAIN}")]).collect()
}

/// The names of members, of the Services in front of them, and of one that is asked from within its pod.
fn server_names(spec: &Spec) -> Vec<String> {
    let (name, namespace) = (spec.name(), spec.namespace());
    let service = |name: &str| {
        [
            name.to_owned(),
            format!("{name}.{namespace}"),
            format!("{name}.{namespace}.svc"),
            format!("{name}.{namespace}.svc.{DOMAIN}"),
        ]
    };
    let local = ["localhost", "127.0.0.1", "::1"].map(ToOwned::to_owned);
    let services = [service(&names::client(name)), service(name)];
    member_names(spec).into_iter().chain(services.into_iter().flatten()).chain(local).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> Spec {
        super::super::tests::cluster(&serde_json::json!({}))
    }

    #[test]
    fn a_server_has_every_name_that_it_is_dialled_by() {
        let [server, ..] = leaves(&cluster()).unwrap();
        assert_eq!(server.secret, "c-server-tls");
        for name in [
            "c-0.c.shop.svc",
            "c-6.c.shop.svc",
            "*.c.shop.svc",
            "c.shop.svc",
            "c-client.shop.svc",
            "c-client",
            "localhost",
            "127.0.0.1",
        ] {
            assert!(server.names.iter().any(|given| given == name), "{name}: {:?}", server.names);
        }
        assert_eq!(server.usages, [Usage::Server, Usage::Client]);
    }

    #[test]
    fn what_clients_dial_beside_the_services_is_in_the_certificate_for_them_alone() {
        let extra = ["etcd.example.com", "*.etcd.example.com", "192.0.2.7"];
        let spec = super::super::tests::cluster(&serde_json::json!({"tls": {"extraNames": extra}}));
        let [server, peer, client] = leaves(&spec).unwrap();
        assert!(
            extra.iter().all(|name| server.names.iter().any(|given| given == name)),
            "{:?}",
            server.names
        );
        assert!(peer.names.iter().chain(&client.names).all(|name| !extra.contains(&name.as_str())));
    }

    #[test]
    fn a_peer_has_the_names_of_members_alone_and_only_the_operator_is_root() {
        let [server, peer, client] = leaves(&cluster()).unwrap();
        assert_eq!((peer.secret.as_str(), client.secret.as_str()), ("c-peer-tls", "c-client-tls"));
        assert!(peer.names.iter().all(|name| name.contains(".c.shop.svc")), "{:?}", peer.names);
        assert_eq!(peer.usages, [Usage::Server, Usage::Client]);
        assert_eq!((client.common_name.as_str(), client.usages), ("root", &[Usage::Client][..]));
        assert_eq!((server.common_name.as_str(), peer.common_name.as_str()), ("c-server", "c-peer"));
    }

    #[test]
    fn no_name_of_the_longest_cluster_is_longer_than_a_certificate_takes() {
        let mut longest = cluster();
        longest.metadata.name = Some("c".repeat(45));
        assert!(authority_name(&longest).len() <= 64);
        assert!(leaves(&longest).unwrap().iter().all(|leaf| leaf.common_name.len() <= 64));
    }
}
