//! The objects whose count is due, so that counts are written before everything else.
//!
//! Where thousands of objects share a boundary, each count that is written starts reconciliations that would report it,
//! and the queue knows no order among them and the counts still to be written. So an object that is not due gives way
//! to one that is, for as long as counts are written. No object waits in vain: where none was written for
//! [`PATIENCE`], or where one was overtaken by that much, it has met with some obstacle. None waits for good: where
//! the others take longer than that, one in four reconciliations is of those that wait. An object whose reconciliation
//! failed goes before them too.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// How long others give way while no count is written.
const PATIENCE: SignedDuration = SignedDuration::from_secs(30);

/// When which object is due next.
#[derive(Debug, Default)]
pub struct DueQueue(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
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
}

/// Of so many reconciliations one is of an object that is not due, where others have been due for long.
const SHARE: u32 = 4;

impl Entries {
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
}

impl DueQueue {
    /// The object is due at that time next, or not at all.
    pub fn expect(&self, uid: &str, due: Option<Timestamp>) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.remove(uid);
        if let Some(time) = due {
            let uid: Arc<str> = Arc::from(uid);
            entries.times.insert(Arc::clone(&uid), time);
            entries.order.insert((time, uid));
        }
    }

    /// Only these objects are left.
    pub fn forget_all_but(&self, uids: &HashSet<String>) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.times.retain(|uid, _| uids.contains(&**uid));
        entries.order.retain(|(_, uid)| uids.contains(&**uid));
        entries.unsettled.retain(|uid| uids.contains(uid));
    }

    /// A reconciliation of the object has ended well.
    pub fn settled(&self, uid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).unsettled.remove(uid);
    }

    /// Whether a reconciliation of the object has to wait, for others are due and it is not. One that is due is so no
    /// more.
    pub fn gives_way(&self, uid: &str, now: Timestamp) -> bool {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(due) = entries.times.get(uid).copied().filter(|due| *due <= now) {
            entries.remove(uid);
            entries.unsettled.insert(uid.to_owned());
            entries.gone = entries.gone.saturating_add(1);
            entries.advance(due, now);
            return false;
        }
        if entries.unsettled.contains(uid) {
            return false;
        }
        let Some(oldest) = entries.order.first().map(|(due, _)| *due).filter(|due| *due <= now) else {
            entries.busy = None;
            return false;
        };
        let busy = *entries.busy.get_or_insert(now);
        if now.duration_since(busy) > PATIENCE && entries.gone >= SHARE - 1 {
            entries.gone = 0;
            return false;
        }
        let since = entries.progress.map_or(oldest, |progress| progress.max(oldest));
        now.duration_since(since) <= PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn who_is_not_due_gives_way_to_who_is_until_that_one_had_its_pass() {
        let due_queue = DueQueue::default();
        due_queue.expect("a", Some(second(100)));
        due_queue.expect("b", Some(second(100)));
        due_queue.expect("c", Some(second(200)));
        assert!(!due_queue.gives_way("c", second(99)));
        assert!(due_queue.gives_way("c", second(100)));
        assert!(due_queue.gives_way("new", second(100)));
        assert!(!due_queue.gives_way("a", second(100)));
        due_queue.settled("a");
        assert!(due_queue.gives_way("a", second(100)));
        assert!(!due_queue.gives_way("b", second(100)));
        assert!(!due_queue.gives_way("c", second(100)));
    }

    #[test]
    fn counts_come_first_for_as_long_as_they_are_written() {
        let due_queue = DueQueue::default();
        let crowd: Vec<_> = (0..100).map(|number| number.to_string()).collect();
        for uid in &crowd {
            due_queue.expect(uid, Some(second(100)));
        }
        for (uid, now) in crowd.iter().zip((100..).flat_map(|now| [now; 4])) {
            assert!(due_queue.gives_way("a", second(now)), "{now}");
            assert!(!due_queue.gives_way(uid, second(now)));
        }
        assert!(!due_queue.gives_way("a", second(200)));
    }

    #[test]
    fn one_in_four_is_of_those_who_wait_where_counts_never_end() {
        let due_queue = DueQueue::default();
        let (mut let_through, rounds) = (0, 400);
        for now in 100..100 + rounds {
            due_queue.expect("next", Some(second(now)));
            due_queue.expect("ramp", Some(second(now)));
            assert!(!due_queue.gives_way("ramp", second(now)));
            due_queue.settled("ramp");
            let_through += i64::from(!due_queue.gives_way("waits", second(now)));
        }
        assert_eq!(let_through, (rounds - 31 + 2) / 3, "none in the first half minute");
    }

    #[test]
    fn one_whose_count_could_not_be_written_does_not_wait() {
        let due_queue = DueQueue::default();
        due_queue.expect("failed", Some(second(100)));
        due_queue.expect("other", Some(second(100)));
        assert!(!due_queue.gives_way("failed", second(100)));
        due_queue.expect("failed", Some(second(200)));
        assert!(!due_queue.gives_way("failed", second(101)), "it is tried again");
        due_queue.settled("failed");
        assert!(due_queue.gives_way("failed", second(101)));
    }

    #[test]
    fn none_waits_for_one_that_was_overtaken() {
        let due_queue = DueQueue::default();
        due_queue.expect("gone", Some(second(100)));
        for now in [110, 120, 130] {
            due_queue.expect("b", Some(second(now)));
            assert!(!due_queue.gives_way("b", second(now)));
            due_queue.settled("b");
            assert!(due_queue.gives_way("a", second(now)), "{now}");
        }
        due_queue.expect("b", Some(second(131)));
        assert!(!due_queue.gives_way("b", second(131)));
        assert!(!due_queue.gives_way("a", second(131)));
    }

    #[test]
    fn none_waits_for_one_that_never_comes() {
        let due_queue = DueQueue::default();
        due_queue.expect("gone", Some(second(100)));
        assert!(due_queue.gives_way("a", second(130)));
        assert!(!due_queue.gives_way("a", second(131)));
        due_queue.expect("gone", None);
        assert!(!due_queue.gives_way("a", second(110)));
        due_queue.expect("gone-unseen", Some(second(100)));
        due_queue.forget_all_but(&HashSet::from(["a".to_owned()]));
        assert!(!due_queue.gives_way("a", second(110)));
    }
}
