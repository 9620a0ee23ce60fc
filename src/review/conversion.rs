//! `ConversionReview` in, `ConversionReview` out.
//!
//! Guarantees: as many objects as came, in their order, each in the desired version; kind and metadata pass through
//! as the bytes that came, but for the loss annotations. What an object holds never fails the review; only a review
//! that no API server would send does (no list, an object without kind, an unknown kind or version).

use std::borrow::Cow;
use std::cell::OnceCell;
use std::mem;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::envelope::{self, Request, Status, bad_request, unreadable};
use super::json::{self, Ended, RawFields};
use super::{Answer, Conversions, Failure, Report, uid};
use crate::api::bounded::{Budget, Twice, Unreadable};
use crate::api::lens::memory::{self, Loss, PREFIX};
use crate::api::lens::{Parts, Room};
use crate::api::{GROUP, Kind, Version};
use crate::kinds;

const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

/// Bytes of an answer. What one version says shorter than the other can make an answer longer than the largest review,
/// but not much; what is longer than this was made to be.
const LONGEST_ANSWER: usize = 96 * 1024 * 1024;

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
    converted_objects: [(); 0],
}

/// Answers a review.
pub(super) fn answer(body: &[u8]) -> Answer {
    let request = match envelope::open(body, API_VERSION, KIND) {
        Ok(request) => request,
        Err(failure) => return refuse(&uid::find(body), &failure),
    };
    let mut converted = Converted::begin(&request.uid, body.len());
    let (answer, code) = match converted.all(&request) {
        Ok(()) => (None, 200),
        Err(failure) => (Some(refuse(&request.uid, &failure)), failure.code),
    };
    let report = Report {
        uid: request.uid.clone(),
        kind: converted.kind,
        code,
        conversions: mem::take(&mut converted.tally),
        ..Report::default()
    };
    let body = answer.map_or_else(|| converted.end(), |answer| answer.body);
    Answer { body, report }
}

/// A review that failed as a whole.
pub(super) fn refuse(uid: &str, failure: &Failure) -> Answer {
    let response = Response { uid, result: Status::failure(failure), converted_objects: [] };
    Answer {
        body: envelope::bytes(&Review { api_version: API_VERSION, kind: KIND, response }),
        report: Report { uid: uid.to_owned(), code: failure.code, ..Report::default() },
    }
}

/// An answer that is being written, object after object: nothing is held twice.
struct Converted {
    text: Vec<u8>,
    /// The kind of the first object.
    kind: &'static str,
    /// What was read, for the metrics.
    tally: Vec<Conversions>,
}

impl Converted {
    /// `size` is that of the review. What is reserved and not written takes no memory.
    fn begin(uid: &str, size: usize) -> Self {
        let mut text = Vec::with_capacity(size + size / 2 + 1024);
        push(&mut text, "apiVersion", format!("\"{API_VERSION}\"").as_bytes());
        push(&mut text, "kind", format!("\"{KIND}\"").as_bytes());
        text.extend_from_slice(b",\"response\":{\"uid\":");
        write(&mut text, uid);
        text.extend_from_slice(b",\"result\":{\"status\":\"Success\"},\"convertedObjects\":[");
        Self { text, kind: "", tally: Vec::new() }
    }

    fn end(mut self) -> Vec<u8> {
        self.text.extend_from_slice(b"]}}");
        self.text
    }

    fn all(&mut self, request: &Request) -> Result<(), Failure> {
        let desired = request.text("desiredAPIVersion").unwrap_or_default();
        let to = Version::of_api_version(&desired)
            .map_err(|error| bad_request(format!("desiredAPIVersion: {error}")))?;
        let Some(list) = request.fields.get("objects") else { return Ok(()) };
        json::objects(list, |index, object| self.object(index, object, to)).map_err(|ended| match ended {
            Ended::Refused(failure) => failure,
            Ended::Unreadable(Some(index), error) => {
                bad_request(format!("objects[{index}]: unable to read the object: {error}"))
            }
            Ended::Unreadable(None, error) => bad_request(format!("unable to read objects: {error}")),
        })
    }

