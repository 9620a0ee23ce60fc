//! The points around what a reconciliation of a TDSet does. Pure.
//!
//! Guarantees: whatever a plan may ask for has a name, and so has its points.

use super::resources::names::COUNT_MANAGER;
use crate::controllers::fail_points::{FailPoints, fail_points};
use crate::controllers::step::{Apply, Step};

/// Those around the write of a status.
pub const STATUS: FailPoints = fail_points!("tdset.write-status");

/// Those around an event.
pub const EVENT: FailPoints = fail_points!("tdset.publish-event");

/// Those around a step.
#[must_use]
pub fn of(step: &Step) -> FailPoints {
    match step {
        Step::Apply(apply) => of_apply(apply),
        Step::Merge(merge) if merge.scale => fail_points!("tdset.write-scale"),
        Step::Merge(_) => fail_points!("tdset.write-finalizers"),
        Step::Create { .. } => fail_points!("tdset.create"),
        Step::Delete { .. } => fail_points!("tdset.delete-service"),
        Step::Status { .. } => STATUS,
        Step::Event(_) => EVENT,
    }
}

fn of_apply(apply: &Apply) -> FailPoints {
    match (apply.manifest.place.resource.kind.as_str(), apply.manager, &apply.seen) {
        ("HorizontalPodAutoscaler", ..) => fail_points!("tdset.write-bounds"),
        (_, COUNT_MANAGER, _) => fail_points!("tdset.write-count"),
        ("Service", _, None) => fail_points!("tdset.make-service"),
        ("Service", ..) => fail_points!("tdset.apply-service"),
        (_, _, None) => fail_points!("tdset.make-deployment"),
        _ => fail_points!("tdset.apply-deployment"),
    }
}
