//! The structural schema of a definition, validated without an API server.
//!
//! Guarantees: the result of the API server's own schema validation for the part of OpenAPI that our definitions
//! use (type, nullable, enum, bounds, lengths, pattern, required, int-or-string, list maps and sets, the range of an
//! integer's format), with the same paths and reasons, but that of a number beyond its format, of which the API server
//! names no field; in addition unknown fields, as `fieldValidation=Strict` names them. It stops where there are as
//! many faults as were asked for, and what is too long is not read.
//! Never: runs CEL rules; their twins are in each kind's `validate`.
//! Assumes that a definition is structural, as the API server demands: no references, no unions of shapes.

mod compile;
mod stand_in;
mod unique;
mod words;

use std::sync::{Arc, OnceLock};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use regex::Regex;
use serde_json::{Map, Value};

use super::Version;
use super::field::{FieldError, Path, Reason, Rendered as _, Segment};
use super::lens::ENVELOPE;
pub use stand_in::{Sound, StandIns};
use unique::Unique;

/// The schema of one version of a definition; none where the definition lacks that version.
#[must_use]
pub fn of(definition: &CustomResourceDefinition, version: Version) -> Option<&JSONSchemaProps> {
    let version = definition.spec.versions.iter().find(|one| one.name == version.as_str())?;
    version.schema.as_ref()?.open_api_v3_schema.as_ref()
}

/// The schemas of all versions of a kind: what is needed for validation is a tenth as large as the definition that it
/// comes from.
#[derive(Debug)]
pub struct Schemas([Schema; Version::ALL.len()]);

impl Schemas {
    /// Those of a definition. A version that it lacks refuses nothing.
    #[must_use]
    pub fn new(definition: &CustomResourceDefinition) -> Self {
        let mut patterns = compile::Patterns::default();
        let schema = |version| of(definition, version).map(|schema| compile::object(schema, &mut patterns));
        Self(Version::ALL.map(schema).map(Option::unwrap_or_default))
    }

    /// The one of `version`.
    #[must_use]
    pub const fn of(&self, version: Version) -> &Schema {
        &self.0[version as usize]
    }
}

/// One node of a schema.
#[derive(Debug, Default)]
pub struct Schema {
    shape: Shape,
    nullable: bool,
    /// Fields that it does not name are kept.
    open: bool,
    allowed: Option<Box<[Value]>>,
    /// Sorted.
    fields: Box<[(Box<str>, Self)]>,
    required: Box<[Box<str>]>,
    /// Of each item of a list, or each value of a map.
    each: Option<Box<Self>>,
    unique: Unique,
    /// Items, values or characters.
    least: Option<usize>,
    most: Option<usize>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    /// Of an integer: it is read as one of 32 bits.
    is_short: bool,
    pattern: Option<Arc<Pattern>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shape {
    #[default]
    Any,
    Object,
    Array,
    String,
    Boolean,
    Integer,
    Number,
    IntOrString,
}

#[derive(Debug)]
struct Pattern {
    text: Box<str>,
    /// Compiled when it is first needed; none where it is not of our kind, and then it refuses nothing.
    regex: OnceLock<Option<Regex>>,
}

impl Pattern {
    fn matches(&self, text: &str) -> bool {
        self.regex
            .get_or_init(|| Regex::new(&self.text).ok())
            .as_ref()
            .is_none_or(|regex| regex.is_match(text))
    }
}

impl Schema {
    /// An object with a single field of that schema, beside any others.
    pub(super) fn beside_others(name: &str, field: &JSONSchemaProps) -> Self {
        let mut field = compile::schema(field, &mut compile::Patterns::default());
        field.open_without_fields();
        let fields = [(name.into(), field)].into();
        Self { shape: Shape::Object, open: true, fields, ..Self::default() }
    }

    /// An object that is described without any field has any fields.
    fn open_without_fields(&mut self) {
        self.open |= self.shape == Shape::Object && self.fields.is_empty() && self.each.is_none();
        self.fields.iter_mut().for_each(|(_, field)| field.open_without_fields());
        self.each.iter_mut().for_each(|each| each.open_without_fields());
    }

