//! The documents in the files that `-f` names.
//!
//! Guarantees: files come in the order in which they were named, those of a folder by path; each is read completely, or
//! reported as unreadable. Hidden files and folders, and links to folders, are not followed.

mod yaml;

use std::collections::BTreeSet;
use std::fmt;
use std::io::Read;
use std::path::{Path as FilePath, PathBuf};
use std::{fs, io};

use clap::Args;
use serde_json::Value;

use crate::api::ancestors::{self, Ancestor};
use crate::api::field::{FieldError, Path};
use crate::api::name::typos;
use crate::api::{GROUP, Kind, Version};
use crate::kinds::{self, KINDS};
pub use yaml::Node;

/// What is read.
#[derive(Args, Debug)]
pub struct Files {
    /// Files, folders (all *.yaml, *.yml and *.json below them, hidden ones left out) or - for standard input. YAML
    /// of several documents, JSON, and lists of objects.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    pub filename: Vec<PathBuf>,
}

/// All that was read.
#[derive(Debug, Default)]
pub struct Input {
    /// In order.
    pub documents: Vec<Document>,
    /// What could not be read.
    pub unreadable: Vec<Unreadable>,
    /// The files that hold comments.
    pub commented: Vec<String>,
}

/// Why something could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// There is no such file, or no leave to read it.
    #[error("failed to read {file}: {source}")]
    File {
        /// As it was named, or found.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// It is neither YAML nor JSON. The message has the line and an excerpt.
    #[error("failed to read {file}: {message}")]
    Syntax {
        /// As it was named, or found.
        file: String,
        /// Where and why.
        message: String,
    },
    /// A folder without manifests.
    #[error("no *.yaml, *.yml or *.json below {0}")]
    EmptyFolder(String),
    /// All was read, and there is nothing in it.
    #[error("no objects in what -f names")]
    Nothing,
}

impl Unreadable {
    /// The file that it is about, where it is about one.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::File { file, .. } | Self::Syntax { file, .. } | Self::EmptyFolder(file) => Some(file),
            Self::Nothing => None,
        }
    }
}

/// One document of a file.
#[derive(Debug)]
pub struct Document {
    /// The file as it was named, or found; `-` is standard input.
    pub file: String,
    /// Its position in the file, from 1; empty documents are not counted.
    pub number: usize,
    /// What is written there.
    pub node: Node,
}

impl Document {
    /// The value.
    #[must_use]
    pub fn value(&self) -> Value {
        self.node.value()
    }

    /// The line of a field, or of the nearest one above it that is there.
    #[must_use]
    pub fn line(&self, path: &Path) -> u64 {
        self.node.line(path)
    }

    /// The objects in it, with their place: the document itself, or the items of the list that it is.
    #[must_use]
    pub fn objects(&self) -> Vec<(Path, Value)> {
        fn flatten(place: &Path, value: Value, objects: &mut Vec<(Path, Value)>) {
            if !is_list(&value) {
                objects.push((place.clone(), value));
                return;
            }
            if let Some(Value::Array(items)) = value.get("items") {
                for (index, item) in items.iter().enumerate() {
                    flatten(&place.at("items").index(index), item.clone(), objects);
                }
            }
        }
        let mut objects = Vec::new();
        flatten(&Path::root(), self.value(), &mut objects);
        objects
    }
}

impl fmt::Display for Document {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:doc {}", self.file, self.number)
    }
}

/// A `List` of the core API, or a list of one kind.
#[must_use]
pub fn is_list(value: &Value) -> bool {
    value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"))
        && value.get("items").is_some_and(Value::is_array)
}

