//! The request for one object, and the meaning of its answer.
//!
//! A patch that changes nothing is no write where the object is stored as it would be written, and has its resource
//! version unchanged; where it is stored in another version the bytes differ, and it is written. So the answer shows
//! which of both it was.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::core::Status;
use serde_json::{Value, json};

use super::super::observation::ObjectMeta;
use super::tally::Fate;

/// How often an object is tried whose patch the API server failed at.
const TRIES: u32 = 5;

/// How often one is tried that the API server had no time for, or that found none which works: for about ten minutes.
pub const TRIES_THROTTLED: u32 = 60;

/// The first pause before an object is tried again.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The longest one.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The pause before a server is asked again that could not be reached.
pub const PAUSE_UNREACHED: Duration = Duration::from_secs(1);

/// A merge patch.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    /// What is merged.
    pub body: Value,
    /// Whether it takes managed fields away.
    pub cleans: bool,
}

/// A patch that changes nothing but the managed fields, if they are given. It names the object and its state, so that
/// nothing is made that was deleted, and nothing is done about what others have written since.
#[must_use]
pub fn patch(object: &ObjectMeta, managed_fields: Option<Vec<ManagedFieldsEntry>>) -> Patch {
    let cleans = managed_fields.is_some();
    let mut body = json!({"metadata": {"uid": object.uid, "resourceVersion": object.resource_version}});
    if let Some(entries) = managed_fields {
        body["metadata"]["managedFields"] = json!(entries);
    }
    Patch { body, cleans }
}

/// What the API server answered.
#[derive(Clone, Debug)]
pub enum Answer<T> {
    /// What was asked for.
    Done(T),
    /// No, and what it asks to be waited for.
    Refused(Box<Status>, Option<Duration>),
    /// Nothing that could be read, or not in time; what was wrong.
    Nothing(String),
    /// There was no connection, or it broke; what was wrong. That is about the server, whatever was asked for.
    Unreached(String),
}

/// What an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// The object is done with.
    Is(Fate),
    /// It is tried again after a pause.
    Again(Duration),
    /// The same, and there are too many requests.
    Throttled(Duration),
    /// The same, and it does not count as a try: it never reached the server.
    Unheard(Duration),
}

/// How often an object was tried in vain. An API server that was busy for minutes has not failed at the object yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tries {
    /// The API server had no time, or found none which works.
    pub busy: u32,
    /// The API server failed, or gave no answer.
    pub failed: u32,
}

/// The pause before the next try, where there is one.
fn again(count: &mut u32, most: u32) -> Option<Duration> {
    let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(*count)).min(LONGEST_PAUSE);
    *count += 1;
    (*count < most).then_some(pause)
}

/// What the answer to a patch of `object` means after those `tries`, to which this one is added.
#[must_use]
pub fn conclude(object: &ObjectMeta, answer: Answer<ObjectMeta>, tries: &mut Tries) -> Conclusion {
    match answer {
        Answer::Done(after) if after.resource_version == object.resource_version => {
            Conclusion::Is(Fate::AsWanted)
        }
        Answer::Done(_) => Conclusion::Is(Fate::Rewritten),
        Answer::Unreached(_) => Conclusion::Unheard(PAUSE_UNREACHED),
        Answer::Nothing(why) => match again(&mut tries.failed, TRIES) {
            Some(pause) => Conclusion::Again(pause),
            None => Conclusion::Is(Fate::Failed(why)),
        },
        Answer::Refused(status, wait) => {
            let pause = match status.code {
                429 | 502 | 503 => again(&mut tries.busy, TRIES_THROTTLED),
                500.. => again(&mut tries.failed, TRIES),
                _ => None,
            };
            let pause = pause.map(|pause| wait.map_or(pause, |wait| wait.min(LONGEST_PAUSE)));
            match (status.code, pause) {
                (429, Some(pause)) => Conclusion::Throttled(pause),
                (_, Some(pause)) => Conclusion::Again(pause),
                (409, None) if is_about(&status, object) => Conclusion::Is(Fate::WrittenSince),
                (404, None) if is_about(&status, object) => Conclusion::Is(Fate::Gone),
                (_, None) => Conclusion::Is(Fate::Failed(reason(&status))),
            }
        }
    }
}

