//! Watches that fail while the operator works.

use kit::bed::Bed;
use kit::operator::Fate;
use kit::wait::{PATIENCE, within};
use serde_json::json;

use super::autoscalers::autoscaler;
use super::{for_workload, foreign, scale, tdset, workload};
use crate::Test;
use crate::front::Front;
use crate::site::{Site, role};

pub const TESTS: &[Test] = &[("what_is_no_longer_watched_is_read", what_is_no_longer_watched_is_read)];

/// The right to watch is taken away, and after that the connections by which it was used break.
fn what_is_no_longer_watched_is_read(bed: &Bed) {
    const WATCHED: [&str; 3] = ["statefulsets", "horizontalpodautoscalers", "deployments"];
    const NAMES: [&str; 3] = ["hours", "bounds", "made"];
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
    let found = || {
        let replicas = |kind, name| namespace.get(kind, name)["spec"]["replicas"].clone();
        let least = namespace.get("hpa", "bound")["spec"]["minReplicas"].clone();
        [replicas("statefulset", "web"), replicas("deployment", "made"), least]
    };
    for name in NAMES {
        namespace.until(&format!("tdset/{name}"), "{.status.scheduledReplicas}", "2");
    }
    let expected = [2, 2, 2].map(|count| json!(count));
    assert_eq!(found(), expected);

    let _fewer = role(&namespace, |resource, verb| verb != "watch" || !WATCHED.contains(&resource));
    front.cut();
    scale(&namespace, "statefulset/web", 5);
    scale(&namespace, "deployment/made", 5);
    namespace.change("hpa/bound", &json!({"spec": {"minReplicas": 7}}));
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
