//! The ConfigMap that a run reads: its assignment, and the texts of the scripts as they were when it was planned.
//!
//! Guarantees: it cannot be changed, so what was planned is what runs, whatever becomes of where the texts came from. One
//! that was there before is compared in all that a run reads of it.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;

use super::assignment::{self, ASSIGNMENT, Texts};
use super::{Planned, metadata};
use crate::controllers::manifest::Manifest;
use crate::kinds::databasemigration::spec::Spec;

/// The most bytes that are put into one; the API server takes 1 MiB, with all that is around them.
pub const MOST_BYTES: usize = 1_000_000;

/// The ConfigMap of a run.
#[must_use]
pub fn manifest(spec: &Spec, texts: &[Texts], planned: &Planned) -> Manifest {
    let told = assignment::build(spec, texts, planned);
    let mut data =
        BTreeMap::from([(ASSIGNMENT.to_owned(), serde_json::to_string(&told).unwrap_or_default())]);
    let mut binary = BTreeMap::new();
    for (file, bytes) in assignment::files(texts) {
        match String::from_utf8(bytes) {
            Ok(text) => {
                data.insert(file, text);
            }
            Err(error) => {
                binary.insert(file, ByteString(error.into_bytes()));
            }
        }
    }
    let config_map = ConfigMap {
        metadata: metadata(spec, planned),
        data: Some(data),
        binary_data: Some(binary).filter(|binary| !binary.is_empty()),
        immutable: Some(true),
    };
    Manifest::of(&config_map).stamped()
}

/// Whether a ConfigMap that is there is of the same object, holds what is planned, and cannot be changed.
#[must_use]
pub fn is_as_planned(found: &ConfigMap, manifest: &Manifest) -> bool {
    let found = Manifest::of(found);
    let fields = ["/metadata/ownerReferences", "/data", "/binaryData", "/immutable"];
    fields.into_iter().all(|field| found.object.pointer(field) == manifest.object.pointer(field))
}

/// How many bytes are put into it.
#[must_use]
pub fn size(spec: &Spec, texts: &[Texts], planned: &Planned) -> usize {
    let told = assignment::build(spec, texts, planned);
    let told = serde_json::to_string(&told).unwrap_or_default().len();
    assignment::files(texts).values().map(Vec::len).sum::<usize>() + told
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_config_map_that_was_there_is_the_same_in_all_that_counts() {
        let planned = json!({
            "metadata": {"name": "shop-0-1", "namespace": "a", "labels": {"gatehouse.dev/owner-uid": "u1"},
                "ownerReferences": [{"apiVersion": "gatehouse.dev/v1", "kind": "DatabaseMigration", "name": "shop",
                    "uid": "u1", "controller": true}]},
            "data": {"assignment.json": "{}", "000.up.sql": "SELECT 1"},
            "immutable": true,
        });
        let config_map = |change: &Value| -> ConfigMap {
            let mut object = planned.clone();
            json_patch::merge(&mut object, change);
            serde_json::from_value(object).unwrap()
        };
        let manifest = Manifest::of(&config_map(&json!({}))).stamped();
        let written = json!({"metadata": {"uid": "u2", "resourceVersion": "7", "annotations": {"a": "b"}}});
        assert!(is_as_planned(&config_map(&written), &manifest), "the API server adds to it");
        for other in [
            json!({"data": {"000.up.sql": "DROP TABLE a"}}),
            json!({"data": {"001.up.sql": "DROP TABLE a"}}),
            json!({"binaryData": {"000.up.sql": ""}}),
            json!({"immutable": null}),
            json!({"metadata": {"ownerReferences": null}}),
        ] {
            assert!(!is_as_planned(&config_map(&other), &manifest), "{other}");
        }
    }
}
