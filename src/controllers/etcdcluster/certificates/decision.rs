//! What the certificates of a cluster need. Pure.
//!
//! ```text
//! authority  |----------------------------- 10 years ------------------------------|
//!                                                 60-70 %: the same key and name again
//! leaf       |- 1 year -|
//!                 2/3: a new key
//! ```
//!
//! A member trusts what it read when it started, while it reads its own leaf again for each connection. Hence:
//!
//! - An authority that can be read keeps its key and its name: what it signs from then on, every member trusts already.
//! - One that was lost or cannot be read is followed by another, and what the leaves say of the one before stays
//!   trusted. Its leaves stay in use until they are due: by then every member has to have started once more.

use jiff::{SignedDuration, Timestamp};

use crate::api::etcdcluster::v1::EtcdCluster;
use crate::certs::certificate::{Bundle, Certificate};
use crate::certs::mint::{self, Authority, Usage};
use crate::certs::rotate::{self, SKEW};
use crate::certs::verify;
use crate::controllers::etcdcluster::resources::certificates::Leaf;

/// For how long what was trusted before stays so after the last leaf has left it: generously, what a kubelet takes to
/// refresh a mounted Secret.
const OVERLAP: SignedDuration = SignedDuration::from_hours(1);

/// What to do about the authority.
#[derive(Debug)]
pub enum AuthorityStep {
    /// Make one with a new key.
    Create,
    /// Issue it again, same key and name.
    Reissue(Authority),
    /// Nothing.
    Keep(Authority),
}

/// What to do about a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafStep {
    /// Sign a new one.
    Sign(Why),
    /// Keep it, and write what is to be trusted beside it.
    Trust,
    /// Nothing.
    Keep,
}

/// Why a leaf is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is none that can be read.
    Missing,
    /// Two thirds of its life are over.
    Aged,
    /// It is not what it should be: another authority, name or use.
    Unfit,
}

impl Why {
    /// For logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "there was none",
            Self::Aged => "two thirds of its life are over",
            Self::Unfit => "it has another authority, name or use",
        }
    }
}

/// A certificate and its key, as a Secret has them, and what is to be trusted beside them. All PEM, and maybe none.
/// Nothing prints it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Pair {
    /// The certificate.
    pub certificate: Vec<u8>,
    /// Its private key.
    pub key: Vec<u8>,
    /// Authorities.
    pub trusted: Vec<u8>,
}

impl Pair {
    /// The leaf, where it can be read and the key is its own.
    #[must_use]
    pub fn leaf(&self) -> Option<Certificate> {
        let certificate = Certificate::read_all(&self.certificate).into_iter().next()?;
        mint::is_pair(&self.key, &certificate).then_some(certificate)
    }

    /// The authorities that can be read.
    #[must_use]
    pub fn authorities(&self) -> Vec<Certificate> {
        Certificate::read_all(&self.trusted).into_iter().filter(Certificate::is_authority).collect()
    }
}

/// What the authority needs, as its Secret has it.
#[must_use]
pub fn authority(now: Timestamp, stored: Option<&Pair>) -> AuthorityStep {
    let loaded = stored.map(|stored| Authority::load(&stored.key, &stored.certificate));
    match loaded {
        Some(Ok(authority)) if now >= rotate::authority_renewal(authority.certificate()) => {
            AuthorityStep::Reissue(authority)
        }
        Some(Ok(authority)) => AuthorityStep::Keep(authority),
        Some(Err(_)) | None => AuthorityStep::Create,
    }
}

/// All that is to be trusted: the authority, and of what was `trusted` before what `leaves` still need, each of which
/// is a client's too.
#[must_use]
pub fn bundle(
    now: Timestamp,
    authority: &Certificate,
    trusted: &[Certificate],
    leaves: &[Certificate],
) -> Option<Bundle> {
    let in_use = |one: &Certificate| {
        leaves.iter().any(|leaf| {
            let followed = rotate::after(leaf.validity().not_before, SKEW + OVERLAP);
            now < followed || verify::is_taken(leaf, std::slice::from_ref(one), &[Usage::Client], &[], now)
        })
    };
    let before = trusted.iter().filter(|one| {
        one.is_authority()
            && one.identity() != authority.identity()
            && now < one.validity().not_after
            && in_use(one)
    });
    Bundle::of(before.chain([authority]).cloned())
}

/// What a leaf needs, where `bundle` is to be trusted.
#[must_use]
pub fn leaf(now: Timestamp, wanted: &Leaf, stored: &Pair, bundle: &Bundle) -> LeafStep {
    let Some(leaf) = stored.leaf() else { return LeafStep::Sign(Why::Missing) };
    if now >= rotate::leaf_renewal(leaf.validity()) {
        return LeafStep::Sign(Why::Aged);
    }
    if !is_fit(now, wanted, &leaf, bundle.certificates()) {
        return LeafStep::Sign(Why::Unfit);
    }
    if stored.trusted == bundle.pem() { LeafStep::Keep } else { LeafStep::Trust }
}

/// Whether whoever trusts `roots` takes the leaf for all that it is for.
#[must_use]
pub fn is_fit(now: Timestamp, wanted: &Leaf, leaf: &Certificate, roots: &[Certificate]) -> bool {
    verify::is_taken(leaf, roots, wanted.usages, &wanted.dialled(), now)
        && leaf.common_name() == Some(wanted.common_name.as_str())
}

/// What is wrong with a leaf that somebody else keeps: so that nobody takes it, or that it soon will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A key of the Secret is not there, or is not what it should be.
    Unreadable(&'static str),
    /// It does not hold yet, does not any more, or is close to that.
    Overdue,
}

/// Looks at a pair that somebody else keeps. `needs_authorities` is false where those are elsewhere.
#[must_use]
pub fn fault(now: Timestamp, stored: &Pair, needs_authorities: bool) -> Option<Fault> {
    let Some(leaf) = stored.leaf() else {
        return Some(Fault::Unreadable("has no certificate in tls.crt with its key in tls.key"));
    };
    if needs_authorities && Certificate::read_all(&stored.trusted).is_empty() {
        return Some(Fault::Unreadable("has no certificate in ca.crt"));
    }
    let holds = leaf.validity().not_before <= now && now < rotate::leaf_overdue(leaf.validity());
    (!holds).then_some(Fault::Overdue)
}

/// Whether nothing may be written: work rests, or the object goes.
#[must_use]
pub fn rests(cluster: &EtcdCluster) -> bool {
    cluster.spec.paused == Some(true) || cluster.metadata.deletion_timestamp.is_some()
}

#[cfg(test)]
mod tests;
