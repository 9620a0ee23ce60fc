//! Makes one definition of a kind out of what is derived from the types of its versions.
//!
//! Guarantees: both versions are served, `v1` is the one stored, `v1alpha1` is marked deprecated; the schemas hold
//! no default of a spec (conversion would see fields that no client wrote), no null (absent is absent), no number format
//! that the API server does not know, and no description that is longer than it is worth; every list and map has a
//! limit. An object whose status was never written shows an `observedGeneration` of -1.
//! Assumes: each definition has the one version that it was derived for.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSON, JSONSchemaProps, JSONSchemaPropsOrArray,
    JSONSchemaPropsOrBool,
};
use serde_json::json;

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
        version.deprecation_warning = Some(format!(
            "{old} {kind} is deprecated; use {hub}: gatehouse convert -f FILE rewrites a manifest"
        ));
    }
    if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
        tidy(schema);
        bound(schema);
        if version.storage {
            declare_unobserved(schema);
        }
    }
}

/// Lets an object without a status say that nothing has observed it. kstatus, by which Flux and Helm 4 wait, takes a
/// custom resource without conditions for Current otherwise: an object would be reported as ready while no controller
/// runs. Flux declares its own kinds in the same way.
fn declare_unobserved(schema: &mut JSONSchemaProps) {
    if let Some(status) = schema.properties.as_mut().and_then(|fields| fields.get_mut("status")) {
        status.default = Some(JSON(json!({"observedGeneration": -1})));
    }
}

/// Items of a list for which its field says nothing else. The largest lists that people write are environment variables
/// and volumes, of some dozens.
const MOST_ITEMS: i64 = 256;

/// Entries of a map for which its field says nothing else.
const MOST_ENTRIES: i64 = 256;

/// Limits every list and map of a schema, at every depth: what is read, validated and converted is limited by it, and
/// the API server reckons with it how much its rules may cost.
fn bound(schema: &mut JSONSchemaProps) {
    if schema.items.is_some() {
        schema.max_items.get_or_insert(MOST_ITEMS);
    }
    if matches!(schema.additional_properties, Some(JSONSchemaPropsOrBool::Schema(_))) {
        schema.max_properties.get_or_insert(MOST_ENTRIES);
    }
    for below in children(schema) {
        bound(below);
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

/// Takes the description out of the schema of a type, so that the one of the field stays: for the enums that optional
/// fields have, whose own would win (`#[schemars(transform = undescribed)]`).
pub fn undescribed(schema: &mut schemars::Schema) {
    schema.remove("description");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::KINDS;

    fn schemas() -> Vec<(String, JSONSchemaProps)> {
        let versions = KINDS.iter().flat_map(|kind| {
            let definition = kind.definition();
            definition.spec.versions.into_iter().map(|version| {
                let schema = version.schema.and_then(|schema| schema.open_api_v3_schema);
                (format!("{}/{}", kind.names().kind, version.name), schema.unwrap())
            })
        });
        versions.collect()
    }

    fn walk(path: &str, schema: &mut JSONSchemaProps, visit: &mut impl FnMut(&str, &JSONSchemaProps)) {
        visit(path, schema);
        for (name, below) in schema.properties.iter_mut().flatten() {
            walk(&format!("{path}.{name}"), below, visit);
        }
        if let Some(JSONSchemaPropsOrArray::Schema(item)) = schema.items.as_mut() {
            walk(&format!("{path}[]"), item, visit);
        }
        if let Some(JSONSchemaPropsOrBool::Schema(value)) = schema.additional_properties.as_mut() {
            walk(&format!("{path}{{}}"), value, visit);
        }
    }

    #[test]
    fn every_schema_is_structural() {
        for (name, mut schema) in schemas() {
            walk(&name, &mut schema, &mut |path, node| {
                let free = node.x_kubernetes_int_or_string == Some(true)
                    || node.x_kubernetes_preserve_unknown_fields == Some(true);
                assert!(node.type_.is_some() || free, "{path} has no type");
                assert!(node.ref_path.is_none(), "{path} refers to another schema");
                for list in [&node.all_of, &node.any_of, &node.one_of] {
                    assert!(list.is_none(), "{path} has a choice of schemas");
                }
            });
        }
    }

    #[test]
    fn no_schema_defaults_a_field_of_a_spec_or_takes_null() {
        for (name, mut schema) in schemas() {
            walk(&name, &mut schema, &mut |path, node| {
                let is_unobserved = path.ends_with("/v1.status");
                assert_eq!(node.default.is_some(), is_unobserved, "{path}");
                assert!(node.nullable.is_none(), "{path} takes null");
            });
        }
    }

    #[test]
    fn every_list_and_map_is_limited() {
        for (name, mut schema) in schemas() {
            walk(&name, &mut schema, &mut |path, node| {
                let is_map = node.additional_properties.is_some();
                assert!(node.items.is_none() || node.max_items.is_some(), "{path} has no maxItems");
                assert!(!is_map || node.max_properties.is_some(), "{path} has no maxProperties");
            });
        }
    }

    #[test]
    fn every_field_is_described_in_few_words() {
        for (name, mut schema) in schemas() {
            walk(&name, &mut schema, &mut |path, node| {
                let described = node.description.as_deref();
                if node.properties.is_none() && !path.ends_with(']') && !path.ends_with('}') {
                    let known =
                        ["apiVersion", "kind", "metadata"].iter().any(|own| path == format!("{name}.{own}"));
                    assert!(described.is_some() || known, "{path} is not described");
                }
                assert!(described.is_none_or(|text| text.len() < 700), "{path}: {described:?}");
            });
        }
    }

    #[test]
    fn the_hub_is_stored_and_the_other_version_warns() {
        for kind in KINDS {
            let versions = &kind.definition().spec.versions;
            let found: Vec<_> = versions
                .iter()
                .map(|version| (version.name.as_str(), version.storage, version.deprecated))
                .collect();
            assert_eq!(found, [("v1", true, None), ("v1alpha1", false, Some(true))]);
            let warning = versions[1].deprecation_warning.clone().unwrap();
            let expected = format!(
                "gatehouse.dev/v1alpha1 {} is deprecated; use gatehouse.dev/v1: gatehouse convert -f FILE rewrites \
                     a manifest",
                kind.names().kind
            );
            assert_eq!(warning, expected);
        }
    }

    #[test]
    fn a_definition_stays_small() {
        for kind in KINDS {
            let size = serde_json::to_string(&kind.definition()).unwrap().len();
            assert!(size < 200_000, "{} has {size} bytes", kind.names().kind);
        }
    }

    #[test]
    fn a_long_description_is_cut_at_its_first_sentence() {
        assert_eq!(shorten("One\n line. Two."), "One line. Two.");
        let long = format!("The size, e.g. 1Gi. {}", "More of it. ".repeat(60));
        assert_eq!(shorten(&long), "The size, e.g. 1Gi.");
    }
}
