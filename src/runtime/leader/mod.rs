//! One of many replicas leads, elected by a Lease (coordination.k8s.io/v1).
//!
//! ```text
//!   follow ──won──▶ the work runs, the lease is renewed beside it ──lost──▶ the work is cancelled ──▶ follow
//!                        │ the process drains
//!                        ▼
//!                   the work ends, or is cancelled ──▶ the lease is released ──▶ the rest goes on draining
//! ```
//!
//! Guarantees: the work runs only within this replica's term, see [`term`]; a lease is released after the work has
//! ended, never before; a call that hangs holds up no renewal, for it is given up in time and made through a client
//! that repeats nothing. A replica that crashes leaves its lease to expire.
//! Assumes: work that is cancelled stops at its next `await`. What it has sent by then may still be carried out, within
//! the third of the lease's duration that others go on waiting.
//! Never: watches. Followers look at the lease several times in its duration, which a frozen watch cannot hide.

mod lease;
mod numbers;
pub mod rbac;
pub mod term;

use std::fmt;
use std::future::{Future, pending};
use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::supervisor::{Ending, chain};
use super::tasks::Cancellable;
use super::{Ready, Tasks, clock};
pub use lease::{Connect, Lease};
pub use numbers::Numbers;
use term::{Action, Answer, Change, Loss, Moment, Term};

/// How long work that was asked to stop may go on.
const LAST_WORK: Duration = Duration::from_secs(3);
/// How long the release may take. Both together are less than tasks have that are asked to stop.
const RELEASE: Duration = Duration::from_millis(1500);

/// The work ended without being stopped.
#[derive(Debug, thiserror::Error)]
#[error("the leader's work ended unexpectedly")]
struct Ended {
    source: Option<super::supervisor::Failure>,
}

/// Stops work in good order: what runs may end, nothing new is begun.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    asked: CancellationToken,
    tasks: Tasks,
}

impl Stop {
    /// Resolves when the work is to end.
    pub fn stopped(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        self.asked.clone().cancelled_owned()
    }

    /// Where the work runs what it does on other threads. The term is over once that has ended too.
    #[must_use]
    pub const fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Ends the work where it stands, and waits until nothing of it runs any more.
    async fn cancel(&self, work: Cancellable) {
        work.cancel().await;
        self.tasks.ended().await;
    }
}

/// Stands for election until `draining` resolves, and does `work` whenever this replica leads. `ready`: whether it
/// does.
///
/// # Errors
/// When the work ends by itself; the lease is released before.
pub async fn run<Work>(
    lease: &Lease,
    numbers: &Numbers,
    ready: &Ready,
    draining: impl Future<Output = ()>,
    mut work: impl FnMut(Stop) -> Work,
) -> Ending
where
    Work: Future<Output = Ending> + Send + 'static,
{
    let mut election = Election::new(lease, numbers, ready);
    let mut draining = pin!(draining);
    loop {
        tokio::select! {
            biased;
            () = &mut draining => break,
            () = election.win() => {}
        }
        let stop = Stop::default();
        let mut running = Cancellable::spawn(work(stop.clone()));
        tokio::select! {
            loss = election.hold() => {
                stop.cancel(running).await;
                election.lost(&loss);
            }
            ended = running.ended() => {
                stop.cancel(running).await;
                election.leave().await;
                return Err(Ended { source: ended.err() }.into());
            }
            () = &mut draining => {
                stop.asked.cancel();
                tokio::select! {
                    _loss = election.hold() => {}
                    _ended = timeout(LAST_WORK, running.ended()) => {}
                }
                stop.cancel(running).await;
                break;
            }
        }
    }
    election.leave().await;
    Ok(())
}

/// A [`Term`] with its lease and its clock.
struct Election<'a> {
    lease: &'a Lease,
    numbers: &'a Numbers,
    ready: &'a Ready,
    term: Term,
    begun: Instant,
    /// What the last call failed with.
    trouble: Option<String>,
    /// The leader that was reported last.
    leader: Option<String>,
}

impl<'a> Election<'a> {
    fn new(lease: &'a Lease, numbers: &'a Numbers, ready: &'a Ready) -> Self {
        let term = Term::new(lease.identity().to_owned(), lease.pace());
        ready.unset("no replica is known to lead");
        Self { lease, numbers, ready, term, begun: clock::instant(), trouble: None, leader: None }
    }

