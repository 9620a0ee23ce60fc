//! The status of an object, written only where it has changed.
//!
//! Guarantees: only what differs is sent, as a merge patch (RFC 7386), and nothing where nothing differs; a condition
//! that another client writes meanwhile stays.
//!
//! Not applied by server-side apply: to apply, the API server has to make sense of the whole object, and answers 500
//! for one that its schema does not fit, which is when there is most to say.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::api_write::ApiWrite;
use super::manifest::{Manifest, Place};
use super::watched::version_number;

/// The role of a kind's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusRole {
    /// Later reconciliations stand on the status: it is read from the API server, and written before the actions, into the
    /// object as it was read. The next leader continues from the status.
    Record,
    /// The status says how the object is: it is written after the actions, and not while they change something, because the
    /// next reconciliation sees the effect. The write is conditional on the uid, and on the conditions if it changes them: a
    /// merge patch replaces the whole list, in which other clients have theirs. The events come before the status, so that
    /// one may be published twice and none is lost.
    Report,
}

/// The status that this process wrote last, until the object that is watched has it.
#[derive(Clone, Debug, Default)]
pub struct WrittenStatus<Status>(Option<Box<(u128, Status)>>);

impl<Status> WrittenStatus<Status> {
    /// That status was written, which made that resource version.
    pub fn set(&mut self, version: &str, status: Status) {
        self.0 = version_number(Some(version)).map(|number| Box::new((number, status)));
    }

    /// The status, if an object of that resource version does not have it yet. Otherwise the status is dropped: the object
    /// says more, such as conditions of other clients.
    pub fn newer_than(&mut self, version: Option<&str>) -> Option<&Status> {
        let version = version_number(version);
        self.0.take_if(|written| version >= Some(written.0));
        self.0.as_deref().map(|(_, status)| status)
    }
}

/// The write that makes `before` the status `after` of the `K` of that metadata; none where they are the same.
///
/// Those that differ are compared as JSON: there, times have whole seconds.
pub fn write<K, Status>(
    object: &ObjectMeta,
    (before, after): (&Status, &Status),
    role: StatusRole,
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
    let mut metadata = json!({"uid": object.uid});
    if role == StatusRole::Record || change.get("conditions").is_some() {
        metadata["resourceVersion"] = json!(object.resource_version);
    }
    let object = Manifest {
        place: Place::of_metadata::<K>(object),
        object: json!({"metadata": metadata, "status": change}),
    };
    Some(ApiWrite::Status { manifest: object, manager })
}

/// The same write for the object `live`, in whose status others have written conditions meanwhile: these stay.
pub fn write_beside_others<K, Status>(
    live: &K,
    (before, after): (&Status, &Status),
    manager: &'static str,
) -> Option<ApiWrite>
where
    K: Resource<DynamicType = ()> + Serialize,
    Status: Serialize + PartialEq,
{
    let mut write = write::<K, _>(live.meta(), (before, after), StatusRole::Report, manager)?;
    if let ApiWrite::Status { manifest, .. } = &mut write
        && let Some(conditions) = manifest.object.pointer_mut("/status/conditions")
    {
        let [before, after, live] = [json!(before), json!(after), json!(live)["status"].take()];
        *conditions = with_changes(&live["conditions"], &before["conditions"], &after["conditions"]);
    }
    Some(write)
}

/// The conditions `live`, with those in it that are otherwise in `after` than in `before`.
fn with_changes(live: &Value, before: &Value, after: &Value) -> Value {
    let all = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let (mut conditions, before) = (all(live), all(before));
    for condition in all(after).into_iter().filter(|condition| !before.contains(condition)) {
        match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
            Some(known) => *known = condition,
            None => conditions.push(condition),
        }
    }
    Value::Array(conditions)
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

    #[test]
    fn a_status_is_kept_until_the_watch_has_it() {
        let mut written = WrittenStatus::default();
        assert_eq!(written.newer_than(Some("6")), None);
        written.set("7", "done");
        for older in [Some("6"), None] {
            assert_eq!(written.newer_than(older), Some(&"done"));
        }
        assert_eq!(written.newer_than(Some("7")), None);
        assert_eq!(written.newer_than(Some("1")), None, "the object had it once");
    }

    #[test]
    fn a_condition_that_another_client_writes_meanwhile_stays() {
        let condition = |about: &str, status: &str| json!({"type": about, "status": status});
        let before =
            json!([condition("Ready", "False"), condition("Gone", "True"), condition("Theirs", "False")]);
        let mut after = before.clone();
        after[0] = condition("Ready", "True");
        after.as_array_mut().unwrap().push(condition("Progressing", "False"));
        let live =
            json!([condition("Theirs", "True"), condition("Ready", "False"), condition("Audited", "True")]);
        let expected = json!([
            condition("Theirs", "True"),
            condition("Ready", "True"),
            condition("Audited", "True"),
            condition("Progressing", "False"),
        ]);
        assert_eq!(with_changes(&live, &before, &after), expected);
        assert_eq!(with_changes(&Value::Null, &Value::Null, &after), after);
    }
}
