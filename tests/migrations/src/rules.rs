//! What must never be, and what all has to come to.

use gatehouse::api::condition::holds;
use gatehouse::kinds::databasemigration::api::status::Reason;
use gatehouse::kinds::databasemigration::api::v1::Outcome;
use gatehouse::kinds::databasemigration::assignment::checksum;
use gatehouse::kinds::databasemigration::observation::Purpose;
use jiff::SignedDuration;

use crate::database::{Row, UNTRANSACTED, down, number};
use crate::look::{Planned, Seen, now, reason, up};
use crate::text::{Text, Told};
use crate::world::{Answer, Job, Mode, World};

/// A rule, by what is so where it is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A run is created while another one is under way.
    TwoRuns,
    /// A run has the number of an earlier one.
    NumberTwice,
    /// A run is created that may change the database, and nothing would have a deletion wait for it.
    RunWithoutFinalizer,
    /// A run is created before what it reads, or with what another one was to read.
    RunWithoutTexts,
    /// What a run still has to read is deleted.
    TextsDeleted,
    /// A run is created while the object is suspended, or before what has to be applied first.
    StartedWhileHeld,
    /// While the object is being deleted a run is created that takes nothing back, or one that takes back without.
    OtherPurpose,
    /// A run follows one that failed for good, or that did all, although it was not asked for.
    RunAgain,
    /// A run follows one that failed for a passing reason at once, or more often than it may.
    Hurries,
    /// Scripts are run, rehearsed or taken back without approval.
    Unapproved,
    /// A run gets an approved plan that is not that of its scripts.
    OtherPlan,
    /// A plan is made again although one is approved that has not been run.
    ApprovalForgotten,
    /// A run goes by another answer than the one that is there.
    OtherAnswer,
    /// An answer about one doubt settles another one.
    AnswerUsedTwice,
    /// An answer counts as used, and the run that was given it settles nothing.
    AnswerWasted,
    /// A script is carried out again, or taken back again.
    CarriedOutTwice,
    /// A script counts as applied that is not.
    NeverCarriedOut,
    /// What a restored database lacks is applied, although it was not asked for.
    AppliedUnasked,
    /// By texts whose source is gone other scripts are taken back than were applied.
    OthersTakenBack,
    /// The object goes, and what it was to take back is still applied.
    LeftApplied,
    /// The object goes while a run is under way that may change the database.
    GoneWhileRunning,
    /// The status says what was not so.
    StatusLies,
    /// The object is not looked at again in time.
    Oversleeps,
    /// What is under way never ends.
    NeverSettles,
    /// Nothing is done any more, people have done what the status asks for, and it is not as asked for.
    SettlesWrongly,
}

impl World {
    /// What holds of a run that is created, of which the plan alone decides where there is one operator.
    pub fn judge_job(&mut self, planned: &Planned, job: &Job) {
        if !self.is_alone() {
            return;
        }
        let seen = &planned.seen;
        let object = &seen.object;
        let is_verification = job.purpose == Purpose::Verify;
        let last = object.status.status();
        let last = planned.plan.status.last_run.as_ref().or(last.last_run.as_ref());
        let repeats = last.filter(|last| last.key == *job.key.get() && last.purpose == job.purpose.as_str());
        let hurries = repeats.is_some_and(|last| {
            job.resolved.is_none() && last.finished_at.0 >= now() && last.outcome != Outcome::InDoubt
        });
        // What only looks needs nothing to be applied first.
        let is_held = object.is_suspended || object.requires && !seen.is_base_ready && !is_verification;
        let rules = [
            (Rule::TwoRuns, self.jobs.iter().any(|job| job.ended.is_none())),
            (Rule::NumberTwice, job.number <= self.recorded),
            (Rule::RunWithoutFinalizer, !is_verification && !self.object.has_finalizer),
            (Rule::RunWithoutTexts, !is_told_rightly(job, seen)),
            (Rule::StartedWhileHeld, is_held && !object.is_deleting),
            (Rule::OtherPurpose, object.is_deleting != (job.purpose == Purpose::Revert)),
            (Rule::RunAgain, !is_verification && self.settled == Some(job.key)),
            (Rule::Hurries, hurries || !is_verification && job.attempt > i32::from(object.retries) + 1),
            (Rule::ApprovalForgotten, job.purpose == Purpose::Plan && has_approved_plan(planned)),
            (Rule::OtherAnswer, job.resolved.is_some() && !goes_by_answer(job, seen)),
        ];
        for (rule, _) in rules.into_iter().filter(|(_, is_broken)| *is_broken) {
            self.breaks(rule);
        }
    }

