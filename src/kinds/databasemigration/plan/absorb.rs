//! Takes the result of a run that has ended into the status. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::ending::{changes, has_succeeded, is_unknown, outcome, pending};
use crate::kinds::databasemigration::api::status::Reason;
use crate::kinds::databasemigration::api::v1::{
    AppliedScript, CurrentRun, DatabaseMigrationStatus, FinishedRun, LastError, Outcome, PlanStatus,
};
use crate::kinds::databasemigration::observation::{Ending, Observed, Purpose, Run, RunState};
use crate::kinds::databasemigration::resources::assignment::resolution;
use crate::kinds::databasemigration::result::{self, Class, RunResult};
use crate::kinds::databasemigration::spec::Spec;

/// Applied scripts that a status lists.
const MOST_APPLIED: usize = 50;

/// Pending scripts that a status lists.
const MOST_PENDING: usize = 256;

/// Warnings that a status lists.
const MOST_WARNINGS: usize = 20;

/// Characters of a message.
const LONGEST_MESSAGE: usize = 1024;

/// The newest of the runs that have a Job.
pub fn newest(observed: &Observed) -> Option<&Run> {
    observed.runs.iter().max_by_key(|run| run.number)
}

/// The status with the result of the newest run, where it has ended and is not reported yet; and that run.
pub fn ended(spec: &Spec, observed: &Observed) -> (DatabaseMigrationStatus, Option<FinishedRun>) {
    let mut status = observed.status.clone();
    // An answer that was used counts again once the annotation has been without it.
    if let Some(last) = &mut status.last_run {
        last.resolved.take_if(|used| Some(&*used) != spec.resolve.as_ref());
    }
    let told = status.last_run.as_ref().map(|run| run.number).unwrap_or_default();
    if let Some(run) = newest(observed).filter(|run| run.number > told) {
        let RunState::Ended(ending) = &run.state else { return (status, None) };
        let finished = finished(spec, &status, run, ending, observed.now);
        if report(ending).is_none() && run.purpose == Purpose::Apply {
            status.applied_snapshot.get_or_insert_with(|| run.job.clone());
        }
        take(&mut status, observed, run, (ending, &finished));
        let_go(spec, &mut status);
        return (status, Some(finished));
    }
    // The Job of a run is gone before its end was observed.
    let is_gone = |current: &CurrentRun| current.number > told;
    let Some(gone) = status.current_run.clone().filter(is_gone) else {
        unseen(&mut status, observed);
        let_go(spec, &mut status);
        return (status, None);
    };
    let finished = lost(&status, &gone, observed.now);
    if Purpose::named(&gone.purpose) == Some(Purpose::Apply) {
        status.applied_snapshot.get_or_insert(gone.job);
    }
    status.last_error = None;
    status.last_run = Some(finished.clone());
    let_go(spec, &mut status);
    (status, Some(finished))
}

/// The texts of a plan are kept until the runs that it was approved for are over: what is asked for from then on is what
/// its source says, also where another plan comes to nothing.
fn let_go(spec: &Spec, status: &mut DatabaseMigrationStatus) {
    let is_over = |last: &FinishedRun| match (Purpose::named(&last.purpose), last.outcome) {
        (Some(Purpose::Verify), _) => true,
        (Some(Purpose::Rehearse | Purpose::Apply), outcome) => match outcome {
            Outcome::Done | Outcome::Failed | Outcome::Blocked => true,
            // A run looks what it did, and the same texts say what it was to do.
            Outcome::Retryable | Outcome::Lost if is_unknown(last) => false,
            Outcome::Retryable | Outcome::Lost => last.attempt > spec.retries,
            Outcome::InDoubt => false,
        },
        _ => false,
    };
    if status.last_run.as_ref().is_some_and(is_over)
        && let Some(plan) = &mut status.plan
    {
        plan.snapshot = None;
    }
}

/// A run was to be created that may have been there and is gone: its texts are those of what may be applied, unless
/// others are known to be.
fn unseen(status: &mut DatabaseMigrationStatus, observed: &Observed) {
    if status.applied_snapshot.is_none() {
        status.applied_snapshot = observed.unseen_snapshots(status).next().cloned();
    }
}

fn lost(before: &DatabaseMigrationStatus, run: &CurrentRun, now: Timestamp) -> FinishedRun {
    let purpose = Purpose::named(&run.purpose);
    FinishedRun {
        job: run.job.clone(),
        key: run.key.clone(),
        number: run.number,
        attempt: run.attempt,
        purpose: run.purpose.clone(),
        resolved: used(before, run.resolved.as_ref(), purpose, Outcome::Lost, None),
        doubt: before.last_run.as_ref().and_then(|last| last.doubt.clone()),
        missing: missing(before, purpose, None),
        outcome: Outcome::Lost,
        reason: Some(Reason::RunLost.as_str().to_owned()),
        message: Some(format!("Job {} is gone, and its report was not read", run.job)),
        unknown_changes: unknown_changes(before, purpose, None),
        finished_at: Time(now),
    }
}

