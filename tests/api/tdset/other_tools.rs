//! Tools that apply a repository again and again: what docs/tdset/tasks.md says of them.

use kit::bed::{Bed, Namespace};
use kit::examples::in_page;
use kit::objects::Ask;
use serde_json::{Value, json};

use super::watched::Counts;
use super::{for_workload, message, owners_of_count, scale, until_condition, until_notes, workload};
use crate::Test;

pub const TESTS: &[Test] = &kit::tests![a_tool_without_the_count_takes_nothing_back_and_one_with_it_is_named];

/// Applies a Deployment with force, as such tools do.
fn apply(namespace: &Namespace, manager: &str, object: &Value) {
    let name = object["metadata"]["name"].as_str().unwrap();
    let path = namespace.path(&format!("deployment/{name}"));
    let path = format!("{path}?fieldManager={manager}&force=true");
    namespace.bed.objects.must(Ask { method: "APPLY", path, body: object.clone() });
}

fn a_tool_without_the_count_takes_nothing_back_and_one_with_it_is_named(bed: &Bed) {
    let namespace = bed.namespace();
    // What Argo CD ignores is what this manager owns.
    let page = in_page("tdset/tasks.md", "Argo CD");
    let ignored = &page[0]["spec"]["ignoreDifferences"][0];
    assert_eq!((&ignored["group"], &ignored["kind"]), (&json!("apps"), &json!("Deployment")));
    for (name, manager) in [("argo", "argocd-controller"), ("flux", "kustomize-controller")] {
        let counts = Counts::of(&namespace, "deployments", name);
        let with = workload("Deployment", name, 7);
        let mut without = with.clone();
        without["spec"].as_object_mut().unwrap().remove("replicas");
        apply(&namespace, manager, &without);
        // Such a tool does not scale.
        let fields = json!({"manualScalePolicy": "KeepUntilNextTransition"});
        namespace.create(&for_workload(name, "apps/v1", "Deployment", name, &fields));
        counts.until(&[1, 2]);
        namespace.until(&format!("tdset/{name}"), "{.status.scheduledReplicas}", "2");
        without["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.k8s.io/pause:3.9");
        apply(&namespace, manager, &without);
        let owners = owners_of_count(&namespace.get("deployment", name));
        assert!(!owners.contains(&manager.to_owned()), "{owners:?}");
        // Where no client has applied the count, the API server names no writer of it, and the tool has not applied it.
        scale(&namespace, &format!("deployment/{name}"), 5);
        let object = until_condition(&namespace, name, "ManualOverride", "True", "ManuallyScaled");
        let said = message(&object, "ManualOverride");
        assert!(said.starts_with("another client wrote 5, 2 are scheduled"), "{said}");

        super::until_seconds_old(&namespace, "deployment", name);
        apply(&namespace, manager, &with);
        counts.until(&[1, 2, 5, 7, 2]);
        let notes = until_notes(&namespace, name, "ReplicasReverted", 1);
        assert_eq!(notes, [format!("replicas 7 → 2: taken back from {manager}")]);
        let owners = owners_of_count(&namespace.get("deployment", name));
        assert_eq!(json!(owners), ignored["managedFieldsManagers"], "{manager}");
    }
}
