//! What a migration does, decided from what was observed. Pure.
//!
//! ```text
//!  definition ─▶ begin ─▶ passes over all objects ─▶ end ─▶ storedVersions
//!                 │ held: why        each object: patch, conclude     │ kept: why
//! ```

pub mod checkpoint;
pub mod condition;
mod doubt;
pub mod ending;
pub mod managed_fields;
pub mod object;
pub mod pace;
pub mod tally;
#[cfg(test)]
mod tests;
pub mod usage;

use std::time::Duration;

use super::observation::{Definition, ObjectMeta};
use checkpoint::Checkpoint;
use managed_fields::Policy;
use tally::Tally;

pub use doubt::{ignores_place, is_left_as_wanted, is_settled, is_stored_as_wanted, is_untrue, restored};

/// How long an API server may take until it has seen a change of a definition, so that it writes in the version that
/// this says, and takes no writes by one that is not served. Each has a watch, which tells it within a second; several of
/// them may be behind one address.
pub const GRACE: Duration = Duration::from_mins(1);

/// How often all objects are looked at: once to write them, then until a pass finds none to write, and no more often
/// than this. An object that something changes with every write is never found as it would be written.
const PASSES: u32 = 4;

/// What is asked for.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "wishes, none of which rules out another")]
pub struct Goal {
    /// The version that objects are to be stored in; none: the storage version, whichever it is.
    pub to: Option<String>,
    /// Whether objects may lose fields that the storage version does not know.
    pub loses_fields: bool,
    /// Whether objects are written although the status of the definition says that none is stored in another version: what
    /// that says is not believed, and neither is the place of an earlier migration.
    pub is_forced: bool,
    /// Whether the place of an earlier migration is left aside.
    pub ignores_place: bool,
    /// The versions that the status of the definition, as it is, named when it could be relied on; none: what it says now
    /// is all that is known.
    pub named: Option<Vec<String>>,
    /// Whether nothing is to be written: every object is asked about.
    pub is_dry: bool,
    /// What happens to managed fields of other versions.
    pub managed_fields: Policy,
    /// How long ago the definition has to have been written.
    pub grace: Duration,
}

impl Default for Goal {
    fn default() -> Self {
        Self {
            to: None,
            loses_fields: false,
            is_forced: false,
            ignores_place: false,
            named: None,
            is_dry: false,
            managed_fields: Policy::default(),
            grace: GRACE,
        }
    }
}

/// Why nothing is begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Held {
    /// There is no such version.
    #[error("{definition} has no version {version}: it has {has}")]
    NoSuchVersion {
        /// The definition.
        definition: String,
        /// What was asked for.
        version: String,
        /// What there is.
        has: String,
    },
    /// Objects are stored in another version.
    #[error(
        "{definition} stores its objects as {stored}, not as {version}: apply a definition with storage: true at \
         {version} first"
    )]
    OtherVersion {
        /// The definition.
        definition: String,
        /// What was asked for.
        version: String,
        /// Its storage version.
        stored: String,
    },
    /// Nothing can be asked for.
    #[error("{0} is not served: its condition Established is not True, or it serves no version")]
    NotServed(String),
    /// A write would take fields away.
    #[error(
        "{definition} has no webhook that converts, and objects would lose fields that {stored} does not know: {}; \
         --lose-fields writes them all the same", .fields.join(", ")
    )]
    LosesFields {
        /// The definition.
        definition: String,
        /// Its storage version.
        stored: String,
        /// Some of the fields.
        fields: Vec<String>,
    },
    /// The objects go anyway.
    #[error("{0} is being deleted")]
    Deleted(String),
}

/// What is done about a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Wait so long, then look again: an API server may not have seen the change yet.
    Wait(Duration),
    /// Write every object, from that place on.
    Rewrite(Checkpoint),
    /// Nothing is stored in another version: only look for managed fields to clean.
    Clean(Checkpoint),
}

/// What is done about a definition at the time at which it was read.
///
/// # Errors
/// Why nothing can be done.
pub fn begin(definition: &Definition, goal: &Goal) -> Result<Begin, Held> {
    let name = || definition.name.clone();
    let stored = definition.storage_version();
    if let Some(version) = goal.to.as_ref().filter(|version| *version != stored) {
        let has: Vec<_> = definition.versions.iter().map(|one| one.name.as_str()).collect();
        return Err(if has.contains(&version.as_str()) {
            let (version, stored) = (version.clone(), stored.to_owned());
            Held::OtherVersion { definition: name(), version, stored }
        } else {
            Held::NoSuchVersion { definition: name(), version: version.clone(), has: has.join(", ") }
        });
    }
    if definition.is_deleted {
        return Err(Held::Deleted(name()));
    }
    if !definition.is_established || definition.asked_version().is_none() {
        return Err(Held::NotServed(name()));
    }
    let fields = doubt::lost(definition, goal);
    if !fields.is_empty() && !goal.loses_fields {
        return Err(Held::LosesFields { definition: name(), stored: stored.to_owned(), fields });
    }
    let beginning = Checkpoint::at_pass(1, &definition.uid, definition.generation, stored);
    let rewrites = !is_stored_as_wanted(definition) || goal.is_forced;
    if !rewrites && is_settled(definition) {
        return Ok(Begin::Clean(beginning));
    }
    let known = definition.checkpoint.as_ref();
    let known = known.filter(|_| !goal.is_dry && !ignores_place(definition, goal));
    // Of several API servers one may be behind the others, which must not make this longer than it is.
    let age = definition.read_at.zip(definition.written).map_or(Duration::ZERO, |(read_at, written)| {
        Duration::try_from(read_at.duration_since(written)).unwrap_or_default()
    });
    match goal.grace.checked_sub(age) {
        Some(rest) if !rest.is_zero() => Ok(Begin::Wait(rest)),
        _ if rewrites => Ok(Begin::Rewrite(beginning.or_where(known))),
        _ => Ok(Begin::Clean(beginning)),
    }
}

