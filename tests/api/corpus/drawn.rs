//! Objects drawn from the definitions: each keyword of each field of a spec is broken in an object of its own, and each
//! bound is kept exactly in another.
//!
//! Guarantees: types, enumerations, ranges, formats, lengths, patterns, required fields and the uniqueness of items are
//! broken in each version of each kind, also of fields that a definition gets later.
//! Assumes: one of [`TEXTS`] matches each pattern.
//! Never: breaks CEL rules or the rules of the gate; tables do.

use std::iter::repeat_n;

use gatehouse::api::schema;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use regex::Regex;
use serde_json::{Value, json};

use super::{Base, By, Case, TABLES, kind, version};

/// Texts of which one matches each pattern and format.
const TEXTS: &[&str] = &[
    "a",
    "1s",
    "08:00",
    "2999-01-01",
    "2999-01-01T00:00:00Z",
    "inline://SELECT 1",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
];

/// Cases that are left out, by a part and the end of their names: a time in metadata of Kubernetes is decoded before its
/// format is validated, a `service` of another type has no field that is converted to `v1`, and the namespace of a script
/// has to be the namespace of the object.
const LEFT_OUT: &[(&str, &str)] = &[
    (".volumeClaimTemplate.metadata.", ": format of a text"),
    ("v1alpha1 TDSet spec.service: ", ": type"),
    ("KeyRef.namespace: ", " is kept"),
];

/// A field whose value is sound in an object.
struct Node<'a> {
    schema: &'a JSONSchemaProps,
    object: Value,
    pointer: String,
    path: String,
}

/// A field that is refused, the keyword that refuses the field, its value in the object, and who refuses.
type Breach = (String, &'static str, Value, By);

/// A case for each keyword of each field of a spec.
pub fn all() -> Vec<Case> {
    let mut bases: Vec<&Base> = TABLES.iter().map(|(base, ..)| *base).collect();
    bases.dedup_by_key(|base| (base.kind, base.version));
    let mut cases = Vec::new();
    for base in bases {
        let object = base.changed("");
        let (definition, schemas) = (kind(&object).definition(), kind(&object).schemas());
        let root = schema::of(&definition, version(&object)).expect("a schema");
        let spec = &root.properties.as_ref().expect("fields")["spec"];
        let title = format!("{} {}", base.version, base.kind);
        let mut nodes = vec![Node { schema: spec, object, pointer: "/spec".into(), path: "spec".into() }];
        while let Some(node) = nodes.pop() {
            for (path, keyword, value, by) in node.breaches() {
                let name = format!("{title} {path}: {keyword}");
                let refused = [path].into();
                cases.push(Case { name, object: node.with(value), refused, by, is_only: false });
            }
            for (keyword, value) in bounds(node.schema) {
                let (name, object) = (format!("{title} {}: {keyword} is kept", node.path), node.with(value));
                let faults = schemas.of(version(&object)).faults(&object, usize::MAX);
                let is_refused = faults.iter().any(|fault| fault.path.to_string() == node.path);
                assert!(!is_refused, "{name}: {faults:?}");
                cases.push(Case { name, object, refused: [].into(), by: By::Anybody, is_only: false });
            }
            nodes.extend(node.children());
        }
    }
    let is_left_out =
        |case: &Case| LEFT_OUT.iter().any(|(part, end)| case.name.contains(part) && case.name.ends_with(end));
    cases.retain(|case| !is_left_out(case));
    cases
}

impl<'a> Node<'a> {
    fn value(&self) -> &Value {
        self.object.pointer(&self.pointer).expect("it is there")
    }

    /// The object with another value of the field.
    fn with(&self, value: Value) -> Value {
        let mut object = self.object.clone();
        *object.pointer_mut(&self.pointer).expect("it is there") = value;
        object
    }

    fn breaches(&self) -> Vec<Breach> {
        let own = broken(self.schema).into_iter();
        let mut all: Vec<Breach> =
            own.map(|(keyword, value, by)| (self.path.clone(), keyword, value, by)).collect();
        for name in self.schema.required.iter().flatten() {
            let mut value = self.value().clone();
            value.as_object_mut().expect("an object").remove(name);
            all.push((format!("{}.{name}", self.path), "required", value, By::Definition));
        }
        if is_unique(self.schema) {
            all.push((format!("{}[1]", self.path), "list type", items(self.schema, 2), By::Definition));
        }
        all
    }

    /// The fields, items and values in this one, each in an object that has it.
    fn children(&self) -> Vec<Self> {
        let below = |schema: &'a JSONSchemaProps, step: &str, path: String| {
            let mut value = self.value().clone();
            let present = match &mut value {
                Value::Array(items) if items.is_empty() => {
                    items.push(Value::Null);
                    &mut items[0]
                }
                Value::Array(items) => &mut items[0],
                value => &mut value[step],
            };
            if present.is_null() {
                *present = sample(schema);
            }
            Self { schema, object: self.with(value), pointer: format!("{}/{step}", self.pointer), path }
        };
        let fields = self.schema.properties.iter().flatten();
        let fields = fields.map(|(name, schema)| below(schema, name, format!("{}.{name}", self.path)));
        let item = item(self.schema).map(|schema| below(schema, "0", format!("{}[0]", self.path)));
        let value = entry(self.schema).map(|schema| below(schema, "key", format!("{}[key]", self.path)));
        fields.chain(item).chain(value).collect()
    }
}

fn item(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match &schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => Some(item),
        _ => None,
    }
}

/// The schema of each value of a map.
fn entry(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(entry)) => Some(entry),
        _ => None,
    }
}