    /// What holds of the script that is taken back, where what it came from is gone.
    pub fn judge_revert(&mut self, told: &Told, row: Row) {
        let script = told.assignment.scripts.iter().find(|script| number(&script.id) == row.id);
        let is_same = script.is_some_and(|script| down(script) == row.down);
        if row.id == UNTRANSACTED && self.source.is_none() && !is_same {
            self.breaks(Rule::OthersTakenBack);
        }
    }

    /// What holds of a ConfigMap that is deleted.
    pub fn judge_deletion(&mut self, name: Text) {
        let is_read = self.jobs.iter().any(|job| job.name == name && job.ended.is_none());
        if is_read && self.is_alone() {
            self.breaks(Rule::TextsDeleted);
        }
    }

    /// What holds of a status that was just written, of which all was so when it was planned.
    pub fn judge_status(&mut self, planned: &Planned) {
        let status = self.object.status.status();
        let numbers = status.last_run.as_ref().map(|run| run.number);
        let current = status.current_run.as_ref().map(|run| run.number);
        self.recorded = numbers.into_iter().chain(current).chain([self.recorded]).max().unwrap_or_default();
        let conditions = status.conditions.as_deref().unwrap_or_default();
        let is_ready = holds(conditions, "Ready");
        let contradicts = is_ready && (holds(conditions, "Reconciling") || holds(conditions, "Stalled"));
        let is_applied = planned.seen.object.scripts.iter().all(|id| self.database.has(*id));
        let claims = is_ready && reason(self.object.status) == Some(Reason::Applied);
        let is_excused = self.restored.is_some() || self.is_misled;
        if contradicts || claims && !is_applied && !is_excused {
            self.breaks(Rule::StatusLies);
        }
        if self.restored.is_some() && reason(self.object.status) == Some(Reason::HistoryDiverged) {
            self.missing.get_or_insert(planned.seen.object.retry);
        }
        if self.claims_to_know() {
            self.breaks(Rule::StatusLies);
        }
        let used = |text: Text| text.status().last_run.as_ref().and_then(|last| last.resolved.clone());
        let has_planned = status
            .last_run
            .as_ref()
            .is_some_and(|last| last.purpose == Purpose::Plan.as_str() && last.outcome != Outcome::InDoubt);
        if has_planned && used(self.object.status).is_some() && used(planned.seen.object.status).is_none() {
            self.breaks(Rule::AnswerWasted);
        }
        let latest = now() + SignedDuration::from_mins(10);
        if planned.plan.wake.rest.time().is_none_or(|wake| wake > latest) {
            self.breaks(Rule::Oversleeps);
        }
    }

    /// Whether the status gives runs up for failed, does not say that something is unknown, and the database is otherwise.
    fn claims_to_know(&self) -> bool {
        let status = self.object.status.status();
        let gives_up =
            matches!(reason(self.object.status), Some(Reason::DeadlineExceeded | Reason::RetriesExhausted));
        let Some(last) = status.last_run.as_ref().filter(|last| gives_up && last.unknown_changes.is_none())
        else {
            return false;
        };
        let is_at_work = self.jobs.iter().any(|job| job.ended.is_none()) || !self.orphans.is_empty();
        // A run that looks takes no lock: it says what was so when it looked.
        let is_excused =
            self.restored.is_some() || self.is_misled || self.is_overtaken || self.object.is_deleting;
        if is_at_work || is_excused || !self.is_alone() {
            return false;
        }
        let hides_doubt = self.database.doubt().is_some() && last.doubt.is_none();
        let applied = i32::try_from(self.database.applied()).ok();
        hides_doubt || status.applied_count.or(Some(0)) != applied
    }

