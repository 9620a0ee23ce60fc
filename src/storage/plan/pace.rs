//! How many requests run at the same time.
//!
//! Guarantees: between one and a limit. Twice as many at each step in the beginning, then a few more at a time, while
//! more of them get more done; what gains nothing is taken back. Where answers come slower, and no more is got done,
//! requests wait for each other, and fewer are made; where the API server says that it has too many (429), half of them.
//! Assumes: requests of few kinds, each of which costs the API server about the same as others of its kind.

use std::time::Duration;

use super::tally::Fate;

/// With how many it begins.
const FIRST: f64 = 8.0;

/// How many are added at a time, once it does not double any more.
const MORE: f64 = 2.0;

/// Fewer answers than that say too little of how fast they come: one of them may have waited for a disk.
const LEAST_ANSWERS: u32 = 16;

/// How much of the way from the fastest answers to those of now the former go each time: what was once fast, as long as
/// nothing else was to be done, says less and less.
const FORGOTTEN: f64 = 0.03;

/// Answers that take so many times as long as the fastest have waited for others.
const SLOW: f64 = 2.0;
/// Up to so many times they have not.
const FAST: f64 = 1.5;
/// How much of what is under way is kept on where answers are slow.
const LESS: f64 = 0.8;

/// What gets so many times as much done in the same time has gained something.
const GAIN: f64 = 1.05;

/// For how many windows no more are tried, where more have gained nothing.
const REST: u32 = 8;

/// So few do not wait for each other: where their answers are slow, answers are slow now.
const FEW: f64 = 3.0;

/// What an answer says of the work behind it. Other answers say nothing of how fast the API server works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// An object was written.
    Written,
    /// An object was read, and left as it was.
    Read,
}

impl Work {
    /// The work that the API server had with an object; none where its answer was not about the object as it is.
    #[must_use]
    pub const fn of(fate: &Fate) -> Option<Self> {
        match fate {
            Fate::Rewritten => Some(Self::Written),
            Fate::AsWanted => Some(Self::Read),
            Fate::WrittenSince | Fate::Gone | Fate::Failed(_) => None,
        }
    }
}

/// The answers of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Those since the last decision, and how long they took together, in seconds.
    answers: u32,
    took: f64,
    /// How long they took on average when they came fastest.
    fastest: Option<f64>,
}

impl Seen {
    /// Takes in how fast its answers came.
    fn learn(&mut self) {
        let mean = self.took / f64::from(self.answers.max(1));
        self.fastest = match self.fastest {
            known if self.answers == 0 => known,
            None => Some(mean),
            Some(fastest) if self.answers < LEAST_ANSWERS / 2 => Some(fastest),
            Some(fastest) => Some(mean.min((mean - fastest).mul_add(FORGOTTEN, fastest))),
        };
    }
}

/// How many requests may be under way.
#[derive(Clone, Debug)]
pub struct Pace {
    limit: f64,
    most: f64,
    /// Whether it doubles.
    is_starting: bool,
    /// What was answered since the last decision: what was written, and what was read.
    seen: [Seen; 2],
    /// When the last decision was made.
    begun: Option<Duration>,
    /// How many of each were answered in a second before that.
    before: Option<[f64; 2]>,
    /// The limit before the last decision, where that has raised it.
    raised_from: Option<f64>,
    /// For how many windows it is not raised.
    rest: u32,
    /// How many were under way when they became fewer, and are still to be answered: what the API server says to them
    /// is nothing new.
    old: u32,
}

impl Pace {
    /// One that never has more than `most` under way.
    #[must_use]
    pub fn new(most: u16) -> Self {
        let most = f64::from(most.max(1));
        Self {
            limit: FIRST.min(most),
            most,
            is_starting: true,
            seen: [Seen::default(); 2],
            begun: None,
            before: None,
            raised_from: None,
            rest: 0,
            old: 0,
        }
    }

    /// How many may be under way.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and a u16")]
    pub const fn limit(&self) -> usize {
        self.limit as usize
    }

    /// Another pass begins: what it asks may cost more or less.
    pub fn begin_pass(&mut self) {
        self.seen = [Seen::default(); 2];
        (self.begun, self.before, self.raised_from) = (None, None, None);
    }

    /// An answer came at that time, counted from any moment, after so long.
    pub fn answered(&mut self, work: Option<Work>, took: Duration, at: Duration) {
        self.old = self.old.saturating_sub(1);
        let Some(work) = work else { return };
        let begun = *self.begun.get_or_insert_with(|| at.saturating_sub(took));
        let seen = &mut self.seen[usize::from(work == Work::Read)];
        seen.answers += 1;
        seen.took += took.as_secs_f64();
        let answers: u32 = self.seen.iter().map(|seen| seen.answers).sum();
        if f64::from(answers) >= (self.limit.floor() * 2.0).max(f64::from(LEAST_ANSWERS)) {
            self.decide(at.saturating_sub(begun));
            self.begun = Some(at);
        }
    }

