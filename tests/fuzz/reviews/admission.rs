//! Reviews of admission, at both endpoints.
//!
//! Guarantees: what is not understood is never allowed; a refusal says why; a patch changes the object into one to
//! which nothing is added, and takes nothing from what was written as `v1`; what may be created is what the operator
//! can read. Not asserted: which faults are found. The tests beside the rules and the real API servers do that.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gatehouse::api::bounded::{self, Twice};
use gatehouse::api::{GROUP, Kind, Version};
use gatehouse::kinds;
use gatehouse::kinds::databasemigration::api as databasemigration;
use gatehouse::kinds::etcdcluster::api as etcdcluster;
use gatehouse::kinds::tdset::api as tdset;
use gatehouse::review::Endpoint;
use kit::random::Random;
use serde_json::{Value, json};

use super::{Fields, OWN};
use crate::corpus::Input;
use crate::drawn::{self, change, one_in, pick};

/// A review, mostly one that can be understood.
pub fn make(random: &mut Random, corpus: &[Input]) -> Vec<u8> {
    let kind = drawn::kind(random);
    let (stored, written) = (pick(random, &Version::ALL), pick(random, &Version::ALL));
    let object = drawn::object(random, kind, stored);
    let old = if one_in(random, 4) {
        drawn::object(random, kind, stored)
    } else {
        let mut old = object.clone();
        (0..random.below(3)).for_each(|_| change(random, &mut old));
        old
    };
    let named =
        |version: Version| json!({"group": GROUP, "version": version.as_str(), "kind": kind.names().kind});
    let operation =
        pick(random, &["CREATE", "CREATE", "UPDATE", "UPDATE", "UPDATE", "DELETE", "CONNECT", "PATCH"]);
    let sub_resource = pick(random, &["", "", "", "", "", "", "status", "scale", "exec"]);
    let mut request = json!({"uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "kind": named(stored), "requestKind": named(written),
        "resource": {"group": GROUP, "version": stored.as_str(), "resource": kind.names().plural},
        "subResource": sub_resource, "name": "some", "namespace": pick(random, &["here", "here", OWN]),
        "operation": operation, "userInfo": {"username": "someone"}, "dryRun": false, "object": object});
    if operation != "CREATE" || one_in(random, 4) {
        request["oldObject"] = old;
    }
    if one_in(random, 6) {
        request["requestKind"] = Value::Null;
    }
    let review = super::enveloped(random, Endpoint::Mutate, &request);
    super::written(random, corpus, review)
}

/// Holds both answers against what the body says.
pub fn check(body: &[u8]) {
    let (version, kind) = super::expected(Endpoint::Mutate);
    let request = super::request(body, version, kind);
    for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
        let review = super::answer(endpoint, body);
        let response = &review["response"];
        if response["allowed"].as_bool().expect("an answer says whether it allows") {
            let request = request.as_ref().expect("what is allowed is a review");
            hold_allowed(endpoint, request, response);
        } else {
            hold_refusal(response);
        }
    }
}

fn hold_refusal(response: &Value) {
    let status = &response["status"];
    assert!(status["code"].as_u64().is_some_and(|code| (400..600).contains(&code)), "{response}");
    assert!(status["message"].as_str().is_some_and(|message| !message.is_empty()), "{response}");
    assert!(response["patch"].is_null(), "a refusal has a patch: {response}");
    let causes = status["details"]["causes"].as_array().map_or(0, Vec::len);
    assert!(causes <= 100, "{causes} causes");
}

