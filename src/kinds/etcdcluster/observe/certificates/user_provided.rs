//! Certificates that the user manages, in Secrets that the spec names: checked as members and the operator will check
//! them.
//!
//! Guarantees: a certificate that no peer would take is reported, with its Secret and key, before a member meets it.
//! Never: writes a Secret.

use jiff::Timestamp;

use super::pair::{OF_LEAF, Pair};
use super::{CertificateStatus, Found, Problem};
use crate::certs::certificate::Certificate;
use crate::certs::mint::Usage;
use crate::certs::{rotate, verify};
use crate::kinds::etcdcluster::observation::{Ordinal, Trust};
use crate::kinds::etcdcluster::resources::certificates as resources;
use crate::kinds::etcdcluster::spec::{Secrets, Spec};

/// The user of etcd that may do everything.
const ROOT: &str = "root";

/// A Secret that is read.
struct Read {
    place: String,
    pair: Pair,
}

impl Read {
    /// The authorities in it.
    fn trusted(&self) -> Result<Roots<'_>, Problem> {
        let certificates = Certificate::read_all(&self.pair.trusted);
        if certificates.is_empty() {
            return Err(self.unusable("has no certificate in ca.crt"));
        }
        Ok(Roots { certificates, place: &self.place })
    }

    /// The leaf, fit for its key.
    fn leaf(&self) -> Result<Certificate, Problem> {
        self.pair.leaf().ok_or_else(|| {
            let is_there = !self.pair.chain().is_empty();
            self.unusable(if is_there {
                "has no private key in tls.key that fits the certificate in tls.crt"
            } else {
                "has no certificate in tls.crt"
            })
        })
    }

    fn unusable(&self, words: impl Into<String>) -> Problem {
        Problem::Unusable(self.place.clone(), words.into())
    }

    /// Whether a peer that trusts `roots` takes it. That its time is over is another matter.
    fn check(
        &self,
        now: Timestamp,
        roots: &Roots<'_>,
        usage: Usage,
        hosts: &[String],
    ) -> Result<(), Problem> {
        let validity = self.leaf()?.validity();
        let now = now.clamp(validity.not_before, validity.not_after.max(validity.not_before));
        verify::check(&self.pair.chain(), &roots.certificates, &[usage], hosts, now).map_err(|refusal| {
            let place = roots.place;
            self.unusable(format!(
                "has a certificate in tls.crt that is not taken: {refusal} (ca.crt of secret {place})"
            ))
        })
    }
}

/// Who is trusted, and where that is written.
struct Roots<'a> {
    certificates: Vec<Certificate>,
    place: &'a str,
}

/// What the spec names.
struct UserProvided {
    server: Read,
    peer: Read,
    client: Read,
    client_authority: Option<Read>,
    peer_authority: Option<Read>,
}

/// The Secrets to read.
pub fn names(secrets: &Secrets) -> Vec<String> {
    let Secrets { server, peer, client, client_authority, peer_authority } = secrets.clone();
    [server, peer, client].into_iter().chain(client_authority).chain(peer_authority).collect()
}

/// How they are.
pub fn status(found: &Found<'_>, secrets: &Secrets, now: Timestamp) -> CertificateStatus {
    match look(found, secrets).and_then(|named| named.check(found.spec, now)) {
        Ok((trust, overdue)) => CertificateStatus::fit(trust, overdue.as_ref()),
        Err(problem) => CertificateStatus::bad(&problem),
    }
}

fn look(found: &Found<'_>, secrets: &Secrets) -> Result<UserProvided, Problem> {
    let read = |name: &String| {
        let place = found.place(name);
        let secret = found.secret(name)?.ok_or_else(|| Problem::Missing(place.clone()))?;
        Ok(Read { pair: Pair::of(secret, OF_LEAF), place })
    };
    let authority = |name: &Option<String>| name.as_ref().map(read).transpose();
    Ok(UserProvided {
        server: read(&secrets.server)?,
        peer: read(&secrets.peer)?,
        client: read(&secrets.client)?,
        client_authority: authority(&secrets.client_authority)?,
        peer_authority: authority(&secrets.peer_authority)?,
    })
}

impl UserProvided {
    fn check(&self, spec: &Spec, now: Timestamp) -> Result<(Option<Trust>, Option<Problem>), Problem> {
        let clients = self.client_authority.as_ref().unwrap_or(&self.server).trusted()?;
        let peers = self.peer_authority.as_ref().unwrap_or(&self.peer).trusted()?;
        // The operator trusts what stands beside the certificate that it shows.
        let operator = self.client.trusted()?;
        let members = spec.replicas;
        let hosts: Vec<_> = (0..members).map(|ordinal| spec.host(Ordinal(ordinal))).collect();
        self.server.check(now, &operator, Usage::Server, &hosts)?;
        self.peer.check(now, &peers, Usage::Server, &hosts)?;
        self.peer.check(now, &peers, Usage::Client, &[])?;
        self.client.check(now, &clients, Usage::Client, &[])?;
        if spec.authenticates && self.client.leaf()?.common_name() != Some(ROOT) {
            return Err(self.client.unusable("has a certificate in tls.crt whose common name is not root"));
        }
        let mut overdue = None;
        for read in [&self.server, &self.peer, &self.client] {
            let validity = read.leaf()?.validity();
            if !(validity.not_before <= now && now < rotate::leaf_overdue(validity)) {
                overdue = overdue.or_else(|| Some(Problem::Overdue(read.place.clone())));
            }
        }
        Ok((resources::trust(&clients.certificates, &peers.certificates), overdue))
    }
}

#[cfg(test)]
mod tests;
