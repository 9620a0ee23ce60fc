//! The certificates that the operator manages, as facts. Pure.
//!
//! ```text
//! authority  |----------------------------- 10 years ------------------------------|
//!                                                 60-70 %: the same key and name again
//! leaf       |- 1 year -|
//!                 2/3: a new key
//! ```

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;

use super::pair::{OF_AUTHORITY, OF_LEAF, Pair};
use super::{CertificateStatus, Found, Problem};
use crate::certs::certificate::Certificate;
use crate::certs::mint::{self, Usage};
use crate::certs::rotate::{self, SKEW};
use crate::certs::verify;
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{
    Age, Authority, AuthoritySecret, CertificateId, CertificateSecrets, Fact, Holder, Leaf, LeafSecret,
    Owner, Signer, Trust,
};
use crate::kinds::etcdcluster::observe::kubernetes::{handle, owner};
use crate::kinds::etcdcluster::resources::certificates::{self as resources, Leaf as Wanted};
use crate::kinds::etcdcluster::spec::Spec;

/// For how long what was trusted before stays so after the last leaf has left it: what a kubelet takes to refresh a
/// mounted Secret, and, generously, what clients take that have copies.
const OVERLAP: SignedDuration = SignedDuration::from_hours(24);

/// For how long an authority with a new key is trusted before it signs: generously, what a kubelet takes to refresh the
/// Secret that clients mount.
const PROPAGATION: SignedDuration = SignedDuration::from_mins(2);

/// The Secrets to read.
pub fn names(spec: &Spec) -> Vec<String> {
    let leaves = resources::leaves(spec).into_iter().flatten().map(|leaf| leaf.secret);
    leaves.chain([names::authority(spec.name())]).collect()
}

/// How they are, and what a plan has to know of them.
pub fn status(found: &Found<'_>, now: Timestamp) -> CertificateStatus {
    let secrets = facts(found, now);
    let standing = match fault(found, &secrets) {
        Ok((trust, overdue)) => CertificateStatus::fit(Some(trust), overdue.as_ref()),
        Err(problem) => CertificateStatus::bad(&problem),
    };
    let is_repaired = !found.spec.rests() && !secrets.is_unknown() && !secrets.is_name_taken();
    // What the next reconciliations repair is not reported, except that an authority is being replaced.
    let standing = if is_repaired {
        CertificateStatus { words: overlap(&secrets), is_problem: false, ..standing }
    } else {
        standing
    };
    CertificateStatus { secrets: Some(secrets), ..standing }
}

/// What a plan has to know of them.
fn facts(found: &Found<'_>, now: Timestamp) -> CertificateSecrets {
    let name = names::authority(found.spec.name());
    let read = |name: &str| match found.secret(name) {
        Ok(found) => found.map_or(Fact::Absent, Fact::Known),
        Err(_) => Fact::Unknown,
    };
    let stored = read(&name);
    let wanted: Vec<_> =
        Holder::ALL.into_iter().zip(resources::leaves(found.spec).into_iter().flatten()).collect();
    let leaves: Vec<_> =
        wanted.iter().map(|(holder, wanted)| (*holder, wanted, read(&wanted.secret))).collect();
    let pairs = leaves.iter().filter_map(|(.., found)| Some(Pair::of(found.known()?, OF_LEAF)));
    let authority = stored.known().map(|secret| Pair::of(secret, OF_AUTHORITY));
    let signers = authority.iter().flat_map(Pair::chain);
    let trusted = authority.iter().flat_map(Pair::authorities);
    let all: Vec<_> = pairs.flat_map(|pair| pair.authorities()).chain(signers).chain(trusted).collect();
    let all: BTreeMap<_, _> =
        all.into_iter().filter(Certificate::is_authority).map(|one| (resources::id(&one), one)).collect();
    let uid = found.spec.uid();
    CertificateSecrets {
        authority: stored.map(|secret| authority_secret(secret, uid, now)),
        leaves: leaves
            .iter()
            .map(|(holder, wanted, found)| {
                (*holder, found.as_ref().map(|secret| leaf_secret(secret, wanted, &all, uid, now)))
            })
            .collect(),
        authorities: all.iter().map(|(id, one)| (*id, self::authority(one, now))).collect(),
    }
}

fn age(is_past: bool) -> Age {
    if is_past { Age::PastDeadline } else { Age::Fresh }
}

fn authority(certificate: &Certificate, now: Timestamp) -> Authority {
    let has_expired = now >= certificate.validity().not_after;
    Authority { identity: resources::identity(certificate), has_expired }
}

fn authority_secret(secret: &Secret, uid: &str, now: Timestamp) -> AuthoritySecret {
    let pair = Pair::of(secret, OF_AUTHORITY);
    let signer = mint::Authority::load(&pair.key, &pair.certificate).ok().map(|loaded| {
        let certificate = loaded.certificate();
        let spread = rotate::after(certificate.validity().not_before, SKEW + PROPAGATION);
        Signer {
            certificate: resources::id(certificate),
            renewal_age: age(now >= rotate::authority_renewal(certificate)),
            spread_age: age(now >= spread),
        }
    });
    AuthoritySecret {
        handle: handle(&secret.metadata),
        owner: owner(&secret.metadata, uid),
        signer,
        bundle: ids(&pair),
    }
}

