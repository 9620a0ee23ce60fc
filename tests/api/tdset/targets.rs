//! Workloads that somebody else made: Deployments, StatefulSets, and kinds that the shipped rights do not know.

use serde_json::{Value, json};

use super::{TDSETS, for_workload, foreign, message, notes, owners_of_count, patch, span, until_condition};
use crate::Test;
use crate::support::{Bed, NAMESPACE, Namespace, eventually, until_established};

pub const TESTS: &[Test] = &[
    ("of_a_deployment_only_the_count_is_written", of_a_deployment_only_the_count_is_written),
    ("a_stateful_set_follows_the_timetable", a_stateful_set_follows_the_timetable),
    ("a_custom_kind_is_scaled_once_that_is_granted", a_custom_kind_is_scaled_once_that_is_granted),
    ("a_kind_that_is_not_there_is_named", a_kind_that_is_not_there_is_named),
    (
        "a_workload_that_is_missing_is_scaled_when_it_comes",
        a_workload_that_is_missing_is_scaled_when_it_comes,
    ),
    ("a_deleted_schedule_leaves_the_count", a_deleted_schedule_leaves_the_count),
    (
        "a_deleted_schedule_leaves_the_count_that_it_states",
        a_deleted_schedule_leaves_the_count_that_it_states,
    ),
    ("nothing_holds_up_a_deletion_without_a_workload", nothing_holds_up_a_deletion_without_a_workload),
];

fn create(namespace: &Namespace, manifest: &Value) {
    namespace.kubectl(&["create"]).input(manifest.to_string()).ok();
}

/// A StatefulSet with one replica.
fn stateful_set(name: &str) -> Value {
    let labels = json!({"app": name});
    let container = json!({"name": "main", "image": "registry.k8s.io/pause:3.10"});
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
        "spec": {"serviceName": name, "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}})
}

/// A definition of a kind with a count that is called `size`, in a group of its own.
fn definition(group: &str, scalable: bool) -> Value {
    let number = json!({"type": "integer"});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": number}},
        "status": {"type": "object", "properties": {"size": number}},
    }});
    let mut subresources = json!({"status": {}});
    if scalable {
        subresources["scale"] =
            json!({"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"});
    }
    let version = json!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema}, "subresources": subresources});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "versions": [version],
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"}}})
}

fn define(bed: &Bed, group: &str, scalable: bool) {
    bed.kubectl(&["create"]).input(definition(group, scalable).to_string()).ok();
    until_established(&bed.cluster, &format!("widgets.{group}"));
}

/// What an administrator does so that a kind of his can be scaled.
fn grant(bed: &Bed, group: &str) {
    let metadata = json!({"name": format!("gatehouse-{group}")});
    let rules = json!([
        {"apiGroups": [group], "resources": ["widgets"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [group], "resources": ["widgets/scale"], "verbs": ["get", "patch"]},
    ]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": metadata, "rules": rules});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": metadata["name"]},
        "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": "gatehouse"}]});
    for object in [role, binding] {
        bed.kubectl(&["create"]).input(object.to_string()).ok();
    }
}

