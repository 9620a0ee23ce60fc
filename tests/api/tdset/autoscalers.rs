//! Autoscalers: that of the spec gets its bounds, that of another owner keeps the count.

use kit::bed::{Bed, Namespace};
use kit::deploy;
use kit::examples::in_page;
use kit::objects::Ask;
use kit::operator::Fate;
use serde_json::{Value, json};

use super::refusals::Refusal;
use super::watched::Counts;
use super::{for_workload, foreign, label, message, owners_of_count, patch, scale, tdset, until_condition};
use crate::Test;
use crate::site::Site;

pub const TESTS: &[Test] = &kit::tests![
    an_autoscaler_of_a_workload_that_is_there,
    an_autoscaler_that_is_missing_or_of_another_is_named,
    another_clients_autoscaler_has_the_count,
    an_upper_bound_that_is_taken_out_stays,
    a_workload_sleeps_beside_its_autoscaler_and_wakes,
    stated_bounds_are_left_behind,
    a_scaled_object_gets_its_bounds,
    an_autoscaler_goes_to_none_each_night_by_its_bounds,
    a_workload_sleeps_beside_an_autoscaler_that_may_not_go_to_none,
    an_upper_bound_that_is_fought_over_is_named,
];

pub const ON_CLOCKS: &[Test] = &kit::tests![an_autoscaler_gets_its_bounds_and_the_workload_no_count];

pub fn autoscaler(namespace: &Namespace, name: &str, deployment: &str, least: u32, most: u32) {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment});
    let object = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most}});
    namespace.create(&object);
}

fn bounds(namespace: &Namespace, name: &str) -> (Value, Value) {
    let spec = namespace.get("hpa", name)["spec"].clone();
    (spec["minReplicas"].clone(), spec["maxReplicas"].clone())
}

fn an_autoscaler_gets_its_bounds_and_the_workload_no_count(bed: &Bed) {
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let _operator = site.start(Fate::Lives);
    autoscaler(&namespace, "web", "web", 1, 2);
    let mut rush = site.span("rush", 5, 120, 4);
    rush["maxReplicas"] = json!(9);
    let fields =
        json!({"defaultReplicas": 2, "autoscaler": {"name": "web", "maxReplicas": 6}, "exceptions": [rush]});
    namespace.create(&tdset("web", &fields));
    namespace.until("hpa/web", "{.spec.minReplicas}", "2");
    assert_eq!(bounds(&namespace, "web"), (json!(2), json!(6)));
    namespace.until_created("deployment/web");
    namespace.until("tdset/web", "{.status.nextTransition.replicas}", "4");
    site.jump(5);
    namespace.until("hpa/web", "{.spec.minReplicas}", "4");
    assert_eq!(bounds(&namespace, "web"), (json!(4), json!(9)));
    namespace.until("tdset/web", "{.status.lastTransition.to.replicas}", "4");

    // Only the autoscaler owns the count. Its controller, which looks every 15 seconds, has come to the lower bound
    // before another client scales: what it has decided before it would write after that.
    namespace.until("deployment/web", "{.spec.replicas}", "4");
    scale(&namespace, "deployment/web", 8);
    label(&namespace, "tdset/web", "red");
    let target = json!({"target": {"create": {"image": "registry.k8s.io/pause:3.9"}}});
    patch(&namespace, "web", &target);
    let image = "{.spec.template.spec.containers[0].image}";
    namespace.until("deployment/web", image, "registry.k8s.io/pause:3.9");
    let deployment = namespace.get("deployment", "web");
    assert_eq!(deployment["spec"]["replicas"], 8);
    let owners = owners_of_count(&deployment);
    assert!(!owners.iter().any(|owner| owner.starts_with("gatehouse")), "{owners:?}");
    // What another client makes of the bounds is taken back.
    namespace.change("hpa/web", &json!({"spec": {"minReplicas": 1, "maxReplicas": 3}}));
    namespace.until("hpa/web", "{.spec.minReplicas}", "4");
    assert_eq!(bounds(&namespace, "web"), (json!(4), json!(9)));
}

