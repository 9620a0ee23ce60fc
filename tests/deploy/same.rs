//! The chart and the kustomizations say the same.

use std::collections::BTreeMap;

use serde_json::Value;

use super::support::{helm, kind, kustomize, table};

/// Labels that only helm writes.
const OF_HELM: [&str; 2] = ["helm.sh/chart", "app.kubernetes.io/managed-by"];

fn without_helm(mut object: Value) -> Value {
    for place in ["/metadata/labels", "/spec/template/metadata/labels"] {
        if let Some(Value::Object(labels)) = object.pointer_mut(place) {
            OF_HELM.iter().for_each(|label| drop(labels.remove(*label)));
        }
    }
    if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
        annotations.remove("helm.sh/resource-policy");
    }
    object
}

/// Namespaces are nothing that a chart makes.
fn comparable(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let objects = objects.into_iter().filter(|object| kind(object) != "Namespace");
    table(objects.map(without_helm).collect())
}

#[track_caller]
fn assert_same(chart: &BTreeMap<String, Value>, folder: &BTreeMap<String, Value>) {
    let (ours, theirs): (Vec<_>, Vec<_>) = (chart.keys().collect(), folder.keys().collect());
    assert_eq!(ours, theirs, "chart left, kustomize right");
    for (key, object) in chart {
        let as_text = |object: &Value| serde_json::to_string_pretty(&sorted(object)).unwrap();
        let (ours, theirs) = (as_text(object), as_text(&folder[key]));
        let differing = ours.lines().zip(theirs.lines()).find(|(ours, theirs)| ours != theirs);
        assert!(ours == theirs, "{key}: chart left, kustomize right: {differing:?}");
    }
}

/// Objects keep the order of their fields here, which says nothing.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[track_caller]
fn same(folder: &str, values: &[&str]) {
    assert_same(&comparable(helm(values)), &comparable(kustomize(folder)));
}

#[test]
fn the_base_is_the_chart_with_its_own_values() {
    same("base", &[]);
}

#[test]
fn each_overlay_is_the_chart_with_the_values_that_it_is_named_for() {
    same("overlays/cert-manager", &["certificates.source=certManager"]);
    same(
        "overlays/host-network",
        &["hostNetwork=true", "listen.webhookPort=19443", "listen.metricsPort=18080"],
    );
    same("overlays/monitoring", &["serviceMonitor.enabled=true", "alerts.enabled=true"]);
    same("overlays/single-replica", &["replicas=1"]);
    same("overlays/namespaced", &BY_ADMINISTRATOR);
}

const BY_ADMINISTRATOR: [&str; 3] =
    ["installedBy=administrator", "certificates.source=certManager", "watchNamespaces={team-a}"];

#[test]
fn what_the_administrator_applies_is_what_the_chart_adds_when_it_installs() {
    let with = comparable(helm(&["installedBy=chart", BY_ADMINISTRATOR[1], BY_ADMINISTRATOR[2]]));
    let without = comparable(helm(&BY_ADMINISTRATOR));
    let added = with.into_iter().filter(|(key, _)| !without.contains_key(key)).collect();
    assert_same(&added, &comparable(kustomize("administrator")));
}
