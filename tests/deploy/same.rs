//! The chart and the kustomizations say the same.

use std::collections::BTreeMap;

use gatehouse::install::{Address, Plan, Served, definitions, webhooks};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kit::deploy::{NAMESPACE, helm, kind, of_kind, rendered, table};
use serde_json::{Value, json};

/// Labels that only helm writes.
const OF_HELM: [&str; 2] = ["helm.sh/chart", "app.kubernetes.io/managed-by"];

fn without_helm(mut object: Value) -> Value {
    for place in ["/metadata/labels", "/spec/template/metadata/labels"] {
        if let Some(Value::Object(labels)) = object.pointer_mut(place) {
            for label in OF_HELM {
                labels.remove(label);
            }
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
    assert_same(&comparable(helm(values)), &comparable(rendered(folder).to_vec()));
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
    let with = comparable(helm(&["installedBy=chart", BY_ADMINISTRATOR[1]]));
    let without = comparable(helm(&BY_ADMINISTRATOR[..2]));
    let added = with.into_iter().filter(|(key, _)| !without.contains_key(key)).collect();
    assert_same(&added, &comparable(rendered("administrator").to_vec()));
}

#[test]
fn what_the_chart_installs_is_what_the_binary_would() {
    installs_the_same(Served::default(), "{v1,v1alpha1}");
    installs_the_same(Served::hub(), "{v1}");
}

fn installs_the_same(served: Served, named: &str) {
    let plan = Plan {
        served,
        namespaces: ["team-a", "team-b"].map(str::to_owned).into(),
        ..Plan::at(Address::Service { name: "gatehouse".into(), namespace: NAMESPACE.into(), port: 8443 })
    };
    let resources = webhooks::resources();
    let objects = helm(&[
        "installedBy=chart",
        "certificates.source=secret",
        "certificates.caBundle=-----BEGIN CERTIFICATE-----",
        "service.port=8443",
        "watchNamespaces={team-b,team-a}",
        &format!("servedVersions={named}"),
    ]);
    let wanted = [
        (
            "MutatingWebhookConfiguration",
            json!(webhooks::mutating(&plan, &resources, &webhooks::pod_hooks()).webhooks),
        ),
        ("ValidatingWebhookConfiguration", json!(webhooks::validating(&plan, &resources).webhooks)),
    ];
    for (kind, wanted) in wanted {
        let mut hooks = of_kind(&objects, kind)[0]["webhooks"].clone();
        for hook in hooks.as_array_mut().unwrap() {
            let config = hook["clientConfig"].as_object_mut().unwrap();
            assert_eq!(config.remove("caBundle"), Some(BUNDLE.into()), "{kind}");
        }
        assert_eq!(hooks, wanted, "{kind}");
    }
    let rendered = of_kind(&objects, "CustomResourceDefinition");
    assert_eq!(rendered.len(), definitions::all(&plan).len());
    for (wanted, found) in definitions::all(&plan).into_iter().zip(rendered) {
        assert_eq!(found["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
        let mut found = found.clone();
        let config = &mut found["spec"]["conversion"]["webhook"]["clientConfig"];
        assert_eq!(config["caBundle"], BUNDLE);
        config.as_object_mut().unwrap().remove("caBundle");
        // Read as what it is: 7 and 7.0 are one number there.
        let found: CustomResourceDefinition = serde_json::from_value(found).unwrap();
        assert_eq!(found.metadata.name, wanted.metadata.name);
        assert!(found.spec == wanted.spec, "{:?} is another definition", found.metadata.name);
    }
}

/// `-----BEGIN CERTIFICATE-----` in base64.
const BUNDLE: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t";