fn an_autoscaler_of_a_workload_that_is_there(bed: &Bed) {
    let namespace = bed.namespace();
    foreign(&namespace, "web", 3);
    autoscaler(&namespace, "web", "web", 1, 3);
    let fields = json!({"defaultReplicas": 5, "autoscaler": {"name": "web"}});
    namespace.create(&for_workload("hours", "apps/v1", "Deployment", "web", &fields));
    // Its upper bound is not ours, so that is how far the lower one goes.
    namespace.until("hpa/web", "{.spec.minReplicas}", "3");
    assert_eq!(bounds(&namespace, "web"), (json!(3), json!(3)));
    let owners = owners_of_count(&namespace.get("deployment", "web"));
    assert!(!owners.iter().any(|owner| owner.starts_with("gatehouse")), "{owners:?}");
    let object = until_condition(&namespace, "hours", "Ready", "False", "ReplicasOutOfRange");
    let expected = "5 are scheduled, minReplicas of HorizontalPodAutoscaler web can be 3";
    assert_eq!(message(&object, "Ready"), expected);
}

fn an_autoscaler_that_is_missing_or_of_another_is_named(bed: &Bed) {
    let namespace = bed.namespace();
    foreign(&namespace, "web", 1);
    let fields = json!({"autoscaler": {"name": "web"}});
    namespace.create(&for_workload("hours", "apps/v1", "Deployment", "web", &fields));
    let object = until_condition(&namespace, "hours", "Ready", "False", "AutoscalerNotFound");
    assert_eq!(message(&object, "Ready"), "HorizontalPodAutoscaler web does not exist");
    autoscaler(&namespace, "web", "other", 1, 3);
    let object = until_condition(&namespace, "hours", "Ready", "False", "AutoscalerTargetMismatch");
    assert!(
        message(&object, "Ready").contains("scales Deployment other, and not Deployment web"),
        "{object}"
    );
    namespace.delete("hpa/web");
    autoscaler(&namespace, "web", "web", 1, 3);
    namespace.until("hpa/web", "{.spec.minReplicas}", "2");
}

fn another_clients_autoscaler_has_the_count(bed: &Bed) {
    let namespace = bed.namespace();
    let counts = Counts::of(&namespace, "deployments", "web");
    foreign(&namespace, "web", 4);
    autoscaler(&namespace, "theirs", "web", 1, 9);
    namespace.create(&for_workload("hours", "apps/v1", "Deployment", "web", &json!({})));
    let object = until_condition(&namespace, "hours", "Conflict", "True", "OtherAutoscaler");
    assert!(
        message(&object, "Conflict").contains("HorizontalPodAutoscaler theirs scales the workload"),
        "{object}"
    );
    // A later change is reported, and has no other effect.
    patch(&namespace, "hours", &json!({"defaultReplicas": 3}));
    namespace.until("tdset/hours", "{.status.scheduledReplicas}", "3");
    assert_eq!(namespace.get("deployment", "web")["spec"]["replicas"], 4);
    assert_eq!(bounds(&namespace, "theirs"), (json!(1), json!(9)));
    namespace.delete("hpa/theirs");
    counts.until(&[4, 3]);
    until_condition(&namespace, "hours", "Conflict", "False", "NoConflict");
}

/// A workload with an autoscaler whose upper bound is raised to 30.
fn with_upper_bound(namespace: &Namespace) {
    foreign(namespace, "web", 3);
    autoscaler(namespace, "web", "web", 1, 10);
    let fields = json!({"autoscaler": {"name": "web", "maxReplicas": 30}});
    namespace.create(&for_workload("hours", "apps/v1", "Deployment", "web", &fields));
    namespace.until("hpa/web", "{.spec.maxReplicas}", "30");
}

