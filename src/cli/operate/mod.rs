//! `gatehouse operate`: the operator's process, which `gatehouse serve` starts beside itself and owns.
//!
//! ```text
//!   gatehouse serve                              gatehouse operate
//!   ───────────────                              ─────────────────
//!                        ◀── Won ─────────────   elected
//!   install      ─────────── Installed ──────▶   controllers work
//!   /readyz              ◀── State ───────────
//!   /metrics     ─────────── Page ───────────▶
//!                        ◀── Page ────────────
//!   drains       ─────── end of input ───────▶   the work ends, the lease is released, it ends
//! ```
//!
//! An API server repeats no admission call that broke off (client-go `rest/with_retry.go`: a POST is not repeated), so
//! what dies with the process that serves is a user's `kubectl apply`. Therefore nothing of the operator can take the
//! gate with it: not a crash, not a kill, not a deadlock.
//!
//! Guarantees: it ends when its owner does, however that ends, and releases its lease first; who leads has installed
//! before it works. In a rolling update the replica of an old release that was started last has had the say until then,
//! and a leader of the new one takes it back.
//! Never: installs. That needs the gate's certificate.

pub mod message;
mod options;

use std::future::pending;

use kube::Client;
use prometheus_client::registry::Registry;
use tokio::sync::{mpsc, watch};

use super::connect::connect;
use super::ending::Failure;
use crate::controllers::metrics::{Metrics as _, Reconciliations};
use crate::controllers::scope::Scope;
use crate::controllers::{self, Controlled as _, etcdcluster, tdset};
use crate::runtime::companion::{Owner, tell_owner};
use crate::runtime::leader::{self, Lease, Stop};
use crate::runtime::metrics::Page;
use crate::runtime::readiness::{Ready, Weight};
use crate::runtime::signals::Signals;
use crate::runtime::supervisor::Ending;
use crate::runtime::telemetry::Logging;
use crate::runtime::{Readiness, Supervisor};
use message::{Part, Said, Told};
pub use options::Options;

/// Works until the owner has ended or says so.
///
/// # Errors
/// Why it could not begin, or could not go on.
pub fn run(options: &Options, logging: &Logging) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(operate(options, logging));
    // Reading from a pipe is a thread that nothing ends.
    runtime.shutdown_background();
    ended
}

async fn operate(options: &Options, logging: &Logging) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let (metrics, elections) = (Metrics::default(), leader::Numbers::default());
    let page = Page::new(|registry| {
        metrics.register(registry);
        elections.register(registry);
        logging.dropped().register(registry, "operator_log_lines_dropped");
    });
    let supervisor = Supervisor::default();
    let (config, client) = connect().await?;
    let (said, saying) = mpsc::channel(16);
    let (told, installed) = watch::channel(0);

    tell_all(&supervisor, saying);
    tell_state(&supervisor, said.clone());
    let operator = Operator {
        client,
        lease: options.lease(config)?,
        scope: options.watch_namespaces.clone(),
        metrics,
        settings: etcdcluster::Settings { guard_image: options.image.clone() },
        tdset: supervisor.readiness().register(tdset::Operator::NAME, Weight::Listed),
        etcdcluster: supervisor.readiness().register(etcdcluster::Operator::NAME, Weight::Listed),
        said: said.clone(),
        installed,
    };
    operator.keep_working(&supervisor, elections);
    let mut ears = Ears { owner: Some(Owner::of_this_process()), page, said, told };
    let asked = async || {
        tokio::select! {
            why = ears.listen() => why,
            signal = signals.next() => signal,
        }
    };
    Ok(supervisor.run(asked).await?)
}

/// Writes all that is said, one after the other.
fn tell_all(supervisor: &Supervisor, mut saying: mpsc::Receiver<Said>) {
    supervisor.critical("telling", |life| async move {
        loop {
            tokio::select! {
                Some(said) = saying.recv() => tell_owner(&said).await?,
                () = life.stopping() => return Ok(()),
            }
        }
    });
}

