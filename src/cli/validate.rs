//! `gatehouse validate`: the gate's validation, without a cluster.
//!
//! Guarantees: the same rules in the same order as at the gate, for a new object: unknown fields are faults (as
//! `kubectl` asks for, `fieldValidation=Strict`), absent fields are given what creation gives them, then metadata,
//! structure and meaning are validated, all errors at once, in the paths of the version that is written there.
//! Assumes: an empty cluster. What depends on other objects, or on a stored one, only the gate can say.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use super::convert::{below, remove, unknown_fields};
use super::ending::{FAILED, Failure, OK, USAGE};
use super::input::{self, Document, Files, Input, Subject};
use super::output;
use crate::api::ancestors::Note;
use crate::api::field::{FieldError, Path, Reason};
use crate::api::name::typos;
use crate::api::validation::{self, BY_APPLY, Change, LAST_APPLIED, Written};
use crate::api::{Kind, Version, default, metadata};
use crate::runtime::clock;

/// The options of `gatehouse validate`.
#[derive(Args, Debug)]
#[command(
    after_help = "Objects of other kinds are skipped. An object of one of our kinds that names another group is refused, unless it is \
                  of another operator that is known. Manifests of the ancestors are judged as what convert makes of them.\n\n\
                  Exit codes: 0 all objects are accepted, 1 one is refused, 2 the command line is wrong or something could \
                  not be read."
)]
pub struct Options {
    #[command(flatten)]
    files: Files,
    /// How the verdict is written.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// How a verdict is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One line a fault on standard output; warnings and a summary on standard error.
    #[default]
    Text,
    /// One JSON document on standard output.
    Json,
}

/// Validates its input.
///
/// # Errors
/// Standard output does not take the verdict.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let input = options.files.read();
    let report = report(&input, clock::now());
    match options.output {
        Format::Json => output::print(&(serde_json::to_string_pretty(&report)? + "\n"))?,
        Format::Text => {
            input.unreadable.iter().for_each(output::error);
            report.tell()?;
        }
    }
    Ok(ExitCode::from(if !report.unreadable.is_empty() {
        USAGE
    } else if report.summary.refused > 0 {
        FAILED
    } else {
        OK
    }))
}

/// What the command says, whole.
#[derive(Debug, Serialize)]
struct Report {
    accepted: bool,
    summary: Summary,
    objects: Vec<ObjectReport>,
    unreadable: Vec<Unread>,
}

#[derive(Debug, Default, Serialize)]
struct Summary {
    accepted: usize,
    refused: usize,
    skipped: usize,
    unreadable: usize,
}

/// An object, and what the gate would say of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectReport {
    file: String,
    document: usize,
    /// Which item, where the document is a list.
    #[serde(skip_serializing_if = "String::is_empty")]
    item: String,
    line: u64,
    object: String,
    verdict: Outcome,
    /// The version that a manifest of an ancestor is validated as.
    #[serde(skip_serializing_if = "Option::is_none")]
    judged_as: Option<&'static str>,
    faults: Vec<Cause>,
    warnings: Vec<String>,
    /// The lines of the text form, made where everything is at hand.
    #[serde(skip)]
    lines: Lines,
}

#[derive(Debug, Default)]
struct Lines {
    faults: Vec<String>,
    warnings: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Accepted,
    Refused,
    Skipped,
}

/// A fault as in `Status.details.causes`, with its line.
#[derive(Debug, Serialize)]
struct Cause {
    field: String,
    reason: &'static str,
    message: String,
    line: u64,
}

#[derive(Debug, Serialize)]
struct Unread {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    message: String,
}

impl Report {
    fn tell(&self) -> Result<(), Failure> {
        let mut text = String::new();
        for judged in &self.objects {
            judged.lines.warnings.iter().for_each(|line| output::warning(line));
            for line in &judged.lines.faults {
                text.push_str(line);
                text.push('\n');
            }
        }
        output::print(&text)?;
        let Summary { accepted, refused, skipped, unreadable } = &self.summary;
        let mut parts = vec![format!("{accepted} accepted"), format!("{refused} refused")];
        if *skipped > 0 {
            parts.push(format!("{skipped} of other kinds skipped"));
        }
        if *unreadable > 0 {
            parts.push(format!("{unreadable} unreadable"));
        }
        output::note(&parts.join(", "));
        Ok(())
    }
}

