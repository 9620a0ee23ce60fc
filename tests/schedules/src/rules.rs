//! What must never be, and what all has to come to.

use gatehouse::kinds::tdset::api::v1::TDSetStatus;
use serde_json::Value;

use crate::faults::Hand;
use crate::observations::{Seen, Unread};
use crate::text::Text;
use crate::world::{Autoscaler, CLOCK, Deployment, Manual, Pending, World, other_image, other_port};

/// A rule, by what is so where it is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A foreign object is taken over, changed or deleted.
    ForeignWritten,
    /// A schedule writes the count of a workload that an older one has.
    HeldCountWritten,
    /// A count from elsewhere is taken back although it is to stand.
    ManualCountTakenBack,
    /// A count is written while the schedule is suspended.
    CountWrittenWhileSuspended,
    /// The count of a workload is written that an autoscaler has.
    AutoscaledCountWritten,
    /// The count of a Deployment is written that is being deleted.
    WrittenWhileGoing,
    /// A transition is undone by an operator whose clock is behind.
    Undone,
    /// A workload that slept beside its autoscaler is woken before that has its bounds.
    WokenOutOfBounds,
    /// A rollout takes the count along.
    CountLost,
    /// A Deployment begins with another count than the timetable asks for.
    MadeWithAnotherCount,
    /// A count is written that a deletion has to undo, and nothing would hold that deletion up.
    CountedBeforeFinalizer,
    /// A count is written in place of one that is to be given back, and nothing has that.
    OwnCountForgotten,
    /// A workload is left with another count than is asked for.
    LeftWithAnotherCount,
    /// An autoscaler is left with other bounds than are asked for.
    LeftWithOtherBounds,
    /// A workload is left with no replicas beside an autoscaler that does not wake it.
    LeftAsleep,
    /// A count is taken back at once from a client that has written it again each time.
    TakenBackAtOnce,
    /// What was made is put back at once from a client that has changed it each time.
    PutBackAtOnce,
    /// The status does not tell of a client that undoes each time what is written, or does not name it.
    ContestUntold,
    /// The status says what was not seen.
    StatusLies,
    /// More steps of a ramp are taken than time has passed for.
    RampOutpaced,
    /// The count of a workload is written that a controller of our own owns.
    ControlledWritten,
    /// A status tells of another time than that at which it is written.
    TellsOfAnotherTime,
    /// A count is written, and no event tells of it.
    CountedInSilence,
    /// A transition is reported twice, and nothing had gone wrong.
    ToldTwice,
    /// At rest there is something to write, now or at another time before the next boundary.
    WritesAtRest,
    /// The next look is after a boundary.
    Oversleeps,
    /// What is under way never ends.
    NeverSettles,
    /// Nothing is done any more, and it is not as asked for.
    SettlesWrongly,
}

/// Whether a workload and its autoscaler are as that count asks for: the autoscaler has it as its lower bound, up to the
/// ceiling of 12, and none is none of the workload itself.
fn is_bounded(found: &Autoscaler, count: Option<i32>, asks: i32) -> bool {
    if asks == 0 { count == Some(0) } else { found.least == asks.min(12) && count != Some(0) }
}

impl World {
    /// What holds of a status that was just written.
    pub fn judge_status(&mut self, at: usize, pending: &Pending) {
        let (seen, status) = (&pending.planned.seen, self.schedules[at].status.known());
        let TDSetStatus { conditions, last_transition, .. } = &status.status;
        let ready = conditions.iter().flatten().find(|one| one.type_ == "Ready");
        let is_scheduled = ready.is_some_and(|ready| ready.reason == "AsScheduled");
        let target = &seen.schedule.spec.target;
        let was_so = seen.deployment.as_ref().is_some_and(|found| {
            (target.is_autoscaled() || found.count == seen.line)
                && found.has == found.count
                && (target.is_foreign() || found.is_observed && !seen.is_left_changed())
        });
        let count = seen.deployment.as_ref().map(|found| found.count);
        let is_bounded = !target.is_autoscaled()
            || seen.autoscaler.as_ref().is_some_and(|found| is_bounded(found, count, seen.asks));
        let before = seen.schedule.status.known();
        let spec = &seen.schedule.spec;
        if status.status.replicas_before.is_some() && before.status.replicas_before.is_none() {
            // This write notes the count that the workload gets back, and tells nothing else.
            return;
        }
        let is_carried_out = match last_transition.as_ref().filter(|_| is_scheduled) {
            Some(last) if before.status.last_transition.as_ref() != Some(last) => {
                last.to.replicas == spec.said(seen.asks)
            }
            _ => true,
        };
        if seen.is_behind || seen.unread != Unread::Nothing {
            return;
        }
        if is_scheduled && !(was_so && is_bounded) || !is_carried_out {
            self.breaks(Rule::StatusLies);
        }
        let tells = |what| {
            let conflict = conditions.iter().flatten().find(|one| one.type_ == "Conflict");
            conflict.is_some_and(|conflict| {
                (&*conflict.status, &*conflict.reason) == ("True", "Contested")
                    && conflict.message.contains(what)
            })
        };
        if seen.contest.is_some() && !tells("kubectl writes another count")
            || seen.repair_contest.is_some() && !tells("another client changes what was made")
        {
            self.breaks(Rule::ContestUntold);
        }
        if !seen.schedule.is_deleting && status.status.scheduled_replicas != spec.said(seen.asks) {
            self.breaks(Rule::TellsOfAnotherTime);
        }
    }

