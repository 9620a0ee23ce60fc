//! What to do for a DatabaseMigration, as data. Pure: time and everything else that was read are arguments.
//!
//! Guarantees:
//! - At most one run is started at a time, and none while one is under way. What another run has ended with is in the
//!   status before the next one is created.
//! - A run follows another one for the same purpose only where that one failed for a passing reason, or where a person
//!   asks for it.
//! - Where approval is required, nothing is run that has not been approved, down scripts included. What was approved is
//!   what runs, also when the ConfigMap that it came from was edited or deleted.
//! - Of several objects with one series only the oldest starts runs that apply scripts.
//! - An object that is being deleted waits for its run, unless that only reads. What is to be taken back is also what a run
//!   may have applied whose Job was never observed.
//! - What was applied is looked for again each day, by a run that only reads. What is not there any more is applied again
//!   only when a person asks for it.
//!
//! Never: ends a run.

mod absorb;
mod conditions;
mod decide;
mod ending;
mod events;
#[cfg(test)]
pub(in crate::kinds) mod tests;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::actions::Action;
use super::names::FINALIZER;
use super::observation::{Observed, Purpose, Run, RunState};
use super::resources::assignment::Texts;
use super::resources::{Planned, job, snapshot};
use super::spec::Spec;
use crate::api::condition;
use crate::controllers::finalizer;
use crate::controllers::plan::{self, Rest, Wake};
use crate::kinds::databasemigration::api::status::Reason;
use crate::kinds::databasemigration::api::v1::{
    CurrentRun, DatabaseMigrationStatus, DeletionPolicy, FinishedRun, Outcome, Phase,
};

pub use conditions::{in_own_namespace, invalid_statements, problems};

/// Longest time between two looks.
const LATER: Duration = Duration::from_mins(10);

/// When to look again at a run: what its container waits for shows in the pod alone.
const WHILE_RUNNING: Duration = Duration::from_secs(20);

/// When to look again for what is not there, where a watch should tell before.
const WHILE_WAITING: Duration = Duration::from_mins(1);

/// When to look again after something was done.
const AT_ONCE: Duration = Duration::from_millis(200);

/// When to look again where something was not done.
const SOON: Duration = Duration::from_secs(5);

/// What to do.
pub type Plan = plan::Plan<Action, DatabaseMigrationStatus, Detail>;

/// What is decided beside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detail {
    /// A run whose end is reported now.
    pub ended: Option<FinishedRun>,
}

/// How things are, and what follows.
#[derive(Clone, Debug, PartialEq)]
enum Situation {
    /// The object does not pass the gate's validation.
    Invalid,
    /// A run is under way.
    Running(Run),
    /// A run is to be started.
    Start(Box<Start>),
    /// Something else has to happen first.
    Waits(Verdict, Option<Timestamp>),
    /// A person has to do something.
    Stalled(Verdict),
    /// All that is asked for is done.
    Done(Verdict),
    /// It is, as far as is known, and a run looks whether it still is.
    Verifies(Verdict, Verification),
    /// The object may go.
    Leaves,
}

impl Situation {
    /// The same, with what lets an object go that its down scripts hold.
    fn with_way_out(self) -> Self {
        let told = |verdict: Verdict| Verdict {
            message: format!("{}; deletionPolicy Retain lets the object go as things are", verdict.message),
            ..verdict
        };
        match self {
            Self::Waits(verdict, at) => Self::Waits(told(verdict), at),
            Self::Stalled(verdict) => Self::Stalled(told(verdict)),
            other => other,
        }
    }
}

/// A run that looks whether what was applied still is.
#[derive(Clone, Debug, PartialEq)]
enum Verification {
    Starts(Box<Start>),
    Runs(Box<Run>),
}

/// A run that is to be started.
#[derive(Clone, Debug, PartialEq)]
struct Start {
    planned: Planned,
    texts: Vec<Texts>,
    /// The ConfigMap that its texts are from, where what they came from is gone.
    applied: Option<String>,
}

/// The phase, reason and message of a situation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Verdict {
    phase: Phase,
    reason: Reason,
    message: String,
}

impl Verdict {
    fn new(phase: Phase, reason: Reason, message: impl Into<String>) -> Self {
        Self { phase, reason, message: message.into() }
    }
}

/// What to do.
#[must_use]
pub fn plan(spec: &Spec, observed: &Observed) -> Plan {
    let (mut status, ended) = absorb::ended(spec, observed);
    status.observed_generation = spec.metadata.generation;
    let situation = decide::situation(spec, observed, &status);
    status.phase = Some(phase(&situation));
    status.current_run = current(&situation);
    // After this run has ended, the status alone says which texts it took back.
    if let Situation::Start(start) = &situation
        && let Some(applied) = &start.applied
    {
        status.applied_snapshot = Some(applied.clone());
    }
    let before = observed.status.conditions.clone().unwrap_or_default();
    let statements = conditions::statements(spec, observed, &status, ended.as_ref(), &situation);
    let mut after = before.clone();
    for statement in statements {
        condition::set(&mut after, statement, spec.metadata.generation, observed.now);
    }
    let events = events::of(&observed.status, &status, ended.as_ref(), &after).collect();
    status.conditions = Some(after);
    let actions = actions(spec, observed, &status, &situation);
    let wake = Wake {
        rest: rest(&situation, observed.now),
        is_news: ended.is_some(),
        done: Some(AT_ONCE),
        undone: Some(SOON),
        refused: Some(SOON),
    };
    Plan { actions, status, events, wake, detail: Detail { ended } }
}

