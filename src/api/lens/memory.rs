//! The annotations that carry what the spoke cannot express: one for each field.
//!
//! ```yaml
//! conversion.gatehouse.dev/spec.timeZone: '"Europe/Berlin"'
//! conversion.gatehouse.dev/spec.windows: '{"items":[{"shown":"6c0f…","only":{"days":["Mon"]},
//!                                          "rows":{"/from":{"shown":"9a1b…","was":"18:30"}}}]}'
//! ```
//!
//! A field without a place in the spoke is there as JSON. `was` is a value of the hub that the spoke shows coarser,
//! and `shown` the digest of what it shows: as long as the spoke still shows the same, `was` holds.
//!
//! Why one for each field, and not one for all: when a manager gives a field up under server-side apply, the API
//! server works out in every other manager's version what is left, and it compares *which* fields are there, not
//! their values (structured-merge-diff, `merge/update.go`, `addBackOwnedItemsForVersion`). A single annotation that
//! is there before and after would bring back all that it held.
//!
//! They are made from nothing but the object, and never trusted to be: stale, forged or broken, they can at most
//! say what their author could have written as `v1`.

use std::collections::BTreeMap;

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Room, Row, tree};
use crate::api::bounded::{Budget, Twice};
use crate::api::checksum::hexadecimal;

/// What the keys of all loss annotations begin with.
pub const PREFIX: &str = "conversion.gatehouse.dev/";

/// Loss annotations, by their keys.
pub type Loss = BTreeMap<String, String>;

/// What all annotations of an object may weigh together, keys and values, in bytes: the API server refuses more
/// (apimachinery, `pkg/api/validation`, `TotalAnnotationSizeLimitB`), and an object that a conversion makes larger
/// would make every list fail.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// The longest name of an annotation, without its prefix, in characters (RFC 1123 label, as the API server has it).
const LONGEST_NAME: usize = 63;

/// The name of the annotation that stands in place of all others when there is no room for them.
const DROPPED: &str = "dropped";

/// The most steps of a field's pointer. As deep as JSON is read and so as deep as any that is written; one that
/// a client forged could be so deep that walking what it makes takes the process's whole stack.
const DEEPEST: usize = 128;

/// The bytes left for loss annotations beside other annotations of those `sizes`.
pub fn room(sizes: impl Iterator<Item = usize>) -> usize {
    ANNOTATIONS_LIMIT.saturating_sub(sizes.sum::<usize>() + PREFIX.len() + DROPPED.len() + "true".len())
}

/// What the spoke cannot say of an object, or of an item of a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Fields without a place in the spoke.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) only: Map<String, Value>,
    /// By the hub's pointer: what is shown coarser.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) rows: BTreeMap<String, Coarse>,
}

/// One row that the spoke shows coarser than it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Coarse {
    /// The items of a list, one by one.
    Items {
        /// In the order of the list.
        items: Vec<Item>,
    },
    /// A single value.
    Value {
        /// The digest of the spoke's value.
        shown: String,
        /// The hub's value.
        was: Value,
    },
}

/// One item of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Item {
    /// The digest of the spoke's item.
    pub(super) shown: String,
    /// What its fields look like, as far as they are needed to tell it from others once it is edited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) like: Vec<u16>,
    /// What it cannot say.
    #[serde(flatten)]
    pub(super) memory: Memory,
}

impl Memory {
    /// Nothing to remember.
    pub(super) fn is_empty(&self) -> bool {
        self.only.is_empty() && self.rows.is_empty()
    }

    /// Reads annotations. What is not of their form says nothing, and neither do more than an object can have.
    #[must_use]
    pub fn from_annotations(rows: &[Row], loss: &Loss) -> Self {
        let mut memory = Self::default();
        if size(loss) > ANNOTATIONS_LIMIT {
            return memory;
        }
        let budget = Budget::new(Twice::LastHolds);
        for (pointer, value) in loss.iter().filter_map(|(key, text)| read(key, text, &budget)) {
            if pointer.matches('/').count() > DEEPEST {
                continue;
            }
            let coarse = rows.iter().find(|row| row.hub() == pointer && row.is_coarse());
            if coarse.is_some() {
                memory.rows.extend(serde_json::from_value(value).ok().map(|coarse| (pointer, coarse)));
            } else {
                put(&mut memory.only, &pointer, value, &budget);
            }
        }
        memory
    }