    /// What the API server's schema validation would say of `object`, a whole one: at most so many faults.
    #[must_use]
    pub fn faults(&self, object: &Value, most: usize) -> Vec<FieldError> {
        let mut validator = Validator { faults: Vec::new(), most, unknown: None };
        validator.value(self, object, &Trail::ROOT);
        validator.faults.truncate(most);
        validator.faults
    }

    /// The fields of `object` that it does not know: what a lenient API server would silently drop.
    #[must_use]
    pub fn unknown_fields(&self, object: &Value) -> Vec<Path> {
        let mut validator = Validator { faults: Vec::new(), most: usize::MAX, unknown: Some(Vec::new()) };
        validator.value(self, object, &Trail::ROOT);
        validator.unknown.unwrap_or_default()
    }

    /// Whether an integer is within its format; without one, the API server takes what 64 bits hold.
    fn holds(&self, integer: &Value) -> bool {
        if let Some(integer) = integer.as_i64() {
            return !self.is_short || i32::try_from(integer).is_ok();
        }
        let beyond = if self.is_short { 2_147_483_648.0 } else { 9_223_372_036_854_775_808.0 };
        integer.as_f64().is_some_and(|number| (-beyond..beyond).contains(&number))
    }

    /// It cannot be read at all, like a value of another type.
    fn out_of_range(&self, integer: &Value, place: &Trail) -> FieldError {
        let (least, most) =
            if self.is_short { (i32::MIN.into(), i32::MAX.into()) } else { (i64::MIN, i64::MAX) };
        let bound =
            |set: Option<f64>, format: i64| set.map_or_else(|| format.to_string(), |set| set.to_string());
        let (least, most) = (bound(self.minimum, least), bound(self.maximum, most));
        let fault = FieldError::new(
            place.path(),
            Reason::TypeInvalid,
            format!("must be an integer from {least} to {most}"),
        );
        FieldError { value: Some(integer.rendered()), ..fault }
    }

    /// The names of the fields that it has below a field.
    pub(super) fn names(&self, field: &str) -> impl Iterator<Item = &str> {
        self.field(field).into_iter().flat_map(|field| field.fields.iter().map(|(name, _)| &**name))
    }

