//! The Secrets with the certificates of a cluster, as far as a plan has to know them: no key, no certificate, and no
//! clock.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Age, Fact, Handle, Owner};

/// Digest of the authorities by which members verify clients and each other. A member reads them when it starts: one
/// that started with others has to start again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Trust(pub u64);

impl fmt::Display for Trust {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// Certificates that pods mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Certificates {
    /// Plain HTTP.
    Disabled,
    /// All are there and valid.
    Valid,
    /// One has expired or soon will.
    Expiring,
    /// A Secret is missing or cannot be read.
    Missing,
    /// A Secret holds what members, or the operator, would not take.
    Unfit,
}

impl Certificates {
    /// Whether a pod that starts now gets what it needs.
    #[must_use]
    pub const fn is_usable(self) -> bool {
        matches!(self, Self::Disabled | Self::Valid | Self::Expiring)
    }
}

/// Digest of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CertificateId(pub u64);

/// Who shows a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Holder {
    /// A member, to clients.
    Server,
    /// A member, to other members.
    Peer,
    /// The operator, to members.
    Client,
}

impl Holder {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Server, Self::Peer, Self::Client];
}

/// The Secrets with the certificates that the operator keeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CertificateSecrets {
    /// The one with the authority.
    pub authority: Fact<AuthoritySecret>,
    /// Those with a leaf each.
    pub leaves: BTreeMap<Holder, Fact<LeafSecret>>,
    /// The authorities whose certificates are in any of them.
    pub authorities: BTreeMap<CertificateId, Authority>,
}

/// The certificate of an authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Authority {
    /// Digest of its name and its key: what one of them has signed, each certificate of the same identity verifies.
    pub identity: u64,
    /// Whether it holds no longer.
    pub has_expired: bool,
}

/// The Secret with the authority.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AuthoritySecret {
    /// As it was seen.
    pub handle: Handle,
    /// Whose it is.
    pub owner: Owner,
    /// Who signs; none where its certificate and its key are no pair, or cannot be read.
    pub signer: Option<Signer>,
    /// All that is to be trusted.
    pub bundle: BTreeSet<CertificateId>,
}

/// Who signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Signer {
    /// Its certificate.
    pub certificate: CertificateId,
    /// Whether it has to be issued again.
    pub renewal_age: Age,
    /// Whether clients have had time to read it.
    pub spread_age: Age,
}

/// A Secret with a leaf.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeafSecret {
    /// As it was seen.
    pub handle: Handle,
    /// Whose it is.
    pub owner: Owner,
    /// The leaf; none where its certificate and its key are no pair, or cannot be read.
    pub leaf: Option<Leaf>,
    /// The certificates that its holder is to trust.
    pub trusted: BTreeSet<CertificateId>,
}

/// A leaf.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Leaf {
    /// The authorities that have signed it.
    pub signed_by: BTreeSet<CertificateId>,
    /// Those of them whose friends take it for all that the cluster itself needs it for.
    pub fit_for: BTreeSet<CertificateId>,
    /// Whether it is for the names that are asked for, with what the spec adds, and for no others.
    pub has_wanted_names: bool,
    /// Whether it is time for another one.
    pub renewal_age: Age,
    /// Whether it is so near its end that another one cannot wait.
    pub last_call_age: Age,
    /// Whether clients with a copy of the earlier leaf have had time to read this one.
    pub overlap_age: Age,
}

impl LeafSecret {
    /// Whether a peer that trusts what stands beside the leaf takes it.
    #[must_use]
    pub fn is_fit(&self) -> bool {
        self.leaf.as_ref().is_some_and(|leaf| !leaf.fit_for.is_disjoint(&self.trusted))
    }
}

impl CertificateSecrets {
    /// Whether one of them belongs to another owner.
    #[must_use]
    pub fn is_name_taken(&self) -> bool {
        let authority = self.authority.known().map(|secret| secret.owner);
        let leaves = self.leaves.values().filter_map(|leaf| Some(leaf.known()?.owner));
        authority.into_iter().chain(leaves).any(|owner| owner == Owner::Foreign)
    }

    /// Whether one of them could not be read.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.authority.is_unknown() || self.leaves.values().any(Fact::is_unknown)
    }

    /// The leaves that can be read.
    pub fn readable(&self) -> impl Iterator<Item = (Holder, &LeafSecret, &Leaf)> {
        self.leaves.iter().filter_map(|(holder, secret)| {
            let secret = secret.known()?;
            Some((*holder, secret, secret.leaf.as_ref()?))
        })
    }

    /// Whether that certificate of an authority has signed every leaf.
    #[must_use]
    pub fn all_signed_by(&self, authority: CertificateId) -> bool {
        let signed = self.readable().filter(|(.., leaf)| leaf.signed_by.contains(&authority));
        signed.count() == Holder::ALL.len()
    }
}
