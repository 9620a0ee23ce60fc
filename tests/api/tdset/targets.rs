//! Workloads that another client made: Deployments, StatefulSets, and kinds that the shipped rights do not know.

use std::time::Duration;

use kit::bed::{Bed, NAMESPACE};
use kit::objects::Ask;
use kit::wait::eventually;
use serde_json::{Value, json};

use super::watched::Counts;
use super::{
    TDSETS, delete, for_workload, foreign, from_now, message, notes, owners_of_count, patch, scale, span,
    until_condition, until_status, with_span_ahead, workload,
};
use crate::Test;

pub const TESTS: &[Test] = &kit::tests![
    of_a_deployment_only_the_count_is_written,
    a_stateful_set_follows_the_timetable,
    a_custom_kind_is_scaled_once_that_is_granted,
    a_custom_object_without_its_count_gets_one,
    what_a_controller_owns_is_left_to_it,
    a_kind_that_is_not_there_is_named,
    a_workload_that_is_missing_is_scaled_when_it_comes,
    a_deleted_schedule_leaves_the_count,
    a_deleted_schedule_leaves_the_count_that_it_states,
    nothing_holds_up_a_deletion_without_a_workload,
    what_the_api_server_does_not_say_is_reported_and_waited_for,
    a_longer_name_than_a_label_takes_has_a_workload_too,
];

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

pub fn define(bed: &Bed, group: &str, scalable: bool) {
    bed.objects.must(Ask::create(&definition(group, scalable), ""));
    bed.until_established(&format!("widgets.{group}"));
}

/// What an administrator does so that a kind of his can be scaled by that account of gatehouse's namespace.
pub fn grant(bed: &Bed, group: &str, account: &str) {
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
        "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": account}]});
    for object in [role, binding] {
        bed.objects.must(Ask::create(&object, ""));
    }
}

