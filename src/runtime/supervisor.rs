//! The one place where long-lived tasks are started, watched and ended.
//!
//! Guarantees: a critical task that ends by itself ends the process, in order and with an error; another task is
//! started again, later and later, and never takes the gate down; a shutdown has two phases.
//!
//! ```text
//!   running ──signal, or a critical task ended──▶ draining ──drained, or grace over──▶ stopping ──▶ end
//!                                    not ready at once;          the others are
//!                                    the gate serves on          stopped
//! ```
//!
//! A second signal while draining ends the wait. Never: aborts a task that still does its work.

use std::error::Error as StdError;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tracing::{error, info, warn};

use super::readiness::{Readiness, Ready, Weight};
pub use super::tasks::{Ending, Failure};
use super::{Tasks, clock};

/// Why [`Supervisor::run`] did not end well.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A critical task ended without being stopped.
    #[error("task {name} ended unexpectedly")]
    Ended {
        /// Its name.
        name: &'static str,
        /// What it failed with, if it did not just return.
        source: Option<Failure>,
    },
    /// A second signal cut the drain short.
    #[error("forced to stop while draining")]
    Forced,
    /// Tasks had not stopped when their time was over.
    #[error("{0} tasks did not stop in time")]
    Stuck(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Running,
    Draining,
    Stopping,
}

/// What a task holds of the process it lives in.
#[derive(Clone, Debug)]
pub struct Life {
    ready: Ready,
    phase: watch::Receiver<Phase>,
}

impl Life {
    /// The task's own ready signal.
    #[must_use]
    pub const fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Resolves when the process begins to drain: take no new work from outside once it is safe to refuse it.
    pub fn draining(&self) -> impl Future<Output = ()> + Send + use<> {
        reached(self.phase.clone(), Phase::Draining)
    }

    /// Resolves when the task has to end.
    pub fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        reached(self.phase.clone(), Phase::Stopping)
    }
}

/// A supervisor that is gone stops its tasks too.
async fn reached(mut phases: watch::Receiver<Phase>, phase: Phase) {
    let _gone = phases.wait_for(|now| *now >= phase).await;
}

/// How long the parts of a shutdown may take, and how long a task that fails waits.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For the drained tasks, from the signal on. Below the pod's `terminationGracePeriodSeconds`.
    pub drain: Duration,
    /// For all others, from the end of the drain on.
    pub stop: Duration,
    /// Before the first restart; doubled each time.
    pub first_restart: Duration,
    /// Before any restart, at most; a task that ran for longer than this begins again.
    pub longest_restart: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            drain: Duration::from_secs(110),
            stop: Duration::from_secs(5),
            first_restart: Duration::from_secs(1),
            longest_restart: Duration::from_mins(1),
        }
    }
}

/// Starts the tasks and sees them through.
#[derive(Debug)]
pub struct Supervisor {
    patience: Patience,
    readiness: Readiness,
    phase: watch::Sender<Phase>,
    drained: Tasks,
    others: Tasks,
    ended: (mpsc::UnboundedSender<Error>, mpsc::UnboundedReceiver<Error>),
}

impl Default for Supervisor {
    fn default() -> Self {
        Self::new(Patience::default())
    }
}

impl Supervisor {
    /// No tasks yet.
    #[must_use]
    pub fn new(patience: Patience) -> Self {
        Self {
            patience,
            readiness: Readiness::new(),
            phase: watch::Sender::new(Phase::Running),
            drained: Tasks::new(),
            others: Tasks::new(),
            ended: mpsc::unbounded_channel(),
        }
    }

