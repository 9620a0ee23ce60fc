//! How a run ended, as the status says it. Pure.
//!
//! Guarantees: what is said of the database is what a report says. Of a run without a report, nothing is.

use crate::kinds::databasemigration::api::status::Reason;
use crate::kinds::databasemigration::api::v1::{DatabaseMigrationStatus, FinishedRun, Outcome};
use crate::kinds::databasemigration::observation::{Ending, Purpose, Run};
use crate::kinds::databasemigration::result::{self, BlockedReason, LastError, RunResult};

/// How a run ended, and why.
pub fn outcome(
    before: &DatabaseMigrationStatus,
    run: &Run,
    ending: &Ending,
) -> (Outcome, Option<(Reason, String)>) {
    let result = match ending {
        Ending::Late(None) => return late(before, run),
        Ending::Late(Some(result)) => {
            let message = format!(
                "the run took longer than runner.deadline and was ended: it had applied {} scripts, and what it had open \
                 is rolled back",
                result.applied_now
            );
            return (Outcome::Failed, Some((Reason::DeadlineExceeded, message)));
        }
        Ending::Silent(why) => return (Outcome::Lost, Some((Reason::RunLost, why.clone()))),
        Ending::Said(result) => result,
    };
    match result.outcome {
        _ if run.purpose == Purpose::Verify && has_succeeded(result.outcome) => verified(before, result),
        result::Outcome::Failed => failed(result),
        result::Outcome::Blocked => (Outcome::Blocked, Some(blocked(result))),
        result::Outcome::InDoubt => (Outcome::InDoubt, Some((Reason::InDoubt, in_doubt(result)))),
        _ => (Outcome::Done, None),
    }
}

/// Whether a run did what it was to do.
pub const fn has_succeeded(outcome: result::Outcome) -> bool {
    !matches!(outcome, result::Outcome::Failed | result::Outcome::Blocked | result::Outcome::InDoubt)
}

/// Of a run that was ended because it was late, and whose report is not there.
fn late(before: &DatabaseMigrationStatus, run: &Run) -> (Outcome, Option<(Reason, String)>) {
    let current = before.current_run.as_ref().filter(|current| current.job == run.job);
    if let Some(waiting) = current.and_then(|current| current.waiting.as_ref()) {
        let message =
            format!("the time of the run is over, and it did not run when it was last seen: {waiting}");
        return (Outcome::Lost, Some((Reason::PodNotStarted, message)));
    }
    let (outcome, message) = if changes(run.purpose) {
        (Outcome::Lost, "the run took longer than runner.deadline and was ended, and its report is lost")
    } else {
        (Outcome::Failed, "the run took longer than it may and was ended; it changes nothing in the database")
    };
    (outcome, Some((Reason::DeadlineExceeded, message.to_owned())))
}

/// Of a run that has read the history to see what is applied.
fn verified(before: &DatabaseMigrationStatus, result: &RunResult) -> (Outcome, Option<(Reason, String)>) {
    let Some(count) = pending(result).filter(|count| *count > 0) else { return (Outcome::Done, None) };
    let Some(lost) = before.last_run.as_ref().filter(|last| is_unknown(last)) else {
        return (Outcome::Blocked, Some((Reason::HistoryDiverged, lacks(count))));
    };
    // What the lost run has not done is what that run failed at.
    let late = Reason::DeadlineExceeded;
    let is_late = lost.reason.as_deref() == Some(late.as_str());
    let reason = if is_late { late } else { Reason::RetriesExhausted };
    let why = lost.message.as_deref().unwrap_or_default();
    (Outcome::Done, Some((reason, format!("{why}; {count} scripts are pending, as the history says since"))))
}

/// What is said of scripts that were applied and are not in the history.
pub fn lacks(count: i32) -> String {
    format!(
        "{count} scripts that were applied are not in the history any more, as where an older database was restored: set \
         the annotation gatehouse.dev/retry to another value to apply them"
    )
}

