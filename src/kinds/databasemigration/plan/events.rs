//! The events of a DatabaseMigration. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::conditions::problems;
use crate::api::condition;
use crate::controllers::api_write::Note;
use crate::kinds::databasemigration::api::v1::{DatabaseMigrationStatus, FinishedRun, Outcome};

/// The events that go with a status, whose conditions are `after`.
pub fn of(
    before: &DatabaseMigrationStatus,
    status: &DatabaseMigrationStatus,
    ended: Option<&FinishedRun>,
    after: &[Condition],
) -> impl Iterator<Item = Note> {
    let is_said = ended.is_some_and(|run| run.outcome != Outcome::Done || run.reason.is_none());
    let ended = ended.map(|run| of_end(run, status));
    let known = |status: &DatabaseMigrationStatus| status.current_run.as_ref().map(|run| run.number);
    let is_new = known(status).is_some() && known(before) != known(status);
    let started = status.current_run.as_ref().filter(|_| is_new).map(|run| Note {
        warning: false,
        reason: "RunStarted",
        action: "Run",
        text: format!("Job {} is to {}, attempt {}", run.job, verb(&run.purpose), run.attempt),
    });
    let conditions = before.conditions.clone().unwrap_or_default();
    // The end of a run has an event of its own, which says why it failed.
    let told: Vec<_> = if is_said { Vec::new() } else { warnings(&conditions, after).collect() };
    ended.into_iter().chain(started).chain(told)
}

fn verb(purpose: &str) -> String {
    purpose.to_lowercase()
}

fn of_end(run: &FinishedRun, status: &DatabaseMigrationStatus) -> Note {
    let verb = verb(&run.purpose);
    if run.outcome == Outcome::Done {
        let count = |count: Option<i32>| count.unwrap_or_default();
        let (applied, pending) = (count(status.applied_count), count(status.pending_count));
        let text = format!("{verb} is done: {applied} scripts are applied, {pending} are pending");
        return Note { warning: false, reason: "RunDone", action: "Run", text };
    }
    let reason = match run.outcome {
        Outcome::InDoubt => "RunInDoubt",
        Outcome::Blocked => "RunBlocked",
        Outcome::Lost => "RunLost",
        _ => "RunFailed",
    };
    let text = format!("{verb}, attempt {}: {}", run.attempt, run.message.clone().unwrap_or_default());
    Note { warning: true, reason, action: "Run", text }
}

/// Events for conditions that need a person's attention, where they are new.
fn warnings(before: &[Condition], after: &[Condition]) -> impl Iterator<Item = Note> {
    problems(after).filter_map(|(said, reason)| {
        let news = condition::find(before, &said.type_)
            .is_none_or(|old| (&old.reason, &old.message) != (&said.reason, &said.message));
        let text = said.message.clone();
        news.then(|| Note { warning: true, reason: reason.as_str(), action: "Reconcile", text })
    })
}
