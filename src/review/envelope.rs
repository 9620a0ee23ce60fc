//! What both reviews have in common: the document around the request, its uid, and the status of a refusal.
//!
//! Where the document cannot be read, the uid is looked for by itself ([`super::uid`]): the API server throws an answer
//! without it away, and with it the explanation.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Failure;
use super::json::{self, RawFields, Text};
use crate::api::bounded::{self, Budget, Twice, Unreadable};
use crate::api::field::FieldError;

/// A review's request, its fields still unread but for the objects.
pub(super) struct Request<'a, C = Objects> {
    pub(super) uid: String,
    pub(super) fields: RawFields<'a>,
    /// None where some of it could not be read: then none is, until it is asked for.
    pub(super) content: Option<C>,
}

/// What a request is about, read where it stands, so that its text is read once.
pub(super) trait Content<'de> {
    /// Reads the value under `key`, where it belongs to the content. `fields` are those before it.
    fn read<A: MapAccess<'de>>(
        &mut self,
        fields: &RawFields<'de>,
        key: &str,
        map: &mut A,
    ) -> Result<Taken, A::Error>;
}

/// Whether a value was read.
#[derive(PartialEq, Eq)]
pub(super) enum Taken {
    Yes,
    No,
}

/// What the request of an admission is about, by the names of its fields.
#[derive(Default)]
pub(super) struct Objects(Vec<(&'static str, Value)>);

impl Objects {
    /// The fields of a request that hold an object.
    const NAMES: [&str; 2] = ["object", "oldObject"];
}

impl<'de> Content<'de> for Objects {
    fn read<A: MapAccess<'de>>(
        &mut self,
        _fields: &RawFields<'de>,
        key: &str,
        map: &mut A,
    ) -> Result<Taken, A::Error> {
        let Some(name) = Self::NAMES.into_iter().find(|name| *name == key) else { return Ok(Taken::No) };
        self.0.push((name, map.next_value_seed(Budget::new(Twice::Refused).whole())?));
        Ok(Taken::Yes)
    }
}

impl Request<'_> {
    /// The object under `name`, read in full but for what no handler needs.
    pub(super) fn object(&self, name: &str) -> Result<Option<Cow<'_, Value>>, Failure> {
        if let Some(Objects(objects)) = &self.content {
            let found = objects.iter().find(|(known, value)| *known == name && !value.is_null());
            return Ok(found.map(|(_, value)| Cow::Borrowed(value)));
        }
        let Some(raw) = self.fields.get(name) else { return Ok(None) };
        match bounded::tree(raw.get(), Twice::Refused) {
            Ok(Value::Null) => Ok(None),
            Ok(value) => Ok(Some(Cow::Owned(value))),
            Err(error) => Err(unreadable(&format!("request.{name}"), &error)),
        }
    }
}

impl<C> Request<'_, C> {
    /// The field `name` as a text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.fields.text(name).map(Cow::into_owned)
    }
}

/// Why a part of a request was not read.
pub(super) fn unreadable(what: &str, error: &Unreadable) -> Failure {
    match error {
        Unreadable::TooManyParts => {
            Failure { code: 413, reason: "RequestEntityTooLarge", message: format!("{what} has {error}") }
        }
        Unreadable::Json(error) => bad_request(format!("unable to read {what}: {error}")),
    }
}

/// The document.
#[derive(Default)]
struct Review<'a> {
    api_version: Option<&'a RawValue>,
    kind: Option<&'a RawValue>,
    request: Option<Asked<'a>>,
}

/// What stands under `request`.
enum Asked<'a> {
    Fields(RawFields<'a>),
    Nothing,
}

/// How the document is read: with the content of its request, and then what is wrong with that ends the reading; or
/// without it: an error in it is reported when it is read.
struct Reading<'c, C>(Option<&'c mut C>);

impl<'de, C: Content<'de>> Reading<'_, C> {
    fn read(self, text: &'de str) -> Result<Review<'de>, serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let review = reader.deserialize_map(self)?;
        reader.end().map(|()| review)
    }
}

