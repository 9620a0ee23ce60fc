//! The status of an object, written only where it has changed.
//!
//! Guarantees: only what differs is sent, as a merge patch (RFC 7386), and nothing where nothing differs.
//!
//! Not applied by server-side apply: to apply, the API server has to make sense of the whole object, and answers 500
//! for one that its schema does not fit, which is when there is most to say.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::api_write::ApiWrite;
use super::manifest::{Manifest, Place};

/// What the write of a status is conditional on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// The object has this uid.
    SameObject,
    /// The object is as it was read: later reconciliations stand on what the status says.
    Unchanged,
}

/// What a status was, and what it is from now on.
#[derive(Clone, Debug)]
pub struct Change<Status> {
    /// As it was written last.
    pub before: Status,
    /// What it says from now on.
    pub after: Status,
}

/// The write that makes `before` the status `after` of the `K` of that metadata; none where they are the same.
///
/// Those that differ are compared as JSON: there, times have whole seconds.
pub fn write<K, Status>(
    object: &ObjectMeta,
    Change { before, after }: &Change<Status>,
    precondition: Precondition,
    manager: &'static str,
) -> Option<ApiWrite>
where
    K: Resource<DynamicType = ()>,
    Status: Serialize + PartialEq,
{
    if before == after {
        return None;
    }
    let change = change(&json!(before), &json!(after))?;
    let metadata = match precondition {
        Precondition::SameObject => json!({"uid": object.uid}),
        Precondition::Unchanged => json!({"uid": object.uid, "resourceVersion": object.resource_version}),
    };
    let object = Manifest {
        place: Place::of_metadata::<K>(object),
        object: json!({"metadata": metadata, "status": change}),
    };
    Some(ApiWrite::Status { manifest: object, manager })
}

/// What has to be merged into `before` to make it `after`; nothing where they are the same. Neither has a null in it.
fn change(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = new.iter().filter_map(|(key, value)| {
        let change = change(old.get(key).unwrap_or(&Value::Null), value)?;
        Some((key.clone(), change))
    });
    let all: Map<_, _> = gone.chain(changed).collect();
    (!all.is_empty()).then_some(Value::Object(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_merged_into_what_was_makes_what_is() {
        let before = json!({"a": 1, "b": {"c": [1], "d": 2}, "e": {"f": 1}});
        for after in [
            json!({}),
            json!({"a": 2, "b": {"c": [1, 2]}, "g": {"h": {}}}),
            json!({"a": 1, "b": {"c": [1], "d": 2}, "e": {"f": 1}}),
        ] {
            let mut merged = before.clone();
            match change(&before, &after) {
                Some(change) => json_patch::merge(&mut merged, &change),
                None => assert_eq!(before, after),
            }
            assert_eq!(merged, after);
        }
    }
}
