//! An object that this release cannot read: what is wrong is said in its status, and nothing is done.
//!
//! Never: repeats a value of the object, which a decoder's words might.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::{Value, json};

use super::resources::names::MANAGER;
use super::{Operator, status};
use crate::api::Version;
use crate::api::condition;
use crate::api::etcdcluster::EtcdClusterKind;
use crate::api::etcdcluster::v1::{EtcdCluster, EtcdClusterStatus};
use crate::api::judge::{self, Written};
use crate::controllers::Watched;
use crate::controllers::manifest::{Manifest, Place};
use crate::controllers::outcome::{Error, Outcome};
use crate::controllers::step::Step;
use crate::runtime::call::call;

impl Operator {
    /// Says what is wrong with an object, where that is news.
    ///
    /// # Errors
    /// When the API server does not answer, or takes no status.
    pub async fn refuse(&self, object: &Watched<EtcdCluster>, now: Timestamp) -> Result<Outcome, Error> {
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let place = Place { resource: ApiResource::erase::<EtcdCluster>(&()), namespace, name };
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &place.namespace, &place.resource);
        let found = call(api.get_opt(&place.name)).await;
        let found = found.map_err(|source| Error { verb: "read", object: place.to_string(), source })?;
        let Some(found) = found.filter(|found| found.metadata.uid == object.meta().uid) else {
            return Ok(Outcome::Leaving);
        };
        let stored = serde_json::to_value(&found).unwrap_or_default();
        let written = Written { version: Version::V1, object: &stored };
        let faults = judge::stored(&EtcdClusterKind, written, now).faults;
        let before = EtcdClusterStatus { conditions: Some(conditions(&stored)), ..Default::default() };
        let mut conditions = before.conditions.clone().unwrap_or_default();
        if condition::set(&mut conditions, status::unreadable(&faults), found.metadata.generation, now) {
            let regarding = object.object_ref(&());
            let after = EtcdClusterStatus { conditions: Some(conditions.clone()), ..Default::default() };
            let news = status::news(&before, &after, &mut None);
            let object = json!({
                "metadata": {"uid": found.metadata.uid, "resourceVersion": found.metadata.resource_version},
                "status": {"conditions": conditions},
            });
            let say = Step::Status { manifest: Manifest { place, object }, manager: MANAGER };
            self.interpreter.perform(&say, &regarding).await?;
            for note in news {
                self.interpreter.perform(&Step::Event(note), &regarding).await?;
            }
        }
        Ok(Outcome::Invalid)
    }
}

/// The conditions of an object, whatever else is in it.
fn conditions(stored: &Value) -> Vec<Condition> {
    let conditions = stored.pointer("/status/conditions").and_then(Value::as_array);
    let read = conditions.into_iter().flatten().map(|one| serde_json::from_value(one.clone()));
    read.filter_map(Result::ok).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_one_by_one_so_that_an_odd_one_loses_no_other() {
        let said = json!({
            "type": "Available", "status": "True", "reason": "QuorumServes", "message": "",
            "lastTransitionTime": "2026-11-21T00:00:00Z",
        });
        let stored =
            json!({"spec": {"replicas": "three"}, "status": {"conditions": [said, {"type": 7}, "odd"]}});
        let types: Vec<_> = conditions(&stored).into_iter().map(|one| one.type_).collect();
        assert_eq!(types, ["Available"]);
        assert_eq!(conditions(&json!({"status": {"conditions": "odd"}})), []);
        assert_eq!(conditions(&json!({})), []);
    }
}
