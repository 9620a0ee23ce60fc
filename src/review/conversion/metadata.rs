//! The metadata of an object that is converted.

use std::borrow::Cow;
use std::cell::OnceCell;

use serde_json::value::RawValue;

use super::super::json::{self, RawFields};
use super::{write, write_field, write_key};
use crate::api::lens::memory::{self, Loss, PREFIX};

/// An object's metadata, of which no more is read than has to be.
pub(super) struct Metadata<'a> {
    pub(super) raw: &'a str,
    /// It may have loss annotations: their prefix is in it, or something escaped that may be it.
    may_have_loss: bool,
    fields: OnceCell<Option<RawFields<'a>>>,
    annotations: OnceCell<Option<RawFields<'a>>>,
}

impl<'a> Metadata<'a> {
    pub(super) fn of(raw: Option<&'a RawValue>) -> Self {
        let raw = raw.map_or("", RawValue::get);
        let may_have_loss = raw.contains(PREFIX) || raw.contains('\\');
        Self { raw, may_have_loss, fields: OnceCell::new(), annotations: OnceCell::new() }
    }

    /// None where it is no object.
    fn fields(&self) -> Option<&RawFields<'a>> {
        self.fields.get_or_init(|| serde_json::from_str(self.raw).ok()).as_ref()
    }

    fn annotations(&self) -> impl Iterator<Item = &(Cow<'a, str>, &'a RawValue)> {
        let read = || self.fields()?.get(ANNOTATIONS).and_then(json::fields);
        self.annotations.get_or_init(read).iter().flat_map(|annotations| &annotations.0)
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
        if untouched || self.fields().is_none() && !is_nothing {
            return text.extend_from_slice(self.raw.as_bytes());
        }
        text.push(b'{');
        let begin = text.len();
        let fields = self.fields().into_iter().flat_map(|fields| &fields.0);
        for field in fields.filter(|(key, _)| key != ANNOTATIONS) {
            write_field(text, begin, field);
        }
        self.write_annotations(text, begin, loss);
        text.push(b'}');
    }

    fn has_loss(&self) -> bool {
        self.may_have_loss && self.annotations().any(|(key, _)| key.starts_with(PREFIX))
    }

    fn write_annotations(&self, text: &mut Vec<u8>, begin: usize, loss: &Loss) {
        let before = text.len();
        write_key(text, begin, ANNOTATIONS);
        text.push(b'{');
        let begin = text.len();
        if self.may_have_loss {
            for field in self.annotations().filter(|(key, _)| !key.starts_with(PREFIX)) {
                write_field(text, begin, field);
            }
        } else {
            let annotations = self.fields().and_then(|fields| fields.get(ANNOTATIONS)).map(RawValue::get);
            let kept = annotations.and_then(|all| all.strip_prefix('{')?.strip_suffix('}'));
            text.extend_from_slice(kept.unwrap_or_default().trim().as_bytes());
        }
        for (key, value) in loss {
            write_key(text, begin, key);
            write(text, value.as_str());
        }
        if text.len() == begin {
            return text.truncate(before);
        }
        text.push(b'}');
    }
}

const ANNOTATIONS: &str = "annotations";