fn an_upper_bound_that_is_taken_out_stays(bed: &Bed) {
    let namespace = bed.namespace();
    with_upper_bound(&namespace);
    patch(&namespace, "hours", &json!({"autoscaler": {"maxReplicas": null}, "defaultReplicas": 4}));
    namespace.until("hpa/web", "{.spec.minReplicas}", "4");
    assert_eq!(bounds(&namespace, "web"), (json!(4), json!(30)));
}

fn a_workload_sleeps_beside_its_autoscaler_and_wakes(bed: &Bed) {
    let namespace = bed.namespace();
    let counts = Counts::of(&namespace, "deployments", "web");
    foreign(&namespace, "web", 3);
    autoscaler(&namespace, "web", "web", 2, 5);
    let fields = json!({"autoscaler": {"name": "web"}, "defaultReplicas": 0});
    namespace.create(&for_workload("hours", "apps/v1", "Deployment", "web", &fields));
    counts.until(&[3, 0]);
    let object = until_condition(&namespace, "hours", "Ready", "True", "AsScheduled");
    assert!(
        message(&object, "Ready")
            .ends_with("HorizontalPodAutoscaler web is inactive while 0 replicas are scheduled"),
        "{object}"
    );
    assert_eq!(bounds(&namespace, "web"), (json!(2), json!(5)));
    patch(&namespace, "hours", &json!({"defaultReplicas": 4}));
    counts.until(&[3, 0, 4]);
    assert_eq!(bounds(&namespace, "web"), (json!(4), json!(5)), "before the count");
}

fn stated_bounds_are_left_behind(bed: &Bed) {
    let namespace = bed.namespace();
    foreign(&namespace, "web", 3);
    autoscaler(&namespace, "web", "web", 1, 10);
    let left = json!({"minReplicas": 2, "maxReplicas": 8});
    let fields = json!({"defaultReplicas": 5, "autoscaler": {"name": "web", "onDeletion": left}});
    namespace.create(&for_workload("hours", "apps/v1", "Deployment", "web", &fields));
    namespace.until("hpa/web", "{.spec.minReplicas}", "5");
    // What is left behind is promised from then on.
    namespace.until("tdset/hours", "{.metadata.finalizers[0]}", "gatehouse.dev/replicas-on-deletion");
    super::delete(&namespace, "hours");
    assert_eq!(bounds(&namespace, "web"), (json!(2), json!(8)));
}

