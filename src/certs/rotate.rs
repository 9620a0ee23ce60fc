//! When the gate's certificates are renewed, and which CA certificates are trusted meanwhile. What follows from that is
//! in [`steps`], which the certificates of etcd clusters share.
//!
//! Pure: the time and everything that was read are arguments, so that replicas which see the same decide the same.
//!
//! ```text
//! authority  |--------- 365 d -------------------------------|
//!                          60-70 %: the same key and name again, both in the bundle
//! leaf       |- 7 d -|
//!                2/3: a new key
//! ```
//!
//! Guarantees:
//! - An authority's renewal keeps key and name: the old bundle verifies new leaves and the new bundle old ones, so
//!   that no order of writes, watches and restarts can fail a call.
//! - An authority with a *new* key (the Secret was lost or unreadable) is trusted for [`PROPAGATION`] before the
//!   leaf follows it, and the one before stays trusted for [`OVERLAP`]. Where the gate sees what is in force, the leaf
//!   follows only once the CA bundles in force have that authority, however long that takes.
//!
//! Assumes: clocks of replicas and API servers differ by less than [`SKEW`].

pub mod steps;

use jiff::{SignedDuration, Timestamp};

use super::certificate::{Bundle, Certificate, Validity};
use steps::{AuthorityStep, LeafFacts, LeafStep};

/// How long a leaf holds.
pub const LEAF_LIFETIME: SignedDuration = SignedDuration::from_hours(7 * 24);
/// How long an authority holds.
pub const AUTHORITY_LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);
/// By how much clocks may differ: certificates hold from so long before they were made.
pub const SKEW: SignedDuration = SignedDuration::from_hours(1);
/// How long a bundle with a new key in it takes, generously, to reach every API server: one poll of each replica,
/// one write, one watch event.
pub const PROPAGATION: SignedDuration = SignedDuration::from_mins(10);
/// How long an authority that was replaced by one with another key stays in the bundle: until every leaf that it
/// signed is gone, and a day.
pub const OVERLAP: SignedDuration = SignedDuration::from_hours(8 * 24);

/// Whether the CA bundles in force have the authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InForce {
    /// Other clients store them: waiting has to suffice.
    Unseen,
    /// They were, when last looked at.
    Trusted,
    /// They were not.
    Distrusted,
}

/// What a replica knows of its own leaf.
#[derive(Clone, Copy, Debug)]
pub struct LeafInUse<'a> {
    /// When it holds.
    pub validity: Validity,
    /// The authority's certificate that it was signed under.
    pub issuer: &'a Certificate,
}

/// What the shared state needs.
#[must_use]
pub fn authority(
    now: Timestamp,
    authority: Option<&Certificate>,
    stored_bundle: &[u8],
    leaf: Option<LeafInUse<'_>>,
) -> AuthorityStep<Bundle> {
    let is_due = authority.map(|authority| now >= authority_renewal(authority));
    let wanted = authority.and_then(|one| bundle(now, one, &Certificate::read_all(stored_bundle), leaf));
    steps::authority(is_due, wanted.filter(|wanted| wanted.pem() != stored_bundle))
}

/// What this replica's leaf needs.
#[must_use]
pub fn leaf(
    now: Timestamp,
    authority: &Certificate,
    leaf: Option<LeafInUse<'_>>,
    in_force: InForce,
) -> LeafStep {
    if now >= authority.validity().not_after {
        return LeafStep::Keep; // what it signed now would not hold
    }
    // Served too early, a leaf of a new key would be refused by a client with the old bundle; too late, it is the old
    // leaf that is refused.
    let is_seen = in_force != InForce::Distrusted;
    let has_spread = is_seen && now >= after(issued(authority), PROPAGATION);
    let margin = if is_seen { PROPAGATION } else { SignedDuration::ZERO };
    let facts = leaf.map(|leaf| LeafFacts {
        is_due: now >= leaf_renewal(leaf.validity),
        is_last_call: after(now, margin) >= leaf.validity.not_after,
        is_fit: true,
        has_wanted_names: true,
        is_of_authority: leaf.issuer.identity() == authority.identity(),
    });
    steps::leaf(facts, has_spread || facts.is_some_and(|facts| facts.is_of_authority))
}

/// All that is to be trusted at `now`: the authority, and of what was trusted before what is still needed.
///
/// Certificates of the same identity stay until they expire, others for [`OVERLAP`], and the issuer of the leaf
/// in use as long as that leaf holds.
#[must_use]
pub fn bundle(
    now: Timestamp,
    authority: &Certificate,
    trusted: &[Certificate],
    leaf: Option<LeafInUse<'_>>,
) -> Option<Bundle> {
    let overlaps = now < after(issued(authority), OVERLAP);
    let needed = trusted.iter().filter(|one| overlaps || one.identity() == authority.identity());
    let in_use = leaf.filter(|leaf| now < leaf.validity.not_after).map(|leaf| leaf.issuer);
    Bundle::of(
        needed
            .chain(in_use)
            .filter(|one| one.is_authority() && now < after(one.validity().not_after, SKEW))
            .chain([authority])
            .cloned(),
    )
}

/// When an authority is issued again: at 60 to 70 % of its life.
///
/// The share comes from its serial number, so that all replicas agree while clusters made on one day differ.
#[must_use]
pub fn authority_renewal(authority: &Certificate) -> Timestamp {
    let jitter = authority.serial().iter().fold(0_i64, |sum, byte| (sum * 31 + i64::from(*byte)) % 1_000);
    share(authority.validity(), 6_000 + jitter)
}

/// When a leaf is signed again: at two thirds of its life.
#[must_use]
pub fn leaf_renewal(leaf: Validity) -> Timestamp {
    share(leaf, 6_667)
}

/// From when on a leaf that others renew is overdue: at five sixths of its life. The usual moment is two thirds.
#[must_use]
pub fn leaf_overdue(leaf: Validity) -> Timestamp {
    share(leaf, 8_333)
}

/// The moment at which so many ten-thousandths of a life are over.
fn share(validity: Validity, ten_thousandths: i64) -> Timestamp {
    let life = validity.not_before.duration_until(validity.not_after).as_secs();
    after(validity.not_before, SignedDuration::from_secs(life.saturating_mul(ten_thousandths) / 10_000))
}

/// When it was made, which is later than when it began to hold.
fn issued(certificate: &Certificate) -> Timestamp {
    after(certificate.validity().not_before, SKEW)
}

/// Saturates at the end of time, which some certificates have as their last moment.
pub(crate) fn after(moment: Timestamp, duration: SignedDuration) -> Timestamp {
    moment.saturating_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
