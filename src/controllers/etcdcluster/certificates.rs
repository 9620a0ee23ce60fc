//! The certificates of a cluster: kept in Secrets of its own, or found in those that the spec names.
//!
//! Guarantees: an authority that can be read is never replaced; the authority is stored before anything that it has
//! signed; every write is conditional on what was read, so that two operators end up with one authority; Secrets that
//! are not the cluster's are read at most. No key is ever logged.
//! Never: restarts a pod. Etcd reads a leaf again for each connection, and trusts what it read when it started.

pub mod decision;
mod store;

use futures::future::join_all;
use jiff::Timestamp;
use kube::{Client, ResourceExt as _};

use super::observation::Certificates;
use super::resources::certificates::{self as resources, Leaf};
use super::resources::secrets::{self, Secrets};
use crate::api::etcdcluster::v1::{EtcdCluster, TlsMode};
use crate::certs::certificate::{Bundle, Certificate};
use crate::certs::mint::{self, Authority, Name};
use crate::certs::rotate;
use crate::runtime::call;
use decision::{AuthorityStep, Fault, LeafStep, Pair};
use store::{Slot, Store};

/// After so many lost races something else is wrong.
const ATTEMPTS: usize = 4;

/// What is wrong with the certificates.
#[derive(Debug, thiserror::Error)]
enum Problem {
    /// A call to the API server failed.
    #[error("failed to {verb} secret {secret}: {source}")]
    Call { verb: &'static str, secret: String, source: call::Error },
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
    Unusable(String, &'static str),
    /// It has to be renewed.
    #[error("the certificate in secret {0} has expired or soon will")]
    Overdue(String),
}

impl Problem {
    const fn certificates(&self) -> Certificates {
        match self {
            Self::Overdue(_) => Certificates::Expiring,
            _ => Certificates::Missing,
        }
    }
}

/// The certificates, and what there is to say of them.
type Said = (Certificates, Option<String>);

/// Sees to the certificates of a cluster, as its spec says: makes and renews them, or looks at those of others. Where
/// work rests, it only looks.
pub async fn ensure(client: &Client, cluster: &EtcdCluster, now: Timestamp) -> Said {
    let mode = cluster.spec.tls.as_ref().and_then(|tls| tls.mode).unwrap_or(TlsMode::Automatic);
    let store = Store::new(client, cluster);
    match (mode, secrets::of(cluster), resources::leaves(cluster)) {
        (TlsMode::Secrets, Some(named), _) => said(look(&store, &named, now).await),
        (TlsMode::Automatic, _, Some(leaves)) => Keeper { store, cluster, leaves, now }.keep().await,
        _ => (Certificates::Disabled, None),
    }
}

fn said(outcome: Result<(), Problem>) -> Said {
    match outcome {
        Ok(()) => (Certificates::Valid, None),
        Err(problem) => (problem.certificates(), Some(problem.to_string())),
    }
}

/// Looks at the Secrets that the spec names.
async fn look(store: &Store<'_>, named: &Secrets, now: Timestamp) -> Result<(), Problem> {
    let (client, peer) = (named.client_authority.as_ref(), named.peer_authority.as_ref());
    // The operator trusts what stands beside the certificate that it shows.
    let leaves = [(&named.server, client.is_none()), (&named.peer, peer.is_none()), (&named.client, true)];
    let mut overdue = None;
    for (name, needs_authorities) in leaves {
        let pair = store.pair(name).await?.ok_or_else(|| Problem::Missing(store.place(name)))?;
        match decision::fault(now, &pair, needs_authorities) {
            Some(Fault::Unreadable(words)) => return Err(Problem::Unusable(store.place(name), words)),
            Some(Fault::Overdue) => overdue = overdue.or_else(|| Some(Problem::Overdue(store.place(name)))),
            None => {}
        }
    }
    for name in [client, peer].into_iter().flatten() {
        let pair = store.pair(name).await?.ok_or_else(|| Problem::Missing(store.place(name)))?;
        if Certificate::read_all(&pair.trusted).is_empty() {
            return Err(Problem::Unusable(store.place(name), "has no certificate in ca.crt"));
        }
    }
    overdue.map_or(Ok(()), Err)
}

/// Keeps the certificates of one cluster.
struct Keeper<'a> {
    store: Store<'a>,
    cluster: &'a EtcdCluster,
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
    Done(Bundle),
    /// Something was written, or somebody else was first: it has to be read again.
    Again,
}

impl Keeper<'_> {
    async fn keep(&self) -> Said {
        for _ in 0..ATTEMPTS {
            let found = match self.read().await {
                Ok(found) => found,
                Err(problem) => return said(Err(problem)),
            };
            if decision::rests(self.cluster) {
                return said(self.judge(&found));
            }
            match self.settle(&found).await {
                Ok(Settled::Done(bundle)) => return (Certificates::Valid, overlap(&bundle)),
                Ok(Settled::Again) => {}
                // What is there may well last until it can be renewed.
                Err(problem) => return (said(self.judge(&found)).0, Some(problem.to_string())),
            }
        }
        said(Err(Problem::Contended))
    }

