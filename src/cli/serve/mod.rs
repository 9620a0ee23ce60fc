//! `gatehouse serve`: the process, as a table of contents.
//!
//! ```text
//! certificate ─▶ listener ─▶ self-probe ─▶ definitions ─▶ webhook configurations ─▶ controllers
//! ```
//!
//! Where it listens is in one log line, `serving`, with the fields `address` and `health`: port 0 takes a free port,
//! and that line is where to read it. A second line, `installed`, follows when the cluster points at this gate.
//! The gate serves whatever becomes of the rest: what follows it is started again when it fails.

mod options;

use std::net::SocketAddr;
use std::sync::Arc;

use kube::Client;
use tokio::sync::watch;
use tracing::info;

use super::Failure;
use crate::certs::{self, Handle, Publisher, Source};
use crate::controllers::{self, Controlled, Numbers, tdset};
use crate::install::guard::run_drift_guard;
use crate::install::{self, Plan};
use crate::runtime::readiness::Weight;
use crate::runtime::signals::Signals;
use crate::runtime::{Metrics, Supervisor, clock};
use crate::server::{Config, Health, Rules, ServedCertificate, Server};
pub use options::Options;

/// Why serving could not begin.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("failed to listen on {address}")]
    Health { address: SocketAddr, source: std::io::Error },
    #[error(
        "unable to find a Kubernetes API: expected KUBECONFIG or a pod's service account, or --webhook-only"
    )]
    NoCluster { source: Box<dyn std::error::Error + Send + Sync> },
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
    let numbers = Numbers::default();
    let metrics = Metrics::new(|registry| numbers.register(registry));
    let supervisor = Supervisor::new(options.patience());

    let certificate = ServedCertificate::new(&metrics);
    let server = gate(&options, &metrics, certificate.clone())?;
    let health = health(&options, &metrics, &supervisor)?;
    let listener = server.local_addr();
    info!(address = %listener, health = %health.local_addr(), "serving");

    supervisor.critical("health", |life| async move {
        life.ready().set();
        Ok(health.serve(life.stopping()).await?)
    });
    let (publisher, certificates) = publisher(&supervisor, certificate);
    supervisor.drained("gate", |life| async move {
        life.ready().set();
        server.serve(life.draining()).await;
        Ok(())
    });
    if let Some(source) = options.mounted().filter(|_| options.webhook_only) {
        keep_certificate(&supervisor, source, publisher);
    } else {
        let cluster = cluster(&options, &supervisor, listener, publisher).await?;
        let installed = keep_installed(&supervisor, &cluster, listener, certificates);
        keep_working::<tdset::Operator>(&supervisor, &cluster.client, &numbers, installed);
    }
    Ok(supervisor.run(async || signals.next().await).await?)
}

fn gate(options: &Options, metrics: &Metrics, certificate: ServedCertificate) -> Result<Server, Failure> {
    Ok(Server::bind(Config {
        listen: options.listen,
        certificate,
        limits: options.limits(),
        metrics: metrics.clone(),
        reviewer: Arc::new(Rules),
    })?)
}

fn health(options: &Options, metrics: &Metrics, supervisor: &Supervisor) -> Result<Health, Error> {
    let address = options.health_listen;
    Health::bind(address, supervisor.readiness().clone(), metrics.clone())
        .map_err(|source| Error::Health { address, source })
}

/// What the source finds is served, and without something to serve nobody is ready.
fn publisher(supervisor: &Supervisor, certificate: ServedCertificate) -> (Publisher, Handle) {
    let served = certificate.clone();
    supervisor.readiness().check("certificate", Weight::Required, move || served.check(clock::now()));
    certs::publisher(move |chain, key| certificate.swap(chain, key).map_err(Into::into))
}

fn keep_certificate(supervisor: &Supervisor, source: Source, publisher: Publisher) {
    supervisor.critical("certificates", |life| async move {
        life.ready().set();
        tokio::select! {
            never = source.run(publisher) => match never {},
            () = life.stopping() => Ok(()),
        }
    });
}

/// The cluster that this gate stands before.
struct Cluster {
    client: Client,
    plan: Plan,
}

/// Finds the Kubernetes API, and with it a source of certificates.
async fn cluster(
    options: &Options,
    supervisor: &Supervisor,
    listener: SocketAddr,
    publisher: Publisher,
) -> Result<Cluster, Failure> {
    let client = Client::try_default().await.map_err(|source| Error::NoCluster { source: source.into() })?;
    let address = options.address(listener)?;
    let source = options.mounted().unwrap_or_else(|| options.authority(client.clone(), address.names()));
    keep_certificate(supervisor, source, publisher);
    Ok(Cluster { client, plan: Plan { address, own_namespace: options.own_namespace(), bundle: None } })
}

/// Installs, and then guards what is installed. What it returns turns true at the first time.
fn keep_installed(
    supervisor: &Supervisor,
    cluster: &Cluster,
    listener: SocketAddr,
    certificates: Handle,
) -> watch::Receiver<bool> {
    let (client, plan) = (cluster.client.clone(), cluster.plan.clone());
    let (installed, once_installed) = watch::channel(false);
    supervisor.restarted("installation", move |life| {
        let (client, mut plan) = (client.clone(), plan.clone());
        let (mut certificates, installed) = (certificates.clone(), installed.clone());
        async move {
            tokio::select! {
                () = certificates.served() => {}
                () = life.stopping() => return Ok(()),
            }
            plan.bundle = certificates.fresh().await.facts.bundle;
            install::install(&client, &plan, listener).await?;
            info!(address = %plan.address, "installed");
            life.ready().set();
            installed.send_replace(true);
            tokio::select! {
                never = run_drift_guard(client, plan, certificates) => match never {},
                () = life.stopping() => Ok(()),
            }
        }
    });
    once_installed
}

/// Works on the objects of a kind, once it is served.
fn keep_working<Kind: Controlled>(
    supervisor: &Supervisor,
    client: &Client,
    numbers: &Numbers,
    installed: watch::Receiver<bool>,
) {
    let (client, numbers) = (client.clone(), numbers.clone());
    supervisor.restarted(Kind::NAME, move |life| {
        let (client, numbers, mut installed) = (client.clone(), numbers.clone(), installed.clone());
        async move {
            tokio::select! {
                _ = installed.wait_for(|installed| *installed) => {}
                () = life.stopping() => return Ok(()),
            }
            let ready = life.ready().clone();
            controllers::run::<Kind>(client, numbers, move || ready.set(), life.stopping()).await;
            Ok(())
        }
    });
}
