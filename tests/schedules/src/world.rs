//! What is around the plans of TDSets: the clock, the objects of one namespace, others that write them, and operators
//! that look, do one step after the other, crash, and hear answers or not.
//!
//! Believed of the API server, and not shown here: who owns a count after an apply, an update or a scale; that a uid in
//! what is written is a precondition; that an apply without force is a conflict where another manager's field differs.

mod actions;

use std::collections::BTreeSet;
use std::rc::Rc;

use gatehouse::kinds::tdset::observation::Unreported;
use gatehouse::kinds::tdset::state::ReconcileState;

use crate::faults::Hand;
use crate::observations::Planned;
use crate::rules::Rule;
use crate::text::Text;

/// The instants that the clock shows, one after another: before a window, and a moment after each boundary. The window
/// is from 8 to 18 o'clock in UTC.
pub const CLOCK: [&str; 3] = ["2026-03-02T07:00:00Z", "2026-03-02T08:00:00.25Z", "2026-03-02T18:00:00.25Z"];

/// What a schedule asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    pub outside: i32,
    pub inside: i32,
    /// A number that stands for an image.
    pub image: u8,
    pub has_service: bool,
    pub keeps: bool,
    pub is_suspended: bool,
    pub target: Target,
}

/// Whose count it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    Create,
    /// Of a foreign Deployment; and what it is left with.
    Reference(Option<i32>),
    /// One that is made, with an autoscaler.
    Autoscaler,
}

/// A schedule as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    pub spec: Spec,
    pub generation: u8,
    pub has_finalizer: bool,
    pub is_deleting: bool,
    pub is_gone: bool,
    pub status: Text,
}

/// Who owns a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// What is applied by the manager of the template.
    Template,
    /// What is applied by the manager of the count.
    Count,
    /// `kubectl scale`, or another client of the scale subresource, and no time is kept.
    Scale,
    /// Its maker.
    Maker,
}

/// A Deployment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Deployment {
    pub uid: u8,
    /// What the first schedule has applied; nothing of a foreign one.
    pub applied: Text,
    pub count: i32,
    pub owners: BTreeSet<Owner>,
    /// What its controller has made of it: how many pods there are, and all are ready.
    pub has: i32,
    /// Whether its status is of its spec as it is.
    pub is_observed: bool,
}

/// A Service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Service {
    pub uid: u8,
    /// The same.
    pub applied: Text,
}

/// The bounds of an autoscaler.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Autoscaler {
    pub least: i32,
    pub most: i32,
}

/// What an operator has in hand for one schedule.
#[derive(Clone, Debug, Default)]
pub struct Worker {
    pub pending: Option<Pending>,
    pub recall: ReconcileState,
    /// Whether something has happened that it watches.
    pub is_told: bool,
    /// The instant at which it looks by itself.
    pub wake: Option<i64>,
}

/// A pass that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "they hinge on nothing but what came of the steps so far")]
pub struct Pending {
    /// What was read, and what is planned of that.
    pub planned: Rc<Planned>,
    /// How many steps were done.
    pub done: usize,
    pub has_changed: bool,
    pub is_refused: bool,
    pub reports: bool,
    /// Whether the schedule's object was written since.
    pub is_stale: bool,
}

impl PartialEq for Worker {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Worker {}

impl std::hash::Hash for Worker {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl Worker {
    /// All of it that makes a difference.
    fn key(&self) -> (&Option<Pending>, Option<String>, bool, bool, Option<i64>) {
        let ReconcileState { carried, unreported, .. } = &self.recall;
        let carried = (*carried != Unreported::default()).then(|| format!("{carried:?}"));
        (&self.pending, carried, *unreported, self.is_told, self.wake)
    }
}

/// What a person asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Edit {
    Image,
    Service(bool),
    Suspend(bool),
    Outside(i32),
    /// The count is left to an autoscaler.
    Autoscaler,
    /// The schedule is deleted.
    Delete,
}

/// How often what may go wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    pub crashes: u8,
    pub lost_answers: u8,
    pub conflicts: u8,
    pub refusals: u8,
    /// A person scales.
    pub scales: u8,
    /// A person deletes the Deployment.
    pub deletions: u8,
    /// A person makes a Deployment, or a Service, where there is none.
    pub squatters: u8,
    /// A person writes other bounds.
    pub bounds: u8,
}

