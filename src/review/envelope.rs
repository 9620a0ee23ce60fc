//! What both reviews have in common: the document around the request, its uid, and the status of a refusal.
//!
//! The uid is read first and by itself, so that an answer carries it however broken the rest is: the API server
//! throws an answer without it away, and with it the explanation.

use serde::Serialize;
use serde_json::value::RawValue;

use super::Failure;
use super::json::{self, RawFields};
use crate::api::field::Fault;

/// A review's request, its fields still unread.
pub(super) struct Request<'a> {
    pub(super) uid: String,
    pub(super) fields: RawFields<'a>,
}

impl Request<'_> {
    /// The field `name`, read in full.
    pub(super) fn value(&self, name: &str) -> Result<Option<serde_json::Value>, Failure> {
        let Some(raw) = self.fields.get(name) else { return Ok(None) };
        match json::tree(raw.get()) {
            Ok(serde_json::Value::Null) => Ok(None),
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(bad_request(format!("unable to read request.{name}: {error}"))),
        }
    }

    /// The field `name` as a text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.fields.text(name).map(std::borrow::Cow::into_owned)
    }
}

/// Opens a review document of that `kind` and version.
pub(super) fn open<'a>(body: &'a [u8], api_version: &str, kind: &str) -> Result<Request<'a>, Failure> {
    if body.is_empty() {
        return Err(bad_request(format!("the body is empty: expected a {kind} of {api_version}")));
    }
    let text =
        std::str::from_utf8(body).map_err(|error| bad_request(format!("the body is not UTF-8: {error}")))?;
    let review: RawFields = serde_json::from_str(text)
        .map_err(|error| bad_request(format!("unable to read the {kind}: {error}")))?;
    let found = (review.text("apiVersion").unwrap_or_default(), review.text("kind").unwrap_or_default());
    if found.0 != api_version || found.1 != kind {
        let message = format!(
            "expected kind {kind} of {api_version}, found kind {:?} of {:?}",
            shortened(&found.1),
            shortened(&found.0)
        );
        return Err(bad_request(message));
    }
    let request = match review.get("request") {
        Some(request) if request.get() != "null" => request,
        _ => return Err(bad_request(format!("the {kind} has no request"))),
    };
    let fields: RawFields = serde_json::from_str(request.get())
        .map_err(|error| bad_request(format!("unable to read the request of the {kind}: {error}")))?;
    match fields.text("uid") {
        Some(uid) if !uid.is_empty() => Ok(Request { uid: uid.into_owned(), fields }),
        _ => Err(bad_request(format!("the request of the {kind} has no uid"))),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

/// A request that cannot be understood.
pub(super) fn bad_request(message: String) -> Failure {
    Failure { code: 400, reason: "BadRequest", message }
}

/// The uid of a request in a body that could not be read to its end: the first `"uid"` in it. The API server
/// writes it before anything that a user has a say in.
pub(super) fn find_uid(body: &[u8]) -> String {
    const KEY: &[u8] = b"\"uid\"";
    let Some(start) = body.windows(KEY.len()).position(|window| window == KEY) else { return String::new() };
    let rest = body[start + KEY.len()..].trim_ascii_start();
    let Some(rest) = rest.strip_prefix(b":").map(<[u8]>::trim_ascii_start) else { return String::new() };
    let Some(rest) = rest.strip_prefix(b"\"") else { return String::new() };
    let uid: Vec<u8> = rest.iter().copied().take_while(|byte| *byte != b'"').take(LONGEST_UID + 1).collect();
    let sound = uid.len() <= LONGEST_UID && uid.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'\\');
    if sound { String::from_utf8(uid).unwrap_or_default() } else { String::new() }
}

/// A uid is a UUID of 36 characters; longer ones are somebody's joke.
const LONGEST_UID: usize = 128;

/// `metav1.Status`, as far as a review's answer has one.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Status {
    #[serde(rename = "status")]
    pub(super) outcome: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<u16>,
}

/// What a refusal is about.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Details {
    pub(super) name: String,
    pub(super) group: &'static str,
    pub(super) kind: &'static str,
    pub(super) causes: Vec<Cause>,
}

/// One fault.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Cause {
    pub(super) reason: &'static str,
    pub(super) message: String,
    pub(super) field: String,
}

impl Status {
    pub(super) fn failure(failure: &Failure) -> Self {
        Self {
            outcome: "Failure",
            message: failure.message.clone(),
            reason: failure.reason,
            details: None,
            code: Some(failure.code),
        }
    }

    /// All faults of an object, in the words of the API server's own `NewInvalid`.
    pub(super) fn invalid(kind: &'static str, name: &str, faults: &[Fault]) -> Self {
        let all = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let all = if faults.len() == 1 { all } else { format!("[{all}]") };
        let causes = faults.iter().map(|fault| Cause {
            reason: fault.reason.cause(),
            message: fault.message(),
            field: fault.path.to_string(),
        });
        Self {
            outcome: "Failure",
            message: format!("{kind}.{} {name:?} is invalid: {all}", crate::api::GROUP),
            reason: "Invalid",
            details: Some(Details {
                name: name.to_owned(),
                group: crate::api::GROUP,
                kind,
                causes: causes.collect(),
            }),
            code: Some(422),
        }
    }
}

/// Serializes an answer. Our own types have string keys only, so that it cannot fail.
pub(super) fn bytes(answer: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(answer).unwrap_or_default()
}

/// A part of a document that was written before.
pub(super) fn raw(text: String) -> Option<Box<RawValue>> {
    RawValue::from_string(text).ok()
}
