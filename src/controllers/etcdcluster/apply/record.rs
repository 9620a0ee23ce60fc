//! The status: what it remembers and what it says.
//!
//! Guarantees: it is written only into the object as it was read in this pass, and only where it differs.

use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use super::{Failure, Hands};
use crate::api::etcdcluster::v1::EtcdCluster;
use crate::controllers::etcdcluster::observation::Record;
use crate::controllers::etcdcluster::resources::names::MANAGER;
use crate::controllers::manifest::Manifest;
use crate::controllers::outcome::Error;
use crate::controllers::step::Step;
use crate::runtime::fail_point;

/// Writes what is remembered, with all else that is said.
pub async fn write(hands: Hands<'_>, before: &Record) -> Result<(), Failure> {
    if *before != hands.seen().record {
        return Err(Failure::refused("the status remembers something else"));
    }
    say(hands).await
}

/// Writes what is said, where that is news.
///
/// # Errors
/// When the API server refuses it or does not answer.
pub async fn report(hands: Hands<'_>) -> Result<(), Error> {
    match say(hands).await {
        Err(Failure::Api(error)) => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

async fn say(hands: Hands<'_>) -> Result<(), Failure> {
    let before = json!(hands.cluster.status.clone().unwrap_or_default());
    let Some(change) = change(&before, &json!(hands.status)) else { return Ok(()) };
    let place = hands.place::<EtcdCluster>(&hands.name());
    let object = json!({
        "metadata": {"uid": hands.cluster.uid(), "resourceVersion": hands.cluster.resource_version()},
        "status": change,
    });
    fail_point::reached("status.before");
    hands.perform(&Step::Status { manifest: Manifest { place, object }, manager: MANAGER }).await?;
    fail_point::reached("status.after");
    Ok(())
}

/// What has to be merged into `before` to make it `after` (RFC 7386); nothing where they are the same. Neither has a
/// null in it.
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
