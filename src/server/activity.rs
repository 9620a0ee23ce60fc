//! What is known of a connection's client: when it was last heard of, and what it has not taken.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::crowd::{Crowd, Member};
use super::limits::Limits;
use crate::runtime::clock;

/// Of one connection.
pub(super) struct Activity {
    heard: Mutex<Heard>,
    /// Others need what it has.
    cut: Arc<Notify>,
    /// An answer is to be taken.
    answered: Notify,
}

struct Heard {
    busy: usize,
    asked: bool,
    /// Whether the client has shown a certificate that is trusted.
    known: bool,
    last: Instant,
    /// Large answers that the client has not taken.
    untaken: usize,
    /// Since when it has taken none.
    taken: Instant,
    /// Until the first request.
    newcomer: Option<Member>,
}

/// A request is being answered.
pub(super) struct Busy(Arc<Activity>);

/// A large answer is in memory.
pub(super) struct Untaken(Arc<Activity>);

impl Activity {
    /// One that has not asked for anything yet, and gives way to others until it does.
    pub(super) fn of_a_newcomer(newcomers: &Arc<Crowd>) -> Arc<Self> {
        let (cut, now) = (Arc::<Notify>::default(), clock::instant());
        let newcomer = Some(newcomers.join(Arc::clone(&cut)));
        let heard =
            Heard { busy: 0, asked: false, known: false, last: now, untaken: 0, taken: now, newcomer };
        Arc::new(Self { heard: Mutex::new(heard), cut, answered: Notify::new() })
    }

    /// The client has shown a certificate that is trusted.
    pub(super) fn recognise(&self) {
        self.lock().known = true;
    }

    /// Whether it has.
    pub(super) fn is_known(&self) -> bool {
        self.lock().known
    }

    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        let mut heard = self.lock();
        heard.busy += 1;
        heard.asked = true;
        let newcomer = heard.newcomer.take();
        drop(heard);
        drop(newcomer);
        Busy(Arc::clone(self))
    }

    /// A large answer from here on, until it is dropped.
    pub(super) fn untaken(self: &Arc<Self>) -> Untaken {
        let mut heard = self.lock();
        if heard.untaken == 0 {
            heard.taken = clock::instant();
        }
        heard.untaken += 1;
        drop(heard);
        self.answered.notify_one();
        Untaken(Arc::clone(self))
    }

    /// What has it closed when others need what it holds.
    pub(super) fn cut(&self) -> Arc<Notify> {
        Arc::clone(&self.cut)
    }

    /// Resolves when others need what it holds.
    pub(super) async fn has_to_go(&self) {
        self.cut.notified().await;
    }

    /// Resolves when the client has been silent for longer than it may, with the reason. Looks at the clock only
    /// when a limit may have passed: a request costs no timer.
    pub(super) async fn too_long_silent(&self, limits: &Limits) -> &'static str {
        loop {
            let now = clock::instant();
            let (due, reason, asked) = self.lock().due(limits, now);
            if due <= now {
                return reason;
            }
            // Until the first request it is not known which limit will be the next.
            let unknown = if asked { due } else { now + limits.idle };
            tokio::select! {
                () = sleep_until(due.min(unknown)) => {}
                () = self.answered.notified() => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heard {
    /// When the client will have been silent for too long, as things are, and what will be said of it then.
    fn due(&self, limits: &Limits, now: Instant) -> (Instant, &'static str, bool) {
        let untaken = (self.taken + limits.answer, "unread");
        let silent = match (self.asked, self.busy) {
            (false, _) => (self.last + limits.first_header, "first_header"),
            (true, 0) => (self.last + limits.idle, "idle"),
            (true, _) => (now + limits.idle, "idle"),
        };
        let (due, reason) = if self.untaken > 0 && untaken.0 < silent.0 { untaken } else { silent };
        (due, reason, self.asked)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut heard = self.0.lock();
        heard.busy -= 1;
        heard.last = clock::instant();
    }
}

impl Drop for Untaken {
    fn drop(&mut self) {
        let mut heard = self.0.lock();
        heard.untaken -= 1;
        heard.taken = clock::instant();
        heard.last = heard.taken;
    }
}
