//! The leader and its term, computed from observations of the lease. Pure: each moment is an argument.
//!
//! ```text
//!   a renewal is sent ──▶ the lease changes ──▶ others see the change
//!        │◀─ deadline, 2/3 ─▶│ the holder stops        │
//!                                                      │◀──────── duration ────────▶│ another takes it
//! ```
//!
//! Guarantees: a holder's term ends [`Pace::deadline`] after it *sent* the last renewal that succeeded, and no
//! candidate takes a lease before its duration has gone by since a change of it was *seen*. So there are no two holders
//! while one clock runs less than half as fast again as another, whatever is lost, delayed or delivered late. Clocks
//! are compared with themselves alone: what `renewTime` says is for people. Every write is of the version that was
//! read.
//! Assumes: no client deletes the lease, and the clock runs while the process is halted (a machine that is suspended
//! stops it: such a holder goes on for the rest of its term).
//!
//! The rules are those of client-go, `tools/leaderelection`.

use std::time::Duration;

use jiff::Timestamp;

/// A moment of this process's own clock, which never goes back: the time since some start.
pub type Moment = Duration;

/// How fast things go. All of it follows from the duration, in client-go's proportions of 15, 10 and 2 seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How long others leave a lease alone that does not change.
    pub duration: Duration,
    /// How long a holder goes on after its last renewal.
    pub deadline: Duration,
    /// The time between two looks, and between two renewals.
    pub retry: Duration,
    /// How long one call may take: a second one fits in before the deadline (kubernetes/kubernetes#98059).
    pub call: Duration,
}

impl Pace {
    /// What follows from a lease's duration.
    #[must_use]
    pub const fn of(duration: Duration) -> Self {
        let deadline = Duration::from_nanos_u128(duration.as_nanos() * 2 / 3);
        let retry = Duration::from_nanos_u128(duration.as_nanos() * 2 / 15);
        Self { duration, deadline, retry, call: Duration::from_nanos_u128(deadline.as_nanos() / 2) }
    }
}

/// What a lease says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; empty where it was released.
    pub holder: String,
    /// For how long after a change, in whole seconds.
    pub seconds: u32,
    /// How often it went from one to another.
    pub transitions: u32,
    /// Since when the holder has it.
    pub acquired: Option<Timestamp>,
    /// When the holder wrote last.
    pub renewed: Option<Timestamp>,
}

/// What is to be written. `renewed` is the moment of writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The version that is replaced; none where there is no lease.
    pub version: Option<String>,
    /// Who holds it then; empty to release it.
    pub holder: String,
    /// For how long, in whole seconds.
    pub seconds: u32,
    /// How often it went from one to another.
    pub transitions: u32,
    /// Since when; none for the moment of writing.
    pub acquired: Option<Timestamp>,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read the lease.
    Read,
    /// Write it.
    Write(Claim),
    /// Nothing, until then.
    Wait(Moment),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The lease as it was read, and its version.
    Found(Record, String),
    /// There is none.
    Absent,
    /// The lease as it was written, and its version.
    Written(Record, String),
    /// Another client wrote first.
    LostRace,
    /// None that is conclusive: whether a write was done is unknown.
    Silence,
}

/// Something that is otherwise now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// This process leads.
    Won,
    /// It does not any more.
    Lost(Loss),
}

/// Why a term ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// Another one holds the lease. Only a clock that is badly off, or a person, can do that.
    #[error("it is held by {0:?}")]
    Taken(String),
    /// It could not be renewed.
    #[error("it could not be renewed in time")]
    Deadline,
}

/// The record that was seen last, and when first.
#[derive(Clone, Debug)]
struct Seen {
    record: Record,
    at: Moment,
}

/// One candidate's knowledge.
#[derive(Clone, Debug)]
pub struct Term {
    identity: String,
    pace: Pace,
    seen: Option<Seen>,
    /// The version that was read last; none where there is no lease.
    version: Option<String>,
    /// Whether what is known may be acted upon without reading first.
    fresh: bool,
    /// No call before.
    next: Moment,
    /// Until when this process leads.
    until: Option<Moment>,
}

impl Term {
    /// A candidate that knows nothing yet. `identity` is unique among all processes.
    #[must_use]
    pub const fn new(identity: String, pace: Pace) -> Self {
        Self { identity, pace, seen: None, version: None, fresh: false, next: Moment::ZERO, until: None }
    }

    /// Until when this process leads, if it does.
    #[must_use]
    pub const fn until(&self) -> Option<Moment> {
        self.until
    }

