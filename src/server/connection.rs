//! One connection, from its handshake to its end.
//!
//! Guarantees: it is never closed under a client that may be about to send, but for a silence longer than the client
//! itself would bear ([`Limits::idle`]); a client that sends nothing at all is gone after [`Limits::first_header`], or
//! when its place is needed ([`Places`]); one that does not take an answer that counts after [`Limits::answer`], or when its memory is.
//!
//! ```text
//!   accepted ─handshake─▶ no request yet ──request──▶ busy ◀──▶ idle ──closed by the client──▶ end
//!        handshake limit │      first_header limit │             │ idle limit
//!                        └─────────────────────────┴─────────────┴──────────────────────────▶ cut
//! ```
//!
//! hyper's own `header_read_timeout` is off: it runs while a connection is idle too (hyperium/hyper#3828), and would
//! close it under the API server after 30 s. While draining, answers of HTTP/1.1 say `Connection: close`; hyper's
//! graceful shutdown would close idle connections at once, with the same race.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::http::{Request, Response, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::Service;
use tracing::debug;

use super::activity::Activity;
use super::limits::Limits;
use super::places::{Place, Places};
use super::tls::H2;
use crate::runtime::Metrics;
use crate::runtime::metrics::Reason;

/// How far the end of the server has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// No end was asked for.
    Serving,
    /// Answers ask HTTP/1.1 clients to close; all else goes on.
    Announcing,
    /// Nothing is accepted any more; HTTP/2 clients get a GOAWAY, which they can do without losing a request.
    Leaving,
    /// Connections that are still there are closed.
    Closing,
}

/// Requests that one connection of HTTP/2 may have open: what RFC 9113 advises at least. Clients open as many before
/// they know the limit, and would be refused the rest.
const STREAMS: u32 = 100;

/// Bytes that a connection keeps of a head of HTTP/1.1 that has not ended, of a body that is not read yet, or of an
/// answer that is not taken. API servers send heads of some hundred bytes. hyper has the same for heads of HTTP/2.
const BUFFER: usize = 16 * 1024;

/// Bytes that a client may send over HTTP/2 before they are read: of one body, and of all bodies of a connection. They
/// are in memory beside [`Limits::bodies`]. A connection cannot have less (RFC 9113, 6.9.2).
const WINDOW: u32 = 64 * 1024;

/// What all connections of a server share.
pub(super) struct Shared {
    acceptor: TlsAcceptor,
    pub(super) places: Arc<Places>,
    http1: Builder<TokioExecutor>,
    http2: Builder<TokioExecutor>,
    router: Router,
    limits: Limits,
    metrics: Metrics,
    phase: watch::Receiver<Phase>,
}

impl Shared {
    pub(super) fn new(
        acceptor: TlsAcceptor,
        router: Router,
        limits: Limits,
        metrics: Metrics,
        phase: watch::Receiver<Phase>,
    ) -> Self {
        let mut http1 = Builder::new(TokioExecutor::new()).http1_only();
        http1.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(BUFFER);
        let mut http2 = Builder::new(TokioExecutor::new()).http2_only();
        http2
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .max_send_buf_size(BUFFER)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            // Streams that are opened and reset at once are the cheapest attack there is (CVE-2023-44487).
            .max_pending_accept_reset_streams(20)
            .max_local_error_reset_streams(100)
            .keep_alive_interval(Duration::from_secs(30))
            .keep_alive_timeout(Duration::from_secs(20));
        let places = Places::new(limits.connections);
        Self { acceptor, places, http1, http2, router, limits, metrics, phase }
    }

    async fn reached(&self, phase: Phase) {
        // A server that is gone has reached every phase.
        let mut phases = self.phase.clone();
        let _gone = phases.wait_for(|now| *now >= phase).await;
    }

    fn cut(&self, reason: &'static str) {
        self.metrics.connections_closed.get_or_create(&Reason { reason }).inc();
    }

    fn failed(&self, reason: &'static str) {
        self.metrics.handshake_failures.get_or_create(&Reason { reason }).inc();
    }
}

/// Serves one connection to its end. `permit` is for its place among the open ones.
pub(super) async fn serve(shared: Arc<Shared>, socket: TcpStream, permit: Option<OwnedSemaphorePermit>) {
    // A client that is gone already needs no answer.
    let Ok(client) = socket.peer_addr() else { return };
    let activity = Activity::new(client.ip());
    let _open = Open::new(&shared.metrics, shared.places.take(permit, &activity));
    let handshake = timeout(shared.limits.handshake, shared.acceptor.accept(socket));
    let shaken = tokio::select! {
        shaken = handshake => shaken,
        () = activity.has_to_go() => return shared.failed("crowded"),
    };
    match shaken {
        Ok(Ok(stream)) => talk(&shared, stream, activity).await,
        Ok(Err(error)) => {
            shared.failed("tls");
            debug!(%error, "handshake failed");
        }
        Err(_elapsed) => shared.failed("timeout"),
    }
}

async fn talk(shared: &Arc<Shared>, stream: TlsStream<TcpStream>, activity: Arc<Activity>) {
    let (builder, mut leave) = if stream.get_ref().1.alpn_protocol() == Some(H2) {
        (&shared.http2, Phase::Leaving)
    } else {
        (&shared.http1, Phase::Closing)
    };
    if stream.get_ref().1.peer_certificates().is_some() {
        activity.recognise();
    }
    let service = service_fn(|request| answer(Arc::clone(shared), Arc::clone(&activity), request));
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    debug!(%error, "connection ended");
                }
                return;
            }
            reason = activity.too_long_silent(&shared.limits) => {
                shared.cut(reason);
                break;
            }
            // Others need its memory or its place at once.
            () = activity.has_to_go() => return shared.cut("crowded"),
            () = shared.reached(leave) => {
                if leave == Phase::Closing {
                    break;
                }
                connection.as_mut().graceful_shutdown();
                leave = Phase::Closing;
            }
        }
    }
    connection.as_mut().graceful_shutdown();
    // What does not end in time ends by being dropped.
    let _late = timeout(shared.limits.close, connection).await;
}

async fn answer(
    shared: Arc<Shared>,
    activity: Arc<Activity>,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    request.extensions_mut().insert(Arc::clone(&activity));
    let _busy = activity.begin();
    let version = request.version();
    let mut response = shared.router.clone().call(request.map(Body::new)).await?;
    if version <= Version::HTTP_11 && *shared.phase.borrow() > Phase::Serving {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}

/// Counts a connection among the open ones while it lives.
struct Open {
    metrics: Metrics,
    _place: Place,
}

impl Open {
    fn new(metrics: &Metrics, place: Place) -> Self {
        metrics.connections_open.inc();
        Self { metrics: metrics.clone(), _place: place }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.metrics.connections_open.dec();
    }
}
