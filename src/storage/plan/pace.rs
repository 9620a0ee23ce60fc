//! How many requests are under way at a time.
//!
//! Guarantees: between one and a limit. More are added while answers come as fast as they do when few are
//! under way; where they come slower, requests wait for each other and none is gained by more of them, so fewer are
//! made; where the API server says that it has too many (429), half of them.
//! Assumes: the same kind of request throughout.

use std::time::Duration;

/// With how many it begins.
const FIRST: f64 = 4.0;

/// How many are added at a time.
const MORE: f64 = 2.0;

/// Fewer answers than that say too little of how fast they come: one of them may have waited for a disk.
const LEAST_ANSWERS: f64 = 16.0;

/// How much of the way from the fastest answers to those of now the former go each time: what was once fast, as long as
/// nothing else was to be done, says less and less.
const FORGOTTEN: f64 = 0.002;

/// Answers that take so many times as long as the fastest have waited for others.
const SLOW: f64 = 2.0;
/// Up to so many times they have not.
const FAST: f64 = 1.5;
/// How much of what is under way is kept on where answers are slow.
const LESS: f64 = 0.8;

/// So few do not wait for each other: where their answers are slow, answers are slow now.
const FEW: f64 = 3.0;

/// How many requests may be under way.
#[derive(Clone, Debug)]
pub struct Pace {
    limit: f64,
    most: f64,
    /// Answers since the limit changed last, and how long they took together, in seconds.
    answers: u32,
    took: f64,
    /// How long answers took on average when they came fastest.
    fastest: Option<f64>,
    /// How many were under way when they became fewer, and are still to be answered: what the API server says to them
    /// is nothing new.
    old: u32,
}

impl Pace {
    /// One that never has more than `most` under way.
    #[must_use]
    pub fn new(most: u16) -> Self {
        let most = f64::from(most.max(1));
        Self { limit: FIRST.min(most), most, answers: 0, took: 0.0, fastest: None, old: 0 }
    }

    /// How many may be under way.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and a u16")]
    pub const fn limit(&self) -> usize {
        self.limit as usize
    }

    /// An answer came after so long.
    pub fn answered(&mut self, after: Duration) {
        self.old = self.old.saturating_sub(1);
        self.answers += 1;
        self.took += after.as_secs_f64();
        if f64::from(self.answers) < (self.limit.floor() * 2.0).max(LEAST_ANSWERS) {
            return;
        }
        let mean = self.took / f64::from(self.answers);
        let fastest =
            self.fastest.map_or(mean, |fastest| mean.min((mean - fastest).mul_add(FORGOTTEN, fastest)));
        self.fastest = Some(fastest);
        if mean > fastest * SLOW && self.limit < FEW {
            self.fastest = Some(mean);
            self.set(self.limit);
        } else if mean > fastest * SLOW {
            self.set(self.limit * LESS);
        } else if mean < fastest * FAST {
            self.set(self.limit + MORE);
        } else {
            self.set(self.limit);
        }
    }

    /// The API server said that it has too many requests.
    pub fn throttled(&mut self) {
        if self.old > 0 {
            self.old -= 1;
            return;
        }
        self.old = u32::try_from(self.limit()).unwrap_or(u32::MAX) - 1;
        self.set(self.limit / 2.0);
    }

    fn set(&mut self, limit: f64) {
        self.limit = limit.clamp(1.0, self.most);
        self.answers = 0;
        self.took = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of a server that works on `able` requests at a time, each for 5 ms, until the limit has settled.
    fn settled(pace: &mut Pace, able: f64) -> usize {
        for _ in 0..5000 {
            let waits = (f64::from(u32::try_from(pace.limit()).unwrap()) / able).max(1.0);
            pace.answered(Duration::from_secs_f64(0.005 * waits));
        }
        pace.limit()
    }

    #[test]
    fn it_takes_what_a_server_can_do_and_little_more() {
        assert_eq!(settled(&mut Pace::new(16), 100.0), 16, "the limit");
        let few = settled(&mut Pace::new(64), 6.0);
        assert!((6..=14).contains(&few), "{few}");
        let one = settled(&mut Pace::new(16), 1.0);
        assert!((1..=10).contains(&one), "{one}");
    }

    #[test]
    fn it_goes_on_where_a_server_has_become_slow_for_good() {
        let mut pace = Pace::new(16);
        settled(&mut pace, 100.0);
        let mut least = pace.limit();
        for _ in 0..5000 {
            pace.answered(Duration::from_millis(50));
            least = least.min(pace.limit());
        }
        assert_eq!((least, pace.limit()), (2, 16));
    }

    #[test]
    fn it_halves_what_is_too_much_and_never_stands_still() {
        let mut pace = Pace::new(16);
        settled(&mut pace, 100.0);
        for _ in 0..16 {
            pace.throttled();
            assert_eq!(pace.limit(), 8, "all that were under way are one event");
        }
        for _ in 0..100 {
            pace.throttled();
        }
        assert_eq!(pace.limit(), 1);
        assert_eq!(settled(&mut pace, 100.0), 16, "it comes back");
        assert_eq!(Pace::new(0).limit(), 1);
        assert_eq!(Pace::new(2).limit(), 2);
    }
}
