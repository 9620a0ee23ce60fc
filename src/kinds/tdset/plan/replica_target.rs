//! The count that the workload should have now, and which client decides it. Pure.
//!
//! Guarantees: all of it follows from the timetable, the clock, and what the status and the workload say. So after a
//! restart, after a change of the leader, or after boundaries that no replica saw, it is as if nothing had happened:
//!
//! - a ramp is a line from the count that was found when it began; the status keeps both, and any step is computed from
//!   them;
//! - a count of another owner stands if it was written after the last transition; the workload's managed fields say
//!   who wrote it and when. They have no time for what was written by the scale subresource of a built-in kind, as
//!   `kubectl scale` does; then it stands if all that the timetable asks for had been reported before, and goes on to
//!   stand where something could not be read for a while. A write by a tool that applies a repository again and again
//!   never stands.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::clocks::SKEW;
use super::facts::Counter;
use super::hold::Hold;
use super::schedule_state::{ManualCount, ReplicaTarget, ScheduleState};
use crate::kinds::tdset::api::v1::RampStatus;
use crate::kinds::tdset::observation::{CountField, FieldOwner, Reverted, Writer};

/// Where the count of a TDSet ought to be.
#[must_use]
pub fn compute(view: &ScheduleState) -> ReplicaTarget {
    if !view.facts.writes_count() {
        return ReplicaTarget::default();
    }
    let target = if view.sleeps() { asleep(view) } else { awake(view) };
    let waits = view
        .facts
        .observed
        .contest
        .as_ref()
        .filter(|contest| target.reverted.is_some() && view.now < contest.until && !view.facts.is_edited);
    ReplicaTarget { waits: waits.map(|contest| contest.until), ..target }
}

/// The same while the timetable asks for none beside an autoscaler that cannot have that as its lower bound: the
/// workload itself has none, and the autoscaler rests.
fn asleep(view: &ScheduleState) -> ReplicaTarget {
    let Some(workload) = view.facts.workload().filter(|workload| workload.differs(0)) else {
        return ReplicaTarget::default();
    };
    let has = workload.count();
    match kept(view, has, workload.writer()).filter(|_| view.facts.spec.keeps_manual_counts()) {
        Some(manual) => ReplicaTarget { manual: Some(manual), ..ReplicaTarget::default() },
        None => ReplicaTarget {
            workload: Some(0),
            reverted: reverted(view, &workload, 0),
            ..ReplicaTarget::default()
        },
    }
}

/// The same at all other times.
fn awake(view: &ScheduleState) -> ReplicaTarget {
    let Some(scheduled) = view.scheduled() else { return ReplicaTarget::default() };
    let Some(counter) = view.facts.counter() else {
        return ReplicaTarget { wanted: Some(scheduled), ..ReplicaTarget::default() };
    };
    let has = counter.count();
    // Outside of windows any client may scale a workload that is left alone then, also before it got its count back.
    if counter.differs(scheduled)
        && (view.facts.spec.keeps_manual_counts() || view.effective.replicas.is_none())
        && let Some(manual) = kept(view, has, counter.writer())
    {
        return ReplicaTarget { manual: Some(manual), ..ReplicaTarget::default() };
    }
    let target = match ramp(view, has, scheduled) {
        Some(ramp) => ramping(view, ramp),
        None => ReplicaTarget { wanted: Some(scheduled), ..ReplicaTarget::default() },
    };
    let wanted = target.wanted.unwrap_or(scheduled);
    let reverted = reverted(view, &counter, wanted).or_else(|| reverted_max(view, &counter));
    woken(view, ReplicaTarget { reverted, ..target }, wanted)
}

/// Where a ramp is by now. No ramp leads above the ceiling of an autoscaler, which holds at once.
fn ramping(view: &ScheduleState, ramp: RampStatus) -> ReplicaTarget {
    let elapsed = Duration::try_from(view.now.duration_since(ramp.since.0)).unwrap_or_default();
    let place = view.timetable.ramp.at(ramp.from, ramp.to, elapsed);
    let step = place.next.and_then(|next| {
        let next = SignedDuration::try_from(next).ok()?;
        ramp.since.0.checked_add(next).ok()
    });
    let ramp = step.is_some().then_some(ramp);
    ReplicaTarget { wanted: Some(view.at_most(place.replicas)), ramp, step, ..ReplicaTarget::default() }
}

