//! The encryption of a connection.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_rustls::TlsConnector;

use super::packets::Stream;
use super::{Error, Options, Trust};

/// Encrypts a stream, as the options say.
pub async fn encrypted(stream: Box<dyn Stream>, options: &Options) -> Result<Box<dyn Stream>, Error> {
    let config = config(options).map_err(Error::Tls)?;
    let name = ServerName::try_from(options.host.clone()).map_err(|error| Error::Tls(error.to_string()))?;
    let encrypted = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    match encrypted {
        Ok(encrypted) => Ok(Box::new(encrypted)),
        Err(error)
            if error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>) =>
        {
            Err(Error::Tls(error.to_string()))
        }
        Err(error) => Err(Error::Broken(error)),
    }
}

fn config(options: &Options) -> Result<ClientConfig, String> {
    let said = |error: rustls::Error| error.to_string();
    let unreadable = |error: rustls::pki_types::pem::Error| error.to_string();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(said)?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(options.authority.as_deref().unwrap_or_default()) {
        roots.add(certificate.map_err(unreadable)?).map_err(said)?;
    }
    let builder = match options.trust {
        Trust::Host => builder.with_root_certificates(roots),
        Trust::Authority => {
            let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            let inner = Some(inner.build().map_err(|error| error.to_string())?);
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyHost { inner, provider }))
        }
        Trust::Any | Trust::Plain => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyHost { inner: None, provider }))
        }
    };
    let Some((certificate, key)) = &options.identity else { return Ok(builder.with_no_client_auth()) };
    let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<_, _>>().map_err(unreadable)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(unreadable)?;
    builder.with_client_auth_cert(chain, key).map_err(said)
}

/// Takes a certificate for whatever host, of these authorities or of any.
#[derive(Debug)]
struct AnyHost {
    inner: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyHost {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(inner) = &self.inner else { return Ok(ServerCertVerified::assertion()) };
        match inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
