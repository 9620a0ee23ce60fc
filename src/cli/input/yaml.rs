//! YAML and JSON as kubectl reads them, with the line of every field.
//!
//! Guarantees: a scalar without quotes means here what it means to kubectl, whose reader (sigs.k8s.io/yaml) keeps to
//! YAML 1.1: `yes`, `no`, `on`, `off`, `y` and `n` are booleans, `010` is eight, and a number without a fraction is
//! an integer however it is written (`3.0`, `1e3`). A key that occurs twice is an error. Anchors, aliases and merge
//! keys are resolved.
//! Where it differs, which no manifest should depend on: capitals in odd places (`yEs`, `nUll`) are read as if there
//! were none; two underscores in a number make it a text; a number beyond all bounds (`1e999`) and a key that is
//! null are errors; a key that is a boolean keeps its text.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;
use serde_saphyr::granit_parser::{Event, Parser};

use crate::api::field::{Path, Segment};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Node {
    line: u64,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Scalar(Value),
    List(Vec<Node>),
    Object(Vec<(Spanned<String>, Node)>),
}

/// Levels of nesting that are read; a definition with a whole pod in it has about thirty.
const DEEPEST: usize = 64;

/// Reads all documents of a text; empty ones are left out. `source` is the text's name in messages.
pub(super) fn documents(text: &str, source: &str) -> Result<Vec<Node>, String> {
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        // Comments are looked for apart: between two tokens only so many can be held.
        emit_comments: false,
        budget: serde_saphyr::budget! {
            // A file is as long as it is; what aliases may multiply stays bounded, and so does the stack.
            max_documents: usize::MAX,
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
            max_depth: DEEPEST,
        },
    };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
        let formatter = serde_saphyr::UserMessageFormatter;
        let options = serde_saphyr::render_options! { formatter: &formatter, source_name: Some(source) };
        let rendered = error.render_with_options(options);
        rendered.strip_prefix("error: ").unwrap_or(&rendered).to_owned()
    })
}

/// Whether there is a comment in a text that is YAML.
pub(super) fn has_comments(text: &str) -> bool {
    // All that can be wrong with it here is that it has too many of them in a row.
    let is_comment =
        |event: Result<(Event, _), _>| event.is_err() || matches!(event, Ok((Event::Comment(..), _)));
    text.contains('#') && Parser::new_from_str(text).any(is_comment)
}

impl Node {
    /// The value alone.
    pub(super) fn value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(Self::value).collect(),
            Content::Object(fields) => {
                let fields = fields.iter().map(|(key, node)| (key.value.clone(), node.value()));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }

    /// The names of its fields, in the order in which they were written; none where it is no object.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let fields = match &self.content {
            Content::Object(fields) => &**fields,
            Content::Scalar(_) | Content::List(_) => &[],
        };
        fields.iter().map(|(key, _)| &*key.value)
    }

    /// A field by name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Self> {
        let Content::Object(fields) = &self.content else { return None };
        entry(fields, name).map(|(_, node)| node)
    }

    /// An item of a list.
    #[must_use]
    pub fn item(&self, index: usize) -> Option<&Self> {
        let Content::List(items) = &self.content else { return None };
        items.get(index)
    }

    /// The line of a field, or of the nearest one above it that is there.
    pub(super) fn line(&self, path: &Path) -> u64 {
        let mut line = self.line;
        let mut node = self;
        for step in path.segments() {
            let below = match (step, &node.content) {
                (Segment::Field(name), Content::Object(fields)) => entry(fields, name),
                (Segment::Key(name), Content::Object(fields)) => entry(fields, name),
                (Segment::Index(index), Content::List(items)) => {
                    items.get(*index).map(|item| (item.line, item))
                }
                _ => None,
            };
            let Some(below) = below else { break };
            (line, node) = below;
        }
        line
    }
}

