//! What docs/tdset/tasks.md has Flux do. `tests/api/tdset/other_tools.rs` shows the rest of that page.

use std::fs;

use kit::deploy::{objects, outcome};
use kit::examples::in_page;
use serde_json::{Value, json};

const COUNT: &str = "/spec/replicas";

fn shop() -> Value {
    let labels = json!({"app": "shop"});
    let container = json!({"name": "shop", "image": "shop:1"});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop"},
        "spec": {"replicas": 7, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}})
}

/// Flux builds a Kustomization with the patches of its spec as kustomize does.
#[test]
fn a_kustomization_of_flux_takes_the_count_out_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = in_page("tdset/tasks.md", "Flux");
    let kustomization = json!({"resources": ["shop.yaml"], "patches": page[0]["spec"]["patches"]});
    for (name, object) in [("kustomization.yaml", &kustomization), ("shop.yaml", &shop())] {
        fs::write(folder.path().join(name), object.to_string()).expect("a file");
    }
    let built = outcome("kustomize", &["build", folder.path().to_str().expect("UTF-8")], "");
    let built = objects(&built.unwrap_or_else(|error| panic!("{error}")));
    let mut expected = shop();
    expected["spec"].as_object_mut().expect("fields").remove("replicas");
    assert_eq!(built, [expected]);
}

/// A HelmRelease ignores what such pointers lead to in objects of that kind.
#[test]
fn a_helm_release_of_flux_ignores_the_count() {
    let page = in_page("tdset/tasks.md", "Flux");
    let drift = &page[1]["spec"]["driftDetection"];
    let [rule] = drift["ignore"].as_array().expect("rules").as_slice() else { panic!("{drift}") };
    assert_eq!(rule["target"]["kind"], shop()["kind"]);
    assert_eq!(rule["paths"], json!([COUNT]));
    assert_eq!(shop().pointer(COUNT), Some(&json!(7)));
}
