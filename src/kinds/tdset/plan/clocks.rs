//! The present, corrected where this clock is behind the one by which a count was written. Pure.
//!
//! Guarantees: a transition that another replica has carried out is not undone by one whose clock is behind: it waits at
//! that transition until its clock has caught up. At a boundary that thousands share all counts are written before the
//! first status is, so the count shows it too, and not the status alone.

use jiff::{SignedDuration, Timestamp};

use super::facts::Counter;
use super::schedule_state::ScheduleState;
use crate::kinds::tdset::api::schedule::{Effective, Transition};
use crate::kinds::tdset::observation::Writer;

/// Most that the clocks of two replicas differ by.
pub const SKEW: SignedDuration = SignedDuration::from_mins(2);

impl ScheduleState<'_> {
    /// What time it is: that of the next transition, where it is near and was carried out.
    pub fn steady(&self) -> Timestamp {
        let now = self.now;
        let Some(next) = self.next().filter(|_| !self.facts.is_edited) else { return now };
        let is_near = next.time.duration_since(now) <= SKEW;
        if is_near && (self.has_told(next) || self.has_written(next)) { next.time } else { now }
    }

    /// Whether the status reports a transition that is still to come.
    fn has_told(&self, next: &Transition) -> bool {
        let status = &self.facts.observed.status;
        // A change that is still to come by the status is not the one that it reports.
        let is_past = status.next_transition.as_ref().is_none_or(|promised| promised.time.0 > next.time);
        is_past && !self.tells(&self.effective) && self.tells(&next.to)
    }

    /// Whether the count of a transition that is still to come, by the status too, is there, and no other client is known
    /// to have written it.
    fn has_written(&self, next: &Transition) -> bool {
        let status = &self.facts.observed.status;
        let is_ahead = status.next_transition.as_ref().is_some_and(|promised| promised.time.0 == next.time);
        if !is_ahead || !self.tells(&self.effective) || self.facts.hold.is_some() || status.ramp.is_some() {
            return false;
        }
        let count = |effective: &Effective| effective.replicas.or_else(|| self.noted());
        let (before, after) = (count(&self.effective), count(&next.to));
        // Beside an autoscaler that rests, the bounds are as they were.
        let rests = self.facts.observed.autoscaler.is_some() && (before == Some(0) || after == Some(0));
        let found = if rests { self.facts.workload() } else { self.facts.counter() };
        let is_it = |found: &Counter| {
            Some(found.count()) == after && !found.is_unset() && !matches!(found.writer(), Writer::Other(_))
        };
        // A count that is to be given back is written down before another one is written.
        before.is_some() && before != after && found.as_ref().is_some_and(is_it)
    }

    /// Whether the status says that this holds.
    fn tells(&self, effective: &Effective) -> bool {
        let status = &self.facts.observed.status;
        let told = (status.active_window.as_deref(), status.scheduled_replicas);
        told == (Some(&*effective.source.to_string()), effective.replicas)
    }
}