fn report(input: &Input, now: Timestamp) -> Report {
    let mut objects = Vec::new();
    for document in &input.documents {
        for (place, object) in document.objects() {
            objects.push(judged(document, &place, &object, now));
        }
    }
    let count = |outcome| objects.iter().filter(|judged| judged.verdict == outcome).count();
    let unreadable = input
        .unreadable
        .iter()
        .map(|error| Unread { file: error.file().map(str::to_owned), message: error.to_string() });
    let unreadable: Vec<_> = unreadable.collect();
    let summary = Summary {
        accepted: count(Outcome::Accepted),
        refused: count(Outcome::Refused),
        skipped: count(Outcome::Skipped),
        unreadable: unreadable.len(),
    };
    let accepted = summary.refused == 0 && summary.unreadable == 0;
    Report { accepted, summary, objects, unreadable }
}

fn judged(document: &Document, place: &Path, object: &Value, now: Timestamp) -> ObjectReport {
    let title = input::title(object);
    let opinion = opinion(object, now);
    let line = |path: &Path| document.line(&below(place, path));
    let tell = |path: &Path, text: &str| output::finding(document, place, &title, path, text, line(path));
    let faults = opinion.faults.iter();
    let lines = Lines {
        faults: faults.clone().map(|fault| tell(&fault.path, &fault.message())).collect(),
        warnings: opinion.warnings.iter().map(|note| tell(&note.path, &note.text)).collect(),
    };
    ObjectReport {
        file: document.file.clone(),
        document: document.number,
        item: place.to_string(),
        line: line(&Path::root()),
        verdict: match (opinion.skipped, opinion.faults.is_empty()) {
            (true, _) => Outcome::Skipped,
            (false, true) => Outcome::Accepted,
            (false, false) => Outcome::Refused,
        },
        judged_as: opinion.judged_as,
        faults: faults
            .map(|fault| Cause {
                field: fault.path.to_string(),
                reason: fault.reason.cause(),
                message: fault.message(),
                line: line(&fault.path),
            })
            .collect(),
        warnings: opinion.warnings.iter().map(note_text).collect(),
        object: title,
        lines,
    }
}

fn note_text(note: &Note) -> String {
    if note.path.segments().is_empty() { note.text.clone() } else { format!("{}: {}", note.path, note.text) }
}

/// What the gate would say of a new object.
#[derive(Debug, Default)]
pub(super) struct Opinion {
    /// It is of another kind.
    pub(super) skipped: bool,
    judged_as: Option<&'static str>,
    /// Why it is refused, in the paths of the version that is written there.
    pub(super) faults: Vec<FieldError>,
    /// What its author should know.
    pub(super) warnings: Vec<Note>,
    /// What would be stored: the object as `v1`, with its defaults.
    pub(super) hub: Value,
}

/// Validates a new object as of `now`.
pub(super) fn opinion(object: &Value, now: Timestamp) -> Opinion {
    match input::subject(object) {
        Err(fault) => Opinion { faults: vec![fault], ..Opinion::default() },
        Ok(Subject::Other) => Opinion { skipped: true, ..Opinion::default() },
        Ok(Subject::Ours(kind, version)) => new_object(kind, version, object.clone(), now),
        Ok(Subject::Ancestor(ancestor, kind)) => {
            let (adopted, notes) = ancestor.adopt(object.clone());
            let version = Version::V1Alpha1;
            let judged = new_object(kind, version, adopted, now);
            let as_what = format!("judged as {}, which convert makes of it", version.api_version());
            let mut warnings = vec![Note::new(Path::root(), as_what)];
            warnings.extend(notes);
            warnings.extend(judged.warnings);
            Opinion {
                judged_as: Some(version.api_version()),
                faults: judged
                    .faults
                    .into_iter()
                    .map(|fault| FieldError { path: ancestor.path(&fault.path), ..fault })
                    .collect(),
                warnings,
                ..judged
            }
        }
    }
}

