//! Watches that fail while the operator works.

use kit::bed::Bed;
use kit::operator::Fate;
use kit::wait::{PATIENCE, within};
use serde_json::json;

use super::autoscalers::autoscaler;
use super::{for_workload, foreign, scale, workload};
use crate::Test;
use crate::front::Front;
use crate::site::{Site, role};

pub const TESTS: &[Test] = &[("what_is_no_longer_watched_is_read", what_is_no_longer_watched_is_read)];

/// The right to watch is taken away, and after that the connections by which it was used break.
fn what_is_no_longer_watched_is_read(bed: &Bed) {
    const WATCHED: [&str; 2] = ["statefulsets", "horizontalpodautoscalers"];
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
    let found = || {
        let (workload, autoscaler) = (namespace.get("statefulset", "web"), namespace.get("hpa", "bound"));
        (workload["spec"]["replicas"].clone(), autoscaler["spec"]["minReplicas"].clone())
    };
    for name in ["hours", "bounds"] {
        namespace.until(&format!("tdset/{name}"), "{.status.scheduledReplicas}", "2");
    }
    assert_eq!(found(), (json!(2), json!(2)));

    let _fewer = role(&namespace, |resource, verb| verb != "watch" || !WATCHED.contains(&resource));
    front.cut();
    scale(&namespace, "statefulset/web", 5);
    namespace.change("hpa/bound", &json!({"spec": {"minReplicas": 7}}));
    // A watch that has failed for less than a minute may come back.
    let mut minutes = 0;
    within(2 * PATIENCE, || {
        let looks = site.looks();
        minutes += 11;
        site.jump(minutes);
        looks.until_over(&["hours", "bounds"]);
        let found = found();
        if found == (json!(2), json!(2)) { Ok(()) } else { Err(format!("it is {found:?}")) }
    });
}