    fn now(&self) -> Moment {
        self.begun.elapsed()
    }

    /// Follows until this replica leads.
    async fn win(&mut self) {
        while self.step().await != Some(Change::Won) {}
        info!(lease = %self.lease, identity = self.lease.identity(), "leading");
        self.numbers.lead(true);
        self.ready.set();
    }

    /// Renews until this replica does not lead any more.
    async fn hold(&mut self) -> Loss {
        loop {
            if let Some(loss) = self.term.tick(self.now()) {
                return loss;
            }
            let end = self.term.until().map(|until| self.begun + until);
            tokio::select! {
                biased;
                () = until(end) => {}
                change = self.step() => if let Some(Change::Lost(loss)) = change {
                    return loss;
                },
            }
        }
    }

    /// The term is over, and nothing of the work runs any more.
    fn lost(&mut self, why: &Loss) {
        warn!(lease = %self.lease, reason = %why, "lost the lease, the work is cancelled");
        self.resign();
    }

    fn resign(&mut self) {
        self.term.resign(self.now());
        self.numbers.lead(false);
        self.ready.unset("this replica does not lead");
    }

    /// Releases the lease if it is this replica's.
    async fn leave(&mut self) {
        self.resign();
        let late = timeout(RELEASE, self.release()).await.is_err();
        if late && self.term.release().is_some() {
            warn!(lease = %self.lease, "unable to release the lease in time, it will expire");
        }
    }

    /// Reads first: whether a call that was given up has taken the lease is not known.
    async fn release(&mut self) {
        loop {
            self.perform(Action::Read).await;
            let Some(claim) = self.term.release() else { return };
            match self.perform(Action::Write(claim)).await {
                Answer::LostRace => {}
                Answer::Silence => sleep(RELEASE / 10).await,
                _ => return info!(lease = %self.lease, "released the lease"),
            }
        }
    }

    /// One call, or one wait.
    async fn step(&mut self) -> Option<Change> {
        let sent = self.now();
        match self.term.next(sent) {
            Action::Wait(moment) => {
                sleep_until(self.begun + moment).await;
                None
            }
            action => {
                let answer = self.ask(&action).await;
                let change = self.term.heard(answer, sent, self.now());
                self.tell_of_others();
                change
            }
        }
    }

    /// One call outside of a term.
    async fn perform(&mut self, action: Action) -> Answer {
        let sent = self.now();
        let answer = self.ask(&action).await;
        // No change can come of it: this replica has resigned, and what it writes is not its claim.
        let _none = self.term.heard(answer.clone(), sent, self.now());
        answer
    }

    async fn ask(&mut self, action: &Action) -> Answer {
        let outcome = match action {
            Action::Read => self.lease.read().await,
            Action::Write(claim) => self.lease.write(claim).await,
            Action::Wait(_) => return pending().await,
        };
        match outcome {
            Ok(answer) => {
                self.trouble = None;
                answer
            }
            Err(error) => {
                let error = chain(&error);
                let lease = self.lease;
                if self.trouble.as_ref() == Some(&error) {
                    debug!(%lease, error, "a call for the lease failed again");
                } else {
                    warn!(%lease, error, "a call for the lease failed");
                }
                self.trouble = Some(error);
                Answer::Silence
            }
        }
    }

    /// Logs once which replica this one follows.
    fn tell_of_others(&mut self) {
        let holder = self.term.holder();
        let others = self.term.until().is_none() && !holder.is_empty() && holder != self.lease.identity();
        let leader = others.then(|| holder.to_owned());
        if let Some(leader) = leader.as_ref().filter(|leader| self.leader.as_ref() != Some(leader)) {
            info!(lease = %self.lease, leader, "following");
            self.ready.unset(format!("{leader} leads"));
        }
        self.leader = leader;
    }
}

/// A candidate that withdraws does not lead, also where a panic is the reason.
impl Drop for Election<'_> {
    fn drop(&mut self) {
        self.resign();
    }
}

impl fmt::Debug for Election<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.term.fmt(formatter)
    }
}

async fn until(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => pending().await,
    }
}
