//! Two EtcdClusters with all that was made for them, side by side.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Kinds of objects that are made for an EtcdCluster, as lists of them are asked for.
pub const KINDS: [&str; 9] = [
    "configmaps",
    "cronjobs",
    "jobs",
    "persistentvolumeclaims",
    "poddisruptionbudgets",
    "pods",
    "secrets",
    "services",
    "statefulsets",
];

/// What each has of its own: where it is in an object, and why. `*` stands for each of a list.
const OWN: [(&str, &str, &str); 11] = [
    ("", "/metadata/annotations/gatehouse.dev~1applied-hash", "a digest of names and uids too"),
    ("", "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration", "how it was made"),
    ("pods", "/metadata/annotations/gatehouse.dev~1config", "a resourceVersion"),
    ("pods", "/metadata/labels/controller-revision-hash", "a digest of names and uids too"),
    ("pods", "/metadata/generateName", "a name"),
    ("persistentvolumeclaims", "/spec/volumeName", "a uid"),
    ("services", "/spec/clusterIP", "an address"),
    ("services", "/spec/clusterIPs", "an address"),
    (
        "statefulsets",
        "/spec/volumeClaimTemplates/0/spec/resources",
        "what was asked for at first: Kubernetes lets no one change it, and claims are compared themselves",
    ),
    ("statefulsets", "/spec/volumeClaimTemplates/0/status", "of no claim"),
    (
        "configmaps",
        "/data/*/initial-cluster",
        "who was a member when this one was: etcd reads it on an empty volume alone",
    ),
];

/// Fields of an object that are compared.
const FIELDS: [&str; 5] = ["metadata", "spec", "data", "type", "status"];

/// Fields of its metadata that are.
const METADATA: [&str; 5] = ["name", "labels", "annotations", "finalizers", "ownerReferences"];

/// Fields of the status of an EtcdCluster, of its members and of its conditions that are: the others are identities,
/// times, sizes, and who leads.
const STATUS: [&str; 9] = [
    "version",
    "clusterVersion",
    "replicas",
    "readyReplicas",
    "selector",
    "members",
    "endpoints",
    "operation",
    "conditions",
];
const MEMBER: [&str; 4] = ["name", "role", "version", "healthy"];
const CONDITION: [&str; 4] = ["type", "status", "reason", "message"];

/// A cluster as others of the same spec are: objects by kind and name. `objects` are lists by kind, and `cluster` is
/// the EtcdCluster.
#[must_use]
pub fn snapshot(cluster: &Value, objects: &BTreeMap<&str, Vec<Value>>) -> BTreeMap<String, Value> {
    let own = names(cluster, objects);
    let mut all: BTreeMap<_, _> = objects
        .iter()
        .flat_map(|(kind, objects)| objects.iter().map(move |object| (*kind, object)))
        .map(|(kind, object)| (format!("{kind}/{}", text(&object["metadata"]["name"])), bare(kind, object)))
        .collect();
    all.insert("etcdcluster".to_owned(), bare("etcdclusters", cluster));
    for object in all.values_mut() {
        rename(object, &own);
    }
    all
}

/// Where two of them differ, and what each has there.
#[must_use]
pub fn differences(left: &BTreeMap<String, Value>, right: &BTreeMap<String, Value>) -> Vec<String> {
    let object = |all: &BTreeMap<String, Value>| {
        Value::Object(all.iter().map(|(name, object)| (name.clone(), object.clone())).collect())
    };
    let mut found = Vec::new();
    differ("", &object(left), &object(right), &mut found);
    found
}

fn differ(path: &str, left: &Value, right: &Value, found: &mut Vec<String>) {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let more = right.keys().filter(|key| !left.contains_key(*key));
            for key in left.keys().chain(more) {
                let of = |object: &Map<String, Value>| object.get(key).cloned().unwrap_or_default();
                differ(&format!("{path}/{key}"), &of(left), &of(right), found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (place, (left, right)) in left.iter().zip(right).enumerate() {
                differ(&format!("{path}/{place}"), left, right, found);
            }
        }
        _ if left != right => found.push(format!("{path}: {left} and {right}")),
        _ => {}
    }
}

