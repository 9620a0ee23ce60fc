//! Watches that fail while the operator works.

use gatehouse::runtime::call::SILENCE;
use kit::bed::Bed;
use kit::objects::Ask;
use kit::operator::Fate;
use kit::wait::{PATIENCE, within};
use serde_json::json;

use super::autoscalers::autoscaler;
use super::{for_workload, foreign, message, scale, tdset, until_condition, workload};
use crate::Test;
use crate::front::Front;
use crate::site::{Site, role};

pub const TESTS: &[Test] = &kit::tests![
    what_is_no_longer_watched_is_read,
    without_a_right_from_the_start_the_rest_is_worked,
    an_api_server_that_goes_silent_is_given_up,
    a_workload_that_may_not_be_read_is_not_scaled,
];

/// It may be that of an EtcdCluster: only its metadata tell.
fn a_workload_that_may_not_be_read_is_not_scaled(bed: &Bed) {
    const READS: [&str; 3] = ["get", "list", "watch"];
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let _fewer = role(&namespace, |resource, verb| resource != "statefulsets" || !READS.contains(&verb));
    let _operator = site.start(Fate::Lives);
    namespace.create(&workload("StatefulSet", "web", 3));
    namespace.create(&for_workload("hours", "apps/v1", "StatefulSet", "web", &json!({"defaultReplicas": 0})));
    let object = until_condition(&namespace, "hours", "Ready", "False", "Forbidden");
    let expected = "gatehouse may not get, list and watch statefulsets of API group apps: grant that";
    assert!(message(&object, "Ready").starts_with(expected), "{object}");
    assert_eq!(namespace.get("statefulset", "web")["spec"]["replicas"], 3);
}

/// The right to watch is taken away, and after that the connections by which it was used break.
fn what_is_no_longer_watched_is_read(bed: &Bed) {
    const WATCHED: [&str; 3] = ["statefulsets", "horizontalpodautoscalers", "deployments"];
    const NAMES: [&str; 4] = ["hours", "bounds", "made", "held"];
    let namespace = bed.namespace();
    let front = Front::new();
    let site = Site::behind(&namespace, &front);
    let _operator = site.start(Fate::Lives);
    namespace.create(&workload("StatefulSet", "web", 1));
    foreign(&namespace, "bound", 1);
    autoscaler(&namespace, "bound", "bound", 1, 9);
    let bounded = json!({"autoscaler": {"name": "bound"}});
    namespace.create(&for_workload("hours", "apps/v1", "StatefulSet", "web", &json!({})));
    namespace.create(&for_workload("bounds", "apps/v1", "Deployment", "bound", &bounded));
    namespace.create(&tdset("made", &json!({"defaultReplicas": 2})));
    // One that another autoscaler scales, which no TDSet names.
    foreign(&namespace, "theirs", 1);
    autoscaler(&namespace, "theirs", "theirs", 1, 9);
    namespace.create(&for_workload("held", "apps/v1", "Deployment", "theirs", &json!({})));
    until_condition(&namespace, "held", "Conflict", "True", "OtherAutoscaler");
    let found = || {
        let replicas = |kind, name| namespace.get(kind, name)["spec"]["replicas"].clone();
        let least = namespace.get("hpa", "bound")["spec"]["minReplicas"].clone();
        [
            replicas("statefulset", "web"),
            replicas("deployment", "made"),
            least,
            replicas("deployment", "theirs"),
        ]
    };
    for name in &NAMES[..3] {
        namespace.until(&format!("tdset/{name}"), "{.status.scheduledReplicas}", "2");
    }
    assert_eq!(found(), [2, 2, 2, 1].map(|count| json!(count)));

    let _fewer = role(&namespace, |resource, verb| verb != "watch" || !WATCHED.contains(&resource));
    front.cut();
    scale(&namespace, "statefulset/web", 5);
    scale(&namespace, "deployment/made", 5);
    namespace.change("hpa/bound", &json!({"spec": {"minReplicas": 7}}));
    bed.objects.must(Ask::delete(namespace.path("hpa/theirs")));
    let expected = [2, 2, 2, 2].map(|count| json!(count));
    // A watch that has failed for less than a minute may come back.
    let mut minutes = 0;
    within(2 * PATIENCE, || {
        let looks = site.looks();
        minutes += 11;
        site.jump(minutes);
        looks.until_over(&NAMES);
        let found = found();
        if found == expected { Ok(()) } else { Err(format!("it is {found:?}")) }
    });
}

/// Its host has lost its power: nothing comes any more, and nothing says so.
fn an_api_server_that_goes_silent_is_given_up(bed: &Bed) {
    let namespace = bed.namespace();
    let front = Front::new();
    let site = Site::behind(&namespace, &front);
    let _operator = site.start(Fate::Lives);
    namespace.create(&tdset("made", &json!({"defaultReplicas": 2})));
    namespace.until("tdset/made", "{.status.scheduledReplicas}", "2");
    front.silence();
    namespace.change("tdset/made", &json!({"spec": {"defaultReplicas": 3}}));
    // By itself kube-runtime asks again after 295 s, and may then do so on a connection that is silent as well.
    within(2 * SILENCE, || match namespace.get("deployment", "made")["spec"]["replicas"].as_u64() {
        Some(3) => Ok(()),
        other => Err(format!("{other:?} replicas")),
    });
}

/// One that an older release did not need.
fn without_a_right_from_the_start_the_rest_is_worked(bed: &Bed) {
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let _fewer = role(&namespace, |resource, verb| {
        resource != "horizontalpodautoscalers" || !["list", "watch"].contains(&verb)
    });
    let _operator = site.start(Fate::Lives);
    namespace.create(&workload("StatefulSet", "web", 3));
    namespace.create(&for_workload("hours", "apps/v1", "StatefulSet", "web", &json!({"defaultReplicas": 0})));
    namespace.create(&tdset("made", &json!({"defaultReplicas": 2})));
    let object = until_condition(&namespace, "hours", "Ready", "False", "Forbidden");
    let expected =
        "gatehouse may not list and watch horizontalpodautoscalers of API group autoscaling: grant that";
    assert!(message(&object, "Ready").starts_with(expected), "{object}");
    namespace.until("tdset/made", "{.status.scheduledReplicas}", "2");
}