    fn field(&self, name: &str) -> Option<&Self> {
        let found = self.fields.binary_search_by(|(known, _)| known.as_ref().cmp(name)).ok()?;
        Some(&self.fields[found].1)
    }
}

impl Shape {
    fn takes(self, value: &Value) -> bool {
        match self {
            Self::Any => true,
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::String => value.is_string(),
            Self::Boolean => value.is_boolean(),
            Self::Integer => is_integer(value),
            Self::Number => value.is_number(),
            Self::IntOrString => value.is_string() || is_integer(value),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::IntOrString => "integer or string",
        }
    }
}

/// As the API server sees it: `1.0` is an integer as well.
fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// Where the walk is. A path is made of it only where there is something to say.
struct Trail<'a> {
    above: Option<&'a Self>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Trail<'a> {
    /// Nothing is above it, and its own step is never read.
    const ROOT: Self = Self { above: None, step: Step::Index(0) };

    const fn below(&'a self, step: Step<'a>) -> Self {
        Self { above: Some(self), step }
    }

    fn steps(&self, steps: &mut Vec<Segment>) {
        if let Some(above) = self.above {
            above.steps(steps);
            steps.push(match self.step {
                Step::Field(name) => Segment::Field(name.to_owned().into()),
                Step::Key(key) => Segment::Key(key.to_owned()),
                Step::Index(index) => Segment::Index(index),
            });
        }
    }

    fn path(&self) -> Path {
        let mut steps = Vec::new();
        self.steps(&mut steps);
        steps.into()
    }

    /// Each object has the field, and no definition describes it.
    fn is_envelope(&self, name: &str) -> bool {
        self.above.is_none() && ENVELOPE.contains(&name)
    }
}

struct Validator {
    faults: Vec<FieldError>,
    most: usize,
    /// Collected only when asked for.
    unknown: Option<Vec<Path>>,
}

impl Validator {
    fn value(&mut self, schema: &Schema, value: &Value, place: &Trail) {
        if self.faults.len() >= self.most || value.is_null() && schema.nullable {
            return;
        }
        if !schema.shape.takes(value) {
            let detail = format!("must be of type {}", schema.shape.name());
            let fault = FieldError::new(place.path(), Reason::TypeInvalid, detail);
            return self.faults.push(FieldError { value: Some(value.rendered()), ..fault });
        }
        if let Some(allowed) = &schema.allowed
            && !allowed.contains(value)
        {
            let names: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
            self.faults.push(FieldError::not_supported(place.path(), value, &names));
        }
        if schema.shape == Shape::Integer && !schema.holds(value) {
            return self.faults.push(schema.out_of_range(value, place));
        }
        match value {
            Value::Object(fields) => self.object(schema, fields, place),
            Value::Array(items) => self.list(schema, items, place),
            Value::String(text) => self.text(schema, text, place),
            Value::Number(_) => self.number(schema, value, place),
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn object(&mut self, schema: &Schema, fields: &Map<String, Value>, place: &Trail) {
        for required in &schema.required {
            if fields.get(&**required).is_none_or(Value::is_null) {
                self.faults.push(FieldError::required(place.below(Step::Field(required)).path(), ""));
            }
        }
        if !self.most_items(schema, fields.len(), place) {
            return;
        }
        for (name, value) in fields {
            if let Some(known) = schema.field(name) {
                self.value(known, value, &place.below(Step::Field(name)));
            } else if let Some(each) = &schema.each {
                self.value(each, value, &place.below(Step::Key(name)));
            } else if let Some(unknown) = &mut self.unknown
                && !(schema.open || place.is_envelope(name))
            {
                unknown.push(place.below(Step::Field(name)).path());
            }
        }
    }

    fn list(&mut self, schema: &Schema, items: &[Value], place: &Trail) {
        if !self.most_items(schema, items.len(), place) {
            return; // what is too much is not read
        }
        if let Some(least) = schema.least
            && items.len() < least
        {
            let detail = format!("must have at least {least} items");
            self.faults.push(FieldError::invalid(place.path(), count(items.len()), detail));
        }
        if let Some(each) = &schema.each {
            for (index, item) in items.iter().enumerate() {
                self.value(each, item, &place.below(Step::Index(index)));
            }
        }
        self.distinct(schema, items, place);
    }

    /// List maps and sets hold each key once.
    fn distinct(&mut self, schema: &Schema, items: &[Value], place: &Trail) {
        for (index, shown) in schema.unique.repeated(items) {
            if self.faults.len() < self.most {
                self.faults.push(FieldError::duplicate(place.below(Step::Index(index)).path(), shown));
            }
        }
    }

    /// False where there are too many.
    fn most_items(&mut self, schema: &Schema, found: usize, place: &Trail) -> bool {
        let Some(most) = schema.most.filter(|most| found > *most) else { return true };
        let fault = FieldError::new(place.path(), Reason::TooMany, format!("must have at most {most} items"));
        self.faults.push(FieldError { value: Some(found.to_string()), ..fault });
        false
    }

    fn text(&mut self, schema: &Schema, text: &str, place: &Trail) {
        if let Some(least) = schema.least
            && text.chars().take(least).count() < least
        {
            let detail = format!("should be at least {least} chars long");
            self.faults.push(FieldError::invalid(place.path(), text, detail));
        }
        // A text has no more characters than bytes.
        if let Some(most) = schema.most
            && text.len() > most
            && text.chars().count() > most
        {
            let detail = format!("should be at most {most} chars long");
            self.faults.push(FieldError::new(place.path(), Reason::TooLong, detail));
        }
        if let Some(pattern) = &schema.pattern
            && !pattern.matches(text)
        {
            self.faults.push(FieldError::invalid(place.path(), text, words::of_pattern(&pattern.text)));
        }
    }

    fn number(&mut self, schema: &Schema, value: &Value, place: &Trail) {
        let Some(number) = value.as_f64() else { return };
        if let Some(least) = schema.minimum
            && number < least
        {
            let detail = format!("should be greater than or equal to {least}");
            self.faults.push(FieldError::invalid(place.path(), value, detail));
        }
        if let Some(most) = schema.maximum
            && number > most
        {
            let detail = format!("should be less than or equal to {most}");
            self.faults.push(FieldError::invalid(place.path(), value, detail));
        }
    }
}

fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
