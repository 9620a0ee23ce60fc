//! Conversion of one object, there and back.
//!
//! Guarantees: places of fields come from the tables of the lenses, so that a new row is tried the day that it is
//! added.

pub mod edits;
pub mod forged;

use gatehouse::api::lens::Row;
use gatehouse::api::lens::memory::PREFIX;
use gatehouse::api::{Kind, Version};
use gatehouse::kinds;
use serde_json::{Map, Value};

const HUB: Version = Version::V1;
const SPOKE: Version = Version::V1Alpha1;

fn down(kind: &dyn Kind, object: &Value) -> Value {
    kind.lens().convert(object.clone(), HUB, SPOKE)
}

fn up(kind: &dyn Kind, object: &Value) -> Value {
    kind.lens().convert(object.clone(), SPOKE, HUB)
}

/// The kind that an object says it is of, where it says that version too.
fn kind_of(object: &Value, version: Version) -> Option<&'static dyn Kind> {
    let is_of_it = object["apiVersion"] == version.api_version();
    kinds::find(object["kind"].as_str()?).filter(|_| is_of_it)
}

/// Its metadata can carry annotations.
pub fn can_carry(object: &Value) -> bool {
    let is_empty_or_object = |value: &Value| matches!(value, Value::Object(_) | Value::Null);
    is_empty_or_object(&object["metadata"]) && is_empty_or_object(&object["metadata"]["annotations"])
}

/// The object without what a conversion may add and take away in its metadata.
fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    let Some(fields) = object.as_object_mut() else { return object };
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.retain(|key, _| !key.starts_with(PREFIX));
        }
        metadata.retain(|key, value| key != "annotations" || !is_nothing(value));
    }
    fields.retain(|key, value| key != "metadata" || !is_nothing(value));
    object
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

/// The rows of a kind between the two versions.
fn rows(kind: &dyn Kind) -> &'static [Row] {
    let table = kind.lens().table(SPOKE).expect("the spoke has a table");
    &table.rows
}

/// Places of single values that both versions have: in the spoke, and in the hub.
fn fields(kind: &dyn Kind) -> impl Iterator<Item = (&'static str, &'static str)> {
    rows(kind).iter().filter_map(|row| match row {
        Row::Field { spoke, hub } => Some((&**spoke, &**hub)),
        _ => None,
    })
}

/// A list that both versions have.
#[derive(Clone, Copy)]
struct List {
    spoke: &'static str,
    hub: &'static str,
    items: &'static [Row],
}

fn lists(kind: &dyn Kind) -> impl Iterator<Item = List> {
    rows(kind).iter().filter_map(|row| match row {
        Row::List { spoke, hub, items, .. } => Some(List { spoke, hub, items }),
        _ => None,
    })
}

/// Puts a value at a place, with the objects above it; false where something else is in the way.
fn put(object: &mut Value, place: &str, value: Value) -> bool {
    let mut at = object;
    for step in place.split('/').skip(1) {
        if at.is_null() {
            *at = Value::Object(Map::new());
        }
        let Some(fields) = at.as_object_mut() else { return false };
        at = fields.entry(step).or_insert(Value::Null);
    }
    *at = value;
    true
}

/// Takes the field at a place away.
fn take(object: &mut Value, place: &str) -> Option<Value> {
    let (above, name) = place.rsplit_once('/')?;
    object.pointer_mut(above)?.as_object_mut()?.remove(name)
}

/// The value without objects that have nothing in them, at any depth.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().map(|(key, value)| (key.clone(), without_empty(value)));
            Value::Object(
                kept.filter(|(_, value)| value.as_object().is_none_or(|fields| !fields.is_empty())).collect(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(without_empty).collect()),
        other => other.clone(),
    }
}

/// No empty object, of no field of the hub, stands where the spoke has an object: it goes with what the spoke has in
/// it. The API server prunes such fields before an object is stored.
pub fn is_clear(kind: &dyn Kind, hub: &Value) -> bool {
    fields(kind).all(|(spoke, _)| {
        let above = spoke.match_indices('/').skip(2).map(|(end, _)| &spoke[..end]);
        above
            .filter_map(|above| hub.pointer(above))
            .all(|value| value.as_object().is_none_or(|fields| !fields.is_empty()))
    })
}

/// Two values are the same; otherwise the message has the difference, and why they should be the same.
pub fn hold_same(found: &Value, expected: &Value, why: impl FnOnce() -> String) {
    let apart = || json_patch::diff(expected, found);
    assert!(found == expected, "{}: {}", why(), apart());
}
