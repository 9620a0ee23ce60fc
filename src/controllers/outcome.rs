//! How a reconciliation of one object ended, and when the next one is due.
//!
//! Guarantees: an outcome is no error. What failed has a class, and the class alone decides how soon it is tried
//! again: later and later where the API server is in trouble, at once where another client wrote first.

use std::time::Duration;

use kube::core::Status;

use super::manifest::Place;
use crate::runtime::call;
use crate::runtime::supervisor::chain;

/// How a reconciliation ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is as it should be; the next look is after that time.
    Done(Duration),
    /// Something was written, and its effect is looked at when it shows, after that time at the latest.
    Waiting(Duration),
    /// The API server refuses what the object asks for; the object says so. Tried again after that time, and the first
    /// times sooner: see [`Class::Permanent`].
    Refused(Duration),
    /// Nothing can be done until a user changes the object; the object says so.
    Invalid,
    /// The object is being deleted: nothing is done for it any more.
    Leaving,
}

impl Outcome {
    /// After what time the next reconciliation is, events aside.
    #[must_use]
    pub const fn again(self) -> Option<Duration> {
        match self {
            Self::Done(again) | Self::Waiting(again) | Self::Refused(again) => Some(again),
            Self::Invalid | Self::Leaving => None,
        }
    }

    /// One word for metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Waiting(_) => "waiting",
            Self::Refused(_) => "refused",
            Self::Invalid => "invalid",
            Self::Leaving => "leaving",
        }
    }
}

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// It may well succeed next time: no answer, too many requests, trouble inside the API server.
    Transient,
    /// Another client wrote first: look again, then decide again.
    Conflict,
    /// The API server does not know the owner's kind yet: with `OwnerReferencesPermissionEnforcement` it refuses owners
    /// of a kind that it has just been given, until it looks its kinds up again, within 30 seconds
    /// (kubernetes/apiserver `pkg/server/options/admission.go`).
    Unmapped,
    /// It will fail until something changes: refused as invalid, forbidden, over a quota. Tried again soon at first all
    /// the same, for the change may be under way.
    Permanent,
}

/// First and longest pause after a failure of each class.
const PAUSES: [(Class, Duration, Duration); 4] = [
    (Class::Conflict, Duration::from_millis(50), Duration::from_secs(5)),
    (Class::Transient, Duration::from_millis(500), Duration::from_secs(30)),
    (Class::Unmapped, Duration::from_secs(1), Duration::from_secs(5)),
    (Class::Permanent, Duration::from_secs(1), Duration::from_mins(5)),
];

/// What an API server says that does not know an owner's kind yet.
const UNMAPPED: &str = "cannot set blockOwnerDeletion in this case because cannot find RESTMapping";

impl Class {
    /// How long to wait after that many failures in a row, from 1.
    #[must_use]
    pub fn pause(self, failures: u32) -> Duration {
        let (first, longest) = PAUSES
            .into_iter()
            .find_map(|(class, first, longest)| (class == self).then_some((first, longest)))
            .unwrap_or_default();
        let factor = 2_u32.checked_pow(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        first.checked_mul(factor).map_or(longest, |pause| pause.min(longest))
    }

    /// One word for metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Conflict => "conflict",
            Self::Unmapped => "unmapped",
            Self::Permanent => "permanent",
        }
    }
}

/// A call to the API server that failed, and what it was for.
#[derive(Debug, thiserror::Error)]
#[error("failed to {verb} {object}")]
pub struct Error {
    /// What was tried.
    pub verb: &'static str,
    /// What it was tried on: `deployments shop/cart`.
    pub object: String,
    /// The result.
    pub source: call::Error,
}

impl Error {
    /// A call that was to `verb` the object at that place failed.
    pub fn of(verb: &'static str, place: &Place) -> impl FnOnce(call::Error) -> Self {
        move |source| Self { verb, object: place.to_string(), source }
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn class(&self) -> Class {
        match &self.source {
            call::Error::Refused(status) => match status.code {
                409 => Class::Conflict,
                408 | 429 | 500.. => Class::Transient,
                403 if status.message.contains(UNMAPPED) => Class::Unmapped,
                _ => Class::Permanent,
            },
            call::Error::Broken(_) | call::Error::Timeout => Class::Transient,
        }
    }

    /// Whether the API server refused what is there, and will until something changes.
    #[must_use]
    pub fn is_refusal_for_good(&self) -> bool {
        self.class() == Class::Permanent && !self.is_not_found()
    }

    /// Whether what it was tried on is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(&self.source, call::Error::Refused(status) if status.code == 404)
    }