/// Whether a Status is about that object, and not about its kind.
fn is_about(status: &Status, object: &ObjectMeta) -> bool {
    status.details.as_ref().is_some_and(|details| details.name == object.name)
}

/// What the API server says, or at least the code.
#[must_use]
pub fn reason(status: &Status) -> String {
    if status.message.is_empty() { format!("HTTP status {}", status.code) } else { status.message.clone() }
}

#[cfg(test)]
mod tests {
    use kube::core::response::StatusDetails;

    use super::super::tests::object;
    use super::*;

    #[test]
    fn an_answer_says_whether_it_was_a_write() {
        let done = |version| conclude(&object("5"), Answer::Done(object(version)), &mut Tries::default());
        assert_eq!(done("5"), Conclusion::Is(Fate::AsWanted));
        assert_eq!(done("6"), Conclusion::Is(Fate::Rewritten));
    }

    #[test]
    fn what_others_have_done_is_no_failure_and_what_may_pass_is_tried_again() {
        let refused = |code: u16, name: &str, tried| {
            let details: StatusDetails = serde_json::from_value(json!({"name": name})).unwrap();
            let status = Status::failure("because", "Reason").with_code(code).with_details(details);
            let mut tries = if matches!(code, 429 | 502 | 503) {
                Tries { busy: tried, failed: 0 }
            } else {
                Tries { busy: 0, failed: tried }
            };
            conclude(&object("5"), Answer::Refused(Box::new(status), None), &mut tries)
        };
        let failed = Conclusion::Is(Fate::Failed("because".to_owned()));
        assert_eq!(refused(409, "one", 0), Conclusion::Is(Fate::WrittenSince));
        assert_eq!(refused(404, "one", 0), Conclusion::Is(Fate::Gone));
        assert_eq!(refused(404, "", 0), failed, "the kind is not served");
        assert_eq!(refused(409, "", 0), failed, "a webhook has its own reasons");
        for code in [400, 403, 413, 422] {
            assert_eq!(refused(code, "one", 0), failed);
        }
        assert_eq!(refused(500, "one", 0), Conclusion::Again(Duration::from_millis(200)));
        assert_eq!(refused(503, "one", 3), Conclusion::Again(Duration::from_millis(1600)));
        assert_eq!(refused(500, "one", 4), failed);
        assert_eq!(refused(429, "one", 10), Conclusion::Throttled(Duration::from_secs(10)));
        assert_eq!(refused(429, "one", 59), failed);
        let broken = |failed| {
            conclude(&object("5"), Answer::Nothing("reset".to_owned()), &mut Tries { busy: 0, failed })
        };
        assert_eq!(broken(0), Conclusion::Again(Duration::from_millis(200)));
        assert_eq!(broken(4), Conclusion::Is(Fate::Failed("reset".to_owned())));
        let mut tries = Tries { busy: 59, failed: 4 };
        let unheard = conclude(&object("5"), Answer::Unreached("refused".to_owned()), &mut tries);
        assert_eq!(unheard, Conclusion::Unheard(Duration::from_secs(1)), "that is not about the object");
        assert_eq!(
            refused(503, "one", 40),
            Conclusion::Again(Duration::from_secs(10)),
            "a restart takes its time"
        );
        assert_eq!(refused(503, "one", 59), failed);
        let status = Box::new(Status::failure("busy", "TooManyRequests").with_code(429));
        let mut tries = Tries { busy: 7, failed: 0 };
        let throttled =
            conclude(&object("5"), Answer::Refused(status, Some(Duration::from_secs(1))), &mut tries);
        assert_eq!(throttled, Conclusion::Throttled(Duration::from_secs(1)));
        let broken = conclude(&object("5"), Answer::Nothing("reset".to_owned()), &mut tries);
        assert_eq!(
            broken,
            Conclusion::Again(Duration::from_millis(200)),
            "it was busy before, and has not failed"
        );
        assert_eq!(tries, Tries { busy: 8, failed: 1 });
    }
}
