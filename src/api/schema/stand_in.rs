//! Stand-ins for the values that a schema refuses and a decoder could not read.
//!
//! Guarantees: with them an object can be decoded as far as its schema describes it; all else of it stays, each item of
//! a list in its place. Two sets of stand-ins differ in each value, as far as the schema has two.
//! Never: a judgement. What depends on a stand-in is for the caller to find out.

use serde_json::{Map, Value};

use super::{Schema, Shape, Step, Trail};
use crate::api::field::Path;

/// Which stand-ins are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandIns {
    /// The least of what is allowed.
    First,
    /// The most of what is allowed.
    Second,
}

/// An object that can be decoded.
#[derive(Debug)]
pub struct Sound {
    /// The object.
    pub object: Value,
    /// The fields that have a stand-in, or from which items were taken.
    pub replaced: Vec<Path>,
}

impl Schema {
    /// The object with stand-ins, where it needs some. The field of a `donor` is preferred to a stand-in, where the
    /// donor has that field.
    #[must_use]
    pub fn sound(&self, object: &Value, which: StandIns, donor: Option<&Value>) -> Option<Sound> {
        let mut replacing = Replacing { which, replaced: Vec::new(), names: 0 };
        let mut object = object.clone();
        replacing.value(self, &mut object, donor, &Trail::ROOT);
        let replaced = replacing.replaced;
        (!replaced.is_empty()).then_some(Sound { object, replaced })
    }

    fn is_readable(&self, value: &Value) -> bool {
        self.shape.takes(value)
            && self.allowed.as_ref().is_none_or(|allowed| allowed.contains(value))
            && (self.shape != Shape::Integer || self.holds(value))
    }
}

struct Replacing {
    which: StandIns,
    replaced: Vec<Path>,
    /// How many names were made up: no two are the same.
    names: usize,
}

impl Replacing {
    fn value(&mut self, schema: &Schema, value: &mut Value, donor: Option<&Value>, place: &Trail) {
        if value.is_null() && schema.nullable {
            return;
        }
        if !schema.is_readable(value) {
            self.replaced.push(place.path());
            let given = donor.filter(|donor| schema.is_readable(donor)).cloned();
            *value = given.unwrap_or_else(|| self.stand_in(schema, value, self.which));
            return;
        }
        match value {
            Value::Object(fields) => self.fields(schema, fields, donor, place),
            Value::Array(items) => {
                if let Some(most) = schema.most.filter(|most| items.len() > *most) {
                    items.truncate(most);
                    self.replaced.push(place.path());
                }
                let Some(each) = &schema.each else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    let donor = donor.and_then(|donor| donor.get(index));
                    self.value(each, item, donor, &place.below(Step::Index(index)));
                }
            }
            _ => {}
        }
    }

    fn fields(
        &mut self,
        schema: &Schema,
        fields: &mut Map<String, Value>,
        donor: Option<&Value>,
        place: &Trail,
    ) {
        if let Some(most) = schema.most.filter(|most| fields.len() > *most) {
            let kept = std::mem::take(fields);
            fields.extend(kept.into_iter().take(most));
            self.replaced.push(place.path());
        }
        for name in &schema.required {
            if fields.get(&**name).is_none_or(Value::is_null)
                && let Some(known) = schema.field(name)
            {
                self.replaced.push(place.below(Step::Field(name)).path());
                let given =
                    donor.and_then(|donor| donor.get(&**name)).filter(|given| known.is_readable(given));
                let value = given.cloned().unwrap_or_else(|| self.stand_in(known, &Value::Null, self.which));
                fields.insert(name.to_string(), value);
            }
        }
        for (name, value) in fields.iter_mut() {
            let donor = donor.and_then(|donor| donor.get(name));
            if let Some(known) = schema.field(name) {
                self.value(known, value, donor, &place.below(Step::Field(name)));
            } else if let Some(each) = &schema.each {
                self.value(each, value, donor, &place.below(Step::Key(name)));
            }
        }
    }

    /// A value that the schema allows, in place of another one or of none. An object or a list has as little or as much
    /// as `size` says; what is in it has as little as it can.
    fn stand_in(&mut self, schema: &Schema, refused: &Value, size: StandIns) -> Value {
        let is_first = self.which == StandIns::First;
        if let Some(allowed) = &schema.allowed {
            let one = if is_first { allowed.first() } else { allowed.last() };
            return one.cloned().unwrap_or_default();
        }
        match schema.shape {
            Shape::Any | Shape::Object => {
                let is_wanted = |name: &str| {
                    size == StandIns::Second || schema.required.iter().any(|required| **required == *name)
                };
                let fields = schema.fields.iter().filter(|(name, _)| is_wanted(name));
                let field = |(name, field): &(Box<str>, Schema)| {
                    (name.to_string(), self.stand_in(field, &Value::Null, StandIns::First))
                };
                Value::Object(fields.map(field).collect())
            }
            Shape::Array => {
                let each = schema.each.iter().filter(|_| size == StandIns::Second);
                each.map(|each| self.stand_in(each, &Value::Null, StandIns::First)).collect()
            }
            Shape::Boolean => (!is_first).into(),
            Shape::Integer | Shape::Number | Shape::IntOrString => integer(schema, is_first).into(),
            Shape::String => self.text(schema, refused).into(),
        }
    }

    /// A number or a boolean that was meant as a text is that text, if the pattern of the schema allows the text.
    fn text(&mut self, schema: &Schema, refused: &Value) -> String {
        if refused.is_number() || refused.is_boolean() {
            let text = refused.to_string();
            if schema.pattern.as_ref().is_none_or(|pattern| pattern.matches(&text)) {
                return text;
            }
        }
        self.names += 1;
        // One sorts before all dates and names, and one after them.
        let prefix = if self.which == StandIns::First { "0" } else { "z" };
        format!("{prefix}{}", self.names)
    }
}

/// The least or the most that the schema allows.
fn integer(schema: &Schema, is_least: bool) -> i64 {
    /// In place of a bound that the schema lacks.
    const USUAL: (f64, f64) = (0.0, 1_000_000.0);
    let least = schema.minimum.unwrap_or(USUAL.0);
    let most = schema.maximum.unwrap_or(USUAL.1);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a bound that is too large becomes the largest integer"
    )]
    let bound = if is_least { least } else { most } as i64;
    if schema.is_short { bound.clamp(i32::MIN.into(), i32::MAX.into()) } else { bound }
}