/// An autoscaler with a metric with which it may go to 0.
fn autoscaler_by_queue(namespace: &Namespace) {
    let metric = json!({"type": "External", "external": {
        "metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}}});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    namespace.create(&json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 9, "metrics": [metric]}}));
}

/// As where the feature gate HPAScaleToZero is switched off.
fn a_workload_sleeps_beside_an_autoscaler_that_may_not_go_to_none(bed: &Bed) {
    let namespace = bed.namespace();
    let counts = Counts::of(&namespace, "deployments", "web");
    foreign(&namespace, "web", 3);
    autoscaler_by_queue(&namespace);
    let hpa = namespace.path("hpa/web") + "?dryRun=All";
    let (group, hpas) = ("autoscaling", "horizontalpodautoscalers");
    let refusal = Refusal::by_policy(&namespace, group, hpas, "object.spec.minReplicas > 0")
        .until_refused(422, || Ask::patch(&*hpa, json!({"spec": {"minReplicas": 0}})));
    let fields = json!({"defaultReplicas": 0, "autoscaler": {"name": "web"}});
    namespace.create(&for_workload("hours", "apps/v1", "Deployment", "web", &fields));
    counts.until(&[3, 0]);
    for (asked, seen) in [(4, &[3, 0, 4][..]), (0, &[3, 0, 4, 0])] {
        patch(&namespace, "hours", &json!({"defaultReplicas": asked}));
        counts.until(seen);
    }
    assert_eq!(bounds(&namespace, "web"), (json!(4), json!(9)));
    let notes = super::notes(&namespace, "hours", "CountRefused");
    assert!(notes.len() == 1 && notes[0].contains("Invalid (422)"), "the first night alone: {notes:?}");
    refusal.lift();
}

fn an_autoscaler_goes_to_none_each_night_by_its_bounds(bed: &Bed) {
    let namespace = bed.namespace();
    let counts = Counts::of(&namespace, "deployments", "web");
    foreign(&namespace, "web", 3);
    autoscaler_by_queue(&namespace);
    let fields = json!({"defaultReplicas": 0, "autoscaler": {"name": "web"}});
    namespace.create(&for_workload("hours", "apps/v1", "Deployment", "web", &fields));
    // A night, a day, and another night. The length of the queue is unknown, so the autoscaler itself does nothing at
    // night, and neither does gatehouse.
    for (asked, count) in [(0, 3), (4, 4), (0, 4)] {
        patch(&namespace, "hours", &json!({"defaultReplicas": asked}));
        namespace.until("hpa/web", "{.spec.minReplicas}", &asked.to_string());
        namespace.until("deployment/web", "{.spec.replicas}", &count.to_string());
        namespace.until("tdset/hours", "{.status.scheduledReplicas}", &asked.to_string());
        let object = namespace.get("tdset", "hours");
        assert!(!message(&object, "Ready").contains("rests"), "{object}");
    }
    counts.until(&[3, 4]);
}

fn an_upper_bound_that_is_fought_over_is_named(bed: &Bed) {
    let namespace = bed.namespace();
    with_upper_bound(&namespace);
    namespace.until("tdset/hours", "{.status.scheduledReplicas}", "2");
    super::until_seconds_old(&namespace, "hpa", "web");
    let path = format!("{}?fieldManager=chef", namespace.path("hpa/web"));
    let write = || bed.objects.must(Ask::patch(&*path, json!({"spec": {"maxReplicas": 7}})));
    for times in 1..=3 {
        write();
        namespace.until("hpa/web", "{.spec.maxReplicas}", "30");
        let notes = super::until_notes(&namespace, "hours", "ReplicasReverted", times);
        let note = "maxReplicas of HorizontalPodAutoscaler web 7 → 30: taken back from chef";
        assert!(notes.iter().all(|one| one == note), "{notes:?}");
    }
    write();
    let object = until_condition(&namespace, "hours", "Conflict", "True", "Contested");
    assert!(message(&object, "Conflict").starts_with("chef writes another count each time"), "{object}");
    assert_eq!(bounds(&namespace, "web"), (json!(2), json!(7)));
}

/// KEDA's own definition, and the rule of `idleReplicaCount` that KEDA's webhook adds to it.
fn define_scaled_objects(bed: &Bed) {
    let mut definition = deploy::objects(include_str!("scaledobjects.yaml")).remove(0);
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    let rule = "!has(self.idleReplicaCount) || self.idleReplicaCount < self.minReplicaCount";
    definition.pointer_mut(spec).expect("a spec")["x-kubernetes-validations"] =
        json!([{"rule": rule, "message": "idleReplicaCount must be less than minReplicaCount"}]);
    bed.objects.must(Ask::create(&definition, ""));
    bed.until_established("scaledobjects.keda.sh");
}

fn scaled_object(name: &str, triggers: &Value) -> Value {
    json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name},
        "spec": {"scaleTargetRef": {"name": name}, "minReplicaCount": 1, "triggers": triggers}})
}

