//! The certificates of a cluster: kept in Secrets of its own, or found in those that the spec names.
//!
//! Guarantees: an authority that can be read is never replaced; the authority is stored before anything that it has
//! signed, and another one signs nothing before every member trusts it, see [`decision`]; every write is conditional on
//! what was read, so that two operators end up with one authority; Secrets that are not the cluster's are read at most.
//! No key is ever logged.
//! Assumes: a pod that is made anew mounts its Secrets as they are by then.
//! Never: restarts a pod. Etcd reads a leaf again for each connection, and trusts what it read when it started: whom that
//! is to be is told in [`Standing::trust`], which is part of what pods are made from.

pub mod decision;
mod named;
mod store;

use futures::future::join_all;
use jiff::Timestamp;
use kube::Client;

use super::names;
use super::observation::Certificates;
use super::observation::Trust;
use super::resources::certificates::{self as resources, Leaf};
use super::spec::{self, Spec};
use crate::certs::certificate::{Bundle, Certificate};
use crate::certs::mint::{self, Authority, Name};
use crate::certs::rotate;
use crate::runtime::call;
use decision::{Authorities, AuthorityStep, LeafStep, Pair};
pub use store::Ends;
use store::{Slot, Store};

/// After so many lost races something else is wrong.
const ATTEMPTS: usize = 4;

/// What is wrong with the certificates.
#[derive(Debug, thiserror::Error)]
enum Problem {
    /// A call to the API server failed.
    #[error("failed to {verb} {object}: {source}")]
    Call { verb: &'static str, object: String, source: call::Error },
    /// A certificate could not be made.
    #[error(transparent)]
    Mint(#[from] mint::Error),
    /// Somebody keeps writing them.
    #[error("failed to settle on the certificates: their secrets changed {ATTEMPTS} times in a row")]
    Contended,
    /// A name is taken.
    #[error("secret {0} belongs to somebody else: remove it, and the cluster gets its own")]
    Foreign(String),
    /// It is not there.
    #[error("secret {0} is missing")]
    Missing(String),
    /// There is no use in it.
    #[error("secret {0} {1}")]
    Unusable(String, String),
    /// It has to be renewed.
    #[error("the certificate in secret {0} has expired or soon will")]
    Overdue(String),
}

impl Problem {
    const fn certificates(&self) -> Certificates {
        match self {
            Self::Overdue(_) => Certificates::Expiring,
            Self::Unusable(..) => Certificates::Unfit,
            _ => Certificates::Missing,
        }
    }
}

/// The certificates of a cluster, and what there is to say of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// How they are.
    pub state: Certificates,
    /// Whom members that start now trust; none where they speak plain HTTP, or it cannot be told.
    pub trust: Option<Trust>,
    /// What people ought to know.
    pub words: Option<String>,
    /// Whether somebody has to see to it.
    pub is_problem: bool,
}

impl Standing {
    fn bad(problem: &Problem) -> Self {
        Self {
            state: problem.certificates(),
            trust: None,
            words: Some(problem.to_string()),
            is_problem: true,
        }
    }

    /// Fit for use, although one may be about to expire.
    fn fit(trust: Option<Trust>, overdue: Option<&Problem>) -> Self {
        let state = overdue.map_or(Certificates::Valid, Problem::certificates);
        Self { state, trust, words: overdue.map(ToString::to_string), is_problem: overdue.is_some() }
    }
}

/// Sees to the certificates of a cluster, as its spec says: makes and renews them, or looks at those of others. Where
/// work rests, it only looks.
pub async fn ensure(client: &Client, spec: &Spec, ends: &Ends, now: Timestamp) -> Standing {
    let store = Store::new(client, spec, ends);
    match (&spec.tls, resources::leaves(spec)) {
        (Some(tls), _) if tls.keeper == spec::Keeper::Others => {
            match named::look(&store, spec, &tls.secrets, now).await {
                Ok((trust, overdue)) => Standing::fit(trust, overdue.as_ref()),
                Err(problem) => Standing::bad(&problem),
            }
        }
        (Some(_), Some(leaves)) => Keeper { store, spec, leaves, now }.keep().await,
        _ => Standing { state: Certificates::Disabled, trust: None, words: None, is_problem: false },
    }
}

/// Keeps the certificates of one cluster.
struct Keeper<'a> {
    store: Store<'a>,
    spec: &'a Spec,
    leaves: [Leaf; 3],
    now: Timestamp,
}

