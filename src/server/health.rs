//! Plain HTTP for the kubelet and for Prometheus: `/livez`, `/readyz`, `/metrics`.
//!
//! Guarantees: it answers for as long as the process lives, draining or not. Never: on the gate's port, or about
//! anything that is secret.

use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use super::listener;
use crate::runtime::{Pages, Readiness};

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
    pages: Pages,
}

impl Health {
    /// Binds `address`; port 0 takes a free one. Needs a runtime.
    ///
    /// # Errors
    /// When the system refuses the address.
    pub fn bind(address: SocketAddr, readiness: Readiness, pages: Pages) -> io::Result<Self> {
        let listener = listener::bind(address)?;
        let router = Router::new()
            .route("/livez", get(async || "ok\n"))
            .route("/readyz", get(ready))
            .route("/metrics", get(page))
            .with_state(Shown { readiness, pages });
        Ok(Self { address: listener.local_addr()?, listener, router })
    }

    /// Where it listens.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` resolves.
    ///
    /// # Errors
    /// When the socket fails.
    pub async fn serve(self, stop: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        axum::serve(self.listener, self.router).with_graceful_shutdown(stop).await
    }
}

async fn ready(State(shown): State<Shown>) -> Response {
    let report = shown.readiness.report();
    let status = if report.ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, report.to_string()).into_response()
}

async fn page(State(shown): State<Shown>) -> Response {
    let Ok(page) = shown.pages.text().await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let content = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    ([(CONTENT_TYPE, content)], page).into_response()
}
