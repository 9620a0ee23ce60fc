//! Objects as they are watched: their metadata, and the text of the rest, which is read when it is asked for.
//!
//! One that no release can read still has its metadata. A watch of the bare type would fail as a whole over one such object
//! (stored before a rule existed, or while a definition was another), and with it the work on all others. kube has a
//! `DeserializeGuard` for that, which makes a tree of every object, copies it and reads the copy.
//!
//! Of thousands of objects the text takes half of what their types take, whose fields are mostly empty. Of managed fields,
//! which no controller reads of its own objects, nothing is kept.
//!
//! Assumes: it is read by `serde_json`, and in a watch the type of an event comes before its object, as an API server
//! writes it (`WatchEvent` in apimachinery's `pkg/apis/meta/v1/watch.go`).

use std::borrow::Cow;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// An object that may be one that cannot be read.
#[derive(Clone, Debug)]
pub struct Watched<Object> {
    metadata: ObjectMeta,
    /// All of it, with empty metadata.
    text: Box<str>,
    object: PhantomData<Object>,
}

impl<Object: Resource + DeserializeOwned> Watched<Object> {
    /// The object.
    ///
    /// # Errors
    /// It is no such object.
    pub fn read(&self) -> serde_json::Result<Object> {
        let mut object: Object = serde_json::from_str(&self.text)?;
        object.meta_mut().clone_from(&self.metadata);
        Ok(object)
    }
}

/// A resource version as a number. Those of one resource may be compared (KEP-5504).
#[must_use]
pub fn version_number(version: Option<&str>) -> Option<u128> {
    version?.parse().ok()
}

impl<'de, Object> Deserialize<'de> for Watched<Object> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Outline<'a> {
            #[serde(borrow)]
            metadata: Option<&'a RawValue>,
        }
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let Outline { metadata } = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        let part = metadata.map_or("{}", RawValue::get);
        let metadata = serde_json::from_str(&without_managed_fields(part)).map_err(D::Error::custom)?;
        let text = replaced(text.get(), part, "{}").into_owned().into_boxed_str();
        Ok(Self { metadata, text, object: PhantomData })
    }
}

/// The text of metadata with an empty list of managed fields.
fn without_managed_fields(text: &str) -> Cow<'_, str> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Outline<'a> {
        #[serde(borrow)]
        managed_fields: &'a RawValue,
    }
    // What has none, or is no object, stays as it is.
    let Ok(Outline { managed_fields }) = serde_json::from_str(text) else { return Cow::Borrowed(text) };
    replaced(text, managed_fields.get(), "[]")
}

/// `text` with another part in the place of `part`, where that is a part of it.
fn replaced<'a>(text: &'a str, part: &str, by: &str) -> Cow<'a, str> {
    let begins = part.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
    let ends = begins.saturating_add(part.len());
    match (text.get(..begins), text.get(ends..)) {
        (Some(before), Some(after)) => Cow::Owned([before, by, after].concat()),
        _ => Cow::Borrowed(text),
    }
}

impl<Object: Resource> Resource for Watched<Object> {
    type DynamicType = Object::DynamicType;
    type Scope = Object::Scope;

    fn kind(kind: &Self::DynamicType) -> Cow<'_, str> {
        Object::kind(kind)
    }

    fn group(kind: &Self::DynamicType) -> Cow<'_, str> {
        Object::group(kind)
    }

    fn version(kind: &Self::DynamicType) -> Cow<'_, str> {
        Object::version(kind)
    }

    fn plural(kind: &Self::DynamicType) -> Cow<'_, str> {
        Object::plural(kind)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::core::{ObjectList, WatchEvent};

    use super::*;

    const GOOD: &str = r#"{"metadata":{"name":"good"},"spec":{"containers":[]}}"#;
    const BAD: &str = r#"{"metadata":{"name":"bad"},"spec":{"containers":"none"}}"#;

    #[test]
    fn one_that_cannot_be_read_keeps_its_metadata_beside_others() {
        let list = format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"7"}},"items":[{GOOD},{BAD}]}}"#
        );
        let list: ObjectList<Watched<Pod>> = serde_json::from_str(&list).unwrap();
        let [good, bad] = list.items.as_slice() else { panic!("{list:?}") };
        assert_eq!(good.read().unwrap().metadata.name.as_deref(), Some("good"));
        assert_eq!(bad.meta().name.as_deref(), Some("bad"));
        let why = bad.read().unwrap_err().to_string();
        assert!(why.starts_with("invalid type: string \"none\", expected"), "{why}");
    }

    #[test]
    fn an_event_is_read_as_an_api_server_writes_it() {
        for (object, is_readable) in [(GOOD, true), (BAD, false)] {
            let event = format!(r#"{{"type":"MODIFIED","object":{object}}}"#);
            let event: WatchEvent<Watched<Pod>> = serde_json::from_str(&event).unwrap();
            let WatchEvent::Modified(object) = event else { panic!("{event:?}") };
            assert_eq!(object.read().is_ok(), is_readable);
        }
    }

    #[test]
    fn managed_fields_are_left_out_and_nothing_else_is() {
        let fields = r#"[{"manager":"a","fieldsV1":{"f:spec":{"k:{\"name\":\"]\"}":{}}}}]"#;
        for (managed, spec) in [(fields, "[]"), (" [ ] ", "[]"), ("null", r#""none""#)] {
            let object = format!(
                r#"{{"metadata":{{"name":"good","managedFields":{managed},"labels":{{"a":"b"}}}},"spec":{{"containers":{spec}}}}}"#
            );
            let read: Watched<Pod> = serde_json::from_str(&object).unwrap();
            assert_eq!(read.meta().managed_fields, Some(Vec::new()), "{object}");
            assert_eq!(
                (read.meta().name.as_deref(), &read.meta().labels.as_ref().unwrap()["a"]),
                (Some("good"), &"b".to_owned())
            );
            assert_eq!(read.read().is_ok(), spec == "[]");
        }
    }

    #[test]
    fn what_has_no_sound_metadata_is_no_object() {
        let read = serde_json::from_str::<Watched<Pod>>(r#"{"metadata":7,"spec":{}}"#);
        assert!(read.is_err(), "{read:?}");
    }
}
