//! One connection, from its handshake to its end.
//!
//! Guarantees: it is never closed under a client that may be about to send, but for a silence longer than the client
//! itself would bear ([`Limits::idle`]); a client that sends nothing at all is gone after [`Limits::first_header`].
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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::Service;
use tracing::debug;

use super::limits::Limits;
use super::tls::H2;
use crate::runtime::metrics::Reason;
use crate::runtime::{Metrics, clock};

/// How far the end of the server has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Nobody has asked for it.
    Serving,
    /// Answers ask HTTP/1.1 clients to close; all else goes on.
    Announcing,
    /// Nothing is accepted any more; HTTP/2 clients are told to go, which they can do without losing a request.
    Leaving,
    /// Whoever is still there is closed.
    Closing,
}

/// What all connections of a server share.
pub(super) struct Shared {
    acceptor: TlsAcceptor,
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
        http1.http1().timer(TokioTimer::new()).header_read_timeout(None);
        let mut http2 = Builder::new(TokioExecutor::new()).http2_only();
        http2
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(250)
            // Streams that are opened and reset at once are the cheapest attack there is (CVE-2023-44487).
            .max_pending_accept_reset_streams(20)
            .max_local_error_reset_streams(100)
            .keep_alive_interval(Duration::from_secs(30))
            .keep_alive_timeout(Duration::from_secs(20));
        Self { acceptor, http1, http2, router, limits, metrics, phase }
    }

    async fn reached(&self, phase: Phase) {
        // A server that is gone has reached every phase.
        let mut phases = self.phase.clone();
        let _gone = phases.wait_for(|now| *now >= phase).await;
    }

    fn failed(&self, reason: &'static str) {
        self.metrics.handshakes_failed.get_or_create(&Reason { reason }).inc();
    }
}

/// Serves one connection to its end. `permit` is its place among the open ones.
pub(super) async fn serve(shared: Arc<Shared>, socket: TcpStream, permit: OwnedSemaphorePermit) {
    let _open = Open::new(&shared.metrics, permit);
    match timeout(shared.limits.handshake, shared.acceptor.accept(socket)).await {
        Ok(Ok(stream)) => talk(&shared, stream).await,
        Ok(Err(error)) => {
            shared.failed("tls");
            debug!(%error, "handshake failed");
        }
        Err(_elapsed) => shared.failed("timeout"),
    }
}

async fn talk(shared: &Arc<Shared>, stream: TlsStream<TcpStream>) {
    let (builder, mut leave) = if stream.get_ref().1.alpn_protocol() == Some(H2) {
        (&shared.http2, Phase::Leaving)
    } else {
        (&shared.http1, Phase::Closing)
    };
    let activity = Arc::new(Activity::new());
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
                shared.metrics.connections_cut.get_or_create(&Reason { reason }).inc();
                break;
            }
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
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
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
    _permit: OwnedSemaphorePermit,
}

impl Open {
    fn new(metrics: &Metrics, permit: OwnedSemaphorePermit) -> Self {
        metrics.connections_open.inc();
        Self { metrics: metrics.clone(), _permit: permit }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.metrics.connections_open.dec();
    }
}

/// When the client was last heard of.
struct Activity(Mutex<Heard>);

#[derive(Clone, Copy)]
struct Heard {
    busy: usize,
    asked: bool,
    last: Instant,
}

/// A request is being answered.
struct Busy(Arc<Activity>);

impl Activity {
    fn new() -> Self {
        Self(Mutex::new(Heard { busy: 0, asked: false, last: clock::instant() }))
    }

    fn begin(self: &Arc<Self>) -> Busy {
        let mut heard = self.lock();
        heard.busy += 1;
        heard.asked = true;
        drop(heard);
        Busy(Arc::clone(self))
    }

    /// Resolves when the client has been silent for longer than it may, with the reason. Looks at the clock only
    /// when a limit may have passed: a request costs no timer.
    async fn too_long_silent(&self, limits: &Limits) -> &'static str {
        loop {
            let Heard { busy, asked, last } = *self.lock();
            let now = clock::instant();
            let (limit, reason) =
                if asked { (limits.idle, "idle") } else { (limits.first_header, "first_header") };
            let due = if busy > 0 { now + limit } else { last + limit };
            if due <= now {
                return reason;
            }
            // Until the first request it is not known which limit will be the next.
            let unknown = if asked { due } else { now + limits.idle };
            sleep_until(due.min(unknown)).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut heard = self.0.lock();
        heard.busy -= 1;
        heard.last = clock::instant();
    }
}
