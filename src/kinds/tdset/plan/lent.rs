//! What a workload has by itself where the timetable leaves it alone outside of all windows: written down before the first
//! count of a window is written, and given back after it. Pure.
//!
//! Guarantees: nothing that was written for a window is taken for the count to give back, however the object is edited
//! meanwhile; what was written down of one workload is not given to another one of its name.

use super::facts::Counter;
use super::schedule_state::ScheduleState;
use crate::kinds::tdset::api::schedule::Source;
use crate::kinds::tdset::api::v1::Phase;
use crate::kinds::tdset::observation::Writer;

impl ScheduleState<'_> {
    /// The count that is to be given back: the one that was written down, unless the workload that had it is known to be
    /// gone; or the one for all other times that an edit has taken out while the workload was on its way there.
    pub fn noted(&self) -> Option<i32> {
        let is_gone = matches!(&self.facts.observed.target, Some(Err(blocker)) if blocker.is_absence);
        let noted = self.facts.observed.status.replicas_before;
        noted.filter(|_| !is_gone && !self.facts.observed.is_replaced).or_else(|| self.on_its_way_to())
    }

    fn on_its_way_to(&self) -> Option<i32> {
        let is_left_alone = self.effective.replicas.is_none();
        let reported = self.facts.reported.as_ref();
        let reported = reported.filter(|reported| is_left_alone && reported.window.is_empty())?;
        let (goal, found) = (reported.replicas?, self.facts.workload()?);
        let is_ours = match found.writer() {
            Writer::Ours => true,
            Writer::Unknown => self.facts.observed.status.ramp.is_some(),
            Writer::Maker | Writer::Other(_) => false,
        };
        (is_ours && found.differs(goal)).then_some(goal)
    }

    /// The count that the workload is to get back, where that is still to be written down: before the first count of the
    /// timetable is written. None where it is not known any more.
    pub fn to_note(&self) -> Option<i32> {
        let is_lent = self.effective.replicas.is_some() && !self.timetable.schedule.has_default();
        if !is_lent || !self.facts.writes_count() || self.noted().is_some() {
            return None;
        }
        let found = self.facts.workload()?;
        if self.is_of_its_own(&found) { Some(found.count()) } else { self.told_outside() }
    }

    /// The count that is to be given back after the window or the exception that holds, or after those that have just
    /// ended; none as soon as it was given back, or another client wrote another one since. It outlives an edit that gives
    /// a count for all other times, until the workload has that.
    pub fn before(&self) -> Option<i32> {
        let before = self.noted()?;
        let is_over = self.effective.source == Source::Default && self.facts.writes_count();
        let has_it = |counter: Counter| self.scheduled().is_some_and(|goal| !counter.differs(goal));
        let is_done = || self.replica_target.manual.is_some() || self.facts.counter().is_some_and(has_it);
        (!is_over || !is_done()).then_some(before)
    }

    /// Whether a count is the workload's own, and none that we have written for a window or for the time outside of all.
    fn is_of_its_own(&self, found: &Counter) -> bool {
        let status = &self.facts.observed.status;
        let Some(reported) = self.facts.reported.as_ref().filter(|_| !self.facts.observed.is_replaced) else {
            // A TDSet that is gone may have written it for a window.
            return found.writer() != Writer::Ours;
        };
        if self.facts.hold.is_none() {
            return reported.replicas.is_none();
        }
        // What the status asks for was held back. What the last transition led to was written.
        let last = status.last_transition.as_ref().and_then(|last| last.to.replicas);
        match found.writer() {
            Writer::Other(_) | Writer::Maker => true,
            Writer::Ours => status.last_transition.is_some() && last.is_none(),
            Writer::Unknown => last != Some(found.count()) && status.ramp.is_none(),
        }
    }

    /// The count for the time outside of all windows that there was until an edit took it out, as far as the status tells.
    fn told_outside(&self) -> Option<i32> {
        let status = &self.facts.observed.status;
        let reported = self.facts.reported.as_ref()?;
        let outside = |phase: &Phase| phase.replicas.filter(|_| phase.window.is_empty());
        let last = status.last_transition.as_ref().filter(|last| last.to == *reported);
        let ahead = status.upcoming.iter().flatten().find(|next| next.window.is_empty());
        let before = outside(reported).or_else(|| outside(&last?.from));
        before.or_else(|| ahead?.replicas)
    }
}