fn of_a_deployment_only_the_count_is_written(bed: &Bed) {
    let namespace = bed.namespace();
    foreign(&namespace, "web", 5);
    let mut before = namespace.get("deployment", "web");
    namespace.create(&for_workload("hours", "apps/v1", "Deployment", "web", &json!({})));
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
    let object = until_condition(&namespace, "hours", "Ready", "True", "AsScheduled");
    assert_eq!(message(&object, "Ready"), "2 of 2 replicas are there");
    assert_eq!(object["status"]["selector"], "app=web");
    // What its own maker applies later leaves the count alone, if he leaves it out.
    let path = "/spec/template/spec/containers/0/image";
    let image = json!([{"op": "replace", "path": path, "value": "registry.k8s.io/pause:3.9"}]);
    namespace.change("deployment/web", &image);
    patch(&namespace, "hours", &json!({"defaultReplicas": 3}));
    namespace.until("deployment/web", "{.spec.replicas}", "3");
    let image = &namespace.get("deployment", "web")["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "registry.k8s.io/pause:3.9");
}

fn a_stateful_set_follows_the_timetable(bed: &Bed) {
    let namespace = bed.namespace();
    let make = |name: &str| {
        namespace.create(&workload("StatefulSet", name, 1));
        namespace.create(&for_workload(name, "apps/v1", "StatefulSet", name, &json!({})));
    };
    let (name, counts) = with_span_ahead(&namespace, 4, 1_000, make, "statefulsets");
    let (tdset, stateful_set) = (format!("tdset/{name}"), format!("statefulset/{name}"));
    counts.until(&[1, 2, 4]);
    namespace.until(&tdset, "{.status.activeWindow}", "exception/rush");
    namespace.until(&tdset, "{.status.lastTransition.to.replicas}", "4");
    assert_eq!(owners_of_count(&namespace.get("statefulset", &name)), ["gatehouse-tdset-count"]);
    scale(&namespace, &stateful_set, 1);
    counts.until(&[1, 2, 4, 1, 4]);
}

fn a_custom_kind_is_scaled_once_that_is_granted(bed: &Bed) {
    const GROUP: &str = "granted.example.com";
    let namespace = bed.namespace();
    define(bed, GROUP, true);
    let api_version = format!("{GROUP}/v1");
    let widget = json!({"apiVersion": api_version, "kind": "Widget", "metadata": {"name": "one"}, "spec": {"size": 1}});
    namespace.create(&widget);
    namespace.create(&for_workload("hours", &api_version, "Widget", "one", &json!({})));
    let object = until_condition(&namespace, "hours", "Ready", "False", "Forbidden");
    assert_eq!(
        message(&object, "Ready"),
        format!(
            "gatehouse may not get and patch widgets/scale of API group {GROUP}: \
             grant that to its ServiceAccount"
        )
    );
    grant(bed, GROUP, "gatehouse");
    let widgets = format!("/apis/{api_version}/namespaces/{}/widgets", namespace.name);
    let path = format!("{widgets}/one");
    let until_size = |size: u32| {
        bed.objects.follow(&widgets, "one", |found| {
            let found = found.map(|widget| &widget["spec"]["size"]);
            if found == Some(&json!(size)) { Ok(()) } else { Err(format!("its size is {found:?}")) }
        });
    };
    until_size(2);
    assert_eq!(notes(&namespace, "hours", "Forbidden").len(), 1, "it is reported once");
    // From now on it is watched.
    let resize = |size: u32| bed.objects.must(Ask::patch(&*path, json!({"spec": {"size": size}})));
    resize(9);
    until_size(2);
    patch(&namespace, "hours", &json!({"manualScalePolicy": "KeepUntilNextTransition"}));
    namespace.until("tdset/hours", "{.status.observedGeneration}", "2");
    resize(8);
    until_condition(&namespace, "hours", "ManualOverride", "True", "ManuallyScaled");
    assert_eq!(bed.objects.at(&path)["spec"]["size"], 8);
}

fn a_custom_object_without_its_count_gets_one(bed: &Bed) {
    const GROUP: &str = "unset.example.com";
    let namespace = bed.namespace();
    define(bed, GROUP, true);
    grant(bed, GROUP, "gatehouse");
    let api_version = format!("{GROUP}/v1");
    // Where the count is to be left out of what is applied, the field is not there at first.
    namespace.create(
        &json!({"apiVersion": api_version, "kind": "Widget", "metadata": {"name": "one"}, "spec": {}}),
    );
    namespace.create(&for_workload("hours", &api_version, "Widget", "one", &json!({})));
    let widgets = format!("/apis/{api_version}/namespaces/{}/widgets", namespace.name);
    let until_size = |name: &str, size: u32| {
        bed.objects.follow(&widgets, name, |found| {
            let found = found.map(|widget| &widget["spec"]["size"]);
            if found == Some(&json!(size)) { Ok(()) } else { Err(format!("its size is {found:?}")) }
        });
    };
    until_size("one", 2);
    namespace.until("tdset/hours", "{.status.scheduledReplicas}", "2");

    // Where the count is its own outside of a span, it gets one back, and never none.
    namespace.create(
        &json!({"apiVersion": api_version, "kind": "Widget", "metadata": {"name": "two"}, "spec": {}}),
    );
    let rush = span("rush", from_now(Duration::ZERO), from_now(Duration::from_hours(2)), 3);
    let fields = json!({"defaultReplicas": null, "exceptions": [rush]});
    namespace.create(&for_workload("lent", &api_version, "Widget", "two", &fields));
    until_size("two", 3);
    namespace.until("tdset/lent", "{.status.replicasBefore}", "1");
    patch(&namespace, "lent", &json!({"exceptions": null}));
    until_size("two", 1);
}

fn what_a_controller_owns_is_left_to_it(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(
        &json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "etcd"},
        "spec": {"replicas": 3, "tls": {"mode": "Disabled"}}}),
    );
    namespace.until_created("statefulset/etcd");
    // An owner of a kind that the garbage collector does not know.
    let counts = Counts::of(&namespace, "statefulsets", "rollout");
    let mut object = workload("StatefulSet", "rollout", 3);
    object["metadata"]["ownerReferences"] = json!([{"apiVersion": "owners.example.com/v1", "kind": "Owner",
        "name": "owner", "uid": "0e0f8a3a-7c8a-4b1e-9d57-2f1f6d0a7b11", "controller": true}]);
    namespace.create(&object);
    for (name, owner) in [("etcd", "EtcdCluster etcd"), ("rollout", "Owner owner")] {
        // Neither is it left with another count.
        let left =
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "replicasOnDeletion": 0});
        let fields = json!({"defaultReplicas": 0, "target": {"ref": left}});
        namespace.create(&for_workload("leaves", "apps/v1", "StatefulSet", name, &fields));
        until_condition(&namespace, "leaves", "Conflict", "True", "ControlledByOther");
        namespace.until("tdset/leaves", "{.metadata.finalizers[0]}", "gatehouse.dev/replicas-on-deletion");
        delete(&namespace, "leaves");
        let found = namespace.get("statefulset", name);
        assert_ne!(found["spec"]["replicas"], 0, "{name}");
        assert!(!owners_of_count(&found).contains(&"gatehouse-tdset-count".to_owned()), "{found}");
        namespace.create(&for_workload(name, "apps/v1", "StatefulSet", name, &json!({"defaultReplicas": 0})));
        let found = until_condition(&namespace, name, "Conflict", "True", "ControlledByOther");
        let expected = format!("StatefulSet {name} is controlled by {owner}: its count is left to that");
        assert!(message(&found, "Conflict").starts_with(&expected), "{found}");
        patch(&namespace, name, &json!({"controllerPolicy": "Override"}));
    }
    counts.until(&[3, 0]);
    // Of our own kinds it is never overridden.
    namespace.until("tdset/etcd", "{.status.observedGeneration}", "2");
    until_condition(&namespace, "etcd", "Conflict", "True", "ControlledByOther");
    let owners = owners_of_count(&namespace.get("statefulset", "etcd"));
    assert!(!owners.contains(&"gatehouse-tdset-count".to_owned()), "{owners:?}");
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
        namespace.create(&for_workload(name, &api_version, kind, name, &json!({})));
        let object = until_condition(&namespace, name, "Ready", "False", reason);
        assert!(message(&object, "Ready").contains(text), "{object}");
    }
}

