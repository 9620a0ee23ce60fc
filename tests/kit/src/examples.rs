//! The objects below `examples`, for tests that need one of each kind.

use std::fs;

use gatehouse::api::{Kind, Version};
use serde_json::Value;

use crate::root;

/// The smallest example of a kind, in a version. Where none is written in that version, one of `v1` is converted.
pub fn smallest(kind: &dyn Kind, version: Version) -> Value {
    let folder = root().join("examples").join(kind.names().kind.to_lowercase());
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let objects = files.map(|file| {
        let text = fs::read_to_string(file.expect("a file").path()).expect("an example is text");
        serde_saphyr::from_str(&text).expect("an example is YAML")
    });
    let objects: Vec<Value> = objects.collect();
    let smallest = |version: Version| {
        let written = objects.iter().filter(|object| object["apiVersion"] == version.api_version());
        written.min_by_key(|object| {
            let text = object.to_string();
            (text.len(), text)
        })
    };
    smallest(version).cloned().unwrap_or_else(|| {
        let hub = smallest(Version::V1).unwrap_or_else(|| panic!("{} has none of v1", folder.display()));
        kind.lens().convert(hub.clone(), Version::V1, version)
    })
}

/// The YAML that a page below `docs/` shows in the section of that heading, block by block.
#[must_use]
pub fn in_page(page: &str, heading: &str) -> Vec<Value> {
    let text = fs::read_to_string(root().join("docs").join(page)).expect("the page");
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).expect("the section");
    let section = section.split("\n## ").next().expect("the section");
    let blocks = section.split("```yaml\n").skip(1).filter_map(|block| block.split("```").next());
    blocks.map(|block| serde_saphyr::from_str(block).expect("YAML")).collect()
}
