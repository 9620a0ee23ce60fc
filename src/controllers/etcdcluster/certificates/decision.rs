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
//! - One that was taken away, or cannot be read, is followed by another with another key, in this order: both are
//!   trusted, and every member starts once more; the new one signs all leaves; what members and clients may still show
//!   has [`OVERLAP`] to go; the new one alone is trusted, and every member starts once more.
//!
//! No member that trusts the one before alone meets a leaf of the new one, nor the other way round.

use jiff::{SignedDuration, Timestamp};

use crate::certs::certificate::{Bundle, Certificate};
use crate::certs::mint::{self, Authority, Usage};
use crate::certs::rotate::{self, SKEW};
use crate::certs::verify;
use crate::controllers::etcdcluster::observation::Trust;
use crate::controllers::etcdcluster::resources::certificates::{self as resources, Leaf};

/// For how long what was trusted before stays so after the last leaf has left it: what a kubelet takes to refresh a
/// mounted Secret, and, generously, what clients take that have copies.
const OVERLAP: SignedDuration = SignedDuration::from_hours(24);

/// For how long an authority with a new key is trusted before it signs: generously, what a kubelet takes to refresh the
/// Secret that clients mount.
const PROPAGATION: SignedDuration = SignedDuration::from_mins(2);

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
    /// It is not what it should be: an authority that nobody trusts, another name or use.
    Unfit,
    /// Another authority signs by now, and every member trusts it.
    OtherAuthority,
}

impl Why {
    /// For logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "there was none",
            Self::Aged => "two thirds of its life are over",
            Self::Unfit => "it has an untrusted authority, another name or use",
            Self::OtherAuthority => "the authority is another one by now",
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
        let certificate = self.chain().into_iter().next()?;
        mint::is_pair(&self.key, &certificate).then_some(certificate)
    }

    /// The leaf, and what is sent behind it.
    #[must_use]
    pub fn chain(&self) -> Vec<Certificate> {
        Certificate::read_all(&self.certificate)
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
            now < followed || is_of(now, leaf, one)
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

/// Whom a leaf is signed by, and whom its holder and its peers trust.
#[derive(Clone, Copy, Debug)]
pub struct Authorities<'a> {
    /// Who signs.
    pub signs: &'a Certificate,
    /// Who is trusted.
    pub bundle: &'a Bundle,
    /// Whether every member has started with that bundle, and clients have had time to learn of it.
    pub is_known: bool,
}

/// What a leaf needs. Where the authority that signs is not known to all, a leaf of the one before stays in use up to the
/// last sixth of its life: after that, what some refuse is better than what all do.
#[must_use]
pub fn leaf(now: Timestamp, wanted: &Leaf, stored: &Pair, by: Authorities<'_>) -> LeafStep {
    let Some(leaf) = stored.leaf() else { return LeafStep::Sign(Why::Missing) };
    let is_due = now >= rotate::leaf_renewal(leaf.validity());
    if is_due && (by.is_known || now >= rotate::leaf_overdue(leaf.validity())) {
        return LeafStep::Sign(Why::Aged);
    }
    if !is_fit(now, wanted, &leaf, by.bundle.certificates()) {
        return LeafStep::Sign(Why::Unfit);
    }
    if by.is_known && !is_of(now, &leaf, by.signs) {
        return LeafStep::Sign(Why::OtherAuthority);
    }
    if stored.trusted == by.bundle.pem() { LeafStep::Keep } else { LeafStep::Trust }
}

/// Whether that authority has signed a leaf, each of which is a client's too.
fn is_of(now: Timestamp, leaf: &Certificate, authority: &Certificate) -> bool {
    verify::is_taken(leaf, std::slice::from_ref(authority), &[Usage::Client], &[], now)
}

/// Whether whoever has to trust the authority has had time to, members aside.
#[must_use]
pub fn has_spread(now: Timestamp, authority: &Certificate) -> bool {
    now >= rotate::after(authority.validity().not_before, SKEW + PROPAGATION)
}

/// Whether an authority has signed all of these.
#[must_use]
pub fn has_signed(now: Timestamp, leaves: &[Certificate], authority: &Certificate) -> bool {
    leaves.iter().all(|leaf| is_of(now, leaf, authority))
}

/// Whom members that start now trust, as the Secrets of their leaves have it, the server's and the peers' first; none
/// where these do not agree: one has been written, and the other not yet.
#[must_use]
pub fn trust(leaves: &[&Pair]) -> Option<Trust> {
    let [server, peer, ..] = leaves else { return None };
    let (clients, peers) = (server.authorities(), peer.authorities());
    resources::trust(&clients, &peers).filter(|trust| resources::trust(&clients, &clients) == Some(*trust))
}

/// What is to say while more than one authority is trusted.
#[must_use]
pub fn overlap(now: Timestamp, leaves: &[Certificate], by: Authorities<'_>) -> Option<&'static str> {
    if by.bundle.certificates().len() < 2 {
        None
    } else if has_signed(now, leaves, by.signs) {
        Some(
            "all certificates are of the new authority; the one before stays trusted for a day, and then each member \
             is restarted once more",
        )
    } else {
        Some(
            "there is a new authority: each member is restarted, one at a time, to trust it beside the one before, and \
             then it signs all certificates; clients have to trust what ca.crt has by then",
        )
    }
}

/// Whether whoever trusts `roots` takes the leaf for all that it is for.
#[must_use]
pub fn is_fit(now: Timestamp, wanted: &Leaf, leaf: &Certificate, roots: &[Certificate]) -> bool {
    verify::is_taken(leaf, roots, wanted.usages, &wanted.dialled(), now)
        && leaf.common_name() == Some(wanted.common_name.as_str())
}

#[cfg(test)]
mod tests;
