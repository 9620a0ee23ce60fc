//! The conditions of a DatabaseMigration. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::absorb::{has_planned, newest, report};
use super::decide::is_approved;
use super::ending::{lacks, reaches};
use super::{Situation, Verdict};
use crate::api::condition::{self, State, Statement};
use crate::api::field::FieldError;
use crate::kinds::databasemigration::api::status::{ConditionType, Reason};
use crate::kinds::databasemigration::api::v1::{DatabaseMigrationStatus, FinishedRun, Outcome};
use crate::kinds::databasemigration::observation::{Observed, Purpose, Run, RunState};
use crate::kinds::databasemigration::result::{self, RunResult};
use crate::kinds::databasemigration::spec::Spec;

/// The conditions. About the database only what a run has reported now, or that none has yet.
pub fn statements(
    spec: &Spec,
    observed: &Observed,
    status: &DatabaseMigrationStatus,
    ended: Option<&FinishedRun>,
    situation: &Situation,
) -> Vec<Statement> {
    if matches!(situation, Situation::Invalid) {
        return invalid_statements(&spec.faults).into();
    }
    let mut all = progress(spec, observed, situation);
    all.push(approved(spec, observed, status, situation));
    let known = observed.status.conditions.as_deref().unwrap_or_default();
    let unsaid = |about: ConditionType| condition::find(known, about.as_str()).is_none();
    let unknown = |about: ConditionType| about.is(State::Unknown, Reason::NotRead, "no run has ended yet");
    for (about, told) in [
        (ConditionType::HistoryConsistent, ended.and_then(|run| history(observed, run))),
        (ConditionType::DatabaseReachable, ended.and_then(|run| reachable(observed, run))),
    ] {
        all.extend(told.or_else(|| unsaid(about).then(|| unknown(about))));
    }
    all
}

/// What Stalled says where it is false.
const FREE: &str = "nothing has to be done by a person";

/// Ready, Reconciling and Stalled.
fn progress(spec: &Spec, observed: &Observed, situation: &Situation) -> Vec<Statement> {
    use ConditionType::{Ready, Reconciling, Stalled};
    let nothing = "nothing is under way";
    if let Some(refused) = &observed.refused {
        let holds = spec.is_deleting().then_some("; deletionPolicy Retain lets the object go as things are");
        let why = format!("{}{}", refused.why, holds.unwrap_or_default());
        let reason = if refused.lacks_right() { Reason::Forbidden } else { Reason::ApplyFailed };
        return vec![
            Ready.is(false, reason, &*why),
            Reconciling.is(true, reason, "it is tried again"),
            Stalled.is(true, reason, why),
        ];
    }
    match situation {
        Situation::Running(run) => under_way(spec, run).into(),
        Situation::Start(start) => {
            let (_, what) = doing(start.planned.purpose);
            let message = format!("a Job that {what} is about to start");
            vec![
                Ready.is(false, Reason::Starting, &*message),
                Reconciling.is(true, Reason::Starting, message),
                Stalled.is(false, Reason::UpToDate, FREE),
            ]
        }
        Situation::Waits(Verdict { reason, message, .. }, _) => {
            let moves = *reason == Reason::BackingOff;
            let reconciling = if moves { *reason } else { Reason::UpToDate };
            vec![
                Ready.is(false, *reason, &**message),
                Reconciling.is(moves, reconciling, if moves { message.as_str() } else { nothing }),
                Stalled.is(false, Reason::UpToDate, FREE),
            ]
        }
        Situation::Stalled(Verdict { reason, message, .. }) => vec![
            Ready.is(false, *reason, &**message),
            Reconciling.is(false, Reason::UpToDate, nothing),
            Stalled.is(true, *reason, &**message),
        ],
        Situation::Done(Verdict { reason, message, .. })
        | Situation::Verifies(Verdict { reason, message, .. }, _) => vec![
            Ready.is(true, *reason, &**message),
            Reconciling.is(false, Reason::UpToDate, nothing),
            Stalled.is(false, Reason::UpToDate, FREE),
        ],
        Situation::Leaves | Situation::Invalid => vec![],
    }
}

/// Of a run that is under way.
fn under_way(spec: &Spec, run: &Run) -> [Statement; 3] {
    let (reason, what) = doing(run.purpose);
    let waits_for_it = spec.is_deleting() && run.purpose != Purpose::Revert;
    let (reason, waiting) = match &run.state {
        RunState::Active(Some(why)) => (Reason::PodNotStarted, format!("; it does not run: {why}")),
        _ if waits_for_it => (Reason::DeletionWaits, String::new()),
        _ => (reason, String::new()),
    };
    let message = format!("Job {} {what}, attempt {}{waiting}", run.job, run.attempt);
    [
        ConditionType::Ready.is(false, reason, &*message),
        ConditionType::Reconciling.is(true, reason, message),
        ConditionType::Stalled.is(false, Reason::UpToDate, FREE),
    ]
}

const fn doing(purpose: Purpose) -> (Reason, &'static str) {
    match purpose {
        Purpose::Plan | Purpose::Verify => (Reason::Planning, "reads the history"),
        Purpose::Rehearse => (Reason::Running, "rehearses what is pending"),
        Purpose::Apply => (Reason::Running, "applies what is pending"),
        Purpose::Revert => (Reason::Reverting, "takes scripts back"),
    }
}

