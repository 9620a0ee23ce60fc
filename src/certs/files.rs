//! Certificates in files that another program writes: cert-manager, a secret store's driver, an administrator.
//!
//! Guarantees: a new certificate is served only once it was read whole, its key fits and it has not expired; the
//! one before stays in service until then.
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
    /// Reads these files. `bundle`, which may be missing, holds what clients have to trust.
    #[must_use]
    pub fn new(certificate: PathBuf, key: PathBuf, bundle: Option<PathBuf>, clock: Clock) -> Self {
        Self { certificate, key, bundle, clock, seen: None, facts: Facts::default() }
    }

    /// Reads a mounted Secret of type `kubernetes.io/tls`: `tls.crt`, `tls.key`, and `ca.crt` where it is there.
    #[must_use]
    pub fn in_directory(directory: &Path, clock: Clock) -> Self {
        Self::new(directory.join("tls.crt"), directory.join("tls.key"), Some(directory.join("ca.crt")), clock)
    }

    /// Reads once, and serves what is new.
    ///
    /// # Errors
    /// When what is there cannot be served; what was served before still is.
    pub async fn refresh(&mut self, sink: &Sink) -> Result<(), Error> {
        let content = self.read().await?;
        let digest = content.digest();
        if self.seen.as_ref() == Some(&digest) {
            return Ok(());
        }
        let pair = self.check(&content, (self.clock)())?;
        let bundle = self.trusted(content.bundle.as_deref().unwrap_or_default())?;
        let validity = pair.validity;
        sink(pair.chain, pair.key)
            .map_err(|source| Error::Refused { path: self.certificate.clone(), source })?;
        self.facts = Facts {
            leaf: Some(validity),
            authority: None,
            issuer: None,
            bundle: bundle.or_else(|| self.facts.bundle.take()), // a bundle that vanishes is not withdrawn
        };
        self.seen = Some(digest);
        tracing::info!(path = %self.certificate.display(), not_after = %validity.not_after, "serving the certificate from its file");
        Ok(())
    }

    /// What is in use.
    #[must_use]
    pub fn facts(&self) -> Facts {
        self.facts.clone()
    }

    async fn read(&self) -> Result<Content, Error> {
        let bundle = match &self.bundle {
            Some(path) => read_optional(path).await?,
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

async fn read_optional(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match read(path).await {
        Err(Error::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests;
