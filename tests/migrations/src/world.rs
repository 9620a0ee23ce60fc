//! What is around the plan of a DatabaseMigration: the object and its status, Jobs with their pods, what these read, the
//! database with its history, people, and operators that look, do one thing after the other, die, and hear answers or not.
//!
//! Time is relative: a moment is now, and the end of the last run was now, a while ago or a day ago.
//!
//! Believed of Kubernetes, and not shown here: an object that is there is not created, and a status and finalizers are
//! written only into the object as it was read. What is believed of the runner is in `database.rs`.

mod actions;
mod node;
mod people;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use gatehouse::kinds::databasemigration::observation::Purpose;
use kit::explore::Keyed;

use crate::database::{Course, Database};
use crate::faults::Hand;
use crate::look::Planned;
use crate::rules::Rule;
use crate::text::Text;

pub use node::{Shown, Surroundings};

/// How far the object is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    Plan,
    Rehearse,
    Apply,
}

/// What a person says of a script in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Answer {
    pub id: u8,
    pub is_applied: bool,
    /// Which doubt the person has looked at.
    pub about: u8,
    /// Whether it is the wrong word.
    pub is_slip: bool,
}

impl Answer {
    pub fn text(self) -> String {
        format!("{}={}", self.id, if self.is_applied { "applied" } else { "retry" })
    }
}

/// The object as it is stored.
#[expect(clippy::struct_excessive_bools, reason = "switches of the spec, none of which rules out another")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    /// Ids of scripts. 2 has its texts in a ConfigMap and cannot run in a transaction; the others are inline and can.
    pub scripts: Vec<u8>,
    pub mode: Mode,
    /// Where approval is required: the plan that is approved, or nothing.
    pub approval: Option<Text>,
    pub reverts: bool,
    pub retries: u8,
    pub is_suspended: bool,
    pub requires: bool,
    /// The annotation that asks for another run.
    pub retry: u16,
    /// The annotation that settles a doubt.
    pub resolve: Option<Answer>,
    pub generation: u16,
    pub has_finalizer: bool,
    pub is_deleting: bool,
    pub is_gone: bool,
    pub status: Text,
}

/// How a Job has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ended {
    Said(Text),
    Silent,
    Late,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Job {
    pub name: Text,
    pub key: Text,
    pub number: i64,
    pub attempt: i32,
    pub purpose: Purpose,
    pub resolved: Option<Text>,
    /// The answer that was there when it was planned.
    pub answer: Option<Answer>,
    /// The ConfigMap that it reads.
    pub told: Option<Text>,
    /// As it was created.
    pub manifest: Text,
    /// How its container has ended.
    pub ended: Option<Ended>,
    /// What the API server has of it, where that takes its time.
    pub shown: Option<Shown>,
}

/// The ConfigMap of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Snapshot {
    pub uid: u32,
    pub text: Text,
}

/// An operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Operator {
    /// The reconciliation that is under way.
    pub pending: Option<Pending>,
    /// The action that was refused in the one before.
    pub refused: Option<&'static str>,
}

/// A reconciliation that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pending {
    pub planned: Rc<Keyed<Planned>>,
    /// How many steps were done.
    pub done: usize,
}

/// What a person does, one thing after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Edit {
    /// The text in the ConfigMap is that version.
    Source(u8),
    /// The ConfigMap is deleted.
    NoSource,
    AddScript(u8),
    Mode(Mode),
    Suspend(bool),
    Base(bool),
    /// Another run is asked for.
    Retry,
    Retain,
    Delete,
}

/// How often what may happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    pub crashes: u8,
    pub lost_answers: u8,
    pub refusals: u8,
    /// A run is killed between two scripts.
    pub kills: u8,
    /// A run leaves a script in doubt.
    pub doubts: u8,
    /// A run does not reach the server.
    pub unreached: u8,
    /// The server refuses a script, or a run takes too long.
    pub failures: u8,
    /// A person deletes a Job, and its pod goes on until another run begins.
    pub deletions: u8,
    /// Of these, how many may be of Jobs that the status does not name yet.
    pub unseen_deletions: u8,
    /// A Job that has ended has been there for long enough.
    pub expiries: u8,
    /// A day passes.
    pub days: u8,
    /// A leader that was replaced reads and plans.
    pub replaced: u8,
    /// A database is restored from before the scripts.
    pub restores: u8,
    pub answers: u8,
    /// A Job has no time left.
    pub deadlines: u8,
    /// A pod is asked to go, as where its node is drained.
    pub evictions: u8,
    /// A person says the wrong word about a doubt.
    pub slips: u8,
    pub approvals: u8,
}

