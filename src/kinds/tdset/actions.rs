//! What a reconciliation of a TDSet may do, and the fail points around it. Pure.
//!
//! Guarantees: whatever a plan may ask for has a name, and so has its points.

use serde_json::Value;

use super::names::{COUNT_MANAGER, FINALIZER, MANAGER};
use crate::controllers::action::{self, Failure, RefusedWrite};
use crate::controllers::api_write::{ApiWrite, Apply};
use crate::controllers::fail_points::{FailPoints, fail_points};

/// One thing to do. What each is about does not depend on the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Action(pub ApiWrite);

impl action::Action for Action {
    fn points(&self) -> FailPoints {
        points(&self.0)
    }

    /// A Service that is refused holds up no count. Without the finalizer nothing is written that a deletion would have
    /// to undo.
    fn holds_up_others(&self) -> bool {
        adds_finalizer(&self.0)
    }

    /// Thousands of counts are written at once.
    fn is_logged(&self) -> bool {
        false
    }
}

/// Whether the action of that name writes what the timetable is about: a count, or the bounds of an autoscaler.
#[must_use]
pub fn writes_count(action: &str) -> bool {
    ["tdset.write-count", "tdset.write-scale", "tdset.write-bounds"].contains(&action)
}

/// Whether the action of that name is, for a user, the write of the count: it is that, or what has to be there before.
#[must_use]
pub fn is_of_count(action: &str) -> bool {
    writes_count(action) || action == "tdset.add-finalizer"
}

/// Whether the count cannot have come about where the action of that name was refused.
#[must_use]
pub fn brings_count(action: &str) -> bool {
    is_of_count(action) || action == "tdset.make-deployment"
}

/// Whether the action of that name makes an object.
#[must_use]
pub fn makes(action: &str) -> bool {
    ["tdset.make-deployment", "tdset.make-service"].contains(&action)
}

/// Whether the action of that name puts an object back that was made, its count aside.
#[must_use]
pub fn repairs(action: &str) -> bool {
    ["tdset.apply-deployment", "tdset.apply-service"].contains(&action)
}

/// Whether the step removes what another client added to an object that was made.
#[must_use]
pub fn removes(step: &ApiWrite) -> bool {
    let ApiWrite::Merge(merge) = step else { return false };
    let made = ["Deployment", "Service"].contains(&merge.manifest.place.resource.kind.as_str());
    made && merge.manager == MANAGER && !merge.scale
}

/// Whether the step puts the finalizer on the TDSet.
fn adds_finalizer(step: &ApiWrite) -> bool {
    let ApiWrite::Merge(merge) = step else { return false };
    let finalizers = merge.manifest.object.pointer("/metadata/finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|all| all.iter().any(|one| one == FINALIZER))
}

/// The uid of the workload whose scale the step writes, and the count.
#[must_use]
pub fn scaled_to(step: &ApiWrite) -> Option<(String, i32)> {
    let ApiWrite::Merge(merge) = step else { return None };
    let object = Some(&merge.manifest.object).filter(|_| merge.scale)?;
    let uid = object.pointer("/metadata/uid")?.as_str()?;
    let count = object.pointer("/spec/replicas")?.as_i64()?;
    Some((uid.to_owned(), i32::try_from(count).ok()?))
}

/// Whether the API server refuses a HorizontalPodAutoscaler the lower bound 0 that the step was to give it. The code says
/// nothing of that: a feature gate, a policy and a webhook each have another one. Where a right is missing, or the
/// autoscaler, any bound would be refused.
#[must_use]
pub fn is_zero_refused(step: &ApiWrite, failure: &Failure) -> bool {
    let (ApiWrite::Merge(merge), Failure::Api(error)) = (step, failure) else { return false };
    let is_zero = merge.manifest.object.pointer("/spec/minReplicas") == Some(&Value::from(0));
    let refused = || RefusedWrite { action: points(step).name().to_owned(), why: failure.to_string() };
    is_zero && error.is_refusal_for_good() && !refused().lacks_right()
}

/// Those around the write of a status.
pub const STATUS_POINTS: FailPoints = fail_points!("tdset.write-status");

/// Those around an event.
pub const EVENT_POINTS: FailPoints = fail_points!("tdset.publish-event");

/// Those around a step.
#[must_use]
pub fn points(step: &ApiWrite) -> FailPoints {
    match step {
        ApiWrite::Apply(apply) => of_apply(apply),
        ApiWrite::Merge(merge) if merge.scale => fail_points!("tdset.write-scale"),
        ApiWrite::Merge(merge) if merge.manager == COUNT_MANAGER => fail_points!("tdset.write-bounds"),
        ApiWrite::Merge(merge) if removes(step) => match merge.manifest.place.resource.kind.as_str() {
            "Service" => fail_points!("tdset.apply-service"),
            _ => fail_points!("tdset.apply-deployment"),
        },
        ApiWrite::Merge(_) if adds_finalizer(step) => fail_points!("tdset.add-finalizer"),
        ApiWrite::Merge(_) => fail_points!("tdset.remove-finalizer"),
        ApiWrite::Create { .. } => fail_points!("tdset.create"),
        ApiWrite::Delete { .. } => fail_points!("tdset.delete-service"),
        ApiWrite::Status { .. } => STATUS_POINTS,
        ApiWrite::Event(_) => EVENT_POINTS,
    }
}

fn of_apply(apply: &Apply) -> FailPoints {
    match (apply.manifest.place.resource.kind.as_str(), apply.manager, &apply.seen) {
        (_, COUNT_MANAGER, _) => fail_points!("tdset.write-count"),
        ("Service", _, None) => fail_points!("tdset.make-service"),
        ("Service", ..) => fail_points!("tdset.apply-service"),
        (_, _, None) => fail_points!("tdset.make-deployment"),
        _ => fail_points!("tdset.apply-deployment"),
    }
}
