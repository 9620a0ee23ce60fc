//! The TLS settings of the gate.
//!
//! TLS 1.2 and 1.3, or 1.3 alone; HTTP/2 is offered beside HTTP/1.1 since the API server speaks HTTP/1.1 alone with
//! webhooks (kubernetes/kubernetes#75791) and all other clients may use the better one. No session is kept for
//! resumption: the API server has no session cache, so tickets are work for nothing.

use std::sync::Arc;

use rustls::SupportedProtocolVersion;
use rustls::crypto::aws_lc_rs;
use rustls::server::NoServerSessionStorage;
use rustls::version::{TLS12, TLS13};
use tokio_rustls::TlsAcceptor;

use super::certificate::ServedCertificate;
use super::clients::TrustedClients;

/// The name of HTTP/2 in ALPN.
pub const H2: &[u8] = b"h2";

/// The name of HTTP/1.1 in ALPN.
pub const HTTP11: &[u8] = b"http/1.1";

/// The least version of TLS that is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinVersion {
    /// 1.2 and 1.3.
    #[default]
    Tls12,
    /// 1.3 alone.
    Tls13,
}

static BOTH: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
static NEWEST: [&SupportedProtocolVersion; 1] = [&TLS13];

impl MinVersion {
    fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Self::Tls12 => &BOTH,
            Self::Tls13 => &NEWEST,
        }
    }
}

/// Takes handshakes that show `certificate`, and asks for a certificate where clients are identified.
///
/// # Errors
/// When the crypto provider lacks what the protocol versions need.
pub fn acceptor(
    certificate: ServedCertificate,
    min_version: MinVersion,
    clients: Option<TrustedClients>,
) -> Result<TlsAcceptor, rustls::Error> {
    let builder = rustls::ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(min_version.versions())?;
    let builder = match clients {
        Some(clients) => builder.with_client_cert_verifier(Arc::new(clients)),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(certificate));
    config.alpn_protocols = vec![H2.to_vec(), HTTP11.to_vec()];
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(TlsAcceptor::from(Arc::new(config)))
}