impl Faults {
    /// How often that may go wrong yet; nothing where it is nothing that goes wrong.
    fn of(&mut self, action: &Action) -> Option<&mut u8> {
        match action {
            Action::Unheard(_) => Some(&mut self.lost_answers),
            Action::Conflict(_) => Some(&mut self.conflicts),
            Action::Refusal(_) => Some(&mut self.refusals),
            Action::Crash => Some(&mut self.crashes),
            Action::Scale => Some(&mut self.scales),
            Action::Delete => Some(&mut self.deletions),
            Action::Squat => Some(&mut self.squatters),
            Action::Bounds => Some(&mut self.bounds),
            Action::Pass(_)
            | Action::ApiWrite(_)
            | Action::Rollout
            | Action::Collect
            | Action::Tick
            | Action::Edit => None,
        }
    }
}

/// A count from elsewhere that is to stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Manual {
    #[default]
    None,
    Stands(i32),
    /// Nothing tells whether it was written before or after the timetable was followed: either will do.
    Either(i32),
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub clock: usize,
    /// The last instant that the clock comes to show.
    pub evening: usize,
    /// The older one first.
    pub schedules: Vec<Schedule>,
    pub workers: Vec<Worker>,
    pub deployment: Option<Deployment>,
    pub service: Option<Service>,
    pub autoscaler: Option<Autoscaler>,
    pub edits: Vec<Edit>,
    pub faults: Faults,
    pub manual: Manual,
    /// Transitions that were told of since the clock or the spec moved.
    pub told: u8,
    /// Whether something went wrong after which things may be told twice.
    pub is_disturbed: bool,
    pub next_uid: u8,
    pub broken: Option<Rule>,
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The operator looks at a schedule, and plans.
    Pass(usize),
    /// It does the next thing of that.
    ApiWrite(usize),
    /// It does it, and does not hear so.
    Unheard(usize),
    /// It hears that another client wrote first.
    Conflict(usize),
    /// The API server will not have it.
    Refusal(usize),
    /// It forgets all.
    Crash,
    /// The Deployment's controller does its work.
    Rollout,
    /// The garbage collector does.
    Collect,
    /// The clock passes a boundary.
    Tick,
    /// The next edit.
    Edit,
    /// A person writes a count of 9.
    Scale,
    Delete,
    Squat,
    Bounds,
}

impl World {
    pub fn new(specs: &[Spec]) -> Self {
        let schedule = |spec: &Spec| Schedule {
            spec: spec.clone(),
            generation: 1,
            has_finalizer: false,
            is_deleting: false,
            is_gone: false,
            status: Text::NONE,
        };
        let worker = Worker { is_told: true, ..Worker::default() };
        Self {
            clock: 0,
            evening: 1,
            schedules: specs.iter().map(schedule).collect(),
            workers: vec![worker; specs.len()],
            deployment: None,
            service: None,
            autoscaler: None,
            edits: Vec::new(),
            faults: Faults::default(),
            manual: Manual::None,
            told: 0,
            is_disturbed: false,
            next_uid: 1,
            broken: None,
        }
    }

    /// One for a foreign Deployment.
    pub fn with_foreign(mut self, count: i32) -> Self {
        self.deployment = Some(self.foreign(count));
        self
    }

    fn foreign(&mut self, count: i32) -> Deployment {
        Deployment {
            uid: self.uid(),
            applied: Text::NONE,
            count,
            owners: BTreeSet::from([Owner::Maker]),
            has: count,
            is_observed: true,
        }
    }

    pub fn uid(&mut self) -> u8 {
        self.next_uid += 1;
        self.next_uid
    }

    /// What the timetable of a schedule asks for now: told by hand, not by the code that is looked at.
    pub fn asks(&self, spec: &Spec) -> i32 {
        if self.clock == 1 { spec.inside } else { spec.outside }
    }

    /// The schedule that has the say.
    pub fn eldest(&self) -> Option<usize> {
        self.schedules.iter().position(|schedule| !schedule.is_gone)
    }

    pub fn breaks(&mut self, rule: Rule) {
        self.broken.get_or_insert(rule);
    }

    /// All workers hear of a change.
    pub fn tell(&mut self) {
        for (worker, schedule) in self.workers.iter_mut().zip(&self.schedules) {
            worker.is_told |= !schedule.is_gone;
        }
    }

    fn act(&mut self, action: &Action, hand: Hand) -> bool {
        if let Some(left) = self.faults.of(action) {
            *left -= 1;
        }
        self.is_disturbed |=
            matches!(action, Action::Unheard(_) | Action::Conflict(_) | Action::Refusal(_) | Action::Crash);
        match action {
            Action::Pass(at) => self.pass(*at, hand),
            Action::ApiWrite(at) => self.step(*at),
            Action::Unheard(at) => self.step_unheard(*at),
            Action::Conflict(at) => self.give_up(*at),
            Action::Refusal(at) => self.refuse(*at),
            Action::Crash => self.crash(),
            Action::Rollout => self.roll_out(),
            Action::Collect => self.collect(),
            Action::Tick => self.tick(),
            Action::Edit => self.edit(),
            Action::Scale => self.scale(),
            Action::Delete => self.delete(),
            Action::Squat => self.squat(),
            Action::Bounds => self.write_bounds(),
        }
    }

