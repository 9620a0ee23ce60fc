//! The answer to an admission review, and what every such request says.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::audit::{self, Audit};
use super::envelope::{self, Request, Status};
use super::json;
use super::{Answer, Failure, Report};

pub(super) const API_VERSION: &str = "admission.k8s.io/v1";
pub(super) const KIND: &str = "AdmissionReview";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

/// What is answered to a request.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response<'a> {
    pub(super) uid: &'a str,
    pub(super) allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) warnings: &'a [String],
    #[serde(skip_serializing_if = "Audit::is_empty")]
    pub(super) audit_annotations: Audit,
}

/// A request that was not processed.
pub(super) fn refuse(uid: &str, failure: &Failure) -> Answer {
    let audit_annotations = audit::of_refusal();
    let status = Some(Status::failure(failure));
    let response = Response { uid, status, audit_annotations, ..Response::default() };
    Answer {
        body: document(response),
        report: Report { uid: uid.to_owned(), code: failure.code, ..Report::default() },
    }
}

/// An answer as the API server reads it.
pub(super) fn document(response: Response) -> Vec<u8> {
    envelope::bytes(&Review { api_version: API_VERSION, kind: KIND, response })
}

/// A JSON patch, as an answer has it.
pub(super) fn encoded(patch: &impl Serialize) -> String {
    STANDARD.encode(envelope::bytes(patch))
}

/// The kind named in `field` of a request: group, version and kind.
pub(super) fn group_version_kind(request: &Request, field: &str) -> Option<[String; 3]> {
    let fields = json::fields(request.fields.get(field)?)?;
    Some(["group", "version", "kind"].map(|key| fields.text(key).unwrap_or_default().into_owned()))
}

/// Which object it is about, and who asks.
pub(super) fn describe_request(report: &mut Report, request: &Request) {
    let user = request.fields.get("userInfo").and_then(json::fields);
    report.object = format!(
        "{}/{}",
        request.text("namespace").unwrap_or_default(),
        request.text("name").unwrap_or_default()
    );
    report.user = user.and_then(|user| user.text("username")).unwrap_or_default().into_owned();
}
