//! What a TLS peer makes of a certificate, by the code that one runs.
//!
//! Pure: time, roots and certificate are arguments.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;

use super::certificate::Certificate;
use super::mint::Usage;

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
    let mut store = RootCertStore::empty();
    if roots.is_empty() || roots.iter().any(|root| store.add(root.der().clone()).is_err()) {
        return false;
    }
    let store = Arc::new(store);
    usages.iter().all(|usage| match usage {
        Usage::Client => is_taken_from_client(leaf, &store, now),
        Usage::Server => is_taken_from_server(leaf, &store, names, now),
    })
}

fn is_taken_from_client(leaf: &Certificate, store: &Arc<RootCertStore>, now: Timestamp) -> bool {
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(store), provider()).build();
    verifier.is_ok_and(|verifier| verifier.verify_client_cert(leaf.der(), &[], unix(now)).is_ok())
}

fn is_taken_from_server(
    leaf: &Certificate,
    store: &Arc<RootCertStore>,
    names: &[String],
    now: Timestamp,
) -> bool {
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::clone(store), provider()).build();
    verifier.is_ok_and(|verifier| {
        names.iter().all(|name| {
            let name = ServerName::try_from(name.as_str());
            name.is_ok_and(|name| verifier.verify_server_cert(leaf.der(), &[], &name, &[], unix(now)).is_ok())
        })
    })
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// Nothing holds before 1970.
fn unix(now: Timestamp) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default()))
}
