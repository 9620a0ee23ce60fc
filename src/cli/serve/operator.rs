//! The operator beside the gate: a process of its own, started again when it ends. See [`crate::cli::operate`].
//!
//! Guarantees: whatever becomes of it, the gate serves; when the gate begins to drain, the operator ends and its lease
//! is released, so that another replica works while this one still answers.

use std::collections::{BTreeMap, VecDeque};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _, pending};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use tokio::sync::{Mutex, mpsc, watch};
use tracing::warn;

use super::cluster::Installation;
use crate::cli::operate::message::{Part, Said, Told};
use crate::runtime::companion::Companion;
use crate::runtime::readiness::{Ready, Weight};
use crate::runtime::supervisor::{Ending, Failure};
use crate::runtime::{Life, Readiness, Supervisor, Wanted};

/// How long it may take to end: its last work and the release of its lease, and less than a task that has to stop.
const LAST_WORDS: Duration = Duration::from_millis(4800);

/// It ended although nobody had told it to.
#[derive(Debug, thiserror::Error)]
#[error("the operator's process ended: {0}")]
struct Ended(ExitStatus);

/// How often it was started. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Starts(Counter);

impl Starts {
    /// Puts it on the page of `registry`.
    pub fn register(&self, registry: &mut Registry) {
        registry.sub_registry_with_prefix("gatehouse").register(
            "operator_starts",
            "Times that the operator's process was started",
            self.0.clone(),
        );
    }
}

/// What the operator's process needs of this one.
pub(super) struct Operator {
    /// How it is started.
    pub(super) words: Vec<String>,
    /// What has to be so before a leader works. Absent where somebody else installs.
    pub(super) installation: Option<Installation>,
    /// Where it is listed.
    pub(super) readiness: Readiness,
    /// Who wants its metrics.
    pub(super) wanted: mpsc::Receiver<Wanted>,
    /// Where its starts are counted.
    pub(super) starts: Starts,
}

impl Operator {
    /// Has it work once this gate is installed.
    pub(super) fn keep_working(self, supervisor: &Supervisor, installed: watch::Receiver<bool>) {
        let operator = Arc::new(Mutex::new(self));
        supervisor.restarted("operator", move |life| {
            let (operator, mut installed) = (Arc::clone(&operator), installed.clone());
            async move {
                let begins = tokio::select! {
                    _ = installed.wait_for(|installed| *installed) => true,
                    () = life.draining() => false,
                };
                if begins {
                    operator.lock().await.live(&life).await?;
                }
                // Whoever keeps us running would have us start another one.
                life.stopping().await;
                Ok(())
            }
        });
    }

    /// The life of one process.
    async fn live(&mut self, life: &Life) -> Ending {
        let mut companion = Companion::start(&self.words)?;
        self.starts.0.inc();
        life.ready().set();
        let unasked = tokio::select! {
            ended = self.attend(&mut companion) => Some(ended),
            () = life.draining() => None,
        };
        match unasked {
            Some(Ok(())) => Err(Ended(companion.ended().await?).into()),
            Some(Err(trouble)) => Err(trouble),
            None => {
                if !companion.end(LAST_WORDS).await? {
                    warn!(limit = ?LAST_WORDS, "the operator's process did not end well in time");
                }
                Ok(())
            }
        }
    }

    /// Hears it and answers it, until it has nothing more to say.
    async fn attend(&mut self, companion: &mut Companion) -> Result<(), Failure> {
        let mut parts = Parts { readiness: &self.readiness, ready: BTreeMap::new() };
        let mut askers = VecDeque::new();
        let mut installing: BoxFuture<'_, u64> = pending().boxed();
        loop {
            tokio::select! {
                said = companion.hear() => match said? {
                    None => return Ok(()),
                    Some(Said::Won(number)) => installing = install(self.installation.clone(), number).boxed(),
                    Some(Said::State(state)) => parts.show(state),
                    Some(Said::Page(page)) => {
                        // A scrape that waits no more has gone.
                        let _gone = askers.pop_front().map(|asker: Wanted| asker.send(page));
                    }
                },
                number = &mut installing => {
                    installing = pending().boxed();
                    companion.tell(&Told::Installed(number)).await?;
                }
                Some(asker) = self.wanted.recv() => {
                    askers.push_back(asker);
                    companion.tell(&Told::Page).await?;
                }
            }
        }
    }
}

/// Installs for the leader of that number.
async fn install(installation: Option<Installation>, number: u64) -> u64 {
    if let Some(installation) = installation {
        installation.install_at_last().await;
    }
    number
}

/// The parts of the process, as `/readyz` lists them while it lives.
struct Parts<'a> {
    readiness: &'a Readiness,
    ready: BTreeMap<String, Ready>,
}

impl Parts<'_> {
    fn show(&mut self, state: Vec<Part>) {
        for Part { name, fault } in state {
            let register = || self.readiness.register(name.clone(), Weight::Listed);
            let ready = self.ready.entry(name.clone()).or_insert_with(register);
            match fault {
                None => ready.set(),
                Some(why) => ready.unset(why),
            }
        }
    }
}

impl Drop for Parts<'_> {
    fn drop(&mut self) {
        self.ready.values().for_each(|ready| ready.unset("the operator's process has ended"));
    }
}
