//! Decides what follows a run that was to do what is wanted, and did not. Pure.
//!
//! Guarantees: an answer about a script in doubt counts for the doubt that it was given for. When no further attempt would
//! say what a run without a report has done, a run reads the history before anything is said of that.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{Situation, Texts, Verdict, View, Wanted, is_unknown, is_verification};
use crate::kinds::databasemigration::api::status::Reason;
use crate::kinds::databasemigration::api::v1::{FinishedRun, Outcome, Phase};
use crate::kinds::databasemigration::observation::Purpose;
use crate::kinds::databasemigration::resources::assignment::resolution;

/// The longest time between two attempts, where the spec does not ask for a longer one.
const LONGEST_BACKOFF: Duration = Duration::from_mins(30);

/// Characters of a uid that tell objects apart.
const SHOWN: usize = 8;

impl View<'_> {
    /// What follows a run that was to do the same and did not.
    pub(super) fn after(&self, last: &FinishedRun, wanted: Wanted, texts: Vec<Texts>) -> Situation {
        let mut message = last.message.clone().unwrap_or_default();
        if is_verification(last) && is_unknown(last) {
            message += "; what the run before did in the database is not known";
        }
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
        let is_late = last.reason.as_deref() == Some(Reason::DeadlineExceeded.as_str());
        let is_exhausted = last.attempt > self.spec.retries;
        let is_open = wanted.purpose == Purpose::Apply && is_unknown(last);
        if is_open && !is_verification(last) && (is_exhausted || is_late) {
            return self.look(last, wanted, texts, message);
        }
        if is_exhausted {
            let message = format!("no attempt is left after attempt {}: {message}", last.attempt);
            return Situation::Stalled(Verdict::new(Phase::Failed, Reason::RetriesExhausted, message));
        }
        let doubled = 2_u32.checked_pow(u32::try_from(last.attempt - 1).unwrap_or(0)).unwrap_or(u32::MAX);
        let longest = self.spec.backoff.max(LONGEST_BACKOFF);
        let pause = self.spec.backoff.checked_mul(doubled).map_or(longest, |pause| pause.min(longest));
        let at =
            SignedDuration::try_from(pause).ok().and_then(|pause| last.finished_at.0.checked_add(pause).ok());
        match at.filter(|at| *at > self.observed.now) {
            Some(at) => backing_off(last, at, message),
            None if is_open && is_verification(last) => self.look(last, wanted, texts, message),
            None => self.begin(wanted, texts, last.attempt.saturating_add(1), None),
        }
    }

    /// A run that reads in the history what a run without a report has done.
    fn look(&self, last: &FinishedRun, wanted: Wanted, texts: Vec<Texts>, message: &str) -> Situation {
        if self.spec.is_suspended {
            let message = format!(
                "spec.suspend is true: no run is started, and what {} did is not known: {message}",
                last.job
            );
            return Situation::Waits(Verdict::new(Phase::Pending, Reason::Suspended, message), None);
        }
        let wanted = Wanted { purpose: Purpose::Verify, approved: None, ..wanted };
        self.start(wanted, texts, last.attempt.saturating_add(1), None)
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
                let uid = self.spec.uid();
                format!(
                    "{about} was there before this doubt, or a run went by it, and decides nothing: write @{}-{} behind \
                     the answer, which makes it a new one",
                    uid.get(..SHOWN).unwrap_or(uid),
                    last.number
                )
            }
            Some(named) => format!("{about} is about script {}", named.id),
        }
    }
}

/// Another attempt comes later.
fn backing_off(last: &FinishedRun, at: Timestamp, message: &str) -> Situation {
    let ended = if last.outcome == Outcome::Lost { "gave no report" } else { "failed" };
    let message = format!("attempt {} {ended}, the next one is at {at:.0}: {message}", last.attempt);
    Situation::Waits(Verdict::new(Phase::Pending, Reason::BackingOff, message), Some(at))
}
