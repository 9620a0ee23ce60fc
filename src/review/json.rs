//! Reading JSON as little as possible, and never more kindly than the API server would.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::api::bounded::MOST_PARTS;

/// The fields of an object, in order, their values as they were written. A key that occurs twice is an error, and more
/// fields than any object has.
#[derive(Debug)]
pub(super) struct RawFields<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> RawFields<'a> {
    /// The value under `name`.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// The text under `name`, where it is a text.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        text(self.get(name)?)
    }
}

/// A JSON string.
pub(super) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Text>(value.get()).ok().map(|text| text.0)
}

/// The fields of an object, none where it is no object.
pub(super) fn fields(value: &RawValue) -> Option<RawFields<'_>> {
    serde_json::from_str(value.get()).ok()
}

/// Fields that are compared without a set of their names.
const FEW: usize = 24;

pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowing;
        impl<'de> Visitor<'de> for Borrowing {
            type Value = Text<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrowing)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = RawFields<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                RawFields::read(&mut map, |_, _, map| map.next_value())
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

impl<'de> RawFields<'de> {
    /// Reads the fields of an object. `value` reads the value under a key; it gets the fields before it.
    pub(super) fn read<A: MapAccess<'de>>(
        map: &mut A,
        mut value: impl FnMut(&Self, &str, &mut A) -> Result<&'de RawValue, A::Error>,
    ) -> Result<Self, A::Error> {
        let mut fields = Self(Vec::new());
        let mut many = HashSet::new();
        while let Some(Text(key)) = map.next_key()? {
            let value = value(&fields, &key, map)?;
            // A few are compared one by one, which takes less than a set of them.
            if fields.0.len() == FEW {
                many.extend(fields.0.iter().map(|(key, _)| key.clone()));
            }
            let known = match fields.0.len() {
                ..FEW => fields.0.iter().any(|(known, _)| *known == key),
                _ => !many.insert(key.clone()),
            };
            if known {
                return Err(A::Error::custom(format_args!("duplicate field {key:?}")));
            }
            if fields.0.len() == MOST_PARTS {
                return Err(A::Error::custom(format_args!("more than {MOST_PARTS} fields")));
            }
            fields.0.push((key, value));
        }
        Ok(fields)
    }
}

/// Why a list of objects was not read to its end.
pub(super) enum Ended<Failure> {
    /// The item at that position is no object; none where there is no list.
    Unreadable(Option<usize>, serde_json::Error),
    /// The visitor refused an object.
    Refused(Failure),
}

/// Calls `visit` with the position and the fields of each object of a list, until one fails: nothing is kept of what
/// was visited.
pub(super) fn objects<'a, Failure>(
    list: &'a RawValue,
    visit: impl FnMut(usize, RawFields<'a>) -> Result<(), Failure>,
) -> Result<(), Ended<Failure>> {
    let mut objects = Objects::new(PhantomData, visit);
    let read = objects.deserialize(&mut serde_json::Deserializer::from_str(list.get()));
    match objects.failure {
        Some(failure) => Err(Ended::Refused(failure)),
        None => read.map_err(|error| Ended::Unreadable(objects.position, error)),
    }
}

/// A list of objects of which each is visited as `Each` reads it.
pub(super) struct Objects<Each, Visit, Failure> {
    each: Each,
    visit: Visit,
    position: Option<usize>,
    failure: Option<Failure>,
}

impl<Each, Visit, Failure> Objects<Each, Visit, Failure> {
    pub(super) const fn new(each: Each, visit: Visit) -> Self {
        Self { each, visit, position: None, failure: None }
    }
}

impl<'de, Each, Visit, Failure> DeserializeSeed<'de> for &mut Objects<Each, Visit, Failure>
where
    Each: DeserializeSeed<'de> + Copy,
    Visit: FnMut(usize, Each::Value) -> Result<(), Failure>,
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, Each, Visit, Failure> Visitor<'de> for &mut Objects<Each, Visit, Failure>
where
    Each: DeserializeSeed<'de> + Copy,
    Visit: FnMut(usize, Each::Value) -> Result<(), Failure>,
{
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for position in 0.. {
            self.position = Some(position);
            let Some(object) = items.next_element_seed(self.each)? else { break };
            if let Err(failure) = (self.visit)(position, object) {
                self.failure = Some(failure);
                return Err(A::Error::custom("an object was refused"));
            }
        }
        Ok(())
    }
}
