//! The present, corrected if this clock is behind the clock by which a count was written. Pure.
//!
//! Guarantees: a transition that another replica has carried out is not undone by a replica whose clock is behind: it
//! waits at that transition until its clock has caught up. At a boundary that thousands share all counts are written
//! before the first status is, so the count shows it too, and not the status alone.
//! Assumes: the clocks of two replicas differ by two minutes at most.
//! Never: moves the present of an object whose spec has changed since the status was written.

use jiff::{SignedDuration, Timestamp};

use super::facts::{Counter, Facts};
use super::moment::Moment;
use super::own_count;
use crate::kinds::tdset::api::schedule::{Effective, Transition};
use crate::kinds::tdset::observation::Writer;
use crate::kinds::tdset::spec::Timetable;

/// Most that the clocks of two replicas differ by.
pub const SKEW: SignedDuration = SignedDuration::from_mins(2);

/// The moment to plan for: the time of the observation, or the next transition if it is near and was carried out.
pub fn present<'a>(facts: &Facts<'a>, timetable: &'a Timetable) -> Moment<'a> {
    let now = Moment::new(facts.observed.now, facts, timetable);
    match ahead(facts, &now) {
        Some(time) => now.moved(time, facts),
        None => now,
    }
}

/// The time of the next transition, if it is near and was carried out.
fn ahead(facts: &Facts, now: &Moment) -> Option<Timestamp> {
    let next = now.next().filter(|_| !facts.is_edited)?;
    let is_near = next.time.duration_since(now.time) <= SKEW;
    let is_carried_out = || is_reported(facts, now, next) || is_written(facts, now, next);
    (is_near && is_carried_out()).then_some(next.time)
}

/// Whether the status reports a transition that is still to come.
fn is_reported(facts: &Facts, now: &Moment, next: &Transition) -> bool {
    // A transition that the status itself announces is not the one that it reports.
    let promised = facts.observed.status.next_transition.as_ref();
    let is_past = promised.is_none_or(|promised| promised.time.0 > next.time);
    is_past && !reports(facts, now.effective()) && reports(facts, &next.to)
}

/// Whether the count of a transition that is still to come, by the status too, is there, and no other client is known to
/// have written it.
fn is_written(facts: &Facts, now: &Moment, next: &Transition) -> bool {
    let status = &facts.observed.status;
    let is_ahead = status.next_transition.as_ref().is_some_and(|promised| promised.time.0 == next.time);
    if !is_ahead || !reports(facts, now.effective()) || facts.hold.is_some() || status.ramp.is_some() {
        return false;
    }
    let to_restore = own_count::to_restore(facts, now.effective());
    let (before, after) = (now.effective().replicas.or(to_restore), next.to.replicas.or(to_restore));
    // Beside an autoscaler that rests, the bounds are as they were.
    let rests = facts.observed.autoscaler.is_some() && (before == Some(0) || after == Some(0));
    let found = if rests { facts.workload() } else { facts.counter() };
    let is_it = |found: &Counter| {
        Some(found.count()) == after && !found.is_unset() && !matches!(found.writer(), Writer::Other(_))
    };
    // A count that is to be restored is recorded before another one is written.
    before.is_some() && before != after && found.as_ref().is_some_and(is_it)
}

/// Whether the status reports this phase.
fn reports(facts: &Facts, effective: &Effective) -> bool {
    let status = &facts.observed.status;
    let reported = (status.active_window.as_deref(), status.scheduled_replicas);
    reported == (Some(&*effective.source.to_string()), effective.replicas)
}
