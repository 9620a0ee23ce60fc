//! Timers for times of the wall clock, although a timer counts another clock's time.
//!
//! Guarantees: a wait that is due by a jump of the wall clock forward, as when a clock is set or a machine comes back
//! from sleep, ends within [`PAUSE`]; no wait ends because time passes, for that is what timers are for; no wait that
//! is due by a jump is missed, whether the jump came before, while or after its duration was computed.
//! Assumes: timers do not count the time that a machine sleeps, or are right about it.
//! Never: looks at who waits while the two clocks go side by side.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Between two looks at the clocks.
const PAUSE: Duration = Duration::from_secs(1);

/// What the clocks may drift apart by before those who wait are looked at. Clocks are slewed by half a thousandth at
/// most, so that this is not reached but by a jump, or once in a quarter of an hour.
const DRIFT: SignedDuration = SignedDuration::from_millis(500);

/// What the clocks show at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    time: Timestamp,
    instant: Instant,
}

impl Shown {
    fn now() -> Self {
        Self { time: super::now(), instant: super::instant() }
    }

    /// Whether the wall clock has jumped between the two.
    fn jumped_from(&self, other: &Self) -> bool {
        let passed = match self.instant.checked_duration_since(other.instant) {
            Some(passed) => signed(passed),
            None => -signed(other.instant.duration_since(self.instant)),
        };
        self.time.duration_since(other.time).saturating_sub(passed).abs() > DRIFT
    }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// When who is due, by both clocks.
#[derive(Debug)]
struct Waiting<Key> {
    due: HashMap<Key, Shown>,
    /// What the clocks showed when they were looked at last.
    looked: Shown,
    /// A wait was computed on the other side of a jump.
    is_unsure: bool,
}

impl<Key: Clone + Eq + Hash> Waiting<Key> {
    fn new(now: Shown) -> Self {
        Self { due: HashMap::new(), looked: now, is_unsure: false }
    }

    fn set(&mut self, key: &Key, shown: Shown, after: Option<Duration>) {
        let due = after.and_then(|after| {
            let time = shown.time.saturating_add(signed(after)).unwrap_or(Timestamp::MAX);
            Some(Shown { time, instant: shown.instant.checked_add(after)? })
        });
        // An equal key may tell of more than its equality does: the latest one is kept.
        self.due.remove(key);
        if let Some(due) = due {
            self.due.insert(key.clone(), due);
        }
        self.is_unsure |= shown.jumped_from(&self.looked);
    }

    /// Those who are due although their timers have not run out, and whose alarms are thereby off.
    fn rung(&mut self, now: Shown) -> Vec<Key> {
        if !std::mem::take(&mut self.is_unsure) && !now.jumped_from(&self.looked) {
            return Vec::new();
        }
        self.looked = now;
        let rung = self.due.extract_if(|_, due| due.time <= now.time && due.instant > now.instant);
        rung.map(|(key, _)| key).collect()
    }
}

/// Who waits for a time of the wall clock by a timer: a jump of the wall clock rings for who is due by it.
#[derive(Debug)]
pub struct Alarms<Key>(Arc<Mutex<Waiting<Key>>>);

impl<Key: Clone + Eq + Hash + Send + Sync + 'static> Alarms<Key> {
    /// What the clocks show now.
    #[must_use]
    pub fn shown(&self) -> Shown {
        Shown::now()
    }

    /// The next look at `key` is so long after what was `shown`, or there is none. This replaces what was set for it.
    pub fn set(&self, key: &Key, shown: Shown, after: Option<Duration>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).set(key, shown, after);
    }

    /// Only those are left that `stays` takes.
    pub fn retain(&self, stays: impl Fn(&Key) -> bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).due.retain(|key, _| stays(key));
    }

    /// Who is due by a jump, each once.
    #[must_use]
    pub fn rung(&self) -> BoxStream<'static, Key> {
        let looks = stream::unfold(Arc::clone(&self.0), async |waiting| {
            tokio::time::sleep(super::pause(PAUSE)).await;
            let rung = waiting.lock().unwrap_or_else(PoisonError::into_inner).rung(Shown::now());
            Some((stream::iter(rung), waiting))
        });
        looks.flatten().boxed()
    }
}

