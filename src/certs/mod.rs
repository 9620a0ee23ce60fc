//! Certificates: the source of the served one, and the CA bundle that clients have to trust.
//!
//! ```text
//! Source ── refresh ──▶ sink (the server's certificate)
//!   │                └▶ State: bundle and expiry (installation, metrics, readiness)
//!   ├ SharedAuthority   own authority in one Secret, a leaf of its own for each replica
//!   └ MountedFiles      what others put into a directory
//! ```
//!
//! Guarantees: what is served stays served until a valid replacement has been read, checked and accepted; a failure is
//! logged once, kept in [`State`], and never ends the loop. The wall clock is asked at least once a minute, so
//! that a suspended machine or a clock that jumps is noticed.
//! Never: decides when to renew ([`rotate`] does), or writes a bundle into the objects that carry it
//! ([`crate::install`] does).

pub mod authority;
pub mod certificate;
pub mod clients;
pub mod files;
pub mod kept;
pub mod mint;
pub mod rbac;
pub mod rotate;
pub mod verify;

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::{Notify, watch};

use authority::SharedAuthority;
use certificate::{Bundle, Certificate, Validity};
use files::MountedFiles;
use kept::Kept;
use rotate::InForce;

/// Any error that a sink may have.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Takes a chain, leaf first, and its key into service, or refuses them and changes nothing.
pub type Sink =
    dyn Fn(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) -> Result<(), BoxError> + Send + Sync;

/// Says what time it is.
pub type Clock = fn() -> Timestamp;

/// How long to wait after a failure as long as there is nothing to serve at all.
const RETRY: Duration = Duration::from_secs(2);
/// How long [`Handle::fresh`] waits for an answer: longer than any single call to the API server may take.
const FRESH: Duration = Duration::from_secs(15);

/// A round failed; what was served before still is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The shared authority's.
    #[error(transparent)]
    Authority(#[from] authority::Error),
    /// The mounted files'.
    #[error(transparent)]
    Files(#[from] files::Error),
}

/// Where the served certificate comes from.
#[derive(Debug)]
pub enum Source {
    /// Own authority, kept in one Secret.
    Authority(Box<SharedAuthority>),
    /// Files that others write.
    Files(Box<MountedFiles>),
}

/// What is known of the certificates in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// When the served leaf holds; absent while there is none.
    pub leaf: Option<Validity>,
    /// When the authority that signs leaves holds, where it is ours.
    pub authority: Option<Validity>,
    /// The authority's certificate that the leaf was signed under, where it is known.
    pub issuer: Option<Certificate>,
    /// What a client has to trust; absent where others do.
    pub bundle: Option<Bundle>,
}

/// The facts and how the last round went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// What is in use.
    pub facts: Facts,
    /// Why the last round failed; absent after one that did not.
    pub failure: Option<String>,
    /// Rounds that succeeded since the start.
    pub successes: u64,
    /// Rounds that failed since the start.
    pub failures: u64,
    /// How many authorities the CA bundles in force have in common, as they were last read; 0 where no task reads them.
    pub in_force: usize,
    /// The newest ticket of [`Handle::fresh`] that was drawn before the last round began.
    answered: u64,
}

/// The source's end: serves what it finds, and publishes its state.
pub struct Publisher {
    sink: Box<Sink>,
    state: watch::Sender<State>,
    asked: Arc<Asked>,
}

/// The readers' end.
#[derive(Clone, Debug)]
pub struct Handle {
    state: watch::Receiver<State>,
    asked: Arc<Asked>,
}

/// Tickets for rounds that a caller waits for.
#[derive(Debug, Default)]
struct Asked {
    tickets: AtomicU64,
    wake: Notify,
    /// The authorities in the CA bundles in force, where a task looks.
    in_force: Mutex<Option<Vec<Certificate>>>,
    /// Whether that task may not look.
    is_unreadable: AtomicBool,
    /// What stays in these bundles.
    kept: Mutex<Kept>,
}

/// One round of writing the CA bundles.
#[derive(Debug)]
pub struct Round {
    asked: Arc<Asked>,
    wanted: Bundle,
    past: Vec<Certificate>,
    now: Timestamp,
}

impl Round {
    /// What a bundle that holds `live` has to hold.
    #[must_use]
    pub fn bundle(&self, live: Vec<Certificate>) -> Bundle {
        self.asked.kept().beside(&self.wanted, &self.past, live, self.now)
    }
}

