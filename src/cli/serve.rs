//! `gatehouse serve`: the process, as a table of contents.
//!
//! Where it listens is in one log line, `serving`, with the fields `address` and `health`: port 0 takes a free port,
//! and that line is where to read it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use tracing::info;

use super::Failure;
use crate::runtime::readiness::Weight;
use crate::runtime::signals::Signals;
use crate::runtime::supervisor::Patience;
use crate::runtime::{Metrics, Supervisor, clock};
use crate::server::{Config, Health, Limits, Rules, ServedCertificate, Server, parse_duration};

/// What `gatehouse serve` can be told.
#[derive(Args, Debug)]
pub struct Options {
    /// Serve reviews only: no Kubernetes API is asked for anything.
    #[arg(long, requires_all = ["tls_cert", "tls_key"], env = "GATEHOUSE_WEBHOOK_ONLY")]
    pub webhook_only: bool,
    /// Where reviews are served, over HTTPS. Port 0 takes a free one.
    #[arg(
        long,
        value_name = "ADDR",
        default_value = "[::]:9443",
        env = "GATEHOUSE_LISTEN"
    )]
    pub listen: SocketAddr,
    /// Where /livez, /readyz and /metrics are served, over HTTP. Port 0 takes a free one.
    #[arg(
        long,
        value_name = "ADDR",
        default_value = "[::]:8080",
        env = "GATEHOUSE_HEALTH_LISTEN"
    )]
    pub health_listen: SocketAddr,
    /// PEM file of the certificate chain, leaf first.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// PEM file of the private key.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// How long a drain goes on accepting, until everybody has heard that this endpoint is gone.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "12s")]
    pub drain_delay: Duration,
    /// How long after that idle connections may stay until their client closes them.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "90s")]
    pub drain_deadline: Duration,
    /// Threads that serve. [default: one for each core]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub worker_threads: Option<u16>,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a duration such as 10s or 1m30s".to_owned())
}

/// Why serving could not begin.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("unable to serve without --webhook-only yet")]
    NotYet,
    #[error("failed to read {path}")]
    Pem { path: PathBuf, source: pem::Error },
    #[error("failed to listen on {address}")]
    Health {
        address: SocketAddr,
        source: std::io::Error,
    },
}

/// Serves until a signal ends it.
///
/// # Errors
/// Why it could not begin, or could not go on.
pub fn run(options: Options) -> Result<(), Failure> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = options.worker_threads {
        runtime.worker_threads(threads.into());
    }
    let runtime = runtime.enable_all().build()?;
    let ended = runtime.block_on(serve(options));
    // A review that is still judged has nobody left to hear its answer.
    runtime.shutdown_background();
    ended
}

async fn serve(options: Options) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let metrics = Metrics::default();
    let supervisor = Supervisor::new(patience(&options));

    let certificate = certificate(&options, &metrics)?;
    let server = gate(&options, &metrics, certificate.clone())?;
    let health = health(&options, &metrics, &supervisor)?;
    info!(address = %server.local_addr(), health = %health.local_addr(), "serving");

    supervisor
        .readiness()
        .check("certificate", Weight::Required, move || {
            certificate.check(clock::now())
        });
    supervisor.critical("health", |life| async move {
        life.ready().set();
        Ok(health.serve(life.stopping()).await?)
    });
    supervisor.drained("gate", |life| async move {
        life.ready().set();
        server.serve(life.draining()).await;
        Ok(())
    });

    Ok(supervisor.run(async || signals.next().await).await?)
}

fn patience(options: &Options) -> Patience {
    Patience {
        drain: options.drain_delay + options.drain_deadline + Duration::from_secs(10),
        ..Patience::default()
    }
}

fn certificate(options: &Options, metrics: &Metrics) -> Result<ServedCertificate, Failure> {
    let certificate = ServedCertificate::new(metrics);
    match (options.webhook_only, &options.tls_cert, &options.tls_key) {
        (true, Some(chain), Some(key)) => certificate.swap(read_chain(chain)?, read_key(key)?)?,
        _ => return Err(Error::NotYet.into()),
    }
    Ok(certificate)
}

fn gate(options: &Options, metrics: &Metrics, certificate: ServedCertificate) -> Result<Server, Failure> {
    Ok(Server::bind(Config {
        listen: options.listen,
        certificate,
        limits: Limits {
            drain_delay: options.drain_delay,
            drain_deadline: options.drain_deadline,
            ..Limits::default()
        },
        metrics: metrics.clone(),
        reviewer: Arc::new(Rules),
    })?)
}

fn health(options: &Options, metrics: &Metrics, supervisor: &Supervisor) -> Result<Health, Error> {
    let address = options.health_listen;
    Health::bind(address, supervisor.readiness().clone(), metrics.clone())
        .map_err(|source| Error::Health { address, source })
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|source| pem_error(path, source))
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_file(path).map_err(|source| pem_error(path, source))
}

fn pem_error(path: &Path, source: pem::Error) -> Error {
    Error::Pem {
        path: path.to_owned(),
        source,
    }
}