    /// What may be said of it where others read: the API server's reason, the fields that it names, and what is
    /// forbidden. Other messages are left out, for they may repeat values.
    #[must_use]
    pub fn said(&self) -> String {
        let why = match &self.source {
            call::Error::Refused(status) => reason(status),
            // What the decoder says may repeat a value.
            call::Error::Broken(error) if matches!(**error, kube::Error::SerdeError(_)) => {
                "the answer could not be read".to_owned()
            }
            call::Error::Broken(error) => chain(&**error),
            call::Error::Timeout => "there was no answer".to_owned(),
        };
        format!("{self}: {why}")
    }
}

fn reason(status: &Status) -> String {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes = causes.filter(|cause| !cause.field.is_empty());
    let fields: Vec<_> = causes.map(|cause| format!("{} ({})", cause.field, cause.reason)).collect();
    let why = if fields.is_empty() { forbidden(status).map(str::to_owned) } else { Some(fields.join(", ")) };
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!("{} ({}){why}", status.reason, status.code)
}

/// What the API server itself forbids: a missing right, a quota, a Pod Security level, and which policy does. A webhook of
/// another owner may say anything, and so may the words of a policy.
fn forbidden(status: &Status) -> Option<&str> {
    let (_object, why) = status.message.split_once(" is forbidden: ")?;
    if why.starts_with("ValidatingAdmissionPolicy '") {
        return why.split_once(": ").map(|(policy, _)| policy);
    }
    (status.code == 403 && !status.message.starts_with("admission webhook ")).then_some(why)
}

#[cfg(test)]
mod tests {
    use kube::core::response::{StatusCause, StatusDetails};

    use super::*;

    fn refused(code: u16, reason: &str) -> Error {
        let status =
            Status { code, reason: reason.to_owned(), message: "hunter2".to_owned(), ..Status::default() };
        Error {
            verb: "apply",
            object: "deployments a/b".to_owned(),
            source: call::Error::Refused(Box::new(status)),
        }
    }

    #[test]
    fn the_class_follows_from_the_answer() {
        for (code, class) in [
            (409, Class::Conflict),
            (429, Class::Transient),
            (500, Class::Transient),
            (503, Class::Transient),
            (400, Class::Permanent),
            (403, Class::Permanent),
            (422, Class::Permanent),
        ] {
            assert_eq!(refused(code, "").class(), class, "{code}");
        }
    }

    #[test]
    fn an_owner_of_a_new_kind_is_soon_tried_again() {
        let mut error = refused(403, "Forbidden");
        if let call::Error::Refused(status) = &mut error.source {
            // As of Kubernetes 1.36.
            status.message = "deployments.apps \"shop\" is forbidden: cannot set blockOwnerDeletion in this case because \
                              cannot find RESTMapping for APIVersion gatehouse.dev/v1 Kind TDSet: no matches for kind"
                .to_owned();
        }
        assert_eq!(error.class(), Class::Unmapped);
        assert_eq!(error.class().pause(u32::MAX), Duration::from_secs(5));
    }

    #[test]
    fn pauses_grow_up_to_a_limit() {
        let pauses: Vec<_> = (1..9).map(|failures| Class::Transient.pause(failures).as_millis()).collect();
        assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
        assert_eq!(Class::Conflict.pause(u32::MAX), Duration::from_secs(5));
    }

    #[test]
    fn what_the_api_server_forbids_is_said() {
        let mut error = refused(403, "Forbidden");
        assert_eq!(error.said(), "failed to apply deployments a/b: Forbidden (403)");
        let mut forbid = |message: &str| {
            if let call::Error::Refused(status) = &mut error.source {
                message.clone_into(&mut status.message);
            }
            error.said()
        };
        let quota = forbid("pods \"b\" is forbidden: exceeded quota: pods=10");
        assert_eq!(quota, "failed to apply deployments a/b: Forbidden (403): exceeded quota: pods=10");
        let policy = "b is forbidden: ValidatingAdmissionPolicy 'p' with binding 'q' denied request: hunter2";
        let expected = "failed to apply deployments a/b: Forbidden (403): ValidatingAdmissionPolicy 'p' with binding 'q' \
                        denied request";
        assert_eq!(forbid(policy), expected);
        let webhook = forbid("admission webhook \"w\" denied the request: b is forbidden: hunter2");
        assert_eq!(webhook, "failed to apply deployments a/b: Forbidden (403)");
    }

    #[test]
    fn what_is_said_names_fields_and_repeats_no_value() {
        let mut error = refused(422, "Invalid");
        if let call::Error::Refused(status) = &mut error.source {
            let cause = StatusCause {
                reason: "FieldValueInvalid".to_owned(),
                message: "Invalid value: \"hunter2\"".to_owned(),
                field: "spec.template".to_owned(),
            };
            status.details = Some(StatusDetails {
                causes: vec![cause],
                name: String::new(),
                group: String::new(),
                kind: String::new(),
                uid: String::new(),
                retry_after_seconds: 0,
            });
        }
        let expected = "failed to apply deployments a/b: Invalid (422): spec.template (FieldValueInvalid)";
        assert_eq!(error.said(), expected);
    }
}
