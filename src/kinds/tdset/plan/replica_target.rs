//! Where the count ought to be now, and who has the say. Pure.
//!
//! Guarantees: all of it follows from the timetable, the clock, and what the status and the workload say. So after a
//! restart, after a change of the leader, or after boundaries that nobody saw, it is as if nothing had happened:
//!
//! - a ramp is a line from the count that was found when it began; the status keeps both, and any step is reckoned
//!   from them;
//! - a count of another owner stands if it was written after the last transition; the workload's managed fields say
//!   who wrote it and when. They tell no time of what was written by the scale subresource of a built-in kind, as
//!   `kubectl scale` does; then it stands if all that the timetable asks for had been told before.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::schedule_state::{ManualCount, ReplicaTarget, ScheduleState};
use crate::api::condition;
use crate::kinds::tdset::api::status::ConditionType;
use crate::kinds::tdset::api::v1::RampStatus;
use crate::kinds::tdset::observation::{FieldOwner, Writer};

/// Where the count of a TDSet ought to be.
#[must_use]
pub fn compute(view: &ScheduleState) -> ReplicaTarget {
    if !view.counts() {
        return ReplicaTarget::default();
    }
    let scheduled = view.scheduled();
    let Some(counter) = view.counter() else {
        return ReplicaTarget { wanted: Some(scheduled), ..ReplicaTarget::default() };
    };
    let has = counter.count();
    if has != scheduled
        && view.spec.keeps_manual_counts()
        && let Some(manual) = kept(view, has, counter.writer())
    {
        return ReplicaTarget { manual: Some(manual), ..ReplicaTarget::default() };
    }
    let Some(ramp) = ramp(view, has, scheduled) else {
        return ReplicaTarget { wanted: Some(scheduled), ..ReplicaTarget::default() };
    };
    let now = view.observed.now;
    let elapsed = Duration::try_from(now.duration_since(ramp.since.0)).unwrap_or_default();
    let place = view.timetable.ramp.at(ramp.from, ramp.to, elapsed);
    let step = place.next.and_then(|next| {
        let next = SignedDuration::try_from(next).ok()?;
        ramp.since.0.checked_add(next).ok()
    });
    ReplicaTarget { wanted: Some(place.replicas), ramp: step.is_some().then_some(ramp), step, manual: None }
}

/// Whether the count stands because another client wrote it since the last transition.
fn kept(view: &ScheduleState, count: i32, writer: Writer) -> Option<ManualCount> {
    let told = view.told().is_some() && !view.is_changed() && !has_missed(view) && !was_held(view);
    let (stands, manager) = match writer {
        Writer::Ours => return None,
        Writer::Unknown => (told && view.observed.status.ramp.is_none(), None),
        Writer::Other(FieldOwner { manager, time: None }) => (told, Some(manager)),
        // Managed fields tell whole seconds.
        Writer::Other(FieldOwner { manager, time: Some(time) }) => {
            (time.as_second() >= since(view)?.as_second(), Some(manager))
        }
    };
    stands.then_some(ManualCount { count, manager })
}

/// Whether a transition has passed that the status speaks of as ahead. There may have been several, and what is asked
/// for now may be what was told then.
fn has_missed(view: &ScheduleState) -> bool {
    let promised = view.observed.status.next_transition.as_ref();
    promised.is_some_and(|next| next.time.0 <= view.observed.now)
}

/// When the transition to what is asked for now was: by the clock, by an edit, or by the creation of the object. None
/// if it is still to be carried out.
fn since(view: &ScheduleState) -> Option<Timestamp> {
    let boundary = view.last_change();
    let created = view.spec.metadata.creation_timestamp.as_ref().map(|time| time.0);
    if view.told().is_none() {
        // What was written in the same second may be what stood there before: one file often brings both.
        return boundary.max(created.and_then(|time| time.checked_add(SignedDuration::from_secs(1)).ok()));
    }
    if view.is_changed() {
        return if view.edited() { None } else { view.boundary() };
    }
    let phase = view.effective.phase();
    let last = view.observed.status.last_transition.as_ref().filter(|last| last.to == phase);
    boundary.max(last.map(|last| last.time.0)).max(created)
}

/// The ramp that the count is on, or sets out on now.
fn ramp(view: &ScheduleState, has: i32, scheduled: i32) -> Option<RampStatus> {
    let status = &view.observed.status;
    if let Some(begun) = view.observed.carried.ramp.as_ref().filter(|ramp| ramp.to == scheduled) {
        return Some(begun.clone());
    }
    let current = status.ramp.as_ref().filter(|ramp| ramp.to == scheduled && !view.edited());
    if let Some(ramp) = current {
        return Some(ramp.clone());
    }
    let sets_out = view.is_changed() || view.told().is_none() || status.ramp.is_some() || was_held(view);
    if !sets_out || has == scheduled {
        return None;
    }
    let now = view.observed.now;
    let since = if view.is_changed() { view.boundary().unwrap_or(now) } else { now };
    // As the status keeps it, so that it is the same when it is read back.
    let since = Timestamp::from_second(since.as_second()).unwrap_or(since);
    Some(RampStatus { since: since.into(), from: has, to: scheduled })
}

/// Whether the count was held back when the status was written: it has to be brought up now.
fn was_held(view: &ScheduleState) -> bool {
    let conditions = view.observed.status.conditions.as_deref().unwrap_or_default();
    let held = [ConditionType::Suspended, ConditionType::Conflict];
    held.into_iter().any(|about| condition::holds(conditions, about.as_str()))
}