    /// The rule that is broken where nothing happens any more.
    pub fn judge_rest(&self, hand: Hand) -> Option<Rule> {
        let schedules = || self.schedules.iter().enumerate().filter(|(_, schedule)| !schedule.is_gone);
        if schedules().any(|(at, _)| !self.rests_well(at)) {
            return Some(Rule::SettlesWrongly);
        }
        for (at, _) in schedules() {
            for later in [0, 1_000, 1_800_000] {
                let mut seen = self.look(at);
                seen.now += later;
                let planned = seen.planned(hand);
                if !planned.plan.work.is_empty() || !planned.plan.report.is_empty() {
                    return Some(Rule::WritesAtRest);
                }
            }
        }
        if self.is_silent && !self.is_disturbed {
            return Some(Rule::CountedInSilence);
        }
        let next = ["2026-03-02T08:00:00Z", "2026-03-02T18:00:00Z"].get(self.clock)?;
        let next = next.parse::<jiff::Timestamp>().expect("a time").as_millisecond();
        let sleeps = |at: usize| {
            self.schedules[at].spec.broken.is_none() && self.workers[at].wake.is_none_or(|wake| wake > next)
        };
        schedules().any(|(at, _)| sleeps(at)).then_some(Rule::Oversleeps)
    }

    /// Whether all is as a schedule asks for, and it says so; or else, it says why not.
    fn rests_well(&self, at: usize) -> bool {
        let schedule = &self.schedules[at];
        let (spec, status) = (&schedule.spec, schedule.status);
        let told = status.known();
        let told = &told.status;
        let is_of_now = !schedule.is_edited() && told.scheduled_replicas == spec.said(self.asks(spec));
        if schedule.is_deleting || !is_of_now {
            return false;
        }
        if self.eldest() != Some(at) {
            return status.says("Conflict", "True") && status.says("Ready", "False");
        }
        if spec.broken.is_some() {
            return status.says("Ready", "False");
        }
        let Some(found) = &self.deployment else {
            return spec.target.is_foreign() && status.says("Ready", "False");
        };
        if spec.target.is_controlled() || self.is_scaled {
            return status.says("Conflict", "True") && status.says("Ready", "False");
        }
        if !spec.target.is_foreign() {
            let is_foreign = |applied: Text| applied == Text::NONE;
            let service = self.service.as_ref();
            if is_foreign(found.applied) {
                return status.says("Conflict", "True") && status.says("Ready", "False");
            }
            if !found.applied.json().to_string().contains(&format!("\"shop:{}\"", spec.image)) {
                return false;
            }
            if spec.has_service && service.is_some_and(|service| is_foreign(service.applied)) {
                return status.says("Conflict", "True") && status.says("Ready", "False");
            }
            let is_served = service.is_some_and(|service| !is_foreign(service.applied));
            let port = format!("\"port\":{}", spec.port);
            if is_served != spec.has_service
                || is_served
                    && service.is_some_and(|service| !service.applied.json().to_string().contains(&port))
            {
                return false;
            }
        }
        let asks = self.line(spec);
        if spec.target.is_autoscaled() && self.autoscaler.is_none() {
            return status.says("Ready", "False");
        }
        let is_bounded = self.autoscaler.as_ref().map(|bounds| is_bounded(bounds, Some(found.count), asks));
        let count = found.count;
        let is_so = match self.manual {
            _ if spec.is_suspended => true,
            Manual::None if spec.target.is_autoscaled() => is_bounded == Some(true),
            Manual::None => count == asks,
            Manual::Stands(manual) => count == manual && status.says("ManualOverride", "True"),
            Manual::Either(manual) => count == manual || count == asks,
        };
        let can_be = !spec.target.is_autoscaled() || asks <= 12 && self.is_within(asks);
        is_so
            && status.says("Ready", if can_be { "True" } else { "False" })
            && status.says("Conflict", "False")
            && self.clock < CLOCK.len()
    }
}

impl World {
    /// Whether the workload has a count that its autoscaler leaves as it is. In this world no autoscaler changes a count.
    fn is_within(&self, asks: i32) -> bool {
        let is_within =
            |(found, bounds): (&Deployment, &Autoscaler)| (bounds.least..=bounds.most).contains(&found.count);
        asks == 0 || self.deployment.as_ref().zip(self.autoscaler.as_ref()).is_some_and(is_within)
    }
}

impl Seen {
    /// Whether what was made is left for a while as another client has changed it.
    fn is_left_changed(&self) -> bool {
        let applied = (
            self.deployment.as_ref().map(|found| found.applied),
            self.service.as_ref().map(|found| found.applied),
        );
        let is_changed = |applied: Option<Text>, (field, value): (&str, Value)| {
            applied.is_some_and(|applied| applied.known().json.pointer(field) == Some(&value))
        };
        let waits =
            self.repair_contest.as_ref().is_some_and(|contest| contest.until.as_millisecond() > self.now);
        waits
            && !self.schedule.is_edited()
            && (is_changed(applied.0, other_image()) || is_changed(applied.1, other_port()))
    }
}