/// Whether another pass follows one that has done this. A write of another client leaves the object in the storage
/// version, and its managed fields as they were.
#[must_use]
pub const fn has_next(pass: u32, done: &Tally, rewrites: bool) -> bool {
    let has_left = done.uncleaned > 0 || (rewrites && done.rewritten > 0);
    (rewrites && pass == 1) || (has_left && done.failed == 0 && pass < PASSES)
}

/// Why `storedVersions` stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Kept {
    /// Objects could not be written.
    #[error("{0} objects could not be written")]
    Failed(u64),
    /// The last of all passes has still written some.
    #[error(
        "{0} objects were still stored otherwise in the last of {PASSES} passes: an API server has not seen the \
         definition, or something changes them with every write; run again"
    )]
    Unsettled(u64),
    /// It is another definition by now, or one with another spec.
    #[error("the definition has been changed meanwhile: run again")]
    Changed,
    /// It is gone.
    #[error("the definition has been deleted meanwhile")]
    Deleted,
}

impl Kept {
    /// Why, with the objects that are the reason: the first of them.
    #[must_use]
    pub fn told(&self, last: &Tally) -> String {
        match (self, &last.example) {
            (Self::Unsettled(_), Some(example)) => format!("{self} (such as {example})"),
            _ => format!("{self}{}", last.named()),
        }
    }
}

/// What the last pass leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The status says already what is to be said.
    Said,
    /// No object is stored in these versions any more: `storedVersions` becomes the storage version.
    Reduce(Vec<String>),
    /// It stays, and why.
    Keep(Kept),
}

/// What is written to the status of a definition after the last pass, by what it was at the beginning and is now. A pass
/// that `rewrites` nothing, but takes managed fields away, does not change how objects are stored, whatever comes of it.
#[must_use]
pub fn end(before: &Definition, now: Option<&Definition>, last: &Tally, rewrites: bool) -> End {
    let Some(now) = now else { return End::Keep(Kept::Deleted) };
    if now.uid != before.uid || now.is_deleted {
        return End::Keep(Kept::Deleted);
    }
    if now.generation != before.generation || now.storage_version() != before.storage_version() {
        return End::Keep(Kept::Changed);
    }
    if rewrites && last.failed > 0 {
        return End::Keep(Kept::Failed(last.failed));
    }
    if rewrites && last.rewritten > 0 {
        return End::Keep(Kept::Unsettled(last.rewritten));
    }
    let older: Vec<_> = now.older().into_iter().map(str::to_owned).collect();
    if older.is_empty() || !rewrites { End::Said } else { End::Reduce(older) }
}

/// Whether objects may have managed fields to take away. Those of versions that the definition does not have any more
/// show in the objects alone.
#[must_use]
pub fn may_clean(definition: &Definition, policy: Policy) -> bool {
    let api_version = |version: &str| definition.api_version(version);
    definition.versions.iter().any(|version| is_stale(definition, policy, &api_version(&version.name)))
}

/// Which managed fields are stale.
#[must_use]
pub fn is_stale(definition: &Definition, policy: Policy, api_version: &str) -> bool {
    let Some((group, version)) = api_version.split_once('/') else { return false };
    if group != definition.group {
        return false;
    }
    match policy {
        Policy::Keep => false,
        Policy::Unserved => !definition.serves(version),
        Policy::Others => version != definition.storage_version(),
    }
}

/// The patch that an object gets; none where it needs none.
#[must_use]
pub fn patch(
    definition: &Definition,
    policy: Policy,
    object: &ObjectMeta,
    rewrites: bool,
) -> Option<object::Patch> {
    let stale = |version: &str| is_stale(definition, policy, version);
    let api_version = definition.api_version(definition.storage_version());
    let cleaned = managed_fields::cleaned(&object.managed_fields, stale, &api_version, definition.is_alike);
    (rewrites || cleaned.is_some()).then(|| object::patch(object, cleaned))
}
