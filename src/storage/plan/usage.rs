//! Who has written the objects of a definition in which version, as managed fields tell, and what holds a version back.
//!
//! A manager that has written an object by an old version may still do so; the time of its last write is reported
//! beside it. What writes no managed fields, or was overwritten in all of its fields, does not show here: an audit log
//! shows that.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;

use super::super::observation::{Definition, ObjectMeta};

/// How many managers are distinguished.
const MANAGERS: usize = 1000;

/// A manager, and how it writes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Manager {
    /// The version.
    pub version: String,
    /// Its name.
    pub name: String,
    /// `Apply` or `Update`.
    pub operation: String,
}

/// What a manager has written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// How many objects have fields of it.
    pub objects: u64,
    /// When it wrote one last.
    pub last: Option<Timestamp>,
    /// The object that it wrote last.
    pub example: String,
}

/// Who has written how much.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Objects that were looked at.
    pub objects: u64,
    /// Managers of versions other than the storage version.
    pub managers: BTreeMap<Manager, Writes>,
}

impl Usage {
    /// Adds an object.
    pub fn add(&mut self, definition: &Definition, object: &ObjectMeta) {
        self.objects += 1;
        let mut seen = Vec::new();
        for entry in &object.managed_fields {
            let Some(manager) = manager(definition, entry) else { continue };
            if self.managers.len() >= MANAGERS && !self.managers.contains_key(&manager) {
                continue;
            }
            let writes = self.managers.entry(manager.clone()).or_default();
            // A manager has an entry for each subresource.
            if !seen.contains(&manager) {
                writes.objects += 1;
                seen.push(manager);
            }
            let time = entry.time.as_ref().map(|time| time.0);
            if writes.example.is_empty() || time > writes.last {
                writes.last = time;
                writes.example = object.to_string();
            }
        }
    }

    /// The managers of a version.
    pub fn of<'a>(&'a self, version: &'a str) -> impl Iterator<Item = (&'a Manager, &'a Writes)> {
        self.managers.iter().filter(move |(manager, _)| manager.version == version)
    }

    /// Versions that managers have written by, but that the definition does not have.
    #[must_use]
    pub fn unknown(&self, definition: &Definition) -> Vec<&str> {
        let is_known = |name: &str| definition.versions.iter().any(|version| version.name == name);
        let mut all: Vec<_> = self
            .managers
            .keys()
            .map(|manager| manager.version.as_str())
            .filter(|name| !is_known(name))
            .collect();
        all.dedup();
        all
    }
}

fn manager(definition: &Definition, entry: &ManagedFieldsEntry) -> Option<Manager> {
    let (group, version) = entry.api_version.as_deref()?.split_once('/')?;
    let is_other = group == definition.group && version != definition.storage_version();
    is_other.then(|| Manager {
        version: version.to_owned(),
        name: entry.manager.clone().unwrap_or_default(),
        operation: entry.operation.clone().unwrap_or_default(),
    })
}

/// What stands in the way of removing a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Objects may be stored in it.
    Stored,
    /// It is served.
    Served,
    /// Managed fields name it.
    ManagedFields,
}

/// What stands in the way of removing a version, in the order in which it is dealt with.
#[must_use]
pub fn obstacles(definition: &Definition, usage: &Usage, version: &str) -> Vec<Obstacle> {
    let is_stored = version == definition.storage_version() || definition.maybe_stored().contains(&version);
    let all = [
        (is_stored, Obstacle::Stored),
        (definition.serves(version), Obstacle::Served),
        (usage.of(version).next().is_some(), Obstacle::ManagedFields),
    ];
    all.into_iter().filter(|(holds, _)| *holds).map(|(_, obstacle)| obstacle).collect()
}