/// Says how the parts are, whenever that changes.
fn tell_state(supervisor: &Supervisor, said: mpsc::Sender<Said>) {
    let readiness = supervisor.readiness().clone();
    supervisor.critical("state", |life| async move {
        let mut last = None;
        loop {
            let state = state(&readiness);
            if last.as_ref() != Some(&state) {
                if said.send(Said::State(state.clone())).await.is_err() {
                    // Nobody writes it any more: the process ends.
                    life.stopping().await;
                    return Ok(());
                }
                last = Some(state);
            }
            tokio::select! {
                () = readiness.changed() => {}
                () = life.stopping() => return Ok(()),
            }
        }
    });
}

/// The parts that may well not be ready. The others are this process: it is there.
fn state(readiness: &Readiness) -> Vec<Part> {
    let report = readiness.report();
    report.listed().map(|(name, fault)| Part { name: name.into(), fault: fault.map(Into::into) }).collect()
}

/// Hears what the owner says.
struct Ears {
    /// None once it has said to end: that is said once, and a second time would force the end.
    owner: Option<Owner>,
    page: Page,
    said: mpsc::Sender<Said>,
    told: watch::Sender<u64>,
}

impl Ears {
    /// Does as it is told, until it is told to end.
    async fn listen(&mut self) -> &'static str {
        let why = loop {
            let Some(owner) = &mut self.owner else { return pending().await };
            match owner.hear().await {
                Ok(Some(Told::Installed(number))) => {
                    self.told.send_replace(number);
                }
                Ok(Some(Told::Page)) => {
                    let page = self.page.text().unwrap_or_default();
                    // The receiver goes with the process.
                    let _gone = self.said.send(Said::Page(page)).await;
                }
                Ok(None) => break "the end of its owner",
                Err(_) => break "words that it does not understand",
            }
        };
        self.owner = None;
        why
    }
}

/// What is shown of all controllers.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// What each controller counts.
    pub reconciliations: Reconciliations,
    tdset: tdset::Metrics,
    etcdcluster: etcdcluster::Metrics,
}

impl Metrics {
    /// Puts them on the page of `registry`.
    pub fn register(&self, registry: &mut Registry) {
        self.reconciliations.register(registry);
        self.tdset.register(registry);
        self.etcdcluster.register(registry);
    }
}

/// What works, while it leads.
#[derive(Clone)]
struct Operator {
    client: Client,
    lease: Lease,
    scope: Scope,
    metrics: Metrics,
    settings: etcdcluster::Settings,
    tdset: Ready,
    etcdcluster: Ready,
    said: mpsc::Sender<Said>,
    /// The last win that the owner has installed for.
    installed: watch::Receiver<u64>,
}

impl Operator {
    /// Stands for election, and works on the objects of all kinds while it leads.
    fn keep_working(self, supervisor: &Supervisor, elections: leader::Numbers) {
        let wins = watch::Sender::new(0);
        supervisor.restarted("leader", move |life| {
            let (operator, elections, wins) = (self.clone(), elections.clone(), wins.clone());
            async move {
                let lease = operator.lease.clone();
                let work = move |stop| {
                    wins.send_modify(|wins| *wins += 1);
                    let number = *wins.borrow();
                    operator.clone().work(number, stop)
                };
                leader::run(&lease, &elections, &life, work).await
            }
        });
    }

    /// What the leader does.
    async fn work(mut self, number: u64, stop: Stop) -> Ending {
        self.said.send(Said::Won(number)).await?;
        tokio::select! {
            installed = self.installed.wait_for(|installed| *installed == number) => {
                installed?;
            }
            () = stop.stopped() => return Ok(()),
        }
        let (tdset, etcdcluster) = (Working(self.tdset), Working(self.etcdcluster));
        let tdsets = controllers::run::<tdset::Operator>(
            self.client.clone(),
            &self.scope,
            (self.metrics.reconciliations.clone(), self.metrics.tdset.clone()),
            &(),
            || tdset.0.set(),
            stop.stopped(),
        );
        let etcdclusters = controllers::run::<etcdcluster::Operator>(
            self.client.clone(),
            &self.scope,
            (self.metrics.reconciliations.clone(), self.metrics.etcdcluster.clone()),
            &self.settings,
            || etcdcluster.0.set(),
            stop.stopped(),
        );
        futures::join!(tdsets, etcdclusters);
        Ok(())
    }
}

/// Listed as working until the work ends, in whichever way.
struct Working(Ready);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.unset("this replica does not lead");
    }
}
