//! Reviews of conversion.
//!
//! Guarantees: what is converted is as many objects as came, each in the version that was asked for, with the metadata
//! that it had; nothing of the annotations that carry what a version cannot say stays in the hub; what goes down and
//! comes up again is the same. Not asserted: metadata that holds a key twice, or whose annotations are no object, which
//! no API server sends. And the last digit of numbers with a fraction, which serde_json reads a bit beside now and
//! then.

use gatehouse::api::Version;
use gatehouse::api::bounded::{self, Twice};
use gatehouse::api::lens::memory::{self, PREFIX};
use gatehouse::kinds;
use gatehouse::review::Endpoint;
use kit::random::Random;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Fields;
use crate::corpus::Input;
use crate::drawn::{self, one_in, pick};
use crate::lens::{can_carry, forged, hold_same, is_clear};

/// A review of a few objects, or of none, or of many.
pub fn make(random: &mut Random, corpus: &[Input]) -> Vec<u8> {
    let to = pick(random, &Version::ALL);
    let many = pick(random, &[0, 1, 1, 2, 3, 9]);
    let objects: Vec<_> = (0..many).map(|_| object(random)).collect();
    let mut desired = json!(to.api_version());
    if one_in(random, 30) {
        desired = drawn::junk(random);
    }
    let request = json!({"uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "desiredAPIVersion": desired, "objects": objects});
    let review = super::enveloped(random, Endpoint::Convert, &request);
    super::written(random, corpus, review)
}

fn object(random: &mut Random) -> Value {
    let kind = drawn::kind(random);
    let version = pick(random, &Version::ALL);
    let mut object = drawn::object(random, kind, version);
    if one_in(random, 4) {
        forged::forge(random, kind, &mut object);
    }
    object
}

/// Holds the answer against what the body says.
pub fn check(body: &[u8]) {
    let review = super::answer(Endpoint::Convert, body);
    let response = &review["response"];
    let (version, kind) = super::expected(Endpoint::Convert);
    let request = super::request(body, version, kind);
    let Some(converted) = response["convertedObjects"].as_array() else { return };
    if response["result"]["status"] != "Success" {
        let message = response["result"]["message"].as_str();
        assert!(message.is_some_and(|message| !message.is_empty()), "a failure without a word: {response}");
        assert!(converted.is_empty(), "a failure with objects");
        return;
    }
    let request = request.expect("what is converted is a review");
    let desired = request.text("desiredAPIVersion").unwrap_or_default();
    let to = Version::of_api_version(&desired).expect("what is converted has a version");
    let asked = request.once("objects").map_or("[]", |objects| objects.get());
    let asked: Vec<Box<RawValue>> = serde_json::from_str(asked).expect("objects are a list");
    assert_eq!(asked.len(), converted.len(), "another number of objects");
    let pairs = || asked.iter().zip(converted);
    pairs().for_each(|(asked, converted)| hold_object(asked.get(), converted, to));
    let kept: Vec<_> =
        pairs().filter_map(|(asked, converted)| comes_back(asked.get(), converted, to)).collect();
    hold_way_back(&kept, to);
}

/// What converting leaves as it is.
fn hold_object(asked: &str, converted: &Value, to: Version) {
    let fields = Fields::of(asked).filter(Fields::are_distinct).expect("what is converted is an object");
    assert_eq!(converted["apiVersion"], to.api_version());
    assert_eq!(converted["kind"].as_str(), fields.text("kind").as_deref(), "another kind");
    let Ok(before) = bounded::tree(asked, Twice::Refused) else { return };
    let Ok(whole) = serde_json::from_str::<Value>(asked) else { return };
    let from = before["apiVersion"].as_str().and_then(|text| Version::of_api_version(text).ok());
    if from == Some(to) {
        assert_eq!(&whole, converted, "it was of that version, and is another one");
        return;
    }
    if !can_carry(&whole) {
        return;
    }
    let (before, after) = (plain(&whole["metadata"]), plain(&converted["metadata"]));
    hold_same(&after, &before, || "the metadata is another one".to_owned());
    if let (Version::V1, Some(annotations)) = (to, converted["metadata"]["annotations"].as_object()) {
        let ours = annotations.keys().find(|key| key.starts_with(PREFIX));
        assert!(ours.is_none(), "{ours:?} stays in the hub");
    }
}

/// Metadata without what a conversion may add and take away.
fn plain(metadata: &Value) -> Value {
    let mut metadata = metadata.clone();
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.retain(|key, _| !key.starts_with(PREFIX));
        if annotations.is_empty() {
            metadata["annotations"] = Value::Null;
        }
    }
    if let Value::Object(fields) = &mut metadata {
        fields.retain(|key, value| key != "annotations" || !value.is_null());
        if fields.is_empty() {
            return Value::Null;
        }
    }
    metadata
}

/// An object of the hub that was sent down whole, so that it has to come up again: what it was, and what it became.
fn comes_back(asked: &str, converted: &Value, to: Version) -> Option<(Value, Value)> {
    let before =
        bounded::tree(asked, Twice::Refused).ok().and_then(|_| serde_json::from_str::<Value>(asked).ok())?;
    let kind = kinds::find(before["kind"].as_str()?)?;
    let is_hub = before["apiVersion"] == Version::V1.api_version() && to == Version::V1Alpha1;
    let is_carried = can_carry(&before) && !memory::is_dropped(&converted["metadata"]["annotations"]);
    (is_hub && is_carried && is_clear(kind, &before) && drawn::is_exact(&before))
        .then(|| (before, converted.clone()))
}

fn hold_way_back(kept: &[(Value, Value)], to: Version) {
    if kept.is_empty() || to != Version::V1Alpha1 {
        return;
    }
    let shown: Vec<_> = kept.iter().map(|(_, shown)| shown).collect();
    let (version, kind) = super::expected(Endpoint::Convert);
    let request = json!({"uid": "u", "desiredAPIVersion": Version::V1.api_version(), "objects": shown});
    let review = json!({"apiVersion": version, "kind": kind, "request": request});
    let back = super::answer(Endpoint::Convert, review.to_string().as_bytes());
    for ((before, shown), after) in
        kept.iter().zip(back["response"]["convertedObjects"].as_array().into_iter().flatten())
    {
        let (mut before, mut after) = (before.clone(), after.clone());
        for object in [&mut before, &mut after] {
            object["metadata"] = plain(&object["metadata"]);
        }
        hold_same(&after, &before, || format!("it came back another one, shown as {shown}"));
    }
    let many = back["response"]["convertedObjects"].as_array().map_or(0, Vec::len);
    assert_eq!(many, kept.len(), "not all came back: {}", back["response"]["result"]);
}
