//! Two clusters that are asked for the same, of which nothing else becomes of one.
//!
//! What is made of both has to be the same, but for what [`MASKED`] and [`said`] leave out.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::cluster::{Etcd, NAME};
use crate::cluster::Namespace;
use crate::kubectl::eventually;

/// What is compared, beside the object itself.
const RESOURCES: [&str; 7] = [
    "configmaps",
    "persistentvolumeclaims",
    "poddisruptionbudgets",
    "pods",
    "secrets",
    "services",
    "statefulsets",
];

/// Fields that are another's, or of chance.
const MASKED: [&str; 19] = [
    "clusterIP", // given out by the API server
    "clusterIPs",
    "controller-revision-hash", // of a template that names the cluster
    "creationTimestamp",
    "data", // of Secrets: keys. That of ConfigMaps is read before
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",            // counts writes, and one that was refused and made again is one more
    "gatehouse.dev/config",  // the version of another object
    "gatehouse.dev/cluster", // a uid
    "lastTransitionTime",
    "managedFields",
    "nodeName",
    "observedGeneration",
    "ownerReferences", // by uid
    "resourceVersion",
    "uid",
    "volumeName", // has a uid in it
    "volumes",    // of Pods: a token's has a name by chance
];

pub struct Twin<'a> {
    /// Of which something becomes.
    pub one: (&'a Namespace<'a>, &'a Etcd<'a>),
    /// And of which nothing does.
    pub other: (&'a Namespace<'a>, &'a Etcd<'a>),
}

impl Twin<'_> {
    /// Waits until both are as they are asked for.
    #[track_caller]
    pub fn until_settled(&self, replicas: usize) {
        self.one.1.until_settled(replicas);
        self.other.1.until_settled(replicas);
    }

    /// The same is made of both.
    #[track_caller]
    pub fn is_alike(&self, what: &str) {
        eventually(|| {
            let [one, other] = [self.one, self.other].map(made);
            match difference(&one, &other, "") {
                Some(difference) => Err(format!("{what}, it is not as it should be: {difference}")),
                None => Ok(()),
            }
        });
    }
}

/// What is made of a cluster, by name.
fn made((namespace, etcd): (&Namespace<'_>, &Etcd<'_>)) -> Value {
    let labels = format!("app.kubernetes.io/instance={NAME}");
    let mut all = BTreeMap::new();
    for resource in RESOURCES {
        for mut object in namespace.list(resource, &labels) {
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let fields = object.as_object_mut().expect("an object");
            fields.remove("status"); // of whoever works them
            let told = if resource == "configmaps" { fields["data"].take() } else { Value::Null };
            let object = json!({"told": told, "object": object});
            all.insert(format!("{resource}/{name}"), masked(&object, &namespace.name));
        }
    }
    let object = etcd.object().expect("it is there");
    all.insert(
        "etcdcluster".to_owned(),
        masked(&json!({"spec": object["spec"], "status": said(&object)}), &namespace.name),
    );
    json!(all)
}

/// What the status says, identities and who leads left out.
fn said(object: &Value) -> Value {
    let status = &object["status"];
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let conditions: Vec<_> = conditions
        .map(|condition| json!([condition["type"], condition["status"], condition["reason"]]))
        .collect();
    let members = status["members"].as_array().into_iter().flatten();
    let members: Vec<_> = members
        .map(|member| json!([member["name"], member["role"], member["version"], member["healthy"]]))
        .collect();
    let fields =
        ["version", "clusterVersion", "replicas", "readyReplicas", "selector", "operation", "endpoints"];
    let fields: BTreeMap<_, _> = fields.iter().map(|field| (*field, &status[field])).collect();
    json!({"conditions": conditions, "members": members, "fields": fields})
}

/// A value without what is masked, the namespace by one name.
fn masked(value: &Value, namespace: &str) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| !MASKED.contains(&name.as_str()));
            kept.map(|(name, value)| (name.clone(), masked(value, namespace))).collect()
        }
        Value::Array(all) => all.iter().map(|value| masked(value, namespace)).collect(),
        Value::String(text) => text.replace(namespace, "NAMESPACE").into(),
        other => other.clone(),
    }
}

/// The first place where two values differ.
fn difference(one: &Value, other: &Value, place: &str) -> Option<String> {
    match (one, other) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let mut fields: Vec<_> = ours.keys().chain(theirs.keys()).collect();
            fields.sort();
            fields
                .into_iter()
                .find_map(|field| difference(&one[field], &other[field], &format!("{place}.{field}")))
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            let mut pairs = ours.iter().zip(theirs).enumerate();
            pairs.find_map(|(at, (one, other))| difference(one, other, &format!("{place}[{at}]")))
        }
        (one, other) if one == other => None,
        (one, other) => Some(format!("{place} is {one}, and {other} of the other")),
    }
}
