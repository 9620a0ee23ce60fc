//! The count that the workload should have now, and which client decides it. Pure.
//!
//! Guarantees: a target is whole when it is built, and no one changes it. All of it follows from the timetable, the
//! clock, and what the status and the workload say. So after a restart, after a change of the leader, or after
//! boundaries that no replica noticed, it is as if nothing had happened: a ramp is a line from the count that was found
//! when it began; the status records both, and any step is computed from them.
//! Assumes: the count that is to be restored is recorded already.
//! Never: writes a count while something is in the way.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::clocks::SKEW;
use super::facts::{Counter, Facts};
use super::moment::Moment;
use super::standing::{self, ManualCount};
use crate::kinds::tdset::api::schedule::Source;
use crate::kinds::tdset::api::v1::RampStatus;
use crate::kinds::tdset::observation::{Contest, CountField, FieldOwner, Reverted, Writer};

/// The count and the bounds that are to be there.
pub struct Target {
    /// The count of the timetable, within the bounds of the autoscaler. While the timetable leaves the workload alone:
    /// the count that is to be restored.
    pub scheduled: Option<i32>,
    /// The upper bound of the autoscaler. None if it is left as it is.
    pub max: Option<i32>,
    /// The count to write. None if gatehouse does not write it.
    pub count: Option<i32>,
    /// The count to write into the workload itself, beside an autoscaler that does not leave or reach 0.
    pub workload: Option<i32>,
    /// Whether the workload itself has no replicas, beside an autoscaler whose lower bound cannot be 0.
    pub is_asleep: bool,
    /// The count of another client that stands.
    pub manual: Option<ManualCount>,
    /// The upper bound of the autoscaler that another client wrote, and that stands.
    pub manual_max: Option<ManualCount>,
    /// The count of another client that is reverted.
    pub reverted: Option<Reverted>,
    /// The ramp that the count is on.
    pub ramp: Option<RampStatus>,
    /// When the ramp's next step is due.
    pub step: Option<Timestamp>,
    /// Until when the count is not written: another client reverts it each time.
    pub waits: Option<Timestamp>,
    /// Until when the made objects are left as they are: another client reverts each repair.
    pub repairs_wait: Option<Timestamp>,
    /// The count that is to be restored after the windows.
    pub to_restore: Option<i32>,
    /// The same, until the workload has it.
    pub replicas_before: Option<i32>,
}

/// The part of a target that depends on the count that was found.
#[derive(Default)]
struct Decision {
    count: Option<i32>,
    workload: Option<i32>,
    manual: Option<ManualCount>,
    reverted: Option<Reverted>,
    ramp: Option<RampStatus>,
    step: Option<Timestamp>,
}

impl Target {
    /// The target at a moment. The upper bound comes first, because it limits the count.
    pub fn new(facts: &Facts, moment: &Moment, to_restore: Option<i32>) -> Self {
        let is_asleep =
            moment.phase.replicas == Some(0) && facts.bounds().is_some_and(|bounds| bounds.least_min() > 0);
        let manual_max = manual_max(facts, moment).filter(|_| !is_asleep);
        let max = moment.max_replicas().filter(|_| manual_max.is_none());
        let replicas = moment.phase.replicas.or(to_restore);
        let scheduled = match facts.bounds() {
            Some(bounds) => replicas.map(|replicas| bounds.nearest_min(replicas, max)),
            None => replicas,
        };
        let demand = Demand { facts, moment, scheduled, max };
        let decision = match (facts.writes_count(), is_asleep) {
            (false, _) => Decision::default(),
            (true, true) => demand.asleep(),
            (true, false) => demand.awake(),
        };
        let Decision { count, workload, manual, reverted, ramp, step } = decision;
        let wait = |contest: Option<&Contest>| {
            let until = contest.map(|contest| contest.until);
            until.filter(|until| moment.time < *until && !facts.is_edited)
        };
        Self {
            waits: wait(facts.observed.remembered.contest.as_ref()).filter(|_| reverted.is_some()),
            repairs_wait: wait(facts.observed.remembered.repair_contest.as_ref()),
            replicas_before: to_restore.filter(|_| !demand.is_restored(manual.is_some())),
            scheduled,
            max,
            count,
            workload,
            is_asleep,
            manual,
            manual_max,
            reverted,
            ramp,
            step,
            to_restore,
        }
    }
}

/// The facts, the moment and the target side by side, for all that is decided after them.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The facts, whatever the time is.
    pub facts: &'a Facts<'a>,
    /// The timetable now.
    pub moment: &'a Moment<'a>,
    /// The count and the bounds that are to be there.
    pub target: &'a Target,
}

impl<'a> View<'a> {
    /// The count of another client that stands in place of a count of the timetable. While the workload is left alone, a
    /// client that scales it overrides nothing.
    pub fn manual_override(self) -> Option<&'a ManualCount> {
        self.target.manual.as_ref().filter(|_| self.moment.phase.replicas.is_some())
    }

    /// Whether the workload's count is its own, and no count is to be restored.
    pub const fn is_left_alone(self) -> bool {
        self.moment.phase.replicas.is_none() && self.target.replicas_before.is_none()
    }
}

