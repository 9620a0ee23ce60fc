//! Reviews of any bytes: what holds of every answer, whatever was asked.
//!
//! Guarantees: what a request is taken to say is read here once more, without the code that is tested.

pub mod admission;
pub mod conversion;

use std::fmt;

use gatehouse::api::bounded::MOST_PARTS;
use gatehouse::review::{Endpoint, Failure, Surroundings};
use jiff::Timestamp;
use kit::random::Random;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::corpus::Input;
use crate::drawn::{change, one_in, one_of, pick};
use crate::text;

/// The namespace that is gatehouse's own.
const OWN: &str = "gatehouse";

/// What an answer may be longer than its question, in all.
const MORE: usize = 256 * 1024;

/// What an answer may be longer than its question, as a factor: annotations tell values with the names of their fields.
const TIMES: usize = 30;

/// The fields of an object as they were written, twice where they are twice.
pub struct Fields(pub Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Fields;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Fields(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

impl Fields {
    /// Reads an object; none where it is something else.
    pub fn of(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// All values under a key.
    pub fn all(&self, key: &str) -> impl Iterator<Item = &RawValue> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| &**value)
    }

    /// The value under a key that is there exactly once.
    pub fn once(&self, key: &str) -> Option<&RawValue> {
        let mut all = self.all(key);
        all.next().filter(|_| all.next().is_none())
    }

    /// The text under a key that is there exactly once.
    pub fn text(&self, key: &str) -> Option<String> {
        serde_json::from_str(self.once(key)?.get()).ok()
    }

    /// The object under a key that is there exactly once.
    pub fn fields(&self, key: &str) -> Option<Self> {
        Self::of(self.once(key)?.get())
    }

    /// No key is there twice.
    pub fn are_distinct(&self) -> bool {
        let mut keys: Vec<_> = self.0.iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        keys.windows(2).all(|pair| pair[0] != pair[1])
    }
}

/// The request in a review of that kind, where the document around it is as it has to be.
fn request(body: &[u8], api_version: &str, kind: &str) -> Option<Fields> {
    let review = Fields::of(std::str::from_utf8(body).ok()?)?;
    let is_known = review.text("apiVersion")? == api_version && review.text("kind")? == kind;
    let request = review.fields("request").filter(Fields::are_distinct)?;
    let has_uid = request.text("uid").is_some_and(|uid| !uid.is_empty());
    (is_known && has_uid).then_some(request)
}

/// Asks twice, holds the answers against each other and against what holds of all of them; the review in it.
fn answer(endpoint: Endpoint, body: &[u8]) -> Value {
    let now: Timestamp = "2026-11-21T12:00:00Z".parse().expect("this is a time");
    let surroundings = Surroundings { now, own_namespace: Some(OWN), image: "gatehouse" };
    let (one, two) = (endpoint.answer(body, &surroundings), endpoint.answer(body, &surroundings));
    assert!(
        one.body == two.body && one.report == two.report,
        "{endpoint:?}: asked twice, answered otherwise"
    );
    let text = sound(endpoint, &one.body, body);
    assert!(
        one.body.len() <= body.len() * TIMES + MORE,
        "{endpoint:?}: an answer of {} bytes",
        one.body.len()
    );
    let review = match serde_json::from_slice::<Value>(&one.body) {
        Ok(review) => review,
        Err(error) => {
            // What is passed on as it came may hold what no value of ours does, such as half a surrogate; and what
            // annotations say may lie deeper than serde_json reads. The API server reads deeper, and prunes it.
            let is_deep = error.to_string().contains("recursion limit");
            let is_passed_on = serde_json::from_slice::<Value>(body).is_err();
            assert!(
                is_deep || is_passed_on,
                "{endpoint:?}: answered with what was not asked: {error}: {text}"
            );
            return Value::Null;
        }
    };
    let uid = review["response"]["uid"].as_str().expect("an answer has a uid");
    assert_eq!(uid, one.report.uid, "{endpoint:?}: another uid is reported");
    hold_uid(body, uid);
    fails_soundly(endpoint, body);
    review
}

/// An answer is JSON of its kind.
fn sound<'a>(endpoint: Endpoint, answer: &'a [u8], body: &[u8]) -> &'a str {
    let text = std::str::from_utf8(answer).expect("an answer is text");
    let json = serde_json::from_str::<IgnoredAny>(text);
    let is_json = json.as_ref().err().is_none_or(|error| error.to_string().contains("recursion limit"));
    assert!(is_json, "{endpoint:?}: {json:?} to {} bytes: {text:.300}", body.len());
    let fields = Fields::of(text).expect("an answer is an object");
    let (version, kind) = expected(endpoint);
    assert_eq!(
        (fields.text("apiVersion").as_deref(), fields.text("kind").as_deref()),
        (Some(version), Some(kind))
    );
    text
}

