//! The gate: HTTPS in front of [`crate::review`].
//!
//! Guarantees: every review is answered in its time or says that it could not be; nothing that one client does holds up
//! another, and a client that stands still gives way to one that goes on; a shutdown loses no request. Assumes:
//! the caller swaps certificates into [`ServedCertificate`]. Never: asks a Kubernetes API anything.
//!
//! ```text
//!   listener ──▶ connection (tls, certificate) ──▶ router ──▶ handler (limits, deadline, body) ──▶ review
//!                                                               └─ observe: span, metrics, log line
//! ```

mod activity;
mod body;
mod certificate;
mod clients;
mod connection;
mod crowd;
mod deadline;
mod handler;
mod health;
mod limits;
mod listener;
mod observe;
mod places;
mod problem;
mod route;
mod router;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

pub use certificate::{Error as CertificateError, ServedCertificate};
pub use clients::{TrustedClients, Unusable};
pub use handler::{Reviewer, Rules};
pub use health::Health;
pub use limits::Limits;
pub use tls::MinVersion;

use crate::runtime::otlp::Traces;
use crate::runtime::{Metrics, Tasks};
use connection::{Phase, Shared};

/// What a server is made of.
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// What to show in handshakes.
    pub certificate: ServedCertificate,
    /// The least version of TLS that is spoken.
    pub min_version: MinVersion,
    /// The clients whose admission reviews are answered; all without it.
    pub clients: Option<TrustedClients>,
    /// Its limits.
    pub limits: Limits,
    /// Where to count.
    pub metrics: Metrics,
    /// Where spans of reviews go, besides.
    pub traces: Traces,
    /// Who answers.
    pub reviewer: Arc<dyn Reviewer>,
}

/// Why a server could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused the address.
    #[error("failed to listen on {address}")]
    Listen {
        /// As it was given.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The crypto provider does not fit.
    #[error("failed to set up TLS")]
    Tls(#[from] rustls::Error),
}

/// The gate, bound and not yet serving.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    certificate: ServedCertificate,
    limits: Limits,
    metrics: Metrics,
    phase: watch::Sender<Phase>,
    shared: Arc<Shared>,
}

impl Server {
    /// Binds the address. Clients may connect from here on; they are answered once [`Self::serve`] runs. Needs a
    /// runtime.
    ///
    /// # Errors
    /// [`Error`].
    pub fn bind(config: Config) -> Result<Self, Error> {
        let refused = |source| Error::Listen { address: config.listen, source };
        let listener = listener::bind(config.listen).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let phase = watch::Sender::new(Phase::Serving);
        let gate = handler::Gate::new(
            config.reviewer,
            config.limits,
            config.metrics.clone(),
            config.traces,
            config.clients.is_some(),
        );
        let shared = Shared::new(
            tls::acceptor(config.certificate.clone(), config.min_version, config.clients)?,
            router::router(Arc::new(gate)),
            config.limits,
            config.metrics.clone(),
            phase.subscribe(),
        );
        Ok(Self {
            listener,
            address,
            certificate: config.certificate,
            limits: config.limits,
            metrics: config.metrics,
            phase,
            shared: Arc::new(shared),
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `drain` resolves, and then until it is drained. Clients that connect before there is a certificate
    /// wait for it in the kernel's queue: a replica that starts again is called as long as its Service remembers it, and
    /// handshakes without a certificate would fail the users' writes.
    ///
    /// The drain:
    ///
    /// 1. for [`Limits::drain_delay`] all goes on, but answers of HTTP/1.1 say `Connection: close`;
    /// 2. then nothing is accepted any more and HTTP/2 clients get a GOAWAY; idle connections of HTTP/1.1 stay
    ///    until their client closes them, or [`Limits::drain_deadline`];
    /// 3. then what is left is closed, requests in flight first being given [`Limits::close`].
    pub async fn serve(self, drain: impl Future<Output = ()>) {
        let open = Tasks::new();
        let announced = async {
            drain.await;
            self.metrics.draining.set(1);
            self.phase.send_replace(Phase::Announcing);
            sleep(self.limits.drain_delay).await;
        };
        let mut announced = pin!(announced);
        tokio::select! {
            () = &mut announced => return,
            () = self.certificate.available() => {}
        }
        let serve = |socket, place| open.spawn(connection::serve(Arc::clone(&self.shared), socket, place));
        listener::accept_until(announced, &self.listener, &self.shared.places, &self.metrics, serve).await;
        // Who is already in the kernel's queue would otherwise be reset.
        while let Some(Ok(socket)) = listener::accept(&self.listener).now_or_never() {
            serve(socket, None);
        }
        drop(self.listener);
        self.phase.send_replace(Phase::Leaving);
        info!(connections = open.len(), "no longer accepting connections");
        if timeout(self.limits.drain_deadline, open.ended()).await.is_err() {
            self.phase.send_replace(Phase::Closing);
            if timeout(self.limits.close * 2, open.ended()).await.is_err() {
                warn!(connections = open.len(), "leaving connections behind");
            }
        }
    }
}
