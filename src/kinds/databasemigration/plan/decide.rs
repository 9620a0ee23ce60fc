//! Decides what to do next. Pure.

mod following;
mod leaving;

use jiff::SignedDuration;

use super::absorb::newest;
use super::ending::{is_unknown, lacks};
use super::{Situation, Start, Verdict, Verification, may_have_applied};
use crate::controllers::manifest::Manifest;
use crate::kinds::databasemigration::api::status::Reason;
use crate::kinds::databasemigration::api::v1::{
    DatabaseMigrationStatus, DeletionPolicy, FinishedRun, Mode, Outcome, Phase,
};
use crate::kinds::databasemigration::observation::{Observed, Peer, Purpose, Run, RunState};
use crate::kinds::databasemigration::resources::assignment::{
    self, Texts, asks_again, covers, hash_of_plan, is_same_work, key, pin_that_differs,
};
use crate::kinds::databasemigration::resources::{Planned, snapshot};
use crate::kinds::databasemigration::spec::Spec;

/// How long after a run what was applied is looked for again.
const VERIFIED_FOR: SignedDuration = SignedDuration::from_hours(24);

/// The same where the last look failed.
const UNVERIFIED_FOR: SignedDuration = SignedDuration::from_hours(1);

/// How things are; `status` has taken in what the newest run has ended with.
pub fn situation(spec: &Spec, observed: &Observed, status: &DatabaseMigrationStatus) -> Situation {
    let view = View { spec, observed, status };
    let told = status.last_run.as_ref().map(|last| last.number).unwrap_or_default();
    // A look is over when its report was read, also when its pod is gone before its Job has ended.
    let is_over = |run: &&Run| run.purpose == Purpose::Verify && run.number <= told;
    if let Some(run) = newest(observed).filter(|run| !is_over(run))
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
        if let Some(count) = self.missing(&wanted) {
            let verdict = Verdict::new(Phase::Blocked, Reason::HistoryDiverged, lacks(count));
            return Situation::Stalled(verdict);
        }
        match self.last(&wanted) {
            Some(last) if is_verification(last) && !is_unknown(last) => self.verified(last, wanted, texts),
            Some(last) if last.outcome == Outcome::Done => self.until_verified(last, wanted, texts),
            Some(last) => self.after(last, wanted, texts),
            None => self.begin(wanted, texts, 1, None),
        }
    }

    /// The situation while this run checks whether what is wanted now is still applied; none where it does not.
    fn verifying(&self, run: &Run) -> Option<Situation> {
        let is_after_lost_run = self.status.last_run.as_ref().is_some_and(is_unknown);
        let is_alone = self.spec.is_deleting() || !self.spec.faults.is_empty();
        if run.purpose != Purpose::Verify || is_alone || is_after_lost_run {
            return None;
        }
        let wanted = self.wanted(&self.chosen().ok()?).ok()?;
        let verification = || Verification::Runs(Box::new(run.clone()));
        covers(&run.key, &wanted.key).then(|| Situation::Verifies(self.done(&wanted), verification()))
    }

    /// What follows a run that looked whether what was applied still is.
    fn verified(&self, last: &FinishedRun, wanted: Wanted, texts: Vec<Texts>) -> Situation {
        match last.outcome {
            Outcome::Done if last.reason.is_none() => self.until_verified(last, wanted, texts),
            // A server that does not answer now reverts nothing that was applied.
            Outcome::Retryable | Outcome::Lost | Outcome::Failed => self.until_verified(last, wanted, texts),
            // `Done` with a reason: scripts that a lost run was to apply are still pending.
            Outcome::Done | Outcome::Blocked | Outcome::InDoubt => self.after(last, wanted, texts),
        }
    }

    /// How many applied scripts the history lacks. The annotation gatehouse.dev/retry applies them again; an edit does not.
    fn missing(&self, wanted: &Wanted) -> Option<i32> {
        let last = self.status.last_run.as_ref()?;
        // As an earlier release wrote it.
        let is_of_old = is_verification(last) && last.outcome == Outcome::Done && last.reason.is_none();
        let pending = self.status.pending_count.filter(|count| is_of_old && *count > 0);
        let is_held = wanted.purpose == Purpose::Apply && !asks_again(&last.key, &wanted.key);
        last.missing.or(pending).filter(|_| is_held)
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
        let made = self.status.plan.as_ref().filter(|plan| {
            let key = plan.key.as_ref();
            key.is_some_and(|key| covers(key, &planning.key))
        });
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
        self.status.last_run.as_ref().filter(|last| covers(&last.key, &wanted.key))
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

    /// Starts a run, unless it is held up.
    fn begin(&self, wanted: Wanted, texts: Vec<Texts>, attempt: i32, resolve: Option<String>) -> Situation {
        if self.spec.is_suspended && !self.spec.is_deleting() {
            let message = "spec.suspend is true: no run is started";
            return Situation::Waits(Verdict::new(Phase::Pending, Reason::Suspended, message), None);
        }
        if wanted.purpose != Purpose::Revert
            && let Some(message) = self.unmet()
        {
            if let Some(ring) = self.ring() {
                return Situation::Stalled(Verdict::new(Phase::Blocked, Reason::RequirementCycle, ring));
            }
            return Situation::Waits(
                Verdict::new(Phase::Pending, Reason::RequirementNotReady, message),
                None,
            );
        }
        self.start(wanted, texts, attempt, resolve)
    }

    /// The ring of migrations that wait for each other, this one among them.
    fn ring(&self) -> Option<String> {
        let ring = &self.observed.ring;
        let next = self.observed.required.get(ring.get(1)?)?;
        next.is_waiting.then(|| {
            format!(
                "DatabaseMigrations require each other, so that none of them begins: {}; remove one of these from \
                 spec.requires",
                ring.join(" requires ")
            )
        })
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
