//! `ConversionReview` in, `ConversionReview` out.
//!
//! Guarantees: as many objects as came, in their order, each in the desired version; kind and metadata pass through
//! as the bytes that came, but for the loss annotations. What an object holds never fails the review; only a review
//! that no API server would send does (no list, an object without kind, an unknown kind or version).

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::envelope::{self, Request, Status, bad_request};
use super::json::{self, RawFields};
use super::{Answer, Failure, Report};
use crate::api::lens::Parts;
use crate::api::lens::memory::{self, Loss, PREFIX};
use crate::api::{GROUP, Kind, Version};
use crate::kinds;

const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

#[derive(Serialize)]
struct Review<'a> {
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    result: Status,
    converted_objects: Vec<Box<RawValue>>,
}

/// Answers a review.
pub(super) fn answer(body: &[u8]) -> Answer {
    let request = match envelope::open(body, API_VERSION, KIND) {
        Ok(request) => request,
        Err(failure) => return refuse(&envelope::find_uid(body), &failure),
    };
    match objects(&request) {
        Ok((kind, converted)) => Answer {
            report: Report {
                uid: request.uid.clone(),
                kind,
                code: 200,
                objects: converted.len(),
                ..Report::default()
            },
            body: document(&request.uid, Status { outcome: "Success", ..Status::default() }, converted),
        },
        Err(failure) => refuse(&request.uid, &failure),
    }
}

/// A review that failed as a whole.
pub(super) fn refuse(uid: &str, failure: &Failure) -> Answer {
    Answer {
        body: document(uid, Status::failure(failure), Vec::new()),
        report: Report { uid: uid.to_owned(), code: failure.code, ..Report::default() },
    }
}

fn document(uid: &str, result: Status, converted_objects: Vec<Box<RawValue>>) -> Vec<u8> {
    let response = Response { uid, result, converted_objects };
    envelope::bytes(&Review { api_version: API_VERSION, kind: KIND, response })
}

fn objects(request: &Request) -> Result<(&'static str, Vec<Box<RawValue>>), Failure> {
    let desired = request.text("desiredAPIVersion").unwrap_or_default();
    let to: Version = desired.parse().map_err(|error| bad_request(format!("desiredAPIVersion: {error}")))?;
    let list = request.fields.get("objects").map_or("[]", RawValue::get);
    let objects: Vec<&RawValue> = serde_json::from_str(list)
        .map_err(|error| bad_request(format!("unable to read objects: {error}")))?;
    let mut first = "";
    let mut converted = Vec::with_capacity(objects.len());
    for (index, object) in objects.into_iter().enumerate() {
        let refused = |why: String| bad_request(format!("objects[{index}]: {why}"));
        let (kind, object) = convert(object, to).map_err(refused)?;
        first = if first.is_empty() { kind.names().kind } else { first };
        converted.push(object);
    }
    Ok((first, converted))
}

/// Converts one object. Fails only on what tells no kind or version.
fn convert(object: &RawValue, to: Version) -> Result<(&'static dyn Kind, Box<RawValue>), String> {
    let fields: RawFields =
        serde_json::from_str(object.get()).map_err(|error| format!("unable to read the object: {error}"))?;
    let (kind, from) = identify(&fields)?;
    if from == to {
        return Ok((kind, object.to_owned()));
    }
    let metadata = Metadata::read(fields.get("metadata"));
    let parts = Parts { fields: parts(&fields), loss: metadata.loss() };
    let converted = kind.lens().convert_parts(parts, from, to, metadata.room());
    let text = write(&fields, to, &metadata.write(&converted.loss), &converted.fields);
    envelope::raw(text).map(|object| (kind, object)).ok_or_else(|| "unable to write the object".to_owned())
}

