//! The gate calls itself as the API server would.
//!
//! Guarantees: what passes here has a certificate for the right name that verifies with the bundle alone, speaks
//! HTTP/1.1, and converts an object of each kind.
//! Never: says that the API server gets through to it: Services and firewalls are in between, and only the API
//! server can tell.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Plan;
use crate::api::Version;
use crate::certs::BoxError;
use crate::certs::certificate::Bundle;
use crate::kinds::KINDS;
use crate::review::Endpoint;

/// How long the call may take, handshake included.
const LIMIT: Duration = Duration::from_secs(5);
/// More than any answer to the probe has.
const ANSWER_BYTES: usize = 1 << 20;
/// The probe's uid, which comes back in the answer.
const UID: &str = "7f3d0e52-6a51-4f5c-9a3c-2b1d7c0a9e11";

/// The gate did not answer its own call.
#[derive(Debug, thiserror::Error)]
#[error("failed to probe the gate at {listener} as {name}: {why}")]
pub struct Error {
    listener: SocketAddr,
    name: String,
    why: Why,
}

/// What went wrong with the probe.
#[derive(Debug, thiserror::Error)]
enum Why {
    #[error("no answer within {} s", LIMIT.as_secs())]
    Timeout,
    #[error("no connection: {0}")]
    Connect(std::io::Error),
    #[error("no TLS: {0}")]
    Tls(std::io::Error),
    #[error("no certificate can carry that name")]
    Name,
    #[error("the bundle cannot be trusted: {0}")]
    Bundle(rustls::Error),
    #[error("no HTTP: {0}")]
    Http(BoxError),
    #[error("HTTP status {0}")]
    Status(StatusCode),
    #[error("the answer is no conversion: {0}")]
    Answer(String),
}

/// Calls the gate that listens at `listener` under the name that the API server will use.
///
/// Without a bundle there is nothing to verify with, and nothing is done.
///
/// # Errors
/// When it does not convert, or cannot be trusted.
pub async fn probe(listener: SocketAddr, plan: &Plan) -> Result<(), Error> {
    let Some(bundle) = &plan.bundle else {
        tracing::info!("no bundle of our own: the gate is not probed");
        return Ok(());
    };
    let name = plan.address.server_name();
    let outcome = match tokio::time::timeout(LIMIT, call(listener, &name, bundle)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Why::Timeout),
    };
    outcome.map_err(|why| Error { listener, name, why })
}

async fn call(listener: SocketAddr, name: &str, bundle: &Bundle) -> Result<(), Why> {
    let server_name = ServerName::try_from(name.to_owned()).map_err(|_| Why::Name)?;
    let connector = TlsConnector::from(Arc::new(trusting(bundle)?));
    let tcp = TcpStream::connect(reachable(listener)).await.map_err(Why::Connect)?;
    let tls = connector.connect(server_name, tcp).await.map_err(Why::Tls)?;
    let http = |error: hyper::Error| Why::Http(error.into());
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(tls)).await.map_err(http)?;
    let exchange = async {
        let response = sender.send_request(request(name)?).await.map_err(http)?;
        if response.status() != StatusCode::OK {
            return Err(Why::Status(response.status()));
        }
        let body = Limited::new(response.into_body(), ANSWER_BYTES);
        Ok(body.collect().await.map_err(Why::Http)?.to_bytes())
    };
    let mut exchange = std::pin::pin!(exchange);
    let mut connection = std::pin::pin!(connection);
    // The connection has to be driven while the exchange goes on; ending first, it leaves the rest to the exchange.
    let answer = tokio::select! {
        answer = &mut exchange => answer,
        ended = &mut connection => match ended {
            Ok(()) => exchange.await,
            Err(error) => Err(Why::Http(error.into())),
        },
    }?;
    check(&answer).map_err(Why::Answer)
}

/// Trusts the bundle and nothing else, and offers HTTP/1.1 as the API server does.
fn trusting(bundle: &Bundle) -> Result<ClientConfig, Why> {
    let mut roots = RootCertStore::empty();
    for certificate in bundle.certificates() {
        roots.add(certificate.der().clone()).map_err(Why::Bundle)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(Why::Bundle)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// A listener on all addresses is called on the loopback one.
fn reachable(listener: SocketAddr) -> SocketAddr {
    let ip = match listener.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listener.port())
}

fn request(host: &str) -> Result<Request<Full<Bytes>>, Why> {
    Request::post(Endpoint::Convert.path())
        .header(header::HOST, host)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONNECTION, "close")
        .body(Full::from(review().to_string()))
        .map_err(|error| Why::Http(error.into()))
}

/// One bare object of each kind, from the oldest version to the hub.
fn review() -> Value {
    let objects: Vec<_> = KINDS
        .iter()
        .map(|kind| {
            json!({
                "apiVersion": Version::V1Alpha1.api_version(),
                "kind": kind.names().kind,
                "metadata": {"name": "probe", "namespace": "default"},
            })
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": {"uid": UID, "desiredAPIVersion": Version::V1.api_version(), "objects": objects},
    })
}

fn check(answer: &[u8]) -> Result<(), String> {
    let answer: Value = serde_json::from_slice(answer).map_err(|error| error.to_string())?;
    let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if text("/response/uid") != UID {
        return Err("it has another uid".to_owned());
    }
    if text("/response/result/status") != "Success" {
        return Err(text("/response/result/message").to_owned());
    }
    let objects = answer.pointer("/response/convertedObjects").and_then(Value::as_array);
    let objects = objects.map_or(&[][..], Vec::as_slice);
    let converted = objects.iter().filter(|object| object["apiVersion"] == Version::V1.api_version());
    if converted.count() != KINDS.len() {
        return Err(format!("{} objects came back, {} went out", objects.len(), KINDS.len()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
