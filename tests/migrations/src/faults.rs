//! Planted faults: an operator that does one thing wrong. Each has to be found, by the rule that names it.

use gatehouse::api::condition::State;
use gatehouse::controllers::plan::Rest;
use gatehouse::kinds::databasemigration::actions::Action;
use gatehouse::kinds::databasemigration::api::v1::{DeletionPolicy, FinishedRun, Outcome};
use gatehouse::kinds::databasemigration::names::PURPOSE;
use gatehouse::kinds::databasemigration::observation::{Ending, Observed, Purpose, RunState};
use gatehouse::kinds::databasemigration::plan::Plan;
use gatehouse::kinds::databasemigration::resources::assignment::ASSIGNMENT;
use gatehouse::kinds::databasemigration::spec::Spec;
use serde_json::{Value, json};

use crate::look::{Seen, source};
use crate::world::Answer;

/// What is wrong with the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// It waits for no approval.
    ApprovesItself,
    /// It takes scripts back by plans without approval.
    RevertsUnapproved,
    /// It does not keep the texts that were approved.
    ForgetsApprovedTexts,
    /// It tells runs another plan than the one that is approved.
    TellsAnotherPlan,
    /// It forgets that a run has ended.
    ForgetsTheLastRun,
    /// It does not notice that a run is gone.
    ForgetsLostRuns,
    /// It does not see runs that are under way.
    StartsBesideOthers,
    /// It has no deletion wait.
    HoldsNothing,
    /// It creates a Job before what that reads.
    StartsBeforeTexts,
    /// It creates no ConfigMap where there is an older one.
    KeepsOldTexts,
    /// It deletes what runs have still to read.
    DeletesTexts,
    /// It takes an answer for one that was not used.
    UsesAnswersAgain,
    /// It takes an answer for used that a run which only reads was given.
    WastesAnswers,
    /// It tells runs another answer.
    TurnsAnswersAround,
    /// It keeps no texts for a deletion.
    KeepsNothingForDeletion,
    /// It keeps for a deletion the texts that were planned last.
    KeepsWhatWasPlanned,
    /// It takes one of the texts that may have been applied for the one that was.
    GuessesWhatWasApplied,
    /// It starts runs while it is suspended.
    IgnoresSuspension,
    /// It does not wait for what has to be applied first.
    IgnoresRequirements,
    /// It repeats what the server has refused.
    RepeatsFailures,
    /// It waits for nothing before it tries again.
    HasNoPatience,
    /// It tries again for ever.
    NeverGivesUp,
    /// It lets objects go at once.
    LetsGoAtOnce,
    /// It takes nothing back.
    TakesNothingBack,
    /// It goes on with scripts while the object is being deleted.
    AppliesWhileDeleting,
    /// It lets no object go.
    LetsNothingGo,
    /// It says that all is applied as soon as a run is to do so.
    SaysWhatItPlanned,
    /// It applies what a restored database lacks.
    AppliesWhatIsMissing,
    /// It takes a run that was late for one that failed, whatever became of its report.
    TrustsTheDeadline,
    /// It takes a pod that is gone for a run that failed.
    TrustsSilence,
    /// It checks again only when a user asks for it.
    Oversleeps,
    /// It writes another status each time.
    WritesAlways,
    /// It takes what has no row in the history for applied.
    TakesScriptsForApplied,
    /// It calls scripts idempotent that are not.
    RunsDoubtsAgain,
    /// It does not say that it waits for an approval.
    AsksForNothing,
}

/// The operator's hand, with at most one fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hand(pub Option<Fault>);

impl Hand {
    /// Changes what is asked for, and what is seen.
    pub fn mislead(self, spec: &mut Spec, observed: &mut Observed) {
        let Some(fault) = self.0 else { return };
        let last = observed.status.last_run.as_mut();
        match fault {
            Fault::ApprovesItself => spec.approval = None,
            Fault::RevertsUnapproved if spec.is_deleting() => spec.approval = None,
            Fault::ForgetsApprovedTexts if !spec.is_deleting() => observed.kept.clear(),
            Fault::GuessesWhatWasApplied => {
                if let Some(first) = observed.kept.values().next().cloned() {
                    observed.kept.values_mut().for_each(|texts| texts.clone_from(&first));
                }
            }
            Fault::TrustsTheDeadline | Fault::TrustsSilence => {
                let reason = if fault == Fault::TrustsSilence { "RunLost" } else { "DeadlineExceeded" };
                let is_meant = |last: &&mut FinishedRun| {
                    last.outcome == Outcome::Lost && last.reason.as_deref() == Some(reason)
                };
                last.into_iter().filter(is_meant).for_each(|last| {
                    (last.outcome, last.unknown_changes) = (Outcome::Failed, None);
                    last.reason = Some("DeadlineExceeded".to_owned());
                });
            }
            Fault::ForgetsLostRuns => observed.status.current_run = None,
            Fault::StartsBesideOthers => {
                let runs = observed.runs.iter_mut().filter(|run| matches!(run.state, RunState::Active(_)));
                runs.for_each(|run| run.state = RunState::Ended(Ending::Silent("gone".to_owned())));
                spec.backoff = std::time::Duration::ZERO;
                observed.sources.extend([source(1)]);
            }
            Fault::UsesAnswersAgain => last.into_iter().for_each(|last| last.resolved = None),
            Fault::IgnoresSuspension => spec.is_suspended = false,
            Fault::IgnoresRequirements => spec.requires.clear(),
            Fault::RepeatsFailures => {
                last.into_iter().filter(|last| last.outcome == Outcome::Failed).for_each(|last| {
                    last.outcome = Outcome::Lost;
                });
            }
            Fault::HasNoPatience => spec.backoff = std::time::Duration::ZERO,
            Fault::NeverGivesUp => spec.retries = 100,
            Fault::TakesScriptsForApplied => {
                spec.baseline = spec.scripts.last().map(|script| script.id.clone());
            }
            Fault::RunsDoubtsAgain => spec.scripts.iter_mut().for_each(|one| one.is_idempotent = true),
            Fault::TakesNothingBack => spec.deletion_policy = DeletionPolicy::Retain,
            Fault::AppliesWhileDeleting
                if last.as_ref().is_some_and(|last| last.purpose == Purpose::Apply.as_str()) =>
            {
                spec.metadata.deletion_timestamp = None;
                spec.retry = Some("once more".to_owned());
            }
            Fault::AppliesWhatIsMissing if observed.status.pending_count.unwrap_or_default() > 0 => {
                if let Some(last) = last
                    && last.missing.take().is_some()
                {
                    Purpose::Apply.as_str().clone_into(&mut last.purpose);
                    last.outcome = Outcome::Lost;
                }
            }
            _ => {}
        }
    }

