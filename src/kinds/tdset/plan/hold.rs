//! What held a count back when a status was written, read from its conditions. Pure.
//!
//! The status reports the schedule while the count is held back, so a transition is not to be seen in it afterwards;
//! what its conditions say is.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::api::condition;
use crate::kinds::tdset::api::status::{ConditionType, Reason};

/// What held a count back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// `spec.suspend`.
    Suspended,
    /// Another owner.
    Conflict,
    /// The API server refused it.
    Refused,
    /// Something could not be read.
    Unread,
    /// Something else was in the way.
    Blocked,
}

impl Hold {
    /// What the event of a transition says of it.
    pub const fn ended(self) -> &'static str {
        match self {
            Self::Suspended => "no longer suspended",
            Self::Conflict => "no longer in conflict",
            Self::Refused => "no longer refused",
            Self::Unread | Self::Blocked => "nothing is in the way any more",
        }
    }
}

/// Reasons of Ready for which no count is written.
const BLOCKERS: [Reason; 5] = [
    Reason::TargetNotFound,
    Reason::TargetNotScalable,
    Reason::AutoscalerNotFound,
    Reason::AutoscalerTargetMismatch,
    Reason::SpecInvalid,
];

/// The same, where it is not known whether anything has changed.
const UNREAD: [Reason; 5] = [
    Reason::TargetNotReadable,
    Reason::Forbidden,
    Reason::DatesNotFound,
    Reason::DatesNotReadable,
    Reason::InvalidDates,
];

/// Whether that leaves open whether anything has changed.
#[must_use]
pub fn is_unread(reason: Reason) -> bool {
    UNREAD.contains(&reason)
}

/// What held the count back when these conditions were written. Neither a contest does, nor a Service whose name is taken:
/// that is a Deployment's where nothing rolls out for it, either. What has the name by now is no matter.
#[must_use]
pub fn last(conditions: &[Condition]) -> Option<Hold> {
    let find = |about: ConditionType| condition::find(conditions, about.as_str());
    let is = |found: &Condition, reason: Reason| found.reason == reason.as_str();
    if condition::holds(conditions, ConditionType::Suspended.as_str()) {
        return Some(Hold::Suspended);
    }
    let conflict = find(ConditionType::Conflict).filter(|found| found.status == "True");
    let is_of_deployment =
        || find(ConditionType::Progressing).is_some_and(|found| is(found, Reason::NameTaken));
    let holds = |found: &&Condition| {
        !is(found, Reason::Contested) && (!is(found, Reason::NameTaken) || is_of_deployment())
    };
    if conflict.as_ref().is_some_and(holds) {
        return Some(Hold::Conflict);
    }
    let ready = find(ConditionType::Ready).filter(|found| found.status == "False")?;
    if is(ready, Reason::CountRefused) {
        return Some(Hold::Refused);
    }
    let is_one_of = |reasons: &[Reason]| reasons.iter().any(|reason| is(ready, *reason));
    let unread = is_one_of(&UNREAD).then_some(Hold::Unread);
    unread.or_else(|| is_one_of(&BLOCKERS).then_some(Hold::Blocked))
}