/// The same, where an autoscaler rests that is to work. A HorizontalPodAutoscaler that has not gone to 0 itself does not
/// leave it by itself.
fn woken(view: &ScheduleState, target: ReplicaTarget, wanted: i32) -> ReplicaTarget {
    let Some(bounds) = view.facts.bounds() else { return target };
    let has_none = |workload: &Counter| workload.count() == 0 || workload.is_unset();
    let rests = |workload: &Counter| has_none(workload) && wanted > 0 && !bounds.leaves_zero();
    let Some(workload) = view.facts.workload().filter(rests) else { return target };
    if view.facts.spec.keeps_manual_counts()
        && let Some(manual) = kept(view, 0, workload.writer())
    {
        return ReplicaTarget { manual: Some(manual), ..target };
    }
    let reverted = target.reverted.clone().or_else(|| reverted(view, &workload, wanted));
    ReplicaTarget { workload: Some(wanted), reverted, ..target }
}

/// Whether a count may be one that the ramp of the status has led to: the one that we wrote last; or where that is not
/// known, one that it may have led to by now, also by a clock that is ahead, or before an edit changed its pace.
fn is_of_the_ramp(view: &ScheduleState, count: i32) -> bool {
    let Some(ramp) = &view.facts.observed.status.ramp else { return false };
    if let Some(written) = view.facts.observed.written {
        return count == written;
    }
    let elapsed = view.now.saturating_add(SKEW).unwrap_or(view.now).duration_since(ramp.since.0);
    let place = view.timetable.ramp.at(ramp.from, ramp.to, Duration::try_from(elapsed).unwrap_or_default());
    let by_now = if view.facts.is_edited { ramp.to } else { view.at_most(place.replicas) };
    (ramp.from.min(by_now)..=ramp.from.max(by_now)).contains(&count)
}

/// The count that another client wrote, if `wanted` takes it back.
fn reverted(view: &ScheduleState, counter: &Counter, wanted: i32) -> Option<Reverted> {
    let field = if matches!(counter, Counter::Bounds(_)) { CountField::Min } else { CountField::Replicas };
    reverted_field(view, field, counter.count(), wanted, counter.writer())
}

/// The same of the upper bound of an autoscaler.
fn reverted_max(view: &ScheduleState, counter: &Counter) -> Option<Reverted> {
    let (Counter::Bounds(bounds), Some(most)) = (counter, view.most()) else { return None };
    reverted_field(view, CountField::Max, bounds.max(), most, bounds.writer_of_max.clone())
}

/// The timetable asks for nothing else now, and an edit of something else is no reason to be silent about it.
fn reverted_field(
    view: &ScheduleState,
    field: CountField,
    has: i32,
    wanted: i32,
    writer: Writer,
) -> Option<Reverted> {
    let is_settled = view.facts.reported.is_some() && !view.is_changed() && view.facts.hold.is_none();
    if has == wanted || !is_settled {
        return None;
    }
    let manager = match writer {
        // Bounds from before an autoscaler was named do not answer ours.
        Writer::Other(_) if view.facts.is_edited && view.facts.spec.autoscaler.is_some() => return None,
        Writer::Other(FieldOwner { manager, .. }) => Some(manager),
        Writer::Unknown if !is_of_the_ramp(view, has) && !view.facts.is_edited => None,
        Writer::Unknown | Writer::Ours | Writer::Maker => return None,
    };
    Some(Reverted { manager, from: has, to: wanted, field })
}

