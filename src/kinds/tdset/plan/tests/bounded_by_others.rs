//! Upper bounds of an autoscaler that other clients write, where what they write stands until the next transition.

use super::autoscalers::{beside, bounds, hpa, rest};
use super::workloads::web;
use super::*;

const POLICY: &str = "KeepUntilNextTransition";

/// From two replicas to thirty, and from six on in office hours.
fn keeping(fields: &Value) -> TDSet {
    let autoscaler = json!({"name": "web", "maxReplicas": 30});
    let mut all = json!({"autoscaler": autoscaler, "manualScalePolicy": POLICY});
    json_patch::merge(&mut all, fields);
    web(&all)
}

/// One in which that client has written an upper bound of ten.
fn bounded(tdset: &TDSet, now: &str, manager: &str) -> Cluster {
    let mut cluster = beside(now, hpa(2, 30), 5);
    rest(&mut cluster, tdset);
    cluster.bound(|found| found.written_max = Some(10), manager);
    cluster
}

#[test]
fn an_upper_bound_stands_until_the_next_transition() {
    let tdset = keeping(&json!({}));
    let mut cluster = bounded(&tdset, EARLY, "kubectl-edit");
    let told = rest(&mut cluster, &tdset);
    assert_eq!(bounds(&cluster), (2, 10));
    let (state, _, message) = condition(&told.status, ConditionType::ManualOverride);
    let until = "it stands until 2026-03-02T08:00+01:00[Europe/Berlin]";
    let expected = format!("kubectl-edit wrote maxReplicas 10, 30 are scheduled: {until}");
    assert_eq!((state.as_str(), message), ("True", expected));
    let (state, reason, message) = condition(&told.status, ConditionType::Ready);
    assert_eq!((state.as_str(), reason.as_str()), ("True", "ManuallyScaled"));
    assert!(message.ends_with("another client set maxReplicas"), "{message}");

    let mut cluster = cluster.at(OPENING);
    let told = rest(&mut cluster, &tdset);
    assert_eq!(bounds(&cluster), (6, 30));
    assert_eq!(condition(&told.status, ConditionType::ManualOverride).0, "False");
}

#[test]
fn an_upper_bound_by_a_tool_that_applies_a_repository_is_taken_back() {
    let tdset = keeping(&json!({}));
    let mut cluster = bounded(&tdset, EARLY, "argocd-controller");
    assert!(cluster.pass(&tdset).reverted.is_some());
    assert_eq!(bounds(&cluster), (2, 30));
}

#[test]
fn an_upper_bound_outlives_what_cannot_be_read() {
    let tdset = keeping(&json!({}));
    let mut cluster = bounded(&tdset, EARLY, "kubectl-edit");
    rest(&mut cluster, &tdset);
    let found = cluster.0.autoscaler.replace(Err(Blocker::ready(Reason::TargetNotReadable, String::new())));
    let told = cluster.pass(&tdset);
    assert_eq!(condition(&told.status, ConditionType::ManualOverride).0, "True");
    cluster.0.autoscaler = found;
    rest(&mut cluster, &tdset);
    assert_eq!(bounds(&cluster), (2, 10));
}

#[test]
fn the_lower_bound_climbs_a_ramp_up_to_another_clients_upper_one() {
    let tdset = keeping(&json!({"ramp": {"up": {"step": 1, "every": "10m"}}}));
    let mut cluster = beside(EARLY, hpa(2, 30), 4);
    rest(&mut cluster, &tdset);
    let mut cluster = cluster.at(OPENING);
    rest(&mut cluster, &tdset);
    assert_eq!(bounds(&cluster), (3, 30));
    cluster.bound(|found| found.written_max = Some(4), "kubectl-edit");
    for now in ["2026-03-02T07:10:00Z", "2026-03-02T07:20:00Z", "2026-03-02T07:30:00Z"] {
        cluster = cluster.at(now);
        let told = rest(&mut cluster, &tdset);
        assert_eq!(bounds(&cluster), (4, 4), "{now}");
        assert_eq!(condition(&told.status, ConditionType::Ready).1, "ManuallyScaled", "{now}");
    }
    let mut cluster = cluster.at(CLOSING);
    rest(&mut cluster, &tdset);
    assert_eq!(bounds(&cluster), (2, 30));
}
