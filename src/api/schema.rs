//! The structural schema of a definition, judged without an API server.
//!
//! Guarantees: the verdict of the API server's own schema validation for the part of OpenAPI that our definitions
//! use (type, nullable, enum, bounds, lengths, pattern, required, int-or-string, list maps and sets), with the same
//! paths and reasons; in addition unknown fields, as `fieldValidation=Strict` names them.
//! Never: runs CEL rules; their twins are in each kind's `validate`.
//! Assumes that a definition is structural, as the API server demands: no references, no unions of shapes.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use regex::Regex;
use serde_json::Value;

use super::Version;
use super::field::{Fault, Path, Reason, Rendered as _};

/// The schema of one version of a definition; none where the definition lacks that version.
#[must_use]
pub fn of(definition: &CustomResourceDefinition, version: Version) -> Option<&JSONSchemaProps> {
    let version = definition.spec.versions.iter().find(|one| one.name == version.as_str())?;
    version.schema.as_ref()?.open_api_v3_schema.as_ref()
}

/// What the API server's schema validation would say of `object`, a whole one.
#[must_use]
pub fn faults(schema: &JSONSchemaProps, object: &Value) -> Vec<Fault> {
    let mut judge = Judge { faults: Vec::new(), unknown: None };
    judge.value(schema, object, &Path::root());
    judge.faults
}

/// The fields of `object` that `schema` does not know: what a lenient API server would silently drop.
#[must_use]
pub fn unknown_fields(schema: &JSONSchemaProps, object: &Value) -> Vec<Path> {
    let mut judge = Judge { faults: Vec::new(), unknown: Some(Vec::new()) };
    judge.value(schema, object, &Path::root());
    judge.unknown.unwrap_or_default()
}

struct Judge {
    faults: Vec<Fault>,
    /// Collected only when asked for.
    unknown: Option<Vec<Path>>,
}

