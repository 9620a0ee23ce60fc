//! A schema for validation, compiled from a definition's.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use super::unique::Unique;
use super::{Pattern, Schema, Shape};

/// Each pattern once, however many fields have it.
#[derive(Default)]
pub(super) struct Patterns(HashMap<String, Arc<Pattern>>);

impl Patterns {
    fn get(&mut self, text: &str) -> Arc<Pattern> {
        let new = || Arc::new(Pattern { text: text.into(), regex: OnceLock::new() });
        Arc::clone(self.0.entry(text.to_owned()).or_insert_with(new))
    }
}

/// A whole object. A definition may name some of its metadata, whose other fields are no unknown ones then.
pub(super) fn object(from: &JSONSchemaProps, patterns: &mut Patterns) -> Schema {
    let mut object = schema(from, patterns);
    if let Some((_, metadata)) = object.fields.iter_mut().find(|(name, _)| **name == *"metadata") {
        metadata.open = true;
    }
    object
}

pub(super) fn schema(from: &JSONSchemaProps, patterns: &mut Patterns) -> Schema {
    let items = match &from.items {
        Some(JSONSchemaPropsOrArray::Schema(each)) => Some(each),
        _ => None,
    };
    let values = match &from.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(each)) => Some(each),
        _ => None,
    };
    // The map is sorted, and so are the fields.
    let fields = from.properties.iter().flatten();
    Schema {
        shape: shape(from),
        nullable: from.nullable == Some(true),
        open: from.x_kubernetes_preserve_unknown_fields == Some(true)
            || matches!(from.additional_properties, Some(JSONSchemaPropsOrBool::Bool(true))),
        allowed: from.enum_.as_ref().map(|allowed| allowed.iter().map(|one| one.0.clone()).collect()),
        fields: fields.map(|(name, field)| (name.as_str().into(), schema(field, patterns))).collect(),
        required: from.required.iter().flatten().map(|name| name.as_str().into()).collect(),
        each: items.or(values).map(|each| Box::new(schema(each, patterns))),
        unique: unique(from),
        least: bound(from.min_items.or(from.min_length)),
        most: bound(from.max_items.or(from.max_properties).or(from.max_length)),
        minimum: from.minimum,
        maximum: from.maximum,
        is_short: from.format.as_deref() == Some("int32"),
        pattern: from.pattern.as_deref().map(|text| patterns.get(text)),
    }
}

fn bound(bound: Option<i64>) -> Option<usize> {
    bound.map(|bound| usize::try_from(bound).unwrap_or_default())
}

fn shape(from: &JSONSchemaProps) -> Shape {
    if from.x_kubernetes_int_or_string == Some(true) {
        return Shape::IntOrString;
    }
    match from.type_.as_deref() {
        Some("object") => Shape::Object,
        Some("array") => Shape::Array,
        Some("string") => Shape::String,
        Some("boolean") => Shape::Boolean,
        Some("integer") => Shape::Integer,
        Some("number") => Shape::Number,
        _ => Shape::Any,
    }
}

fn unique(from: &JSONSchemaProps) -> Unique {
    match (from.x_kubernetes_list_type.as_deref(), &from.x_kubernetes_list_map_keys) {
        (Some("map"), Some(keys)) => Unique::Keys(keys.iter().map(|key| key.as_str().into()).collect()),
        (Some("map" | "set"), _) => Unique::Whole,
        _ => Unique::Nothing,
    }
}
