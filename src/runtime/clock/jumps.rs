//! Jumps of the wall clock, which no timer notices: the clock is set, or the machine comes back from sleep.
//!
//! Guarantees: a jump by more than [`DRIFT`] is noticed within [`PAUSE`], whatever was computed before or while it came.
//! Assumes: timers do not count the time that a machine sleeps, or are right about it.

use std::time::Duration;

use futures::stream::{self, Stream};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Between two looks at the clocks.
const PAUSE: Duration = Duration::from_secs(1);

/// By how much the clocks may drift apart before that counts as a jump: a clock that is slewed by half a thousandth needs
/// more than an hour to get there.
const DRIFT: SignedDuration = SignedDuration::from_secs(2);

/// What the clocks show at a moment.
#[derive(Clone, Copy, Debug)]
struct Shown {
    time: Timestamp,
    instant: Instant,
}

impl Shown {
    fn now() -> Self {
        Self { time: super::now(), instant: super::instant() }
    }

    /// Whether the wall clock has jumped since the `earlier` moment.
    fn jumped_from(&self, earlier: &Self) -> bool {
        let passed = SignedDuration::try_from(self.instant.duration_since(earlier.instant));
        let by_wall = self.time.duration_since(earlier.time);
        by_wall.saturating_sub(passed.unwrap_or(SignedDuration::MAX)).abs() > DRIFT
    }
}

/// An item for each jump of the wall clock, forward or back.
pub fn jumps() -> impl Stream<Item = ()> + Send + 'static {
    stream::unfold(Shown::now(), async |looked| {
        loop {
            tokio::time::sleep(super::pause(PAUSE)).await;
            let now = Shown::now();
            if now.jumped_from(&looked) {
                return Some(((), now));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_jumps_where_the_timers_do_not_follow() {
        let begun = Shown::now();
        let after = |seconds: u64, ahead: i64| {
            let passed = Duration::from_secs(seconds);
            let time =
                begun.time + SignedDuration::try_from(passed).unwrap() + SignedDuration::from_millis(ahead);
            Shown { time, instant: begun.instant + passed }
        };
        for (seconds, ahead, is_jump) in [
            (1, 0, false),
            (3600, 1_900, false),
            (3600, 2_100, true),
            (10, 7 * 3_600_000, true),
            (10, -7_200_000, true),
        ] {
            assert_eq!(after(seconds, ahead).jumped_from(&begun), is_jump, "{seconds} {ahead}");
        }
    }
}
