//! Autoscalers: that of the spec gets its bounds, that of somebody else keeps the count.

use serde_json::{Value, json};

use super::{for_workload, foreign, message, owners_of_count, span, tdset, until_condition};
use crate::Test;
use crate::support::{Bed, Namespace};

pub const TESTS: &[Test] = &[
    (
        "an_autoscaler_gets_its_bounds_and_the_workload_no_count",
        an_autoscaler_gets_its_bounds_and_the_workload_no_count,
    ),
    ("an_autoscaler_of_a_workload_that_is_there", an_autoscaler_of_a_workload_that_is_there),
    (
        "an_autoscaler_that_is_missing_or_of_another_is_named",
        an_autoscaler_that_is_missing_or_of_another_is_named,
    ),
    ("an_autoscaler_of_somebody_else_has_the_count", an_autoscaler_of_somebody_else_has_the_count),
];

pub fn autoscaler(namespace: &Namespace, name: &str, deployment: &str, least: u32, most: u32) {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment});
    let object = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most}});
    namespace.kubectl(&["create"]).input(object.to_string()).ok();
}

fn bounds(namespace: &Namespace, name: &str) -> (Value, Value) {
    let spec = namespace.get("hpa", name)["spec"].clone();
    (spec["minReplicas"].clone(), spec["maxReplicas"].clone())
}

fn an_autoscaler_gets_its_bounds_and_the_workload_no_count(bed: &Bed) {
    let namespace = bed.namespace();
    autoscaler(&namespace, "web", "web", 1, 2);
    let mut rush = span("rush", 4, 7200, 4);
    rush["maxReplicas"] = json!(9);
    let fields =
        json!({"replicas": 2, "autoscaler": {"hpaRef": "web", "maxReplicas": 6}, "exceptions": [rush]});
    namespace.kubectl(&["create"]).input(tdset("web", &fields)).ok();
    namespace.until("hpa/web", "{.spec.minReplicas}", "2");
    assert_eq!(bounds(&namespace, "web"), (json!(2), json!(6)));
    namespace.until_created("deployment/web");
    namespace.until("hpa/web", "{.spec.minReplicas}", "4");
    assert_eq!(bounds(&namespace, "web"), (json!(4), json!(9)));
    namespace.until("tdset/web", "{.status.lastTransition.to.replicas}", "4");

    // The count is nobody's but the autoscaler's, and that of whoever stands for it here.
    namespace.kubectl(&["scale", "deployment/web", "--replicas=8"]).ok();
    namespace.kubectl(&["label", "tdset/web", "colour=red"]).ok();
    let target = json!({"target": {"create": {"image": "registry.k8s.io/pause:3.9"}}});
    super::patch(&namespace, "web", &target);
    let image = "{.spec.template.spec.containers[0].image}";
    namespace.until("deployment/web", image, "registry.k8s.io/pause:3.9");
    let deployment = namespace.get("deployment", "web");
    assert_eq!(deployment["spec"]["replicas"], 8);
    let owners = owners_of_count(&deployment);
    assert!(!owners.iter().any(|owner| owner.starts_with("gatehouse")), "{owners:?}");
    // What somebody else makes of the bounds is taken back.
    let other = r#"{"spec":{"minReplicas":1,"maxReplicas":3}}"#;
    namespace.kubectl(&["patch", "hpa", "web", "--type=merge", "-p", other]).ok();
    namespace.until("hpa/web", "{.spec.minReplicas}", "4");
    assert_eq!(bounds(&namespace, "web"), (json!(4), json!(9)));
}

fn an_autoscaler_of_a_workload_that_is_there(bed: &Bed) {
    let namespace = bed.namespace();
    foreign(&namespace, "web", 3);
    autoscaler(&namespace, "web", "web", 1, 3);
    let fields = json!({"replicas": 5, "autoscaler": {"hpaRef": "web"}});
    namespace.kubectl(&["create"]).input(for_workload("hours", "apps/v1", "Deployment", "web", &fields)).ok();
    // Its upper bound is not ours, so that is how far the lower one goes.
    namespace.until("hpa/web", "{.spec.minReplicas}", "3");
    assert_eq!(bounds(&namespace, "web"), (json!(3), json!(3)));
    let owners = owners_of_count(&namespace.get("deployment", "web"));
    assert!(!owners.iter().any(|owner| owner.starts_with("gatehouse")), "{owners:?}");
    if bed.cluster.has_controller_manager() {
        let object = until_condition(&namespace, "hours", "Ready", "False", "OutOfBounds");
        let expected = "5 are scheduled, minReplicas of HorizontalPodAutoscaler web can be 3";
        assert_eq!(message(&object, "Ready"), expected);
    }
}

fn an_autoscaler_that_is_missing_or_of_another_is_named(bed: &Bed) {
    let namespace = bed.namespace();
    foreign(&namespace, "web", 1);
    let fields = json!({"autoscaler": {"hpaRef": "web"}});
    namespace.kubectl(&["create"]).input(for_workload("hours", "apps/v1", "Deployment", "web", &fields)).ok();
    let object = until_condition(&namespace, "hours", "Ready", "False", "AutoscalerNotFound");
    assert_eq!(message(&object, "Ready"), "HorizontalPodAutoscaler web does not exist");
    autoscaler(&namespace, "web", "other", 1, 3);
    let object = until_condition(&namespace, "hours", "Ready", "False", "AutoscalerElsewhere");
    assert!(
        message(&object, "Ready").contains("scales Deployment other, and not Deployment web"),
        "{object}"
    );
    namespace.kubectl(&["delete", "hpa", "web"]).ok();
    autoscaler(&namespace, "web", "web", 1, 3);
    namespace.until("hpa/web", "{.spec.minReplicas}", "2");
}

fn an_autoscaler_of_somebody_else_has_the_count(bed: &Bed) {
    let namespace = bed.namespace();
    foreign(&namespace, "web", 4);
    autoscaler(&namespace, "theirs", "web", 1, 9);
    namespace
        .kubectl(&["create"])
        .input(for_workload("hours", "apps/v1", "Deployment", "web", &json!({})))
        .ok();
    let object = until_condition(&namespace, "hours", "Conflict", "True", "OtherAutoscaler");
    assert!(
        message(&object, "Conflict").contains("HorizontalPodAutoscaler theirs scales the workload"),
        "{object}"
    );
    assert_eq!(namespace.get("deployment", "web")["spec"]["replicas"], 4);
    assert_eq!(bounds(&namespace, "theirs"), (json!(1), json!(9)));
    namespace.kubectl(&["delete", "hpa", "theirs"]).ok();
    namespace.until("deployment/web", "{.spec.replicas}", "2");
    until_condition(&namespace, "hours", "Conflict", "False", "NoConflict");
}
