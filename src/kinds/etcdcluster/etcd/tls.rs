//! The CA certificates that a client trusts, and its own certificate.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

/// The protocol that gRPC runs over.
const HTTP2: &[u8] = b"h2";

/// What a client trusts, and what it shows. Cheap to clone, and shared by the clients of all members of a cluster.
///
/// A server's certificate has to carry the host of the URL that it is dialled by.
#[derive(Clone)]
pub struct Tls {
    pub(super) config: Arc<ClientConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tls").finish_non_exhaustive() // nothing of the key
    }
}

/// A certificate or key that will not do.
#[derive(Debug, thiserror::Error)]
pub enum InvalidTls {
    /// The authority's certificates cannot be read.
    #[error("the authority's certificates are not PEM")]
    Authority(#[source] rustls::pki_types::pem::Error),
    /// There is no certificate of an authority, so no server would be trusted.
    #[error("there is no certificate of an authority")]
    NoAuthority,
    /// The client's certificate cannot be read.
    #[error("the client's certificate is not PEM")]
    Certificate(#[source] rustls::pki_types::pem::Error),
    /// The client's key cannot be read.
    #[error("the client's key is not PEM")]
    Key(#[source] rustls::pki_types::pem::Error),
    /// They do not go together, or are of a kind that is not known.
    #[error(transparent)]
    Unusable(#[from] rustls::Error),
}

impl Tls {
    /// Trusts the authorities of `authority` alone; shows a certificate, leaf first, where the member asks for one.
    /// All of it is PEM.
    ///
    /// # Errors
    /// Something cannot be read, or certificate and key do not go together.
    pub fn from_pem(authority: &[u8], identity: Option<(&[u8], &[u8])>) -> Result<Self, InvalidTls> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority) {
            roots.add(certificate.map_err(InvalidTls::Authority)?)?;
        }
        if roots.is_empty() {
            return Err(InvalidTls::NoAuthority);
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<_, _>>();
                let key = PrivateKeyDer::from_pem_slice(key).map_err(InvalidTls::Key)?;
                builder.with_client_auth_cert(chain.map_err(InvalidTls::Certificate)?, key)?
            }
        };
        config.alpn_protocols = vec![HTTP2.to_vec()];
        Ok(Self { config: Arc::new(config) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (String, String) {
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (pair.cert.pem(), pair.signing_key.serialize_pem())
    }

    #[test]
    fn a_certificate_goes_with_its_key_alone() {
        let ((certificate, key), (_, other)) = (pair(), pair());
        let tls = |key: &str| {
            Tls::from_pem(certificate.as_bytes(), Some((certificate.as_bytes(), key.as_bytes()))).map(|_| ())
        };
        tls(&key).unwrap();
        assert!(matches!(tls(&other), Err(InvalidTls::Unusable(_))));
        assert!(matches!(tls("nothing"), Err(InvalidTls::Key(_))));
    }

    #[test]
    fn without_an_authority_no_server_would_be_trusted() {
        assert!(matches!(Tls::from_pem(b"", None), Err(InvalidTls::NoAuthority)));
        let broken = b"-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n";
        assert!(matches!(Tls::from_pem(broken, None), Err(InvalidTls::Authority(_))));
    }
}