    fn crash(&mut self) -> bool {
        let worker = Worker { is_told: true, ..Worker::default() };
        let count = self.workers.len();
        self.workers = vec![worker; count];
        true
    }

    fn roll_out(&mut self) -> bool {
        let Some(found) = &mut self.deployment else { return false };
        if found.has == found.count && found.is_observed {
            return false;
        }
        (found.has, found.is_observed) = (found.count, true);
        self.tell();
        true
    }

    /// What an object that is gone has made goes too.
    fn collect(&mut self) -> bool {
        if !self.schedules[0].is_gone {
            return false;
        }
        let made = self.deployment.take_if(|found| found.applied != Text::NONE).is_some();
        self.service.take_if(|found| found.applied != Text::NONE).is_some() || made
    }

    fn tick(&mut self) -> bool {
        if self.clock == self.evening {
            return false;
        }
        self.clock += 1;
        self.moved();
        true
    }

    /// The timetable asks for something else.
    pub fn moved(&mut self) {
        self.manual = Manual::None;
        self.told = 0;
    }

    fn edit(&mut self) -> bool {
        if self.edits.is_empty() {
            return false;
        }
        let edit = self.edits.remove(0);
        let before = self.asks(&self.schedules[0].spec);
        let schedule = &mut self.schedules[0];
        let spec = &mut schedule.spec;
        match edit {
            Edit::Image => spec.image += 1,
            Edit::Service(is_on) => spec.has_service = is_on,
            Edit::Suspend(is_on) => spec.is_suspended = is_on,
            Edit::Outside(count) => spec.outside = count,
            Edit::Autoscaler => spec.target = Target::Autoscaler,
            Edit::Delete => {
                schedule.is_deleting = true;
                schedule.is_gone = !schedule.has_finalizer;
            }
        }
        schedule.generation += 1;
        let is_suspended = schedule.spec.is_suspended;
        if let Some(pending) = &mut self.workers[0].pending {
            pending.is_stale = true;
        }
        self.workers[0].is_told = true;
        if self.schedules[0].is_gone {
            self.workers[0] = Worker::default();
            self.moved();
            self.tell();
        }
        if self.asks(&self.schedules[0].spec) != before || is_suspended || edit == Edit::Suspend(false) {
            self.moved();
        }
        true
    }

    fn scale(&mut self) -> bool {
        let count = 9;
        let Some(found) = self.deployment.as_mut().filter(|found| found.count != count) else { return false };
        (found.count, found.is_observed) = (count, false);
        found.owners = BTreeSet::from([Owner::Scale]);
        if let Some(eldest) = self.eldest().filter(|eldest| self.schedules[*eldest].spec.keeps) {
            let schedule = &self.schedules[eldest];
            let told = schedule.status.known();
            let told = &told.status;
            // A scale tells no time, so it may have been written before a boundary that nobody has told of yet.
            let is_told_of_all =
                told.next_transition.as_ref().is_none_or(|next| next.time.0.as_millisecond() > self.now());
            let is_sure = self.workers[eldest].pending.is_none()
                && is_told_of_all
                && told.scheduled_replicas == Some(self.asks(&schedule.spec))
                && told.observed_generation == Some(i64::from(schedule.generation))
                && told.active_window.as_deref() == Some(if self.clock == 1 { "office" } else { "" })
                && !schedule.status.says("Suspended", "True")
                && !schedule.status.says("Conflict", "True");
            self.manual = if is_sure { Manual::Stands(count) } else { Manual::Either(count) };
        }
        self.tell();
        true
    }

    fn delete(&mut self) -> bool {
        self.manual = Manual::None;
        let is_done = self.deployment.take().is_some();
        self.tell();
        is_done
    }

    fn squat(&mut self) -> bool {
        match (&self.deployment, &self.service) {
            (None, _) => self.deployment = Some(self.foreign(5)),
            (_, None) => self.service = Some(Service { uid: self.uid(), applied: Text::NONE }),
            _ => return false,
        }
        self.tell();
        true
    }

    fn write_bounds(&mut self) -> bool {
        let Some(found) = &mut self.autoscaler else { return false };
        (found.least, found.most) = (3, 4);
        self.tell();
        true
    }
}
