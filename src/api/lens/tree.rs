//! Taking values out of a JSON tree by pointer and putting them in.
//!
//! Presence is the point: taking the last field of an object takes the object with it, so that what remains is
//! exactly what was not asked for; an object that was empty from the start remains.

use serde_json::{Map, Value};

/// The steps of a pointer: `/spec/size` gives `spec`, `size`; the empty pointer gives none.
pub(super) fn steps(pointer: &str) -> impl Iterator<Item = &str> {
    let mut rest = pointer;
    std::iter::from_fn(move || {
        let (step, below) = split(rest)?;
        rest = below;
        Some(step)
    })
}

/// The first step of a pointer, and the pointer from there; none for the empty one.
pub(super) fn split(pointer: &str) -> Option<(&str, &str)> {
    let steps = pointer.strip_prefix('/')?;
    // Steps are short: a search for a character takes longer than to look at each byte.
    Some(steps.bytes().position(|byte| byte == b'/').map_or((steps, ""), |end| steps.split_at(end)))
}

/// Takes the value at `pointer` out of `object`, and each object on the way that is left empty by it, but not the
/// outermost one.
pub(super) fn take(object: &mut Map<String, Value>, pointer: &str) -> Option<Value> {
    let (step, rest) = split(pointer)?;
    if rest.is_empty() {
        return object.remove(step);
    }
    let child = object.get_mut(step)?.as_object_mut()?;
    let taken = take(child, rest)?;
    if child.is_empty() {
        object.remove(step);
    }
    Some(taken)
}

/// The value at `pointer`.
pub(super) fn get<'a>(object: &'a Map<String, Value>, pointer: &str) -> Option<&'a Value> {
    let mut steps = steps(pointer);
    let first = object.get(steps.next()?)?;
    steps.try_fold(first, |value, step| value.as_object()?.get(step))
}

/// Puts `value` at `pointer`, making the objects on the way and replacing what is no object.
pub(super) fn put(object: &mut Map<String, Value>, pointer: &str, value: Value) {
    match split(pointer) {
        None => {}
        Some((step, "")) => {
            object.insert(step.to_owned(), value);
        }
        Some((step, rest)) => put(object_at(object, step), rest, value),
    }
}

/// The object under `key`, made where there is none.
pub(super) fn object_at<'a>(object: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    // An entry would need the key as a text of its own, also where it is there.
    if !object.get(key).is_some_and(Value::is_object) {
        object.insert(key.to_owned(), Value::Object(Map::new()));
    }
    match object.get_mut(key) {
        Some(Value::Object(child)) => child,
        _ => unreachable!("made an object above"),
    }
}

/// Every field of `object` is in `other` with the same value.
pub(super) fn is_within(object: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    object.iter().all(|(key, value)| match (value, other.get(key)) {
        (Value::Object(mine), Some(Value::Object(theirs))) => is_within(mine, theirs),
        (value, theirs) => Some(value) == theirs,
    })
}

/// Adds to `object` what `other` has and it lacks, at every depth. What `object` has is never changed.
pub(super) fn fill(object: &mut Map<String, Value>, other: Map<String, Value>) {
    for (key, value) in other {
        match (object.get_mut(&key), value) {
            (None, value) => {
                object.insert(key, value);
            }
            (Some(Value::Object(mine)), Value::Object(theirs)) => fill(mine, theirs),
            (Some(_), _) => {}
        }
    }
}
