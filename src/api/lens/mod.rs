//! Conversion as a table: each row says where a field of a spoke lives in the hub, which is `v1`. Each other version
//! has a table of its own; between two of them an object goes by way of the hub. Tables are values: they may be written
//! in the code or read at run time.
//!
//! Guarantees, for objects of any content, whole or partial:
//! - total: no content makes a conversion fail; what cannot be translated is carried over as it is;
//! - nothing is invented: an absent field stays absent, nothing is defaulted, nothing validated, and no part of an
//!   object (`spec`, `status`) appears that was not there;
//! - lossless: hub → spoke → hub gives the same object. What the spoke cannot say rides in annotations
//!   ([`memory`]), together with a digest of what the spoke showed in its place. An edit made through the spoke
//!   therefore wins over them, and only over the fields that it touched;
//! - deterministic: no clock, no randomness.
//!
//! Why so strict: under server-side apply the API server converts *parts* of objects
//! (kubernetes/website#53915), one object that fails makes every list fail, and a default written by a conversion
//! becomes a field that some manager is said to own.

mod assign;
mod engine;
pub mod memory;
mod path;
mod tree;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Version;
use memory::{Loss, Memory};

/// A place or a name in a table.
pub type Text = Cow<'static, str>;

/// One row of a table. Places are JSON pointers from the object's root, or from the item's for rows of a list.
#[derive(Clone, Debug)]
pub enum Row {
    /// The same value in another place, or in the same one.
    Field {
        /// Where the spoke has it. Empty in a list row: the item itself.
        spoke: Text,
        /// Where the hub has it.
        hub: Text,
    },
    /// The same meaning, written otherwise.
    Value {
        /// Where the spoke has it.
        spoke: Text,
        /// Where the hub has it.
        hub: Text,
        /// How the values map.
        translation: Translation,
    },
    /// Lists of which one item corresponds to one item, in order.
    List {
        /// Where the spoke has it.
        spoke: Text,
        /// Where the hub has it.
        hub: Text,
        /// How the fields of an item map.
        items: Cow<'static, [Self]>,
        /// The key that items of the hub need and those of the spoke lack.
        name: Option<ItemName>,
    },
    /// An object of the spoke whose fields have rows of their own: this one keeps it when it is empty.
    Object {
        /// Where the spoke has it.
        spoke: Text,
        /// Where the hub has it.
        hub: Text,
    },
    /// What only the hub can say.
    HubOnly {
        /// Where the hub has it.
        hub: Text,
    },
}

/// A pair of functions for one value. Each returns `None` for a value that it does not understand; such a value is
/// carried over as it is.
#[derive(Clone, Copy, Debug)]
pub struct Translation {
    /// Spoke to hub.
    pub to_hub: fn(&Value) -> Option<Value>,
    /// Hub to spoke. May be coarser: the hub's value is remembered where the way back gives another.
    pub to_spoke: fn(&Value) -> Option<Value>,
}

/// How items of a hub list are named when the spoke's have no name: `prefix` and the position.
#[derive(Clone, Debug)]
pub struct ItemName {
    /// The field that holds the name.
    pub field: Text,
    /// What stands before the number.
    pub prefix: Text,
}

/// The same field in the same place.
#[must_use]
pub const fn same(place: &'static str) -> Row {
    rename(place, place)
}

/// The same value in another place.
#[must_use]
pub const fn rename(spoke: &'static str, hub: &'static str) -> Row {
    Row::Field { spoke: Cow::Borrowed(spoke), hub: Cow::Borrowed(hub) }
}

/// A field that only the hub has.
#[must_use]
pub const fn hub_only(hub: &'static str) -> Row {
    Row::HubOnly { hub: Cow::Borrowed(hub) }
}

/// The same meaning, written otherwise.
#[must_use]
pub const fn translated(spoke: &'static str, hub: &'static str, translation: Translation) -> Row {
    Row::Value { spoke: Cow::Borrowed(spoke), hub: Cow::Borrowed(hub), translation }
}

/// Lists of which one item corresponds to one item.
#[must_use]
pub const fn list(
    spoke: &'static str,
    hub: &'static str,
    items: &'static [Row],
    name: Option<ItemName>,
) -> Row {
    Row::List { spoke: Cow::Borrowed(spoke), hub: Cow::Borrowed(hub), items: Cow::Borrowed(items), name }
}

/// An object whose fields have rows of their own.
#[must_use]
pub const fn object(spoke: &'static str, hub: &'static str) -> Row {
    Row::Object { spoke: Cow::Borrowed(spoke), hub: Cow::Borrowed(hub) }
}