fn leaf_secret(
    secret: &Secret,
    wanted: &Wanted,
    authorities: &BTreeMap<CertificateId, Certificate>,
    uid: &str,
    now: Timestamp,
) -> LeafSecret {
    let pair = Pair::of(secret, OF_LEAF);
    LeafSecret {
        handle: handle(&secret.metadata),
        owner: owner(&secret.metadata, uid),
        leaf: pair.leaf().map(|certificate| leaf(&certificate, wanted, authorities, now)),
        trusted: ids(&pair),
    }
}

fn leaf(
    certificate: &Certificate,
    wanted: &Wanted,
    authorities: &BTreeMap<CertificateId, Certificate>,
    now: Timestamp,
) -> Leaf {
    // Each leaf is a client's too.
    let is_signed = |by: &Certificate| {
        verify::is_taken(certificate, std::slice::from_ref(by), &[Usage::Client], &[], now)
    };
    let signed: Vec<_> = authorities.iter().filter(|(_, by)| is_signed(by)).collect();
    let (names, validity) = (wanted.dialled(), certificate.validity());
    let is_fit = |by: &Certificate| {
        verify::is_taken(certificate, std::slice::from_ref(by), wanted.usages, &names, now)
            && certificate.common_name() == Some(wanted.common_name.as_str())
    };
    Leaf {
        fit_for: signed.iter().filter(|(_, by)| is_fit(by)).map(|(id, _)| **id).collect(),
        signed_by: signed.into_iter().map(|(id, _)| *id).collect(),
        has_wanted_names: *certificate.names() == wanted.all_names(),
        renewal_age: age(now >= rotate::leaf_renewal(validity)),
        last_call_age: age(now >= rotate::leaf_overdue(validity)),
        overlap_age: age(now >= rotate::after(validity.not_before, SKEW + OVERLAP)),
    }
}

fn ids(pair: &Pair) -> BTreeSet<CertificateId> {
    pair.trusted().iter().map(resources::id).collect()
}

/// Whom members that start now trust, and what is about to expire; or what keeps them from starting.
fn fault(found: &Found<'_>, secrets: &CertificateSecrets) -> Result<(Trust, Option<Problem>), Problem> {
    for name in names(found.spec) {
        let foreign =
            found.secret(&name)?.filter(|one| owner(&one.metadata, found.spec.uid()) == Owner::Foreign);
        if foreign.is_some() {
            return Err(Problem::Foreign(found.place(&name)));
        }
    }
    let wanted: Vec<_> = resources::leaves(found.spec).into_iter().flatten().collect();
    let places: Vec<_> = wanted.iter().map(|wanted| found.place(&wanted.secret)).collect();
    let mut overdue = None;
    for (place, secret) in places.iter().zip(secrets.leaves.values()) {
        let unusable = |words: &str| Err(Problem::Unusable(place.clone(), words.to_owned()));
        let Some(secret) = secret.known() else { return Err(Problem::Missing(place.clone())) };
        let Some(leaf) = &secret.leaf else {
            return unusable("has no certificate in tls.crt with its key in tls.key");
        };
        if leaf.last_call_age.is_past() {
            overdue = overdue.or_else(|| Some(Problem::Overdue(place.clone())));
        } else if !secret.is_fit() {
            return unusable(
                "has a certificate in tls.crt that is for other names, or that other members do not take",
            );
        }
    }
    let pair = |wanted: &Wanted| Some(Pair::of(found.secret(&wanted.secret).ok()??, OF_LEAF));
    let pairs: Vec<_> = wanted.iter().filter_map(pair).collect();
    trust(&pairs).map(|trust| (trust, overdue)).ok_or_else(|| {
        let [server, peer, ..] = places.as_slice() else { return Problem::Missing(String::new()) };
        Problem::Unusable(peer.clone(), format!("has another ca.crt than secret {server}"))
    })
}

/// Whom members that start now trust, as the Secrets of their leaves have it, the server's and the peers' first; none
/// where these do not agree: one has been written, and the other not yet.
fn trust(leaves: &[Pair]) -> Option<Trust> {
    let [server, peer, ..] = leaves else { return None };
    let (clients, peers) = (server.authorities(), peer.authorities());
    resources::trust(&clients, &peers).filter(|trust| resources::trust(&clients, &clients) == Some(*trust))
}

/// What is to say while more than one authority is trusted.
fn overlap(secrets: &CertificateSecrets) -> Option<String> {
    let authority = secrets.authority.known()?;
    let signer = authority.signer.as_ref()?;
    let text = if authority.bundle.len() < 2 {
        return None;
    } else if secrets.all_signed_by(signer.certificate) {
        "all certificates are of the new authority; the one before stays trusted for a day, and then each member is \
         restarted once more"
    } else {
        "there is a new authority: each member is restarted, one at a time, to trust it beside the one before, and \
         then it signs all certificates; clients have to trust what ca.crt has by then"
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests;