/// What is there.
struct Found {
    authority: Slot,
    leaves: Vec<Slot>,
}

/// How a round ended.
enum Settled {
    /// All is as it should be.
    Done(Standing),
    /// Something was written, or somebody else was first: it has to be read again.
    Again,
}

impl Keeper<'_> {
    async fn keep(&self) -> Standing {
        for _ in 0..ATTEMPTS {
            let found = match self.read().await {
                Ok(found) => found,
                Err(problem) => return Standing::bad(&problem),
            };
            if self.spec.is_paused || self.spec.is_deleting() {
                return self.judge(&found);
            }
            match self.settle(&found).await {
                Ok(Settled::Done(standing)) => return standing,
                Ok(Settled::Again) => {}
                // What is there may well last until it can be renewed.
                Err(problem) => {
                    let words = Some(problem.to_string());
                    return Standing { words, is_problem: true, ..self.judge(&found) };
                }
            }
        }
        Standing::bad(&Problem::Contended)
    }

    fn authority_secret(&self) -> String {
        names::authority(self.spec.name())
    }

    async fn read(&self) -> Result<Found, Problem> {
        let authority = self.store.authority(&self.authority_secret()).await?;
        let leaves = join_all(self.leaves.iter().map(|leaf| self.store.leaf(&leaf.secret))).await;
        Ok(Found { authority, leaves: leaves.into_iter().collect::<Result<_, _>>()? })
    }

    /// The authority first: what it signs is of no use before it is stored.
    async fn settle(&self, found: &Found) -> Result<Settled, Problem> {
        let common_name = resources::authority_name(self.spec);
        let name = Name { common_name: &common_name, lifetime: resources::AUTHORITY_LIFETIME };
        let stored = found.authority.pair();
        let mut trusted = stored.map(Pair::authorities).unwrap_or_default();
        let authority = match decision::authority(self.now, stored) {
            AuthorityStep::Keep(authority) => authority,
            AuthorityStep::Reissue(authority) => authority.reissue_as(name, self.now)?,
            AuthorityStep::Create => {
                let leaves = found.leaves.iter().filter_map(Slot::pair);
                trusted.extend(leaves.flat_map(Pair::authorities));
                Authority::create_as(name, self.now)?
            }
        };
        let leaves: Vec<_> = found.leaves.iter().filter_map(|slot| slot.pair()?.leaf()).collect();
        let bundle = decision::bundle(self.now, authority.certificate(), &trusted, &leaves);
        let Some(bundle) = bundle else { return Ok(Settled::Again) }; // never: the authority is in it
        let wanted = Pair {
            certificate: authority.certificate_pem(),
            key: authority.key_pem(),
            trusted: bundle.pem().to_vec(),
        };
        if stored.is_none_or(|stored| is_other(stored, &wanted)) {
            self.store.write_authority(&self.authority_secret(), &found.authority, &wanted).await?;
            return Ok(Settled::Again);
        }
        self.settle_leaves(found, &authority, &bundle).await
    }

    async fn settle_leaves(
        &self,
        found: &Found,
        authority: &Authority,
        bundle: &Bundle,
    ) -> Result<Settled, Problem> {
        let trust = resources::trust(bundle.certificates(), bundle.certificates());
        let stored: Vec<_> = found.leaves.iter().filter_map(|slot| slot.pair()?.leaf()).collect();
        let is_known = self.is_known(&stored, authority.certificate(), bundle, trust).await;
        let by = Authorities { signs: authority.certificate(), bundle, is_known };
        let mut all_written = true;
        let mut leaves = Vec::new();
        for (leaf, slot) in self.leaves.iter().zip(&found.leaves) {
            let renewed = self.renewed(leaf, slot, authority, by)?;
            if let Some(pair) = &renewed {
                all_written &= self.store.write_leaf(&leaf.secret, slot, pair).await?;
            }
            leaves.extend(renewed.as_ref().or_else(|| slot.pair()).and_then(Pair::leaf));
        }
        if !all_written {
            return Ok(Settled::Again);
        }
        let words = decision::overlap(self.now, &leaves, by).map(str::to_owned);
        Ok(Settled::Done(Standing { state: Certificates::Valid, trust, words, is_problem: false }))
    }

    /// Whether the authority may sign: it is the only one that was ever trusted, it has signed all that there is, or all
    /// who have to trust it do. Every member does whose pod was made from a template with the bundle that it is in; so
    /// does one that has no pod, for it will be made by and by.
    async fn is_known(
        &self,
        stored: &[Certificate],
        authority: &Certificate,
        bundle: &Bundle,
        trust: Option<Trust>,
    ) -> bool {
        let has_signed =
            stored.len() == self.leaves.len() && decision::has_signed(self.now, stored, authority);
        if bundle.certificates().len() < 2 || has_signed {
            return true;
        }
        let revision = self.spec.revision(trust);
        decision::has_spread(self.now, authority)
            && match self.store.revisions().await {
                Ok(revisions) => revisions.into_iter().all(|made_from| made_from == revision),
                Err(problem) => {
                    tracing::warn!(%problem, "an authority has to wait");
                    false
                }
            }
    }

    /// What a leaf's Secret is to hold, where it holds something else.
    fn renewed(
        &self,
        leaf: &Leaf,
        slot: &Slot,
        authority: &Authority,
        by: Authorities<'_>,
    ) -> Result<Option<Pair>, Problem> {
        let stored = slot.pair().cloned().unwrap_or_default();
        let trusted = by.bundle.pem().to_vec();
        match decision::leaf(self.now, leaf, &stored, by) {
            LeafStep::Keep => Ok(None),
            LeafStep::Trust => Ok(Some(Pair { trusted, ..stored })),
            LeafStep::Sign(why) => {
                let signed = authority.sign(&leaf.profile(), self.now)?;
                let secret = self.store.place(&leaf.secret);
                tracing::info!(secret, why = why.as_str(), not_after = %signed.validity().not_after, "signing");
                let (certificate, key) = (signed.certificate_pem(), signed.key_pem());
                Ok(Some(Pair { certificate, key, trusted }))
            }
        }
    }

    /// How they are as they are.
    fn judge(&self, found: &Found) -> Standing {
        let mut overdue = None;
        for (wanted, slot) in self.leaves.iter().zip(&found.leaves) {
            match self.fault(wanted, slot) {
                Some(problem @ Problem::Overdue(_)) => overdue = overdue.or(Some(problem)),
                Some(problem) => return Standing::bad(&problem),
                None => {}
            }
        }
        let trust = decision::trust(&found.leaves.iter().filter_map(Slot::pair).collect::<Vec<_>>());
        if trust.is_none() {
            let [server, peer, _] = self.leaves.each_ref().map(|leaf| self.store.place(&leaf.secret));
            return Standing::bad(&Problem::Unusable(
                peer,
                format!("has another ca.crt than secret {server}"),
            ));
        }
        Standing::fit(trust, overdue.as_ref())
    }

    /// What is wrong with a leaf.
    fn fault(&self, wanted: &Leaf, slot: &Slot) -> Option<Problem> {
        let place = self.store.place(&wanted.secret);
        let Some(pair) = slot.pair() else { return Some(Problem::Missing(place)) };
        let Some(leaf) = pair.leaf() else {
            let words = "has no certificate in tls.crt with its key in tls.key";
            return Some(Problem::Unusable(place, words.to_owned()));
        };
        if self.now >= rotate::leaf_renewal(leaf.validity()) {
            return Some(Problem::Overdue(place));
        }
        let is_fit = decision::is_fit(self.now, wanted, &leaf, &pair.authorities());
        let words = "has a certificate in tls.crt that other members do not take";
        (!is_fit).then(|| Problem::Unusable(place, words.to_owned()))
    }
}

/// Whether a Secret has to be written for what is wanted of its authority. Text of others is left as they spelt it.
fn is_other(stored: &Pair, wanted: &Pair) -> bool {
    let certificates = |pem: &[u8]| Certificate::read_all(pem).into_iter().next();
    certificates(&stored.certificate) != certificates(&wanted.certificate) || stored.trusted != wanted.trusted
}