impl Row {
    /// Where the hub has it.
    #[must_use]
    pub fn hub(&self) -> &str {
        match self {
            Self::Field { hub, .. }
            | Self::Value { hub, .. }
            | Self::List { hub, .. }
            | Self::Object { hub, .. }
            | Self::HubOnly { hub } => hub,
        }
    }

    /// The spoke may show it coarser than it is.
    const fn is_coarse(&self) -> bool {
        matches!(self, Self::Value { .. } | Self::List { .. })
    }

    /// Where the spoke has it, if it has.
    #[must_use]
    pub fn spoke(&self) -> Option<&str> {
        match self {
            Self::Field { spoke, .. }
            | Self::Value { spoke, .. }
            | Self::List { spoke, .. }
            | Self::Object { spoke, .. } => Some(spoke),
            Self::HubOnly { .. } => None,
        }
    }
}

/// How a spoke maps on the hub.
#[derive(Clone, Debug)]
pub struct Table {
    /// The order of rows has no meaning.
    pub rows: Cow<'static, [Row]>,
}

/// How the versions of a kind map on each other.
#[derive(Clone, Debug)]
pub struct Lens {
    /// A table for each version but the hub's.
    pub spokes: Cow<'static, [(Version, Table)]>,
}

/// The top-level fields that no lens changes.
pub const ENVELOPE: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The parts of an object that a lens changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parts {
    /// Every top-level field but `apiVersion`, `kind` and `metadata`.
    pub fields: Map<String, Value>,
    /// The loss annotations, none in the hub.
    pub loss: Loss,
}

/// How many bytes the loss annotations of an object may take. What is certain without reading its other annotations
/// is mostly enough.
pub struct Room<'a> {
    /// At least so many.
    pub surely: usize,
    /// So many, worked out from all other annotations.
    pub exactly: &'a dyn Fn() -> usize,
}

/// The warnings about what [`Table::carry`] returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried<'a> {
    /// The annotations that came with the object would have said something else of fields that the spoke has no place
    /// for.
    pub is_stale: bool,
    /// A list of the spoke of which an item is like none of those that were there, while what the hub says of one of
    /// these is not given back to any.
    pub lost: Option<&'a str>,
}

impl Table {
    /// A table that is written in the code.
    #[must_use]
    pub const fn of(rows: &'static [Row]) -> Self {
        Self { rows: Cow::Borrowed(rows) }
    }

    /// The spoke's parts as the hub's.
    #[must_use]
    pub fn to_hub(&self, parts: Parts) -> Parts {
        let memory = Memory::from_annotations(&self.rows, &parts.loss);
        Parts { fields: engine::to_hub(&self.rows, parts.fields, memory), loss: Loss::new() }
    }

    /// The hub's parts as the spoke's. Loss annotations for which there is no `room` are replaced by a marker, see
    /// [`memory::Memory::to_annotations`].
    #[must_use]
    pub fn to_spoke(&self, parts: Parts, room: &Room) -> Parts {
        let (fields, memory) = engine::to_spoke(&self.rows, parts.fields);
        Parts { fields, loss: memory.to_annotations(room) }
    }

    /// The path in the spoke of a field of the hub: the field itself, or the nearest that the spoke has.
    /// `None` where the spoke has no such field at all.
    #[must_use]
    pub fn path(&self, hub: &super::field::Path) -> Option<super::field::Path> {
        path::to_spoke(&self.rows, hub)
    }

    /// The path in the spoke of the first field that lies in an object of the hub: what its author has to give where
    /// that object is missing. `None` where the spoke has no field in it.
    #[must_use]
    pub fn path_into(&self, hub: &super::field::Path) -> Option<super::field::Path> {
        path::into_spoke(&self.rows, hub)
    }

    /// Gives an object that came through the spoke back what only the hub can say, from the object that is stored,
    /// both in the hub's version. Items of a list keep their names wherever they are in it: other fields of the hub may
    /// refer to them by these.
    ///
    /// Whatever annotations came with it say nothing here: a `kubectl replace` with a manifest of the spoke has none
    /// and does not ask that everything else be dropped, and a manifest that was exported long ago has old ones.
    #[must_use]
    pub fn carry(&self, object: Value, stored: &Value) -> (Value, Carried<'_>) {
        let (Value::Object(fields), Value::Object(stored)) = (&object, stored) else {
            return (object, Carried::default());
        };
        let (shown, said) = engine::to_spoke(&self.rows, parts_of(fields));
        let stored = parts_of(stored);
        let (_, mut kept) = engine::to_spoke(&self.rows, stored.clone());
        engine::remember_names(&self.rows, &stored, &mut kept);
        if said.is_empty() && kept.is_empty() {
            return (object, Carried::default());
        }
        let is_stale = !tree::is_within(&said.only, &kept.only);
        let lost = engine::list_of_a_lost(&self.rows, &shown, &kept);
        let mut carried = fields.clone();
        carried.extend(engine::to_hub(&self.rows, shown, kept));
        (Value::Object(carried), Carried { is_stale, lost })
    }
}

