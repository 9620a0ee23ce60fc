//! Transitions: which phase began since the last status, and when. Pure.
//!
//! Guarantees: a count that follows from the timetable and was written is in a transition, once; also if the timetable
//! went back to the phase of the status before that count was reported.
//! Assumes: no other client writes the phase and the transitions of the status.
//! Never: finds a transition while something is in the way, or after the count was refused.

use jiff::Timestamp;

use super::facts::{Counter, Facts};
use super::hold::Hold;
use super::moment::INSTANT;
use super::target::View;
use crate::kinds::tdset::api::v1::{PastTransition, Phase};
use crate::kinds::tdset::observation::Writer;

/// The transition between the status and now, if it was carried out, or is by this plan.
pub fn transition(view: View) -> Option<PastTransition> {
    let View { facts, moment, target } = view;
    if !facts.writes_count() || facts.is_count_refused() {
        return None;
    }
    // While the workload is left alone no count is carried out.
    target.scheduled?;
    let to = &moment.phase;
    // A count that another client wrote meanwhile stands, and nothing was carried out.
    let stands = target.manual.is_some() && target.count.is_none();
    let is_all = facts.hold.is_some() || to.replicas.is_none();
    if is_all && stands && carried(facts, to).is_none() {
        return None;
    }
    let from = match (facts.hold, facts.reported.clone()) {
        (Some(_), reported) => before_the_hold(view, reported.unwrap_or_default())?,
        (None, Some(reported)) if reported == *to => unreported(view)?,
        (None, reported) => reported?,
    };
    // The count for all other times may be taken out while the workload is on its way there.
    let is_goal = to.replicas.is_none() && from.window == to.window && from.replicas == target.scheduled;
    if from == *to || is_goal {
        return None;
    }
    if let Some(carried) = carried(facts, to) {
        return Some(carried.clone());
    }
    let time = match facts.hold {
        None => moment.boundary(facts),
        Some(Hold::Refused) => moment.last_change(),
        Some(Hold::Suspended | Hold::Conflict | Hold::Unread | Hold::Blocked) => None,
    };
    let time = time.unwrap_or(moment.time);
    let lateness_ms = lateness(time, moment.time);
    Some(PastTransition { time: time.into(), from, to: to.clone(), lateness_ms })
}

/// The phase until the count was no longer held back: the count that was found, if it is another one. If not, the phase
/// that the last transition led to, because its successor may be written and not reported. None if that is the present
/// phase, or if a ramp goes on whose beginning was reported.
fn before_the_hold(View { facts, moment, target }: View, reported: Phase) -> Option<Phase> {
    let (to, status) = (&moment.phase, &facts.observed.status);
    if let Some(carried) = carried(facts, to) {
        return Some(carried.from.clone());
    }
    let scheduled = target.scheduled?;
    let last = status.last_transition.as_ref().map(|last| &last.to);
    let goes_on = status.ramp.as_ref().is_some_and(|ramp| ramp.to == scheduled);
    if facts.hold == Some(Hold::Unread) && goes_on && last == Some(to) {
        return None;
    }
    let found = facts.counter().filter(|counter| counter.differs(scheduled));
    if let Some(found) = found {
        return Some(Phase { replicas: Some(found.count()), ..reported }).filter(|from| from != to);
    }
    last.filter(|last| last.replicas != to.replicas).cloned()
}

/// The phase until now, although the status reports the present phase: gatehouse wrote its count, and the status never
/// reported it, because the next transition, back to the phase of the status, came first.
fn unreported(View { facts, moment, target }: View) -> Option<Phase> {
    let unreported = &facts.observed.remembered.carried;
    if let Some(carried) = carried(facts, &moment.phase) {
        let is_reported = unreported.reported_by(&facts.observed.status).is_some();
        return Some(carried.from.clone()).filter(|_| !is_reported);
    }
    let is_ours =
        |found: &Counter| matches!(found.writer(), Writer::Ours | Writer::Maker) && !found.is_unset();
    let (found, count) = match target.workload {
        Some(count) => (facts.workload(), Some(count)),
        None => (facts.counter(), target.count),
    };
    let found = found.filter(is_ours)?;
    let is_on_a_ramp = target.ramp.is_some() || facts.observed.status.ramp.is_some();
    if count.is_none_or(|count| count == found.count()) || is_on_a_ramp {
        return None;
    }
    let boundary = moment.boundary(facts).filter(|_| moment.has_missed(facts));
    let window = match (&unreported.transition, boundary.and_then(|time| time.checked_sub(INSTANT).ok())) {
        (Some(carried), _) if carried.to.replicas == Some(found.count()) => carried.to.window.clone(),
        (_, Some(passed)) => moment.schedule().effective(passed).phase().window,
        (_, None) => return None,
    };
    Some(Phase { window, replicas: Some(found.count()) })
}

/// The transition to that phase, if it was carried out and not reported.
fn carried<'a>(facts: &Facts<'a>, to: &Phase) -> Option<&'a PastTransition> {
    facts.observed.remembered.carried.transition.as_ref().filter(|carried| carried.to == *to)
}

/// Milliseconds from `time` to `now`.
#[must_use]
pub fn lateness(time: Timestamp, now: Timestamp) -> i64 {
    i64::try_from(now.duration_since(time).as_millis()).unwrap_or(i64::MAX)
}