fn approved(
    spec: &Spec,
    observed: &Observed,
    status: &DatabaseMigrationStatus,
    situation: &Situation,
) -> Statement {
    let about = ConditionType::Approved;
    let Some(approved) = &spec.approval else {
        return about.is(true, Reason::NotRequired, "no approval is asked for");
    };
    // Nothing but a plan that is approved is run.
    let has_run = status.last_run.as_ref().is_some_and(|run| run.purpose != Purpose::Plan.as_str());
    let runs = match situation {
        Situation::Start(start) => start.planned.purpose != Purpose::Plan,
        Situation::Running(run) => run.purpose != Purpose::Plan,
        Situation::Done(verdict) | Situation::Verifies(verdict, _) => verdict.reason != Reason::Planned,
        Situation::Waits(verdict, _) | Situation::Stalled(verdict) => {
            // A run may be held up that is approved.
            let is_approved = || has_run || is_approved(spec, observed, status);
            verdict.reason != Reason::AwaitingApproval && is_approved()
        }
        Situation::Leaves | Situation::Invalid => has_run,
    };
    if runs && !approved.is_empty() {
        return about.is(true, Reason::PlanApproved, format!("plan {approved} is approved"));
    }
    let message = match &status.plan {
        Some(plan) if plan.key.is_some() => {
            format!("plan {} has to be approved: set spec.approval.planHash to it", plan.hash)
        }
        _ => "the plan is not known yet".to_owned(),
    };
    about.is(false, Reason::AwaitingApproval, message)
}

/// What a run that has ended found in the history; none when it found nothing.
fn history(observed: &Observed, run: &FinishedRun) -> Option<Statement> {
    let about = ConditionType::HistoryConsistent;
    let message = run.message.clone().unwrap_or_default();
    let reason = run.reason.as_deref().and_then(Reason::named);
    match (run.outcome, reason) {
        (Outcome::InDoubt, _) => return Some(about.is(false, Reason::InDoubt, message)),
        (
            Outcome::Blocked,
            Some(reason @ (Reason::ChecksumMismatch | Reason::HistoryDiverged | Reason::OutOfOrder)),
        ) => return Some(about.is(false, reason, message)),
        _ => {}
    }
    let result = reported(observed, run)?;
    if !has_planned(result) && result.outcome != result::Outcome::Reverted {
        return None;
    }
    if let Some(missing) = run.missing {
        return Some(about.is(false, Reason::HistoryDiverged, lacks(missing)));
    }
    // A run that changes nothing goes by what a person has said of a doubt, and leaves that.
    let is_settled = run.doubt.is_none();
    is_settled.then(|| about.is(true, Reason::Consistent, "the history agrees with the scripts"))
}

/// The report of a run that has ended.
fn reported<'a>(observed: &'a Observed, run: &FinishedRun) -> Option<&'a RunResult> {
    let newest = newest(observed).filter(|newest| newest.job == run.job)?;
    match &newest.state {
        RunState::Ended(ending) => report(ending),
        RunState::Active(_) => None,
    }
}

/// What a run that has ended says of the database; none where it says nothing.
fn reachable(observed: &Observed, run: &FinishedRun) -> Option<Statement> {
    let about = ConditionType::DatabaseReachable;
    let result = reported(observed, run)?;
    match &result.last_error {
        Some(error) if !reaches(error.class) => {
            Some(about.is(false, Reason::NotReached, run.message.clone().unwrap_or_default()))
        }
        _ if result.server.is_some() => {
            Some(about.is(true, Reason::Reached, "the last run reached the database"))
        }
        _ => None,
    }
}

/// What the conditions of an object with these faults say.
#[must_use]
pub fn invalid_statements(faults: &[FieldError]) -> [Statement; 3] {
    // A fault without the value that it is about: scripts are in it.
    let shown = |fault: &FieldError| FieldError { value: None, ..fault.clone() }.to_string();
    let message = faults.iter().map(shown).collect::<Vec<_>>().join("; ");
    let nothing = "gatehouse does nothing until the object is changed";
    [
        ConditionType::Ready.is(false, Reason::SpecInvalid, &*message),
        ConditionType::Reconciling.is(false, Reason::SpecInvalid, nothing),
        ConditionType::Stalled.is(true, Reason::SpecInvalid, message),
    ]
}

/// The condition of an object in the namespace of gatehouse.
#[must_use]
pub fn in_own_namespace(message: String) -> Statement {
    ConditionType::Ready.is(false, Reason::NamespaceRefused, message)
}

/// Reasons of Ready that need no attention.
const QUIET: &[Reason] = &[
    Reason::Running,
    Reason::Planning,
    Reason::Reverting,
    Reason::Starting,
    Reason::BackingOff,
    Reason::Suspended,
    Reason::RequirementNotReady,
    Reason::DeletionWaits,
];

/// Conditions that need a person's attention, each with its reason.
pub fn problems(conditions: &[Condition]) -> impl Iterator<Item = (&Condition, Reason)> {
    let ready = condition::find(conditions, ConditionType::Ready.as_str());
    let ready = ready.filter(|ready| ready.status == State::False.as_str());
    ready
        .and_then(|ready| Some((ready, Reason::named(&ready.reason)?)))
        .filter(|(_, reason)| !QUIET.contains(reason))
        .into_iter()
}