impl Faults {
    /// How often that may happen yet; nothing where nothing counts it.
    fn of(&mut self, action: &Action) -> Option<&mut u8> {
        match action {
            Action::Unheard(_) => Some(&mut self.lost_answers),
            Action::Crash(_) => Some(&mut self.crashes),
            Action::Refusal(_) => Some(&mut self.refusals),
            Action::Run(course) | Action::Orphan(course) => match course {
                // A pod that is deleted or evicted runs no further.
                Course::Whole | Course::Interrupted(_) => None,
                Course::Killed(_) => Some(&mut self.kills),
                Course::Doubt { .. } => Some(&mut self.doubts),
                Course::Unreached => Some(&mut self.unreached),
                Course::Fails | Course::Late => Some(&mut self.failures),
            },
            Action::Deadline => Some(&mut self.deadlines),
            Action::Evict => Some(&mut self.evictions),
            Action::DeleteJob => Some(&mut self.deletions),
            Action::Expire => Some(&mut self.expiries),
            Action::Day => Some(&mut self.days),
            Action::Restore => Some(&mut self.restores),
            Action::Answer => Some(&mut self.answers),
            Action::Slip => Some(&mut self.slips),
            Action::Approve => Some(&mut self.approvals),
            Action::Pass(at) if *at > 0 => Some(&mut self.replaced),
            Action::Pass(_)
            | Action::Step(_)
            | Action::Report
            | Action::Collect
            | Action::Control
            | Action::Later
            | Action::Edit
            | Action::Calm(_) => None,
        }
    }
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// An operator reads, and plans.
    Pass(usize),
    /// It does the next thing of that.
    Step(usize),
    /// It does it, and does not hear so.
    Unheard(usize),
    /// It dies.
    Crash(usize),
    /// The API server will not have the next thing.
    Refusal(usize),
    /// The pod of the run that is under way does its work.
    Run(Course),
    /// A pod whose Job was deleted does.
    Orphan(Course),
    DeleteJob,
    Expire,
    /// A Job has no time left: its controller deletes the pod.
    Deadline,
    /// Another client deletes the pod.
    Evict,
    /// The kubelet says that the container has terminated.
    Report,
    /// The pod that was deleted and has terminated is gone.
    Collect,
    /// The Job controller says how far it is, and gives up the pod.
    Control,
    /// Some time passes, as long as it takes to try again.
    Later,
    Day,
    Restore,
    /// The next edit.
    Edit,
    Answer,
    Slip,
    Approve,
    /// What happens in the calm alone.
    Calm(Calm),
}

/// What happens in the calm alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Calm {
    /// Jobs that have ended and were told of are gone.
    Expire,
    /// A Job whose run is over has no time left, for its sidecar does not end.
    Deadline,
    /// A day passes, after a database was restored.
    Day,
    /// A person does what the status asks for.
    Help,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub object: Object,
    /// The version of the text in the ConfigMap.
    pub source: Option<u8>,
    pub is_base_ready: bool,
    pub operators: Vec<Operator>,
    pub jobs: Vec<Job>,
    /// Runs whose Jobs were deleted, and whose pods go on.
    pub orphans: Vec<Job>,
    pub snapshots: BTreeMap<Text, Snapshot>,
    pub next_uid: u32,
    pub database: Database,
    /// What is believed of the Job controller and the kubelet.
    pub around: Surroundings,
    pub edits: Vec<Edit>,
    pub faults: Faults,
    /// Plans that a person has approved.
    pub approved: BTreeSet<Text>,
    /// The highest number of a run that a status has named.
    pub recorded: i64,
    /// What the run that ended last was to do, where it has not failed for a passing reason.
    pub settled: Option<Text>,
    /// What was asked for when the database was restored, and nothing has been asked for since.
    pub restored: Option<(usize, u16, Option<u8>)>,
    /// The annotation that asks for another run, as it was when the status said that scripts are missing.
    pub missing: Option<u16>,
    /// A person has said what was not so.
    pub is_misled: bool,
    /// A pod whose Job was deleted has changed the database since a run ended.
    pub is_overtaken: bool,
    pub broken: Option<Rule>,
}

impl World {
    pub fn new(object: Object) -> Self {
        Self {
            object,
            source: Some(1),
            is_base_ready: true,
            operators: vec![Operator::default()],
            jobs: Vec::new(),
            orphans: Vec::new(),
            snapshots: BTreeMap::new(),
            next_uid: 1,
            database: Database::default(),
            around: Surroundings::default(),
            edits: Vec::new(),
            faults: Faults::default(),
            approved: BTreeSet::new(),
            recorded: 0,
            settled: None,
            restored: None,
            missing: None,
            is_misled: false,
            is_overtaken: false,
            broken: None,
        }
    }