fn is_unique(schema: &JSONSchemaProps) -> bool {
    matches!(schema.x_kubernetes_list_type.as_deref(), Some("map" | "set"))
}

/// A value that a schema allows, as small as it can be.
fn sample(schema: &JSONSchemaProps) -> Value {
    if let Some(allowed) = &schema.enum_ {
        return allowed[0].0.clone();
    }
    match schema.type_.as_deref() {
        Some("object") => {
            let fields = schema.properties.iter().flatten();
            let fields = fields.filter(|(name, _)| schema.required.iter().flatten().any(|one| one == *name));
            fields.map(|(name, field)| (name.clone(), sample(field))).collect()
        }
        Some("array") => items(schema, schema.min_items.unwrap_or(0)),
        Some("boolean") => json!(true),
        Some("string") => {
            let text = TEXTS.iter().find(|text| matches(schema, text));
            json!(text.unwrap_or_else(|| panic!("no text for {:?} {:?}", schema.pattern, schema.format)))
        }
        _ => json!(schema.minimum.map_or(1, whole)),
    }
}

/// Values that break one keyword each.
fn broken(schema: &JSONSchemaProps) -> Vec<(&'static str, Value, By)> {
    let kind = schema.type_.as_deref();
    let other = match kind {
        _ if schema.x_kubernetes_int_or_string == Some(true) => json!(true),
        Some("string") => json!(1),
        Some("integer") => json!("1"),
        Some("boolean") => json!("true"),
        _ => json!("text"),
    };
    let beyond = match schema.format.as_deref() {
        Some("int32") => Some(json!(3_000_000_000_u64)),
        Some("int64") => Some(json!(10_000_000_000_000_000_000_u64)),
        _ => None,
    };
    let spaces = || json!(" ".repeat(length(schema.min_length.unwrap_or(1).max(1))));
    let format = schema.format.as_ref().filter(|_| kind == Some("string"));
    let positive = |bound: Option<i64>| bound.filter(|bound| *bound > 0);
    let wanted = [
        ("type", Some(other)),
        ("type, by a fraction", (kind == Some("integer")).then(|| json!(0.5))),
        ("enum", schema.enum_.as_ref().map(|_| json!("none-of-them"))),
        ("minimum", schema.minimum.map(|least| json!(whole(least) - 1))),
        ("maximum", schema.maximum.map(|most| json!(whole(most) + 1))),
        ("minLength", positive(schema.min_length).map(|least| json!(text(schema, least - 1)))),
        ("maxLength", schema.max_length.map(|most| json!(text(schema, most + 1)))),
        ("pattern", schema.pattern.as_ref().map(|_| spaces())),
        ("format of a text", format.map(|_| spaces())),
        ("minItems", positive(schema.min_items).map(|least| items(schema, least - 1))),
        ("maxItems", schema.max_items.map(|most| items(schema, most + 1))),
        ("maxProperties", schema.max_properties.map(|most| entries(schema, most + 1))),
    ];
    let wanted = wanted.into_iter().filter_map(|(keyword, value)| Some((keyword, value?, By::Definition)));
    // Kubernetes 1.34 does not judge the format of an integer; 1.36 does.
    wanted.chain(beyond.map(|value| ("format", value, By::Anybody))).collect()
}

/// Values that are exactly at a bound.
fn bounds(schema: &JSONSchemaProps) -> Vec<(&'static str, Value)> {
    let text = |bound: Option<i64>| {
        let text = bound.map(|bound| text(schema, bound));
        text.filter(|text| matches(schema, text)).map(Value::from)
    };
    let wanted = [
        ("minimum", schema.minimum.map(|least| json!(whole(least)))),
        ("maximum", schema.maximum.map(|most| json!(whole(most)))),
        ("minLength", text(schema.min_length)),
        ("maxLength", text(schema.max_length)),
        ("maxItems", schema.max_items.filter(|_| !is_unique(schema)).map(|most| items(schema, most))),
        ("maxProperties", schema.max_properties.map(|most| entries(schema, most))),
    ];
    wanted.into_iter().filter_map(|(keyword, value)| Some((keyword, value?))).collect()
}

fn matches(schema: &JSONSchemaProps, text: &str) -> bool {
    let is_formatted = match schema.format.as_deref() {
        Some("date") => text.len() == "2999-01-01".len(),
        Some("date-time") => text.ends_with('Z'),
        _ => true,
    };
    let is_match = |pattern: &String| Regex::new(pattern).expect("a pattern").is_match(text);
    is_formatted
        && schema.min_length.is_none_or(|least| text.len() >= length(least))
        && schema.pattern.as_ref().is_none_or(is_match)
}

/// A text of so many characters, which matches the pattern if it can.
fn text(schema: &JSONSchemaProps, characters: i64) -> String {
    let texts = ["a", "0"].map(|character| character.repeat(length(characters)));
    texts.iter().find(|text| matches(schema, text)).unwrap_or(&texts[0]).clone()
}

fn items(schema: &JSONSchemaProps, count: i64) -> Value {
    repeat_n(item(schema).map_or(Value::Null, sample), length(count)).collect()
}

fn entries(schema: &JSONSchemaProps, count: i64) -> Value {
    let value = entry(schema).map_or(Value::Null, sample);
    (0..count).map(|number| (format!("k{number}"), value.clone())).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "the bounds of our definitions are whole numbers")]
fn whole(bound: f64) -> i64 {
    bound as i64
}

fn length(count: i64) -> usize {
    usize::try_from(count).expect("a length")
}