    /// Writes the annotations. Where there is no `room` for them, a marker stands in their place, so that the object
    /// stays readable. Validation refuses to write such an object ([`crate::api::validation`]).
    #[must_use]
    pub fn to_annotations(&self, room: &Room) -> Loss {
        let mut writer = Writer { loss: Loss::new(), size: 0 };
        let written =
            leaves(&self.only, &mut String::new(), &mut |pointer, value| writer.leaf(pointer, value))
                .and_then(|()| {
                    self.rows.iter().try_for_each(|(pointer, coarse)| writer.coarse(pointer, coarse))
                });
        if written.is_some() && (writer.size <= room.surely || writer.size <= (room.exactly)()) {
            return writer.loss;
        }
        Loss::from([(dropped(), "true".to_owned())])
    }
}

/// Bytes that annotations weigh.
fn size(loss: &Loss) -> usize {
    loss.iter().map(|(key, text)| key.len() + text.len()).sum()
}

/// Annotations that are being written; none once they are more than any object may have.
struct Writer {
    loss: Loss,
    size: usize,
}

impl Writer {
    fn leaf(&mut self, pointer: &str, value: &Value) -> Option<()> {
        let (key, is_plain) = key(pointer);
        let value = serde_json::to_string(value).ok()?;
        let text = if is_plain { value } else { format!("{{{}:{value}}}", Value::from(pointer)) };
        self.add(key, text)
    }

    /// A list is written item by item, so that no more of it is written than there may be room for.
    fn coarse(&mut self, pointer: &str, coarse: &Coarse) -> Option<()> {
        let Coarse::Items { items } = coarse else {
            return self.leaf(pointer, &serde_json::to_value(coarse).ok()?);
        };
        let mut text = "{\"items\":[".to_owned();
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.push_str(&serde_json::to_string(item).ok()?);
            self.has_room(text.len())?;
        }
        text.push_str("]}");
        // The places of rows are plain, and their keys tell them.
        self.add(key(pointer).0, text)
    }

    fn add(&mut self, key: String, text: String) -> Option<()> {
        self.size += key.len() + text.len();
        self.has_room(0)?;
        self.loss.insert(key, text);
        Some(())
    }

    fn has_room(&self, more: usize) -> Option<()> {
        (self.size + more <= ANNOTATIONS_LIMIT).then_some(())
    }
}

/// The key of the annotation of an object of the spoke that there was no room for what it cannot say.
#[must_use]
pub fn dropped() -> String {
    format!("{PREFIX}{DROPPED}")
}

/// An object's annotations say that there was no room for what the spoke cannot say.
#[must_use]
pub fn is_dropped(annotations: &Value) -> bool {
    annotations.get(dropped()).is_some()
}

/// There was no room for what the spoke cannot say.
#[must_use]
pub fn did_not_fit(loss: &Loss) -> bool {
    loss.keys().any(|key| key.strip_prefix(PREFIX) == Some(DROPPED))
}

/// The key of the annotation for a field, and whether it tells the field: a path of plain names does.
#[must_use]
pub fn key(pointer: &str) -> (String, bool) {
    let plain = |step: &str| !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let mut key = String::with_capacity(PREFIX.len() + pointer.len());
    key.push_str(PREFIX);
    let mut is_plain = pointer.len() <= LONGEST_NAME + "/".len();
    for (depth, step) in tree::steps(pointer).enumerate() {
        is_plain &= plain(step);
        key.push_str(if depth == 0 { "" } else { "." });
        key.push_str(step);
    }
    if is_plain {
        return (key, true);
    }
    let digest = digest(&Value::from(pointer));
    let readable: Vec<_> = pointer.split('/').skip(1).take_while(|step| plain(step)).collect();
    let mut start = readable.join(".");
    start.truncate(LONGEST_NAME - digest.len() - 1);
    (format!("{PREFIX}{}-{digest}", start.trim_end_matches('.')), false)
}