    /// Whether there is one operator: what several do at once, nothing but the database keeps apart.
    pub fn is_alone(&self) -> bool {
        self.operators.len() == 1
    }

    pub fn breaks(&mut self, rule: Rule) {
        self.broken.get_or_insert(rule);
    }

    fn act(&mut self, action: &Action, hand: Hand) -> bool {
        if let Some(left) = self.faults.of(action) {
            *left -= 1;
        }
        match action {
            Action::Pass(at) => self.pass(*at, hand),
            Action::Step(at) => self.step(*at),
            Action::Unheard(at) => self.step(*at) && self.give_up(*at),
            Action::Crash(at) => self.crash(*at),
            Action::Refusal(at) => self.refuse(*at),
            Action::Run(course) => self.run(*course),
            Action::Orphan(course) => self.run_orphan(*course),
            Action::DeleteJob => self.delete_job(),
            Action::Expire | Action::Calm(Calm::Expire) => self.expire(),
            Action::Deadline => self.delete_pod(true),
            Action::Calm(Calm::Deadline) => self.has_sidecar_alone() && self.delete_pod(true),
            Action::Evict => self.delete_pod(false),
            Action::Report => self.report(),
            Action::Collect => self.collect(),
            Action::Control => self.control(),
            Action::Later => self.ages(40),
            Action::Day => self.ages(25 * 60),
            Action::Restore => self.restore(),
            Action::Edit => self.edit(),
            Action::Answer => self.answer(false),
            Action::Slip => self.answer(true),
            Action::Approve => self.approve(),
            Action::Calm(Calm::Day) => self.restored.is_some() && self.ages(25 * 60),
            Action::Calm(Calm::Help) => self.help(),
        }
    }

    /// The pod of the newest Job that has not ended does its work.
    fn run(&mut self, course: Course) -> bool {
        let Some(at) = self.jobs.iter().rposition(|job| job.ended.is_none()) else { return false };
        let job = self.jobs[at].clone();
        if !job.may_go(course) {
            return false;
        }
        let Some(ended) = self.work(&job, course) else { return false };
        self.jobs[at].ended = Some(ended);
        self.is_overtaken = false;
        // A pod whose Job is gone does not begin once another run has.
        self.orphans.retain(|_| job.purpose.only_reads());
        let is_passing = match ended {
            Ended::Silent => true,
            Ended::Said(said) => {
                let said = said.result();
                said.last_error.is_some_and(|error| error.class.is_retryable()) || said.in_doubt.is_some()
            }
            // What was taken back is known by the history alone.
            Ended::Late => job.purpose == Purpose::Revert,
        };
        self.settled = (!is_passing && job.purpose != Purpose::Verify).then_some(job.key);
        true
    }

    fn run_orphan(&mut self, course: Course) -> bool {
        if matches!(course, Course::Interrupted(_)) {
            return false;
        }
        let Some(job) = self.orphans.pop() else { return false };
        let before = self.database.clone();
        let works = self.work(&job, course).is_some();
        self.is_overtaken |= self.database != before;
        works
    }

    fn delete_job(&mut self) -> bool {
        let Some(job) = self.jobs.last().cloned() else { return false };
        if job.number > self.recorded {
            let Some(left) = self.faults.unseen_deletions.checked_sub(1) else { return false };
            self.faults.unseen_deletions = left;
        }
        self.jobs.pop();
        // How it ended is unknown from now on, unless the status has it.
        let told = self.told();
        self.settled.take_if(|_| job.number > told);
        if job.ended.is_none() {
            self.orphans.push(Job { shown: None, ..job });
        }
        true
    }

    /// The number of the last run whose end the status tells.
    pub fn told(&self) -> i64 {
        self.object.status.status().last_run.as_ref().map_or(0, |last| last.number)
    }

    fn expire(&mut self) -> bool {
        let told = self.told();
        let before = self.jobs.len();
        self.jobs.retain(|job| !job.is_finished() || job.number > told);
        self.jobs.len() < before
    }

    /// The last run ended that many minutes ago, unless it was longer ago.
    fn ages(&mut self, minutes: i64) -> bool {
        let Some(aged) = crate::look::aged(self.object.status, minutes) else { return false };
        self.object.status = aged;
        true
    }
}
