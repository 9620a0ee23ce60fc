//! How an object of ours deviates from its manifest. Pure.
//!
//! Three questions decide, for every kind of object alike:
//!
//! - Is a field of the manifest missing, or does it have another value? An apply with force restores it.
//! - Has a selector or the data of a ConfigMap more keys than the manifest? More keys change the meaning there, and an
//!   apply with force replaces a selector as a whole.
//! - Did another client add a field, or an element of a list, that the manifest does not have? Managed fields answer
//!   that: they name no manager for a default of the API server or for a change that a webhook made to our own write.
//!   Server-side apply never removes a field of another manager, so a [repair] removes it: a merge patch.
//!
//! Guarantees: an object that this manifest was applied to, and that no other client has changed since, does not
//! deviate. A field with the default value of the API server is no deviation, whichever client wrote it.
//! Assumes: lists that server-side apply merges are recognized by the keys that managed fields name.
//! Never: looks at the status, or at labels, annotations and finalizers of others; [`fields::OPEN`] lists the other fields
//! that belong to other clients.

mod fields;

use kube::Resource;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::api::quantity::Quantity;
use fields::{DEFAULTS, EXACT, OPEN, QUANTITIES, UNREAD};

/// How an object deviates; the later outweighs the earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deviation {
    /// Not at all.
    #[default]
    Nothing,
    /// Some of the manifest is missing: an apply with force restores it.
    Missing,
    /// Another client added something: a [repair] removes it.
    Added,
}

/// How `actual`, a whole object, deviates from `wanted`, which `manager` applies.
pub(super) fn between(wanted: &Value, actual: &Value, manager: &str) -> Deviation {
    if !added(wanted, actual, manager).is_empty() {
        return Deviation::Added;
    }
    if is_missing(wanted, actual) || replaces(wanted, actual, manager) {
        return Deviation::Missing;
    }
    Deviation::Nothing
}

/// Whether some of `wanted` is missing of `actual`, a whole object.
pub(super) fn is_missing(wanted: &Value, actual: &Value) -> bool {
    let metadata = wanted.as_object().and_then(|fields| fields.get_key_value("metadata"));
    let lacks =
        |part: &str, wanted| !actual.get(part).is_some_and(|actual| is_covered(part, actual, wanted, false));
    parts(wanted).chain(metadata).any(|(part, wanted)| lacks(part, wanted))
}

/// The fields of a merge patch that makes of `actual` what `wanted` says, without what other clients added.
pub(super) fn repair(wanted: &Value, actual: &Value, manager: &str) -> Map<String, Value> {
    let mut repaired = actual.clone();
    for place in added(wanted, actual, manager) {
        if let Some(added) = repaired.pointer_mut(&place) {
            *added = Value::Null;
        }
    }
    purge(&mut repaired);
    for (part, wanted) in parts(wanted) {
        overlay(&mut repaired[part.as_str()], wanted);
    }
    let patch = difference(actual, &repaired);
    patch.into_iter().filter(|(part, _)| !UNREAD.contains(&part.as_str())).collect()
}

/// The merge patch that removes what other clients than `manager` added to `live`, as it was seen; none: nothing.
pub fn removal<K: Resource + Serialize>(wanted: &K, live: &K, manager: &str) -> Option<Value> {
    let actual = serde_json::to_value(live).ok()?;
    let wanted = serde_json::to_value(wanted).ok()?;
    if added(&wanted, &actual, manager).is_empty() {
        return None;
    }
    let mut patch = repair(&wanted, &actual, manager);
    let version = live.meta().resource_version.clone();
    patch.insert("metadata".to_owned(), json!({"resourceVersion": version}));
    Some(Value::Object(patch))
}

/// The fields of an object beside its type, its metadata and its status.
fn parts(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten().filter(|(part, _)| !UNREAD.contains(&part.as_str()))
}

/// The names of the other managers in `actual`, with the trees of the fields that they own. Ours is among them with what
/// it merged: an apply no longer removes that.
fn trees<'a>(actual: &'a Value, manager: &str) -> impl Iterator<Item = (&'a str, &'a Map<String, Value>)> {
    let entries = actual.pointer("/metadata/managedFields").and_then(Value::as_array);
    let is_ours = move |entry: &Value| entry["manager"] == manager && entry["operation"] == "Apply";
    let others = entries.into_iter().flatten();
    let others = others.filter(move |entry| entry.get("subresource").is_none() && !is_ours(entry));
    others.filter_map(|entry| Some((entry.get("manager")?.as_str()?, entry.get("fieldsV1")?.as_object()?)))
}

/// What other managers added to `actual`, as JSON pointers.
fn added(wanted: &Value, actual: &Value, manager: &str) -> Vec<String> {
    walked(wanted, actual, manager).flat_map(|walk| walk.added).collect()
}

