//! Transitions: which count is asked for since the last status, and since when. Pure.
//!
//! Guarantees: a count that follows from the timetable and was written is in a transition, once; also where the
//! timetable went back to what the status says before that was reported.

use jiff::{SignedDuration, Timestamp};

use super::facts::Counter;
use super::hold::Hold;
use super::schedule_state::ScheduleState;
use crate::kinds::tdset::api::v1::{PastTransition, Phase};
use crate::kinds::tdset::observation::Writer;

/// A nanosecond, to include a boundary in what lies after.
const INSTANT: SignedDuration = SignedDuration::from_nanos(1);

/// How far back the last change is looked for, in days: mostly it is near.
const LOOKS_BACK: [i64; 3] = [1, 8, 400];

impl ScheduleState<'_> {
    /// The transition between what the status says and now, where it was carried out, or is by this plan.
    pub fn transition(&self) -> Option<PastTransition> {
        if !self.facts.writes_count() || self.facts.is_count_refused() {
            return None;
        }
        // Where the workload is left alone no count is carried out.
        self.scheduled()?;
        let (to, held) = (self.effective.phase(), self.facts.hold);
        // What another client wrote meanwhile stands, and nothing was carried out.
        let stands = self.replica_target.manual.is_some() && self.wanted().is_none();
        let is_all = held.is_some() || self.effective.replicas.is_none();
        if is_all && stands && self.carried(&to).is_none() {
            return None;
        }
        let reported = match held {
            Some(_) => self.facts.reported.clone().unwrap_or_default(),
            None => self.facts.reported.clone()?,
        };
        let from = match held {
            Some(_) => self.before_the_hold(reported, &to)?,
            None if reported == to => self.untold(&to)?,
            None => reported,
        };
        // The count for all other times may be taken out while the workload is on its way there.
        let is_goal = to.replicas.is_none() && from.window == to.window && from.replicas == self.scheduled();
        if from == to || is_goal {
            return None;
        }
        if let Some(carried) = self.carried(&to) {
            return Some(carried.clone());
        }
        let time = match held {
            None => self.boundary(),
            Some(Hold::Refused) => self.last_change(),
            Some(Hold::Suspended | Hold::Conflict | Hold::Unread | Hold::Blocked) => None,
        };
        let time = time.unwrap_or(self.now);
        Some(PastTransition { time: time.into(), from, to, lateness_ms: lateness(time, self.now) })
    }

    /// What there was until the count was no longer held back: the count that was found, where that is another one; or
    /// else what the last transition led to, for its successor may be written and not reported. None where that is what
    /// the timetable asks for, and where a ramp goes on whose beginning was reported.
    fn before_the_hold(&self, reported: Phase, to: &Phase) -> Option<Phase> {
        if let Some(carried) = self.carried(to) {
            return Some(carried.from.clone());
        }
        let scheduled = self.scheduled()?;
        let last = self.facts.observed.status.last_transition.as_ref().map(|last| &last.to);
        let goes_on = self.facts.observed.status.ramp.as_ref().is_some_and(|ramp| ramp.to == scheduled);
        if self.facts.hold == Some(Hold::Unread) && goes_on && last == Some(to) {
            return None;
        }
        let found = self.facts.counter().filter(|counter| counter.differs(scheduled));
        if let Some(found) = found {
            return Some(Phase { replicas: Some(found.count()), ..reported }).filter(|from| from != to);
        }
        last.filter(|last| last.replicas != to.replicas).cloned()
    }

    /// What there was until now, although the status reports what is asked for now: a count that we wrote and that the
    /// status never reported, because the next transition, back to what it reports, came first.
    fn untold(&self, to: &Phase) -> Option<Phase> {
        if let Some(carried) = self.carried(to) {
            let is_reported = self.facts.observed.carried.reported_by(&self.facts.observed.status).is_some();
            return Some(carried.from.clone()).filter(|_| !is_reported);
        }
        let is_ours =
            |found: &Counter| matches!(found.writer(), Writer::Ours | Writer::Maker) && !found.is_unset();
        let (found, wanted) = match self.replica_target.workload {
            Some(count) => (self.facts.workload(), Some(count)),
            None => (self.facts.counter(), self.wanted()),
        };
        let found = found.filter(is_ours)?;
        let is_on_a_ramp = self.replica_target.ramp.is_some() || self.facts.observed.status.ramp.is_some();
        if wanted.is_none_or(|wanted| wanted == found.count()) || is_on_a_ramp {
            return None;
        }
        let passed =
            self.boundary().filter(|_| self.has_missed()).and_then(|time| time.checked_sub(INSTANT).ok());
        let window = match (&self.facts.observed.carried.transition, passed) {
            (Some(carried), _) if carried.to.replicas == Some(found.count()) => carried.to.window.clone(),
            (_, Some(passed)) => self.schedule().effective(passed).phase().window,
            (_, None) => return None,
        };
        Some(Phase { window, replicas: Some(found.count()) })
    }

    /// The transition to that, where it was carried out and not reported.
    fn carried(&self, to: &Phase) -> Option<&PastTransition> {
        self.facts.observed.carried.transition.as_ref().filter(|carried| carried.to == *to)
    }

    /// Whether a transition has passed that the status speaks of as ahead. There may have been several, and what is
    /// asked for now may be what was reported then.
    pub fn has_missed(&self) -> bool {
        let promised = self.facts.observed.status.next_transition.as_ref();
        promised.is_some_and(|next| next.time.0 <= self.now)
    }

    /// When the timetable began to ask for what it asks for now, as far as the status knew of it before.
    pub fn boundary(&self) -> Option<Timestamp> {
        let promised =
            self.facts.observed.status.next_transition.as_ref().filter(|_| !self.facts.is_edited)?;
        let before = promised.time.0.checked_sub(INSTANT).ok()?;
        let passed = self.schedule().changes(before).take_while(|change| change.time <= self.now);
        passed.last().map(|change| change.time)
    }

    /// When the timetable began to ask for what it asks for now, whatever the status knows.
    pub fn last_change(&self) -> Option<Timestamp> {
        let now = self.now;
        LOOKS_BACK.into_iter().find_map(|days| {
            let since = now.checked_sub(SignedDuration::from_hours(24 * days)).ok()?;
            let passed = self.schedule().changes(since).take_while(|change| change.time <= now);
            passed.last().map(|change| change.time)
        })
    }
}

/// Milliseconds from `time` to `now`.
#[must_use]
pub fn lateness(time: Timestamp, now: Timestamp) -> i64 {
    i64::try_from(now.duration_since(time).as_millis()).unwrap_or(i64::MAX)
}
