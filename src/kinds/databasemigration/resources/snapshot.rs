//! The ConfigMap that a run reads: its assignment, and the texts of the scripts as they were when it was planned.
//!
//! Guarantees: it cannot be changed, so what was planned is what runs, whatever becomes of where the texts came from.

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

/// How many bytes are put into it.
#[must_use]
pub fn size(spec: &Spec, texts: &[Texts], planned: &Planned) -> usize {
    let told = assignment::build(spec, texts, planned);
    let told = serde_json::to_string(&told).unwrap_or_default().len();
    assignment::files(texts).values().map(Vec::len).sum::<usize>() + told
}