/// What an object is to us.
#[derive(Clone, Copy)]
pub enum Subject {
    /// One of our kinds.
    Ours(&'static dyn Kind, Version),
    /// What one of our kinds succeeds.
    Ancestor(&'static Ancestor, &'static dyn Kind),
    /// None of our business.
    Other,
}

/// Finds out what an object is.
///
/// # Errors
/// It is of our group, and of no kind or version that there is.
pub fn subject(object: &Value) -> Result<Subject, FieldError> {
    let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (api_version, name) = (text("apiVersion"), text("kind"));
    if let Some(ancestor) = ancestors::find(api_version, name)
        && let Some(kind) = kinds::find(name)
    {
        return Ok(Subject::Ancestor(ancestor, kind));
    }
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    if group != GROUP {
        return meant_as_ours(api_version, group, name).map_or(Ok(Subject::Other), Err);
    }
    let Some(version) = Version::ALL.into_iter().find(|version| version.api_version() == api_version) else {
        let supported = Version::ALL.map(Version::api_version);
        return Err(FieldError::not_supported(Path::root().at("apiVersion"), api_version, &supported));
    };
    let Some(kind) = kinds::find(name) else {
        let supported: Vec<_> = KINDS.iter().map(|kind| kind.names().kind).collect();
        let fault = FieldError::not_supported(Path::root().at("kind"), name, &supported);
        return Err(match kind_like(name) {
            Some(kind) => FieldError { detail: format!("{}; did you mean {kind}?", fault.detail), ..fault },
            None => fault,
        });
    };
    Ok(Subject::Ours(kind, version))
}

/// Operators of others that have a kind of the same name: their objects are none of our business.
const OTHER_OPERATORS: [(&str, &str); 4] = [
    ("etcd.database.coreos.com", "EtcdCluster"),
    ("operator.etcd.io", "EtcdCluster"),
    ("etcd.aenix.io", "EtcdCluster"),
    ("etcd.improbable.io", "EtcdCluster"),
];

/// The fault of an object of another group that was meant as one of ours: a cluster would refuse it, or nothing would
/// ever work it.
fn meant_as_ours(api_version: &str, group: &str, name: &str) -> Option<FieldError> {
    let is_like_group =
        typos(group, GROUP) <= MOST_TYPOS || group.split('.').next() == GROUP.split('.').next();
    let kind = kind_like(name).filter(|kind| is_like_group || *kind == name)?;
    if OTHER_OPERATORS.contains(&(group, name)) {
        return None;
    }
    let path = Path::root().at("apiVersion");
    let meant = format!("did you mean {} and kind {kind}?", Version::V1.api_version());
    Some(if api_version.is_empty() {
        FieldError::required(path, meant)
    } else {
        let supported = Version::ALL.map(Version::api_version);
        let fault = FieldError::not_supported(path, api_version, &supported);
        FieldError { detail: format!("{}; {meant}", fault.detail), ..fault }
    })
}

/// Typos that a name may have and still be taken for another one.
const MOST_TYPOS: usize = 2;

/// The kind of ours that a name stands for: in another case, with typos, or in the plural.
fn kind_like(name: &str) -> Option<&'static str> {
    if name.is_empty() || name.len() > LONGEST_KIND {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let kinds = KINDS.iter().map(|kind| kind.names().kind);
    let near = kinds.map(|kind| (typos(&lower, &kind.to_ascii_lowercase()), kind)).min()?;
    // A short name is two typos away from many others.
    let most = if near.1.len() < 8 { 1 } else { MOST_TYPOS };
    (near.0 <= most).then_some(near.1)
}

/// A kind is shorter than this.
const LONGEST_KIND: usize = 64;

/// An object's kind, namespace and name as a person says them: `EtcdCluster default/example`.
#[must_use]
pub fn title(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let kind = text("/kind").unwrap_or("object");
    let name = text("/metadata/name").map(str::to_owned);
    let name = name.or_else(|| text("/metadata/generateName").map(|prefix| format!("{prefix}*")));
    let name = name.unwrap_or_else(|| "(no name)".to_owned());
    match text("/metadata/namespace") {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

impl Files {
    /// Reads everything.
    #[must_use]
    pub fn read(&self) -> Input {
        let mut input = Input::default();
        for named in &self.filename {
            if let Err(error) = read_named(named, &mut input) {
                input.unreadable.push(error);
            }
        }
        if input.documents.is_empty() && input.unreadable.is_empty() {
            input.unreadable.push(Unreadable::Nothing);
        }
        input
    }
}

fn read_named(named: &FilePath, input: &mut Input) -> Result<(), Unreadable> {
    if named == FilePath::new("-") {
        let mut bytes = Vec::new();
        let read = io::stdin().lock().read_to_end(&mut bytes);
        return read.map_err(|source| unread(named, source)).and_then(|_| add(named, bytes, input));
    }
    if !fs::metadata(named).map_err(|source| unread(named, source))?.is_dir() {
        return read_file(named, input);
    }
    let mut files = BTreeSet::new();
    find(named, &mut files)?;
    if files.is_empty() {
        return Err(Unreadable::EmptyFolder(named.display().to_string()));
    }
    for file in files {
        if let Err(error) = read_file(&file, input) {
            input.unreadable.push(error);
        }
    }
    Ok(())
}

/// The manifests below a folder.
fn find(folder: &FilePath, files: &mut BTreeSet<PathBuf>) -> Result<(), Unreadable> {
    let failed = |source| unread(folder, source);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let manifest = path
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|one| extension == *one));
        if hidden {
            continue;
        }
        if entry.file_type().map_err(failed)?.is_dir() {
            find(&path, files)?;
        } else if manifest && !path.is_dir() {
            files.insert(path);
        }
    }
    Ok(())
}

fn read_file(path: &FilePath, input: &mut Input) -> Result<(), Unreadable> {
    let bytes = fs::read(path).map_err(|source| unread(path, source))?;
    add(path, bytes, input)
}

fn unread(path: &FilePath, source: io::Error) -> Unreadable {
    Unreadable::File { file: path.display().to_string(), source }
}

fn add(path: &FilePath, bytes: Vec<u8>, input: &mut Input) -> Result<(), Unreadable> {
    let file = path.display().to_string();
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.split(|byte| *byte == b'\n').count();
        Unreadable::Syntax { file: file.clone(), message: format!("line {line}: the text is not UTF-8") }
    })?;
    let nodes = yaml::documents(&text, &file)
        .map_err(|message| Unreadable::Syntax { file: file.clone(), message })?;
    if yaml::has_comments(&text) {
        input.commented.push(file.clone());
    }
    let numbered = nodes.into_iter().zip(1..);
    input.documents.extend(numbered.map(|(node, number)| Document { file: file.clone(), number, node }));
    Ok(())
}
