//! Validation of objects: the gate, the command line and the controllers call this one, so that they agree.
//!
//! Guarantees: every error of an object at once, the errors of its structure and the errors of its meaning, with the
//! paths of the version that its author wrote. An error of structure hides no error of meaning, unless that depends on
//! the value at fault. An update is validated by what it changes: an error that the stored object has as well, with the
//! same value, is a warning. So an object stored before a rule existed still takes labels, status and the removal of
//! finalizers, also while it is being deleted. What changes then is validated as ever: controllers still go by it.

mod ratchet;
mod room;
mod words;

use std::borrow::Cow;
use std::collections::HashSet;

use jiff::Timestamp;
use serde_json::Value;

use super::field::{FieldError, Path, Reason, Validation, Warning};
use super::schema::StandIns;
use super::{Kind, Version};
pub use room::{BY_APPLY, LAST_APPLIED};
use words::Author;

/// An object, and the version that it is written in.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// The version of `object`.
    pub version: Version,
    /// The whole object.
    pub object: &'a Value,
}

/// A creation or an update, to be validated.
#[derive(Clone, Copy)]
pub struct Change<'a> {
    /// What is to be stored.
    pub new: Written<'a>,
    /// What is stored, on update.
    pub old: Option<Written<'a>>,
    /// The version that the author wrote, in whose paths faults are reported; the API server may have converted since.
    pub author: Version,
    /// The present.
    pub now: Timestamp,
}

/// Validates a creation or an update of a `kind`.
#[must_use]
pub fn validate(kind: &dyn Kind, change: &Change) -> Validation {
    validated(kind, change, Some(change.now))
}

/// As [`validate`], without the warnings about what is sound: they are worked out only where they are shown.
#[must_use]
pub fn errors(kind: &dyn Kind, change: &Change) -> Validation {
    validated(kind, change, None)
}

fn validated(kind: &dyn Kind, change: &Change, now: Option<Timestamp>) -> Validation {
    if let Some(fault) = room::unreadable(change) {
        // The rest of the object is not there.
        return Validation { errors: vec![fault], ..Validation::default() };
    }
    let old = change.old.map(|old| (old, hub(kind, old)));
    let author = Author::of(kind, change.author);
    let mut new = found(kind, change.new, old.as_ref().map(|(_, hub)| &**hub), &author, now);
    if let Some((written, old)) = &old
        && !new.faults.is_empty()
    {
        new = forgiven(kind, change, new, *written, old, &author);
    }
    let Found { faults, warnings, has_room, .. } = new;
    let mut validation =
        Validation { errors: faults.into_iter().map(|fault| fault.error).collect(), warnings };
    if !has_room {
        match &old {
            Some((_, old)) if !room::has_room(kind, old) => validation.warn(room::HAD_NO_ROOM),
            _ => validation.reject(room::no_room(change)),
        }
    }
    if validation.errors.len() > MOST_FAULTS {
        validation.errors.truncate(MOST_FAULTS);
        validation.warn(format!("more than {MOST_FAULTS} errors: the others are not shown"));
    }
    validation
}

/// What is new of what was found in a change of the object `old`: a fault that was there before is a warning.
fn forgiven(
    kind: &dyn Kind,
    change: &Change,
    mut new: Found,
    written: Written,
    old: &Value,
    author: &Author,
) -> Found {
    let object = hub(kind, change.new);
    let faults = schema_faults(kind, Version::V1, old);
    let mut known_by = Cow::Borrowed(old);
    if !faults.is_empty() && faults.len() <= MOST_FAULTS {
        // The rules about changes need a stored object that can be decoded. What has to be replaced in it is taken from
        // the new one, so that it is no change.
        let schema = kind.schemas().of(Version::V1);
        let sound = schema
            .sound(&object, StandIns::First, None)
            .map_or(Cow::Borrowed(&*object), |it| Cow::Owned(it.object));
        if let Some(stored) = schema.sound(old, StandIns::First, Some(&sound)) {
            known_by = Cow::Owned(stored.object);
            let again = found(kind, change.new, Some(&known_by), author, None);
            new = Found { warnings: new.warnings, ..again };
        }
    }
    // Where there are too many faults to look for more, what is edited has to be made whole.
    if new.is_whole || object.get("spec") == old.get("spec") {
        // Not as if it were new: what may no longer be made may well be there, and excuses nothing then.
        let known = found(kind, written, Some(&known_by), author, None).faults;
        let now: ratchet::Objects = [(change.new.version, change.new.object), (Version::V1, &object)];
        let before: ratchet::Objects = [(written.version, written.object), (Version::V1, old)];
        ratchet::ratchet(&mut new, now, &known, before);
    }
    new
}

/// More faults than these do not help, and make an answer that is larger than the question.
const MOST_FAULTS: usize = 100;

/// Validates an object that is stored, as a change that changes nothing, but without forgiving what was there before:
/// so the controllers meet an object that was stored before a rule existed.
#[must_use]
pub fn stored(kind: &dyn Kind, object: Written) -> Validation {
    let author = Author::of(kind, object.version);
    let Found { faults, warnings, .. } = found(kind, object, Some(&hub(kind, object)), &author, None);
    Validation { errors: faults.into_iter().map(|fault| fault.error).collect(), warnings }
}

