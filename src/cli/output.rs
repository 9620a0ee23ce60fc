//! How the commands write: results to standard output, everything else to standard error.
//!
//! Guarantees: nothing that comes from a manifest moves the cursor of a terminal or adds a line; a reader that stops
//! reading (`| head`) is no error.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_saphyr::DoubleQuoted;

use super::ending::Failure;
use super::input::{Document, Node};
use crate::api::field::Path;

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// YAML; documents separated by `---`.
    #[default]
    Yaml,
    /// JSON, indented.
    Json,
}

impl Format {
    /// Objects as one text; several as JSON are one `List`.
    ///
    /// # Errors
    /// An object that cannot be written.
    pub fn write(self, objects: &[Value]) -> Result<String, Failure> {
        self.write_as(objects.iter().map(|object| (object, None)))
    }

    /// The same, each with the text that it was made of: fields that were there keep their order.
    ///
    /// # Errors
    /// An object that cannot be written.
    pub fn write_as<'a>(
        self,
        objects: impl Iterator<Item = (&'a Value, Option<&'a Node>)>,
    ) -> Result<String, Failure> {
        let objects: Vec<_> = objects.map(|(value, source)| Shown { value, source, format: self }).collect();
        match (self, &*objects) {
            (Self::Yaml, objects) => yaml(objects),
            (Self::Json, [object]) => indented(object),
            (Self::Json, items) => indented(&List { api_version: "v1", kind: "List", items }),
        }
    }
}

/// When results and messages have colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal that has colours, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

impl Color {
    /// Holds for all that this process writes from here on.
    pub(super) fn apply(self) {
        match self {
            Self::Auto => ColorChoice::Auto,
            Self::Always => ColorChoice::Always,
            Self::Never => ColorChoice::Never,
        }
        .write_global();
    }
}

/// Whether what is written to a stream has colours.
pub(super) fn is_coloured(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

/// Several objects as one.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    api_version: &'static str,
    kind: &'static str,
    items: &'a [Shown<'a>],
}

fn indented(value: &impl Serialize) -> Result<String, Failure> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// Values as YAML that readers of YAML 1.1 and 1.2 read alike.
fn yaml(values: &[Shown<'_>]) -> Result<String, Failure> {
    let mut text = String::new();
    for value in values {
        // Long lines stay whole: folded ones read badly and differ badly.
        let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
        if !text.is_empty() {
            text.push_str("---\n");
        }
        text.push_str(&serde_saphyr::to_string_with_options(value, options)?);
    }
    Ok(text)
}

/// A value as it is written. An object has the fields of its source first, in their order, then its `name`, then the
/// others by their names. In YAML all times of day are in quotes: YAML 1.1 takes `18:00` for a number of base 60 and
/// `01:00` not; side by side they should look alike, as in what kubectl writes.
struct Shown<'a> {
    value: &'a Value,
    source: Option<&'a Node>,
    format: Format,
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { source, format, .. } = *self;
        match self.value {
            Value::Object(fields) => {
                let known: Vec<_> = source.into_iter().flat_map(Node::names).collect();
                let others = fields.keys().map(String::as_str).filter(|name| !known.contains(name));
                let (name, others): (Vec<_>, Vec<_>) = others.partition(|name| *name == "name");
                let names = known.iter().copied().chain(name).chain(others);
                let fields = names.filter_map(|name| Some((name, fields.get(name)?)));
                serializer.collect_map(fields.map(|(name, value)| {
                    (name, Shown { value, source: source.and_then(|source| source.field(name)), format })
                }))
            }
            Value::Array(items) => serializer.collect_seq(items.iter().enumerate().map(|(index, value)| {
                Shown { value, source: source.and_then(|source| source.item(index)), format }
            })),
            Value::String(text) if format == Format::Yaml && is_time(text) => {
                DoubleQuoted(text).serialize(serializer)
            }
            other => other.serialize(serializer),
        }
    }
}

fn is_time(text: &str) -> bool {
    let two_digits = |part: &str| part.len() == 2 && part.bytes().all(|one| one.is_ascii_digit());
    text.split_once(':').is_some_and(|(hour, minute)| two_digits(hour) && two_digits(minute))
}

/// Writes a command's result.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// A line about a field of an object: where, what, which field, why.
pub(super) fn finding(
    document: &Document,
    place: &Path,
    title: &str,
    path: &Path,
    text: &str,
    line: u64,
) -> String {
    let item = if place.segments().is_empty() { String::new() } else { format!(" {place}") };
    one_line(&if path.segments().is_empty() {
        format!("{document}{item} {title}: {text}")
    } else {
        format!("{document}{item} {title}: {path}: {text} (line {line})")
    })
}

/// `text` with control characters replaced by spaces.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { ' ' } else { one }).collect()
}

/// Says what the user should know.
pub(super) fn warning(text: &str) {
    say("warning:", "33", &one_line(text));
}

/// Says what went wrong. Line breaks stay: an excerpt has several.
pub(super) fn error(text: impl Display) {
    let text = text.to_string();
    let clean: Vec<_> = text.lines().map(one_line).collect();
    say("error:", "31", &clean.join("\n"));
}

/// A line beside the result.
pub(super) fn note(text: &str) {
    // Standard error is closed: there is nowhere to report that.
    let _closed = writeln!(io::stderr().lock(), "{text}");
}

fn say(label: &str, colour: &str, text: &str) {
    if is_coloured(&io::stderr()) {
        note(&format!("\u{1b}[1;{colour}m{label}\u{1b}[0m {text}"));
    } else {
        note(&format!("{label} {text}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_reads_the_same_in_both_ages_of_yaml() {
        let value = json!({
            "from": "06:00", "to": "18:00", "schedule": "0 2 * * *", "version": "3.5", "mode": "on", "empty": {},
            "long": "word ".repeat(60), "lines": "a\nb\n", "items": [{ "a": 1, "name": "b" }]
        });
        let text = Format::Yaml.write(&[value.clone(), json!({})]).unwrap();
        for part in [
            "from: \"06:00\"\nitems:\n- name: b\n  a: 1\nlines:",
            "mode: \"on\"\nschedule: 0 2 * * *\nto: \"18:00\"\n",
        ] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        assert!(text.ends_with("version: \"3.5\"\n---\n{}\n"), "{text}");
        let read: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        assert_eq!(read, [value, json!({})]);
    }

    #[test]
    fn a_manifest_cannot_move_the_cursor() {
        assert_eq!(one_line("a\u{1b}[2Jb\nc"), "a [2Jb c");
    }
}