    /// What holds of an object that goes.
    pub fn judge_leave(&mut self) {
        let changes = |job: &Job| job.ended.is_none() && !job.purpose.only_reads();
        if self.jobs.iter().any(changes) && self.is_alone() {
            self.breaks(Rule::GoneWhileRunning);
        }
        let is_applied = self.database.effects.iter().any(|effect| *effect > 0);
        if self.object.reverts && is_applied && !self.is_misled {
            self.breaks(Rule::LeftApplied);
        }
    }

    /// The rule that is broken where nothing happens any more.
    pub fn judge_rest(&self) -> Option<Rule> {
        let object = &self.object;
        // Who has said what was not so has that.
        if object.is_gone || self.is_misled && !object.is_deleting {
            return None;
        }
        let status = object.status.status();
        let wanted = match object.mode {
            Mode::Plan => Reason::Planned,
            Mode::Rehearse => Reason::Rehearsed,
            Mode::Apply => Reason::Applied,
        };
        let is_said = reason(object.status) == Some(wanted)
            && holds(status.conditions.as_deref().unwrap_or_default(), "Ready")
            && status.observed_generation == Some(i64::from(object.generation));
        // A plan goes by what a person has said of a doubt, and leaves that as it is.
        let missing = object.scripts.iter().filter(|id| !self.database.is_carried_out(**id)).count();
        let is_counted = status.pending_count == i32::try_from(missing).ok();
        let carried_out = Some(UNTRANSACTED).filter(|id| self.database.is_carried_out(*id));
        let is_of_source = carried_out.and_then(|id| self.database.version_of(id)).is_none_or(|version| {
            self.source.map(|source| source % 10) == Some(version) || object.approval.is_some()
        });
        let is_done = object.mode != Mode::Apply || object.scripts.iter().all(|id| self.database.has(*id));
        let is_clean =
            self.jobs.is_empty() && self.operators.iter().all(|operator| operator.pending.is_none());
        let is_well = !object.is_deleting && is_said && is_counted && is_of_source && is_done && is_clean;
        (!is_well).then_some(Rule::SettlesWrongly)
    }
}

/// Whether what a run reads was made for it, of the texts that were there or of those that were approved.
fn is_told_rightly(job: &Job, seen: &Seen) -> bool {
    let Some(told) = job.told.map(Text::told) else { return false };
    let run = &told.assignment.run;
    let is_own = run.uid == format!("u1.{}", job.number);
    let script = told.assignment.scripts.iter().find(|script| script.id == UNTRANSACTED.to_string());
    let Some(planned) = script.and_then(|script| script.planned.as_deref()) else { return is_own };
    let is_of_source =
        seen.source.is_some_and(|version| planned == checksum(up(UNTRANSACTED, version).as_bytes()));
    let keeps = seen.object.approval.is_some() || seen.object.is_deleting;
    is_own && (is_of_source || keeps)
}

/// Whether a run goes by the answer that is there.
fn goes_by_answer(job: &Job, seen: &Seen) -> bool {
    let word = seen.object.resolve.map(Answer::text);
    let resolve = job.told.map(Text::told).and_then(|told| told.assignment.resolve.clone());
    let told = resolve
        .map(|resolve| format!("{}={}", resolve.id, format!("{:?}", resolve.resolution).to_lowercase()));
    let said = job.resolved.map(|word| word.get().to_string());
    told == word && said == word
}

/// Whether a plan is approved whose texts are kept, and no run has been given it yet.
fn has_approved_plan(planned: &Planned) -> bool {
    let (object, after) = (&planned.seen.object, &planned.plan.status);
    let Some(plan) = object.status.status().plan.clone() else { return false };
    let kept = plan.snapshot.and_then(|name| planned.seen.snapshots.get(&Text::of(&name)).copied());
    let Some(told) = kept.map(|found| found.text.told()) else { return false };
    let ids = object.scripts.iter().map(ToString::to_string);
    let is_same = told.assignment.scripts.iter().map(|script| script.id.clone()).eq(ids);
    let has_run = after.last_run.as_ref().is_none_or(|last| last.purpose != Purpose::Plan.as_str());
    let is_approved = object.approval == Some(Text::of(&plan.hash));
    is_approved && is_same && !has_run && object.mode != Mode::Plan
}