/// The object in the hub's version.
#[must_use]
pub fn hub<'a>(kind: &dyn Kind, written: Written<'a>) -> Cow<'a, Value> {
    match written.version {
        Version::V1 => Cow::Borrowed(written.object),
        version @ Version::V1Alpha1 => {
            Cow::Owned(kind.lens().convert(written.object.clone(), version, Version::V1))
        }
    }
}

/// A fault, and where it was found.
struct Fault {
    /// In the paths of the author.
    error: FieldError,
    /// The version whose rule it is.
    version: Version,
    /// The field in that version.
    path: Path,
}

/// What was found in an object.
struct Found {
    faults: Vec<Fault>,
    warnings: Vec<Warning>,
    /// All of it could be validated.
    is_whole: bool,
    /// The spoke can show it, as far as that matters for its version.
    has_room: bool,
}

/// All that is wrong with an object, in its author's paths; where that is too much, as much as shows that it is.
fn found(
    kind: &dyn Kind,
    new: Written,
    old: Option<&Value>,
    author: &Author,
    now: Option<Timestamp>,
) -> Found {
    let object = hub(kind, new);
    let structure = schema_faults(kind, Version::V1, &object);
    let is_whole = structure.len() <= MOST_FAULTS;
    let meaning = if is_whole { meaning(kind, &object, &structure, old, now) } else { Meaning::default() };
    // What its schema refuses could take any amount of memory there: only what is sound is converted.
    let sound = meaning.sound.as_ref().unwrap_or(&object);
    let has_room = !is_whole || new.version != Version::V1 || room::has_room(kind, sound);

    let mut faults = match new.version {
        Version::V1Alpha1 => {
            let of_spoke = schema_faults(kind, new.version, new.object).into_iter();
            of_spoke.map(|error| Fault { path: error.path.clone(), version: new.version, error }).collect()
        }
        Version::V1 => Vec::new(),
    };
    let is_above =
        |faults: &[Fault], path: &Path| faults.iter().any(|fault| fault.error.path.is_within(path));
    let is_there = |faults: &[Fault], path: &Path| faults.iter().any(|fault| fault.error.path == *path);
    add(&mut faults, structure, author, is_above);
    add(&mut faults, meaning.validation.errors, author, is_there);
    let warnings = meaning.validation.warnings.iter().map(|warning| author.warning(warning)).collect();
    Found { is_whole: is_whole && faults.len() <= MOST_FAULTS, faults, warnings, has_room }
}

/// Adds faults of the hub, as far as there is room. A second complaint about one value does not help: a fault is left
/// out where the earlier ones cover its field.
fn add(
    faults: &mut Vec<Fault>,
    of_hub: Vec<FieldError>,
    author: &Author,
    is_covered: impl Fn(&[Fault], &Path) -> bool,
) {
    let room = (MOST_FAULTS + 1).saturating_sub(faults.len());
    let of_author = |error: FieldError| Fault {
        path: error.path.clone(),
        version: Version::V1,
        error: author.error(error),
    };
    let news = of_hub.into_iter().map(of_author).filter(|fault| !is_covered(faults, &fault.error.path));
    let news: Vec<_> = news.take(room).collect();
    faults.extend(news);
}

/// What the rules of a kind say of an object.
#[derive(Default)]
struct Meaning {
    validation: Validation,
    /// The object that was validated in place of one that cannot be decoded.
    sound: Option<Cow<'static, Value>>,
}

/// What an object means, whatever its schema refuses of it. Stand-ins take the place of what cannot be decoded, and the
/// rules are asked twice with others: what they say both times does not depend on them.
fn meaning(
    kind: &dyn Kind,
    object: &Value,
    structure: &[FieldError],
    old: Option<&Value>,
    now: Option<Timestamp>,
) -> Meaning {
    let schema = kind.schemas().of(Version::V1);
    let first = (!structure.is_empty()).then(|| schema.sound(object, StandIns::First, None)).flatten();
    let Some(first) = first else {
        return Meaning { validation: kind.validate(object, old, now), sound: None };
    };
    let mut validation = kind.validate(&first.object, old, now);
    if let Some(second) = schema.sound(object, StandIns::Second, None) {
        let other = kind.validate(&second.object, old, now);
        let is_replaced = |path: &Path| first.replaced.iter().any(|place| path.is_within(place));
        let mut names = HashSet::new();
        first
            .replaced
            .iter()
            .filter_map(|place| place.value(object))
            .for_each(|value| texts(value, &mut names));
        // A name may be the name of what was replaced.
        let is_name =
            |path: &Path| path.value(object).and_then(Value::as_str).is_some_and(|name| names.contains(name));
        let is_sure = |fault: &FieldError| {
            !(is_replaced(&fault.path) || fault.reason == Reason::Invalid && is_name(&fault.path))
        };
        validation.errors.retain(|fault| other.errors.contains(fault) && is_sure(fault));
        validation.warnings.retain(|warning| other.warnings.contains(warning));
    }
    Meaning { validation, sound: Some(Cow::Owned(first.object)) }
}

/// All texts in a value.
fn texts<'a>(value: &'a Value, found: &mut HashSet<&'a str>) {
    match value {
        Value::Object(fields) => fields.values().for_each(|value| texts(value, found)),
        Value::Array(items) => items.iter().for_each(|value| texts(value, found)),
        Value::String(text) => {
            found.insert(text);
        }
        _ => {}
    }
}

fn schema_faults(kind: &dyn Kind, version: Version, object: &Value) -> Vec<FieldError> {
    kind.schemas().of(version).faults(object, MOST_FAULTS + 1)
}

#[cfg(test)]
mod tests;