fn a_workload_that_is_missing_is_scaled_when_it_comes(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(&for_workload("hours", "apps/v1", "Deployment", "web", &json!({})));
    let object = until_condition(&namespace, "hours", "Ready", "False", "TargetNotFound");
    assert_eq!(message(&object, "Ready"), "Deployment web does not exist");
    assert_eq!(object["status"]["scheduledReplicas"], 2, "the timetable is reported all the same");
    for replicas in [5, 6] {
        foreign(&namespace, "web", replicas);
        namespace.until("deployment/web", "{.spec.replicas}", "2");
        until_status(&namespace, "hours", |status| !status.to_string().contains("TargetNotFound"));
        namespace.delete("deployment/web");
        until_condition(&namespace, "hours", "Ready", "False", "TargetNotFound");
    }
}

fn a_deleted_schedule_leaves_the_count(bed: &Bed) {
    let namespace = bed.namespace();
    let counts = Counts::of(&namespace, "deployments", "web");
    foreign(&namespace, "web", 5);
    namespace.create(&for_workload("hours", "apps/v1", "Deployment", "web", &json!({})));
    counts.until(&[5, 2]);
    assert!(namespace.get(TDSETS, "hours")["metadata"].get("finalizers").is_none());
    delete(&namespace, "hours");
    scale(&namespace, "deployment/web", 7);
    // A schedule that comes later is worked after all that the other one's end and this count have brought about.
    let fields = json!({"defaultReplicas": 3});
    namespace.create(&for_workload("later", "apps/v1", "Deployment", "web", &fields));
    counts.until(&[5, 2, 7, 3]);
}

pub(super) fn left_with(name: &str, replicas: u32) -> Value {
    let reference =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "replicasOnDeletion": replicas});
    for_workload("hours", "apps/v1", "Deployment", name, &json!({"target": {"ref": reference}}))
}

fn a_deleted_schedule_leaves_the_count_that_it_states(bed: &Bed) {
    let namespace = bed.namespace();
    let counts = Counts::of(&namespace, "deployments", "web");
    foreign(&namespace, "web", 5);
    namespace.create(&left_with("web", 6));
    counts.until(&[5, 2]);
    let finalizers = bed.objects.until("tdset/hours", &namespace.name, |tdset| {
        tdset["metadata"].get("finalizers").cloned().ok_or_else(|| tdset["metadata"].to_string())
    });
    assert_eq!(finalizers, json!(["gatehouse.dev/replicas-on-deletion"]));
    // It is gone when the workload has the count.
    delete(&namespace, "hours");
    assert_eq!(namespace.get("deployment", "web")["spec"]["replicas"], 6);
    counts.until(&[5, 2, 6]);
}