    fn authority_secret(&self) -> String {
        secrets::authority(&self.cluster.name_any())
    }

    async fn read(&self) -> Result<Found, Problem> {
        let authority = self.store.authority(&self.authority_secret()).await?;
        let leaves = join_all(self.leaves.iter().map(|leaf| self.store.leaf(&leaf.secret))).await;
        Ok(Found { authority, leaves: leaves.into_iter().collect::<Result<_, _>>()? })
    }

    /// The authority first: what it signs is of no use before it is stored.
    async fn settle(&self, found: &Found) -> Result<Settled, Problem> {
        let common_name = resources::authority_name(self.cluster);
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
        self.settle_leaves(found, &authority, bundle).await
    }

    async fn settle_leaves(
        &self,
        found: &Found,
        authority: &Authority,
        bundle: Bundle,
    ) -> Result<Settled, Problem> {
        let mut all_written = true;
        for (leaf, slot) in self.leaves.iter().zip(&found.leaves) {
            if let Some(pair) = self.renewed(leaf, slot, authority, &bundle)? {
                all_written &= self.store.write_leaf(&leaf.secret, slot, &pair).await?;
            }
        }
        Ok(if all_written { Settled::Done(bundle) } else { Settled::Again })
    }

    /// What a leaf's Secret is to hold, where it holds something else.
    fn renewed(
        &self,
        leaf: &Leaf,
        slot: &Slot,
        authority: &Authority,
        bundle: &Bundle,
    ) -> Result<Option<Pair>, Problem> {
        let stored = slot.pair().cloned().unwrap_or_default();
        let trusted = bundle.pem().to_vec();
        match decision::leaf(self.now, leaf, &stored, bundle) {
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

    /// What is to say of them as they are.
    fn judge(&self, found: &Found) -> Result<(), Problem> {
        let mut overdue = None;
        for (wanted, slot) in self.leaves.iter().zip(&found.leaves) {
            let place = || self.store.place(&wanted.secret);
            let pair = slot.pair().ok_or_else(|| Problem::Missing(place()))?;
            let leaf = pair.leaf().ok_or_else(|| {
                Problem::Unusable(place(), "has no certificate in tls.crt with its key in tls.key")
            })?;
            if self.now >= rotate::leaf_renewal(leaf.validity()) {
                overdue = overdue.or_else(|| Some(Problem::Overdue(place())));
            } else if !decision::is_fit(self.now, wanted, &leaf, &pair.authorities()) {
                return Err(Problem::Unusable(place(), "has a certificate that other members do not take"));
            }
        }
        overdue.map_or(Ok(()), Err)
    }
}

/// Whether a Secret has to be written for what is wanted of its authority. Text of others is left as they spelt it.
fn is_other(stored: &Pair, wanted: &Pair) -> bool {
    let certificates = |pem: &[u8]| Certificate::read_all(pem).into_iter().next();
    certificates(&stored.certificate) != certificates(&wanted.certificate) || stored.trusted != wanted.trusted
}

/// What is to say while more than one authority is trusted.
fn overlap(bundle: &Bundle) -> Option<String> {
    (bundle.certificates().len() > 1).then(|| {
        "the authority was lost and has been made anew: members trust it from their next start on, and have to \
         start before their certificates are renewed"
            .to_owned()
    })
}