/// Whether another manager has replaced a list or a map as a whole by one that is not as wanted.
fn replaces(wanted: &Value, actual: &Value, manager: &str) -> bool {
    walked(wanted, actual, manager).any(|walk| walk.is_replaced)
}

/// Whether another client than `manager` owns a field of `wanted` in `actual`: it may have written another value than we
/// did, whatever that was.
pub(super) fn has_other_owner(wanted: &Value, actual: &Value, manager: &str) -> bool {
    walked(wanted, actual, manager).any(|walk| walk.manager != manager && walk.is_owner)
}

fn walked<'a>(wanted: &'a Value, actual: &'a Value, manager: &str) -> impl Iterator<Item = Walk<'a>> {
    let kind = wanted["kind"].as_str().unwrap_or_default();
    trees(actual, manager).map(move |(manager, tree)| {
        let mut walk = Walk { kind, manager, ..Walk::default() };
        for (key, below) in tree.iter().filter(|(key, _)| key.strip_prefix("f:").is_some_and(is_read)) {
            walk.field(key, below, (wanted, actual), "");
        }
        walk
    })
}

/// Whether a field of an object is compared in all that is in it.
fn is_read(part: &str) -> bool {
    !UNREAD.contains(&part)
}

/// A look at the fields of another manager.
#[derive(Default)]
struct Walk<'a> {
    /// The kind of the object.
    kind: &'a str,
    /// The name of the manager.
    manager: &'a str,
    /// The place in it, with `*` for elements of lists.
    path: Vec<&'a str>,
    /// What the manager added.
    added: Vec<String>,
    /// Whether it has replaced a list or a map as a whole by one that is not as wanted.
    is_replaced: bool,
    /// Whether it owns a field that is wanted.
    is_owner: bool,
}

impl<'a> Walk<'a> {
    /// Looks at one key of a node of the tree: a field, an element of a list by its keys, or an element of a set.
    fn field(&mut self, key: &'a str, below: &'a Value, (wanted, actual): (&Value, &Value), place: &str) {
        let Some((sort, key)) = key.split_once(':') else { return };
        let (name, found, wanted) = match sort {
            "f" => (key, actual.get(key).map(|value| (escaped(key), value)), wanted.get(key)),
            "k" => ("*", element(actual, key), element(wanted, key).map(|(_, value)| value)),
            "v" => ("*", member(actual, key), member(wanted, key).map(|(_, value)| value)),
            _ => return,
        };
        let Some((at, actual)) = found else { return };
        self.path.push(name);
        let is_open = OPEN.iter().any(|(kind, path)| *kind == self.kind && *path == self.path);
        let place = format!("{place}/{at}");
        let is_quantity = self.path.iter().any(|name| QUANTITIES.contains(name));
        match wanted {
            _ if is_open => {}
            None if is_default(name, actual) => {}
            None => self.added.push(place),
            Some(wanted) if is_leaf(below) => {
                self.is_owner = true;
                self.is_replaced |= !is_alike(actual, wanted, is_quantity);
            }
            Some(wanted) => {
                for (key, below) in below.as_object().into_iter().flatten() {
                    self.field(key, below, (wanted, actual), &place);
                }
            }
        }
        self.path.pop();
    }
}

/// The name of a field as JSON pointers have it.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The element of a list that has these keys, as managed fields name it, and its index.
fn element<'a>(list: &'a Value, keys: &str) -> Option<(String, &'a Value)> {
    let keys: Map<String, Value> = serde_json::from_str(keys).ok()?;
    let has = |one: &Value| {
        keys.iter().all(|(name, value)| match one.get(name) {
            Some(found) => found == value,
            None => is_default(name, value),
        })
    };
    let found = list.as_array()?.iter().enumerate().find(|(_, one)| has(one));
    found.map(|(index, one)| (index.to_string(), one))
}

/// The element of a set that has this value, and its index.
fn member<'a>(list: &'a Value, value: &str) -> Option<(String, &'a Value)> {
    let value: Value = serde_json::from_str(value).ok()?;
    let found = list.as_array()?.iter().enumerate().find(|(_, one)| **one == value);
    found.map(|(index, one)| (index.to_string(), one))
}

/// Whether a manager owns a field as a whole.
fn is_leaf(tree: &Value) -> bool {
    tree.as_object().is_none_or(Map::is_empty)
}

/// Takes out each null, which no object of the API has.
fn purge(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(purge);
        }
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            items.iter_mut().for_each(purge);
        }
        _ => {}
    }
}