    /// The holder of the lease, as far as is known; empty where there is none.
    #[must_use]
    pub fn holder(&self) -> &str {
        self.seen.as_ref().map_or("", |seen| &seen.record.holder)
    }

    /// What to do next.
    #[must_use]
    pub fn next(&self, now: Moment) -> Action {
        if now < self.next {
            return Action::Wait(self.next);
        }
        if !self.fresh {
            return Action::Read;
        }
        Action::Write(self.claim())
    }

    /// The result of an action that was begun at `sent`.
    pub fn heard(&mut self, answer: Answer, sent: Moment, now: Moment) -> Option<Change> {
        match answer {
            Answer::Written(record, version) => return self.written(record, version, sent, now),
            Answer::Found(record, version) => {
                self.version = Some(version);
                self.note(record, now);
                let lost = self.until.is_some() && self.holder() != self.identity;
                self.consider(sent, now, lost);
                return lost.then(|| Change::Lost(Loss::Taken(self.holder().to_owned())));
            }
            Answer::Absent => {
                self.version = None;
                self.consider(sent, now, false);
            }
            Answer::LostRace => (self.fresh, self.next) = (false, now),
            Answer::Silence => {
                // A holder tries the same again: had it been done after all, the version would tell.
                self.fresh = self.fresh && self.until.is_some();
                self.next = now.max(sent + self.pace.retry);
            }
        }
        None
    }

    /// The term is over, should it be.
    pub fn tick(&mut self, now: Moment) -> Option<Loss> {
        self.until.filter(|until| now >= *until)?;
        self.resign(now);
        Some(Loss::Deadline)
    }

    /// This process acts no more, whatever the lease says.
    pub const fn resign(&mut self, now: Moment) {
        (self.until, self.fresh, self.next) = (None, false, now);
    }

    /// What releases the lease, where this process holds it and does not lead any more.
    #[must_use]
    pub fn release(&self) -> Option<Claim> {
        let record = &self.seen.as_ref()?.record;
        let version = self.version.clone()?;
        (self.until.is_none() && record.holder == self.identity).then(|| Claim {
            version: Some(version),
            holder: String::new(),
            seconds: 1,
            transitions: record.transitions,
            acquired: None,
        })
    }

    fn written(&mut self, record: Record, version: String, sent: Moment, now: Moment) -> Option<Change> {
        self.version = Some(version);
        self.note(record, now);
        let until = sent + self.pace.deadline;
        if self.holder() != self.identity || now >= until {
            (self.fresh, self.next) = (false, now);
            return None;
        }
        (self.fresh, self.next) = (true, sent + self.pace.retry);
        self.until.replace(until).is_none().then_some(Change::Won)
    }

    /// What is known has just been read: write now, or look again later.
    fn consider(&mut self, sent: Moment, now: Moment, lost: bool) {
        if lost {
            self.until = None;
        }
        self.fresh = self.until.is_some() || self.is_free(now);
        if !self.fresh {
            let again = sent + self.pace.retry;
            self.next = self.expiry().map_or(again, |expiry| again.min(expiry)).max(now);
        }
    }

    /// A lease that is gone is no freer than it was: who held it may not know.
    fn is_free(&self, now: Moment) -> bool {
        let is_ours = self.holder().is_empty() || self.holder() == self.identity;
        is_ours || self.expiry().is_none_or(|expiry| now >= expiry)
    }

    fn expiry(&self) -> Option<Moment> {
        let seen = self.seen.as_ref()?;
        let said = Duration::from_secs(seen.record.seconds.into());
        Some(seen.at + if said.is_zero() { self.pace.duration } else { said })
    }

    /// A record counts from when it was first seen; one that is unchanged is no sign of life.
    fn note(&mut self, record: Record, now: Moment) {
        if self.seen.as_ref().is_none_or(|seen| seen.record != record) {
            self.seen = Some(Seen { record, at: now });
        }
    }

    fn claim(&self) -> Claim {
        let before = self.seen.as_ref().map(|seen| &seen.record);
        let renewed = before.filter(|record| record.holder == self.identity);
        let transitions = before.map_or(0, |record| record.transitions.saturating_add(1));
        let seconds = self.pace.duration.as_secs() + u64::from(self.pace.duration.subsec_nanos() > 0);
        Claim {
            version: self.version.clone(),
            holder: self.identity.clone(),
            seconds: u32::try_from(seconds).unwrap_or(u32::MAX),
            transitions: renewed.map_or(transitions, |record| record.transitions),
            acquired: renewed.and_then(|record| record.acquired),
        }
    }
}

#[cfg(test)]
mod tests;
