//! What the gate speaks of TLS.
//!
//! TLS 1.2 and 1.3; HTTP/2 is offered beside HTTP/1.1 since the API server speaks HTTP/1.1 alone with webhooks
//! (kubernetes/kubernetes#75791) and everybody else may have the better one. No session is kept for resumption: the
//! API server has no session cache, so tickets are work for nothing.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::server::NoServerSessionStorage;
use rustls::version::{TLS12, TLS13};
use tokio_rustls::TlsAcceptor;

use super::certificate::ServedCertificate;

/// The name of HTTP/2 in ALPN.
pub const H2: &[u8] = b"h2";

/// The name of HTTP/1.1 in ALPN.
pub const HTTP11: &[u8] = b"http/1.1";

/// Takes handshakes that show `certificate`.
///
/// # Errors
/// When the crypto provider lacks what the protocol versions need.
pub fn acceptor(certificate: ServedCertificate) -> Result<TlsAcceptor, rustls::Error> {
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificate));
    config.alpn_protocols = vec![H2.to_vec(), HTTP11.to_vec()];
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(TlsAcceptor::from(Arc::new(config)))
}
