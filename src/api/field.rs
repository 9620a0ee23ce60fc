//! Errors of fields as values: the path, the reason and the message.
//!
//! Guarantees: a [`FieldError`] prints exactly as the API server prints a built-in field error, and carries the
//! `reason` that ends up in `Status.details.causes`; a [`Warning`] is never longer than the API server advises
//! and never holds a character that would make it drop the warning.
//! Never: stop at the first fault, or echo a value that the caller marked as not to be shown.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// A named field: `.spec`.
    Field(Cow<'static, str>),
    /// A position in a list: `[2]`.
    Index(usize),
    /// A key of a map whose keys are data: `[app.kubernetes.io/name]`.
    Key(String),
}

/// The path of a field, printed as the API server does: `spec.windows[2].from`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path(Vec<Segment>);

impl Path {
    /// The object itself.
    #[must_use]
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// `spec`, where nearly every fault lies.
    #[must_use]
    pub fn spec() -> Self {
        Self::root().at("spec")
    }

    /// `metadata`.
    #[must_use]
    pub fn metadata() -> Self {
        Self::root().at("metadata")
    }

    /// The field `name` below this one.
    #[must_use]
    pub fn at(&self, name: impl Into<Cow<'static, str>>) -> Self {
        self.child(Segment::Field(name.into()))
    }

    /// The item at `index` of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.child(Segment::Index(index))
    }

    /// The value under `key` of this map.
    #[must_use]
    pub fn key(&self, key: impl Into<String>) -> Self {
        self.child(Segment::Key(key.into()))
    }

    /// The path with `segment` appended.
    #[must_use]
    pub fn child(&self, segment: Segment) -> Self {
        // Rules make many paths that no fault ever shows: each takes one allocation.
        let mut segments = Vec::with_capacity(self.0.len() + 1);
        segments.extend_from_slice(&self.0);
        segments.push(segment);
        Self(segments)
    }

    /// The steps from the root.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Whether it is `other`, or a field below it.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The value of the field, where an object has it.
    #[must_use]
    pub fn value<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(object, |value, step| match step {
            Segment::Field(name) => value.get(name.as_ref()),
            Segment::Key(name) => value.get(name),
            Segment::Index(index) => value.get(index),
        })
    }
}

impl From<Vec<Segment>> for Path {
    fn from(segments: Vec<Segment>) -> Self {
        Self(segments)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Field(name) => {
                    formatter.write_str(if position == 0 { "" } else { "." })?;
                    formatter.write_str(name)?;
                }
                Segment::Index(index) => write!(formatter, "[{index}]")?,
                Segment::Key(key) => write!(formatter, "[{key}]")?,
            }
        }
        Ok(())
    }
}

/// What kind of fault it is: the `reason` of a cause, in apimachinery's words (`field.ErrorType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The field has to be given.
    Required,
    /// The value is of the right type and wrong all the same.
    Invalid,
    /// The value is not one of a closed set.
    NotSupported,
    /// The value has to be unique and is not.
    Duplicate,
    /// The field may not be given, or may not be changed, as things are.
    Forbidden,
    /// The value has too many characters.
    TooLong,
    /// The list or map has too many items.
    TooMany,
    /// The value is of another JSON type.
    TypeInvalid,
}

impl Reason {
    /// The cause's `reason`, as in `metav1.CauseType`.
    #[must_use]
    pub const fn cause(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    const fn prefix(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }
}

/// One error of one field.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldError {
    /// The field, in the version that the fault was found in.
    pub path: Path,
    /// Which kind of fault.
    pub reason: Reason,
    /// The offending value, rendered, where it helps and is no secret.
    pub value: Option<String>,
    /// What is allowed, or why this is not.
    pub detail: String,
}

impl FieldError {
    /// A fault of `reason` at `path` that shows no value.
    pub fn new(path: Path, reason: Reason, detail: impl Into<String>) -> Self {
        Self { path, reason, value: None, detail: detail.into() }
    }

    /// The field is missing.
    pub fn required(path: Path, detail: impl Into<String>) -> Self {
        Self::new(path, Reason::Required, detail)
    }

    /// The field may not be given or changed.
    pub fn forbidden(path: Path, detail: impl Into<String>) -> Self {
        Self::new(path, Reason::Forbidden, detail)
    }

    /// `value` is wrong; `detail` says what is allowed.
    #[expect(clippy::needless_pass_by_value, reason = "callers hand over numbers and references alike")]
    pub fn invalid(path: Path, value: impl Rendered, detail: impl Into<String>) -> Self {
        Self { value: Some(value.rendered()), ..Self::new(path, Reason::Invalid, detail) }
    }

    /// `value` occurs twice.
    #[expect(clippy::needless_pass_by_value, reason = "callers hand over numbers and references alike")]
    pub fn duplicate(path: Path, value: impl Rendered) -> Self {
        Self { value: Some(value.rendered()), ..Self::new(path, Reason::Duplicate, "") }
    }

