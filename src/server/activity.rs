//! The activity of a connection's client: when it last sent something, which bodies are waited for, and which answers it
//! has not taken.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::limits::Limits;
use crate::runtime::clock;

/// Of one connection.
pub(super) struct Activity {
    /// The address of its client.
    peer: IpAddr,
    heard: Mutex<Heard>,
    /// Others need what it has.
    cut: Arc<Notify>,
    /// An answer is to be taken.
    answered: Notify,
}

/// What a client has asked for, whatever came of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Nothing,
    Something,
    AReview,
}

struct Heard {
    busy: usize,
    /// The number of the body that was waited for last.
    turn: u64,
    /// Since when bodies are waited for, by their numbers.
    awaited: BTreeMap<u64, Instant>,
    asked: Asked,
    /// Whether the client has shown a certificate that is trusted.
    known: bool,
    last: Instant,
    /// Answers that count and that the client has not taken.
    untaken: usize,
    /// Since when it has taken none.
    taken: Instant,
    /// Others have its place.
    gave_way: bool,
}

/// A connection whose next step is its client's.
pub(super) struct Idle {
    /// It has not asked for a review yet.
    pub(super) is_newcomer: bool,
    /// It owes the rest of a body.
    pub(super) owes_a_body: bool,
    /// Its client has shown a certificate that is trusted.
    pub(super) is_known: bool,
    pub(super) since: Instant,
}

/// A request is being answered.
pub(super) struct Busy(Arc<Activity>);

/// The rest of a body is waited for.
pub(super) struct Awaited {
    activity: Arc<Activity>,
    turn: u64,
}

/// An answer that counts is in memory.
pub(super) struct Untaken(Arc<Activity>);

impl Activity {
    /// Of a connection that has not asked for anything yet.
    pub(super) fn new(peer: IpAddr) -> Arc<Self> {
        let now = clock::instant();
        let heard = Heard {
            busy: 0,
            turn: 0,
            awaited: BTreeMap::new(),
            asked: Asked::Nothing,
            known: false,
            last: now,
            untaken: 0,
            taken: now,
            gave_way: false,
        };
        Arc::new(Self { peer, heard: Mutex::new(heard), cut: Arc::default(), answered: Notify::new() })
    }

    pub(super) const fn peer(&self) -> IpAddr {
        self.peer
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
        heard.asked = heard.asked.max(Asked::Something);
        drop(heard);
        Busy(Arc::clone(self))
    }

    /// What is being answered is a review.
    pub(super) fn asks_for_a_review(&self) {
        self.lock().asked = Asked::AReview;
    }

    /// The rest of a request's body is waited for from here on, until it is there.
    pub(super) fn awaits_a_body(self: &Arc<Self>) -> Awaited {
        let mut heard = self.lock();
        heard.turn += 1;
        let turn = heard.turn;
        heard.awaited.insert(turn, clock::instant());
        drop(heard);
        Awaited { activity: Arc::clone(self), turn }
    }

    /// An answer that counts from here on, until it is dropped.
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

    /// How it is idle, unless it is not or has given way already.
    pub(super) fn idle(&self) -> Option<Idle> {
        let heard = self.lock();
        // Of every request that is being answered.
        let waits = heard.busy == heard.awaited.len();
        let is_idle = waits && heard.untaken == 0 && !heard.gave_way;
        let owed = heard.awaited.values().next();
        is_idle.then_some(Idle {
            is_newcomer: heard.asked < Asked::AReview,
            owes_a_body: owed.is_some(),
            is_known: heard.known,
            since: owed.copied().unwrap_or(heard.last),
        })
    }

    /// Others get its place.
    pub(super) fn give_way(&self) {
        self.lock().gave_way = true;
        self.cut.notify_one();
    }

    /// Whether others get its place.
    #[cfg(test)]
    pub(super) fn gave_way(&self) -> bool {
        self.lock().gave_way
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
    /// When the client will have been silent for too long, as things are, and the reason that is reported then.
    fn due(&self, limits: &Limits, now: Instant) -> (Instant, &'static str, bool) {
        let untaken = (self.taken + limits.answer, "unread");
        let asked = self.asked > Asked::Nothing;
        let silent = match (asked, self.busy) {
            (false, _) => (self.last + limits.first_header, "first_header"),
            (true, 0) => (self.last + limits.idle, "idle"),
            (true, _) => (now + limits.idle, "idle"),
        };
        let (due, reason) = if self.untaken > 0 && untaken.0 < silent.0 { untaken } else { silent };
        (due, reason, asked)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut heard = self.0.lock();
        heard.busy -= 1;
        heard.last = clock::instant();
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.activity.lock().awaited.remove(&self.turn);
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
