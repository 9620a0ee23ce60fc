//! Defaults of absent fields, written into objects, so that users see them and a later release does not change them.
//!
//! Guarantees: a new object gets what the version of its author promised; every later write that leaves such a field
//! out keeps the value that is stored, with a warning. Adds only what is absent or null; a second pass adds nothing
//! and says nothing. What was stored without such a field, while no gate was there, stays without it.
//!
//! Why later writes too: `kubectl replace` with the manifest of the creation, and a manager that gives a field up
//! under server-side apply, leave out what creation wrote. Neither asks for another value.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::field::{LONGEST_WARNING, Path, Segment, Warning};
use super::validation::{self, Change};
use super::{Kind, Version};

/// What the value of an absent field depends on.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The object, in the hub version.
    pub object: &'a Value,
    /// What is stored, in the hub version; none at creation.
    pub stored: Option<&'a Value>,
    /// The version that the author used.
    pub written: Version,
}

/// A field that objects have once they are stored.
#[derive(Debug)]
pub struct Field {
    path: &'static [&'static str],
    beside: Option<&'static [&'static str]>,
    value: fn(&Context) -> Option<Value>,
    warnings: fn(&Context) -> Vec<Warning>,
}

impl Field {
    /// A field of the hub version at `path`, and what is written where an object has never had it; none where its
    /// author has to give it.
    #[must_use]
    pub const fn new(path: &'static [&'static str], value: fn(&Context) -> Option<Value>) -> Self {
        Self { path, beside: None, value, warnings: |_| Vec::new() }
    }

    /// Written only into objects that have that other field.
    #[must_use]
    pub const fn beside(self, other: &'static [&'static str]) -> Self {
        Self { beside: Some(other), ..self }
    }

    /// What the author is warned of where the value is written for the first time.
    #[must_use]
    pub const fn warning(self, warnings: fn(&Context) -> Vec<Warning>) -> Self {
        Self { warnings, ..self }
    }

    /// The value of the field where it is absent and has to be written, and what to say of that.
    fn missing(&self, context: &Context) -> Option<Missing> {
        let has = |path| get(context.object, path).is_some();
        if has(self.path) || self.beside.is_some_and(|other| !has(other)) {
            return None;
        }
        let value = (self.value)(context)?;
        let Some(stored) = context.stored else {
            return Some(Missing::Defaulted(value, (self.warnings)(context)));
        };
        match get(stored, self.path) {
            Some(kept) => Some(Missing::Kept(kept.clone())),
            // What comes with another field is written when that field comes.
            None if self.beside.is_some_and(|other| get(stored, other).is_none()) => {
                Some(Missing::Defaulted(value, (self.warnings)(context)))
            }
            None => None,
        }
    }

    /// Where the field is, in its author's words.
    fn path_for(&self, kind: &dyn Kind, written: Version) -> Path {
        let hub = Path::from(self.path.iter().map(|step| Segment::Field((*step).into())).collect::<Vec<_>>());
        kind.lens().table(written).and_then(|table| table.path(&hub)).unwrap_or(hub)
    }
}

/// The value of a field that is absent.
enum Missing {
    /// It is the one that is stored.
    Kept(Value),
    /// The object has never had one, and this is what to say of it.
    Defaulted(Value, Vec<Warning>),
}

/// What was written for absent fields, without their values but in the warnings, which are for the author alone.
#[derive(Clone, Debug, Default)]
pub struct Additions {
    /// The message for the author.
    pub warnings: Vec<Warning>,
    /// Fields that keep the stored value, in the author's paths.
    pub kept: Vec<Path>,
    /// Fields that were written for the first time, in the author's paths.
    pub defaulted: Vec<Path>,
}

/// The warning that an absent field keeps its value.
fn stays(path: &Path, value: &Value) -> Warning {
    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Warning::new(format!("{path}: not given, stays {value}"))
}

