//! Objects as they are watched: one that no release can read still has its metadata.
//!
//! A watch of the bare type would fail as a whole over one such object (stored before a rule existed, or while a
//! definition was another), and with it the work on all others. kube has a `DeserializeGuard` for that, which makes a
//! tree of every object, copies it and reads the copy. This reads the text itself, and a second time only where the
//! first fails. Of managed fields, which no controller reads of its own objects, nothing is made: as a tree they take
//! twice what all the rest takes.
//!
//! Assumes: it is read by `serde_json`, and in a watch the type of an event comes before its object, as an API server
//! writes it (`WatchEvent` in apimachinery's `pkg/apis/meta/v1/watch.go`).

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use thiserror::Error;

/// An object, or what is known of one that cannot be read.
#[derive(Clone, Debug)]
pub struct Watched<Object>(pub Result<Object, Unreadable>);

/// An object that cannot be read.
#[derive(Clone, Debug, Error)]
#[error("{error}")]
pub struct Unreadable {
    /// Why.
    pub error: String,
    /// Its metadata.
    pub metadata: ObjectMeta,
}

impl<'de, Object: DeserializeOwned> Deserialize<'de> for Watched<Object> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Partial {
            #[serde(default)]
            metadata: ObjectMeta,
        }
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let text = without_managed_fields(text.get());
        match serde_json::from_str(&text) {
            Ok(object) => Ok(Self(Ok(object))),
            Err(why) => {
                let Partial { metadata } = serde_json::from_str(&text).map_err(D::Error::custom)?;
                Ok(Self(Err(Unreadable { error: why.to_string(), metadata })))
            }
        }
    }
}

/// The text of an object with an empty list of managed fields.
fn without_managed_fields(text: &str) -> Cow<'_, str> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        #[serde(borrow)]
        managed_fields: &'a RawValue,
    }
    #[derive(Deserialize)]
    struct Outline<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
    }
    // What has none, or is no object, stays as it is.
    let Ok(Outline { metadata }) = serde_json::from_str(text) else { return Cow::Borrowed(text) };
    let entries = metadata.managed_fields.get();
    let begins = entries.as_ptr().addr() - text.as_ptr().addr();
    match (text.get(..begins), text.get(begins + entries.len()..)) {
        (Some(before), Some(after)) => Cow::Owned([before, "[]", after].concat()),
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
        self.0.as_ref().map_or_else(|unreadable| &unreadable.metadata, Object::meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.as_mut().map_or_else(|unreadable| &mut unreadable.metadata, Object::meta_mut)
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
        assert_eq!(good.0.as_ref().unwrap().metadata.name.as_deref(), Some("good"));
        assert_eq!(bad.meta().name.as_deref(), Some("bad"));
        let why = bad.0.as_ref().unwrap_err().to_string();
        assert!(why.starts_with("invalid type: string \"none\", expected"), "{why}");
    }

    #[test]
    fn an_event_is_read_as_an_api_server_writes_it() {
        for (object, is_readable) in [(GOOD, true), (BAD, false)] {
            let event = format!(r#"{{"type":"MODIFIED","object":{object}}}"#);
            let event: WatchEvent<Watched<Pod>> = serde_json::from_str(&event).unwrap();
            let WatchEvent::Modified(object) = event else { panic!("{event:?}") };
            assert_eq!(object.0.is_ok(), is_readable);
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
            assert_eq!(read.0.is_ok(), spec == "[]");
        }
    }

    #[test]
    fn what_has_no_sound_metadata_is_no_object() {
        let read = serde_json::from_str::<Watched<Pod>>(r#"{"metadata":7,"spec":{}}"#);
        assert!(read.is_err(), "{read:?}");
    }
}
