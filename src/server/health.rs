//! Plain HTTP for the kubelet and for Prometheus: `/livez`, `/readyz`, `/metrics`.
//!
//! Guarantees: it answers for as long as the process lives, draining or not. A connection is for one request, which has
//! [`HEAD`] to arrive and [`WHOLE`] to be answered; of more than [`MOST`] at a time the oldest gives way, so that
//! probes are answered however many others connect. Never: on the gate's port, or about anything that is secret.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tower::Service;

use super::crowd::{Crowd, Member};
use super::listener;
use crate::runtime::metrics::Page;
use crate::runtime::{Readiness, Tasks, blocking};

/// Connections at a time.
const MOST: usize = 64;

/// For a request to arrive.
const HEAD: Duration = Duration::from_secs(10);

/// For a connection, from its beginning to its end. Prometheus waits for 10 s, unless it is set otherwise.
const WHOLE: Duration = Duration::from_secs(30);

/// Bytes that a connection keeps of a head.
const BUFFER: usize = 16 * 1024;

/// After an accept that failed.
const PAUSE: Duration = Duration::from_millis(100);

/// The health endpoints on a socket of their own.
#[derive(Debug)]
pub struct Health {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
}

#[derive(Clone)]
struct Shown {
    readiness: Readiness,
    page: Page,
}

impl Health {
    /// Binds `address`; port 0 takes a free one. Needs a runtime.
    ///
    /// # Errors
    /// When the system refuses the address.
    pub fn bind(address: SocketAddr, readiness: Readiness, page: Page) -> io::Result<Self> {
        let listener = listener::bind(address)?;
        let router = Router::new()
            .route("/livez", get(async || "ok\n"))
            .route("/readyz", get(ready))
            .route("/metrics", get(metrics))
            .with_state(Shown { readiness, page });
        Ok(Self { address: listener.local_addr()?, listener, router })
    }

    /// Where it listens.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` resolves, and then those who have asked.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let (open, crowd) = (Tasks::new(), Crowd::new(MOST, usize::MAX));
        let mut stop = pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = listener::accept(&self.listener) => accepted,
            };
            match accepted {
                Ok(socket) => open.spawn(answer(socket, self.router.clone(), crowd.join(Arc::default()))),
                // For want of files, or the client was gone before its turn came.
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        let _late = timeout(WHOLE, open.ended()).await;
    }
}

/// One request of one connection.
async fn answer(socket: TcpStream, router: Router, member: Member) {
    let service = service_fn(move |request: Request<Incoming>| router.clone().call(request.map(Body::new)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(BUFFER).keep_alive(false);
    tokio::select! {
        // One that ends badly has nobody left to tell.
        _ended = timeout(WHOLE, http.serve_connection(TokioIo::new(socket), service)) => {}
        () = member.gave_way() => {}
    }
}

async fn ready(State(shown): State<Shown>) -> Response {
    let report = shown.readiness.report();
    let status = if report.ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, report.to_string()).into_response()
}

async fn metrics(State(shown): State<Shown>) -> Response {
    // It may be about tens of thousands of objects.
    let Ok(Ok(page)) = blocking(move || shown.page.text()).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let content = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    ([(CONTENT_TYPE, content)], page).into_response()
}
