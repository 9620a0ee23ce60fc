//! Batches of spans, on their way to the collector.
//!
//! Guarantees: one request at a time, each with a limit; the log says once that the collector takes nothing, and once
//! that it does again.

use std::env;
use std::io;
use std::mem;
use std::pin::pin;
use std::str::FromStr;
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::http::uri::{PathAndQuery, Scheme, Uri};
use axum::http::{Request, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use prost::Message as _;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::mpsc;
use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tracing::{info, warn};

use super::message::{self, ResourceSpans, Scope, ScopeSpans, attribute};
use super::{Numbers, Span};
use crate::runtime::supervisor::chain;

/// Spans of one request.
const BATCH: usize = 512;

/// How long a batch waits for more spans.
const GATHER: Duration = Duration::from_secs(1);

/// How long the collector may take.
const LIMIT: Duration = Duration::from_secs(10);

/// How long the last batches may take: less than a task that has to stop.
const LAST: Duration = Duration::from_secs(3);

/// The path of spans below a collector's URL.
const PATH: &str = "/v1/traces";

/// The variable that names the collector to every program that uses OpenTelemetry.
pub const STANDARD: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Where spans go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// To that collector: the whole URL of its spans.
    Collector(Uri),
    /// To the one that [`STANDARD`] names.
    Standard,
}

/// A collector's URL that will not do.
#[derive(Debug, thiserror::Error)]
#[error("expected http://host:port, https://host:port or {STANDARD}")]
pub struct InvalidEndpoint;

impl FromStr for Endpoint {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == STANDARD { Ok(Self::Standard) } else { collector(text).map(Self::Collector) }
    }
}

fn collector(text: &str) -> Result<Uri, InvalidEndpoint> {
    let uri: Uri = text.parse().map_err(|_| InvalidEndpoint)?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none_or(str::is_empty) {
        return Err(InvalidEndpoint);
    }
    let mut parts = uri.into_parts();
    let base = parts.path_and_query.as_ref().map_or("", PathAndQuery::path).trim_end_matches('/');
    let whole = if base.ends_with(PATH) { base.to_owned() } else { format!("{base}{PATH}") };
    parts.path_and_query = Some(whole.parse().map_err(|_| InvalidEndpoint)?);
    Uri::from_parts(parts).map_err(|_| InvalidEndpoint)
}