fn hold_allowed(endpoint: Endpoint, request: &Fields, response: &Value) {
    let operation = request.text("operation").expect("what is allowed has an operation");
    let sub_resource = request.text("subResource").unwrap_or_default();
    assert!(
        ["CREATE", "UPDATE", "DELETE", "CONNECT"].contains(&operation.as_str()),
        "{operation} is allowed"
    );
    let named = request.fields("kind").expect("what is allowed has a kind");
    let warnings = response["warnings"].as_array().map_or(0, Vec::len);
    assert!(warnings <= 16, "{warnings} warnings");
    let is_own = request.text("namespace").as_deref() == Some(OWN);
    assert!(!(is_own && operation == "CREATE"), "something may be created beside gatehouse");
    if !sub_resource.is_empty() || !["CREATE", "UPDATE"].contains(&operation.as_str()) {
        assert!(response["patch"].is_null(), "a patch of what is no object: {response}");
        let is_asked = matches!(
            (operation.as_str(), sub_resource.as_str()),
            ("UPDATE", "scale" | "status") | ("DELETE", "")
        );
        assert!(endpoint == Endpoint::Mutate || is_asked, "{operation} of {sub_resource:?} is allowed");
        return;
    }
    assert_eq!(named.text("group").as_deref(), Some(GROUP), "a kind of others is allowed");
    let kind = kinds::find(&named.text("kind").unwrap_or_default()).expect("what is allowed is of our kinds");
    let version: Version =
        named.text("version").unwrap_or_default().parse().expect("what is allowed has a version");
    let object = object_of(request, "object");
    if operation == "UPDATE" {
        object_of(request, "oldObject");
    }
    match endpoint {
        Endpoint::Mutate => hold_patch(request, &object, response, is_all_v1(request, version)),
        _ if operation == "CREATE" => hold_readable(kind, version, object),
        _ => {}
    }
}

/// An object that is allowed can be read, without a key that is there twice.
fn object_of(request: &Fields, name: &str) -> Value {
    let raw = request.once(name).unwrap_or_else(|| panic!("it is allowed without {name}"));
    let strict = bounded::tree(raw.get(), Twice::Refused);
    assert!(strict.is_ok_and(|object| object.is_object()), "{name} is allowed and cannot be read");
    serde_json::from_str(raw.get()).expect("what is read strictly is read")
}

fn is_all_v1(request: &Fields, version: Version) -> bool {
    let written = request.fields("requestKind").and_then(|kind| kind.text("version"));
    version == Version::V1 && written.is_none_or(|written| written == "v1")
}

/// The patch applies; afterwards there is nothing to add; and nothing is taken from an author of `v1`.
fn hold_patch(request: &Fields, object: &Value, response: &Value, is_all_v1: bool) {
    let Some(patch) = response["patch"].as_str() else { return };
    assert_eq!(response["patchType"], "JSONPatch");
    let patch = STANDARD.decode(patch).expect("a patch is base64");
    let patch: json_patch::Patch = serde_json::from_slice(&patch).expect("a patch is one");
    let mut patched = object.clone();
    json_patch::patch(&mut patched, &patch).unwrap_or_else(|error| panic!("{patch}: {error}"));
    if is_all_v1 {
        assert!(is_kept(object, &patched), "{patch} takes something away");
    }
    let again = answered_again(request, &patched);
    assert_eq!(again["allowed"], true, "{patch} makes it refused: {again}");
    assert!(again["patch"].is_null(), "after {patch} there is more to patch: {again}");
}

/// The answer to the same request with another object. All else stays as it was written.
fn answered_again(request: &Fields, object: &Value) -> Value {
    let others = request.0.iter().filter(|(key, _)| key != "object");
    let others: Vec<_> = others.map(|(key, raw)| format!("{}:{raw}", Value::from(key.as_str()))).collect();
    let (version, kind) = super::expected(Endpoint::Mutate);
    let request = format!(r#"{{{},"object":{object}}}"#, others.join(","));
    let review = format!(r#"{{"apiVersion":"{version}","kind":"{kind}","request":{request}}}"#);
    super::answer(Endpoint::Mutate, review.as_bytes())["response"].take()
}

/// All that one value says, another says too; nulls say nothing.
fn is_kept(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Null, _) => true,
        (Value::Object(one), Value::Object(other)) => {
            one.iter().all(|(key, value)| is_kept(value, other.get(key).unwrap_or(&Value::Null)))
        }
        (one, other) => one == other,
    }
}

/// What may be created, the operator can read.
fn hold_readable(kind: &dyn Kind, version: Version, object: Value) {
    let mut hub = kind.lens().convert(object, version, Version::V1);
    let spec = hub["spec"].take();
    let read = match kind.names().kind {
        "DatabaseMigration" => {
            serde_json::from_value::<databasemigration::v1::DatabaseMigrationSpec>(spec).map(|_| ())
        }
        "TDSet" => serde_json::from_value::<tdset::v1::TDSetSpec>(spec).map(|_| ()),
        "EtcdCluster" => serde_json::from_value::<etcdcluster::v1::EtcdClusterSpec>(spec).map(|_| ()),
        other => panic!("write down here how {other} is read"),
    };
    assert!(read.is_ok(), "it may be created and cannot be read: {read:?}");
}