    /// Changes what is planned.
    pub fn spoil(self, seen: &Seen, plan: &mut Plan) {
        let Some(fault) = self.0 else { return };
        let snapshot = |action: &Action| matches!(action, Action::CreateSnapshot(_));
        match fault {
            Fault::ForgetsTheLastRun => plan.status.last_run = None,
            Fault::HoldsNothing => plan.actions.retain(|action| *action != Action::Hold),
            Fault::StartsBeforeTexts => plan.actions.sort_by_key(snapshot),
            Fault::KeepsOldTexts if !seen.snapshots.is_empty() => {
                plan.actions.retain(|action| !snapshot(action));
            }
            Fault::DeletesTexts => {
                let names = seen.jobs.iter().filter(|job| job.ended.is_none()).map(|job| job.name.get());
                plan.actions.extend(
                    names.map(|name| Action::DeleteSnapshot { name: name.to_string(), uid: "1".to_owned() }),
                );
            }
            Fault::TellsAnotherPlan => retold(plan, |told| {
                if told.get("approvedPlanHash").is_some() {
                    told["approvedPlanHash"] = json!("0".repeat(64));
                }
            }),
            Fault::TurnsAnswersAround => retold(plan, |told| {
                if let Some(resolve) = told.get_mut("resolve") {
                    let turned = if resolve["as"] == "applied" { "retry" } else { "applied" };
                    resolve["as"] = json!(turned);
                }
            }),
            Fault::WastesAnswers => {
                let plans = |run: &&mut FinishedRun| {
                    run.purpose == Purpose::Plan.as_str() && run.outcome != Outcome::InDoubt
                };
                let answer = seen.object.resolve.map(Answer::text);
                if let Some(run) = plan.status.last_run.as_mut().filter(plans) {
                    run.resolved = answer;
                }
            }
            Fault::KeepsNothingForDeletion => plan.status.applied_snapshot = None,
            Fault::KeepsWhatWasPlanned => {
                let planned = plan.status.plan.as_ref().and_then(|plan| plan.snapshot.clone());
                let applied = plan.status.applied_snapshot.take();
                plan.status.applied_snapshot = applied.map(|applied| planned.unwrap_or(applied));
            }
            Fault::LetsGoAtOnce if seen.object.is_deleting => plan.actions = vec![Action::Release],
            Fault::LetsNothingGo => plan.actions.retain(|action| *action != Action::Release),
            Fault::SaysWhatItPlanned => says_ready(plan),
            Fault::Oversleeps => plan.wake.rest = Rest::Never,
            Fault::WritesAlways => {
                let before = &seen.object.status.status().server_version;
                let other = if before.as_deref() == Some("a") { "b" } else { "a" };
                plan.status.server_version = Some(other.to_owned());
            }
            Fault::AsksForNothing => {
                for condition in plan.status.conditions.iter_mut().flatten() {
                    if condition.reason == "AwaitingApproval" {
                        "it waits".clone_into(&mut condition.message);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The status of a plan that is about to apply something, as if that were done.
fn says_ready(plan: &mut Plan) {
    let applies = |action: &Action| {
        let Action::CreateJob(manifest) = action else { return false };
        manifest.object["metadata"]["annotations"][PURPOSE] == "Apply"
    };
    if !plan.actions.iter().any(applies) {
        return;
    }
    for condition in plan.status.conditions.iter_mut().flatten() {
        if condition.type_ == "Ready" {
            (condition.status, condition.reason) = (State::True.as_str().to_owned(), "Applied".to_owned());
        }
    }
}

/// A plan that tells its run something else.
fn retold(plan: &mut Plan, change: impl Fn(&mut Value)) {
    for action in &mut plan.actions {
        if let Action::CreateSnapshot(manifest) = action {
            let told = manifest.object["data"][ASSIGNMENT].as_str().unwrap_or_default();
            let mut told: Value = serde_json::from_str(told).unwrap_or_default();
            change(&mut told);
            manifest.object["data"][ASSIGNMENT] = json!(told.to_string());
        }
    }
}