/// Why spans cannot be sent at all.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The variable does not say where to.
    #[error("{STANDARD} is not set")]
    Unset,
    /// What it says will not do.
    #[error("{STANDARD}")]
    Invalid(#[from] InvalidEndpoint),
    /// The system has no authorities that collectors could be known by.
    #[error("failed to read the system's authorities")]
    Authorities(#[from] io::Error),
}

/// Why a batch was lost.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error("failed to make a request")]
    Request(#[from] axum::http::Error),
    #[error("failed to reach the collector")]
    Unreached(#[from] legacy::Error),
    #[error("no answer within {} s", LIMIT.as_secs())]
    TooSlow(#[from] Elapsed),
    #[error("the collector answered {0}")]
    Refused(StatusCode),
}

type Client = legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Sends the spans.
#[derive(Debug)]
pub struct Exporter {
    endpoint: Endpoint,
    told: mpsc::Receiver<Span>,
    numbers: Numbers,
    /// What is sent next.
    batch: Vec<Span>,
    /// The collector took the last batch, or there was none.
    is_taken: bool,
}

impl Exporter {
    pub(super) const fn new(endpoint: Endpoint, told: mpsc::Receiver<Span>, numbers: Numbers) -> Self {
        Self { endpoint, told, numbers, batch: Vec::new(), is_taken: true }
    }

    /// Sends until `stopping` resolves, and then the spans recorded until then.
    pub async fn run(mut self, stopping: impl Future<Output = ()>) {
        let (client, target) = match self.target().and_then(|target| Ok((client(&target)?, target))) {
            Ok(found) => found,
            Err(unusable) => {
                warn!(error = chain(&unusable), "spans are not exported");
                // Nothing waits for them.
                self.told.close();
                return stopping.await;
            }
        };
        let mut stopping = pin!(stopping);
        loop {
            let has_more = tokio::select! {
                has_more = self.gather() => has_more,
                () = &mut stopping => break,
            };
            if !has_more {
                return stopping.await;
            }
            let mut sends = pin!(self.send(&client, &target));
            tokio::select! {
                () = &mut sends => {}
                () = &mut stopping => {
                    let _elapsed = timeout(LAST, sends).await;
                    break;
                }
            }
        }
        self.told.close();
        // What is left after that came too late.
        let _elapsed = timeout(LAST, self.send_rest(&client, &target)).await;
    }

    fn target(&self) -> Result<Uri, Unusable> {
        match &self.endpoint {
            Endpoint::Collector(target) => Ok(target.clone()),
            Endpoint::Standard => Ok(collector(&env::var(STANDARD).map_err(|_| Unusable::Unset)?)?),
        }
    }

    /// Takes the next spans: at least one, and those that follow soon. False where all senders are gone. Nothing is
    /// lost when the future is dropped.
    async fn gather(&mut self) -> bool {
        if self.told.recv_many(&mut self.batch, BATCH).await == 0 {
            return false;
        }
        let fill = async {
            while self.batch.len() < BATCH {
                let room = BATCH - self.batch.len();
                if self.told.recv_many(&mut self.batch, room).await == 0 {
                    break;
                }
            }
        };
        let _elapsed = timeout(GATHER, fill).await;
        true
    }

    async fn send_rest(&mut self, client: &Client, target: &Uri) {
        while !self.batch.is_empty() || self.told.recv_many(&mut self.batch, BATCH).await > 0 {
            self.send(client, target).await;
        }
    }

    async fn send(&mut self, client: &Client, target: &Uri) {
        let batch = mem::take(&mut self.batch);
        let spans = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        match post(client, target, batch).await {
            Ok(()) => {
                self.numbers.exported.inc_by(spans);
                if !self.is_taken {
                    info!("the collector takes spans again");
                }
                self.is_taken = true;
            }
            Err(lost) => {
                self.numbers.dropped.inc_by(spans);
                if self.is_taken {
                    warn!(error = chain(&lost), "the collector takes no spans, they are dropped");
                }
                self.is_taken = false;
            }
        }
    }
}

/// TLS by the process's own provider, and authorities of the system where they are needed: an image may have none.
fn client(target: &Uri) -> io::Result<Client> {
    let builder = HttpsConnectorBuilder::new();
    let builder = if target.scheme() == Some(&Scheme::HTTPS) {
        builder.with_native_roots()?
    } else {
        let no_roots = RootCertStore::empty();
        builder
            .with_tls_config(ClientConfig::builder().with_root_certificates(no_roots).with_no_client_auth())
    };
    let connector = builder.https_or_http().enable_http1().build();
    Ok(legacy::Client::builder(TokioExecutor::new()).build(connector))
}

async fn post(client: &Client, target: &Uri, batch: Vec<Span>) -> Result<(), Lost> {
    let body = Full::new(Bytes::from(request(batch).encode_to_vec()));
    let request = Request::post(target.clone()).header(CONTENT_TYPE, "application/x-protobuf").body(body)?;
    let answer = timeout(LIMIT, client.request(request)).await??;
    if answer.status().is_success() { Ok(()) } else { Err(Lost::Refused(answer.status())) }
}

fn request(batch: Vec<Span>) -> message::Request {
    let instance = hostname::get().unwrap_or_default();
    let resource = message::Resource {
        attributes: vec![
            attribute("service.name", "gatehouse".into()),
            attribute("service.version", env!("CARGO_PKG_VERSION").into()),
            attribute("service.instance.id", instance.to_string_lossy().as_ref().into()),
        ],
    };
    let scope = Scope { name: "gatehouse".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let spans = batch.into_iter().map(Span::message).collect();
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans }];
    message::Request { resource_spans: vec![ResourceSpans { resource: Some(resource), scope_spans }] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collectors_url_is_that_of_its_spans_or_of_what_is_above() {
        for (given, expected) in [
            ("http://otel:4318", "http://otel:4318/v1/traces"),
            ("https://otel/", "https://otel/v1/traces"),
            ("http://otel/base/", "http://otel/base/v1/traces"),
            ("http://otel/v1/traces", "http://otel/v1/traces"),
        ] {
            assert_eq!(given.parse::<Endpoint>().unwrap(), Endpoint::Collector(expected.parse().unwrap()));
        }
        assert_eq!(STANDARD.parse::<Endpoint>().unwrap(), Endpoint::Standard);
        for given in ["", "otel", "otel:4318", "grpc://otel:4317", "http://", "/v1/traces"] {
            assert!(given.parse::<Endpoint>().is_err(), "{given}");
        }
    }
}
