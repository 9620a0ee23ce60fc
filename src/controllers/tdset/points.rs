//! Names of what a pass over a TDSet does, for the points before and after each of it. Pure.
//!
//! Guarantees: whatever a plan may ask for has a name, and so has its points.

use super::resources::names::COUNT_MANAGER;
use crate::controllers::step::{Apply, Step};

/// The points around a step: one before it is sent, one after its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Points {
    /// Before it is sent.
    pub before: &'static str,
    /// After its answer.
    pub after: &'static str,
}

macro_rules! around {
    ($name:literal) => {
        Points { before: concat!("tdset.", $name, ".before"), after: concat!("tdset.", $name, ".after") }
    };
}

impl Points {
    /// Those around a step.
    #[must_use]
    pub fn of(step: &Step) -> Self {
        match step {
            Step::Apply(apply) => Self::of_apply(apply),
            Step::Merge(merge) if merge.scale => around!("write-scale"),
            Step::Merge(_) => around!("write-finalizers"),
            Step::Delete { .. } => around!("delete-service"),
            Step::Status { .. } => around!("write-status"),
            Step::Event(_) => around!("publish-event"),
        }
    }

    fn of_apply(apply: &Apply) -> Self {
        match (apply.manifest.place.resource.kind.as_str(), apply.manager, &apply.seen) {
            ("HorizontalPodAutoscaler", ..) => around!("write-bounds"),
            (_, COUNT_MANAGER, _) => around!("write-count"),
            ("Service", _, None) => around!("make-service"),
            ("Service", ..) => around!("apply-service"),
            (_, _, None) => around!("make-deployment"),
            _ => around!("apply-deployment"),
        }
    }

    /// The step's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.before.trim_end_matches(".before")
    }
}