impl Judge {
    fn value(&mut self, schema: &JSONSchemaProps, value: &Value, path: &Path) {
        if value.is_null() && schema.nullable == Some(true) {
            return;
        }
        if !self.right_type(schema, value, path) {
            return;
        }
        self.one_of_enum(schema, value, path);
        match value {
            Value::Object(_) => self.object(schema, value, path),
            Value::Array(items) => self.list(schema, items, path),
            Value::String(text) => self.text(schema, text, path),
            Value::Number(_) => self.number(schema, value, path),
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn right_type(&mut self, schema: &JSONSchemaProps, value: &Value, path: &Path) -> bool {
        let right = if schema.x_kubernetes_int_or_string == Some(true) {
            value.is_string() || is_integer(value)
        } else {
            match schema.type_.as_deref() {
                Some("object") => value.is_object(),
                Some("array") => value.is_array(),
                Some("string") => value.is_string(),
                Some("boolean") => value.is_boolean(),
                Some("integer") => is_integer(value),
                Some("number") => value.is_number(),
                _ => true,
            }
        };
        if !right {
            let expected = if schema.x_kubernetes_int_or_string == Some(true) {
                "integer or string"
            } else {
                schema.type_.as_deref().unwrap_or_default()
            };
            let detail = format!("must be of type {expected}");
            let fault = Fault::new(path.clone(), Reason::TypeInvalid, detail);
            self.faults.push(Fault { value: Some(value.rendered()), ..fault });
        }
        right
    }

    fn one_of_enum(&mut self, schema: &JSONSchemaProps, value: &Value, path: &Path) {
        let Some(allowed) = &schema.enum_ else { return };
        if !allowed.iter().any(|one| one.0 == *value) {
            let names: Vec<&str> = allowed.iter().filter_map(|one| one.0.as_str()).collect();
            self.faults.push(Fault::not_supported(path.clone(), value, &names));
        }
    }

    fn object(&mut self, schema: &JSONSchemaProps, value: &Value, path: &Path) {
        let Value::Object(fields) = value else { return };
        for required in schema.required.iter().flatten() {
            if fields.get(required).is_none_or(Value::is_null) {
                self.faults.push(Fault::required(path.at(required.clone()), ""));
            }
        }
        if !self.most_items(schema.max_properties, fields.len(), path) {
            return;
        }
        let properties = schema.properties.as_ref();
        for (name, value) in fields {
            let known = properties.and_then(|properties| properties.get(name));
            if let Some(known) = known {
                self.value(known, value, &path.at(name.clone()));
            } else if let Some(JSONSchemaPropsOrBool::Schema(each)) = &schema.additional_properties {
                self.value(each, value, &path.key(name.clone()));
            } else if !(is_open(schema) || is_envelope(path, name))
                && let Some(unknown) = &mut self.unknown
            {
                unknown.push(path.at(name.clone()));
            }
        }
    }

    fn list(&mut self, schema: &JSONSchemaProps, items: &[Value], path: &Path) {
        if !self.most_items(schema.max_items, items.len(), path) {
            return; // what is too much is not read
        }
        if let Some(least) = schema.min_items
            && count(items.len()) < least
        {
            let detail = format!("must have at least {least} items");
            self.faults.push(Fault::invalid(path.clone(), count(items.len()), detail));
        }
        if let Some(JSONSchemaPropsOrArray::Schema(each)) = &schema.items {
            for (index, item) in items.iter().enumerate() {
                self.value(each, item, &path.index(index));
            }
        }
        self.distinct(schema, items, path);
    }

    /// List maps and sets hold each key once.
    fn distinct(&mut self, schema: &JSONSchemaProps, items: &[Value], path: &Path) {
        let keys = match schema.x_kubernetes_list_type.as_deref() {
            Some("map") => schema.x_kubernetes_list_map_keys.clone().unwrap_or_default(),
            Some("set") => Vec::new(),
            _ => return,
        };
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let own = match keys.as_slice() {
                [] => item.to_string(),
                keys => {
                    keys.iter().map(|key| item.get(key).map_or_else(String::new, Value::to_string)).collect()
                }
            };
            if !seen.insert(own) {
                let shown = keys.first().and_then(|key| item.get(key)).unwrap_or(item);
                self.faults.push(Fault::duplicate(path.index(index), shown));
            }
        }
    }

    /// False where there are too many.
    fn most_items(&mut self, most: Option<i64>, found: usize, path: &Path) -> bool {
        let Some(most) = most.filter(|most| count(found) > *most) else { return true };
        let fault = Fault::new(path.clone(), Reason::TooMany, format!("must have at most {most} items"));
        self.faults.push(Fault { value: Some(found.to_string()), ..fault });
        false
    }

    fn text(&mut self, schema: &JSONSchemaProps, text: &str, path: &Path) {
        let length = count(text.chars().count());
        if let Some(least) = schema.min_length
            && length < least
        {
            let detail = format!("should be at least {least} chars long");
            self.faults.push(Fault::invalid(path.clone(), text, detail));
        }
        if let Some(most) = schema.max_length
            && length > most
        {
            let detail = format!("should be at most {most} chars long");
            self.faults.push(Fault::new(path.clone(), Reason::TooLong, detail));
        }
        if let Some(pattern) = &schema.pattern
            && !matches(pattern, text)
        {
            let detail = format!("should match '{pattern}'");
            self.faults.push(Fault::invalid(path.clone(), text, detail));
        }
    }

    fn number(&mut self, schema: &JSONSchemaProps, value: &Value, path: &Path) {
        let Some(number) = value.as_f64() else { return };
        if let Some(least) = schema.minimum
            && number < least
        {
            let detail = format!("should be greater than or equal to {least}");
            self.faults.push(Fault::invalid(path.clone(), value, detail));
        }
        if let Some(most) = schema.maximum
            && number > most
        {
            let detail = format!("should be less than or equal to {most}");
            self.faults.push(Fault::invalid(path.clone(), value, detail));
        }
    }
}

fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// As the API server sees it: `1.0` is an integer as well.
fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// Fields that the schema does not name are kept.
fn is_open(schema: &JSONSchemaProps) -> bool {
    schema.x_kubernetes_preserve_unknown_fields == Some(true)
        || matches!(schema.additional_properties, Some(JSONSchemaPropsOrBool::Bool(true)))
}

/// What each object has and no definition describes.
fn is_envelope(path: &Path, name: &str) -> bool {
    match path.segments() {
        [] => matches!(name, "apiVersion" | "kind" | "metadata"),
        [first, ..] => *first == super::field::Segment::Field("metadata".into()),
    }
}

/// Compiled once each: the patterns are those of our own definitions, so the table is small.
fn matches(pattern: &str, text: &str) -> bool {
    static COMPILED: LazyLock<RwLock<HashMap<String, Option<Arc<Regex>>>>> = LazyLock::new(RwLock::default);
    let known = COMPILED.read().unwrap_or_else(PoisonError::into_inner).get(pattern).cloned();
    let regex = known.unwrap_or_else(|| {
        let regex = Regex::new(pattern).ok().map(Arc::new);
        COMPILED.write().unwrap_or_else(PoisonError::into_inner).insert(pattern.to_owned(), regex.clone());
        regex
    });
    regex.is_none_or(|regex| regex.is_match(text))
}
