//! The review protocol of the API server: bytes in, bytes out, and a short report for logs and metrics.
//!
//! Guarantees: every body gets an answer that the API server can read, with the `uid` of the request in it as far
//! as one could be found; what is not understood is never allowed. Pure: time is an argument.

mod admission;
mod audit;
mod conversion;
mod envelope;
mod json;
mod pods;
mod response;
#[cfg(test)]
mod tests;
mod uid;

use jiff::Timestamp;

/// Which review is asked for: one HTTPS path each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `POST /mutate`: defaults, and what pods ask for, as a JSON patch.
    Mutate,
    /// `POST /validate`: allowed, or all that is wrong.
    Validate,
    /// `POST /convert`: the same objects in another version.
    Convert,
}

impl Endpoint {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Mutate, Self::Validate, Self::Convert];

    /// Its path, for any kind.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Mutate => "/mutate",
            Self::Validate => "/validate",
            Self::Convert => "/convert",
        }
    }

    /// Its name in logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
            Self::Convert => "convert",
        }
    }

    /// Reads one review and answers it.
    #[must_use]
    pub fn answer(self, body: &[u8], surroundings: &Surroundings) -> Answer {
        match self {
            Self::Mutate | Self::Validate => admission::answer(self, body, surroundings),
            Self::Convert => conversion::answer(body),
        }
    }

    /// The answer to a review that could not be processed (too large, too late, a panic): a refusal with the
    /// request's uid, as far as `body` (which may be cut off anywhere) shows one.
    #[must_use]
    pub fn failure(self, body: &[u8], failure: &Failure) -> Answer {
        let uid = uid::find(body);
        match self {
            Self::Mutate | Self::Validate => response::refuse(&uid, failure),
            Self::Convert => conversion::refuse(&uid, failure),
        }
    }
}

/// What an answer depends on beside the review.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The present.
    pub now: Timestamp,
    /// The namespace of gatehouse, where our kinds are refused: pods in it may use its ServiceAccount.
    pub own_namespace: Option<&'a str>,
    /// The image with gatehouse, for what is added to pods.
    pub image: &'a str,
}

impl Surroundings<'_> {
    /// Nothing but the time.
    #[must_use]
    pub const fn at(now: Timestamp) -> Self {
        Self { now, own_namespace: None, image: "gatehouse" }
    }
}

/// Why a review was not processed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP code inside the review's status: 400, 413, 500, 504.
    pub code: u16,
    /// The machine-readable reason of that status: `BadRequest`, `RequestEntityTooLarge`, `InternalError`, `Timeout`.
    pub reason: &'static str,
    /// The sentence for the user.
    pub message: String,
}

/// A review's answer, ready to be sent with HTTP 200, and what is worth saying about it.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The review document, JSON.
    pub body: Vec<u8>,
    /// For the log line, the span and the metrics.
    pub report: Report,
}

/// What a review was about and how it went; never any of the object's content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The request's uid, empty where none was found.
    pub uid: String,
    /// The kind under review, `Pod` among them; for a conversion the kind of its first object. Empty where unknown. One
    /// of the known kinds or empty, so that it may label a metric.
    pub kind: &'static str,
    /// `CREATE`, `UPDATE`, `DELETE`, `CONNECT`, or empty.
    pub operation: &'static str,
    /// The object's namespace and name, as far as known: `namespace/name`.
    pub object: String,
    /// The user who asked, as the API server names it.
    pub user: String,
    /// The request was a trial: nothing is stored, whatever the answer is.
    pub dry_run: bool,
    /// The code inside the answer: 200 where it was allowed or converted.
    pub code: u16,
    /// The paths of the faults found, no values.
    pub faults: Vec<String>,
    /// The objects of a conversion, those of a review that failed too, as far as they were read.
    pub conversions: Vec<Conversions>,
}

/// Objects of one review that are alike. Kinds and versions are known ones or empty, so that they may label a metric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversions {
    /// Their kind, empty where it is unknown.
    pub kind: &'static str,
    /// The version that they came in, empty where it is unknown.
    pub from: &'static str,
    /// The version that was asked for, empty where it is unknown.
    pub to: &'static str,
    /// How many there were.
    pub objects: u64,
    /// How many of them have fields that only the newer version can say and that did not fit into annotations.
    pub lost: u64,
}