fn failed(result: &RunResult) -> (Outcome, Option<(Reason, String)>) {
    let Some(error) = &result.last_error else {
        return (Outcome::Failed, Some((Reason::ScriptFailed, "the run failed".to_owned())));
    };
    let at = match (&error.id, error.statement) {
        (Some(id), Some(statement)) => format!("script {id}, statement {statement}: "),
        (Some(id), None) => format!("script {id}: "),
        (None, _) => String::new(),
    };
    let state = error.sql_state.as_ref().map(|state| format!("{state}: ")).unwrap_or_default();
    let message = format!("{at}{state}{}", error.message);
    let outcome = if error.class.is_retryable() { Outcome::Retryable } else { Outcome::Failed };
    // Without a server nothing was begun, so that no script has failed.
    let is_reached = reaches(error.class) && result.server.is_some();
    let reason = if is_reached { Reason::ScriptFailed } else { Reason::NotReached };
    (outcome, Some((reason, message)))
}

/// Whether an error of that class is from a server that let us in.
pub const fn reaches(class: result::Class) -> bool {
    !matches!(class, result::Class::Connection | result::Class::Authentication | result::Class::Tls)
}

fn blocked(result: &RunResult) -> (Reason, String) {
    let Some(blocked) = &result.blocked else {
        return (Reason::HistoryDiverged, "the history contradicts the scripts".to_owned());
    };
    let reason = match blocked.reason {
        BlockedReason::ChecksumMismatch => Reason::ChecksumMismatch,
        BlockedReason::SourceChanged => Reason::SourceChanged,
        BlockedReason::PlanChanged => Reason::PlanChanged,
        BlockedReason::HistoryDiverged => Reason::HistoryDiverged,
        BlockedReason::OutOfOrder => Reason::OutOfOrder,
        BlockedReason::BaselineRequired | BlockedReason::BaselineIgnored => Reason::BaselineRequired,
        BlockedReason::NoDownScript => Reason::NoDownScript,
        BlockedReason::NotRehearsable => Reason::NotRehearsable,
        BlockedReason::NotRunnable => Reason::NotRunnable,
    };
    // The message names the script and both checksums.
    (reason, blocked.message.clone())
}

fn in_doubt(result: &RunResult) -> String {
    let Some(doubt) = &result.in_doubt else {
        return "it is not known how far a script came".to_owned();
    };
    let (id, statement) = (&doubt.id, doubt.statement);
    let is_its = |error: &&LastError| error.id.as_ref() == Some(id) && error.statement == Some(statement);
    let error = result.last_error.as_ref().filter(is_its);
    let place = error.and_then(|error| place(&error.message)).unwrap_or_default();
    format!(
        "script {id}: it is not known whether statement {statement}{place} was carried out; find out in the database, then \
         annotate the object with gatehouse.dev/resolve={id}=applied or gatehouse.dev/resolve={id}=retry"
    )
}

/// The line and the kind of a statement in the message of its failure, such as ` in line 7 (CALL)`.
fn place(message: &str) -> Option<String> {
    let (_, rest) = message.rsplit_once(" in line ")?;
    let line: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let kind = rest[line.len()..].strip_prefix(" (").and_then(|rest| rest.split_once(')'));
    let kind = kind.map(|(kind, _)| format!(" ({kind})")).unwrap_or_default();
    (!line.is_empty()).then(|| format!(" in line {line}{kind}"))
}

/// Whether runs for that purpose may change the database.
pub const fn changes(purpose: Purpose) -> bool {
    matches!(purpose, Purpose::Apply | Purpose::Revert)
}

/// How many scripts a run found pending.
pub fn pending(result: &RunResult) -> Option<i32> {
    i32::try_from(result.plan.as_ref()?.pending_count).ok()
}

/// Whether it is not known what this run, or one before it, has done.
pub fn is_unknown(run: &FinishedRun) -> bool {
    run.unknown_changes == Some(true)
}