/// What the documents of an endpoint call themselves.
const fn expected(endpoint: Endpoint) -> (&'static str, &'static str) {
    match endpoint {
        Endpoint::Mutate | Endpoint::Validate => ("admission.k8s.io/v1", "AdmissionReview"),
        Endpoint::Convert => ("apiextensions.k8s.io/v1", "ConversionReview"),
    }
}

/// A uid is one of a request in the body, and the first one wherever it can be seen without decoding anything.
fn hold_uid(body: &[u8], uid: &str) {
    let Some(uids) = uids(body) else { return };
    hold_known(&uids, uid);
    let is_plain = |uid: &&String| uid.len() <= 128 && uid.bytes().all(|byte| byte.is_ascii_graphic());
    if let Some(Some(first)) = uids.first().map(|first| first.as_ref().filter(is_plain))
        && !body.contains(&b'\\')
        && body.len() < 1024 * 1024
    {
        assert_eq!(uid, first, "the uid of the request is not told");
    }
}

fn hold_known(uids: &[Option<String>], uid: &str) {
    assert!(
        uid.is_empty() || uids.iter().flatten().any(|one| one == uid),
        "{uid:?} is no uid of the request"
    );
}

/// All that stands for a uid in what stands for a request, where it is a text; none where the body cannot be read as
/// far.
fn uids(body: &[u8]) -> Option<Vec<Option<String>>> {
    let review = Fields::of(std::str::from_utf8(body).ok()?)?;
    let requests = review.all("request").filter(|request| request.get().starts_with('{'));
    let requests: Vec<_> = requests.map(|request| Fields::of(request.get())).collect::<Option<_>>()?;
    let uids = requests.iter().flat_map(|request| request.all("uid"));
    Some(uids.map(|uid| serde_json::from_str(uid.get()).ok()).collect())
}

/// What is answered where a review could not be worked on, wherever its body was cut off.
fn fails_soundly(endpoint: Endpoint, body: &[u8]) {
    let failure = Failure { code: 413, reason: "RequestEntityTooLarge", message: "too large".to_owned() };
    let cut = &body[..body.len() - body.len() / 3];
    for part in [body, cut] {
        let answer = endpoint.failure(part, &failure);
        sound(endpoint, &answer.body, part);
        let review: Value = serde_json::from_slice(&answer.body).expect("a failure is a value");
        assert_ne!(review["response"]["allowed"], true, "what failed is allowed");
        assert_ne!(review["response"]["result"]["status"], "Success", "what failed is converted");
        let uid = review["response"]["uid"].as_str().expect("a failure has a uid");
        hold_uid(part, uid);
        if let Some(uids) = uids(body) {
            hold_known(&uids, uid);
        }
    }
}

/// Puts about as many items or keys as an object may have, or more, into the object or beside it.
fn crowd(random: &mut Random, review: &mut Value) {
    let count = pick(random, &[MOST_PARTS / 8, MOST_PARTS - 100, MOST_PARTS + 1]);
    let item = pick(random, &["0", "[]", "{}", "\"\""]);
    let item: Value = serde_json::from_str(item).expect("it is JSON");
    let many = if one_in(random, 2) {
        vec![item; count].into()
    } else {
        Value::Object((0..count).map(|key| (format!("{key:x}"), item.clone())).collect())
    };
    let places =
        ["/object/spec", "/object/metadata/labels", "/object", "/oldObject/spec", "/objects/0/spec", ""];
    let place = format!("/request{}", one_of(random, &places));
    if let Some(Value::Object(fields)) = review.pointer_mut(&place) {
        let some = fields.keys().nth(random.below(fields.len().max(1))).cloned();
        let key = some.filter(|_| one_in(random, 2)).unwrap_or_else(|| "many".to_owned());
        fields.insert(key, many);
    }
}

/// Writes a review down, soundly or not; one in some is a kept one that was broken.
fn written(random: &mut Random, corpus: &[Input], mut review: Value) -> Vec<u8> {
    if one_in(random, 8) {
        let mut kept = one_of(random, corpus).bytes.clone();
        text::break_up(random, &mut kept);
        return kept;
    }
    if one_in(random, 12) {
        change(random, &mut review);
    }
    if one_in(random, 1000) {
        crowd(random, &mut review);
    }
    let seldom = pick(random, &[0, 0, 0, 200, 40, 8]);
    let mut body = text::written(random, &review, seldom);
    if one_in(random, 8) {
        text::break_up(random, &mut body);
    }
    body
}

/// The document around a request, mostly the one that is expected.
fn enveloped(random: &mut Random, endpoint: Endpoint, request: &Value) -> Value {
    let (version, kind) = expected(endpoint);
    let version = if one_in(random, 30) { version.replace("/v1", "/v1beta1") } else { version.to_owned() };
    json!({"kind": kind, "apiVersion": version, "request": request})
}
