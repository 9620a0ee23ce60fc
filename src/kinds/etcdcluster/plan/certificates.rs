//! The certificates that the operator manages. Pure.
//!
//! A member trusts what it read when it started, while it reads its own leaf again for each connection. Hence:
//!
//! - An authority that can be read keeps its key and its name: what it signs from then on, every member trusts already.
//! - One that was taken away, or cannot be read, is followed by another with another key, in this order: both are
//!   trusted, and every member starts once more; the new one signs all leaves; what members and clients may still show
//!   has a day to go; the new one alone is trusted, and every member starts once more.
//!
//! Guarantees: no member that trusts the one before alone meets a leaf of the new one, nor the other way round; the
//! authority is stored before anything that it has signed; what is written is conditional on what was read, so that two
//! operators end up with one authority; Secrets that are not the cluster's are left alone.
//! Never: restarts a pod. The template of the pods says whom members are to trust, and the roll follows it.

use std::collections::BTreeSet;

use super::cluster_state::ClusterState;
use crate::certs::rotate::steps::{self, AuthorityStep, LeafFacts, LeafStep};
use crate::kinds::etcdcluster::actions::{Action, AuthorityWrite, LeafWrite};
use crate::kinds::etcdcluster::observation::{
    AuthoritySecret, CertificateId, CertificateSecrets, Holder, LeafSecret, Signer,
};

/// What the certificates need. It waits for nothing else, and nothing waits for it but what starts members.
pub fn actions(cluster: &ClusterState) -> Vec<Action> {
    let Some(secrets) = cluster.seen.certificate_secrets.as_ref().filter(|_| !cluster.desired.rests()) else {
        return Vec::new();
    };
    if secrets.is_unknown() || secrets.is_name_taken() {
        return Vec::new();
    }
    let stored = secrets.authority.known();
    let signer = stored.and_then(|stored| stored.signer.as_ref());
    let bundle = bundle(secrets, signer);
    let other = stored.filter(|stored| stored.bundle != bundle).map(|_| bundle.clone());
    let write = |write| {
        let found = stored.map(|stored| stored.handle.clone());
        vec![Action::WriteAuthority { found, write, bundle: bundle.clone() }]
    };
    // The authority first: what it signs is of no use before it is stored.
    match steps::authority(signer.map(|signer| signer.renewal_age.is_past()), other) {
        AuthorityStep::Create => write(AuthorityWrite::Create),
        AuthorityStep::Reissue => write(AuthorityWrite::Reissue),
        AuthorityStep::WriteBundle(_) => write(AuthorityWrite::Bundle),
        AuthorityStep::Keep => leaves(cluster, secrets, stored.zip(signer)),
    }
}

/// All that is to be trusted: who signs, and of what was trusted before what leaves still need.
fn bundle(secrets: &CertificateSecrets, signer: Option<&Signer>) -> BTreeSet<CertificateId> {
    let signs = signer.map(|signer| signer.certificate);
    let identity = signs.and_then(|signs| Some(secrets.authorities.get(&signs)?.identity));
    let is_needed = |one: &CertificateId| {
        secrets.readable().any(|(.., leaf)| !leaf.overlap_age.is_past() || leaf.signed_by.contains(one))
    };
    let before = secrets.authorities.iter().filter(|(id, authority)| {
        Some(authority.identity) != identity && !authority.has_expired && is_needed(id)
    });
    before.map(|(id, _)| *id).chain(signs).collect()
}

fn leaves(
    cluster: &ClusterState,
    secrets: &CertificateSecrets,
    authority: Option<(&AuthoritySecret, &Signer)>,
) -> Vec<Action> {
    let Some((authority, signer)) = authority else { return Vec::new() };
    let is_known = is_known(cluster, secrets, authority, signer);
    let writes = Holder::ALL.into_iter().filter_map(|holder| {
        let stored = secrets.leaves.get(&holder).and_then(|leaf| leaf.known());
        let write = match steps::leaf(facts(stored, authority, signer), is_known) {
            LeafStep::Sign(why) => LeafWrite::Sign(why),
            LeafStep::Keep if stored.is_some_and(|stored| stored.trusted != authority.bundle) => {
                LeafWrite::Trust
            }
            LeafStep::Keep => return None,
        };
        let found = stored.map(|stored| stored.handle.clone());
        Some(Action::WriteCertificate { found, holder, write, authority: authority.handle.clone() })
    });
    writes.collect()
}

/// Whether all leaves that can be read have the names that are asked for. While an authority spreads that is another one
/// than theirs, those stay that have not.
pub fn have_wanted_names(cluster: &ClusterState) -> bool {
    let secrets = cluster.seen.certificate_secrets.iter();
    secrets.flat_map(CertificateSecrets::readable).all(|(.., leaf)| leaf.has_wanted_names)
}

fn facts(stored: Option<&LeafSecret>, authority: &AuthoritySecret, signer: &Signer) -> Option<LeafFacts> {
    let leaf = stored?.leaf.as_ref()?;
    Some(LeafFacts {
        is_due: leaf.renewal_age.is_past(),
        is_last_call: leaf.last_call_age.is_past(),
        is_fit: !leaf.fit_for.is_disjoint(&authority.bundle),
        has_wanted_names: leaf.has_wanted_names,
        is_of_authority: leaf.signed_by.contains(&signer.certificate),
    })
}

/// Whether the authority may sign: it is the only one that was ever trusted, it has signed all that there is, or all
/// who have to trust it do. Every member does whose pod was made from a template with the bundle that it is in; so does
/// one that has no pod, for it will be made by and by.
fn is_known(
    cluster: &ClusterState,
    secrets: &CertificateSecrets,
    authority: &AuthoritySecret,
    signer: &Signer,
) -> bool {
    if authority.bundle.len() < 2 || secrets.all_signed_by(signer.certificate) {
        return true;
    }
    let is_beside_each = Holder::ALL.iter().all(|holder| {
        let leaf = secrets.leaves.get(holder).and_then(|leaf| leaf.known());
        leaf.is_some_and(|leaf| leaf.trusted == authority.bundle)
    });
    let mut pods = cluster.seen.pods.elements();
    is_beside_each
        && signer.spread_age.is_past()
        && !cluster.seen.pods.is_unknown()
        && pods.all(|(_, pod)| pod.template.revision == cluster.desired.template.revision)
}
