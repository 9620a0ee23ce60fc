use serde_json::{Value, json};

use super::*;
use crate::certs::certificate::Bundle;
use crate::certs::mint::Authority;
use crate::install::Address;

fn kinds() -> Vec<Resource> {
    vec![
        Resource { plural: "etcdclusters".to_owned(), has_scale: true },
        Resource { plural: "tdsets".to_owned(), has_scale: false },
    ]
}

fn bundle() -> Bundle {
    let authority = Authority::create(jiff::Timestamp::UNIX_EPOCH).unwrap();
    Bundle::of([authority.certificate().clone()]).unwrap()
}

fn in_cluster() -> Plan {
    Plan {
        bundle: Some(bundle()),
        ..Plan::at(Address::Service {
            name: "gatehouse".to_owned(),
            namespace: "gatehouse-system".to_owned(),
            port: 443,
        })
    }
}

fn outside() -> Plan {
    Plan { bundle: Some(bundle()), ..Plan::at(Address::from_url("https://127.0.0.1:9443").unwrap()) }
}

fn hook(configuration: &impl serde::Serialize) -> Value {
    let mut document = serde_json::to_value(configuration).unwrap();
    assert_eq!(document["metadata"]["name"], "gatehouse");
    let hooks = document["webhooks"].as_array_mut().unwrap();
    assert_eq!(hooks.len(), 1);
    hooks.remove(0)
}

#[test]
fn one_validating_hook_sees_every_version_every_kind_and_the_scale_subresource() {
    let hook = hook(&validating(&in_cluster(), &kinds()));
    assert_eq!(hook["name"], "validate.gatehouse.dev");
    assert_eq!(
        hook["rules"],
        json!([
            {
                "apiGroups": ["gatehouse.dev"],
                "apiVersions": ["v1alpha1", "v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["etcdclusters", "tdsets"],
                "scope": "Namespaced",
            },
            {
                "apiGroups": ["gatehouse.dev"],
                "apiVersions": ["v1alpha1", "v1"],
                "operations": ["UPDATE"],
                "resources": ["etcdclusters/scale"],
                "scope": "Namespaced",
            },
        ])
    );
}

#[test]
fn the_mutating_hook_sees_the_hub_alone_and_other_versions_converted_to_it() {
    let hook = hook(&mutating(&in_cluster(), &kinds(), &[]));
    assert_eq!(hook["name"], "mutate.gatehouse.dev");
    assert_eq!(hook["matchPolicy"], "Equivalent");
    assert_eq!(hook["reinvocationPolicy"], "IfNeeded");
    assert_eq!(
        hook["rules"],
        json!([{
            "apiGroups": ["gatehouse.dev"],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["etcdclusters", "tdsets"],
            "scope": "Namespaced",
        }])
    );
}

#[test]
fn without_a_kind_that_scales_there_is_no_rule_for_it() {
    let hook = hook(&validating(&in_cluster(), &kinds()[1..]));
    assert_eq!(hook["rules"].as_array().unwrap().len(), 1);
}

#[test]
fn both_hooks_fail_closed_soon_without_side_effects() {
    let plan = in_cluster();
    for hook in [hook(&validating(&plan, &kinds())), hook(&mutating(&plan, &kinds(), &[]))] {
        assert_eq!(hook["failurePolicy"], "Fail");
        assert_eq!(hook["timeoutSeconds"], 5);
        assert_eq!(hook["sideEffects"], "None");
        assert_eq!(hook["matchPolicy"], "Equivalent");
        assert_eq!(hook["admissionReviewVersions"], json!(["v1"]));
        assert_eq!(hook["objectSelector"], json!({}));
    }
}

#[test]
fn in_a_cluster_the_service_is_called_for_all_namespaces() {
    let plan = in_cluster();
    let ca_bundle = serde_json::to_value(k8s_openapi::ByteString(bundle().pem().to_vec())).unwrap();
    assert!(ca_bundle.as_str().unwrap().starts_with("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"), "PEM in base64");
    for (hook, path) in [
        (hook(&validating(&plan, &kinds())), "/validate"),
        (hook(&mutating(&plan, &kinds(), &[])), "/mutate"),
    ] {
        assert_eq!(
            hook["clientConfig"]["service"],
            json!({"name": "gatehouse", "namespace": "gatehouse-system", "port": 443, "path": path})
        );
        assert_eq!(hook["clientConfig"].get("url"), None);
        assert_eq!(hook["namespaceSelector"], json!({}));
    }
}

#[test]
fn outside_of_a_cluster_the_url_is_called() {
    let plan = outside();
    for (hook, path) in [
        (hook(&validating(&plan, &kinds())), "/validate"),
        (hook(&mutating(&plan, &kinds(), &[])), "/mutate"),
    ] {
        assert_eq!(hook["clientConfig"]["url"], format!("https://127.0.0.1:9443{path}"));
        assert_eq!(hook["clientConfig"].get("service"), None);
    }
}

#[test]
fn where_some_namespaces_are_worked_only_their_objects_are_judged() {
    let namespaces = ["depot", "shop"].map(str::to_owned).into();
    let plan = Plan { namespaces, ..in_cluster() };
    for hook in [hook(&validating(&plan, &kinds())), hook(&mutating(&plan, &kinds(), &[]))] {
        let key = "kubernetes.io/metadata.name";
        assert_eq!(
            hook["namespaceSelector"],
            json!({"matchExpressions": [
                {"key": key, "operator": "In", "values": ["depot", "shop"]},
            ]})
        );
    }
}

#[test]
fn a_bundle_that_others_write_is_not_mentioned() {
    let plan = Plan { bundle: None, ..in_cluster() };
    for hook in [hook(&validating(&plan, &kinds())), hook(&mutating(&plan, &kinds(), &[]))] {
        assert_eq!(hook["clientConfig"].get("caBundle"), None);
    }
}

#[test]
fn the_same_plan_gives_the_same_bytes() {
    let plan = in_cluster();
    let bytes = |plan: &Plan| serde_json::to_vec(&validating(plan, &kinds())).unwrap();
    assert_eq!(bytes(&plan), bytes(&plan.clone()));
}

#[test]
fn every_kind_has_its_rules() {
    let plurals: Vec<_> = resources().into_iter().map(|one| one.plural).collect();
    let expected: Vec<_> = KINDS.iter().map(|kind| kind.names().plural.to_owned()).collect();
    assert_eq!(plurals, expected);
}

#[test]
fn pods_are_asked_about_where_they_and_their_namespace_are_labelled() {
    let plan = Plan { namespaces: ["shop".to_owned()].into(), ..in_cluster() };
    let configuration = mutating(&plan, &kinds(), &pod_hooks());
    let document = serde_json::to_value(configuration).unwrap();
    let hooks: Vec<_> = document["webhooks"].as_array().unwrap()[1..].to_vec();
    assert_eq!(hooks.len(), 2);
    for (hook, policy) in hooks.iter().zip(["Fail", "Ignore"]) {
        assert_eq!(hook["name"], format!("wait-for-migration-{}.gatehouse.dev", policy.to_ascii_lowercase()));
        assert_eq!(hook["failurePolicy"], policy);
        let label = "gatehouse.dev/wait-for-migration";
        assert_eq!(
            hook["namespaceSelector"],
            json!({"matchLabels": {label: policy},
                "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["shop"]}]})
        );
        assert_eq!(hook["objectSelector"], json!({"matchLabels": {label: "true"}}));
        assert_eq!(hook["rules"][0]["resources"], json!(["pods"]));
        assert_eq!(hook["rules"][0]["operations"], json!(["CREATE"]));
    }
}
