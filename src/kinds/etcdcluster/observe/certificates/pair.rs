//! A certificate and its key, as a Secret has them. Pure.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use crate::certs::authority;
use crate::certs::certificate::Certificate;
use crate::certs::mint;
use crate::kinds::etcdcluster::resources::certificates::{AUTHORITY, CERTIFICATE, KEY};

/// The keys of a Secret: for the certificate, for its key, for what is to be trusted.
pub type DataKeys = [&'static str; 3];

/// Those of a Secret with a leaf.
pub const OF_LEAF: DataKeys = [CERTIFICATE, KEY, AUTHORITY];

/// Those of the Secret with the authority.
pub const OF_AUTHORITY: DataKeys = [authority::CERTIFICATE, authority::KEY, authority::BUNDLE];

/// A certificate and its key, as a Secret has them, and what is to be trusted beside them. All PEM, and maybe none.
/// Nothing prints it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Pair {
    /// The certificate.
    pub certificate: Vec<u8>,
    /// Its private key.
    pub key: Vec<u8>,
    /// Authorities.
    pub trusted: Vec<u8>,
}

impl Pair {
    /// What a Secret holds under these keys.
    #[must_use]
    pub fn of(secret: &Secret, [certificate, key, trusted]: DataKeys) -> Self {
        let data = secret.data.as_ref();
        let part = |name: &str| data.and_then(|data| data.get(name)).map(|value| value.0.clone());
        let part = |name| part(name).unwrap_or_default();
        Self { certificate: part(certificate), key: part(key), trusted: part(trusted) }
    }

    /// The data of a Secret that holds it under these keys.
    #[must_use]
    pub fn data(self, [certificate, key, trusted]: DataKeys) -> BTreeMap<&'static str, ByteString> {
        let Self { certificate: leaf, key: secret, trusted: authorities } = self;
        [(certificate, leaf), (key, secret), (trusted, authorities)]
            .into_iter()
            .map(|(key, value)| (key, ByteString(value)))
            .collect()
    }

    /// The leaf, where it can be read and the key is its own.
    #[must_use]
    pub fn leaf(&self) -> Option<Certificate> {
        let certificate = self.chain().into_iter().next()?;
        mint::is_pair(&self.key, &certificate).then_some(certificate)
    }

    /// The leaf, and what is sent behind it.
    #[must_use]
    pub fn chain(&self) -> Vec<Certificate> {
        Certificate::read_all(&self.certificate)
    }

    /// The certificates that are to be trusted, as far as they can be read.
    #[must_use]
    pub fn trusted(&self) -> Vec<Certificate> {
        Certificate::read_all(&self.trusted)
    }

    /// The authorities among them.
    #[must_use]
    pub fn authorities(&self) -> Vec<Certificate> {
        self.trusted().into_iter().filter(Certificate::is_authority).collect()
    }
}
