//! Inputs that are kept: those of the corpus, each for one target, and the objects of the examples.
//!
//! Guarantees: the same order each time. A file ends with a newline, as every file here does; the input is what stands
//! before it.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use gatehouse::kinds::KINDS;
use serde_json::Value;

/// A kept input.
pub struct Input {
    /// The name of its file.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// The inputs of a target.
pub fn of(target: &str) -> Vec<Input> {
    let folder = kit::root().join("tests/fuzz/corpus").join(target);
    let mut inputs: Vec<_> = files(&folder)
        .into_iter()
        .map(|(name, mut bytes)| {
            bytes.pop_if(|last| *last == b'\n');
            Input { name, bytes }
        })
        .collect();
    inputs.sort_by(|one, other| one.name.cmp(&other.name));
    inputs
}

/// The objects of our kinds in all examples: sound ones in both versions, and some with a few faults.
pub static EXAMPLES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let mut found = Vec::new();
    let folders = KINDS.iter().map(|kind| kind.names().kind.to_lowercase());
    for folder in folders.chain(["rejected".to_owned()]) {
        for (_, bytes) in files(&kit::root().join("examples").join(folder)) {
            let text = String::from_utf8(bytes).expect("an example is text");
            let documents: Vec<Value> = serde_saphyr::from_multiple(&text).expect("an example is YAML");
            found.extend(documents.into_iter().filter(is_ours));
        }
    }
    found.sort_by_cached_key(Value::to_string);
    assert!(found.len() > 4, "only {} objects in the examples", found.len());
    found
});

fn is_ours(object: &Value) -> bool {
    object["apiVersion"].as_str().is_some_and(|version| version.starts_with(gatehouse::api::GROUP))
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths =
        entries.map(|entry| entry.expect("a folder can be read").path()).filter(|path| path.is_file());
    let read = |path: &Path| fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    paths.map(|path| (name(&path), read(&path))).collect()
}