/// The TDSet that the page about other tools shows.
fn the_page_gives_a_scaled_object_its_bounds(bed: &Bed, triggers: &Value) {
    let namespace = bed.namespace();
    let page = in_page("tdset/tasks.md", "KEDA");
    foreign(&namespace, "worker", 3);
    namespace.create(&scaled_object("worker", triggers));
    namespace.create(&tdset("worker", &page[0]["spec"]));
    let path = format!("/apis/keda.sh/v1alpha1/namespaces/{}/scaledobjects", namespace.name);
    bed.objects.follow(&path, "worker", |found| {
        let found = found.map(|found| (&found["spec"]["minReplicaCount"], &found["spec"]["maxReplicaCount"]));
        // At night, or in the window.
        let is_so = [(0, 10), (2, 40)].iter().any(|(min, max)| found == Some((&json!(min), &json!(max))));
        if is_so { Ok(()) } else { Err(format!("it is {found:?}")) }
    });
    assert_eq!(namespace.get("deployment", "worker")["spec"]["replicas"], 3);
}

fn a_scaled_object_gets_its_bounds(bed: &Bed) {
    let namespace = bed.namespace();
    foreign(&namespace, "web", 3);
    let fields = json!({"autoscaler": {"kind": "ScaledObject", "name": "web", "maxReplicas": 20}});
    namespace.create(&for_workload("hours", "apps/v1", "Deployment", "web", &fields));
    let object = until_condition(&namespace, "hours", "Ready", "False", "AutoscalerNotFound");
    assert!(message(&object, "Ready").contains("is KEDA installed?"), "{object}");
    define_scaled_objects(bed);
    let triggers = json!([{"type": "redis", "metadata": {"address": "redis:6379", "listLength": "10"}}]);
    namespace.create(&scaled_object("web", &triggers));
    let path = format!("/apis/keda.sh/v1alpha1/namespaces/{}/scaledobjects", namespace.name);
    let until = |min: u32| {
        bed.objects.follow(&path, "web", |found| {
            let found = found.map(|found| &found["spec"]);
            let is_so = found.is_some_and(|spec| {
                (&spec["minReplicaCount"], &spec["maxReplicaCount"], &spec["triggers"])
                    == (&json!(min), &json!(20), &triggers)
            });
            if is_so { Ok(()) } else { Err(format!("it is {found:?}")) }
        });
    };
    until(2);
    patch(&namespace, "hours", &json!({"defaultReplicas": 0}));
    until(0);
    // What another client makes of it is taken back, and the count is KEDA's.
    bed.objects.must(Ask::patch(&*format!("{path}/web"), json!({"spec": {"minReplicaCount": 7}})));
    until(0);
    assert_eq!(namespace.get("deployment", "web")["spec"]["replicas"], 3);
    // The autoscaler that KEDA makes of it is none beside it.
    let keda = bed.objects.at(&format!("{path}/web"));
    let owner = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "web",
        "uid": keda["metadata"]["uid"], "controller": true});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    namespace.create(&json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "keda-hpa-web", "ownerReferences": [owner]},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 20}}));
    patch(&namespace, "hours", &json!({"defaultReplicas": 5}));
    until(5);
    until_condition(&namespace, "hours", "Conflict", "False", "NoConflict");
    assert_eq!(bounds(&namespace, "keda-hpa-web"), (json!(1), json!(20)));

    bed.objects.must(Ask::patch(&*format!("{path}/web"), json!({"spec": {"idleReplicaCount": 0}})));
    patch(&namespace, "hours", &json!({"defaultReplicas": 0}));
    let object = until_condition(&namespace, "hours", "Ready", "False", "CountRefused");
    let why = message(&object, "Ready");
    assert!(why.contains("scaledobjects") && why.contains("Invalid (422)"), "{why}");
    patch(
        &namespace,
        "hours",
        &json!({"autoscaler": {"kind": "HorizontalPodAutoscaler", "name": "keda-hpa-web"}}),
    );
    let object = until_condition(&namespace, "hours", "Conflict", "True", "ControlledByOther");
    assert!(message(&object, "Conflict").contains("is controlled by ScaledObject web"), "{object}");
    the_page_gives_a_scaled_object_its_bounds(bed, &triggers);
}