    /// Who is ready; also for what is no task.
    #[must_use]
    pub const fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Starts a critical task that drains: it ends by itself some time after [`Life::draining`], and the process
    /// waits for it before it stops the others.
    pub fn drained<Task>(&self, name: &'static str, task: impl FnOnce(Life) -> Task)
    where
        Task: Future<Output = Ending> + Send + 'static,
    {
        let life = self.life(name, Weight::Required);
        let asked = life.clone();
        self.watch(&self.drained, name, task(life), move || *asked.phase.borrow() >= Phase::Draining);
    }

    /// Starts a critical task that runs until [`Life::stopping`].
    pub fn critical<Task>(&self, name: &'static str, task: impl FnOnce(Life) -> Task)
    where
        Task: Future<Output = Ending> + Send + 'static,
    {
        let life = self.life(name, Weight::Required);
        let asked = life.clone();
        self.watch(&self.others, name, task(life), move || *asked.phase.borrow() >= Phase::Stopping);
    }

    /// Starts a task that runs until [`Life::stopping`] and is started again, with back-off, when it ends before.
    pub fn restarted<Task>(&self, name: &'static str, mut task: impl FnMut(Life) -> Task + Send + 'static)
    where
        Task: Future<Output = Ending> + Send + 'static,
    {
        let life = self.life(name, Weight::Listed);
        let patience = self.patience;
        let attempts = self.others.clone();
        self.others.spawn(async move {
            let mut wait = patience.first_restart;
            loop {
                let begun = clock::instant();
                let ending = joined(&attempts, task(life.clone())).await;
                if *life.phase.borrow() >= Phase::Stopping {
                    break;
                }
                if begun.elapsed() > patience.longest_restart {
                    wait = patience.first_restart;
                }
                let why = ending.err().map_or_else(|| "returned".to_owned(), |why| chain(&*why));
                warn!(task = name, error = why, restart_in = ?wait, "task ended, will restart it");
                life.ready.unset(format!("restarting: {why}"));
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = life.stopping() => break,
                }
                wait = (wait * 2).min(patience.longest_restart);
            }
        });
    }

    /// Runs until `asked` resolves or a critical task ends, then drains and stops. `asked` is called again while
    /// draining: the second time it forces the end.
    ///
    /// # Errors
    /// [`Error`]: a critical task ended, the end was forced, or tasks did not stop.
    pub async fn run(mut self, mut asked: impl AsyncFnMut() -> &'static str) -> Result<(), Error> {
        let mut outcome = tokio::select! {
            signal = asked() => {
                info!(signal, "draining");
                Ok(())
            }
            ended = self.ended.1.recv() => Err(ended.unwrap_or(Error::Forced)),
        };
        if let Err(reason) = &outcome {
            error!(error = chain(reason), "draining: the process cannot go on");
        }
        self.readiness.drain();
        self.phase.send_replace(Phase::Draining);
        let forced = tokio::select! {
            drained = timeout(self.patience.drain, self.drained.ended()) => {
                if drained.is_err() {
                    warn!(tasks = self.drained.len(), "the drain took too long, stopping");
                }
                false
            }
            signal = asked() => {
                warn!(signal, "forced to stop while draining");
                true
            }
        };
        info!("stopping");
        self.phase.send_replace(Phase::Stopping);
        if forced {
            return outcome.and(Err(Error::Forced));
        }
        if timeout(self.patience.stop, self.others.ended()).await.is_err() {
            outcome = outcome.and(Err(Error::Stuck(self.others.len())));
        }
        outcome
    }

    fn life(&self, name: &'static str, weight: Weight) -> Life {
        Life { ready: self.readiness.register(name, weight), phase: self.phase.subscribe() }
    }

    fn watch<Task>(
        &self,
        group: &Tasks,
        name: &'static str,
        task: Task,
        may_end: impl Fn() -> bool + Send + 'static,
    ) where
        Task: Future<Output = Ending> + Send + 'static,
    {
        let ended = self.ended.0.clone();
        let attempts = group.clone();
        group.spawn(async move {
            let ending = joined(&attempts, task).await;
            if may_end() {
                if let Err(failure) = ending {
                    warn!(task = name, error = chain(&*failure), "task failed while shutting down");
                }
                return;
            }
            // The receiver is gone only when the process has ended.
            let _gone = ended.send(Error::Ended { name, source: ending.err() });
        });
    }
}

/// The task panicked; its message is in the log.
#[derive(Debug, thiserror::Error)]
#[error("it panicked")]
struct Panicked;

/// Runs `task` as one of `group`, so that a panic in it is an ending like another.
async fn joined(group: &Tasks, task: impl Future<Output = Ending> + Send + 'static) -> Ending {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    group.spawn(async move {
        // The receiver waits below.
        let _gone = sender.send(task.await);
    });
    receiver.await.unwrap_or_else(|_panicked| Err(Panicked.into()))
}

/// An error and all that caused it, in one line.
#[must_use]
pub fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests;
