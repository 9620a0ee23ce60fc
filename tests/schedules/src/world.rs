//! What is around the plans of TDSets: the clock, the objects of one namespace, others that write them, and operators
//! that look, do one step after the other, crash, and hear answers or not.
//!
//! Believed of the API server, and not shown here: who owns a count after an apply, an update or a scale; that a uid in
//! what is written is a precondition; that an apply without force is a conflict where another manager's field differs.

mod actions;
mod people;

pub use actions::{Action, Faults};
pub use people::{Edit, other_image, other_port};

use std::collections::BTreeSet;
use std::rc::Rc;

use gatehouse::kinds::tdset::observation::Unreported;
use gatehouse::kinds::tdset::state::{ReconcileState, Reverts};
use kit::explore::Keyed;

use crate::faults::Hand;
use crate::observations::{Planned, Unread};
use crate::rules::Rule;
use crate::text::Text;

/// The instants that the clock shows, one after another: before a window, and a moment after each boundary. The window
/// is from 8 to 18 o'clock in UTC.
pub const CLOCK: [&str; 3] = ["2026-03-02T07:00:00Z", "2026-03-02T08:00:00.25Z", "2026-03-02T18:00:00.25Z"];

/// What a schedule asks for.
#[expect(clippy::struct_excessive_bools, reason = "switches of the spec, none of which rules out another")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    pub outside: i32,
    pub inside: i32,
    /// A number that stands for an image.
    pub image: u8,
    pub has_service: bool,
    /// The port of that.
    pub port: u16,
    pub keeps: bool,
    pub is_suspended: bool,
    /// Whether the count moves by one an hour.
    pub is_ramped: bool,
    /// Whether days are held whose dates cannot be read.
    pub holds: bool,
    /// What of it is not valid.
    pub broken: Option<Broken>,
    pub target: Target,
}

/// What is not valid in a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Broken {
    TimeZone,
    /// A window, and a variable of the container.
    More,
}

impl Spec {
    /// Whether a count that another client writes stands.
    pub fn lets_stand(&self) -> bool {
        self.keeps && self.target != Target::Applied
    }

    /// What a status tells of that count as the scheduled one.
    pub fn said(&self, asks: i32) -> Option<i32> {
        Some(asks)
            .filter(|_| self.broken.is_none())
            .filter(|asks| self.target != Target::Lent || *asks == self.inside)
    }
}

/// Whose count it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    Create,
    /// Of a foreign Deployment; and what it is left with.
    Reference(Option<i32>),
    /// One that is made, with an autoscaler.
    Autoscaler,
    /// A foreign one that another controller owns; the schedule is to leave it with 4, and leaves it alone.
    Controlled,
    /// A foreign one whose count is its own outside of the window, and is given back after it.
    Lent,
    /// The same of a controller that is not one of our own.
    Owned,
    /// A foreign one whose count has never been written, to be left with 0.
    Unset,
    /// A foreign one that a tool applies again and again.
    Applied,
    /// A foreign one of whose count the API server does not say who wrote it.
    Unowned,
    /// A foreign one with an autoscaler, which is to be left with bounds of 3 and 8.
    Bounded,
}

impl Target {
    pub const fn is_foreign(&self) -> bool {
        !matches!(self, Self::Create | Self::Autoscaler)
    }

    pub const fn is_controlled(&self) -> bool {
        matches!(self, Self::Controlled | Self::Owned)
    }

    pub const fn is_autoscaled(&self) -> bool {
        matches!(self, Self::Autoscaler | Self::Bounded)
    }

