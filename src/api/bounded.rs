//! JSON read into a tree of bounded size.
//!
//! Guarantees: a tree takes at most so much memory, whatever its text looks like: a few bytes of text can make a
//! hundred times as many of a tree, so its parts are counted while they are read, and reading ends where there are too
//! many. What managers of fields are recorded in an object's metadata is passed over unread: it is often larger than
//! all else, and nothing here asks for it.
//! Never: reads deeper than serde_json does (128 levels).

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

/// Parts that a tree may have: a field, an item of a list and the object itself count one each. The largest timetable
/// (64 exceptions of 400 dates each) has about 27,000.
pub const MOST_PARTS: usize = 48 * 1024;

/// What an object counts besides: its first field takes the memory of several, and one without fields takes it too once a
/// conversion has given it a name.
const OBJECT: usize = 6;

/// Whether an object may hold a key twice. Two readers of such an object may see two different ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twice {
    /// It is an error.
    Refused,
    /// The last one holds.
    LastHolds,
}

/// Why there is no tree.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It has too many parts.
    #[error("more than {MOST_PARTS} fields and list items: no sound object has as many")]
    TooManyParts,
    /// It is no JSON, or nested too deeply, or holds a key twice.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Reads a whole object or any other value.
///
/// # Errors
/// [`Unreadable`], with the reason.
pub fn tree(text: &str, twice: Twice) -> Result<Value, Unreadable> {
    Budget::new(twice).read(text, Place::Object)
}

/// Where a value stands, as far as that matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Object,
    Metadata,
    ManagedFields,
    Elsewhere,
}

impl Place {
    fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::Object, "metadata") => Self::Metadata,
            (Self::Metadata, "managedFields") => Self::ManagedFields,
            _ => Self::Elsewhere,
        }
    }
}

/// How many parts may still be read: of one object, whose parts are read one by one.
pub struct Budget {
    /// None once it was not enough.
    left: Cell<Option<usize>>,
    twice: Twice,
}

impl Budget {
    /// What one object may have.
    #[must_use]
    pub const fn new(twice: Twice) -> Self {
        Self { left: Cell::new(Some(MOST_PARTS)), twice }
    }

    /// Reads a part of the object, of which nothing is passed over.
    ///
    /// # Errors
    /// [`Unreadable`], with the reason.
    pub fn part(&self, text: &str) -> Result<Value, Unreadable> {
        self.read(text, Place::Elsewhere)
    }

    /// Reads a whole object where it stands in a larger text. An error ends the reading of that text.
    #[must_use]
    pub fn whole<'de>(&self) -> impl DeserializeSeed<'de, Value = Value> {
        Tree { budget: self, place: Place::Object }
    }

    /// As [`Self::part`], where it stands in a larger text. An error ends the reading of that text.
    #[must_use]
    pub fn part_in_place<'de>(&self) -> impl DeserializeSeed<'de, Value = Value> {
        Tree { budget: self, place: Place::Elsewhere }
    }

    /// Counts an object that is made and not read; none where there is no room for it.
    #[must_use]
    pub fn make_object(&self) -> Option<()> {
        self.take::<serde_json::Error>(OBJECT + 1).ok()
    }

    fn read(&self, text: &str, place: Place) -> Result<Value, Unreadable> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let read = Tree { budget: self, place }.deserialize(&mut reader);
        match read.and_then(|value| reader.end().map(|()| value)) {
            Err(_) if self.left.get().is_none() => Err(Unreadable::TooManyParts),
            read => Ok(read?),
        }
    }

    fn take<E: Error>(&self, parts: usize) -> Result<(), E> {
        let left = self.left.get().and_then(|left| left.checked_sub(parts));
        self.left.set(left);
        left.map(|_| ()).ok_or_else(|| E::custom("too many parts"))
    }
}

#[derive(Clone, Copy)]
struct Tree<'a> {
    budget: &'a Budget,
    place: Place,
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.place == Place::ManagedFields {
            // In its place stands null, so that the metadata is never taken for empty.
            return deserializer.deserialize_ignored_any(IgnoredAny).map(|_| Value::Null);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let each = Tree { place: Place::Elsewhere, ..self };
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(each)? {
            self.budget.take(1)?;
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        self.budget.take(OBJECT)?;
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            self.budget.take(1)?;
            let value = map.next_value_seed(Tree { place: self.place.below(&key), ..self })?;
            match fields.entry(key) {
                Entry::Vacant(free) => {
                    free.insert(value);
                }
                Entry::Occupied(taken) if self.budget.twice == Twice::Refused => {
                    return Err(A::Error::custom(format_args!("duplicate field {:?}", taken.key())));
                }
                Entry::Occupied(mut taken) => {
                    taken.insert(value);
                }
            }
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_read_is_what_serde_json_reads() {
        for text in ["null", "[1,-2,2.5,\"a\",true,{}]", r#"{"a":{"b":[{"c":[]}]},"d":"\n"}"#] {
            let read = tree(text, Twice::Refused).unwrap();
            assert_eq!(read, serde_json::from_str::<Value>(text).unwrap());
        }
    }

    #[test]
    fn a_number_that_is_written_is_read_as_the_same() {
        // 38 digits, of which a fast reader makes one number and, once it is written, another one.
        let written = tree("-922337203685479999999999999999999975808", Twice::Refused).unwrap().to_string();
        assert_eq!(tree(&written, Twice::Refused).unwrap().to_string(), written);
    }

    #[test]
    fn too_many_parts_of_any_shape_end_the_reading() {
        for item in ["0", "{}", "[]", "[0]", r#"{"a":0}"#, "\"\""] {
            let list = |items: usize| format!("[{}{item}]", format!("{item},").repeat(items - 1));
            assert!(tree(&list(MOST_PARTS / 9), Twice::Refused).is_ok(), "{item}");
            let many = tree(&list(MOST_PARTS + 1), Twice::Refused);
            assert!(matches!(many, Err(Unreadable::TooManyParts)), "{item}");
        }
        let keys: Vec<_> = (0..MOST_PARTS).map(|key| format!(r#""{key}":0"#)).collect();
        let many = tree(&format!("{{{}}}", keys.join(",")), Twice::LastHolds);
        assert!(matches!(many, Err(Unreadable::TooManyParts)));
    }

    #[test]
    fn the_managers_of_fields_are_passed_over_and_nothing_else_is() {
        let managed = format!("[{}0]", "0,".repeat(MOST_PARTS));
        let text = format!(
            r#"{{"metadata":{{"name":"a","managedFields":{managed}}},"spec":{{"managedFields":[1]}}}}"#
        );
        let read = tree(&text, Twice::Refused).unwrap();
        let metadata = json!({"name": "a", "managedFields": null});
        assert_eq!(read, json!({"metadata": metadata, "spec": {"managedFields": [1]}}));
    }

    #[test]
    fn a_key_that_comes_twice_is_refused_where_that_was_asked_for() {
        let text = r#"{"a":1,"a":2}"#;
        assert!(tree(text, Twice::Refused).unwrap_err().to_string().contains("duplicate field \"a\""));
        assert_eq!(Budget::new(Twice::LastHolds).part(text).unwrap(), json!({"a": 2}));
        assert!(tree("{} {}", Twice::Refused).is_err());
    }
}