fn finished(
    spec: &Spec,
    before: &DatabaseMigrationStatus,
    run: &Run,
    ending: &Ending,
    now: Timestamp,
) -> FinishedRun {
    let (outcome, why) = outcome(before, run, ending);
    let report = report(ending);
    let doubt = doubt(before, run, report);
    // What was said before there was a doubt is not about this one.
    let resolved = if is_new_doubt(before, report) {
        spec.resolve.clone().filter(|answer| resolution(answer).is_some())
    } else {
        used(before, run.resolved.as_ref(), Some(run.purpose), outcome, report)
    };
    FinishedRun {
        job: run.job.clone(),
        key: run.key.clone(),
        number: run.number,
        attempt: run.attempt,
        purpose: run.purpose.as_str().to_owned(),
        resolved,
        doubt,
        missing: missing(before, Some(run.purpose), report),
        outcome,
        reason: why.as_ref().map(|(reason, _)| reason.as_str().to_owned()),
        message: why.map(|(_, message)| cut(&message)),
        unknown_changes: unknown_changes(before, Some(run.purpose), report),
        finished_at: Time(now),
    }
}

/// Whether a run found a doubt that was not there when the runs before it had ended: another run has left it.
fn is_new_doubt(before: &DatabaseMigrationStatus, report: Option<&RunResult>) -> bool {
    let known = before.last_run.as_ref().and_then(|last| last.doubt.as_ref());
    let found = report.and_then(|result| result.in_doubt.as_ref());
    found.is_some_and(|found| found.run.is_none() || found.run.as_ref() != known)
}

/// The run that has left a script in doubt, as far as it is known.
fn doubt(before: &DatabaseMigrationStatus, run: &Run, report: Option<&RunResult>) -> Option<String> {
    let known = || before.last_run.as_ref()?.doubt.clone();
    let Some(result) = report else { return known() };
    if let Some(found) = &result.in_doubt {
        return found.run.clone();
    }
    // A run that changes nothing goes by an answer, and leaves the doubt. So does a run that came to no script.
    let settles_nothing = run.resolved.is_some() && (!changes(run.purpose) || has_begun_nothing(result));
    let is_settled = !settles_nothing && has_planned(result);
    if is_settled || result.outcome == result::Outcome::Reverted { None } else { known() }
}

/// Whether a run failed before its first script, as far as its report says.
fn has_begun_nothing(result: &RunResult) -> bool {
    // Nor does an answer settle anything while an index that the script made is not valid.
    let is_of_script = |error: &result::LastError| error.id.is_some() && error.class != Class::InvalidIndex;
    let is_at_script = result.last_error.as_ref().is_some_and(is_of_script);
    result.outcome == result::Outcome::Failed && result.applied_now == 0 && !is_at_script
}

/// How many scripts that were applied the history lacks. A run that applies them has been asked for.
fn missing(
    before: &DatabaseMigrationStatus,
    purpose: Option<Purpose>,
    report: Option<&RunResult>,
) -> Option<i32> {
    let purpose = purpose.filter(|purpose| !changes(*purpose))?;
    let known = || before.last_run.as_ref()?.missing;
    let Some(pending) = report.filter(|result| has_planned(result)).and_then(pending) else { return known() };
    match purpose {
        // What a lost run was to apply was perhaps never there.
        Purpose::Verify if !before_is_unknown(before) => Some(pending),
        _ => known().map(|known| known.min(pending)),
    }
    .filter(|count| *count > 0)
}

/// Whether a run has read the history, and found no contradiction and no doubt.
pub fn has_planned(result: &RunResult) -> bool {
    result.server.is_some() && result.plan.is_some()
}

/// The answer to a doubt that was used last: it is not used twice.
fn used(
    before: &DatabaseMigrationStatus,
    given: Option<&String>,
    purpose: Option<Purpose>,
    outcome: Outcome,
    report: Option<&RunResult>,
) -> Option<String> {
    let may_be_used = match purpose {
        // What only reads settles nothing. Where it finds a doubt all the same, the answer is about another one.
        Some(Purpose::Plan | Purpose::Verify) => outcome == Outcome::InDoubt,
        // Nor does what is rolled back; where another attempt follows by itself, the answer does not reset the count.
        Some(Purpose::Rehearse) => !matches!(outcome, Outcome::Done | Outcome::Failed | Outcome::Blocked),
        // A run that failed before it had read the history has not used it.
        Some(Purpose::Apply | Purpose::Revert) | None => {
            report.is_none_or(|result| result.outcome != result::Outcome::Failed || result.plan.is_some())
        }
    };
    let used = given.filter(|_| may_be_used).cloned();
    used.or_else(|| before.last_run.as_ref()?.resolved.clone())
}

