//! The objects whose count is due, so that counts are written before everything else.
//!
//! Where thousands of objects share a boundary, each count that is written starts reconciliations that would report it,
//! and the queue knows no order among them and the counts still to be written. So an object that is not due gives way
//! to one that is, for as long as counts are written. No object waits in vain: where none was written for
//! [`PATIENCE`], or where one was overtaken by that much, it has met with some obstacle. None waits for good: where
//! the others take longer than that, one in four reconciliations is of those that wait. An object whose reconciliation
//! failed goes before them too.
//!
//! Those that wait are called once none is due any more. They look again by themselves now and then, and not every
//! moment: of thousands, each look would take from the time in which counts are written.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures::channel::mpsc::UnboundedSender;
use jiff::{SignedDuration, Timestamp};

/// How long others give way while no count is written.
const PATIENCE: SignedDuration = SignedDuration::from_secs(30);

/// When which object is due next. `Object`: by what those that wait are called.
#[derive(Debug)]
pub struct DueQueue<Object> {
    entries: Mutex<Entries<Object>>,
    /// Those that need not wait any longer.
    called: UnboundedSender<Object>,
}

#[derive(Debug)]
struct Entries<Object> {
    times: HashMap<Arc<str>, Timestamp>,
    order: BTreeSet<(Timestamp, Arc<str>)>,
    /// When one that was due had its reconciliation last.
    progress: Option<Timestamp>,
    /// Those that were due and whose reconciliation has not ended well yet.
    unsettled: HashSet<String>,
    /// Since when some were due without a break.
    busy: Option<Timestamp>,
    /// How many of those that were due have gone since one that was not.
    gone: u32,
    /// Those that gave way since some were due, by uid.
    waiting: HashMap<String, Object>,
}

impl<Object> Default for Entries<Object> {
    fn default() -> Self {
        Self {
            times: HashMap::new(),
            order: BTreeSet::new(),
            progress: None,
            unsettled: HashSet::new(),
            busy: None,
            gone: 0,
            waiting: HashMap::new(),
        }
    }
}

/// Of so many reconciliations one is of an object that is not due, where others have been due for long.
const SHARE: u32 = 4;

impl<Object> Entries<Object> {
    fn remove(&mut self, uid: &str) {
        if let Some((uid, time)) = self.times.remove_entry(uid) {
            self.order.remove(&(time, uid));
        }
    }

    /// One that was due at that time has its reconciliation. Those that it overtook by far are waited for no longer.
    fn advance(&mut self, due: Timestamp, now: Timestamp) {
        self.progress = Some(now);
        let overtaken = due.checked_sub(PATIENCE).unwrap_or(Timestamp::MIN);
        while let Some((time, uid)) = self.order.first()
            && *time < overtaken
        {
            self.times.remove(uid);
            self.order.pop_first();
        }
    }

    /// When the first one was due, if one is at `now`.
    fn oldest(&self, now: Timestamp) -> Option<Timestamp> {
        self.order.first().map(|(due, _)| *due).filter(|due| *due <= now)
    }
}

impl<Object> DueQueue<Object> {
    /// None yet. Those that gave way are sent to `called` when they need not any more.
    #[must_use]
    pub fn new(called: UnboundedSender<Object>) -> Self {
        Self { entries: Mutex::default(), called }
    }

    /// The object is due at that time next, or not at all.
    pub fn expect(&self, uid: &str, due: Option<Timestamp>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.remove(uid);
        if let Some(time) = due {
            let uid: Arc<str> = Arc::from(uid);
            entries.times.insert(Arc::clone(&uid), time);
            entries.order.insert((time, uid));
        }
    }