impl Asked {
    fn in_force(&self, authority: &Certificate) -> InForce {
        match self.in_force.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            None => InForce::Unseen,
            Some(seen) if seen.iter().any(|one| one.identity() == authority.identity()) => InForce::Trusted,
            Some(_) => InForce::Distrusted,
        }
    }

    fn saw(&self, seen: Vec<Certificate>) {
        *self.in_force.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
    }

    fn seen(&self) -> usize {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(0, Vec::len)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A publisher that serves through `sink`, and a handle on what it knows.
pub fn publisher<F>(sink: F) -> (Publisher, Handle)
where
    F: Fn(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) -> Result<(), BoxError>
        + Send
        + Sync
        + 'static,
{
    let (sender, receiver) = watch::channel(State::default());
    let asked = Arc::<Asked>::default();
    let publisher = Publisher { sink: Box::new(sink), state: sender, asked: Arc::clone(&asked) };
    (publisher, Handle { state: receiver, asked })
}

impl Source {
    /// One round: reads, decides, serves, publishes.
    ///
    /// # Errors
    /// When something could not be read, written or served; the state says so too.
    pub async fn refresh(&mut self, publisher: &Publisher) -> Result<(), Error> {
        let ticket = publisher.asked.tickets.load(Ordering::Acquire);
        let in_force = |authority: &Certificate| publisher.asked.in_force(authority);
        let outcome = match self {
            Self::Authority(source) => source.refresh(&publisher.sink, in_force).await.map_err(Error::from),
            Self::Files(source) => source.refresh(&publisher.sink, in_force).await.map_err(Error::from),
        };
        publisher.tell(self.facts(), outcome.as_ref().err(), ticket);
        outcome
    }

    /// Rounds without end; dropping the future ends them.
    pub async fn run(mut self, publisher: Publisher) -> Infallible {
        loop {
            // The outcome is in the state and in the log.
            let failed = self.refresh(&publisher).await.is_err();
            let pause = if failed && self.facts().leaf.is_none() { RETRY } else { self.pause() };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = publisher.asked.wake.notified() => {}
            }
        }
    }

    fn facts(&self) -> Facts {
        match self {
            Self::Authority(source) => source.facts(),
            Self::Files(source) => source.facts(),
        }
    }

    const fn pause(&self) -> Duration {
        match self {
            Self::Authority(_) => authority::PAUSE,
            Self::Files(_) => files::PAUSE,
        }
    }
}

impl State {
    fn is_other_than(&self, known: Option<&Bundle>) -> bool {
        self.facts.bundle.is_some() && self.facts.bundle.as_ref() != known
    }
}

impl Publisher {
    fn tell(&self, facts: Facts, failure: Option<&Error>, ticket: u64) {
        let failure = failure.map(ToString::to_string);
        self.state.send_modify(|state| {
            match &failure {
                Some(message) if state.failure != failure => {
                    tracing::warn!(reason = message, "failed to refresh certificates");
                }
                None if state.failure.is_some() => tracing::info!("certificates are refreshed again"),
                _ => {}
            }
            state.successes += u64::from(failure.is_none());
            state.failures += u64::from(failure.is_some());
            state.facts = facts;
            state.in_force = self.asked.seen();
            state.failure = failure;
            state.answered = ticket;
        });
    }
}

impl Handle {
    /// What is known now.
    #[must_use]
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Shows what is known, now and whenever it changes, without end. Dropping the future ends it.
    pub async fn show(mut self, mut show: impl FnMut(&State)) -> Infallible {
        loop {
            show(&self.state.borrow_and_update());
            if self.state.changed().await.is_err() {
                std::future::pending::<()>().await; // the source is gone: nothing will change any more
            }
        }
    }

    /// What is known after a round that began no earlier than this call, or after 15 seconds without one what is
    /// known then.
    ///
    /// Another replica may have changed the shared authority a moment ago: a task that is about to write a bundle asks
    /// here first, so that two replicas never undo each other's work.
    pub async fn fresh(&mut self) -> State {
        let ticket = self.asked.tickets.fetch_add(1, Ordering::AcqRel) + 1;
        self.asked.wake.notify_one();
        let answered = self.state.wait_for(|state| state.answered >= ticket);
        // Too late, or the source is gone: what is known has to do.
        drop(tokio::time::timeout(FRESH, answered).await);
        self.state()
    }

    /// From here on a task looks at the CA bundles in force: no leaf follows a new key until an installed bundle trusts
    /// that key.
    pub fn expect_in_force(&self) {
        self.asked.saw(Vec::new());
    }

    /// The CA bundles in force have these.
    pub fn saw_in_force(&self, trusted: Vec<Certificate>) {
        self.asked.saw(trusted);
        self.asked.wake.notify_one();
    }

    /// Begins a round of writing the CA bundles, which have to hold `wanted`.
    #[must_use]
    pub fn begin_round(&self, wanted: Bundle, now: Timestamp) -> Round {
        let past = self.asked.kept().begin(&wanted, now);
        Round { asked: Arc::clone(&self.asked), wanted, past, now }
    }

    /// The right to read the CA bundles in force is missing.
    pub fn may_not_see_in_force(&self) {
        self.asked.is_unreadable.store(true, Ordering::Release);
        self.asked.wake.notify_one();
    }

    /// Waits until there is a leaf to serve, and the CA bundles in force have the authority that signed it, where it is
    /// known and a task looks at them. Where that task may not, the leaf has to do: a process that starts has no other.
    pub async fn trusted(&mut self) {
        let asked = Arc::clone(&self.asked);
        let is_trusted = |issuer: &Certificate| {
            asked.in_force(issuer) != InForce::Distrusted || asked.is_unreadable.load(Ordering::Acquire)
        };
        let trusted = self.state.wait_for(|State { facts, .. }| {
            facts.leaf.is_some() && facts.issuer.as_ref().is_none_or(is_trusted)
        });
        if trusted.await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether there is a bundle other than `known`.
    #[must_use]
    pub fn has_bundle_other_than(&self, known: Option<&Bundle>) -> bool {
        self.state.borrow().is_other_than(known)
    }

    /// Waits until there is a bundle other than `known`.
    pub async fn bundle_other_than(&mut self, known: Option<&Bundle>) {
        if self.state.wait_for(|state| state.is_other_than(known)).await.is_err() {
            std::future::pending::<()>().await; // the source is gone: nothing will change any more
        }
    }

    /// Waits until there is a leaf to serve.
    pub async fn served(&mut self) {
        if self.state.wait_for(|state| state.facts.leaf.is_some()).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests;
