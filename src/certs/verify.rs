//! Whether a TLS peer accepts a certificate, by the code that such a peer runs.
//!
//! Pure: time, roots and certificate are arguments.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{CertificateError, RootCertStore};

use super::certificate::Certificate;
use super::mint::Usage;

/// Why a peer does not take a certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No authority is trusted, or the certificate of one cannot be read.
    #[error("no authority is trusted")]
    NoAuthority,
    /// None of those that are trusted has signed it.
    #[error("it does not lead up to a trusted authority")]
    Issuer,
    /// It is marked as one that signs others. OpenSSL marks those so that sign themselves, unless it is set otherwise.
    #[error("it is that of an authority (CA:TRUE)")]
    Authority,
    /// It is not for that.
    #[error("it may not be shown by a {0}")]
    Usage(&'static str),
    /// It is not that one's.
    #[error("it is not for the name {0}")]
    Name(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// Whether a peer that trusts `roots` alone takes `leaf` for each of these usages and, where it is dialled, under each
/// of these names: DNS names without wildcards, or IP addresses.
#[must_use]
pub fn is_taken(
    leaf: &Certificate,
    roots: &[Certificate],
    usages: &[Usage],
    names: &[String],
    now: Timestamp,
) -> bool {
    check(std::slice::from_ref(leaf), roots, usages, names, now).is_ok()
}

/// The same of a leaf with what is sent behind it: `chain` begins with the leaf.
///
/// # Errors
/// Why it is not taken.
pub fn check(
    chain: &[Certificate],
    roots: &[Certificate],
    usages: &[Usage],
    names: &[String],
    now: Timestamp,
) -> Result<(), Refusal> {
    let mut store = RootCertStore::empty();
    if roots.is_empty() || roots.iter().any(|root| store.add(root.der().clone()).is_err()) {
        return Err(Refusal::NoAuthority);
    }
    let store = Arc::new(store);
    let Some((leaf, between)) = chain.split_first() else { return Err(Refusal::Issuer) };
    if leaf.is_authority() {
        return Err(Refusal::Authority);
    }
    let between: Vec<_> = between.iter().map(|one| one.der().clone()).collect();
    let shown = Shown { leaf, between: &between, now: unix(now) };
    usages.iter().try_for_each(|usage| match usage {
        Usage::Client => shown.by_client(&store),
        Usage::Server => shown.by_server(&store, names),
    })
}

/// What is shown, and when.
struct Shown<'a> {
    leaf: &'a Certificate,
    between: &'a [CertificateDer<'static>],
    now: UnixTime,
}

impl Shown<'_> {
    fn by_client(&self, store: &Arc<RootCertStore>) -> Result<(), Refusal> {
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(store), provider()).build();
        let verifier = verifier.map_err(|error| Refusal::Other(error.to_string()))?;
        let outcome = verifier.verify_client_cert(self.leaf.der(), self.between, self.now);
        outcome.map(|_| ()).map_err(|error| refusal(&error, "client", ""))
    }

    fn by_server(&self, store: &Arc<RootCertStore>, names: &[String]) -> Result<(), Refusal> {
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::clone(store), provider()).build();
        let verifier = verifier.map_err(|error| Refusal::Other(error.to_string()))?;
        names.iter().try_for_each(|text| {
            let Ok(name) = ServerName::try_from(text.as_str()) else {
                return Err(Refusal::Name(text.clone()));
            };
            let outcome = verifier.verify_server_cert(self.leaf.der(), self.between, &name, &[], self.now);
            outcome.map(|_| ()).map_err(|error| refusal(&error, "server", text))
        })
    }
}

fn refusal(error: &rustls::Error, side: &'static str, name: &str) -> Refusal {
    let rustls::Error::InvalidCertificate(why) = error else { return Refusal::Other(error.to_string()) };
    match why {
        // One of the same name with another key has not signed it either.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => Refusal::Issuer,
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            Refusal::Usage(side)
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Refusal::Name(name.to_owned())
        }
        other => Refusal::Other(other.to_string()),
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// Nothing holds before 1970.
fn unix(now: Timestamp) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default()))
}