/// Whether the database may have been changed by a run that did not say so.
fn unknown_changes(
    before: &DatabaseMigrationStatus,
    purpose: Option<Purpose>,
    report: Option<&RunResult>,
) -> Option<bool> {
    let may_change = purpose.is_none_or(changes);
    let is_unknown = match report {
        Some(result) if applied_count(result).is_some() => false,
        // It did not come to the history.
        Some(_) => before_is_unknown(before),
        None => may_change || before_is_unknown(before),
    };
    is_unknown.then_some(true)
}

fn before_is_unknown(before: &DatabaseMigrationStatus) -> bool {
    before.last_run.as_ref().is_some_and(is_unknown)
}

/// How many scripts are applied, where the run has read the history.
fn applied_count(result: &RunResult) -> Option<u32> {
    result.applied_count.filter(|_| result.server.is_some())
}

/// The report of a run.
pub const fn report(ending: &Ending) -> Option<&RunResult> {
    match ending {
        Ending::Said(result) | Ending::Late(Some(result)) => Some(&**result),
        Ending::Late(None) | Ending::Silent(_) => None,
    }
}

/// What the run says of the database.
fn take(
    status: &mut DatabaseMigrationStatus,
    observed: &Observed,
    run: &Run,
    (ending, finished): (&Ending, &FinishedRun),
) {
    let purpose = run.purpose;
    let follows_unseen = observed.unseen_snapshots(status).any(|name| *name != run.job);
    // What an earlier run may have applied, this one finds applied.
    let before_was_unknown = before_is_unknown(status);
    let follows_silence = before_was_unknown || follows_unseen;
    status.last_run = Some(finished.clone());
    status.last_error = None;
    let Some(result) = report(ending) else { return };
    // A run that finds a doubt, or is blocked, has made no plan; one that leaves a doubt has.
    let has_applied =
        result.applied_now > 0 || has_planned(result) && (result.in_doubt.is_some() || follows_silence);
    let finds_applied = purpose == Purpose::Verify && has_planned(result) && before_was_unknown;
    if purpose == Purpose::Apply && has_applied || finds_applied {
        status.applied_snapshot = Some(finished.job.clone());
    }
    if let Some(server) = &result.server {
        status.server_version = Some(cut(&server.version));
    }
    if let Some(count) = applied_count(result) {
        status.applied_count = i32::try_from(count).ok();
        status.applied = Some(applied(result)).filter(|applied| !applied.is_empty());
        // A run that only reads leaves a doubt as it is, whatever its assignment says of it. It takes no lock: the pod of a
        // lost run may still be at work.
        let is_sure = has_succeeded(result.outcome)
            && run.resolved.is_none()
            && (changes(purpose) || !before_was_unknown);
        status.applied_snapshot.take_if(|_| is_sure && count == 0);
    }
    // Without the history it is not known what is pending.
    if let Some(plan) = result.plan.as_ref().filter(|_| result.server.is_some()) {
        let before = status.plan.take().unwrap_or_default();
        let is_same = before.hash == plan.hash;
        // A run that was blocked, or failed, has made no plan that could be approved.
        let is_made = purpose == Purpose::Plan && finished.outcome == Outcome::Done;
        let key = is_made.then(|| finished.key.clone()).or_else(|| before.key.filter(|_| is_same));
        let snapshot = is_made.then(|| finished.job.clone()).or_else(|| before.snapshot.filter(|_| is_same));
        let left = i32::try_from(plan.pending_count).unwrap_or(i32::MAX);
        // A run lists what was to be run when it began.
        let is_done = finished.outcome == Outcome::Done && purpose == Purpose::Apply;
        let left = if is_done { 0 } else { (left - now_applied(purpose, result)).max(0) };
        let passed = if is_done { plan.pending.len() } else { index(now_applied(purpose, result)) };
        let pending: Vec<_> = plan.pending.iter().skip(passed).take(MOST_PENDING).cloned().collect();
        status.pending_count = Some(left);
        status.plan = Some(PlanStatus {
            hash: plan.hash.clone(),
            key,
            snapshot,
            pending: Some(pending).filter(|pending| !pending.is_empty()),
            warnings: Some(plan.warnings.iter().take(MOST_WARNINGS).map(|text| cut(text)).collect())
                .filter(|warnings: &Vec<String>| !warnings.is_empty()),
        });
    }
    status.last_error = result.last_error.as_ref().map(|error| LastError {
        id: error.id.clone(),
        statement: error.statement.map(|statement| statement.to_string()),
        sql_state: error.sql_state.clone(),
        class: Some(format!("{:?}", error.class)),
        message: cut(&error.message),
    });
}

fn index(number: i32) -> usize {
    usize::try_from(number).unwrap_or_default()
}

fn now_applied(purpose: Purpose, result: &RunResult) -> i32 {
    if purpose == Purpose::Apply { i32::try_from(result.applied_now).unwrap_or(0) } else { 0 }
}

fn applied(result: &RunResult) -> Vec<AppliedScript> {
    result.applied[result.applied.len().saturating_sub(MOST_APPLIED)..].to_vec()
}

/// A text as long as the status takes one.
pub fn cut(text: &str) -> String {
    text.chars().take(LONGEST_MESSAGE).collect()
}
