//! Counts that somebody else writes, and counts that move in steps.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{TDSETS, for_workload, foreign, message, patch, seconds_from_now, span, tdset, until_condition};
use crate::Test;
use crate::direct::Direct;
use crate::support::{Bed, Namespace, PATIENCE};

pub const TESTS: &[Test] = &[
    ("a_count_by_kubectl_scale_is_undone_in_two_seconds", a_count_by_kubectl_scale_is_undone_in_two_seconds),
    ("a_workload_that_is_deleted_is_made_again", a_workload_that_is_deleted_is_made_again),
    ("a_kept_count_stands_until_the_next_transition", a_kept_count_stands_until_the_next_transition),
    (
        "a_kept_count_of_somebody_elses_workload_stands_as_well",
        a_kept_count_of_somebody_elses_workload_stands_as_well,
    ),
    ("a_ramp_is_climbed_step_by_step", a_ramp_is_climbed_step_by_step),
];

/// Everything that a count is, one after another, from when `act` is done until it is `last`; and how long that took.
fn counts(namespace: &Namespace, deployment: &str, last: i64, act: impl FnOnce()) -> (Vec<i64>, Duration) {
    let direct = Direct::new(namespace.bed.cluster.kubeconfig());
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/{deployment}", namespace.name);
    act();
    let begun = Instant::now();
    let mut seen: Vec<i64> = Vec::new();
    loop {
        let count = direct.get(&path)["spec"]["replicas"].as_i64().unwrap();
        if seen.last() != Some(&count) {
            seen.push(count);
        }
        if count == last {
            return (seen, begun.elapsed());
        }
        assert!(begun.elapsed() < PATIENCE, "never {last}: {seen:?}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

fn a_count_by_kubectl_scale_is_undone_in_two_seconds(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.kubectl(&["create"]).input(tdset("firm", &json!({"resyncMinutes": 1440}))).ok();
    namespace.until_created("deployment/firm");
    namespace.until("tdset/firm", "{.status.scheduledReplicas}", "1");
    foreign(&namespace, "web", 2);
    namespace
        .kubectl(&["create"])
        .input(for_workload("by-scale", "apps/v1", "Deployment", "web", &json!({})))
        .ok();
    namespace.until("tdset/by-scale", "{.status.replicas}", "2");
    for (name, count) in [("firm", 1), ("web", 2)] {
        let (_, took) = counts(&namespace, name, count, || {
            namespace.kubectl(&["scale", &format!("deployment/{name}"), "--replicas=7"]).ok();
        });
        println!("the count of {name} was back after {took:?}");
        assert!(took < Duration::from_secs(2), "{name}: {took:?}");
    }
}

fn a_workload_that_is_deleted_is_made_again(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.kubectl(&["create"]).input(tdset("firm", &json!({}))).ok();
    namespace.until_created("deployment/firm");
    namespace.kubectl(&["delete", "deployment", "firm", "--wait=false"]).ok();
    namespace.until_created("deployment/firm");
}

fn a_kept_count_stands_until_the_next_transition(bed: &Bed) {
    let namespace = bed.namespace();
    let fields = json!({"manualScale": "KeepUntilNextTransition"});
    namespace.kubectl(&["create"]).input(tdset("kept", &fields)).ok();
    namespace.until("tdset/kept", "{.status.replicas}", "1");
    namespace.kubectl(&["scale", "deployment/kept", "--replicas=7"]).ok();
    let object = until_condition(&namespace, "kept", "ManualOverride", "True", "ManuallyScaled");
    assert_eq!(
        message(&object, "ManualOverride"),
        "kubectl wrote 7, 1 are scheduled: it stands for good: no transition is ahead"
    );
    // An edit that asks for the same count is no transition, and what is rolled out leaves the count alone.
    let create = json!({"target": {"create": {"image": "registry.k8s.io/pause:3.9"}}});
    patch(&namespace, "kept", &create);
    let image = "{.spec.template.spec.containers[0].image}";
    namespace.until("deployment/kept", image, "registry.k8s.io/pause:3.9");
    assert_eq!(namespace.get("deployment", "kept")["spec"]["replicas"], 7);

    patch(&namespace, "kept", &json!({"exceptions": [span("rush", 3, 7200, 4)]}));
    namespace.until("deployment/kept", "{.spec.replicas}", "4");
    until_condition(&namespace, "kept", "ManualOverride", "False", "NotOverridden");
    let status = namespace.get(TDSETS, "kept")["status"].clone();
    assert_eq!(status["lastTransition"]["to"]["window"], "exception/rush", "{status}");
}

fn a_kept_count_of_somebody_elses_workload_stands_as_well(bed: &Bed) {
    let namespace = bed.namespace();
    foreign(&namespace, "web", 2);
    let fields = json!({"manualScale": "KeepUntilNextTransition"});
    namespace.kubectl(&["create"]).input(for_workload("kept", "apps/v1", "Deployment", "web", &fields)).ok();
    namespace.until("tdset/kept", "{.status.replicas}", "2");
    namespace.kubectl(&["scale", "deployment/web", "--replicas=7"]).ok();
    let object = until_condition(&namespace, "kept", "ManualOverride", "True", "ManuallyScaled");
    assert!(message(&object, "ManualOverride").starts_with("kubectl wrote 7, 2 are"), "{object}");
    patch(&namespace, "kept", &json!({"exceptions": [span("rush", 3, 7200, 4)]}));
    namespace.until("deployment/web", "{.spec.replicas}", "4");
    until_condition(&namespace, "kept", "ManualOverride", "False", "NotOverridden");
}

fn a_ramp_is_climbed_step_by_step(bed: &Bed) {
    let namespace = bed.namespace();
    let between = json!({"start": seconds_from_now(4), "end": seconds_from_now(16)});
    let step = json!({"step": 2, "every": "2s"});
    let fields = json!({"exceptions": [{"name": "rush", "between": between, "replicas": 6}],
        "ramp": {"up": step, "down": {"step": "50%", "every": "1s"}}});
    namespace.kubectl(&["create"]).input(tdset("stairs", &fields)).ok();
    namespace.until_created("deployment/stairs");
    let (seen, _) = counts(&namespace, "stairs", 6, || {
        until_condition(&namespace, "stairs", "Progressing", "True", "Ramping");
        let ramp = namespace.get(TDSETS, "stairs")["status"]["ramp"].clone();
        assert_eq!((&ramp["from"], &ramp["to"]), (&json!(1), &json!(6)), "{ramp}");
    });
    assert!([3, 5, 6].ends_with(&seen), "{seen:?}");
    let (seen, _) = counts(&namespace, "stairs", 1, || {});
    assert_eq!(seen, [6, 3, 1]);
    let is_over = |status: &Value| status["ramp"].is_null() && status["scheduledReplicas"] == 1;
    crate::support::eventually(|| {
        let status = namespace.get(TDSETS, "stairs")["status"].clone();
        if is_over(&status) { Ok(()) } else { Err(status.to_string()) }
    });
}