    pub const fn leaves_something(&self) -> bool {
        matches!(self, Self::Reference(Some(_)) | Self::Bounded | Self::Unset)
    }
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
    /// `kubectl edit` at that second, in milliseconds.
    Edit(i64),
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
    /// Whether it is being deleted.
    pub is_going: bool,
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
    /// Whether they were written by the operator last.
    pub is_ours: bool,
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
pub struct Pending {
    /// What was read, and what is planned of that.
    pub planned: Rc<Keyed<Planned>>,
    /// How many steps were done.
    pub done: usize,
    pub has_changed: bool,
    /// The first step that was refused.
    pub refused: Option<usize>,
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
        let ReconcileState { carried, unreported, reverts, repairs, .. } = &self.recall;
        let is_news = *carried != Unreported::default()
            || [reverts, repairs].into_iter().any(|all| *all != Reverts::default());
        let carried = is_news.then(|| format!("{carried:?} {reverts:?} {repairs:?}"));
        (&self.pending, carried, *unreported, self.is_told, self.wake)
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
#[expect(clippy::struct_excessive_bools, reason = "things that may be so, none of which rules out another")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub clock: usize,
    /// Milliseconds since the clock came to show that.
    pub later: i64,
    /// Whether the operator's clock is a second behind.
    pub is_behind: bool,
    /// Whether an autoscaler of another owner scales the workload.
    pub is_scaled: bool,
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
    /// When counts were taken back since then, as far as the operator that lives remembers.
    pub taken_back: Vec<i64>,
    /// The same of what was made and put back, its count aside.
    pub put_back: Vec<i64>,
    /// Whether a count was written that the timetable asks for, and nothing has told of that yet.
    pub is_silent: bool,
    /// Whether the count is on a ramp.
    pub has_set_out: bool,
    /// Whether something went wrong after which things may be told twice.
    pub is_disturbed: bool,
    pub next_uid: u8,
    pub broken: Option<Rule>,
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
            later: 0,
            is_behind: false,
            is_scaled: false,
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
            taken_back: Vec::new(),
            put_back: Vec::new(),
            is_silent: false,
            has_set_out: false,
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
            is_going: false,
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

    /// The count that is to be had now: a ramp has taken its first step since the clock moved, and no other.
    pub fn line(&self, spec: &Spec) -> i32 {
        if self.has_set_out { spec.outside + 1 } else { self.asks(spec) }
    }

    /// A ramp sets out where a count from before the window is found in it. One that is made in it has no way to go.
    fn set_out(&mut self) {
        let spec = &self.schedules[0].spec;
        let is_before = self.deployment.as_ref().is_some_and(|found| found.count == spec.outside);
        self.has_set_out = self.clock == 1 && spec.is_ramped && (self.has_set_out || is_before);
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
        self.is_disturbed |= action.disturbs();
        let is_done = match action {
            Action::Pass(at) => self.pass(*at, Unread::Nothing, hand),
            Action::Blind(at) => self.pass(*at, Unread::Objects, hand),
            Action::Unlisted(at) => self.pass(*at, Unread::Autoscalers, hand),
            Action::Undated(at) => self.pass(*at, Unread::Dates, hand),
            Action::ApiWrite(at) => self.step(*at),
            Action::Unheard(at) => self.step_unheard(*at),
            Action::Conflict(at) => self.give_up(*at),
            Action::Refusal(at) => self.refuse(*at),
            Action::Crash => self.crash(),
            Action::Rollout => self.roll_out(),
            Action::Collect => self.collect(),
            Action::Tick => self.tick(),
            Action::Wait => self.wait(),
            Action::HandOver => self.hand_over(),
            Action::CatchUp => std::mem::take(&mut self.is_behind),
            Action::Edit => self.edit(),
            Action::Scale => self.scale(Owner::Scale),
            Action::EditCount => self.scale(Owner::Edit(self.now() / 1_000 * 1_000)),
            Action::Delete => self.delete(),
            Action::DeleteSlowly => self.delete_slowly(),
            Action::Squat => self.squat(),
            Action::Bounds => self.write_bounds(),
            Action::Change => self.change(),
        };
        self.set_out();
        is_done
    }

    fn crash(&mut self) -> bool {
        let worker = Worker { is_told: true, ..Worker::default() };
        let count = self.workers.len();
        self.workers = vec![worker; count];
        self.taken_back.clear();
        self.put_back.clear();
        true
    }

    /// Another operator takes over right after a boundary.
    fn hand_over(&mut self) -> bool {
        self.is_behind = self.clock == 1 && self.later == 0;
        self.is_behind && self.crash()
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
        if self.deployment.take_if(|found| found.is_going).is_some() {
            self.tell();
            return true;
        }
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
        (self.clock, self.later) = (self.clock + 1, 0);
        self.moved();
        true
    }

    /// Nothing but a contest has the operator look again before the next boundary.
    fn wait(&mut self) -> bool {
        let mut workers = self.workers.iter().enumerate();
        let is_contested = |at| self.contest(at).or_else(|| self.repair_contest(at)).is_some();
        let contested = workers.find(|(at, worker)| worker.pending.is_none() && is_contested(*at));
        let now = self.now();
        let wake = contested.and_then(|(_, worker)| worker.wake).filter(|wake| *wake > now);
        self.later += wake.map_or(0, |wake| wake - now);
        wake.is_some()
    }

    /// The timetable asks for something else.
    pub fn moved(&mut self) {
        self.manual = Manual::None;
        self.told = 0;
        self.taken_back.clear();
        self.is_silent = false;
    }
}
