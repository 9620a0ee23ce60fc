//! `gatehouse serve`: the process, as a table of contents.
//!
//! ```text
//! certificate ─▶ listener ─┬▶ self-probe ─▶ definitions ─▶ webhook configurations ─▶ the controllers' runtime
//!                          └▶ ready, once the definitions are served
//! ```
//!
//! Where it listens is in one log line, `serving`, with the fields `address` and `health`: port 0 takes a free port,
//! and that line is where to read it. A second line, `installed`, follows when the cluster points at this gate, and
//! `leading` when this replica's controllers work. The gate serves whatever becomes of the rest: what follows it is
//! started again when it fails, and the controllers have a runtime of their own (see [`controllers`]). `--only` leaves
//! out the gate or the controllers; without the gate there is no `address`.

mod cluster;
pub(in crate::cli) mod controllers;
mod options;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use prometheus_client::registry::Registry;
use tracing::info;

use super::ending::Failure;
use crate::certs::{self, Handle, Publisher, Source, State};
use crate::kinds::KINDS;
use crate::runtime::files::raise_limit;
use crate::runtime::metrics::{OfKind, Page, Which};
use crate::runtime::otlp::{self, Traces};
use crate::runtime::readiness::Weight;
use crate::runtime::signals::Signals;
use crate::runtime::telemetry::Logging;
use crate::runtime::{Metrics, Supervisor, Tasks, blocking, clock};
use crate::server::{Config, Health, Rules, ServedCertificate, Server, TrustedClients};
use cluster::{Cluster, Installed};
use controllers::Controllers;
pub use controllers::{Metrics as ControllerMetrics, Starts};
pub use options::Options;
use options::Part;

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
pub fn run(options: Options, logging: &Logging) -> Result<(), Failure> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = options.worker_threads {
        runtime.worker_threads(threads.into());
    }
    let runtime = runtime.enable_all().build()?;
    let ended = runtime.block_on(serve(options, logging));
    // The connection of a review that is still validated is closed already.
    runtime.shutdown_background();
    ended
}

async fn serve(options: Options, logging: &Logging) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let supervisor = Supervisor::new(options.patience());
    let controllers = options
        .runs(Part::Controllers)
        .then(|| Controllers::new(&options.controllers, supervisor.readiness()));
    let shown = |registry: &mut Registry| {
        logging.dropped().register(registry);
        if let Some(controllers) = &controllers {
            controllers.register(registry);
        }
    };
    let installed = if options.runs(Part::Gate) {
        serve_gate(&options, &supervisor, shown).await?
    } else {
        let health = keep_health(&options, Page::new(shown), &supervisor)?;
        info!(%health, "serving");
        Installed::by_others()
    };
    if let Some(controllers) = controllers {
        controllers.keep_working(&supervisor, &installed);
    }
    Ok(supervisor.run(async || signals.next().await).await?)
}

/// Starts the gate, with what `shown` adds to its metrics; whether it is installed.
async fn serve_gate(
    options: &Options,
    supervisor: &Supervisor,
    shown: impl FnOnce(&mut Registry),
) -> Result<Installed, Failure> {
    let spans = otlp::Numbers::default();
    let metrics = Metrics::new(|registry| {
        spans.register(registry);
        shown(registry);
    });
    for kind in KINDS {
        // Prometheus takes a count that appears with the first loss for one that has not grown.
        let _zero = metrics.conversion_loss.get_or_create(&OfKind { kind: kind.names().kind });
    }
    compile_schemas();
    let certificate = ServedCertificate::new(&metrics);
    let clients = options.clients();
    let trusted = clients.as_ref().map(|(_path, trusted)| trusted.clone());
    let traces = export_traces(supervisor, options.otlp_endpoint.clone(), spans);
    let server = gate(options, &metrics, traces, certificate.clone(), trusted)?;
    let listener = server.local_addr();
    let health = keep_health(options, metrics.page().clone(), supervisor)?;
    info!(address = %listener, %health, "serving");

    if let Some((path, trusted)) = clients {
        keep_clients(supervisor, path, trusted);
    }
    let (publisher, certificates) = publisher(supervisor, certificate);
    supervisor.drained("gate", |life| async move {
        life.ready().set();
        server.serve(life.draining()).await;
        Ok(())
    });
    if let Some(source) = options.mounted().filter(|_| options.webhook_only) {
        keep_certificate(supervisor, source, publisher, certificates, metrics);
        return Ok(Installed::by_others());
    }
    let cluster = Cluster::find(options, listener, certificates.clone(), &metrics).await?;
    await_trust(supervisor, certificates.clone());
    keep_certificate(supervisor, cluster.source(options), publisher, certificates, metrics);
    cluster.await_definitions(supervisor);
    let installed = cluster.keep_installed(supervisor);
    if !options.runs(Part::Controllers) {
        cluster.elect_installer(supervisor, options, &installed);
    }
    Ok(installed)
}

/// Beside all else, so that the first review of a kind need not wait for its schemas: some 10 ms each.
fn compile_schemas() {
    let tasks = Tasks::new();
    for kind in KINDS {
        tasks.spawn(async {
            // A panic will be the first review's, which tells of it.
            let _compiled = blocking(|| kind.schemas()).await;
        });
    }
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
        reviewer: Arc::new(Rules {
            own_namespace: options.own_namespace(),
            image: options.controllers.image.clone(),
        }),
    })?)
}

/// Nothing waits for the collector, and readiness does not depend on it.
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

/// Serves health and metrics; where.
fn keep_health(options: &Options, page: Page, supervisor: &Supervisor) -> Result<SocketAddr, Error> {
    let address = options.health_listen;
    let health = Health::bind(address, supervisor.readiness().clone(), page)
        .map_err(|source| Error::Health { address, source })?;
    let listener = health.local_addr();
    supervisor.critical("health", |life| async move {
        life.ready().set();
        health.serve(life.stopping()).await;
        Ok(())
    });
    Ok(listener)
}

/// Serves what the source finds; the process is not ready without a certificate.
fn publisher(supervisor: &Supervisor, certificate: ServedCertificate) -> (Publisher, Handle) {
    let served = certificate.clone();
    supervisor.readiness().check("certificate", Weight::Required, move || served.check(clock::now()));
    certs::publisher(move |chain, key| certificate.swap(chain, key).map_err(Into::into))
}

/// No client is known until the clients' authority has been read, so the process is not ready until then.
fn keep_clients(supervisor: &Supervisor, path: PathBuf, trusted: TrustedClients) {
    supervisor.critical("clients", |life| async move {
        let take = |authorities| trusted.swap(authorities).map_err(Into::into);
        tokio::select! {
            never = certs::clients::keep(&path, take, || life.ready().set()) => match never {},
            () = life.stopping() => Ok(()),
        }
    });
}

/// Not ready before API servers trust the certificate: the authority may have been lost, and its new key not be in force
/// yet. Other replicas still serve certificates of the key before. Once ready, it stays so.
fn await_trust(supervisor: &Supervisor, mut certificates: Handle) {
    supervisor.critical("trust", |life| async move {
        life.ready().unset("the CA bundles in force lack the authority of the certificate");
        tokio::select! {
            () = certificates.trusted() => life.ready().set(),
            () = life.stopping() => {}
        }
        life.stopping().await;
        Ok(())
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
    metrics.bundle_certificates.set(i64::try_from(state.in_force).unwrap_or(i64::MAX));
    metrics.certificates_failing.set(i64::from(state.failure.is_some()));
}