const fn phase(situation: &Situation) -> Phase {
    match situation {
        Situation::Invalid => Phase::Pending,
        Situation::Running(run) => running(run.purpose),
        Situation::Start(start) => running(start.planned.purpose),
        Situation::Waits(verdict, _)
        | Situation::Stalled(verdict)
        | Situation::Done(verdict)
        | Situation::Verifies(verdict, _) => verdict.phase,
        Situation::Leaves => Phase::Reverted,
    }
}

const fn running(purpose: Purpose) -> Phase {
    match purpose {
        Purpose::Plan | Purpose::Verify => Phase::Planning,
        Purpose::Rehearse | Purpose::Apply => Phase::Running,
        Purpose::Revert => Phase::Reverting,
    }
}

fn current(situation: &Situation) -> Option<CurrentRun> {
    let run = match situation {
        Situation::Running(run) => run,
        Situation::Verifies(_, Verification::Runs(run)) => run,
        _ => return None,
    };
    Some(CurrentRun {
        job: run.job.clone(),
        key: run.key.clone(),
        number: run.number,
        attempt: run.attempt,
        purpose: run.purpose.as_str().to_owned(),
        started_at: run.created.map(Time),
        resolved: run.resolved.clone(),
        waiting: match &run.state {
            RunState::Active(why) => why.as_deref().map(absorb::cut),
            RunState::Ended(_) => None,
        },
    })
}

fn rest(situation: &Situation, now: Timestamp) -> Rest {
    let after = |length: Duration| now.checked_add(SignedDuration::try_from(length).ok()?).ok();
    let time = match situation {
        Situation::Invalid => None,
        Situation::Running(_) | Situation::Verifies(_, Verification::Runs(_)) => after(WHILE_RUNNING),
        Situation::Start(_) | Situation::Verifies(_, Verification::Starts(_)) | Situation::Leaves => {
            after(Duration::from_secs(1))
        }
        Situation::Waits(_, Some(at)) => Some((*at).min(after(LATER).unwrap_or(*at))),
        Situation::Waits(_, None) => after(WHILE_WAITING),
        Situation::Stalled(_) | Situation::Done(_) => after(LATER),
    };
    time.map_or(Rest::Never, Rest::At)
}

fn actions(
    spec: &Spec,
    observed: &Observed,
    status: &DatabaseMigrationStatus,
    situation: &Situation,
) -> Vec<Action> {
    let held = finalizer::is_on(&spec.metadata, FINALIZER);
    let mut actions = Vec::new();
    // The API server refuses another finalizer on an object that is being deleted.
    if !held && !spec.is_deleting() && waits_for(situation, holds(spec, status)) {
        actions.push(Action::Hold);
    }
    match situation {
        Situation::Running(_) | Situation::Verifies(_, Verification::Runs(_)) => {}
        Situation::Start(start) | Situation::Verifies(_, Verification::Starts(start)) => {
            let Start { planned, texts, .. } = &**start;
            // One that is there is compared: its labels and its hash could be anybody's.
            actions.push(Action::CreateSnapshot(snapshot::manifest(spec, texts, planned)));
            actions.push(Action::CreateJob(job::manifest(spec, texts, planned, &observed.image)));
            return actions;
        }
        Situation::Leaves => actions.push(Action::Release),
        Situation::Invalid | Situation::Waits(..) | Situation::Stalled(_) | Situation::Done(_) => {
            // Where a deletion has nothing to do, gatehouse may be gone by then.
            if held && !spec.is_deleting() && !holds(spec, status) {
                actions.push(Action::Release);
            }
        }
    }
    actions.extend(unread(spec, observed, status));
    actions
}

/// Whether a deletion of the object has to wait. `holds`: it has something to do.
fn waits_for(situation: &Situation, holds: bool) -> bool {
    let purpose = match situation {
        Situation::Running(run) => run.purpose,
        Situation::Verifies(_, Verification::Runs(run)) => run.purpose,
        Situation::Start(start) | Situation::Verifies(_, Verification::Starts(start)) => {
            start.planned.purpose
        }
        Situation::Leaves => return false,
        // The policy may have been changed after all was applied.
        Situation::Invalid | Situation::Waits(..) | Situation::Stalled(_) | Situation::Done(_) => {
            return holds;
        }
    };
    purpose != Purpose::Verify || holds
}

/// Whether the deletion of the object has something to do.
fn holds(spec: &Spec, status: &DatabaseMigrationStatus) -> bool {
    spec.deletion_policy == DeletionPolicy::Revert && may_have_applied(status)
}

/// Whether the object may have applied a script.
fn may_have_applied(status: &DatabaseMigrationStatus) -> bool {
    let is_open = |run: &FinishedRun| run.outcome == Outcome::InDoubt || run.unknown_changes == Some(true);
    let is_applied = status.applied_count.unwrap_or_default() > 0 || status.applied_snapshot.is_some();
    is_applied || status.last_run.as_ref().is_some_and(is_open)
}

/// ConfigMaps of runs whose Jobs are gone, except for that of an approved plan and that of what a deletion takes back.
fn unread<'a>(
    spec: &'a Spec,
    observed: &'a Observed,
    status: &'a DatabaseMigrationStatus,
) -> impl Iterator<Item = Action> + use<'a> {
    let planned = status.plan.as_ref().and_then(|plan| plan.snapshot.as_ref());
    let planned = planned.filter(|_| spec.approval.is_some());
    let reverts = spec.deletion_policy == DeletionPolicy::Revert;
    let applied: Vec<_> = observed.maybe_applied(status).filter(|_| reverts).collect();
    let is_read = move |name: &String| {
        planned == Some(name) || applied.contains(&name) || observed.runs.iter().any(|run| run.job == *name)
    };
    let unread = observed.snapshots.iter().filter(move |(name, _)| !is_read(name));
    unread.map(|(name, one)| Action::DeleteSnapshot { name: name.clone(), uid: one.uid.clone() })
}
