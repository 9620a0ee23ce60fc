//! The definition of EtcdCluster that the API server gets.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::api::Version;
use crate::api::default;
use crate::api::validation::{Change, Written, validate};

fn definition() -> Value {
    serde_json::to_value(EtcdClusterKind.definition()).unwrap()
}

/// Calls `visit` for each schema below `schema`, with its path.
fn walk(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        walk(below, &format!("{path}.{name}"), visit);
    }
    for (word, sign) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[word].is_object() {
            walk(&schema[word], &format!("{path}{sign}"), visit);
        }
    }
}

fn each_schema(mut visit: impl FnMut(&str, &Value)) {
    for version in definition()["spec"]["versions"].as_array().unwrap() {
        let schema = &version["schema"]["openAPIV3Schema"];
        walk(schema, version["name"].as_str().unwrap(), &mut visit);
    }
}

#[test]
fn the_definition_is_small_enough_to_be_applied() {
    let size = serde_json::to_string(&EtcdClusterKind.definition()).unwrap().len();
    assert!(size < 200_000, "{size} bytes");
}

#[test]
fn the_definition_is_structural() {
    each_schema(|path, schema| {
        assert!(schema.get("$ref").is_none(), "{path} has a reference");
        let open = schema["x-kubernetes-int-or-string"] == true
            || schema["x-kubernetes-preserve-unknown-fields"] == true;
        assert!(open || schema["type"].is_string(), "{path} has no type");
        assert!(!open || schema.get("anyOf").is_none(), "{path} has a union");
    });
}

#[test]
fn every_field_of_our_own_says_what_it_means() {
    let mut silent = Vec::new();
    each_schema(|path, schema| {
        let item = path.ends_with("[]") || path.ends_with("{}");
        if !item && path.contains('.') && schema["description"].as_str().unwrap_or_default().is_empty() {
            silent.push(path.to_owned());
        }
    });
    // A TypeMeta and an ObjectMeta are described by the API server itself.
    silent.retain(|path| {
        let field = path.rsplit('.').next().unwrap_or_default();
        !["metadata", "apiVersion", "kind"].contains(&field)
    });
    assert_eq!(silent, Vec::<String>::new());
}

#[test]
fn each_rule_says_what_it_wants() {
    let mut rules = BTreeSet::new();
    each_schema(|path, schema| {
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            assert!(rule["message"].is_string(), "{path}: {rule}");
            rules.insert(format!("{path}: {}", rule["message"].as_str().unwrap()));
        }
    });
    assert!(rules.iter().any(|rule| rule.starts_with("v1.spec.backup.schedule")));
    assert!(rules.iter().any(|rule| rule.starts_with("v1alpha1.spec.storageSize")));
}

#[test]
fn both_versions_have_their_scale_paths() {
    for (version, path) in [("v1", ".spec.replicas"), ("v1alpha1", ".spec.size")] {
        let definition = definition();
        let versions = definition["spec"]["versions"].as_array().unwrap();
        let one = versions.iter().find(|one| one["name"] == version).unwrap();
        assert_eq!(one["subresources"]["scale"]["specReplicasPath"], path);
        assert_eq!(one["subresources"]["scale"]["labelSelectorPath"], ".status.selector");
        assert!(one["subresources"]["status"].is_object());
    }
}

const ACCEPTED: &[&str] = &[
    include_str!("../../../../examples/etcdcluster/minimal.yaml"),
    include_str!("../../../../examples/etcdcluster/production.yaml"),
    include_str!("../../../../examples/etcdcluster/classic-v1alpha1.yaml"),
];

const REJECTED: &[&str] = &[
    include_str!("../../../../examples/rejected/etcdcluster-auth-without-tls.yaml"),
    include_str!("../../../../examples/rejected/etcdcluster-backup-details.yaml"),
    include_str!("../../../../examples/rejected/etcdcluster-backup-nowhere.yaml"),
    include_str!("../../../../examples/rejected/etcdcluster-five-faults-v1alpha1.yaml"),
    include_str!("../../../../examples/rejected/etcdcluster-five-faults.yaml"),
    include_str!("../../../../examples/rejected/etcdcluster-half-a-pair.yaml"),
    include_str!("../../../../examples/rejected/etcdcluster-memory-stopped.yaml"),
    include_str!("../../../../examples/rejected/etcdcluster-options.yaml"),
    include_str!("../../../../examples/rejected/etcdcluster-unsupported-fields.yaml"),
    include_str!("../../../../examples/rejected/etcdcluster-unsupported-version.yaml"),
];

/// The validation of a manifest, as at its creation, with paths as its author wrote them.
fn create(manifest: &str) -> Validation {
    let object: Value = serde_saphyr::from_str(manifest).unwrap();
    let author: Version = object["apiVersion"].as_str().unwrap().parse().unwrap();
    let mut hub = EtcdClusterKind.lens().convert(object, author, Version::V1);
    default::complete(&EtcdClusterKind, &mut hub, None, author);
    let new = Written { version: Version::V1, object: &hub };
    validate(&EtcdClusterKind, &Change { new, old: None, author, now: Timestamp::UNIX_EPOCH })
}

#[test]
fn every_example_is_accepted() {
    for manifest in ACCEPTED {
        assert_eq!(create(manifest).errors, [], "{manifest}");
    }
}

#[test]
fn every_rejected_example_has_the_faults_that_its_first_line_names() {
    for manifest in REJECTED {
        let named = manifest.lines().next().unwrap().strip_prefix("# refused: ").unwrap();
        let named: BTreeSet<String> = named.split(", ").map(str::to_owned).collect();
        let found: BTreeSet<String> =
            create(manifest).errors.iter().map(|fault| fault.path.to_string()).collect();
        assert_eq!(found, named, "{manifest}");
    }
}
