//! The Rust files of this repository, as text.

use std::fs;
use std::path::{Path, PathBuf};

/// One file.
pub struct Source {
    /// Where it lies, from the root of the repository.
    pub path: PathBuf,
    pub text: String,
}

impl Source {
    /// A file that a test makes up.
    pub fn planted(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: text.to_owned() }
    }

    /// It has nothing but tests of the code beside it: `src/**/tests.rs`, or below `src/**/tests/`.
    pub fn is_unit_test(&self) -> bool {
        self.path.starts_with("src") && self.path.iter().any(|part| part == "tests" || part == "tests.rs")
    }

    /// Its lines without comments.
    pub fn lines_of_code(&self) -> usize {
        self.text.lines().filter(|line| !line.trim_start().starts_with("//")).count()
    }
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below these folders.
pub fn below(folders: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    for folder in folders {
        walk(&root().join(folder), &mut found);
    }
    assert!(!found.is_empty(), "no Rust file below {folders:?}");
    found
}

fn walk(folder: &Path, found: &mut Vec<Source>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push(Source { path: path.strip_prefix(root()).unwrap().to_owned(), text });
        }
    }
}
