//! Makes one definition of a kind out of what is derived from the types of its versions.
//!
//! Guarantees: both versions are served, `v1` is the one stored, `v1alpha1` is marked deprecated; the schemas hold
//! no default (conversion would see fields that nobody wrote), no null (absent is absent), no number format that the
//! API server does not know, and no description that is longer than it is worth.
//! Assumes: each definition has the one version that it was derived for.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps, JSONSchemaPropsOrArray,
    JSONSchemaPropsOrBool,
};

use super::Version;

/// Longest description that is kept whole, in bytes. Longer ones come from the built-in types and are cut to
/// their first sentence.
const LONGEST_DESCRIPTION: usize = 280;

/// The definition of `kind` with both versions in it, the hub first.
#[must_use]
pub fn merge(
    v1alpha1: CustomResourceDefinition,
    v1: CustomResourceDefinition,
    kind: &str,
) -> CustomResourceDefinition {
    let mut merged = v1;
    merged.spec.versions.extend(v1alpha1.spec.versions);
    for version in &mut merged.spec.versions {
        settle(version, kind);
    }
    merged
}

fn settle(version: &mut CustomResourceDefinitionVersion, kind: &str) {
    version.served = true;
    version.storage = version.name == Version::V1.as_str();
    if !version.storage {
        let (old, hub) = (Version::V1Alpha1.api_version(), Version::V1.api_version());
        version.deprecated = Some(true);
        version.deprecation_warning = Some(format!("{old} {kind} is deprecated; use {hub}"));
    }
    if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
        tidy(schema);
    }
}

/// Takes out of a schema, at every depth, what the module's promise excludes.
pub fn tidy(schema: &mut JSONSchemaProps) {
    schema.default = None;
    schema.nullable = None;
    schema.title = None;
    schema.description = schema.description.take().map(|text| shorten(&text));
    if schema.format.as_deref().is_some_and(|format| format.starts_with("uint")) {
        schema.format = None;
    }
    for below in children(schema) {
        tidy(below);
    }
}

/// The schemas directly below `schema`.
fn children(schema: &mut JSONSchemaProps) -> Vec<&mut JSONSchemaProps> {
    let mut below: Vec<&mut JSONSchemaProps> = Vec::new();
    below.extend(schema.properties.iter_mut().flat_map(|map| map.values_mut()));
    match schema.items.as_mut() {
        Some(JSONSchemaPropsOrArray::Schema(item)) => below.push(item),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => below.extend(items),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = schema.additional_properties.as_mut() {
        below.push(value);
    }
    for list in [&mut schema.all_of, &mut schema.any_of, &mut schema.one_of] {
        below.extend(list.iter_mut().flatten());
    }
    below.extend(schema.not.as_deref_mut());
    below
}

/// One line; the first sentence only where the whole is long.
fn shorten(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() <= LONGEST_DESCRIPTION {
        return line;
    }
    let end = line
        .match_indices(". ")
        .map(|(position, _)| position)
        .find(|&position| !["e.g", "i.e", "etc"].iter().any(|short| line[..position].ends_with(short)));
    match end {
        Some(position) => line[..=position].to_owned(),
        None => line,
    }
}
