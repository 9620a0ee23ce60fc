//! Which file imports which, from what their sources name.
//!
//! Guarantees: a path is followed to the file that has it, through one `pub use` of a module on the way.
//! Assumes: a module that has files below it lies in `mod.rs`, or beside its folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::names;
use super::sources::Source;

/// A module's path below the crate's root.
type Module = Vec<String>;

/// The files of a crate, and what each imports.
#[derive(Debug)]
pub struct Imports {
    files: BTreeMap<Module, PathBuf>,
    edges: BTreeMap<Module, BTreeSet<Module>>,
}

impl Imports {
    /// Reads them from the sources below `src`, without unit tests.
    pub fn of(files: &[Source]) -> Self {
        let files: Vec<_> = files.iter().filter(|file| !file.is_unit_test()).collect();
        let modules: BTreeMap<_, _> =
            files.iter().map(|file| (module(&file.path), file.path.clone())).collect();
        let given_on = files.iter().map(|file| {
            let module = module(&file.path);
            let given = names::given_on(&file.text).into_iter();
            let given = given.filter_map(|(name, path)| Some((name, resolve(&modules, &module, &path)?.0)));
            (module.clone(), given.collect::<BTreeMap<_, _>>())
        });
        let given_on: BTreeMap<_, _> = given_on.collect();
        let edges = files.iter().map(|file| {
            let module = module(&file.path);
            let named = names::of(&file.text);
            let imported = named.iter().filter_map(|name| {
                let (found, next) = resolve(&modules, &module, name.parts())?;
                let given = next.and_then(|next| given_on.get(&found)?.get(&next).cloned());
                Some(given.unwrap_or(found))
            });
            let imported = imported.filter(|imported| *imported != module).collect();
            (module.clone(), imported)
        });
        Self { edges: edges.collect(), files: modules }
    }

    /// All files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.values().map(PathBuf::as_path)
    }

    /// Each file with each that it imports.
    pub fn pairs(&self) -> impl Iterator<Item = (&Path, &Path)> {
        let path = |module: &Module| self.files[module].as_path();
        self.edges.iter().flat_map(move |(from, to)| to.iter().map(move |to| (path(from), path(to))))
    }

    /// Files of which each comes back to itself by what it imports. What a file imports of the module that it is a part
    /// of does not count: Rust makes these two one unit.
    pub fn circles(&self) -> Vec<Vec<&Path>> {
        let mut circles = Vec::new();
        let mut left: BTreeSet<_> = self.files.keys().collect();
        while let Some(module) = left.pop_first() {
            let reached = self.reached(module);
            let circle = reached.iter().filter(|one| self.reached(one).contains(module));
            let circle: Vec<_> = circle.collect();
            for one in &circle {
                left.remove(*one);
            }
            if !circle.is_empty() {
                circles.push(circle.iter().map(|one| self.files[**one].as_path()).collect());
            }
        }
        circles
    }

    fn reached(&self, module: &Module) -> BTreeSet<&Module> {
        let (mut reached, mut next) = (BTreeSet::new(), vec![module]);
        while let Some((at, imported)) = next.pop().and_then(|at| Some((at, self.edges.get(at)?))) {
            let is_parent =
                |one: &&Module| at.split_last().is_some_and(|(_, parent)| parent == one.as_slice());
            next.extend(imported.iter().filter(|one| !is_parent(one) && !reached.contains(one)));
            reached.extend(imported.iter().filter(|one| !is_parent(one)));
        }
        reached
    }
}

/// The module that a file is.
fn module(path: &Path) -> Module {
    let below = path.strip_prefix("src").unwrap_or(path).with_extension("");
    let mut parts: Vec<_> = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod" || last == "lib") {
        parts.pop();
    }
    parts
}

/// The module that has what a path leads to, and the first name in it.
fn resolve(
    modules: &BTreeMap<Module, PathBuf>,
    at: &Module,
    path: &[String],
) -> Option<(Module, Option<String>)> {
    let (first, rest) = path.split_first()?;
    let mut all = match first.as_str() {
        "crate" => rest.to_vec(),
        "self" => [at, rest].concat(),
        "super" => {
            let ups = path.iter().take_while(|part| *part == "super").count();
            [&at[..at.len().checked_sub(ups)?], &path[ups..]].concat()
        }
        child if modules.contains_key(&[at.as_slice(), &[child.to_owned()]].concat()) => {
            [at.as_slice(), path].concat()
        }
        _ => return None,
    };
    let mut next = None;
    while !modules.contains_key(&all) {
        next = Some(all.pop()?);
    }
    Some((all, next))
}