    /// The object is gone.
    pub fn forget(&self, uid: &str) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.remove(uid);
        entries.unsettled.remove(uid);
        entries.waiting.remove(uid);
    }

    /// A reconciliation of the object has ended well.
    pub fn settled(&self, uid: &str) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).unsettled.remove(uid);
    }

    /// Whether a reconciliation of the object has to wait, for others are due and it is not. One that is due is so no
    /// more. `object` is called when it need not wait any longer.
    pub fn gives_way(&self, uid: &str, object: impl FnOnce() -> Object, now: Timestamp) -> bool {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.waiting.remove(uid);
        if let Some(due) = entries.times.get(uid).copied().filter(|due| *due <= now) {
            entries.remove(uid);
            entries.unsettled.insert(uid.to_owned());
            entries.gone = entries.gone.saturating_add(1);
            entries.advance(due, now);
            if entries.oldest(now).is_none() {
                self.call(std::mem::take(&mut entries.waiting));
            }
            return false;
        }
        if entries.unsettled.contains(uid) {
            return false;
        }
        let Some(oldest) = entries.oldest(now) else {
            entries.busy = None;
            return false;
        };
        let busy = *entries.busy.get_or_insert(now);
        if now.duration_since(busy) > PATIENCE && entries.gone >= SHARE - 1 {
            entries.gone = 0;
            return false;
        }
        let since = entries.progress.map_or(oldest, |progress| progress.max(oldest));
        let waits = now.duration_since(since) <= PATIENCE;
        if waits {
            entries.waiting.insert(uid.to_owned(), object());
        }
        waits
    }

    fn call(&self, waiting: HashMap<String, Object>) {
        for object in waiting.into_values() {
            // Without a receiver nothing is reconciled.
            let _no_receiver = self.called.unbounded_send(object);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::channel::mpsc;

    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn queue() -> DueQueue<String> {
        DueQueue::new(mpsc::unbounded().0)
    }

    fn gives_way(due_queue: &DueQueue<String>, uid: &str, now: Timestamp) -> bool {
        due_queue.gives_way(uid, || uid.to_owned(), now)
    }

    #[test]
    fn who_is_not_due_gives_way_to_who_is_until_that_one_had_its_pass() {
        let due_queue = queue();
        due_queue.expect("a", Some(second(100)));
        due_queue.expect("b", Some(second(100)));
        due_queue.expect("c", Some(second(200)));
        assert!(!gives_way(&due_queue, "c", second(99)));
        assert!(gives_way(&due_queue, "c", second(100)));
        assert!(gives_way(&due_queue, "new", second(100)));
        assert!(!gives_way(&due_queue, "a", second(100)));
        due_queue.settled("a");
        assert!(gives_way(&due_queue, "a", second(100)));
        assert!(!gives_way(&due_queue, "b", second(100)));
        assert!(!gives_way(&due_queue, "c", second(100)));
    }

    #[test]
    fn counts_come_first_for_as_long_as_they_are_written() {
        let due_queue = queue();
        let crowd: Vec<_> = (0..100).map(|number| number.to_string()).collect();
        for uid in &crowd {
            due_queue.expect(uid, Some(second(100)));
        }
        for (uid, now) in crowd.iter().zip((100..).flat_map(|now| [now; 4])) {
            assert!(gives_way(&due_queue, "a", second(now)), "{now}");
            assert!(!gives_way(&due_queue, uid, second(now)));
        }
        assert!(!gives_way(&due_queue, "a", second(200)));
    }

    #[test]
    fn one_in_four_is_of_those_who_wait_where_counts_never_end() {
        let due_queue = queue();
        let (mut let_through, rounds) = (0, 400);
        for now in 100..100 + rounds {
            due_queue.expect("next", Some(second(now)));
            due_queue.expect("ramp", Some(second(now)));
            assert!(!gives_way(&due_queue, "ramp", second(now)));
            due_queue.settled("ramp");
            let_through += i64::from(!gives_way(&due_queue, "waits", second(now)));
        }
        assert_eq!(let_through, (rounds - 31 + 2) / 3, "none in the first half minute");
    }

    #[test]
    fn one_whose_count_could_not_be_written_does_not_wait() {
        let due_queue = queue();
        due_queue.expect("failed", Some(second(100)));
        due_queue.expect("other", Some(second(100)));
        assert!(!gives_way(&due_queue, "failed", second(100)));
        due_queue.expect("failed", Some(second(200)));
        assert!(!gives_way(&due_queue, "failed", second(101)), "it is tried again");
        due_queue.settled("failed");
        assert!(gives_way(&due_queue, "failed", second(101)));
    }

    #[test]
    fn none_waits_for_one_that_was_overtaken() {
        let due_queue = queue();
        due_queue.expect("gone", Some(second(100)));
        for now in [110, 120, 130] {
            due_queue.expect("b", Some(second(now)));
            assert!(!gives_way(&due_queue, "b", second(now)));
            due_queue.settled("b");
            assert!(gives_way(&due_queue, "a", second(now)), "{now}");
        }
        due_queue.expect("b", Some(second(131)));
        assert!(!gives_way(&due_queue, "b", second(131)));
        assert!(!gives_way(&due_queue, "a", second(131)));
    }

    #[test]
    fn none_waits_for_one_that_never_comes() {
        let due_queue = queue();
        due_queue.expect("gone", Some(second(100)));
        assert!(gives_way(&due_queue, "a", second(130)));
        assert!(!gives_way(&due_queue, "a", second(131)));
        due_queue.expect("gone", None);
        assert!(!gives_way(&due_queue, "a", second(110)));
        due_queue.expect("gone-unseen", Some(second(100)));
        due_queue.forget("gone-unseen");
        assert!(!gives_way(&due_queue, "a", second(110)));
    }
    #[test]
    fn those_who_wait_are_called_once_none_is_due_any_more() {
        let (called, mut calls) = mpsc::unbounded();
        let due_queue = DueQueue::new(called);
        let mut heard = || std::iter::from_fn(|| calls.try_recv().ok()).collect::<BTreeSet<_>>();
        due_queue.expect("a", Some(second(100)));
        due_queue.expect("b", Some(second(100)));
        for waits in ["c", "d", "gone", "c"] {
            assert!(gives_way(&due_queue, waits, second(100)));
        }
        due_queue.forget("gone");
        assert!(!gives_way(&due_queue, "a", second(100)));
        due_queue.settled("a");
        assert!(gives_way(&due_queue, "a", second(101)));
        assert_eq!(heard(), BTreeSet::new());
        assert!(!gives_way(&due_queue, "b", second(102)));
        assert_eq!(heard(), ["a", "c", "d"].map(str::to_owned).into());
        assert!(!gives_way(&due_queue, "c", second(102)));
        due_queue.expect("b", Some(second(103)));
        assert!(!gives_way(&due_queue, "b", second(103)));
        assert_eq!(heard(), BTreeSet::new(), "once");
    }
}