    /// `value` is none of `supported`.
    #[expect(clippy::needless_pass_by_value, reason = "callers hand over numbers and references alike")]
    pub fn not_supported(path: Path, value: impl Rendered, supported: &[&str]) -> Self {
        let list = supported.iter().map(|one| format!("\"{one}\"")).collect::<Vec<_>>().join(", ");
        Self {
            value: Some(value.rendered()),
            ..Self::new(path, Reason::NotSupported, format!("supported values: {list}"))
        }
    }

    /// The message of the cause: everything but the path.
    #[must_use]
    pub fn message(&self) -> String {
        let mut message = String::new();
        message.extend(self.parts());
        message
    }

    /// What the message consists of.
    fn parts(&self) -> impl Iterator<Item = &str> {
        let more = [self.value.as_deref().unwrap_or_default(), &self.detail];
        let more = more.into_iter().filter(|part| !part.is_empty()).flat_map(|part| [": ", part]);
        std::iter::once(self.reason.prefix()).chain(more)
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(formatter)?;
        formatter.write_str(": ")?;
        self.parts().try_for_each(|part| formatter.write_str(part))
    }
}

/// How an offending value is shown: strings in quotes, numbers bare, long ones cut.
pub trait Rendered {
    /// The value as it stands in a message.
    fn rendered(&self) -> String;
}

/// Longest value that a message repeats, in characters; what is longer is cut.
const LONGEST_VALUE: usize = 80;

fn cut(text: &str) -> String {
    let mut shown: String = text.chars().take(LONGEST_VALUE).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

impl Rendered for &str {
    fn rendered(&self) -> String {
        format!("{:?}", cut(self))
    }
}

impl Rendered for String {
    fn rendered(&self) -> String {
        self.as_str().rendered()
    }
}

impl Rendered for &String {
    fn rendered(&self) -> String {
        self.as_str().rendered()
    }
}

impl Rendered for i32 {
    fn rendered(&self) -> String {
        self.to_string()
    }
}

impl Rendered for i64 {
    fn rendered(&self) -> String {
        self.to_string()
    }
}

impl Rendered for &Value {
    fn rendered(&self) -> String {
        match self {
            Value::String(text) => text.rendered(),
            other => cut(&other.to_string()),
        }
    }
}

/// A sentence that kubectl prints as `Warning: …`.
///
/// At most 120 characters and no control characters: the API server cuts longer ones when many meet, and
/// silently drops those that hold a newline (kubernetes/apiserver, `pkg/endpoints/filters/warning.go`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Warning(String);

/// The API server's advice for one warning, in characters.
pub(super) const LONGEST_WARNING: usize = 120;

impl Warning {
    /// `text` with control characters replaced by spaces and the end cut where it is too long.
    pub fn new(text: impl AsRef<str>) -> Self {
        let clean = text.as_ref().chars().map(|one| if one.is_control() { ' ' } else { one });
        let mut kept: String = clean.clone().take(LONGEST_WARNING).collect();
        if clean.count() > LONGEST_WARNING {
            kept.pop();
            kept.push('…');
        }
        Self(kept)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What validation has found in an object: every error, every warning. Without errors it is accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validation {
    /// Why the object is refused; all of it.
    pub errors: Vec<FieldError>,
    /// What its author should know although it is accepted.
    pub warnings: Vec<Warning>,
}

impl Validation {
    /// Accepted means that no fault was found.
    #[must_use]
    pub fn accepted(&self) -> bool {
        self.errors.is_empty()
    }

    /// Adds a fault.
    pub fn reject(&mut self, fault: FieldError) {
        self.errors.push(fault);
    }

    /// Adds a warning.
    pub fn warn(&mut self, text: impl AsRef<str>) {
        self.warnings.push(Warning::new(text));
    }

    /// Adds all that `other` found.
    pub fn merge(&mut self, other: Self) {
        self.errors.extend(other.errors);
        self.warnings.extend(other.warnings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_prints_as_the_api_server_prints_it() {
        let path = Path::spec().at("windows").index(2).at("labels").key("a/b");
        assert_eq!(path.to_string(), "spec.windows[2].labels[a/b]");
    }

    #[test]
    fn a_fault_reads_like_a_built_in_one() {
        let fault = FieldError::invalid(Path::spec().at("replicas"), 12, "must be at most 9");
        assert_eq!(fault.to_string(), "spec.replicas: Invalid value: 12: must be at most 9");
        let fault = FieldError::not_supported(Path::spec().at("overlap"), "Sum", &["Max", "Min"]);
        assert_eq!(
            fault.to_string(),
            r#"spec.overlap: Unsupported value: "Sum": supported values: "Max", "Min""#
        );
        assert_eq!(FieldError::duplicate(Path::spec(), "a").message(), r#"Duplicate value: "a""#);
    }

    #[test]
    fn a_warning_keeps_to_what_the_api_server_passes_on() {
        let warning = Warning::new(format!("one\ntwo {}", "x".repeat(300)));
        assert_eq!(warning.as_str().chars().count(), 120);
        assert!(warning.as_str().starts_with("one two x"));
        assert!(warning.as_str().ends_with('…'));
    }
}