/// The object that a change is to store, in the hub version: what its author wrote, what the author's version cannot
/// say, and what absent fields mean. `change.old` is none at creation.
#[must_use]
pub fn completed<'a>(kind: &dyn Kind, change: &Change<'a>) -> (Cow<'a, Value>, Additions) {
    let mut object = validation::hub(kind, change.new);
    let stored = change.old.map(|old| validation::hub(kind, old));
    let mut warnings = Vec::new();
    if let Some(table) = kind.lens().table(change.author) {
        keep_status(&mut object, stored.as_deref());
        if let Some(stored) = &stored {
            let mut written = object.into_owned();
            keep_room(&mut written, stored);
            let (whole, carried) = table.carry(written, stored);
            object = Cow::Owned(whole);
            warnings.extend(carried.is_stale.then(|| Warning::new(STALE)));
            warnings.extend(carried.lost.map(replaced));
        }
    }
    let mut additions = add(kind, &mut object, stored.as_deref(), change.author);
    warnings.append(&mut additions.warnings);
    if change.author != Version::V1 {
        let context = Context { object: &object, stored: stored.as_deref(), written: change.author };
        warnings.extend(kind.changed_meanings(&context));
    }
    (object, Additions { warnings, ..additions })
}

/// The warning for an author of the old version whose annotations are not those of the stored object.
const STALE: &str = "metadata.annotations: conversion.gatehouse.dev/* are read at creation alone; \
                     change through v1 what only v1 can say";

const _: () = assert!(STALE.len() <= LONGEST_WARNING, "its end would be cut");

/// The warning that an item of a list is taken for another one than that whose place it has.
fn replaced(list: &str) -> Warning {
    let list = list.trim_start_matches('/').replace('/', ".");
    Warning::new(format!("{list}: a new item replaces another one, and what only v1 says of that is gone"))
}

/// A write of an object leaves its status as it is, and a new object has none. The API server sees to that after us, but
/// in the version of the request, where parts of the status ride in annotations that the author may have left out or
/// made up.
fn keep_status(hub: &mut Cow<Value>, stored: Option<&Value>) {
    let kept = stored.and_then(|stored| stored.get("status"));
    if hub.get("status") == kept {
        return;
    }
    let Value::Object(fields) = hub.to_mut() else { return };
    match kept {
        Some(status) => fields.insert("status".to_owned(), status.clone()),
        None => fields.remove("status"),
    };
}

/// A spec that is left out as a whole keeps what is stored as well, and a part that is not there has no place for it.
fn keep_room(hub: &mut Value, stored: &Value) {
    let has_spec = stored.get("spec").is_some_and(Value::is_object);
    if let (Value::Object(fields), true) = (hub, has_spec) {
        let spec = fields.entry("spec").or_insert(Value::Null);
        if spec.is_null() {
            *spec = Value::Object(Map::new());
        }
    }
}

/// Writes into an object in the hub version what its absent fields mean. `written` is the version that its author
/// used; `stored` is what is stored, none at creation.
pub fn complete(kind: &dyn Kind, object: &mut Value, stored: Option<&Value>, written: Version) -> Additions {
    let mut whole = Cow::Owned(std::mem::take(object));
    let additions = add(kind, &mut whole, stored, written);
    *object = whole.into_owned();
    additions
}

/// As [`complete`]. An object that lacks nothing is not copied.
fn add(kind: &dyn Kind, object: &mut Cow<Value>, stored: Option<&Value>, written: Version) -> Additions {
    let mut all = Additions::default();
    for field in kind.defaults() {
        let Some(missing) = field.missing(&Context { object, stored, written }) else { continue };
        let path = field.path_for(kind, written);
        let (value, warnings, fields) = match missing {
            Missing::Kept(value) => {
                let warning = stays(&path, &value);
                (value, vec![warning], &mut all.kept)
            }
            Missing::Defaulted(value, warnings) => (value, warnings, &mut all.defaulted),
        };
        if put(object.to_mut(), field.path, value) {
            fields.push(path);
            all.warnings.extend(warnings);
        }
    }
    all
}

/// The value at `path`; none where it is null.
fn get<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, step| value.as_object()?.get(*step)).filter(|value| !value.is_null())
}

/// Writes a value, with the objects above it. False where what stands above is no object: that is for the schema to
/// refuse.
fn put(object: &mut Value, path: &[&str], value: Value) -> bool {
    let mut place = object;
    for step in path {
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
        let Some(fields) = place.as_object_mut() else { return false };
        place = fields.entry(*step).or_insert(Value::Null);
    }
    *place = value;
    true
}