fn new_object(kind: &dyn Kind, version: Version, mut object: Value, now: Timestamp) -> Opinion {
    let written = object.to_string();
    let unknown = unknown_fields(kind, version, &object).into_iter();
    let mut faults: Vec<_> = unknown.map(|path| unknown_field(kind, version, &object, &path)).collect();
    faults.extend(metadata::unknown_fields(&object).into_iter().map(unknown_metadata));
    for fault in &faults {
        remove(&mut object, &fault.path);
    }
    let new = Written { version, object: &object };
    let (hub, defaulted) = default::completed(kind, &Change { new, old: None, author: version, now });
    let hub = hub.into_owned();
    let object = kind.lens().convert(hub.clone(), Version::V1, version);
    let new = Written { version, object: &object };
    let verdict = validation::validate(kind, &Change { new, old: None, author: version, now });
    let of_metadata = metadata::faults(&object).into_iter();
    let is_new = |fault: &FieldError| !verdict.errors.iter().any(|known| known.path == fault.path);
    faults.extend(of_metadata.filter(is_new).chain(verdict.errors.iter().cloned()).map(quoting));
    let mut warnings: Vec<Note> = Vec::new();
    if faults.is_empty() && !takes_copy(kind, &written, &new, now) {
        let text =
            format!("fits alone, and not with a copy of itself in annotations of 256 KiB in all: {BY_APPLY}");
        warnings.push(Note::new(Path::root(), text));
    }
    for warning in defaulted.warnings.iter().chain(&verdict.warnings) {
        let note = Note::new(Path::root(), warning.as_str());
        if !warnings.contains(&note) {
            warnings.push(note);
        }
    }
    Opinion { faults, warnings, hub, ..Opinion::default() }
}

/// Whether the gate and the API server also take an object with what `kubectl apply` adds to it: the text that was written.
fn takes_copy(kind: &dyn Kind, written: &str, new: &Written, now: Timestamp) -> bool {
    let mut applied = new.object.clone();
    let Some(metadata) = applied.get_mut("metadata").and_then(Value::as_object_mut) else { return true };
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    let Some(annotations) = annotations.as_object_mut().filter(|all| !all.contains_key(LAST_APPLIED)) else {
        return true;
    };
    annotations.insert(LAST_APPLIED.to_owned(), Value::from(written));
    let size = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    let is_within = annotations.iter().map(size).sum::<usize>() <= ANNOTATIONS_LIMIT;
    let new = Written { object: &applied, ..*new };
    is_within && validation::errors(kind, &Change { new, old: None, author: new.version, now }).accepted()
}

/// Bytes of all annotations of an object, as the API server has it.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// Metadata are the same in every version.
fn unknown_metadata(path: Path) -> FieldError {
    let name =
        path.segments().last().map(|step| Path::from(vec![step.clone()]).to_string()).unwrap_or_default();
    let near = metadata::names()
        .filter(|known| typos(known, &name) <= MOST_TYPOS)
        .min_by_key(|known| typos(known, &name));
    let hint = near.map(|known| format!("; did you mean {known}?")).unwrap_or_default();
    FieldError::forbidden(path, format!("unknown field of metadata{hint}"))
}

/// Typos that a field may have and still be taken for another one.
const MOST_TYPOS: usize = 2;

fn unknown_field(kind: &dyn Kind, version: Version, object: &Value, path: &Path) -> FieldError {
    // Below a field that it does not know either, it knows nothing.
    let is_at = |unknown: &Path| path.segments().starts_with(unknown.segments());
    let knows =
        |other: &Version| *other != version && !unknown_fields(kind, *other, object).iter().any(is_at);
    let detail = match Version::ALL.into_iter().find(|other| knows(other)) {
        Some(other) => format!("unknown field of {}; {other} has it", version.api_version()),
        None => format!("unknown field of {}", version.api_version()),
    };
    FieldError::forbidden(path.clone(), detail)
}

/// A text that looks like something else has to be quoted.
fn quoting(mut fault: FieldError) -> FieldError {
    let scalar = fault.value.as_deref().is_some_and(|value| {
        serde_json::from_str(value).is_ok_and(|value: Value| value.is_number() || value.is_boolean())
    });
    if fault.reason == Reason::TypeInvalid && scalar && fault.detail == "must be of type string" {
        fault.detail.push_str("; in YAML a text that looks like a number or yes, no, on, off needs quotes");
    }
    fault
}

#[cfg(test)]
mod tests;
