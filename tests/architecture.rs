//! The borders that keep this code easy to change, held by a test.
//!
//! - `src/api` and `src/review` are pure: they name no client, no server, no clock, no file, nothing asynchronous.
//! - Only `src/runtime` starts tasks and asks the time.
//! - The grid is complete: every kind has a file for every concern.
//! - No file grows beyond what one reads at a sitting.

#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a file, its tests left out.
const LONGEST_FILE: usize = 400;

/// Files that may be longer, each with its reason.
const LONGER: &[(&str, &str)] = &[];

/// What pure code does not name.
const EFFECTS: &[&str] = &[
    "kube::Client",
    "kube::Api",
    "kube::api",
    "kube::runtime",
    "tokio",
    "axum",
    "hyper",
    "futures",
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "rand::",
    "async fn",
    ".await",
];

/// Folders of the library that are pure throughout.
const PURE: &[&str] = &["src/api", "src/review"];

/// Pure files in folders with effects.
const PURE_FILES: &[&str] =
    &["decision.rs", "effect.rs", "observation.rs", "plan.rs", "rights.rs", "rotate.rs", "status.rs"];

/// Folders that are pure wherever they lie.
const PURE_PARTS: &[&str] = &["observation", "plan", "resources"];

/// The files that each kind has below `src/api`.
const API_GRID: &[&str] = &["convert", "default", "mod", "status", "v1", "v1alpha1", "validate"];

/// The files that each kind has below `src/controllers` once an operator works it.
const CONTROLLER_GRID: &[&str] = &["mod", "observe", "plan", "resources", "rights", "status"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below a folder, relative to the root.
fn sources(folder: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(folder), &mut found);
    found
}

/// The code of a file without comments and without the tests in it.
fn code(path: &Path) -> String {
    if path.file_name().is_some_and(|name| name == "tests.rs" || name == "arbitrary.rs")
        || path.components().any(|part| part.as_os_str() == "tests")
    {
        return String::new();
    }
    let text = fs::read_to_string(root().join(path)).unwrap();
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn names(path: &Path, effects: &[&'static str]) -> Vec<String> {
    let code = code(path);
    let found = effects.iter().filter(|effect| code.contains(**effect));
    found.map(|effect| format!("{}: names {effect}", path.display())).collect()
}

#[test]
fn pure_folders_name_no_effect() {
    let files = PURE.iter().flat_map(|folder| sources(folder));
    let broken: Vec<_> = files.flat_map(|path| names(&path, EFFECTS)).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn pure_files_beside_effects_name_none() {
    let files = sources("src").into_iter().filter(|path| {
        path.file_name().is_some_and(|name| PURE_FILES.iter().any(|pure| name == *pure))
            || path.components().any(|part| PURE_PARTS.iter().any(|pure| part.as_os_str() == *pure))
    });
    let broken: Vec<_> = files.flat_map(|path| names(&path, EFFECTS)).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn only_the_runtime_starts_tasks_and_asks_the_time() {
    let effects = ["tokio::spawn", "SystemTime::now", "Timestamp::now", "Zoned::now"];
    let files = sources("src").into_iter().filter(|path| !path.starts_with("src/runtime"));
    let broken: Vec<_> = files.flat_map(|path| names(&path, &effects)).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_kind_has_a_file_for_every_concern() {
    let missing: Vec<_> = gatehouse::kinds::KINDS
        .iter()
        .map(|kind| kind.names().kind.to_lowercase())
        .flat_map(|kind| API_GRID.iter().map(move |concern| format!("src/api/{kind}/{concern}")))
        .filter(|file| {
            !root().join(format!("{file}.rs")).exists() && !root().join(file).join("mod.rs").exists()
        })
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_kind_that_is_worked_has_a_file_for_every_concern() {
    let kinds = gatehouse::kinds::KINDS.iter().map(|kind| kind.names().kind.to_lowercase());
    let worked: Vec<_> = kinds.filter(|kind| root().join("src/controllers").join(kind).exists()).collect();
    assert!(!worked.is_empty());
    let missing: Vec<_> = worked
        .iter()
        .flat_map(|kind| {
            CONTROLLER_GRID.iter().map(move |concern| format!("src/controllers/{kind}/{concern}"))
        })
        .filter(|file| {
            !root().join(format!("{file}.rs")).exists() && !root().join(file).join("mod.rs").exists()
        })
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn no_file_is_longer_than_one_reads_at_a_sitting() {
    let files = sources("src").into_iter().chain(sources("tests"));
    let long: Vec<_> = files
        .map(|path| (code(&path).lines().count(), path))
        .filter(|(lines, path)| {
            *lines > LONGEST_FILE && !LONGER.iter().any(|(longer, _)| Path::new(longer) == path)
        })
        .collect();
    assert!(long.is_empty(), "{long:#?}");
}