impl Lens {
    /// The table of a version; none for the hub.
    #[must_use]
    pub fn table(&self, version: Version) -> Option<&Table> {
        self.spokes.iter().find(|(spoke, _)| *spoke == version).map(|(_, table)| table)
    }

    /// A row says something of this part of an object; what no row names passes through a conversion as it is.
    #[must_use]
    pub fn has_part(&self, name: &str) -> bool {
        if ENVELOPE.contains(&name) {
            return false;
        }
        let is_in = |place: &str| tree::steps(place).next() == Some(name);
        let mut rows = self.spokes.iter().flat_map(|(_, table)| table.rows.iter());
        rows.any(|row| is_in(row.hub()) || row.spoke().is_some_and(is_in))
    }

    /// Converts the parts of an object. Between equal versions they are returned as they are; for `room`, see
    /// [`Table::to_spoke`].
    #[must_use]
    pub fn convert_parts(&self, parts: Parts, from: Version, to: Version, room: &Room) -> Parts {
        if from == to {
            return parts;
        }
        between(parts, self.table(from), self.table(to), room)
    }

    /// Converts a whole object and stamps its `apiVersion`. What is no JSON object is returned as it is.
    #[must_use]
    pub fn convert(&self, object: Value, from: Version, to: Version) -> Value {
        let Value::Object(mut fields) = object else {
            return object;
        };
        if from == to {
            return Value::Object(fields);
        }
        let mut converted = Map::new();
        for key in ENVELOPE {
            if let Some(value) = fields.remove(key) {
                converted.insert(key.to_owned(), value);
            }
        }
        if let Some(version) = converted.get_mut("apiVersion") {
            *version = to.api_version().into();
        }
        let loss = take_loss(&mut converted);
        let sizes = || {
            let annotations = annotations(&converted).into_iter().flatten();
            memory::room(annotations.map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)))
        };
        let parts =
            self.convert_parts(Parts { fields, loss }, from, to, &Room { surely: 0, exactly: &sizes });
        put_loss(&mut converted, parts.loss);
        converted.extend(parts.fields);
        Value::Object(converted)
    }
}

/// Converts parts from one spoke to another, by way of the hub, which has no table.
fn between(parts: Parts, from: Option<&Table>, to: Option<&Table>, room: &Room) -> Parts {
    let hub = match from {
        Some(table) => table.to_hub(parts),
        None => parts,
    };
    match to {
        Some(table) => table.to_spoke(hub, room),
        None => hub,
    }
}

/// What a lens changes of a whole object.
fn parts_of(fields: &Map<String, Value>) -> Map<String, Value> {
    let kept = |key: &str| !ENVELOPE.contains(&key);
    fields.iter().filter(|(key, _)| kept(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn annotations(fields: &Map<String, Value>) -> Option<&Map<String, Value>> {
    fields.get("metadata")?.get("annotations")?.as_object()
}

/// Takes the loss annotations out, and what they were alone in.
fn take_loss(fields: &mut Map<String, Value>) -> Loss {
    let mut loss = Loss::new();
    let Some(Value::Object(metadata)) = fields.get_mut("metadata") else { return loss };
    let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else { return loss };
    annotations.retain(|key, value| {
        let is_ours = key.starts_with(memory::PREFIX);
        if is_ours && let Some(text) = value.as_str() {
            loss.insert(key.clone(), text.to_owned());
        }
        !is_ours
    });
    if annotations.is_empty() && !loss.is_empty() {
        metadata.remove("annotations");
    }
    if metadata.is_empty() && !loss.is_empty() {
        fields.remove("metadata");
    }
    loss
}

fn put_loss(fields: &mut Map<String, Value>, loss: Loss) {
    if !loss.is_empty() {
        let metadata = tree::object_at(fields, "metadata");
        let annotations = tree::object_at(metadata, "annotations");
        annotations.extend(loss.into_iter().map(|(key, text)| (key, text.into())));
    }
}