/// A field by name, with the line of its key: a block below a key begins a line later.
fn entry<'a>(fields: &'a [(Spanned<String>, Node)], name: &str) -> Option<(u64, &'a Node)> {
    let (key, node) = fields.iter().find(|(key, _)| key.value == name)?;
    Some((key.referenced.line(), node))
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Content>::deserialize(deserializer)?;
        Ok(Self { line: spanned.referenced.line(), content: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Content, E> {
        Ok(Content::Scalar(number(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Content::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
        let mut fields = Vec::new();
        while let Some(entry) = map.next_entry()? {
            fields.push(entry);
        }
        Ok(Content::Object(fields))
    }
}

/// A number as Go's JSON writes it: `3.0` is `3`.
fn number(value: f64) -> Value {
    /// Integers up to this are exact as floats.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whole, and within the bounds of the line above"
        )]
        return (value as i64).into();
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(text: &str) -> Value {
        documents(text, "a.yaml").unwrap()[0].value()
    }

    #[test]
    fn scalars_mean_what_kubectl_takes_them_for() {
        // The right-hand sides are what sigs.k8s.io/yaml v1.6.0 makes of the left-hand ones.
        let table = [
            ("yes", json!(true)),
            ("ON", json!(true)),
            ("y", json!(true)),
            ("no", json!(false)),
            ("Off", json!(false)),
            ("n", json!(false)),
            ("~", json!(null)),
            ("3.5", json!(3.5)),
            ("3.5.9", json!("3.5.9")),
            ("3.0", json!(3)),
            ("1e3", json!(1000)),
            ("-0", json!(0)),
            ("010", json!(8)),
            ("08", json!(8)),
            ("0x1F", json!(31)),
            ("0o17", json!(15)),
            ("1_000", json!(1000)),
            ("12:30", json!("12:30")),
            ("2026-12-25", json!("2026-12-25")),
            ("10Gi", json!("10Gi")),
            ("18446744073709551615", json!(u64::MAX)),
            ("\"yes\"", json!("yes")),
            ("!!str 3.5", json!("3.5")),
            ("!!binary aGVsbG8=", json!("hello")),
        ];
        for (text, value) in table {
            assert_eq!(one(&format!("v: {text}\n"))["v"], value, "{text}");
        }
    }

    #[test]
    fn a_key_that_occurs_twice_is_an_error_with_its_line() {
        let error = documents("a: 1\n---\nb:\n  c: 2\n  c: 3\n", "a.yaml").unwrap_err();
        assert!(error.contains("a.yaml:5:3"), "{error}");
        assert!(error.contains("c: 3"), "{error}");
        assert!(error.contains("duplicate"), "{error}");
        assert!(documents(r#"{"a": 1, "a": 2}"#, "a.json").is_err());
    }

    #[test]
    fn every_field_has_its_line() {
        let node =
            &documents("\n# one\na:\n  b:\n    - c: 1\n    - c: 2\n      d/e: 3\n", "a.yaml").unwrap()[0];
        let list = Path::root().at("a").at("b");
        assert_eq!(node.line(&Path::root()), 3);
        assert_eq!(node.line(&list), 4);
        assert_eq!(node.line(&list.index(1)), 6);
        assert_eq!(node.line(&list.index(1).key("d/e")), 7);
        assert_eq!(node.line(&list.index(1).at("missing").at("below")), 6);
    }

    #[test]
    fn only_comments_count_as_comments() {
        assert!(has_comments("a: 1 # one\n"));
        assert!(!has_comments("a: \"# one\"\nb: a#b\nc: |\n  # text\n"));
    }

    #[test]
    fn long_files_and_long_comments_are_read() {
        let many = "---\na: [1, 2, 3, 4, 5, 6, 7, 8, 9]\n".repeat(30_000);
        assert_eq!(documents(&many, "a.yaml").unwrap().len(), 30_000);
        let commented = format!("a:\n{}- b: 1\n", "# a\n".repeat(100));
        assert_eq!(one(&commented), json!({ "a": [{ "b": 1 }] }));
        assert!(has_comments(&commented));
    }

    #[test]
    fn nesting_ends_in_an_error_and_not_in_the_stack() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        let reads = move || {
            assert!(documents(&nested(DEEPEST), "a.yaml").is_ok());
            assert!(documents(&nested(100_000), "a.yaml").is_err());
        };
        // A level takes some 30 kB of stack without optimizations: the threads of tests have less than a process.
        std::thread::Builder::new().stack_size(8 << 20).spawn(reads).unwrap().join().unwrap();
    }

    #[test]
    fn documents_without_content_are_none() {
        assert_eq!(documents("---\n# nothing\n---\na: 1\n---\n", "a.yaml").unwrap().len(), 1);
        assert_eq!(documents("", "a.yaml").unwrap().len(), 0);
    }

    #[test]
    fn anchors_and_merge_keys_are_resolved() {
        let value = one("a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n  e: 2\n");
        assert_eq!(value["c"], json!({ "b": 1 }));
        assert_eq!(value["d"], json!({ "b": 1, "e": 2 }));
    }
}
