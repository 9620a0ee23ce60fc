//! The messages for failures outside of the rules: inside a review where there is one, as a `Status` elsewhere.

use axum::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use serde_json::json;

use crate::review::{Endpoint, Failure};

pub(super) fn too_large(limit: usize) -> Failure {
    Failure {
        code: 413,
        reason: "RequestEntityTooLarge",
        message: format!("the review is too large: at most {limit} bytes are read"),
    }
}

pub(super) fn too_late(doing: &str) -> Failure {
    Failure {
        code: 504,
        reason: "Timeout",
        message: format!("{doing} took longer than the request's timeout allows"),
    }
}

pub(super) fn broken_off() -> Failure {
    bad_request("failed to read the review: the request broke off".to_owned())
}

pub(super) const fn bad_request(message: String) -> Failure {
    Failure { code: 400, reason: "BadRequest", message }
}

pub(super) fn panicked() -> Failure {
    Failure {
        code: 500,
        reason: "InternalError",
        message: "gatehouse failed on this review: its log says where".to_owned(),
    }
}

pub(super) fn unsupported(header: &str, value: &str, expected: &str) -> Failure {
    let value: String = value.chars().take(80).collect();
    Failure {
        code: 415,
        reason: "UnsupportedMediaType",
        message: format!("unsupported {header} {value:?}: expected {expected}"),
    }
}

/// 503: come again in a second.
pub(super) fn busy() -> Response<Vec<u8>> {
    let message = "too many reviews are in flight, try again";
    let mut response = status(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// 401: the client is not authenticated.
pub(super) fn unauthorized() -> Response<Vec<u8>> {
    let message =
        "no client certificate was shown: admission reviews are answered to clients of --client-ca alone";
    status(StatusCode::UNAUTHORIZED, "Unauthorized", message)
}

/// 404: no such path.
pub(super) fn not_found(uri: &Uri) -> Response<Vec<u8>> {
    let path: String = uri.path().chars().take(80).collect();
    let known = Endpoint::ALL.map(Endpoint::path).join(", ");
    let message =
        format!("unknown path {path:?}: expected one of {known}, each with one more segment or none");
    status(StatusCode::NOT_FOUND, "NotFound", &message)
}

/// 405: reviews are posted.
pub(super) fn not_allowed(method: &Method) -> Response<Vec<u8>> {
    let message = format!("unsupported method {method}: expected POST");
    status(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", &message)
}

/// A `Status` of `meta/v1`, since the API server reads that.
fn status(code: StatusCode, reason: &str, message: &str) -> Response<Vec<u8>> {
    let body = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code.as_u16(),
    });
    let mut response = Response::new(body.to_string().into_bytes());
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