    fn object(&mut self, index: usize, object: &RawFields, to: Version) -> Result<(), Failure> {
        if index > 0 {
            self.text.push(b',');
        }
        let what =
            |failure: Failure| Failure { message: format!("objects[{index}]{}", failure.message), ..failure };
        let mut seen = Seen { to: to.as_str(), ..Seen::default() };
        let converted = convert(&mut self.text, object, to, &mut seen);
        self.count(&seen);
        converted.map_err(what)?;
        if self.text.len() > LONGEST_ANSWER {
            let message = format!("the converted objects take more than {LONGEST_ANSWER} bytes");
            return Err(Failure { code: 413, reason: "RequestEntityTooLarge", message });
        }
        if index == 0 {
            self.kind = seen.kind;
        }
        Ok(())
    }

    /// There are few kinds and versions, so few of these.
    fn count(&mut self, seen: &Seen) {
        let alike = |one: &&mut Conversions| (one.kind, one.from, one.to) == (seen.kind, seen.from, seen.to);
        let lost = u64::from(seen.has_lost);
        if let Some(one) = self.tally.iter_mut().find(alike) {
            one.objects += 1;
            one.lost += lost;
            return;
        }
        let Seen { kind, from, to, .. } = *seen;
        self.tally.push(Conversions { kind, from, to, objects: 1, lost });
    }
}

/// The result for one object, as far as it was read.
#[derive(Default)]
struct Seen {
    kind: &'static str,
    from: &'static str,
    to: &'static str,
    has_lost: bool,
}

/// Converts one object. Fails only on objects without a kind or version, and on what no valid object has.
fn convert(text: &mut Vec<u8>, fields: &RawFields, to: Version, seen: &mut Seen) -> Result<(), Failure> {
    let (kind, from) = identify(fields).map_err(|why| bad_request(format!(": {why}")))?;
    (seen.kind, seen.from) = (kind.names().kind, from.as_str());
    if from == to {
        write_fields(text, fields);
        return Ok(());
    }
    let metadata = Metadata::of(fields.get("metadata"));
    let parts = Parts { fields: parts(kind, fields)?, loss: metadata.loss() };
    let exactly = || metadata.room();
    let room = Room { surely: memory::room(std::iter::once(metadata.raw.len())), exactly: &exactly };
    let converted = kind.lens().convert_parts(parts, from, to, &room);
    seen.has_lost = memory::did_not_fit(&converted.loss);
    write_object(text, fields, to, &metadata, &converted);
    Ok(())
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
    let version = Version::of_api_version(&version).map_err(|error| format!("{}: {error}", what()))?;
    Ok((kind, version))
}

/// The input of the lens. A part nested too deeply to be read is no part of any schema, and stays as it is.
fn parts(kind: &dyn Kind, fields: &RawFields) -> Result<Map<String, Value>, Failure> {
    let budget = Budget::new(Twice::LastHolds);
    let mut parts = Map::new();
    for (key, raw) in fields.0.iter().filter(|(key, _)| kind.lens().has_part(key)) {
        match budget.part(raw.get()) {
            Ok(value) => {
                parts.insert(key.to_string(), value);
            }
            Err(Unreadable::Json(_)) => {}
            Err(error) => return Err(unreadable(&format!(".{key}"), &error)),
        }
    }
    Ok(parts)
}

/// Writes an object as it came.
fn write_fields(text: &mut Vec<u8>, fields: &RawFields) {
    text.push(b'{');
    let begin = text.len();
    for (name, raw) in &fields.0 {
        write_key(text, begin, name);
        text.extend_from_slice(raw.get().as_bytes());
    }
    text.push(b'}');
}

/// Appends the key of a field of the object whose first field begins at `begin`.
fn write_key(text: &mut Vec<u8>, begin: usize, key: &str) {
    if text.len() > begin {
        text.push(b',');
    }
    write(text, key);
    text.push(b':');
}

fn write_object(text: &mut Vec<u8>, fields: &RawFields, to: Version, metadata: &Metadata, converted: &Parts) {
    text.push(b'{');
    let begin = text.len();
    let key = |text: &mut Vec<u8>, key: &str| write_key(text, begin, key);
    for (name, raw) in &fields.0 {
        match name.as_ref() {
            "apiVersion" => {
                key(text, name);
                write(text, to.api_version());
            }
            "metadata" => {
                key(text, name);
                metadata.write(text, &converted.loss);
            }
            name if converted.fields.contains_key(name) => {}
            _ => {
                key(text, name);
                text.extend_from_slice(raw.get().as_bytes());
            }
        }
    }
    if metadata.raw.is_empty() && !converted.loss.is_empty() {
        key(text, "metadata");
        metadata.write(text, &converted.loss);
    }
    for (name, value) in &converted.fields {
        key(text, name);
        write(text, value);
    }
    text.push(b'}');
}