impl<Key: Clone + Eq + Hash> Default for Alarms<Key> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Waiting::new(Shown::now()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    /// Equal to all others.
    #[derive(Clone, Debug)]
    struct Named(u8);

    impl PartialEq for Named {
        fn eq(&self, _: &Self) -> bool {
            true
        }
    }

    impl Eq for Named {}

    impl Hash for Named {
        fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
    }

    #[test]
    fn of_equal_ones_the_latest_is_known() {
        let alarms = Alarms::<Named>::default();
        for one in [1, 2] {
            alarms.set(&Named(one), alarms.shown(), Some(HOUR));
        }
        alarms.retain(|one| one.0 == 2);
        assert_eq!(alarms.0.lock().unwrap().due.len(), 1);
    }

    /// The clocks, so many seconds of a timer after they began, with the wall clock ahead by so many milliseconds.
    struct Clocks(Shown);

    impl Clocks {
        fn new() -> Self {
            Self(Shown::now())
        }

        fn at(&self, seconds: u64, ahead: i64) -> Shown {
            let passed = Duration::from_secs(seconds);
            let time = self.0.time + signed(passed) + SignedDuration::from_millis(ahead);
            Shown { time, instant: self.0.instant + passed }
        }
    }

    /// `soon` in an hour, `late` in three, and `never`.
    fn waiting(now: Shown) -> Waiting<&'static str> {
        let mut waiting = Waiting::new(now);
        waiting.set(&"soon", now, Some(HOUR));
        waiting.set(&"late", now, Some(3 * HOUR));
        waiting.set(&"never", now, Some(HOUR));
        waiting.set(&"never", now, None);
        waiting
    }

    #[test]
    fn a_jump_rings_once_for_those_who_are_due_by_it() {
        let clocks = Clocks::new();
        let mut waiting = waiting(clocks.at(0, 0));
        assert_eq!(waiting.rung(clocks.at(1, 0)), [""; 0]);
        assert_eq!(waiting.rung(clocks.at(2, 59 * 60_000)), [""; 0]);
        assert_eq!(waiting.rung(clocks.at(3, 3_600_000)), ["soon"]);
        assert_eq!(waiting.rung(clocks.at(4, 3_600_000)), [""; 0]);
        assert_eq!(waiting.rung(clocks.at(5, 3 * 3_600_000)), ["late"]);
    }

    #[test]
    fn a_machine_that_slept_through_a_boundary_looks_when_it_is_back() {
        let clocks = Clocks::new();
        let mut waiting = waiting(clocks.at(0, 0));
        // The timers stood still for seven hours.
        let mut rung = waiting.rung(clocks.at(10, 7 * 3_600_000));
        rung.sort_unstable();
        assert_eq!(rung, ["late", "soon"]);
    }

    #[test]
    fn while_the_clocks_go_side_by_side_no_wait_is_looked_at() {
        let clocks = Clocks::new();
        let mut waiting = waiting(clocks.at(0, 0));
        // Due by the wall clock, and the timer is about to run out.
        assert_eq!(waiting.rung(clocks.at(3_599, 0)), [""; 0]);
        assert_eq!(waiting.rung(clocks.at(3_600, 400)), [""; 0]);
        assert_eq!(waiting.due.len(), 2, "whose timer has run out has a new one soon");
    }

    #[test]
    fn clocks_that_drift_apart_are_a_jump_in_the_end() {
        let clocks = Clocks::new();
        let mut waiting = Waiting::new(clocks.at(0, 0));
        waiting.set(&"soon", clocks.at(0, 0), Some(HOUR));
        for second in 0..3_600 {
            // A hundredth of a second a minute.
            let ahead = i64::try_from(second / 6).unwrap();
            assert_eq!(waiting.rung(clocks.at(second, ahead)), [""; 0]);
        }
        assert!(waiting.looked.instant > clocks.at(3_000, 0).instant, "they were looked at once");
    }

    #[test]
    fn a_clock_that_is_set_back_ends_no_wait() {
        let clocks = Clocks::new();
        let mut waiting = waiting(clocks.at(0, 0));
        assert_eq!(waiting.rung(clocks.at(10, -7_200_000)), [""; 0]);
        assert_eq!(waiting.rung(clocks.at(11, 0)), [""; 0], "and set right again");
        assert_eq!(waiting.rung(clocks.at(12, 3_600_000)), ["soon"]);
    }

    #[test]
    fn a_jump_while_a_wait_is_reckoned_is_not_missed() {
        let clocks = Clocks::new();
        let mut waiting = Waiting::new(clocks.at(0, 0));
        let shown = clocks.at(1, 0);
        assert_eq!(waiting.rung(clocks.at(2, 3_600_000)), [""; 0]);
        waiting.set(&"reckoned before", shown, Some(HOUR));
        assert_eq!(waiting.rung(clocks.at(3, 3_600_000)), ["reckoned before"]);
        // By the new time: its timer has run out.
        waiting.set(&"reckoned after", shown, Some(Duration::ZERO));
        assert_eq!(waiting.rung(clocks.at(4, 3_600_000)), [""; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_rung_for_by_a_timer_that_stood_still() {
        let alarms = Alarms::default();
        let before = Shown { time: super::super::now() - SignedDuration::from_hours(2), ..alarms.shown() };
        alarms.set(&"soon", before, Some(HOUR));
        assert_eq!(alarms.rung().next().await, Some("soon"));
    }
}
