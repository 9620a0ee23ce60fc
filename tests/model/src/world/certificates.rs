//! The Secrets with the certificates that the operator keeps, and what each member trusted when it started.
//!
//! A certificate is the number of the key that signs by it. Leaves do not age here, and no authority is issued again:
//! neither changes whom anybody trusts. Members read a leaf again at once, which the time that is waited for stands
//! for.

use gatehouse::kinds::etcdcluster::actions::{AuthorityWrite, LeafWrite};
use gatehouse::kinds::etcdcluster::observation::{
    Authority, AuthoritySecret, CertificateId, CertificateSecrets, Certificates, Fact, Holder, Leaf,
    LeafSecret, Signer,
};

use super::*;

/// Who is trusted.
pub type Trusted = BTreeSet<CertificateId>;

/// The Secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Keyring {
    /// The one with the authority: who signs, and who is trusted.
    pub authority: Option<(CertificateId, Trusted)>,
    /// Those with a leaf: who has signed it, and who is trusted.
    pub leaves: BTreeMap<Holder, (CertificateId, Trusted)>,
    /// Whether the authority was made so lately that clients may not have read it.
    pub is_spreading: bool,
    /// Whether a leaf was signed so lately that a client may have a copy of the previous one.
    pub overlaps: bool,
    /// Keys that were made so far.
    keys: u64,
}

impl Keyring {
    fn authority_handle(&self) -> Option<Handle> {
        self.authority.as_ref().map(|secret| seen(&identity("ca"), secret))
    }

    fn leaf_handle(&self, holder: Holder) -> Option<Handle> {
        self.leaves.get(&holder).map(|secret| seen(&identity(&format!("{holder:?}")), secret))
    }

    /// Whom members that start now trust; no one where their two Secrets do not agree.
    pub fn trust(&self) -> Trusted {
        let of = |holder| self.leaves.get(&holder).map(|(_, trusted)| trusted);
        let server = of(Holder::Server).filter(|trusted| Some(*trusted) == of(Holder::Peer));
        server.cloned().unwrap_or_default()
    }

    /// By whom members that start now judge each other.
    pub fn of_peers(&self) -> Trusted {
        self.leaves.get(&Holder::Peer).map(|(_, trusted)| trusted.clone()).unwrap_or_default()
    }

    /// The revision of the template with them.
    pub fn revision(&self) -> u64 {
        self.trust().iter().fold(1, |revision, id| revision | 1 << id.0)
    }

    /// How they are.
    pub fn state(&self) -> Certificates {
        let is_fit = |(signed_by, trusted): &(CertificateId, Trusted)| trusted.contains(signed_by);
        if self.leaves.len() < Holder::ALL.len() {
            Certificates::Missing
        } else if self.trust().is_empty() || !self.leaves.values().all(is_fit) {
            Certificates::Unfit
        } else {
            Certificates::Valid
        }
    }

    /// What a plan has to know of them.
    pub fn facts(&self) -> CertificateSecrets {
        let age = |is_fresh| if is_fresh { Age::Fresh } else { Age::PastDeadline };
        let owner = Owner::Ours;
        let authority = self.authority.as_ref().zip(self.authority_handle());
        let leaf = |holder| {
            let Some(((signed_by, trusted), handle)) = self.leaves.get(&holder).zip(self.leaf_handle(holder))
            else {
                return Fact::Absent;
            };
            let leaf = Leaf {
                signed_by: BTreeSet::from([*signed_by]),
                fit_for: BTreeSet::from([*signed_by]),
                has_wanted_names: true,
                renewal_age: Age::Fresh,
                last_call_age: Age::Fresh,
                overlap_age: age(self.overlaps),
            };
            Fact::Known(LeafSecret { handle, owner, leaf: Some(leaf), trusted: trusted.clone() })
        };
        let trusted = self.leaves.values().chain(&self.authority).flat_map(|(_, trusted)| trusted);
        CertificateSecrets {
            authority: authority.map_or(Fact::Absent, |((signs, bundle), handle)| {
                let signer = Signer {
                    certificate: *signs,
                    renewal_age: Age::Fresh,
                    spread_age: age(self.is_spreading),
                };
                Fact::Known(AuthoritySecret { handle, owner, signer: Some(signer), bundle: bundle.clone() })
            }),
            leaves: Holder::ALL.into_iter().map(|holder| (holder, leaf(holder))).collect(),
            authorities: trusted.map(|id| (*id, Authority { identity: id.0, has_expired: false })).collect(),
        }
    }

    /// Whether it was done; false: refused.
    pub fn apply(&mut self, effect: &Effect) -> bool {
        match effect {
            Effect::WriteAuthority { found, write, bundle } => {
                let is_same = *found == self.authority_handle();
                let signs = match (write, &self.authority) {
                    (AuthorityWrite::Create, None) => CertificateId(self.keys + 1),
                    (AuthorityWrite::Bundle, Some((signs, _))) => *signs,
                    _ => return false,
                };
                if is_same {
                    self.is_spreading |= signs.0 > self.keys;
                    self.keys = self.keys.max(signs.0);
                    let trusted = bundle.iter().copied().chain([signs]).collect();
                    self.authority = Some((signs, trusted));
                }
                is_same
            }
            Effect::WriteCertificate { found, holder, write, authority } => {
                let is_same = *found == self.leaf_handle(*holder)
                    && Some(authority) == self.authority_handle().as_ref();
                let Some((signs, bundle)) = self.authority.clone().filter(|_| is_same) else { return false };
                let stored = self.leaves.get(holder).map(|(signed_by, _)| *signed_by);
                let signed_by = match (write, stored) {
                    (LeafWrite::Trust, Some(stored)) => stored,
                    (LeafWrite::Trust, None) => return false,
                    (LeafWrite::Sign(_), _) => signs,
                };
                self.overlaps |= Some(signed_by) != stored;
                self.leaves.insert(*holder, (signed_by, bundle));
                true
            }
            _ => false,
        }
    }

    /// Whether a deadline lies ahead.
    pub fn has_deadlines(&self) -> bool {
        self.is_spreading || self.overlaps
    }

    /// All deadlines pass.
    pub fn tick(&mut self) {
        self.is_spreading = false;
        self.overlaps = false;
    }
}

impl World {
    /// Whether a member shows another one a leaf that it does not trust.
    pub fn distrusts(&self) -> bool {
        let Some(keyring) = &self.objects.keyring else { return false };
        let Some((signed_by, _)) = keyring.leaves.get(&Holder::Peer) else { return false };
        let mut running = self.objects.pods.values().filter(|place| place.pod.phase == PodPhase::Up);
        running.any(|place| !place.trusts.contains(signed_by))
    }

    /// Whether one authority has signed all, and it alone is trusted.
    pub fn has_one_authority(&self) -> bool {
        let Some(keyring) = &self.objects.keyring else { return true };
        let Some((signs, _)) = &keyring.authority else { return false };
        let alone = (*signs, BTreeSet::from([*signs]));
        let is_alone = |secret: &(CertificateId, Trusted)| *secret == alone;
        keyring.authority.iter().chain(keyring.leaves.values()).all(is_alone)
            && keyring.leaves.len() == Holder::ALL.len()
    }
}