    /// What was answered within that time decides how many may be under way.
    fn decide(&mut self, within: Duration) {
        self.seen.iter_mut().for_each(Seen::learn);
        // How long so many answers would take if all came as fast as ever.
        let seen = self.seen;
        let work = |answers: [f64; 2]| -> f64 {
            answers.iter().zip(&seen).map(|(answers, seen)| answers * seen.fastest.unwrap_or_default()).sum()
        };
        let answers = seen.map(|seen| f64::from(seen.answers));
        let rates = answers.map(|answers| answers / within.as_secs_f64().max(f64::EPSILON));
        let before = self.before.replace(rates);
        let has_gained = before.is_some_and(|before| work(rates) > work(before) * GAIN);
        let (took, work) = (seen.iter().map(|seen| seen.took).sum::<f64>(), work(answers));
        let (is_slow, is_fast) = (took > work * SLOW, took < work * FAST);
        self.rest = self.rest.saturating_sub(1);
        if let Some(before) = self.raised_from.take().filter(|_| !has_gained) {
            (self.is_starting, self.rest) = (false, REST);
            self.set(before);
        } else if is_slow && !has_gained {
            self.is_starting = false;
            if self.limit < FEW {
                for seen in self.seen.iter_mut().filter(|seen| seen.answers > 0) {
                    seen.fastest = Some(seen.took / f64::from(seen.answers));
                }
                self.set(self.limit);
            } else {
                self.set(self.limit * LESS);
            }
        } else if (is_fast || has_gained) && self.rest == 0 {
            let before = self.limit;
            self.set(if self.is_starting { self.limit * 2.0 } else { self.limit + MORE });
            self.raised_from = Some(before).filter(|before| self.limit() > Self::whole(*before));
        } else {
            self.is_starting &= is_fast;
            self.set(self.limit);
        }
    }

    /// The API server answered that it has too many requests.
    pub fn throttled(&mut self) {
        if self.old > 0 {
            self.old -= 1;
            return;
        }
        self.old = u32::try_from(self.limit()).unwrap_or(u32::MAX) - 1;
        self.is_starting = false;
        (self.begun, self.before, self.raised_from) = (None, None, None);
        self.set(self.limit / 2.0);
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and a u16")]
    const fn whole(limit: f64) -> usize {
        limit as usize
    }

    fn set(&mut self, limit: f64) {
        self.limit = limit.clamp(1.0, self.most);
        for seen in &mut self.seen {
            (seen.answers, seen.took) = (0, 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server, the time that has passed there, and how many more answers come at this moment.
    #[derive(Default)]
    struct Server {
        passed: f64,
        together: u32,
    }

    impl Server {
        /// Lets so many answers come, each after so many seconds, as many at a time as may be.
        fn answers(&mut self, pace: &mut Pace, count: u32, work: Work, takes: impl Fn(f64) -> f64) {
            for _ in 0..count {
                let under_way = u32::try_from(pace.limit()).unwrap();
                let took = takes(f64::from(under_way));
                if self.together == 0 {
                    self.passed += took;
                    self.together = under_way;
                }
                self.together -= 1;
                let at = Duration::from_secs_f64(self.passed + 10.0);
                pace.answered(Some(work), Duration::from_secs_f64(took), at);
            }
        }
    }

    /// Answers of a server that works on `able` requests at a time, each for 5 ms, until the limit has settled.
    fn settled(pace: &mut Pace, able: f64) -> usize {
        Server::default().answers(pace, 5000, Work::Written, |waiting| 0.005 * (waiting / able).max(1.0));
        pace.limit()
    }

    #[test]
    fn it_takes_what_a_server_can_do_and_little_more() {
        assert_eq!(settled(&mut Pace::new(16), 100.0), 16, "the limit");
        let few = settled(&mut Pace::new(64), 6.0);
        assert!((6..=14).contains(&few), "{few}");
        let one = settled(&mut Pace::new(16), 1.0);
        assert!((1..=10).contains(&one), "{one}");
        let many = settled(&mut Pace::new(256), 100.0);
        assert!((90..=160).contains(&many), "{many}");
    }

    #[test]
    fn it_is_soon_as_fast_as_it_may_be() {
        let mut pace = Pace::new(64);
        Server::default().answers(&mut pace, 16 + 32 + 64, Work::Written, |_| 0.005);
        assert_eq!(pace.limit(), 64);
    }

    #[test]
    fn more_are_made_as_long_as_they_get_more_done_however_long_each_takes() {
        // Each that is under way makes the others slower, and yet two get more done than one.
        let mut pace = Pace::new(16);
        Server::default().answers(&mut pace, 5000, Work::Written, |waiting| 0.005 * waiting.powf(0.6));
        assert_eq!(pace.limit(), 16);
    }

    #[test]
    fn it_goes_on_where_a_server_has_become_slow_for_good() {
        let mut pace = Pace::new(16);
        settled(&mut pace, 100.0);
        let mut least = pace.limit();
        let mut server = Server { passed: 1000.0, together: 0 };
        for _ in 0..5000 {
            server.answers(&mut pace, 1, Work::Written, |_| 0.05);
            least = least.min(pace.limit());
        }
        assert_eq!((least, pace.limit()), (2, 16));
    }

    #[test]
    fn another_kind_of_answer_is_no_slower_one() {
        let mut pace = Pace::new(16);
        let mut server = Server::default();
        server.answers(&mut pace, 500, Work::Read, |_| 0.001);
        for _ in 0..200 {
            server.answers(&mut pace, 8, Work::Read, |_| 0.001);
            server.answers(&mut pace, 8, Work::Written, |_| 0.01);
            assert_eq!(pace.limit(), 16);
        }
        pace.begin_pass();
        server.answers(&mut pace, 5000, Work::Read, |_| 0.02);
        assert_eq!(pace.limit(), 16, "another pass has nothing to compare with");
        for _ in 0..500 {
            pace.answered(None, Duration::from_mins(1), Duration::from_hours(1));
        }
        assert_eq!(pace.limit(), 16, "a conflict says nothing");
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
