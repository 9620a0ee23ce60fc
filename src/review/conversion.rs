//! `ConversionReview` in, `ConversionReview` out.
//!
//! Guarantees: as many objects as came, in their order, each in the desired version; kind and metadata pass through
//! as the bytes that came, but for the loss annotations. What an object holds never fails the review; only a review
//! that no API server would send does (no list, an object without kind, an unknown kind or version).

mod metadata;
mod object;

use std::borrow::Cow;
use std::mem;

use serde::Serialize;
use serde::de::MapAccess;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::envelope::{self, Content, Status, Taken, bad_request, unreadable};
use super::json::{self, Ended, RawFields};
use super::{Answer, Conversions, Failure, Report, uid};
use crate::api::bounded::Unreadable;
use crate::api::lens::{Parts, Room, memory};
use crate::api::{GROUP, Kind, UnknownVersion, Version};
use crate::kinds;
use metadata::Metadata;
use object::{Object, ToVersion};

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
    let request =
        match envelope::open(body, API_VERSION, KIND, Converting { size: body.len(), converted: None }) {
            Ok(request) => request,
            Err(failure) => return refuse(&uid::find(body), &failure),
        };
    let at_once = request.content.and_then(|content| content.converted);
    let (mut converted, result) = at_once.map_or_else(
        || {
            let mut converted = Converted::begin(body.len());
            let result = converted.all(&request.fields);
            (converted, result)
        },
        |converted| (converted, Ok(())),
    );
    let (answer, code) = match result {
        Ok(()) => (None, 200),
        Err(failure) => (Some(refuse(&request.uid, &failure)), failure.code),
    };
    let report = Report {
        kind: converted.kind,
        code,
        conversions: mem::take(&mut converted.tally),
        uid: request.uid,
        ..Report::default()
    };
    let body = answer.map_or_else(|| converted.end(&report.uid), |answer| answer.body);
    Answer { body, report }
}

/// The objects of a review, converted while they are read. What is wrong with one is looked for in a second reading,
/// as is a review that says after its objects what is to be made of them.
struct Converting {
    size: usize,
    converted: Option<Converted>,
}

impl<'de> Content<'de> for Converting {
    fn read<A: MapAccess<'de>>(
        &mut self,
        fields: &RawFields<'de>,
        key: &str,
        map: &mut A,
    ) -> Result<Taken, A::Error> {
        if key != "objects" {
            return Ok(Taken::No);
        }
        let Some(Ok(to)) = desired(fields) else { return Ok(Taken::No) };
        let mut converted = Converted::begin(self.size);
        let visit = |index, mut object: Object<'de>| converted.object(index, &mut object, to);
        map.next_value_seed(&mut json::Objects::new(ToVersion(to), visit))?;
        self.converted = Some(converted);
        Ok(Taken::Yes)
    }
}

/// The version that is asked for, where a review asks for one.
fn desired(fields: &RawFields) -> Option<Result<Version, UnknownVersion>> {
    fields.text("desiredAPIVersion").map(|desired| Version::of_api_version(&desired))
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
    fn begin(size: usize) -> Self {
        let mut text = Vec::with_capacity(size + size / 2 + 1024);
        let begin = format!(
            "{{\"apiVersion\":\"{API_VERSION}\",\"kind\":\"{KIND}\",\"response\":{{\"convertedObjects\":["
        );
        text.extend_from_slice(begin.as_bytes());
        Self { text, kind: "", tally: Vec::new() }
    }

    /// The uid comes last: it may not be known while objects are written.
    fn end(mut self, uid: &str) -> Vec<u8> {
        self.text.extend_from_slice(b"],\"result\":{\"status\":\"Success\"},\"uid\":");
        write(&mut self.text, uid);
        self.text.extend_from_slice(b"}}");
        self.text
    }

    fn all(&mut self, request: &RawFields) -> Result<(), Failure> {
        let to = desired(request)
            .unwrap_or_else(|| Version::of_api_version(""))
            .map_err(|error| bad_request(format!("desiredAPIVersion: {error}")))?;
        let Some(list) = request.get("objects") else { return Ok(()) };
        let visit = |index, object: RawFields| self.object(index, &mut object.into(), to);
        json::objects(list, visit).map_err(|ended| match ended {
            Ended::Refused(failure) => failure,
            Ended::Unreadable(Some(index), error) => {
                bad_request(format!("objects[{index}]: unable to read the object: {error}"))
            }
            Ended::Unreadable(None, error) => bad_request(format!("unable to read objects: {error}")),
        })
    }

    fn object(&mut self, index: usize, object: &mut Object, to: Version) -> Result<(), Failure> {
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
fn convert(text: &mut Vec<u8>, object: &mut Object, to: Version, seen: &mut Seen) -> Result<(), Failure> {
    let (kind, from) = identify(&object.fields).map_err(|why| bad_request(format!(": {why}")))?;
    (seen.kind, seen.from) = (kind.names().kind, from.as_str());
    if from == to {
        write_fields(text, &object.fields);
        return Ok(());
    }
    let metadata = Metadata::of(object.fields.get("metadata"));
    let fields = parts(kind, object)?;
    let parts = Parts { fields, loss: metadata.loss() };
    let exactly = || metadata.room();
    let room = Room { surely: memory::room(std::iter::once(metadata.raw.len())), exactly: &exactly };
    let converted = kind.lens().convert_parts(parts, from, to, &room);
    seen.has_lost = memory::did_not_fit(&converted.loss);
    write_object(text, &object.fields, to, &metadata, &converted);
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
fn parts(kind: &dyn Kind, object: &mut Object) -> Result<Map<String, Value>, Failure> {
    let mut parts = mem::take(&mut object.parts);
    for (key, raw) in object.fields.0.iter().filter(|(key, _)| kind.lens().has_part(key)) {
        if parts.contains_key(key.as_ref()) {
            continue;
        }
        match object.budget.part(raw.get()) {
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
    for field in &fields.0 {
        write_field(text, begin, field);
    }
    text.push(b'}');
}

/// Appends a field as it came.
fn write_field(text: &mut Vec<u8>, begin: usize, (key, value): &(Cow<str>, &RawValue)) {
    match key {
        // What was read without a copy has nothing to escape.
        Cow::Borrowed(key) => {
            separate(text, begin);
            text.push(b'"');
            text.extend_from_slice(key.as_bytes());
            text.extend_from_slice(b"\":");
        }
        Cow::Owned(key) => write_key(text, begin, key),
    }
    text.extend_from_slice(value.get().as_bytes());
}

/// Appends the key of a field of the object whose first field begins at `begin`.
fn write_key(text: &mut Vec<u8>, begin: usize, key: &str) {
    separate(text, begin);
    write(text, key);
    text.push(b':');
}

fn separate(text: &mut Vec<u8>, begin: usize) {
    if text.len() > begin {
        text.push(b',');
    }
}

fn write_object(text: &mut Vec<u8>, fields: &RawFields, to: Version, metadata: &Metadata, converted: &Parts) {
    text.push(b'{');
    let begin = text.len();
    let key = |text: &mut Vec<u8>, key: &str| write_key(text, begin, key);
    for field @ (name, _) in &fields.0 {
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
            _ => write_field(text, begin, field),
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
