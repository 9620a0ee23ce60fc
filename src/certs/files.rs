//! Certificates in files that another program writes: cert-manager, a secret store's driver, an administrator.
//!
//! Guarantees: a new certificate is served only once it was read whole, its key fits, it has not expired, and, where the
//! CA bundles in force are read, they have its authority; the one before stays in service until then, and its authority
//! in the bundle that is asked for. Once the one before has expired, the new one is served whatever is in force.
//! Assumes: nothing about how files change. The kubelet swaps a symbolic link (`..data`), others write in place,
//! and file events miss the one or the other; reading a few kilobytes every few seconds misses none.
//! Never: writes.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256};
use jiff::Timestamp;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::certificate::{Bundle, Certificate, Unreadable, Validity};
use super::mint::Usage;
use super::rotate::InForce;
use super::verify;
use super::{BoxError, Clock, Facts, Sink};

/// How often the files are read.
pub const PAUSE: Duration = Duration::from_secs(5);

/// The files could not be taken into service.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("failed to read {path}: {source}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file of the authority cannot be read.
    #[error(
        "failed to read {path}, which --tls-ca names: {source}: API servers verify the gate by what is in it; put the \
         certificate of the authority that signed the gate's there, or leave --tls-ca out where another client writes \
         caBundle"
    )]
    ReadAuthority {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not signed by what clients are to trust.
    #[error(
        "failed to use {certificate}: no authority in {bundle} has signed it, so that API servers would refuse it; the \
         certificate before it stays in service until both files fit"
    )]
    Unsigned {
        /// The certificate's file.
        certificate: PathBuf,
        /// The authority's file.
        bundle: PathBuf,
    },
    /// No certificate in PEM form.
    #[error("failed to read {0}: no certificate in PEM form in it")]
    NoCertificate(PathBuf),
    /// Something in PEM form that is no certificate.
    #[error("failed to read {path}: {source}")]
    Certificate {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: Unreadable,
    },
    /// No private key in PEM form. Says nothing of the content.
    #[error("failed to read {0}: no private key in PEM form in it")]
    NoKey(PathBuf),
    /// Not a pair, or of a kind that TLS has no use for.
    #[error("failed to use {certificate} with {key}: {source}")]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// Out of date.
    #[error("failed to use {path}: it expired at {not_after}")]
    Expired {
        /// Which file.
        path: PathBuf,
        /// When.
        not_after: Timestamp,
    },
    /// The server did not take it.
    #[error("failed to serve {path}: {source}")]
    Refused {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: BoxError,
    },
}

/// A certificate, its key and perhaps what signed it, in files.
pub struct MountedFiles {
    certificate: PathBuf,
    key: PathBuf,
    bundle: Option<PathBuf>,
    clock: Clock,
    seen: Option<Vec<u8>>,
    facts: Facts,
    waiting: Option<Waiting>,
}

/// A certificate that is not served yet, since API servers may not trust it.
struct Waiting {
    digest: Vec<u8>,
    /// What they have to trust meanwhile without it.
    bundle: Option<Bundle>,
    /// Whether its authority was in force when it was looked at last.
    was_trusted: bool,
}

/// What the files held at one reading.
struct Content {
    certificate: Vec<u8>,
    key: Vec<u8>,
    bundle: Option<Vec<u8>>,
}

/// A pair that is fit for service.
struct Pair {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    validity: Validity,
}

impl MountedFiles {
    /// Reads these files. `bundle` holds what clients have to trust; an empty file is as good as none.
    #[must_use]
    pub fn new(certificate: PathBuf, key: PathBuf, bundle: Option<PathBuf>, clock: Clock) -> Self {
        Self { certificate, key, bundle, clock, seen: None, facts: Facts::default(), waiting: None }
    }

    /// Reads once, and serves what is new, or has it wait. `in_force`: whether the CA bundles in force have an authority.
    ///
    /// # Errors
    /// When what is there cannot be served; what was served before still is.
    pub async fn refresh(
        &mut self,
        sink: &Sink,
        in_force: impl FnOnce(&Certificate) -> InForce,
    ) -> Result<(), Error> {
        let content = self.read().await?;
        let digest = content.digest();
        if self.seen.as_ref() == Some(&digest) {
            self.wait_no_more();
            return Ok(());
        }
        let now = (self.clock)();
        let pair = self.check(&content, now)?;
        let before = self.waiting.as_ref().map_or(&self.facts.bundle, |waiting| &waiting.bundle);
        // A bundle that vanishes is not withdrawn.
        let bundle = self.trusted(content.bundle.as_deref().unwrap_or_default())?.or_else(|| before.clone());
        let issuer = bundle.as_ref().and_then(|bundle| pair.issuer(bundle, now));
        if self.has_to_wait(issuer.as_ref(), bundle.as_ref(), &digest, now, in_force)? {
            return Ok(());
        }
        let validity = pair.validity;
        sink(pair.chain, pair.key)
            .map_err(|source| Error::Refused { path: self.certificate.clone(), source })?;
        self.facts = Facts { leaf: Some(validity), authority: None, issuer, bundle };
        (self.seen, self.waiting) = (Some(digest), None);
        tracing::info!(path = %self.certificate.display(), not_after = %validity.not_after, "serving the certificate from its file");
        Ok(())
    }