/// Appends a value. Ours have string keys only, so that it cannot fail.
fn write(text: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // What fails is the writer, and a vector does not.
    let _written = serde_json::to_writer(text, value);
}

/// Appends a field; the first one opens the object.
fn push(text: &mut Vec<u8>, key: &str, value: &[u8]) {
    text.push(if text.is_empty() { b'{' } else { b',' });
    write(text, key);
    text.push(b':');
    text.extend_from_slice(value);
}

/// An object's metadata, of which no more is read than has to be.
struct Metadata<'a> {
    raw: &'a str,
    /// It may have loss annotations: their prefix is in it, or something escaped that may be it.
    may_have_loss: bool,
    read: OnceCell<Option<Read<'a>>>,
}

/// Metadata read as far as its annotations.
struct Read<'a> {
    fields: RawFields<'a>,
    annotations: Option<RawFields<'a>>,
}

impl<'a> Metadata<'a> {
    fn of(raw: Option<&'a RawValue>) -> Self {
        let raw = raw.map_or("", RawValue::get);
        Self { raw, may_have_loss: raw.contains(PREFIX) || raw.contains('\\'), read: OnceCell::new() }
    }

    /// None where it is no object.
    fn read(&self) -> Option<&Read<'a>> {
        let read = || {
            let fields: RawFields = serde_json::from_str(self.raw).ok()?;
            let annotations = fields.get("annotations").and_then(json::fields);
            Some(Read { fields, annotations })
        };
        self.read.get_or_init(read).as_ref()
    }

    fn annotations(&self) -> impl Iterator<Item = &(Cow<'a, str>, &'a RawValue)> {
        self.read()
            .and_then(|read| read.annotations.as_ref())
            .into_iter()
            .flat_map(|annotations| &annotations.0)
    }

    fn loss(&self) -> Loss {
        if !self.may_have_loss {
            return Loss::new();
        }
        let lost = self.annotations().filter(|(key, _)| key.starts_with(PREFIX));
        lost.filter_map(|(key, value)| Some((key.to_string(), json::text(value)?.into_owned()))).collect()
    }

    fn room(&self) -> usize {
        let others = self.annotations().filter(|(key, _)| !key.starts_with(PREFIX));
        memory::room(others.map(|(key, value)| key.len() + json::text(value).map_or(0, |text| text.len())))
    }

    /// Appends the metadata with the annotations of `loss` and no other loss annotations. All else as it came, and
    /// where that can have no annotations, without them.
    fn write(&self, text: &mut Vec<u8>, loss: &Loss) {
        let untouched = loss.is_empty() && !self.has_loss();
        let is_nothing = self.raw.is_empty() || self.raw == "null";
        if untouched || self.read().is_none() && !is_nothing {
            return text.extend_from_slice(self.raw.as_bytes());
        }
        write_metadata(text, self.read(), loss);
    }

    fn has_loss(&self) -> bool {
        self.may_have_loss && self.annotations().any(|(key, _)| key.starts_with(PREFIX))
    }
}

fn write_metadata(text: &mut Vec<u8>, read: Option<&Read>, loss: &Loss) {
    let mut annotations = Vec::new();
    let kept =
        read.and_then(|read| read.annotations.as_ref()).into_iter().flat_map(|annotations| &annotations.0);
    for (key, value) in kept.filter(|(key, _)| !key.starts_with(PREFIX)) {
        push(&mut annotations, key, value.get().as_bytes());
    }
    for (key, value) in loss {
        push(&mut annotations, key, b"");
        write(&mut annotations, value.as_str());
    }
    let mut fields = Vec::new();
    let others = read.into_iter().flat_map(|read| &read.fields.0);
    for (key, value) in others.filter(|(key, _)| key != "annotations") {
        push(&mut fields, key, value.get().as_bytes());
    }
    if !annotations.is_empty() {
        annotations.push(b'}');
        push(&mut fields, "annotations", &annotations);
    }
    if fields.is_empty() {
        fields.push(b'{');
    }
    text.append(&mut fields);
    text.push(b'}');
}
