//! The controllers, on a runtime of their own, started again when they end.
//!
//! ```text
//!   the definitions are installed ─▶ stand for election ─won─▶ install ─▶ work ─lost─▶ stand again
//!                                            │ drain: the work ends, the lease is released
//! ```
//!
//! An API server repeats no admission call that broke off (client-go `rest/with_retry.go`: a POST is not repeated), so
//! what ends with the gate is a user's `kubectl apply`. Therefore a panic in a controller, an error and a thread that
//! is busy for long stay with the controllers.
//!
//! Guarantees: the gate serves whatever happens to the controllers; a leader installs before its controllers start,
//! where this process installs. In a rolling update the replica of an old release that was started last has had the say
//! until then, and a leader of the new one takes it back. When the process begins to drain, the controllers end and the
//! lease is released, so that another replica reconciles while the gate still answers.
//! Never: shares a client with the gate. Connections belong to the runtime that opened them.

mod metrics;
pub(super) mod options;
mod storage;
pub(in crate::cli) mod table;

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use futures::future::{FusedFuture as _, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt as _};
use kube::Client;
use prometheus_client::registry::Registry;
use tracing::warn;

use super::cluster::Installed;
use crate::cli::connect::connect;
use crate::controllers::Settings;
use crate::install::Served;
use crate::install::served::until_served;
use crate::runtime::leader::{self, Stop};
use crate::runtime::readiness::{Ready, Weight};
use crate::runtime::supervisor::Ending;
use crate::runtime::{Life, Readiness, Supervisor, isolated};
use crate::storage::requests::Requests;
pub use metrics::{Metrics, Starts};
use options::Options;
use table::Surroundings;

/// What they and their threads are called.
const NAME: &str = "controllers";

/// How long they may take to end: their last work and the release of the lease, and less than a task that has to stop.
const LAST_WORDS: Duration = Duration::from_millis(4800);

/// The controllers of all kinds. Clones share what is shown of them.
#[derive(Clone)]
pub(super) struct Controllers {
    options: Options,
    metrics: Metrics,
    elections: leader::Numbers,
    starts: Starts,
    leader: Ready,
    /// Whether each controller runs, in the order of the table.
    working: Vec<Ready>,
}

impl Controllers {
    /// Lists them; they work once [`Self::keep_working`] is called.
    pub(super) fn new(options: &Options, readiness: &Readiness) -> Self {
        let listed = |name| readiness.register(name, Weight::Listed);
        let metrics = Metrics::default();
        Self {
            options: options.clone(),
            elections: leader::Numbers::default(),
            starts: Starts::default(),
            leader: listed("leader"),
            working: metrics.controllers().map(|controller| listed(controller.name())).collect(),
            metrics,
        }
    }

    /// Puts what is counted on the page of `registry`.
    pub(super) fn register(&self, registry: &mut Registry) {
        self.starts.register(registry);
        self.elections.register(registry);
        self.metrics.register(registry);
    }

    /// Has them work once the definitions are installed.
    pub(super) fn keep_working(self, supervisor: &Supervisor, installed: &Installed) {
        let installed = installed.clone();
        supervisor.restarted(NAME, move |life| {
            let (controllers, mut installed) = (self.clone(), installed.clone());
            async move {
                tokio::select! {
                    () = installed.once() => controllers.live(&life, installed).await?,
                    () = life.draining() => {}
                }
                // The supervisor restarts a task that returns.
                life.stopping().await;
                Ok(())
            }
        });
    }

    /// Takes part in the election, and runs the controllers while this replica leads, until the process drains.
    async fn live(&self, life: &Life, installed: Installed) -> Ending {
        self.starts.count();
        life.ready().set();
        let ended = isolated(NAME, self.clone().stand(life.clone(), installed));
        tokio::select! {
            ended = ended => ended,
            () = late(life) => {
                warn!(limit = ?LAST_WORDS, "the controllers did not end in time");
                Ok(())
            }
        }
    }

    /// What runs on their runtime.
    async fn stand(self, life: Life, installed: Installed) -> Ending {
        let (config, client) = connect().await?;
        let hub = Served::hub();
        tokio::select! {
            () = until_served(&client, &hub, |missing| self.leader.unset(missing)) => {}
            () = life.draining() => return Ok(()),
        }
        let requests = Requests::new(config.clone())?;
        let lease = self.options.lease(config)?;
        let work = |stop| self.clone().work(client.clone(), requests.clone(), installed.clone(), stop);
        leader::run(&lease, &self.elections, &self.leader, life.draining(), work).await
    }

    /// What the leader does.
    async fn work(self, client: Client, requests: Requests, installed: Installed, stop: Stop) -> Ending {
        let is_ours = installed.is_ours();
        let _leading = installed.lead();
        let mut installing = pin!(installed.clone().again(client.clone()).fuse());
        tokio::select! {
            () = &mut installing => {}
            () = installed.as_written(&client) => {
                warn!("the definitions are as this release has written them: works although it cannot install");
            }
            () = stop.stopped() => return Ok(()),
        }
        let with = Surroundings {
            client: client.clone(),
            scope: self.options.watch_namespaces.clone().beside(&self.options.namespace),
            settings: Settings { image: self.options.image.clone() },
            reconciliations: self.metrics.reconciliations.clone(),
        };
        let controllers = self.metrics.controllers().zip(&self.working);
        let keeps = is_ours && self.options.migrate_storage && with.scope.namespaces().is_empty();
        let storage = async {
            if keeps {
                storage::keep(client, requests, self.metrics.storage.clone(), &stop).await;
            }
        };
        let work = controllers.map(|(controller, ready)| controller.work(&with, ready, stop.clone()));
        // A wake of one polls none of the others.
        let work: FuturesUnordered<_> = work.collect();
        let work = async { futures::join!(work.collect::<()>(), storage) };
        // What kept this leader from installing may pass while it works.
        let installing = async {
            if !installing.is_terminated() {
                installing.await;
            }
            pending::<()>().await;
        };
        tokio::select! {
            _ended = work => {}
            () = installing => {}
        }
        Ok(())
    }
}

/// Resolves when the process has been draining for longer than they may take to end.
async fn late(life: &Life) {
    life.draining().await;
    tokio::time::sleep(LAST_WORDS).await;
}