    /// Whether a certificate of `issuer` has to wait until API servers trust it. What they have to trust meanwhile is that
    /// and what is served.
    fn has_to_wait(
        &mut self,
        issuer: Option<&Certificate>,
        bundle: Option<&Bundle>,
        digest: &[u8],
        now: Timestamp,
        in_force: impl FnOnce(&Certificate) -> InForce,
    ) -> Result<bool, Error> {
        // Nothing that is trusted is served, or it is refused by everybody from now on.
        let (Some(leaf), Some(served)) = (self.facts.leaf, &self.facts.issuer) else { return Ok(false) };
        if now >= leaf.not_after {
            return Ok(false);
        }
        let Some(issuer) = issuer else {
            let bundle = self.bundle.clone().unwrap_or_default();
            return Err(Error::Unsigned { certificate: self.certificate.clone(), bundle });
        };
        if issuer.identity() == served.identity() {
            return Ok(false);
        }
        let is_trusted = match in_force(issuer) {
            InForce::Unseen => return Ok(false),
            InForce::Trusted => true,
            InForce::Distrusted => false,
        };
        let known = self.waiting.as_ref().filter(|waiting| waiting.digest == digest);
        // API servers learn of a bundle a moment after it can be read back: one look is not enough.
        if known.is_some_and(|waiting| waiting.was_trusted && is_trusted) {
            return Ok(false);
        }
        if known.is_none() {
            let path = self.certificate.display();
            tracing::info!(%path, ?issuer, "the certificate in its file waits until API servers trust its authority");
        }
        self.wait_no_more();
        let alone = self.facts.bundle.clone();
        let all = [alone.as_ref(), bundle].into_iter().flatten().flat_map(Bundle::certificates);
        self.facts.bundle = Bundle::of(all.cloned());
        self.waiting = Some(Waiting { digest: digest.to_vec(), bundle: alone, was_trusted: is_trusted });
        Ok(true)
    }

    /// What waits is not there any more.
    fn wait_no_more(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.facts.bundle = waiting.bundle;
        }
    }

    /// What is in use.
    #[must_use]
    pub fn facts(&self) -> Facts {
        self.facts.clone()
    }

    async fn read(&self) -> Result<Content, Error> {
        let bundle = match &self.bundle {
            Some(path) => Some(read(path).await.map_err(of_authority)?),
            None => None,
        };
        Ok(Content { certificate: read(&self.certificate).await?, key: read(&self.key).await?, bundle })
    }

    /// The bundle in the file. An empty file is as good as none: cert-manager leaves one where the issuer is public.
    fn trusted(&self, pem: &[u8]) -> Result<Option<Bundle>, Error> {
        let bundle = Bundle::of(Certificate::read_all(pem));
        match &self.bundle {
            Some(path) if bundle.is_none() && !pem.is_empty() => Err(Error::NoCertificate(path.clone())),
            _ => Ok(bundle),
        }
    }

    fn check(&self, content: &Content, now: Timestamp) -> Result<Pair, Error> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&content.certificate)
            .collect::<Result<_, _>>()
            .map_err(|_| Error::NoCertificate(self.certificate.clone()))?;
        let leaf = chain.first().ok_or_else(|| Error::NoCertificate(self.certificate.clone()))?;
        let validity = Certificate::read(leaf.clone())
            .map_err(|source| Error::Certificate { path: self.certificate.clone(), source })?
            .validity();
        if now >= validity.not_after {
            return Err(Error::Expired { path: self.certificate.clone(), not_after: validity.not_after });
        }
        let key = PrivateKeyDer::from_pem_slice(&content.key).map_err(|_| Error::NoKey(self.key.clone()))?;
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider).map_err(|source| Error::Pair {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            source,
        })?;
        Ok(Pair { chain, key, validity })
    }
}

impl fmt::Debug for MountedFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} with {}", self.certificate.display(), self.key.display())
    }
}

impl Pair {
    /// Which authority in the bundle has signed it, whatever is between. Nothing of a name is asked here.
    fn issuer(&self, bundle: &Bundle, now: Timestamp) -> Option<Certificate> {
        let chain: Vec<_> = self.chain.iter().filter_map(|der| Certificate::read(der.clone()).ok()).collect();
        let name = chain.first()?.names().iter().next()?.replacen('*', "any", 1);
        let names = [name];
        let signs = |one: &&Certificate| {
            verify::check(&chain, std::slice::from_ref(*one), &[Usage::Server], &names, now).is_ok()
        };
        bundle.certificates().iter().find(signs).cloned()
    }
}

impl Content {
    fn digest(&self) -> Vec<u8> {
        let mut context = Context::new(&SHA256);
        let bundle = self.bundle.as_deref().unwrap_or_default();
        for part in [&self.certificate, &self.key, bundle] {
            context.update(&part.len().to_be_bytes());
            context.update(part);
        }
        context.finish().as_ref().to_vec()
    }
}

pub(super) async fn read(path: &Path) -> Result<Vec<u8>, Error> {
    tokio::fs::read(path).await.map_err(|source| Error::Read { path: path.to_owned(), source })
}

fn of_authority(error: Error) -> Error {
    match error {
        Error::Read { path, source } => Error::ReadAuthority { path, source },
        other => other,
    }
}

#[cfg(test)]
pub(in crate::certs) mod tests;
