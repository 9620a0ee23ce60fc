//! What the API server says where it refuses a request.

use std::collections::BTreeSet;

use crate::wait::{PATIENCE, reached, reached_async};

/// Why the API server refused a request.
#[derive(Clone, Debug, Default)]
pub struct Refusal {
    /// The HTTP status.
    pub code: u16,
    /// The message of the Status.
    pub message: String,
    /// The fields that its causes name.
    pub fields: BTreeSet<String>,
}

/// Whether a request was refused because a webhook had not judged it in time, as the API server says or the gate itself:
/// then nothing was stored. A conversion that comes too late may be that of the answer, after the object was stored.
#[must_use]
pub fn is_late(refusal: &str) -> bool {
    let says = |both: [&str; 2]| both.iter().all(|words| refusal.contains(words));
    says(["failed calling webhook", "context deadline exceeded"])
        || says(["denied the request: ", "took longer than the request's timeout allows"])
}

/// What comes of a request, which is made again where it was not judged in time; its last answer, also where that was not.
/// `refusal` is the message of one that was refused.
pub fn until_judged<T>(mut ask: impl FnMut() -> T, refusal: impl Fn(&T) -> Option<&str>) -> T {
    let judged = reached(PATIENCE, || {
        let answer = ask();
        if refusal(&answer).is_some_and(is_late) { Err(answer) } else { Ok(answer) }
    });
    let (Ok(answer) | Err(answer)) = judged;
    answer
}

/// The same for a request that is awaited.
pub async fn until_judged_async<T>(ask: impl AsyncFn() -> T, refusal: impl Fn(&T) -> Option<&str>) -> T {
    let judged = reached_async(PATIENCE, async || {
        let answer = ask().await;
        if refusal(&answer).is_some_and(is_late) { Err(answer) } else { Ok(answer) }
    });
    let (Ok(answer) | Err(answer)) = judged.await;
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: [&str; 2] = [
        "Internal error occurred: failed calling webhook \"a\": failed to call webhook: Post \"https://a\": context \
         deadline exceeded",
        "admission webhook \"a\" denied the request: answering the review took longer than the request's timeout allows",
    ];

    #[test]
    fn what_was_not_judged_in_time_is_asked_again() {
        let said =
            [LATE[0], LATE[1], "admission webhook \"a\" denied the request: spec.replicas: Invalid value"];
        let mut answers = said.into_iter();
        assert_eq!(until_judged(|| answers.next(), |said| *said), Some(said[2]));
    }

    #[test]
    fn a_late_conversion_may_have_stored_the_object() {
        assert!(!is_late("conversion webhook for a failed: Post \"https://a\": context deadline exceeded"));
        assert!(!is_late(
            "conversion webhook for a failed: it took longer than the request's timeout allows"
        ));
    }
}