fn nothing_holds_up_a_deletion_without_a_workload(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(&left_with("nothing", 6));
    until_condition(&namespace, "hours", "Ready", "False", "TargetNotFound");
    delete(&namespace, "hours");
}

fn what_the_api_server_does_not_say_is_reported_and_waited_for(bed: &Bed) {
    const GROUP: &str = "unread.example.com";
    let namespace = bed.namespace();
    let mut object = definition(GROUP, true);
    let mut newer = object["spec"]["versions"][0].clone();
    (newer["name"], newer["storage"]) = (json!("v2"), json!(false));
    object["spec"]["versions"].as_array_mut().unwrap().push(newer);
    // Nothing answers there.
    let webhook = json!({"conversionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/convert"}});
    let unanswered = json!({"strategy": "Webhook", "webhook": webhook});
    object["spec"]["conversion"] = unanswered.clone();
    bed.objects.must(Ask::create(&object, ""));
    bed.until_established(&format!("widgets.{GROUP}"));
    grant(bed, GROUP, "gatehouse");
    let stored = format!("{GROUP}/v1");
    namespace.create(
        &json!({"apiVersion": stored, "kind": "Widget", "metadata": {"name": "one"}, "spec": {"size": 1}}),
    );
    let version = format!("{GROUP}/v2");
    let reference = json!({"apiVersion": version, "kind": "Widget", "name": "one", "replicasOnDeletion": 4});
    namespace.create(&for_workload(
        "hours",
        &version,
        "Widget",
        "one",
        &json!({"target": {"ref": reference}}),
    ));
    let object = until_condition(&namespace, "hours", "Ready", "False", "TargetNotReadable");
    let said = message(&object, "Ready");
    let expected = format!("failed to read the scale of widgets {}/one: ", namespace.name);
    assert!(said.starts_with(&expected), "{said}");
    assert_eq!(object["status"]["scheduledReplicas"], 2, "the timetable is reported all the same");

    // As soon as it can be read again it has its count.
    let definition = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{GROUP}");
    let convert = |conversion: &Value| {
        bed.objects.must(Ask::patch(&*definition, json!({"spec": {"conversion": conversion}})));
    };
    let none = json!({"strategy": "None", "webhook": null});
    convert(&none);
    let widgets = format!("/apis/{stored}/namespaces/{}/widgets", namespace.name);
    let until_size = |size: u32| {
        bed.objects.follow(&widgets, "one", |found| {
            let found = found.map(|widget| &widget["spec"]["size"]);
            if found == Some(&json!(size)) { Ok(()) } else { Err(format!("its size is {found:?}")) }
        });
    };
    until_size(2);
    namespace.until("tdset/hours", "{.metadata.finalizers[0]}", "gatehouse.dev/replicas-on-deletion");

    // A deletion waits until it can leave the count behind.
    convert(&unanswered);
    let scale = format!("/apis/{version}/namespaces/{}/widgets/one/scale", namespace.name);
    eventually(|| match bed.objects.one(Ask::get(&*scale)) {
        Err(refusal) if refusal.code == 500 => Ok(()),
        other => Err(format!("{other:?}")),
    });
    namespace.delete("tdset/hours");
    until_condition(&namespace, "hours", "Ready", "False", "CountRefused");
    assert_eq!(bed.objects.at(&format!("{widgets}/one"))["spec"]["size"], 2);
    convert(&none);
    until_size(4);
    namespace.until_gone("tdset/hours");
}

fn a_longer_name_than_a_label_takes_has_a_workload_too(bed: &Bed) {
    let namespace = bed.namespace();
    let name = ["long"; 40].join("-");
    foreign(&namespace, &name[..63], 5);
    namespace.create(&for_workload(&name, "apps/v1", "Deployment", &name[..63], &json!({})));
    namespace.until(&format!("deployment/{}", &name[..63]), "{.spec.replicas}", "2");
    namespace.until(&format!("tdset/{name}"), "{.status.replicas}", "2");
    delete(&namespace, &name);
}
