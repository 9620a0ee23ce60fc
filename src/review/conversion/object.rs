//! The fields of an object that is converted, as they are read.

use std::cell::OnceCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::json::RawFields;
use super::identify;
use crate::api::Version;
use crate::api::bounded::{Budget, Twice};
use crate::api::lens::ENVELOPE;

/// An object, and of its parts those that were read already, in whose place its fields have null.
pub(super) struct Object<'a> {
    pub(super) fields: RawFields<'a>,
    pub(super) parts: Map<String, Value>,
    /// For the parts that were not.
    pub(super) budget: Budget,
}

impl<'a> From<RawFields<'a>> for Object<'a> {
    fn from(fields: RawFields<'a>) -> Self {
        Self { fields, parts: Map::new(), budget: Budget::new(Twice::LastHolds) }
    }
}

/// Reads an object that is to be converted to a version. Its parts are read where they stand, if it has said before
/// what it is.
#[derive(Clone, Copy)]
pub(super) struct ToVersion(pub(super) Version);

impl<'de> DeserializeSeed<'de> for ToVersion {
    type Value = Object<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ToVersion {
    type Value = Object<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let budget = Budget::new(Twice::LastHolds);
        let mut parts = Map::new();
        let identity = OnceCell::new();
        let fields = RawFields::read(&mut map, |fields, key, map| {
            // What comes after its first part is not waited for.
            let is_read = !ENVELOPE.contains(&key)
                && identity
                    .get_or_init(|| identify(fields).ok())
                    .is_some_and(|(kind, from)| from != self.0 && kind.lens().has_part(key));
            if !is_read {
                return map.next_value();
            }
            parts.insert(key.to_owned(), map.next_value_seed(budget.part_in_place())?);
            Ok(RawValue::NULL)
        })?;
        Ok(Object { fields, parts, budget })
    }
}