/// Whether the count stands because another client wrote it since the last transition.
fn kept(view: &ScheduleState, count: i32, writer: Writer) -> Option<ManualCount> {
    let told = match view.facts.hold {
        None => view.facts.reported.is_some() && !view.is_changed() && !view.has_missed(),
        Some(Hold::Unread) => view.standing_override().is_some(),
        Some(_) => false,
    };
    let (stands, manager) = match writer {
        Writer::Ours | Writer::Maker => return None,
        Writer::Other(owner) if owner.is_reconciler() => return None,
        Writer::Unknown => (told && !is_of_the_ramp(view, count), None),
        Writer::Other(FieldOwner { manager, time: None }) => (told, Some(manager)),
        // Managed fields tell whole seconds.
        Writer::Other(FieldOwner { manager, time: Some(time) }) => {
            let ended = view.facts.override_ended().filter(|_| view.facts.hold == Some(Hold::Unread));
            let since = since(view)?.max(ended.unwrap_or(Timestamp::MIN));
            (time.as_second() >= since.as_second(), Some(manager))
        }
    };
    stands.then_some(ManualCount { count, manager })
}

/// Another client's upper bound of the autoscaler that stands in place of the one that is asked for. The lower one follows
/// the timetable all the same, below it.
#[must_use]
pub fn manual_max(view: &ScheduleState) -> Option<ManualCount> {
    let Some(bounds) = view.facts.bounds() else { return None };
    let is_other = view.scheduled_max().is_some_and(|most| most != bounds.max());
    let may_stand = view.facts.writes_count() && view.facts.spec.keeps_manual_counts() && !view.sleeps();
    if is_other && may_stand { kept(view, bounds.max(), bounds.writer_of_max.clone()) } else { None }
}

/// When the transition to what is asked for now was: by the clock, by an edit, or by the creation of the object. None
/// if it is still to be carried out.
fn since(view: &ScheduleState) -> Option<Timestamp> {
    let boundary = view.last_change();
    let created = view.facts.spec.metadata.creation_timestamp.as_ref().map(|time| time.0);
    if view.facts.reported.is_none() {
        // What was written in the same second may be what stood there before: one file often brings both.
        return boundary.max(created.and_then(|time| time.checked_add(SignedDuration::from_secs(1)).ok()));
    }
    if view.is_changed() {
        return if view.facts.is_edited { None } else { view.boundary() };
    }
    let phase = view.effective.phase();
    let last = view.facts.observed.status.last_transition.as_ref().filter(|last| last.to == phase);
    boundary.max(last.map(|last| last.time.0)).max(created)
}

/// The ramp that the count is on, or sets out on now.
fn ramp(view: &ScheduleState, has: i32, scheduled: i32) -> Option<RampStatus> {
    let status = &view.facts.observed.status;
    if let Some(begun) = view.facts.observed.carried.ramp.as_ref().filter(|ramp| ramp.to == scheduled) {
        return Some(begun.clone());
    }
    if let Some(ramp) = status.ramp.as_ref().filter(|ramp| ramp.to == scheduled) {
        // An edit may have changed the pace: a count that is on the line goes on from there, another one sets out again.
        let is_on_it = || ramping(view, ramp.clone()).wanted == Some(has);
        if !view.facts.is_edited || is_on_it() {
            return Some(ramp.clone());
        }
    }
    let sets_out = view.is_changed()
        || view.facts.reported.is_none()
        || status.ramp.is_some()
        || view.facts.hold.is_some();
    if !sets_out || has == scheduled {
        return None;
    }
    let now = view.now;
    let since = if view.is_changed() { view.boundary().unwrap_or(now) } else { now };
    // As the status keeps it, so that it is the same when it is read back.
    let since = Timestamp::from_second(since.as_second()).unwrap_or(since);
    let ramp = |from: i32| RampStatus { since: since.into(), from: view.at_most(from), to: scheduled };
    // Steps may have been taken and not reported, for the answer was lost or the operator died: they are not taken
    // twice.
    let reported = view.facts.reported.as_ref().filter(|_| view.is_changed() && status.ramp.is_none());
    let begun = reported.and_then(|reported| reported.replicas).map(ramp).filter(|begun| {
        let by_now = ramping(view, begun.clone()).wanted.unwrap_or(begun.from);
        (begun.from.min(by_now)..=begun.from.max(by_now)).contains(&has)
    });
    Some(begun.unwrap_or_else(|| ramp(has)))
}
