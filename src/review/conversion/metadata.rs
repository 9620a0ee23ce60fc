//! The metadata of an object that is converted.

use std::borrow::Cow;
use std::cell::OnceCell;

use serde_json::value::RawValue;

use super::super::json::{self, RawFields};
use super::{write, write_key};
use crate::api::lens::memory::{self, Loss, PREFIX};

/// An object's metadata, of which no more is read than has to be.
pub(super) struct Metadata<'a> {
    pub(super) raw: &'a str,
    /// It may have loss annotations: their prefix is in it, or something escaped that may be it.
    may_have_loss: bool,
    read: OnceCell<Option<Read<'a>>>,
}

/// Metadata read as far as its annotations.
struct Read<'a> {
    fields: RawFields<'a>,
    annotations: Option<RawFields<'a>>,
}

impl<'a> Metadata<'a> {
    pub(super) fn of(raw: Option<&'a RawValue>) -> Self {
        let raw = raw.map_or("", RawValue::get);
        Self { raw, may_have_loss: raw.contains(PREFIX) || raw.contains('\\'), read: OnceCell::new() }
    }

    /// None where it is no object.
    fn read(&self) -> Option<&Read<'a>> {
        let read = || {
            let fields: RawFields = serde_json::from_str(self.raw).ok()?;
            let annotations = fields.get("annotations").and_then(json::fields);
            Some(Read { fields, annotations })
        };
        self.read.get_or_init(read).as_ref()
    }

    fn annotations(&self) -> impl Iterator<Item = &(Cow<'a, str>, &'a RawValue)> {
        self.read()
            .and_then(|read| read.annotations.as_ref())
            .into_iter()
            .flat_map(|annotations| &annotations.0)
    }

    pub(super) fn loss(&self) -> Loss {
        if !self.may_have_loss {
            return Loss::new();
        }
        let lost = self.annotations().filter(|(key, _)| key.starts_with(PREFIX));
        lost.filter_map(|(key, value)| Some((key.to_string(), json::text(value)?.into_owned()))).collect()
    }

    pub(super) fn room(&self) -> usize {
        let others = self.annotations().filter(|(key, _)| !key.starts_with(PREFIX));
        memory::room(others.map(|(key, value)| key.len() + json::text(value).map_or(0, |text| text.len())))
    }

    /// Appends the metadata with the annotations of `loss` and no other loss annotations. All else as it came, and
    /// where that can have no annotations, without them.
    pub(super) fn write(&self, text: &mut Vec<u8>, loss: &Loss) {
        let untouched = loss.is_empty() && !self.has_loss();
        let is_nothing = self.raw.is_empty() || self.raw == "null";
        if untouched || self.read().is_none() && !is_nothing {
            return text.extend_from_slice(self.raw.as_bytes());
        }
        write_metadata(text, self.read(), loss);
    }

    fn has_loss(&self) -> bool {
        self.may_have_loss && self.annotations().any(|(key, _)| key.starts_with(PREFIX))
    }
}

fn write_metadata(text: &mut Vec<u8>, read: Option<&Read>, loss: &Loss) {
    text.push(b'{');
    let begin = text.len();
    let others = read.into_iter().flat_map(|read| &read.fields.0);
    for (key, value) in others.filter(|(key, _)| key != "annotations") {
        write_key(text, begin, key);
        text.extend_from_slice(value.get().as_bytes());
    }
    let kept = read.and_then(|read| read.annotations.as_ref()).into_iter();
    let kept = kept.flat_map(|annotations| &annotations.0).filter(|(key, _)| !key.starts_with(PREFIX));
    if !loss.is_empty() || kept.clone().next().is_some() {
        write_key(text, begin, "annotations");
        text.push(b'{');
        let begin = text.len();
        for (key, value) in kept {
            write_key(text, begin, key);
            text.extend_from_slice(value.get().as_bytes());
        }
        for (key, value) in loss {
            write_key(text, begin, key);
            write(text, value.as_str());
        }
        text.push(b'}');
    }
    text.push(b'}');
}
