//! The certificate that the gate shows: swapped while it serves.
//!
//! Guarantees: every handshake that begins after [`ServedCertificate::swap`] sees the new chain, a connection that
//! is there lives on with the old one; a key that does not fit its chain never gets in; reading takes no lock.
//! Never: reads files or makes certificates. `certs` does that, and calls `swap`.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::runtime::Metrics;
use crate::runtime::metrics::Which;

/// Why a certificate was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none in the chain.
    #[error("the certificate chain is empty")]
    Empty,
    /// The key is unusable, or is not that of the first certificate.
    #[error("failed to use the private key with its certificate")]
    Key(#[source] rustls::Error),
    /// The first certificate of the chain cannot be read.
    #[error("failed to read the certificate: {0}")]
    Certificate(String),
}

struct Served {
    certified: Arc<CertifiedKey>,
    expiry: Timestamp,
}

/// The one certificate in use. Clones share it.
#[derive(Clone)]
pub struct ServedCertificate {
    current: Arc<ArcSwapOption<Served>>,
    swapped: Arc<watch::Sender<()>>,
    metrics: Metrics,
}

impl ServedCertificate {
    /// None yet: handshakes fail until the first [`Self::swap`].
    #[must_use]
    pub fn new(metrics: &Metrics) -> Self {
        Self { current: Arc::default(), swapped: Arc::default(), metrics: metrics.clone() }
    }

    /// The chain and key that the next handshake gets.
    #[must_use]
    pub fn load(&self) -> Option<Arc<CertifiedKey>> {
        self.current.load().as_ref().map(|served| Arc::clone(&served.certified))
    }

    /// Waits for the first [`Self::swap`].
    pub async fn available(&self) {
        let mut swapped = self.swapped.subscribe();
        // The sender is ours, so it lives.
        let _found = swapped.wait_for(|()| self.current.load().is_some()).await;
    }

    /// Serves `chain`, leaf first, from the next handshake on.
    ///
    /// # Errors
    /// [`Error`]; what was served before is then still served.
    pub fn swap(
        &self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<(), Error> {
        let leaf = chain.first().ok_or(Error::Empty)?;
        let expiry = expiry_of(leaf)?;
        let certified =
            CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).map_err(Error::Key)?;
        self.metrics
            .certificate_expiry
            .get_or_create(&Which { which: "serving" })
            .set(expiry.as_duration().as_secs_f64());
        self.current.store(Some(Arc::new(Served { certified: Arc::new(certified), expiry })));
        self.swapped.send_replace(());
        Ok(())
    }

    /// When the served leaf ends.
    #[must_use]
    pub fn expiry(&self) -> Option<Timestamp> {
        self.current.load().as_ref().map(|served| served.expiry)
    }

    /// What readiness asks: is there one, and is it still good at `now`?
    ///
    /// # Errors
    /// The reason, for `/readyz`.
    pub fn check(&self, now: Timestamp) -> Result<(), String> {
        match self.expiry() {
            None => Err("no certificate yet".to_owned()),
            Some(expiry) if expiry <= now => Err(format!("the certificate expired at {expiry}")),
            Some(_) => Ok(()),
        }
    }
}

impl ResolvesServerCert for ServedCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.load()
    }
}

impl fmt::Debug for ServedCertificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServedCertificate").field("expiry", &self.expiry()).finish_non_exhaustive()
    }
}

fn expiry_of(leaf: &CertificateDer<'_>) -> Result<Timestamp, Error> {
    let unreadable = |error: &dyn fmt::Display| Error::Certificate(error.to_string());
    let (_rest, leaf) = X509Certificate::from_der(leaf).map_err(|error| unreadable(&error))?;
    Timestamp::from_second(leaf.validity().not_after.timestamp()).map_err(|error| unreadable(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(until: i32) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        parameters.not_after = rcgen::date_time_ymd(until, 1, 1);
        let certificate = parameters.self_signed(&key).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        (vec![certificate.der().clone()], key)
    }

    #[test]
    fn a_certificate_is_ready_until_it_ends() {
        let served = ServedCertificate::new(&Metrics::default());
        let now: Timestamp = "2030-06-01T00:00:00Z".parse().unwrap();
        assert_eq!(served.check(now), Err("no certificate yet".to_owned()));
        let (chain, key) = certificate(2031);
        served.swap(chain, key).unwrap();
        assert_eq!(served.check(now), Ok(()));
        let later: Timestamp = "2031-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(served.check(later), Err("the certificate expired at 2031-01-01T00:00:00Z".to_owned()));
    }

    #[test]
    fn a_key_of_another_certificate_is_refused_and_the_old_one_stays() {
        let served = ServedCertificate::new(&Metrics::default());
        let (chain, key) = certificate(2031);
        served.swap(chain.clone(), key).unwrap();
        let (_other, key) = certificate(2032);
        assert!(matches!(served.swap(chain.clone(), key), Err(Error::Key(_))));
        assert_eq!(served.load().unwrap().cert, chain);
        let (_chain, key) = certificate(2032);
        assert!(matches!(served.swap(Vec::new(), key), Err(Error::Empty)));
    }
}
