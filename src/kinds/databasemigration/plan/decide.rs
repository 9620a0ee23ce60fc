//! Decides what to do next. Pure.

mod leaving;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::absorb::newest;
use super::{Situation, Start, Verdict, Verification, may_have_applied};
use crate::controllers::manifest::Manifest;
use crate::kinds::databasemigration::api::status::Reason;
use crate::kinds::databasemigration::api::v1::{
    DatabaseMigrationStatus, DeletionPolicy, FinishedRun, Mode, Outcome, Phase,
};
use crate::kinds::databasemigration::observation::{Observed, Peer, Purpose, Run, RunState};
use crate::kinds::databasemigration::resources::assignment::{
    self, Texts, hash_of_plan, is_same_work, key, pin_that_differs, resolution,
};
use crate::kinds::databasemigration::resources::{Planned, snapshot};
use crate::kinds::databasemigration::spec::Spec;

/// The longest time between two attempts, where the spec does not ask for a longer one.
const LONGEST_BACKOFF: Duration = Duration::from_mins(30);

/// How long after a run what was applied is looked for again.
const VERIFIED_FOR: SignedDuration = SignedDuration::from_hours(24);

/// The same where the last look failed.
const UNVERIFIED_FOR: SignedDuration = SignedDuration::from_hours(1);

/// How things are; `status` has taken in what the newest run has ended with.
pub fn situation(spec: &Spec, observed: &Observed, status: &DatabaseMigrationStatus) -> Situation {
    let view = View { spec, observed, status };
    if let Some(run) = newest(observed)
        && let RunState::Active(_) = run.state
    {
        // A run that only reads may go with the object.
        if spec.is_deleting() && run.purpose.only_reads() && !view.reverts() {
            return Situation::Leaves;
        }
        return view.verifying(run).unwrap_or_else(|| Situation::Running(run.clone()));
    }
    if spec.is_deleting() {
        return view.leaving();
    }
    if !spec.faults.is_empty() {
        return Situation::Invalid;
    }
    view.working()
}

/// Whether what is wanted, and perhaps held up, is a plan that a person has approved.
pub fn is_approved(spec: &Spec, observed: &Observed, status: &DatabaseMigrationStatus) -> bool {
    let view = View { spec, observed, status };
    let wanted = view.chosen().and_then(|texts| view.wanted(&texts));
    wanted.is_ok_and(|wanted| wanted.approved.is_some())
}

/// What is decided on.
struct View<'a> {
    spec: &'a Spec,
    observed: &'a Observed,
    status: &'a DatabaseMigrationStatus,
}

/// A run that is wanted.
struct Wanted {
    purpose: Purpose,
    key: String,
    approved: Option<String>,
}