/// The upper bound of the autoscaler that another client wrote, and that stands. The lower bound follows the timetable
/// all the same, below it.
fn manual_max(facts: &Facts, moment: &Moment) -> Option<ManualCount> {
    let bounds = facts.bounds()?;
    let is_other = moment.max_replicas().is_some_and(|max| max != bounds.max());
    let may_stand = is_other && facts.writes_count() && facts.spec.keeps_manual_counts();
    let manual = || standing::manual_count(facts, moment, bounds.max(), bounds.writer_of_max.clone());
    may_stand.then(manual).flatten()
}

/// The count and the upper bound of the timetable, within the bounds of the autoscaler.
struct Demand<'a> {
    facts: &'a Facts<'a>,
    moment: &'a Moment<'a>,
    scheduled: Option<i32>,
    max: Option<i32>,
}

impl Demand<'_> {
    /// The decision while the timetable asks for 0 beside an autoscaler whose lower bound cannot be 0: the workload
    /// itself has no replicas, and the autoscaler rests.
    fn asleep(&self) -> Decision {
        let Some(workload) = self.facts.workload().filter(|workload| workload.differs(0)) else {
            return Decision::default();
        };
        let manual = self.manual(workload.count(), workload.writer());
        match manual.filter(|_| self.facts.spec.keeps_manual_counts()) {
            Some(manual) => Decision { manual: Some(manual), ..Decision::default() },
            None => {
                Decision { workload: Some(0), reverted: self.reverted(&workload, 0), ..Decision::default() }
            }
        }
    }

    /// The decision at all other times.
    fn awake(&self) -> Decision {
        let Some(scheduled) = self.scheduled else { return Decision::default() };
        let Some(counter) = self.facts.counter() else {
            return Decision { count: Some(scheduled), ..Decision::default() };
        };
        let found = counter.count();
        // Outside of windows any client may scale a workload that is left alone then, also before its count is restored.
        let may_stand = self.facts.spec.keeps_manual_counts() || self.moment.phase.replicas.is_none();
        if may_stand
            && counter.differs(scheduled)
            && let Some(manual) = self.manual(found, counter.writer())
        {
            return Decision { manual: Some(manual), ..Decision::default() };
        }
        let decision = match self.ramp(found, scheduled) {
            Some(ramp) => self.ramping(ramp),
            None => Decision { count: Some(scheduled), ..Decision::default() },
        };
        let count = decision.count.unwrap_or(scheduled);
        let reverted = self.reverted(&counter, count).or_else(|| self.reverted_max(&counter));
        self.woken(Decision { reverted, ..decision }, count)
    }

    /// The decision on a ramp. No ramp leads above the upper bound of an autoscaler, which holds at once.
    fn ramping(&self, ramp: RampStatus) -> Decision {
        let elapsed = Duration::try_from(self.moment.time.duration_since(ramp.since.0)).unwrap_or_default();
        let place = self.moment.timetable.ramp.at(ramp.from, ramp.to, elapsed);
        let step = place.next.and_then(|next| {
            let next = SignedDuration::try_from(next).ok()?;
            ramp.since.0.checked_add(next).ok()
        });
        let ramp = step.is_some().then_some(ramp);
        Decision { count: Some(self.capped(place.replicas)), ramp, step, ..Decision::default() }
    }

    /// The decision with the count of the workload itself, if an autoscaler rests that is to work. A
    /// HorizontalPodAutoscaler that has not gone to 0 itself does not leave it by itself.
    fn woken(&self, decision: Decision, count: i32) -> Decision {
        let Some(bounds) = self.facts.bounds() else { return decision };
        let has_none = |workload: &Counter| workload.count() == 0 || workload.is_unset();
        let rests = |workload: &Counter| has_none(workload) && count > 0 && !bounds.leaves_zero();
        let Some(workload) = self.facts.workload().filter(rests) else { return decision };
        if self.facts.spec.keeps_manual_counts()
            && let Some(manual) = self.manual(0, workload.writer())
        {
            return Decision { manual: Some(manual), ..decision };
        }
        let reverted = decision.reverted.clone().or_else(|| self.reverted(&workload, count));
        Decision { workload: Some(count), reverted, ..decision }
    }

    /// A count, or the upper bound of the autoscaler if that is lower.
    fn capped(&self, replicas: i32) -> i32 {
        let Some(bounds) = self.facts.bounds() else { return replicas };
        replicas.min(self.max.unwrap_or_else(|| bounds.max()))
    }

    /// The count of another client that stands. A count of a ramp is ours, if its writer is not known.
    fn manual(&self, count: i32, writer: Writer) -> Option<ManualCount> {
        let is_ours = writer == Writer::Unknown && self.is_of_the_ramp(count);
        if is_ours { None } else { standing::manual_count(self.facts, self.moment, count, writer) }
    }

    /// Whether a count may be a step of the ramp of the status: the count that was written last. If that is not known, a
    /// count that the ramp may have reached by now, also by a clock that is ahead, or before an edit changed its pace.
    fn is_of_the_ramp(&self, count: i32) -> bool {
        let observed = self.facts.observed;
        let Some(ramp) = &observed.status.ramp else { return false };
        if let Some(written) = observed.remembered.written {
            return count == written;
        }
        let now = self.moment.time;
        let elapsed = now.saturating_add(SKEW).unwrap_or(now).duration_since(ramp.since.0);
        let elapsed = Duration::try_from(elapsed).unwrap_or_default();
        let place = self.moment.timetable.ramp.at(ramp.from, ramp.to, elapsed);
        let by_now = if self.facts.is_edited { ramp.to } else { self.capped(place.replicas) };
        is_between(ramp.from, by_now, count)
    }

    /// The count of another client that `count` reverts.
    fn reverted(&self, counter: &Counter, count: i32) -> Option<Reverted> {
        let field =
            if matches!(counter, Counter::Bounds(_)) { CountField::Min } else { CountField::Replicas };
        self.reverted_field(field, counter.count(), count, counter.writer())
    }

    /// The upper bound of another client that is reverted.
    fn reverted_max(&self, counter: &Counter) -> Option<Reverted> {
        let (Counter::Bounds(bounds), Some(max)) = (counter, self.max) else { return None };
        self.reverted_field(CountField::Max, bounds.max(), max, bounds.writer_of_max.clone())
    }

    /// A count of another client is reverted if the timetable asks for nothing else now. An edit of something else is no
    /// reason to be silent about it.
    fn reverted_field(&self, field: CountField, from: i32, to: i32, writer: Writer) -> Option<Reverted> {
        let facts = self.facts;
        let is_settled = facts.reported.is_some() && !self.moment.is_changed(facts) && facts.hold.is_none();
        if from == to || !is_settled {
            return None;
        }
        let manager = match writer {
            // Bounds from before an autoscaler was named do not answer ours.
            Writer::Other(_) if facts.is_edited && facts.spec.autoscaler.is_some() => return None,
            Writer::Other(FieldOwner { manager, .. }) => Some(manager),
            Writer::Unknown if !self.is_of_the_ramp(from) && !facts.is_edited => None,
            Writer::Unknown | Writer::Ours | Writer::Maker => return None,
        };
        Some(Reverted { manager, from, to, field })
    }

    /// The ramp that the count is on, or sets out on now.
    fn ramp(&self, found: i32, scheduled: i32) -> Option<RampStatus> {
        let (facts, moment, status) = (self.facts, self.moment, &self.facts.observed.status);
        if let Some(begun) =
            facts.observed.remembered.carried.ramp.as_ref().filter(|ramp| ramp.to == scheduled)
        {
            return Some(begun.clone());
        }
        if let Some(ramp) = status.ramp.as_ref().filter(|ramp| ramp.to == scheduled) {
            // An edit may have changed the pace: a count on the line goes on from there, another count sets out again.
            let is_on_it = || self.ramping(ramp.clone()).count == Some(found);
            if !facts.is_edited || is_on_it() {
                return Some(ramp.clone());
            }
        }
        let is_changed = moment.is_changed(facts);
        let sets_out =
            is_changed || facts.reported.is_none() || status.ramp.is_some() || facts.hold.is_some();
        if !sets_out || found == scheduled {
            return None;
        }
        let boundary = if is_changed { moment.boundary(facts) } else { None };
        let since = boundary.unwrap_or(moment.time);
        // As the status has it, so that it is the same when it is read back.
        let since = Timestamp::from_second(since.as_second()).unwrap_or(since);
        let ramp = |from: i32| RampStatus { since: since.into(), from: self.capped(from), to: scheduled };
        // Steps may have been taken and not reported, because the answer was lost or the operator died: they are not
        // taken twice.
        let reported = facts.reported.as_ref().filter(|_| is_changed && status.ramp.is_none());
        let begun = reported.and_then(|reported| reported.replicas).map(ramp).filter(|begun| {
            let by_now = self.ramping(begun.clone()).count.unwrap_or(begun.from);
            is_between(begun.from, by_now, found)
        });
        Some(begun.unwrap_or_else(|| ramp(found)))
    }

    /// Whether the count that was to be restored is so, or another client wrote another one since. An edit that gives a
    /// count for all other times does not end it before the workload has that count.
    fn is_restored(&self, is_manual: bool) -> bool {
        let is_over = self.moment.effective().source == Source::Default && self.facts.writes_count();
        let has_it = |counter: Counter| self.scheduled.is_some_and(|scheduled| !counter.differs(scheduled));
        is_over && (is_manual || self.facts.counter().is_some_and(has_it))
    }
}

/// Whether a count is between two others, or is one of them.
fn is_between(one: i32, other: i32, count: i32) -> bool {
    (one.min(other)..=one.max(other)).contains(&count)
}