fn read(key: &str, text: &str, budget: &Budget) -> Option<(String, Value)> {
    let name = key.strip_prefix(PREFIX).filter(|name| *name != DROPPED)?;
    let value = budget.part(text).ok()?;
    if !name.contains('-') {
        return Some((format!("/{}", name.replace('.', "/")), value));
    }
    let Value::Object(fields) = value else { return None };
    fields.into_iter().next()
}

/// Every field that is no object with fields of its own, with its JSON pointer, until there are enough. `place` is the
/// pointer of the object, and is left as it was.
fn leaves(
    fields: &Map<String, Value>,
    place: &mut String,
    found: &mut impl FnMut(&str, &Value) -> Option<()>,
) -> Option<()> {
    let above = place.len();
    fields.iter().try_for_each(|(name, value)| {
        place.push('/');
        if name.contains(['~', '/']) {
            place.push_str(&name.replace('~', "~0").replace('/', "~1"));
        } else {
            place.push_str(name);
        }
        match value {
            Value::Object(inner) if !inner.is_empty() => leaves(inner, place, found),
            leaf => found(place, leaf),
        }?;
        place.truncate(above);
        Some(())
    })
}

/// Puts a value where a pointer says, with the objects above it as far as the budget has room for them.
fn put(fields: &mut Map<String, Value>, pointer: &str, value: Value, budget: &Budget) -> Option<()> {
    let mut steps = pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"));
    let mut last = steps.next()?;
    let mut place = fields;
    for step in steps {
        if !place.get(&last).is_some_and(Value::is_object) {
            budget.make_object()?;
        }
        place = tree::object_at(place, &last);
        last = step;
    }
    place.insert(last, value);
    Some(())
}

/// Bytes of the text of most items.
const USUAL: usize = 128;

/// A short digest of a value, the same for every order of keys.
pub(super) fn digest(value: &Value) -> String {
    let mut text = Vec::with_capacity(USUAL);
    append(&mut text, value);
    hexadecimal(&digest::digest(&digest::SHA256, &text).as_ref()[..8])
}

/// A few bits of each field of an item of the spoke: two items are the more alike the more of them they share.
pub(super) fn likeness(item: &Value) -> Vec<u16> {
    let fields = item.as_object().into_iter().flatten();
    let mut text = Vec::with_capacity(USUAL);
    let bits = fields.map(|(key, value)| {
        text.clear();
        text.extend_from_slice(key.as_bytes());
        text.push(b':');
        append(&mut text, value);
        let digest = digest::digest(&digest::SHA256, &text);
        digest.as_ref()[..2].iter().fold(0, |bits, byte| bits << 8 | u16::from(*byte))
    });
    bits.collect()
}

/// Appends the text that digests are made of. They are kept in objects: it stays as it is.
fn append(text: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Object(fields) => {
            text.push(b'{');
            for (key, value) in fields {
                write(text, key);
                text.push(b':');
                append(text, value);
            }
            text.push(b'}');
        }
        Value::Array(items) => {
            text.push(b'[');
            for item in items {
                append(text, item);
                text.push(b',');
            }
            text.push(b']');
        }
        scalar => write(text, scalar),
    }
}

fn write(text: &mut Vec<u8>, value: &impl Serialize) {
    // What fails is the writer, and a vector does not.
    let _written = serde_json::to_writer(text, value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stored_digests_stay_what_they_are() {
        assert_eq!(digest(&json!({"b": [1, "x\n"], "a": null})), "b7ab3ac5acbf61aa");
        assert_eq!(likeness(&json!({"a": [2, {"c": true}]})), [35098]);
    }
}