impl View<'_> {
    /// Whether the deletion of the object takes scripts back.
    fn reverts(&self) -> bool {
        self.spec.deletion_policy == DeletionPolicy::Revert && may_have_applied(self.status)
    }

    /// The texts that are planned, run or looked for: those that were approved, or those that there are.
    fn chosen(&self) -> Result<Vec<Texts>, Box<Situation>> {
        self.approved().map_or_else(|| self.texts(Phase::Pending), Ok)
    }

    /// The texts that were approved, until their run has come to an end: what they came from may have changed.
    fn approved(&self) -> Option<Vec<Texts>> {
        if self.spec.mode == Mode::Plan {
            return None;
        }
        let approved = self.spec.approval.as_ref()?;
        let plan = self.status.plan.as_ref().filter(|plan| plan.hash == *approved)?;
        let texts = assignment::kept(self.spec, self.observed.kept.get(plan.snapshot.as_ref()?)?)?;
        // Who asks for another run asks for one of what is approved.
        let planning = key(self.spec, &texts, Purpose::Plan, None);
        plan.key.as_ref().is_some_and(|key| is_same_work(key, &planning)).then_some(texts)
    }

    /// What is done for all others.
    fn working(&self) -> Situation {
        if let Some(older) = self.older() {
            let series = &self.spec.history.series;
            let message = format!(
                "DatabaseMigration {} is older and applies series {series} of the same database: name another \
                 history.series here, or delete one of the two",
                older.name
            );
            return Situation::Stalled(Verdict::new(Phase::Blocked, Reason::OtherMigration, message));
        }
        let texts = match self.chosen() {
            Ok(texts) => texts,
            Err(situation) => return *situation,
        };
        if let Some((id, sum)) = pin_that_differs(self.spec, &texts) {
            let message =
                format!("script {id} has the checksum {sum}, and not the one that its checksum field names");
            return Situation::Stalled(Verdict::new(Phase::Blocked, Reason::ChecksumPinMismatch, message));
        }
        let wanted = match self.wanted(&texts) {
            Ok(wanted) => wanted,
            Err(situation) => return *situation,
        };
        match self.last(&wanted) {
            Some(last) if is_verification(last) => self.verified(last, wanted, texts),
            Some(last) if last.outcome == Outcome::Done => self.until_verified(last, wanted, texts),
            Some(last) => self.after(last, wanted, texts),
            None => self.begin(wanted, texts, 1, None),
        }
    }

    /// The situation while this run checks whether what is wanted now is still applied; none where it does not.
    fn verifying(&self, run: &Run) -> Option<Situation> {
        if run.purpose != Purpose::Verify || self.spec.is_deleting() || !self.spec.faults.is_empty() {
            return None;
        }
        let wanted = self.wanted(&self.chosen().ok()?).ok()?;
        let verification = || Verification::Runs(Box::new(run.clone()));
        (wanted.key == run.key).then(|| Situation::Verifies(self.done(&wanted), verification()))
    }

    /// What follows a run that looked whether what was applied still is.
    fn verified(&self, last: &FinishedRun, wanted: Wanted, texts: Vec<Texts>) -> Situation {
        match last.outcome {
            Outcome::Done => match self.status.pending_count.unwrap_or_default() {
                0 => self.until_verified(last, wanted, texts),
                count => {
                    let message = format!(
                        "{count} scripts that were applied are not in the history any more, as where an older database \
                         was restored: set the annotation gatehouse.dev/retry to another value to apply them"
                    );
                    Situation::Stalled(Verdict::new(Phase::Blocked, Reason::HistoryDiverged, message))
                }
            },
            // What was applied is not undone by a server that does not answer now.
            Outcome::Retryable | Outcome::Lost | Outcome::Failed => self.until_verified(last, wanted, texts),
            Outcome::Blocked | Outcome::InDoubt => self.after(last, wanted, texts),
        }
    }

    /// All is done; where the last check is some time ago, it is checked again.
    fn until_verified(&self, last: &FinishedRun, wanted: Wanted, texts: Vec<Texts>) -> Situation {
        let mut verdict = self.done(&wanted);
        let is_known = last.outcome == Outcome::Done;
        if !is_known {
            let why = last.message.as_deref().unwrap_or_default();
            verdict.message = format!("{}; the last look at the history failed: {why}", verdict.message);
        }
        let length = if is_known { VERIFIED_FOR } else { UNVERIFIED_FOR };
        let is_due = self.observed.now.duration_since(last.finished_at.0) >= length;
        if !is_due || wanted.purpose != Purpose::Apply || self.spec.is_suspended {
            return Situation::Done(verdict);
        }
        let wanted = Wanted { purpose: Purpose::Verify, approved: None, ..wanted };
        Situation::Verifies(verdict, Verification::Starts(Box::new(self.run(wanted, texts, 1, None))))
    }

    /// The oldest of the migrations that apply scripts to the same series, if it is not this one.
    fn older(&self) -> Option<&Peer> {
        let since = self.spec.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let this = (since, self.spec.uid());
        let is_older = |peer: &&Peer| (peer.since, peer.uid.as_str()) < this;
        self.observed.peers.iter().filter(is_older).min()
    }

    /// The texts of all scripts, or why there are none.
    fn texts(&self, phase: Phase) -> Result<Vec<Texts>, Box<Situation>> {
        let texts = assignment::texts(self.spec, self.observed).map_err(|missing| {
            let message = format!("script {}: {}", missing.id, missing.what);
            Box::new(Situation::Waits(Verdict::new(phase, Reason::ScriptNotFound, message), None))
        })?;
        let size = snapshot::size(self.spec, &texts, &self.planned(String::new(), Purpose::Apply, 1));
        if size > snapshot::MOST_BYTES {
            let message =
                format!("the scripts have {size} bytes together, {} are the most", snapshot::MOST_BYTES);
            let verdict = Verdict::new(Phase::Blocked, Reason::ScriptsTooLarge, message);
            return Err(Box::new(Situation::Stalled(verdict)));
        }
        Ok(texts)
    }

    /// The run that is wanted, or the person who has to approve it.
    fn wanted(&self, texts: &[Texts]) -> Result<Wanted, Box<Situation>> {
        let of = |purpose, approved: Option<String>| Wanted {
            purpose,
            key: key(self.spec, texts, purpose, approved.as_deref()),
            approved,
        };
        let purpose = match self.spec.mode {
            Mode::Plan => return Ok(of(Purpose::Plan, None)),
            Mode::Rehearse => Purpose::Rehearse,
            Mode::Apply => Purpose::Apply,
        };
        let Some(approved) = &self.spec.approval else { return Ok(of(purpose, None)) };
        let planning = of(Purpose::Plan, None);
        let made = self.status.plan.as_ref().filter(|plan| plan.key.as_ref() == Some(&planning.key));
        let hash = hash_of_plan(self.spec, texts).or_else(|| made.map(|plan| plan.hash.clone()));
        match hash {
            Some(hash) if &hash == approved => Ok(of(purpose, Some(hash))),
            Some(hash) if made.is_some() => {
                let message = format!("plan {hash} has to be approved: set spec.approval.planHash to it");
                Err(Box::new(Situation::Waits(
                    Verdict::new(Phase::AwaitingApproval, Reason::AwaitingApproval, message),
                    None,
                )))
            }
            _ => Ok(planning),
        }
    }

    /// The run before, where it was to do the same.
    fn last(&self, wanted: &Wanted) -> Option<&FinishedRun> {
        self.status.last_run.as_ref().filter(|last| last.key == wanted.key)
    }

    fn done(&self, wanted: &Wanted) -> Verdict {
        let applied = self.status.applied_count.unwrap_or_default();
        let pending = self.status.pending_count.unwrap_or_default();
        match wanted.purpose {
            Purpose::Plan => {
                Verdict::new(Phase::Succeeded, Reason::Planned, format!("{pending} scripts are pending"))
            }
            Purpose::Rehearse => {
                let message = format!("{pending} scripts ran and were rolled back");
                Verdict::new(Phase::Succeeded, Reason::Rehearsed, message)
            }
            Purpose::Apply | Purpose::Verify => {
                Verdict::new(Phase::Succeeded, Reason::Applied, format!("{applied} scripts are applied"))
            }
            Purpose::Revert => Verdict::new(Phase::Reverted, Reason::Reverted, "all scripts were taken back"),
        }
    }

    /// What follows a run that was to do the same and did not.
    fn after(&self, last: &FinishedRun, wanted: Wanted, texts: Vec<Texts>) -> Situation {
        let message = last.message.clone().unwrap_or_default();
        let reason = last.reason.as_deref().and_then(Reason::named).unwrap_or(Reason::ScriptFailed);
        let reverting = wanted.purpose == Purpose::Revert;
        match last.outcome {
            Outcome::Retryable | Outcome::Lost => self.again(last, wanted, texts, &message),
            Outcome::InDoubt => {
                if let Some(resolve) = self.unused_resolution(last) {
                    return self.begin(wanted, texts, 1, Some(resolve));
                }
                let message = message + &self.misread(last);
                Situation::Stalled(Verdict::new(Phase::InDoubt, reason, message))
            }
            _ if reverting => Situation::Stalled(Verdict::new(Phase::Failed, Reason::RevertFailed, message)),
            Outcome::Blocked => Situation::Stalled(Verdict::new(Phase::Blocked, reason, message)),
            Outcome::Done | Outcome::Failed => {
                Situation::Stalled(Verdict::new(Phase::Failed, reason, message))
            }
        }
    }

    /// Another attempt, now or later, or none.
    fn again(&self, last: &FinishedRun, wanted: Wanted, texts: Vec<Texts>, message: &str) -> Situation {
        if last.attempt > self.spec.retries {
            let message = format!("{} runs failed, the last one so: {message}", last.attempt);
            return Situation::Stalled(Verdict::new(Phase::Failed, Reason::RetriesExhausted, message));
        }
        let doubled = 2_u32.checked_pow(u32::try_from(last.attempt - 1).unwrap_or(0)).unwrap_or(u32::MAX);
        let longest = self.spec.backoff.max(LONGEST_BACKOFF);
        let pause = self.spec.backoff.checked_mul(doubled).map_or(longest, |pause| pause.min(longest));
        let at =
            SignedDuration::try_from(pause).ok().and_then(|pause| last.finished_at.0.checked_add(pause).ok());
        match at.filter(|at| *at > self.observed.now) {
            Some(at) => backing_off(last, at, message),
            None => self.begin(wanted, texts, last.attempt.saturating_add(1), None),
        }
    }

    /// A resolution that no run has gone by yet.
    fn unused_resolution(&self, last: &FinishedRun) -> Option<String> {
        let resolve = self.spec.resolve.clone()?;
        let named = resolution(&resolve)?;
        let is_known = self.spec.scripts.iter().any(|script| script.id == named.id);
        (is_known && last.resolved.as_ref() != Some(&resolve)).then_some(resolve)
    }

    /// Why the annotation settles nothing, where there is one.
    fn misread(&self, last: &FinishedRun) -> String {
        let about = "; the annotation gatehouse.dev/resolve";
        let Some(resolve) = &self.spec.resolve else { return String::new() };
        match resolution(resolve) {
            None => format!("{about} is not understood: it must be ID=applied or ID=retry"),
            Some(_) if last.resolved.as_ref() == Some(resolve) => {
                format!("{about} settled the doubt before this one: remove it, then set it again")
            }
            Some(named) => format!("{about} is about script {}", named.id),
        }
    }

    /// Starts a run, unless it is held up.
    fn begin(&self, wanted: Wanted, texts: Vec<Texts>, attempt: i32, resolve: Option<String>) -> Situation {
        if self.spec.is_suspended && !self.spec.is_deleting() {
            let message = "spec.suspend is true: no run is started";
            return Situation::Waits(Verdict::new(Phase::Pending, Reason::Suspended, message), None);
        }
        if wanted.purpose != Purpose::Revert
            && let Some(message) = self.unmet()
        {
            return Situation::Waits(
                Verdict::new(Phase::Pending, Reason::RequirementNotReady, message),
                None,
            );
        }
        self.start(wanted, texts, attempt, resolve)
    }

    /// What has to be applied first and is not.
    fn unmet(&self) -> Option<String> {
        self.spec.requires.iter().find_map(|requirement| {
            let name = &requirement.name;
            let Some(found) = self.observed.required.get(name) else {
                return Some(format!("DatabaseMigration {name} does not exist"));
            };
            if !found.applies {
                return Some(format!(
                    "DatabaseMigration {name} does not apply its scripts: its mode is another one"
                ));
            }
            if !found.is_ready {
                return Some(format!("DatabaseMigration {name} is not ready"));
            }
            let id = requirement.min_id.as_ref()?;
            (!found.ids.contains(id)).then(|| format!("DatabaseMigration {name} has no script {id}"))
        })
    }

    fn start(&self, wanted: Wanted, texts: Vec<Texts>, attempt: i32, resolve: Option<String>) -> Situation {
        Situation::Start(Box::new(self.run(wanted, texts, attempt, resolve)))
    }

    fn run(&self, wanted: Wanted, texts: Vec<Texts>, attempt: i32, resolve: Option<String>) -> Start {
        let mut planned = self.planned(wanted.key, wanted.purpose, attempt);
        planned.resolve = resolve;
        planned.approved = wanted.approved;
        // A run of the newest ConfigMap may have been there and be gone: one that is to do something else has a higher
        // number.
        let newest = self.observed.snapshots.values().map(|one| one.number).max().unwrap_or_default();
        if newest >= planned.number {
            planned.number = newest;
            let is_known = self.observed.snapshots.contains_key(&planned.name(self.spec));
            planned.number = newest.saturating_add(i64::from(!is_known));
        }
        while self.is_of_another(&texts, &planned) {
            planned.number = planned.number.saturating_add(1);
        }
        Start { planned, texts, applied: None }
    }

    /// Whether the ConfigMap of that name was made with anything else. The name has the beginning of the key alone, which a
    /// run that looks what is applied has in common with the one that applied it, also where a person has asked for another
    /// run meanwhile.
    fn is_of_another(&self, texts: &[Texts], planned: &Planned) -> bool {
        let found = self.observed.snapshots.get(&planned.name(self.spec));
        let stamp = |manifest: Manifest| manifest.stamp().map(str::to_owned);
        found.is_some_and(|found| found.stamp != stamp(snapshot::manifest(self.spec, texts, planned)))
    }

    /// The run with the next number.
    fn planned(&self, key: String, purpose: Purpose, attempt: i32) -> Planned {
        let known = self.observed.runs.iter().map(|run| run.number);
        let told = self.status.last_run.iter().map(|run| run.number);
        let number = known.chain(told).max().unwrap_or_default().saturating_add(1);
        Planned { key, number, attempt, purpose, resolve: None, approved: None }
    }
}

/// Whether a run looked whether what was applied still is.
fn is_verification(run: &FinishedRun) -> bool {
    run.purpose == Purpose::Verify.as_str()
}

/// Another attempt comes later.
fn backing_off(last: &FinishedRun, at: Timestamp, message: &str) -> Situation {
    let message = format!("attempt {} failed, the next one is at {at:.0}: {message}", last.attempt);
    Situation::Waits(Verdict::new(Phase::Pending, Reason::BackingOff, message), Some(at))
}