/// Writes what is wanted over what is there. A list is written as a whole where some of it is missing.
fn overlay(actual: &mut Value, wanted: &Value) {
    if let (Value::Object(actual), Value::Object(wanted)) = (&mut *actual, wanted) {
        for (name, wanted) in wanted.iter().filter(|(_, wanted)| !is_zero(wanted)) {
            overlay(actual.entry(name).or_insert(Value::Null), wanted);
        }
        return;
    }
    let length = |value: &Value| value.as_array().map(Vec::len);
    if length(actual) != length(wanted) || !covers(actual, wanted, false) {
        *actual = with_authorities(wanted, actual);
    }
}

/// A list that is to be written, with the authorities that another client wrote into its elements.
fn with_authorities(wanted: &Value, actual: &Value) -> Value {
    let mut wanted = wanted.clone();
    for one in wanted.as_array_mut().into_iter().flatten() {
        let theirs = actual.as_array().into_iter().flatten();
        let mut theirs = theirs.filter(|other| other.get("name") == one.get("name"));
        let bundle = theirs.find_map(|other| other.pointer("/clientConfig/caBundle"));
        if let (Some(bundle), Some(Value::Object(client))) = (bundle, one.get_mut("clientConfig")) {
            client.entry("caBundle").or_insert_with(|| bundle.clone());
        }
    }
    wanted
}

/// The merge patch that makes the second object of the first one.
fn difference(before: &Value, after: &Value) -> Map<String, Value> {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else { return Map::new() };
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    let gone = gone.map(|name| (name.clone(), Value::Null));
    let changed = after.iter().filter_map(|(name, after)| match before.get(name) {
        Some(before) if before == after => None,
        Some(before) if before.is_object() && after.is_object() => {
            Some((name.clone(), Value::Object(difference(before, after))))
        }
        _ => Some((name.clone(), after.clone())),
    });
    gone.chain(changed).collect()
}

/// Whether the value of a field is what the API server fills in, or leaves out.
fn is_default(name: &str, value: &Value) -> bool {
    match value {
        _ if is_zero(value) => true,
        Value::Object(fields) => fields.iter().all(|(name, value)| is_default(name, value)),
        Value::Array(_) => false,
        scalar => {
            let text = scalar.to_string();
            DEFAULTS.iter().any(|(field, default)| *field == name && text == *default)
        }
    }
}

/// Whether all of a field of that name is there, and nothing besides where more has another meaning.
fn is_covered(name: &str, actual: &Value, wanted: &Value, quantities: bool) -> bool {
    let has_more = EXACT.contains(&name) && size(actual) != size(wanted);
    !has_more && covers(actual, wanted, quantities || QUANTITIES.contains(&name))
}

/// Whether all of `wanted` is in `actual`. `quantities` is set below a field that has such.
fn covers(actual: &Value, wanted: &Value, quantities: bool) -> bool {
    match (actual, wanted) {
        (Value::Object(actual), Value::Object(wanted)) => wanted.iter().all(|(name, wanted)| {
            let is_covered = |actual| is_covered(name, actual, wanted, quantities);
            actual.get(name).map_or_else(|| is_zero(wanted), is_covered)
        }),
        (Value::Array(actual), Value::Array(wanted)) if wanted.iter().any(Value::is_object) => {
            wanted.iter().all(|wanted| actual.iter().any(|actual| covers(actual, wanted, quantities)))
        }
        (Value::String(actual), Value::String(wanted)) if quantities => {
            let amount = |text: &str| Quantity::from(text).amount().ok();
            actual == wanted || (amount(wanted).is_some() && amount(actual) == amount(wanted))
        }
        _ => actual == wanted,
    }
}

/// Whether all of `wanted` is in `actual`, and nothing but defaults besides.
fn is_alike(actual: &Value, wanted: &Value, quantities: bool) -> bool {
    match (actual, wanted) {
        (Value::Object(actual), Value::Object(wanted)) => {
            let mut more = actual.iter().filter(|(name, _)| !wanted.contains_key(*name));
            more.all(|(name, value)| is_default(name, value))
                && wanted.iter().all(|(name, wanted)| {
                    let quantities = quantities || QUANTITIES.contains(&name.as_str());
                    let is_alike = |actual| is_alike(actual, wanted, quantities);
                    actual.get(name).map_or_else(|| is_zero(wanted), is_alike)
                })
        }
        (Value::Array(actual), Value::Array(wanted)) => {
            actual.len() == wanted.len()
                && actual.iter().zip(wanted).all(|(actual, wanted)| is_alike(actual, wanted, quantities))
        }
        _ => covers(actual, wanted, quantities),
    }
}

/// How many fields an object has.
fn size(value: &Value) -> Option<usize> {
    value.as_object().map(Map::len)
}

/// Whether it is what Go leaves out of JSON where a field says `omitempty`.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[cfg(test)]
mod tests;