fn of_a_deployment_only_the_count_is_written(bed: &Bed) {
    let namespace = bed.namespace();
    foreign(&namespace, "web", 5);
    let mut before = namespace.get("deployment", "web");
    namespace
        .kubectl(&["create"])
        .input(for_workload("hours", "apps/v1", "Deployment", "web", &json!({})))
        .ok();
    namespace.until("deployment/web", "{.spec.replicas}", "2");
    let after = namespace.get("deployment", "web");
    before["spec"]["replicas"] = json!(2);
    assert_eq!(before["spec"], after["spec"]);
    for field in ["labels", "ownerReferences", "finalizers"] {
        assert_eq!(before["metadata"].get(field), after["metadata"].get(field), "{field}");
    }
    assert_eq!(owners_of_count(&after), ["gatehouse-tdset-count"]);
    let scale = after["metadata"]["managedFields"].as_array().unwrap().iter();
    assert!(
        scale
            .filter(|one| one["manager"] == "gatehouse-tdset-count")
            .all(|one| one["subresource"] == "scale")
    );
    if bed.cluster.has_controller_manager() {
        let object = until_condition(&namespace, "hours", "Ready", "True", "AsScheduled");
        assert_eq!(message(&object, "Ready"), "2 of 2 replicas are there");
        assert_eq!(object["status"]["selector"], "app=web");
    }
    // What its own maker applies later leaves the count alone, if he leaves it out.
    namespace.kubectl(&["set", "image", "deployment/web", "pause=registry.k8s.io/pause:3.9"]).ok();
    patch(&namespace, "hours", &json!({"replicas": 3}));
    namespace.until("deployment/web", "{.spec.replicas}", "3");
    let image = &namespace.get("deployment", "web")["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "registry.k8s.io/pause:3.9");
}

fn a_stateful_set_follows_the_timetable(bed: &Bed) {
    let namespace = bed.namespace();
    create(&namespace, &stateful_set("database"));
    let fields = json!({"exceptions": [span("rush", 3, 7200, 4)]});
    let manifest = for_workload("hours", "apps/v1", "StatefulSet", "database", &fields);
    namespace.kubectl(&["create"]).input(manifest).ok();
    namespace.until("statefulset/database", "{.spec.replicas}", "4");
    namespace.until("tdset/hours", "{.status.activeWindow}", "exception/rush");
    namespace.until("tdset/hours", "{.status.lastTransition.to.replicas}", "4");
    assert_eq!(owners_of_count(&namespace.get("statefulset", "database")), ["gatehouse-tdset-count"]);
    namespace.kubectl(&["scale", "statefulset/database", "--replicas=1"]).ok();
    namespace.until("statefulset/database", "{.spec.replicas}", "4");
}

fn a_custom_kind_is_scaled_once_that_is_granted(bed: &Bed) {
    const GROUP: &str = "granted.example.com";
    let namespace = bed.namespace();
    define(bed, GROUP, true);
    let api_version = format!("{GROUP}/v1");
    let widget = json!({"apiVersion": api_version, "kind": "Widget", "metadata": {"name": "one"}, "spec": {"size": 1}});
    create(&namespace, &widget);
    namespace
        .kubectl(&["create"])
        .input(for_workload("hours", &api_version, "Widget", "one", &json!({})))
        .ok();
    let object = until_condition(&namespace, "hours", "Ready", "False", "RightMissing");
    assert_eq!(
        message(&object, "Ready"),
        format!(
            "gatehouse may not get and patch widgets/scale of API group {GROUP}: \
             grant that to its ServiceAccount"
        )
    );
    assert_eq!(notes(&namespace, "hours", "RightMissing").len(), 1, "it is told of once");
    grant(bed, GROUP);
    let plural = format!("widgets.{GROUP}");
    namespace.until(&format!("{plural}/one"), "{.spec.size}", "2");
    // From now on it is watched.
    let resize = |size: u32| {
        let patch = json!({"spec": {"size": size}}).to_string();
        namespace.kubectl(&["patch", &plural, "one", "--type=merge", "-p", &patch]).ok();
    };
    resize(9);
    namespace.until(&format!("{plural}/one"), "{.spec.size}", "2");
    patch(&namespace, "hours", &json!({"manualScale": "KeepUntilNextTransition"}));
    namespace.until("tdset/hours", "{.status.observedGeneration}", "2");
    resize(8);
    until_condition(&namespace, "hours", "ManualOverride", "True", "ManuallyScaled");
    assert_eq!(namespace.get(&plural, "one")["spec"]["size"], 8);
}

fn a_kind_that_is_not_there_is_named(bed: &Bed) {
    const GROUP: &str = "plain.example.com";
    let namespace = bed.namespace();
    define(bed, GROUP, false);
    for (name, api_version, kind, reason, text) in [
        ("no-scale", format!("{GROUP}/v1"), "Widget", "TargetNotScalable", "has no scale subresource"),
        ("no-kind", format!("{GROUP}/v1"), "Gadget", "TargetNotFound", "has no kind Gadget"),
        ("no-group", "none.example.com/v1".to_owned(), "Widget", "TargetNotFound", "is not served"),
    ] {
        namespace.kubectl(&["create"]).input(for_workload(name, &api_version, kind, name, &json!({}))).ok();
        let object = until_condition(&namespace, name, "Ready", "False", reason);
        assert!(message(&object, "Ready").contains(text), "{object}");
    }
}

fn a_workload_that_is_missing_is_scaled_when_it_comes(bed: &Bed) {
    let namespace = bed.namespace();
    namespace
        .kubectl(&["create"])
        .input(for_workload("hours", "apps/v1", "Deployment", "web", &json!({})))
        .ok();
    let object = until_condition(&namespace, "hours", "Ready", "False", "TargetNotFound");
    assert_eq!(message(&object, "Ready"), "Deployment web does not exist");
    assert_eq!(object["status"]["scheduledReplicas"], 2, "the timetable is told all the same");
    for replicas in [5, 6] {
        foreign(&namespace, "web", replicas);
        namespace.until("deployment/web", "{.spec.replicas}", "2");
        eventually(|| {
            let status = namespace.get(TDSETS, "hours")["status"].clone();
            let text = status.to_string();
            if text.contains("TargetNotFound") { Err(text) } else { Ok(()) }
        });
        namespace.kubectl(&["delete", "deployment", "web"]).ok();
        until_condition(&namespace, "hours", "Ready", "False", "TargetNotFound");
    }
}

fn a_deleted_schedule_leaves_the_count(bed: &Bed) {
    let namespace = bed.namespace();
    foreign(&namespace, "web", 5);
    namespace
        .kubectl(&["create"])
        .input(for_workload("hours", "apps/v1", "Deployment", "web", &json!({})))
        .ok();
    namespace.until("deployment/web", "{.spec.replicas}", "2");
    assert!(namespace.get(TDSETS, "hours")["metadata"].get("finalizers").is_none());
    namespace.kubectl(&["delete", TDSETS, "hours"]).ok();
    assert_eq!(namespace.get("deployment", "web")["spec"]["replicas"], 2);
    namespace.kubectl(&["scale", "deployment/web", "--replicas=7"]).ok();
    assert_eq!(namespace.get("deployment", "web")["spec"]["replicas"], 7);
}

fn left_with(name: &str, replicas: u32) -> String {
    let reference =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "replicasOnDeletion": replicas});
    for_workload("hours", "apps/v1", "Deployment", name, &json!({"target": {"ref": reference}}))
}

fn a_deleted_schedule_leaves_the_count_that_it_states(bed: &Bed) {
    let namespace = bed.namespace();
    foreign(&namespace, "web", 5);
    namespace.kubectl(&["create"]).input(left_with("web", 6)).ok();
    namespace.until("deployment/web", "{.spec.replicas}", "2");
    let finalizers = eventually(|| {
        let metadata = namespace.get(TDSETS, "hours")["metadata"].clone();
        metadata.get("finalizers").cloned().ok_or_else(|| metadata.to_string())
    });
    assert_eq!(finalizers, json!(["gatehouse.dev/replicas-on-deletion"]));
    namespace.kubectl(&["delete", TDSETS, "hours"]).ok();
    assert_eq!(namespace.get("deployment", "web")["spec"]["replicas"], 6);
}

fn nothing_holds_up_a_deletion_without_a_workload(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.kubectl(&["create"]).input(left_with("nothing", 6)).ok();
    until_condition(&namespace, "hours", "Ready", "False", "TargetNotFound");
    namespace.kubectl(&["delete", TDSETS, "hours", "--timeout=30s"]).ok();
}
