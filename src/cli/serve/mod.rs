//! `gatehouse serve`: the process, as a table of contents.
//!
//! ```text
//! certificate ─▶ listener ─┬▶ self-probe ─▶ definitions ─▶ webhook configurations ─▶ the operator's process
//!                          └▶ ready, once the definitions are served
//! ```
//!
//! Where it listens is in one log line, `serving`, with the fields `address` and `health`: port 0 takes a free port,
//! and that line is where to read it. A second line, `installed`, follows when the cluster points at this gate, and
//! `leading` when this replica does the operator's work. The gate serves whatever becomes of the rest: what follows it
//! is started again when it fails, and the operator is a process of its own (see [`super::operate`]).

mod cluster;
mod operator;
mod options;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tracing::info;

use super::ending::Failure;
use crate::certs::{self, Handle, Publisher, Source, State};
use crate::runtime::files::raise_limit;
use crate::runtime::metrics::Which;
use crate::runtime::otlp::{self, Traces};
use crate::runtime::readiness::Weight;
use crate::runtime::signals::Signals;
use crate::runtime::telemetry::{LogFormat, Logging};
use crate::runtime::{Metrics, Pages, Supervisor, clock};
use crate::server::{Config, Health, Rules, ServedCertificate, Server, TrustedClients};
use cluster::Cluster;
use operator::Operator;
pub use operator::Starts;
pub use options::Options;

/// Why serving could not begin.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("failed to listen on {address}")]
    Health { address: SocketAddr, source: std::io::Error },
}

/// Serves until a signal ends it.
///
/// # Errors
/// Why it could not begin, or could not go on.
pub fn run(options: Options, log_format: LogFormat, logging: &Logging) -> Result<(), Failure> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = options.worker_threads {
        runtime.worker_threads(threads.into());
    }
    let runtime = runtime.enable_all().build()?;
    let ended = runtime.block_on(serve(options, log_format, logging));
    // A review that is still judged has nobody left to hear its answer.
    runtime.shutdown_background();
    ended
}

async fn serve(options: Options, log_format: LogFormat, logging: &Logging) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let (starts, spans) = (Starts::default(), otlp::Numbers::default());
    let metrics = Metrics::new(|registry| {
        starts.register(registry);
        logging.dropped().register(registry, "log_lines_dropped");
        spans.register(registry);
    });
    let supervisor = Supervisor::new(options.patience());

    let certificate = ServedCertificate::new(&metrics);
    let clients = options.clients();
    let trusted = clients.as_ref().map(|(_path, trusted)| trusted.clone());
    let traces = export_traces(&supervisor, options.otlp_endpoint.clone(), spans);
    let server = gate(&options, &metrics, traces, certificate.clone(), trusted)?;
    let (pages, wanted) = Pages::with_another(metrics.page().clone());
    let health = health(&options, pages, &supervisor)?;
    let listener = server.local_addr();
    info!(address = %listener, health = %health.local_addr(), "serving");

    supervisor.critical("health", |life| async move {
        life.ready().set();
        health.serve(life.stopping()).await;
        Ok(())
    });
    if let Some((path, trusted)) = clients {
        keep_clients(&supervisor, path, trusted);
    }
    let (publisher, certificates) = publisher(&supervisor, certificate);
    supervisor.drained("gate", |life| async move {
        life.ready().set();
        server.serve(life.draining()).await;
        Ok(())
    });
    if let Some(source) = options.mounted().filter(|_| options.webhook_only) {
        keep_certificate(&supervisor, source, publisher, certificates, metrics);
        // There is no operator, and so nothing that a scrape could wait for.
        drop(wanted);
    } else {
        let cluster = Cluster::find(&options, listener, certificates.clone()).await?;
        keep_certificate(&supervisor, cluster.source(&options), publisher, certificates, metrics);
        cluster.await_definitions(&supervisor);
        let installed = cluster.keep_installed(&supervisor);
        let (words, installation) = (options.operator_words(log_format), cluster.installation());
        let readiness = supervisor.readiness().clone();
        Operator { words, installation, readiness, wanted, starts }.keep_working(&supervisor, installed);
    }
    Ok(supervisor.run(async || signals.next().await).await?)
}

fn gate(
    options: &Options,
    metrics: &Metrics,
    traces: Traces,
    certificate: ServedCertificate,
    clients: Option<TrustedClients>,
) -> Result<Server, Failure> {
    Ok(Server::bind(Config {
        listen: options.listen,
        certificate,
        min_version: options.tls_min_version.into(),
        clients,
        limits: options.limits(raise_limit()),
        metrics: metrics.clone(),
        traces,
        reviewer: Arc::new(Rules { own_namespace: options.own_namespace() }),
    })?)
}

/// Nobody waits for the collector, and nobody is less ready without it.
fn export_traces(supervisor: &Supervisor, to: Option<otlp::Endpoint>, numbers: otlp::Numbers) -> Traces {
    let Some(endpoint) = to else { return Traces::default() };
    let (traces, exporter) = Traces::to(endpoint, numbers);
    supervisor.critical("traces", |life| async move {
        life.ready().set();
        exporter.run(life.stopping()).await;
        Ok(())
    });
    traces
}

fn health(options: &Options, pages: Pages, supervisor: &Supervisor) -> Result<Health, Error> {
    let address = options.health_listen;
    Health::bind(address, supervisor.readiness().clone(), pages)
        .map_err(|source| Error::Health { address, source })
}

/// What the source finds is served, and without something to serve nobody is ready.
fn publisher(supervisor: &Supervisor, certificate: ServedCertificate) -> (Publisher, Handle) {
    let served = certificate.clone();
    supervisor.readiness().check("certificate", Weight::Required, move || served.check(clock::now()));
    certs::publisher(move |chain, key| certificate.swap(chain, key).map_err(Into::into))
}

/// Nobody is known before the authority of clients was read, and so nobody is ready.
fn keep_clients(supervisor: &Supervisor, path: PathBuf, trusted: TrustedClients) {
    supervisor.critical("clients", |life| async move {
        let take = |authorities| trusted.swap(authorities).map_err(Into::into);
        tokio::select! {
            never = certs::clients::keep(&path, take, || life.ready().set()) => match never {},
            () = life.stopping() => Ok(()),
        }
    });
}

fn keep_certificate(
    supervisor: &Supervisor,
    source: Source,
    publisher: Publisher,
    certificates: Handle,
    metrics: Metrics,
) {
    supervisor.critical("certificates", |life| async move {
        life.ready().set();
        tokio::select! {
            never = source.run(publisher) => match never {},
            never = certificates.show(|state| count(state, &metrics)) => match never {},
            () = life.stopping() => Ok(()),
        }
    });
}

fn count(state: &State, metrics: &Metrics) {
    if let Some(authority) = state.facts.authority {
        let ends = metrics.certificate_expiry.get_or_create_owned(&Which { which: "authority" });
        ends.set(authority.not_after.as_duration().as_secs_f64());
    }
    let trusted = state.facts.bundle.as_ref().map_or(0, |bundle| bundle.certificates().len());
    metrics.bundle_certificates.set(i64::try_from(trusted).unwrap_or(i64::MAX));
    metrics.certificates_failing.set(i64::from(state.failure.is_some()));
}
