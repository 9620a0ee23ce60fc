//! Which clients may ask for reviews: those with a certificate of a trusted authority, under an allowed name.
//!
//! Guarantees: a certificate of anyone else ends the handshake; the authority may change while the gate serves, and
//! counts from the next handshake on; reading takes no lock. A client without a certificate gets through the
//! handshake, since the API server has none for conversion: what it may ask for is the handler's to say.
//! Never: reads files. `certs` does that, and calls [`TrustedClients::swap`].

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// The authority of clients, and their names. Clones share the authority.
#[derive(Clone)]
pub struct TrustedClients {
    authority: Arc<ArcSwapOption<Verifier>>,
    names: Arc<[String]>,
    provider: Arc<CryptoProvider>,
}

struct Verifier(Arc<dyn ClientCertVerifier>);

/// Why an authority of clients was not taken.
#[derive(Debug, thiserror::Error)]
#[error("failed to trust the authority of clients: {0}")]
pub struct Unusable(String);

impl TrustedClients {
    /// No client until the first [`Self::swap`]. Each name is a common name or a DNS name of a certificate; with none
    /// of them, any name will do.
    #[must_use]
    pub fn named(names: &[String]) -> Self {
        let provider = Arc::new(aws_lc_rs::default_provider());
        Self { authority: Arc::default(), names: names.into(), provider }
    }

    /// Trusts these authorities from the next handshake on.
    ///
    /// # Errors
    /// [`Unusable`]; what was trusted before then still is.
    pub fn swap(&self, authorities: Vec<CertificateDer<'static>>) -> Result<(), Unusable> {
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority).map_err(|error| Unusable(error.to_string()))?;
        }
        let provider = Arc::clone(&self.provider);
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let verifier = verifier.map_err(|error| Unusable(error.to_string()))?;
        self.authority.store(Some(Arc::new(Verifier(verifier))));
        Ok(())
    }

    fn has_allowed_name(&self, certificate: &CertificateDer<'_>) -> bool {
        let Ok((_rest, certificate)) = X509Certificate::from_der(certificate) else { return false };
        let is_allowed = |name: &str| self.names.iter().any(|allowed| allowed == name);
        let mut common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
        let others = certificate.subject_alternative_name().ok().flatten();
        let mut others = others.iter().flat_map(|others| &others.value.general_names);
        self.names.is_empty()
            || common.any(is_allowed)
            || others.any(|name| matches!(name, GeneralName::DNSName(name) if is_allowed(name)))
    }
}

impl fmt::Debug for TrustedClients {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TrustedClients").field("names", &self.names).finish_non_exhaustive()
    }
}

impl ClientCertVerifier for TrustedClients {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// No hints: the authority may change, and a client has one certificate to show.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let authority = self.authority.load();
        let Some(authority) = authority.as_ref() else { return Err(CertificateError::UnknownIssuer.into()) };
        let verified = authority.0.verify_client_cert(end_entity, intermediates, now)?;
        if self.has_allowed_name(end_entity) {
            Ok(verified)
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
