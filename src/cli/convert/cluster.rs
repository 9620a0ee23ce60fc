//! The objects of a cluster as manifests, for users who move them to Git or to another version.
//!
//! Guarantees: what only a live object has is not in them: status, uid, managed fields, finalizers, owners, orders to
//! the operator. What others make, and what is being deleted, is left out and named.
//! Never: writes to the cluster, nor reads anything but our kinds.

use kube::{Client, Config};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::connect::infer;
use super::super::input::title;
use super::super::output;
use super::{Failure, convert};
use crate::api::validation::LAST_APPLIED;
use crate::api::{GROUP, Kind, Version};
use crate::kinds::KINDS;
use crate::runtime::call::{self, call};

/// Objects that are listed at a time.
const CHUNK: u32 = 500;

/// A list could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server does not give it.
    #[error("failed to list {what}: {source}")]
    List {
        /// `tdsets.v1.gatehouse.dev in namespace shop`.
        what: String,
        /// Why.
        source: call::Error,
    },
    /// None of our kinds is served.
    #[error("the cluster has no objects of {}: it does not serve that version", Version::V1.api_version())]
    NotServed,
}

/// A page of objects.
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMeta,
    items: Vec<Value>,
}

#[derive(Default, Deserialize)]
struct PageMeta {
    #[serde(rename = "continue", default)]
    next: String,
}

/// The manifests of all objects of our kinds in a namespace; of the context's where none is named, of all namespaces where
/// that is asked for.
///
/// # Errors
/// There is no cluster, or it does not list them.
pub fn manifests(namespace: Option<&str>, all: bool, to: Version) -> Result<Vec<Value>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let expected = "KUBECONFIG, ~/.kube/config or a pod's service account";
        let connect = |config: Config| Ok((config.default_namespace.clone(), Client::try_from(config)?));
        let (current, client) = infer(expected, connect).await?;
        let place = (!all).then(|| namespace.unwrap_or(&current).to_owned());
        let mut manifests = Vec::new();
        let mut is_served = false;
        for kind in KINDS {
            let Some(objects) = listed(&client, *kind, place.as_deref()).await? else { continue };
            is_served = true;
            manifests.extend(objects.into_iter().filter_map(|object| manifest(object, to)));
        }
        if is_served { Ok(manifests) } else { Err(Error::NotServed.into()) }
    })
}

/// The objects of a kind as the hub; none where that is not served.
async fn listed(
    client: &Client,
    kind: &dyn Kind,
    namespace: Option<&str>,
) -> Result<Option<Vec<Value>>, Error> {
    let (plural, hub) = (kind.names().plural, Version::V1);
    let place = namespace.map(|name| format!("namespaces/{name}/")).unwrap_or_default();
    let mut objects = Vec::new();
    let mut next = String::new();
    loop {
        let token = next.replace('+', "%2B").replace('=', "%3D");
        let path = format!("/apis/{GROUP}/{hub}/{place}{plural}?limit={CHUNK}&continue={token}");
        let request = hyper::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError);
        let answer = call(async { client.request::<Page>(request?).await }).await;
        match answer {
            Ok(page) => {
                objects.extend(page.items);
                next = page.metadata.next;
            }
            Err(call::Error::Refused(status)) if status.code == 404 && next.is_empty() => return Ok(None),
            Err(source) => {
                let scope = namespace.map(|name| format!(" in namespace {name}")).unwrap_or_default();
                return Err(Error::List { what: format!("{plural}.{hub}.{GROUP}{scope}"), source });
            }
        }
        if next.is_empty() {
            return Ok(Some(objects));
        }
    }
}

/// The manifest of that object; none where it is left out.
fn manifest(object: Value, to: Version) -> Option<Value> {
    let title = title(&object);
    if let Some(why) = left_out(&object) {
        output::note(&output::one_line(&format!("{title}: left out: {why}")));
        return None;
    }
    let (converted, notes) = convert(without_orders(object), to, false).ok()?;
    for note in notes {
        output::warning(&format!("{title}: {}: {}", note.path, note.text));
    }
    Some(written(converted))
}

/// Why an object has no manifest.
fn left_out(object: &Value) -> Option<String> {
    let metadata = &object["metadata"];
    if !metadata["deletionTimestamp"].is_null() {
        return Some("it is being deleted".to_owned());
    }
    let owners = metadata["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
    Some(format!("{} {} makes it", text("kind"), text("name")))
}

/// Without one-time requests to the operator, such as to try again.
fn without_orders(mut object: Value) -> Value {
    if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
        let own = format!("{GROUP}/");
        annotations.retain(|key, _| !key.starts_with(&own) && key != LAST_APPLIED);
    }
    object
}

/// What of an object belongs into a manifest.
fn written(object: Value) -> Value {
    let Value::Object(fields) = object else { return object };
    let mut manifest = Map::new();
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("status", _) => {}
            ("metadata", Value::Object(metadata)) => {
                let kept = metadata.into_iter().filter(|(key, value)| {
                    let is_empty = value.as_object().is_some_and(Map::is_empty);
                    ["name", "namespace", "labels", "annotations"].contains(&key.as_str()) && !is_empty
                });
                manifest.insert(key, Value::Object(kept.collect()));
            }
            (_, value) => drop(manifest.insert(key, value)),
        }
    }
    Value::Object(manifest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn live() -> Value {
        json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {
            "name": "main", "namespace": "shop", "uid": "1", "resourceVersion": "7", "generation": 2,
            "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["gatehouse.dev/etcdcluster"],
            "labels": {"team": "shop"}, "managedFields": [{"manager": "kubectl"}],
            "annotations": {"gatehouse.dev/recover-quorum": "x", LAST_APPLIED: "{}"}},
            "spec": {"replicas": 3, "version": "3.6.16", "storage": {"size": "1Gi"}, "tls": {"mode": "Disabled"}},
            "status": {"phase": "Ready"}})
    }

    #[test]
    fn what_only_a_live_object_has_is_not_in_its_manifest() {
        let labels = json!({"team": "shop"});
        let metadata = json!({"name": "main", "namespace": "shop", "labels": labels});
        let spec = live()["spec"].clone();
        let wanted = json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": metadata, "spec": spec});
        assert_eq!(manifest(live(), Version::V1), Some(wanted));
    }

    #[test]
    fn what_v1alpha1_cannot_say_rides_along() {
        let mut object = live();
        object["spec"]["tls"]["mode"] = "Automatic".into();
        let old = manifest(object.clone(), Version::V1Alpha1).unwrap();
        assert_eq!(old["apiVersion"], "gatehouse.dev/v1alpha1");
        let (back, _) = convert(old, Version::V1, false).unwrap();
        assert_eq!(back["spec"], object["spec"]);
    }

    #[test]
    fn what_others_make_or_delete_is_left_out() {
        let mut made = live();
        made["metadata"]["ownerReferences"] = json!([{"kind": "Shop", "name": "one", "controller": true}]);
        assert_eq!(left_out(&made).as_deref(), Some("Shop one makes it"));
        assert_eq!(manifest(made, Version::V1), None);
        let mut going = live();
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(left_out(&going).as_deref(), Some("it is being deleted"));
        assert_eq!(left_out(&live()), None);
    }
}