fn identify(fields: &RawFields) -> Result<(&'static dyn Kind, Version), String> {
    let name = fields.text("kind").unwrap_or_default();
    let version = fields.text("apiVersion").unwrap_or_default();
    let what = || {
        let metadata = fields.get("metadata").and_then(json::fields);
        let part = |key: &str| metadata.as_ref().and_then(|metadata| metadata.text(key)).unwrap_or_default();
        format!("{name} {}/{}", part("namespace"), part("name"))
    };
    let kind = kinds::find(&name).ok_or_else(|| format!("{}: unknown kind {name:?} of {GROUP}", what()))?;
    let version = version.parse().map_err(|error| format!("{}: {error}", what()))?;
    Ok((kind, version))
}

/// What the lens works on. A part nested too deeply to be read is no part of any schema, and stays as it is.
fn parts(fields: &RawFields) -> Map<String, Value> {
    let parts = fields.0.iter().filter(|(key, _)| !crate::api::lens::ENVELOPE.contains(&key.as_ref()));
    parts.filter_map(|(key, raw)| Some((key.to_string(), serde_json::from_str(raw.get()).ok()?))).collect()
}

fn write(fields: &RawFields, to: Version, metadata: &str, parts: &Map<String, Value>) -> String {
    let mut text = String::with_capacity(1024);
    for (key, raw) in &fields.0 {
        match key.as_ref() {
            "apiVersion" => push(&mut text, key, &format!("\"{}\"", to.api_version())),
            "metadata" => push(&mut text, key, metadata),
            name if parts.contains_key(name) => {}
            _ => push(&mut text, key, raw.get()),
        }
    }
    if fields.get("metadata").is_none() && !metadata.is_empty() {
        push(&mut text, "metadata", metadata);
    }
    for (key, value) in parts {
        push(&mut text, key, &value.to_string());
    }
    text.push('}');
    text
}

/// Appends a field; the first one opens the object.
fn push(text: &mut String, key: &str, value: &str) {
    text.push(if text.is_empty() { '{' } else { ',' });
    text.push_str(&Value::from(key).to_string());
    text.push(':');
    text.push_str(value);
}

/// An object's metadata, read as far as its annotations.
struct Metadata<'a> {
    raw: &'a str,
    fields: Option<RawFields<'a>>,
    annotations: Option<RawFields<'a>>,
}

impl<'a> Metadata<'a> {
    fn read(raw: Option<&'a RawValue>) -> Self {
        let fields = raw.and_then(json::fields);
        let annotations = fields.as_ref().and_then(|fields| json::fields(fields.get("annotations")?));
        Self { raw: raw.map_or("", RawValue::get), fields, annotations }
    }

    fn annotations(&self) -> impl Iterator<Item = &(Cow<'a, str>, &'a RawValue)> {
        self.annotations.iter().flat_map(|annotations| &annotations.0)
    }

    fn loss(&self) -> Loss {
        let lost = self.annotations().filter(|(key, _)| key.starts_with(PREFIX));
        lost.filter_map(|(key, value)| Some((key.to_string(), json::text(value)?.into_owned()))).collect()
    }

    fn room(&self) -> usize {
        let others = self.annotations().filter(|(key, _)| !key.starts_with(PREFIX));
        memory::room(others.map(|(key, value)| key.len() + value.get().len()))
    }

    /// The metadata with the annotations of `loss` and no other loss annotations. Everything else as it came.
    fn write(&self, loss: &Loss) -> String {
        let unreadable = self.fields.is_none() && !self.raw.is_empty();
        let had_loss = self.annotations().any(|(key, _)| key.starts_with(PREFIX));
        if unreadable || loss.is_empty() && !had_loss {
            return self.raw.to_owned();
        }
        let mut annotations = String::new();
        for (key, value) in self.annotations().filter(|(key, _)| !key.starts_with(PREFIX)) {
            push(&mut annotations, key, value.get());
        }
        for (key, value) in loss {
            push(&mut annotations, key, &Value::from(value.as_str()).to_string());
        }
        let mut text = String::new();
        for (key, value) in
            self.fields.iter().flat_map(|fields| &fields.0).filter(|(key, _)| key != "annotations")
        {
            push(&mut text, key, value.get());
        }
        if !annotations.is_empty() {
            push(&mut text, "annotations", &(annotations + "}"));
        }
        if text.is_empty() { "{}".to_owned() } else { text + "}" }
    }
}
