//! The operator: its looks, its steps one after the other, and what it makes of their answers.

use std::rc::Rc;

use gatehouse::controllers::action::Action as _;
use gatehouse::controllers::api_write::ApiWrite;
use gatehouse::kinds::tdset::actions;
use gatehouse::kinds::tdset::observation::Contest;
use gatehouse::kinds::tdset::state::Reverts;
use jiff::Timestamp;

use crate::effects::Failure;
use crate::faults::Hand;
use crate::observations::{Plan, Seen, Unread};
use crate::text::Text;
use crate::world::{CLOCK, Manual, Pending, Schedule, World};

/// How soon a wake is that comes before any boundary does, in milliseconds.
const SOON: i64 = 60_000;

impl World {
    pub fn now(&self) -> i64 {
        CLOCK[self.clock].parse::<Timestamp>().expect("a time").as_millisecond() + self.later
            - if self.is_behind { 1_000 } else { 0 }
    }

    /// The same as production has it.
    pub fn timestamp(&self) -> Timestamp {
        Timestamp::from_millisecond(self.now()).expect("a time")
    }

    /// The contest about the count that the operator remembers.
    pub fn contest(&self, at: usize) -> Option<Contest> {
        self.workers[at].recall.reverts.contest(self.timestamp())
    }

    /// The one about what was made.
    pub fn repair_contest(&self, at: usize) -> Option<Contest> {
        self.workers[at].recall.repairs.contest(self.timestamp())
    }

    /// Looks, and plans.
    pub fn pass(&mut self, at: usize, unread: Unread, hand: Hand) -> bool {
        let schedule = &self.schedules[at];
        if schedule.is_gone || self.workers[at].pending.is_some() {
            return false;
        }
        // A count that stands in no status yet may be taken for an old one afterwards.
        if let Manual::Stands(count) = self.manual
            && unread != Unread::Nothing
            && !schedule.status.says("ManualOverride", "True")
        {
            self.manual = Manual::Either(count);
        }
        self.workers[at].is_told = false;
        if schedule.is_deleting && !schedule.has_finalizer {
            return true;
        }
        let planned = Seen { unread, ..self.look(at) }.planned(hand);
        let pending =
            Pending { planned, done: 0, has_changed: false, refused: None, reports: false, is_stale: false };
        self.workers[at].recall.begin();
        if self.schedules[at].is_edited() {
            self.workers[at].recall.repairs = Reverts::default();
            self.put_back.clear();
        }
        self.workers[at].pending = Some(pending);
        self.go_on(at);
        true
    }

    /// Whether a wake is due before anything else happens.
    pub fn is_woken(&self, at: usize) -> bool {
        self.workers[at].is_told || self.workers[at].wake.is_some_and(|wake| wake <= self.now() + SOON)
    }

    /// The pass that is under way, if anything of its part is left.
    fn next(&self, at: usize) -> Option<Pending> {
        self.workers[at].pending.clone().filter(|pending| pending.step().is_some())
    }

    pub fn step(&mut self, at: usize) -> bool {
        let Some(mut pending) = self.next(at) else { return false };
        match self.perform(at, &pending) {
            Ok(has_changed) => {
                // It may be gone by what was done.
                let Some(now) = &self.workers[at].pending else { return true };
                pending.is_stale = now.is_stale;
                let now = self.timestamp();
                let recall = &mut self.workers[at].recall;
                if !pending.reports && pending.writes_count() {
                    recall.wrote_count(&pending.planned.plan.whole, (None, None), now);
                }
                if has_changed && pending.repairs() {
                    recall.wrote_repair((None, None), now);
                }
                pending.has_changed |= has_changed && !pending.reports;
                pending.done += 1;
                self.workers[at].pending = Some(pending);
                self.go_on(at);
            }
            Err(Failure::Conflict) => return self.give_up(at),
            Err(Failure::Refused) => return self.refuse(at),
        }
        true
    }

    pub fn step_unheard(&mut self, at: usize) -> bool {
        let Some(pending) = self.next(at) else { return false };
        let _unheard = self.perform(at, &pending);
        self.workers[at].pending.is_none() || self.give_up(at)
    }

    /// The pass ends with an error that is tried again soon.
    pub fn give_up(&mut self, at: usize) -> bool {
        let worker = &mut self.workers[at];
        worker.is_told = true;
        worker.pending.take().is_some()
    }

    /// The step is refused for good: the others are tried all the same, unless it holds them up.
    pub fn refuse(&mut self, at: usize) -> bool {
        let Some(pending) = &mut self.workers[at].pending else { return false };
        if pending.reports {
            return self.give_up(at);
        }
        pending.refused.get_or_insert(pending.done);
        let holds_up =
            pending.step().is_some_and(|(step, _)| actions::Action(step.clone()).holds_up_others());
        pending.done = if holds_up { pending.planned.plan.work.len() } else { pending.done + 1 };
        self.go_on(at);
        true
    }

    /// What follows once the last thing that was planned is done: the report, or the end of the reconciliation.
    fn go_on(&mut self, at: usize) {
        let (now, at_now) = (self.now(), self.timestamp());
        loop {
            let worker = &mut self.workers[at];
            let Some(pending) = &mut worker.pending else { return };
            if pending.step().is_some() {
                return;
            }
            let planned = Rc::clone(&pending.planned);
            let is_leaving = pending.planned.seen.schedule.is_deleting;
            if pending.reports {
                let plan = pending.told().clone();
                let wake = plan.wake.map(Timestamp::as_millisecond);
                worker.wake =
                    if pending.refused.is_some() { wake.map(|wake| wake.min(now + SOON)) } else { wake };
                worker.recall.told(false, at_now);
                worker.pending = None;
                return;
            }
            let defers = pending.has_changed
                && pending.refused.is_none()
                && (is_leaving || worker.recall.defers_report(&planned.plan.whole, at_now));
            if defers {
                worker.wake = Some(now + 1_000);
                worker.pending = None;
                return;
            }
            (pending.reports, pending.done) = (true, 0);
        }
    }
}

impl Schedule {
    /// Whether it has changed since its status was written.
    pub fn is_edited(&self) -> bool {
        self.status.known().status.observed_generation != Some(i64::from(self.generation))
    }
}

impl Pending {
    /// The plan that the report is of.
    fn told(&self) -> &Plan {
        self.refused.map_or(&self.planned.plan, |step| &self.planned.refused[step])
    }

    /// Whether the next step writes what the timetable is about.
    fn writes_count(&self) -> bool {
        self.step().is_some_and(|(step, _)| actions::writes_count(actions::points(step).name()))
    }

    /// Whether the next step puts back what was made.
    fn repairs(&self) -> bool {
        self.step().is_some_and(|(step, _)| actions::repairs(actions::points(step).name()))
    }

    /// The next step, and what it writes.
    pub fn step(&self) -> Option<(&ApiWrite, Text)> {
        let (steps, written) = self.planned.part(self.reports, self.refused);
        Some((steps.get(self.done)?, *written.get(self.done)?))
    }
}