/// What is compared of an object.
fn bare(kind: &str, object: &Value) -> Value {
    let mut bare = only(object, &FIELDS);
    bare["metadata"] = only(&object["metadata"], &METADATA);
    match kind {
        "configmaps" => bare["data"] = read(&object["data"]),
        "secrets" => bare["data"] = keys(&object["data"]),
        "etcdclusters" => bare["status"] = status(&object["status"]),
        _ => {}
    }
    if kind != "etcdclusters" {
        bare.as_object_mut().map(|fields| fields.remove("status"));
    }
    for (of, path, _) in OWN {
        let is_headless = path.starts_with("/spec/clusterIP") && object["spec"]["clusterIP"] == "None";
        if (of.is_empty() || of == kind) && !is_headless {
            remove(&mut bare, path);
        }
    }
    bare
}

fn status(status: &Value) -> Value {
    let mut bare = only(status, &STATUS);
    for (list, fields) in [("members", MEMBER), ("conditions", CONDITION)] {
        let items = status[list].as_array().into_iter().flatten();
        bare[list] = items.map(|item| only(item, &fields)).collect();
    }
    bare
}

/// Files of lines `key: value`, and of JSON, by their keys.
fn read(data: &Value) -> Value {
    let files = data.as_object().into_iter().flatten().map(|(name, file)| {
        let file = text(file);
        let lines = || file.lines().filter_map(|line| line.split_once(": ").or(Some((line, ""))));
        let lines = || Value::Object(lines().map(|(key, value)| (key.to_owned(), json!(value))).collect());
        (name.clone(), serde_json::from_str(file).unwrap_or_else(|_| lines()))
    });
    Value::Object(files.collect())
}

fn keys(data: &Value) -> Value {
    data.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect()
}

fn only(object: &Value, fields: &[&str]) -> Value {
    let kept = fields.iter().filter(|field| !object[**field].is_null());
    Value::Object(kept.map(|field| ((*field).to_owned(), object[*field].clone())).collect())
}

fn remove(object: &mut Value, path: &str) {
    if let Some((before, after)) = path.split_once("/*") {
        let each = object.pointer_mut(before).and_then(Value::as_object_mut);
        each.into_iter().flat_map(Map::values_mut).for_each(|object| remove(object, after));
        return;
    }
    let (parent, field) = path.rsplit_once('/').unwrap_or(("", path));
    let field = field.replace("~1", "/");
    if let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
        parent.remove(&field);
    }
}

/// Texts that are of this cluster alone, and what stands for them. The template of the StatefulSet is one, for it has a
/// digest of whom members trust: a pod or an entry of another template keeps that, and shows.
fn names(cluster: &Value, objects: &BTreeMap<&str, Vec<Value>>) -> Vec<(String, String)> {
    let metadata = &cluster["metadata"];
    let mut names = vec![
        (text(&metadata["uid"]).to_owned(), "<cluster>".to_owned()),
        (text(&metadata["namespace"]).to_owned(), "<namespace>".to_owned()),
    ];
    for member in cluster["status"]["members"].as_array().into_iter().flatten() {
        names.push((text(&member["id"]).to_owned(), format!("<id of {}>", text(&member["name"]))));
    }
    for object in objects.values().flatten() {
        let metadata = &object["metadata"];
        names.push((text(&metadata["uid"]).to_owned(), format!("<uid of {}>", text(&metadata["name"]))));
    }
    for set in objects.get("statefulsets").into_iter().flatten() {
        let template = &set["spec"]["template"]["metadata"]["annotations"]["gatehouse.dev/template"];
        let version = text(template).split('-').next().unwrap_or_default();
        names.push((text(template).to_owned(), format!("{version}-<revision>")));
    }
    names.retain(|(name, _)| !name.is_empty());
    names
}

fn rename(value: &mut Value, names: &[(String, String)]) {
    match value {
        Value::String(text) => {
            for (name, standing) in names {
                if text.contains(name.as_str()) {
                    *text = text.replace(name.as_str(), standing);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        Value::Object(fields) => fields.values_mut().for_each(|item| rename(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
