//! Taking values out of a JSON tree by pointer and putting them in.
//!
//! Presence is the point: taking the last field of an object takes the object with it, so that what remains is
//! exactly what nobody asked for; an object that was empty from the start remains.

use serde_json::{Map, Value};

/// The steps of a pointer: `/spec/size` gives `spec`, `size`; the empty pointer gives none.
pub(super) fn steps(pointer: &'static str) -> impl Iterator<Item = &'static str> {
    pointer.split('/').skip(1)
}

/// Takes the value at `steps` out of `object`, and each object on the way that is left empty by it, but not the
/// outermost one.
pub(super) fn take(object: &mut Map<String, Value>, pointer: &'static str) -> Option<Value> {
    fn descend(
        object: &mut Map<String, Value>,
        mut steps: std::iter::Peekable<impl Iterator<Item = &'static str>>,
    ) -> Option<Value> {
        let step = steps.next()?;
        if steps.peek().is_none() {
            return object.shift_remove(step);
        }
        let child = object.get_mut(step)?.as_object_mut()?;
        let taken = descend(child, steps)?;
        if child.is_empty() {
            object.shift_remove(step);
        }
        Some(taken)
    }
    descend(object, steps(pointer).collect::<Vec<_>>().into_iter().peekable())
}

/// The value at `pointer`.
pub(super) fn get<'a>(object: &'a Map<String, Value>, pointer: &'static str) -> Option<&'a Value> {
    let mut steps = steps(pointer);
    let first = object.get(steps.next()?)?;
    steps.try_fold(first, |value, step| value.get(step))
}

/// Puts `value` at `pointer`, making the objects on the way and replacing what is no object.
pub(super) fn put(object: &mut Map<String, Value>, pointer: &'static str, value: Value) {
    let steps: Vec<_> = steps(pointer).collect();
    let Some((last, parents)) = steps.split_last() else {
        return;
    };
    let parent = parents.iter().fold(object, |object, step| object_at(object, step));
    parent.insert((*last).to_owned(), value);
}

/// The object under `key`, made where there is none.
pub(super) fn object_at<'a>(object: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let value = object.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(child) => child,
        _ => unreachable!("made an object above"),
    }
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