impl<'de, C: Content<'de>> Visitor<'de> for Reading<'_, C> {
    type Value = Review<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut review = Review::default();
        while let Some(Text(key)) = map.next_key()? {
            let twice = match key.as_ref() {
                "apiVersion" => review.api_version.replace(map.next_value()?).is_some(),
                "kind" => review.kind.replace(map.next_value()?).is_some(),
                "request" => {
                    let asked = map.next_value_seed(Asking(self.0.as_deref_mut()))?;
                    review.request.replace(asked).is_some()
                }
                _ => map.next_value::<IgnoredAny>().map(|_| false)?,
            };
            if twice {
                return Err(A::Error::custom(format_args!("duplicate field {key:?}")));
            }
        }
        Ok(review)
    }
}

/// Reads the request, with its content where that is asked for.
struct Asking<'c, C>(Option<&'c mut C>);

impl<'de, C: Content<'de>> DeserializeSeed<'de> for Asking<'_, C> {
    type Value = Asked<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de, C: Content<'de>> Visitor<'de> for Asking<'_, C> {
    type Value = Asked<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Asked::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
        let fields = RawFields::read(&mut map, |fields, key, map| {
            if let Some(content) = &mut self.0
                && content.read(fields, key, map)? == Taken::Yes
            {
                return Ok(RawValue::NULL);
            }
            map.next_value()
        });
        fields.map(Asked::Fields)
    }
}

/// Opens a review document of that `kind` and version; `content` is what is to be read in it.
pub(super) fn open<'a, C: Content<'a>>(
    body: &'a [u8],
    api_version: &str,
    kind: &str,
    mut content: C,
) -> Result<Request<'a, C>, Failure> {
    if body.is_empty() {
        return Err(bad_request(format!("the body is empty: expected a {kind} of {api_version}")));
    }
    let text =
        std::str::from_utf8(body).map_err(|error| bad_request(format!("the body is not UTF-8: {error}")))?;
    // Where an object cannot be read, the envelope is read once more, to say what is wrong where it belongs.
    let (review, content) = Reading(Some(&mut content))
        .read(text)
        .map(|review| (review, Some(content)))
        .or_else(|_| Reading::<C>(None).read(text).map(|review| (review, None)))
        .map_err(|error| bad_request(format!("unable to read the {kind}: {error}")))?;
    let text = |raw: Option<&'a RawValue>| raw.and_then(json::text).unwrap_or_default();
    let found = (text(review.api_version), text(review.kind));
    if found.0 != api_version || found.1 != kind {
        let message = format!(
            "expected kind {kind} of {api_version}, found kind {:?} of {:?}",
            shortened(&found.1),
            shortened(&found.0)
        );
        return Err(bad_request(message));
    }
    let Some(Asked::Fields(fields)) = review.request else {
        return Err(bad_request(format!("the {kind} has no request")));
    };
    match fields.text("uid") {
        Some(uid) if !uid.is_empty() => Ok(Request { uid: uid.into_owned(), fields, content }),
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
    pub(super) fn invalid(
        group: &'static str,
        kind: &'static str,
        name: &str,
        faults: &[FieldError],
    ) -> Self {
        let all = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let all = if faults.len() == 1 { all } else { format!("[{all}]") };
        let whole = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let causes = faults.iter().map(|fault| Cause {
            reason: fault.reason.cause(),
            message: fault.message(),
            field: fault.path.to_string(),
        });
        Self {
            outcome: "Failure",
            message: format!("{whole} {name:?} is invalid: {all}"),
            reason: "Invalid",
            details: Some(Details { name: name.to_owned(), group, kind, causes: causes.collect() }),
            code: Some(422),
        }
    }
}

/// Serializes an answer. Our own types have string keys only, so that it cannot fail.
pub(super) fn bytes(answer: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(answer).unwrap_or_default()
}
