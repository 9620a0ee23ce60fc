//! What a process remembers of a TDSet between two reconciliations. Pure.
//!
//! Guarantees: nothing that matters is here alone. Without it a transition is told with another lateness, or a status
//! is written that stood there already.

use jiff::Timestamp;

use super::observation::Unreported;
use super::plan::{Plan, lateness};
use crate::kinds::tdset::api::v1::{PastTransition, TDSetStatus};

/// What is remembered of a TDSet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReconcileState {
    /// The status that was written last, and the resource version that it made.
    said: Option<(String, TDSetStatus)>,
    /// What was carried out and not yet told of.
    pub carried: Unreported,
    /// Something was changed and not yet told of.
    pub unreported: bool,
}

impl ReconcileState {
    /// The plan's work was done at `now` and changed something: whether the next reconciliation is to tell of it. Twice
    /// in a row it is not: another client may undo each time what we do, and that is worth telling.
    pub fn defers_report(&mut self, plan: &Plan, now: Timestamp) -> bool {
        if let Some(transition) = &plan.transition
            && self.carried.transition.as_ref().is_none_or(|carried| carried.to != transition.to)
        {
            let lateness_ms = lateness(transition.time.0, now);
            self.carried.transition = Some(PastTransition { lateness_ms, ..transition.clone() });
        }
        self.carried.ramp.clone_from(&plan.status.ramp);
        !std::mem::replace(&mut self.unreported, true)
    }

    /// All of that was told, by a status that made the resource version `written`, if there was something new to say.
    pub fn told(&mut self, written: Option<String>, status: TDSetStatus) {
        (self.carried, self.unreported) = (Unreported::default(), false);
        self.said = written.map(|version| (version, status)).or_else(|| self.said.take());
    }

    /// The status that was written last, where it is newer than an object of that resource version.
    #[must_use]
    pub fn said_since(&self, resource_version: Option<&str>) -> Option<&TDSetStatus> {
        // Resource versions of one resource may be compared as numbers (KEP-5504).
        let number = |version: Option<&str>| version.and_then(|version| version.parse::<u128>().ok());
        let (version, status) = self.said.as_ref()?;
        (number(Some(version)) >= number(resource_version)).then_some(status)
    }
}
