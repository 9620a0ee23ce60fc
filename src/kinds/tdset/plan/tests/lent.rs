//! A workload that is left alone outside of windows, and gets back after them the count that it had before.

mod own_count;

use super::workloads::{by_kubectl, has, web};
use super::*;

const NEXT_MORNING: &str = "2026-03-03T07:00:00Z";
const COUNT: &str = "tdset.write-scale";

/// Six in office hours, and otherwise what it has by itself.
fn office() -> TDSet {
    web(&json!({"defaultReplicas": null}))
}

/// Five replicas that another client asked for, before the office opens.
fn cluster() -> Cluster {
    let mut cluster = Cluster::empty(EARLY);
    cluster.scale(5, by_kubectl(EARLY));
    cluster.pass(&office());
    cluster
}

/// The same after the window `office` has begun and the status has all of it.
fn inside() -> Cluster {
    let mut cluster = cluster().at(OPENING);
    for _ in 0..3 {
        cluster.pass(&office());
    }
    assert_eq!((has(&cluster), cluster.0.status.replicas_before), (6, Some(5)));
    cluster
}

#[test]
fn outside_of_windows_the_workload_is_left_alone() {
    let mut cluster = cluster();
    let status = cluster.0.status.clone();
    assert_eq!((has(&cluster), status.scheduled_replicas, status.replicas_before), (5, None, None));
    assert_eq!(status.active_window.as_deref(), Some(""));
    assert_eq!(status.next_transition.unwrap().replicas, Some(6));
    let (state, reason, message) = condition(&cluster.0.status, ConditionType::Ready);
    assert_eq!((state.as_str(), reason.as_str()), ("True", "AsScheduled"));
    assert_eq!(message, "5 of 5 replicas are there; the count is left alone");
    for count in [9, 0] {
        cluster.scale(count, by_kubectl(EARLY));
        cluster.pass(&office());
        let told = cluster.pass(&office());
        assert_eq!((has(&cluster), verbs(&told.work), verbs(&told.report)), (count, vec![], vec![]));
    }
}

#[test]
fn a_count_of_its_own_that_is_that_of_the_window_is_written_down_at_its_beginning() {
    let mut cluster = cluster();
    for (writer, now) in [(Writer::Ours, "2026-03-02T06:59:00Z"), (Writer::Unknown, "2026-03-02T06:59:30Z")] {
        cluster.scale(6, writer);
        cluster = cluster.at(now);
        cluster.pass(&office());
        let told = cluster.pass(&office());
        assert_eq!((verbs(&told.report), told.status.replicas_before), (vec![], None));
    }
    assert_eq!(cluster.at(OPENING).pass(&office()).status.replicas_before, Some(6));
}

#[test]
fn the_count_is_written_down_before_another_one_is_written() {
    let mut cluster = cluster().at(OPENING);
    let noted = cluster.pass(&office());
    assert_eq!((verbs(&noted.work), verbs(&noted.report)), (vec![], vec!["status".to_owned()]));
    assert_eq!((noted.status.replicas_before, noted.status.active_window.as_deref()), (Some(5), Some("")));
    assert_eq!((noted.due, noted.wake), (Some(at(OPENING)), Some(at(OPENING))), "it goes on at once");
    assert_eq!(verbs(&cluster.pass(&office()).work), ["merge Deployment 6 as gatehouse-tdset-count"]);
    let told = cluster.pass(&office());
    assert_eq!(
        verbs(&told.report),
        ["ReplicasScheduled: replicas 5 → 6: window office, 0 ms late", "status"]
    );
    assert_eq!((told.status.scheduled_replicas, told.status.replicas_before), (Some(6), Some(5)));
}

#[test]
fn the_count_is_given_back_once() {
    let mut cluster = inside().at(CLOSING);
    assert_eq!(verbs(&cluster.pass(&office()).work), ["merge Deployment 5 as gatehouse-tdset-count"]);
    let told = cluster.pass(&office());
    let note = "ReplicasScheduled: replicas 6 → 5: outside all windows, 0 ms late";
    assert_eq!(verbs(&told.report), [note, "status"]);
    assert_eq!((told.status.scheduled_replicas, told.status.replicas_before), (None, None));
    let rest = cluster.pass(&office());
    assert_eq!((verbs(&rest.work), verbs(&rest.report)), (vec![], vec![]));
    let last = told.status.last_transition.unwrap();
    assert_eq!((last.from.replicas, last.to.replicas), (Some(6), None));
    cluster.scale(8, by_kubectl(CLOSING));
    cluster.pass(&office());
    assert_eq!(has(&cluster), 8, "it is its own again");
    let mut cluster = cluster.at(NEXT_MORNING);
    assert_eq!(cluster.pass(&office()).status.replicas_before, Some(8));
}

#[test]
fn a_count_that_another_client_has_written_after_the_window_is_not_replaced_by_that_of_before() {
    // No operator ran when the window ended.
    let mut cluster = inside().at("2026-03-02T17:05:00Z");
    cluster.scale(7, by_kubectl("2026-03-02T17:03:00Z"));
    for _ in 0..2 {
        let told = cluster.pass(&office());
        assert_eq!((has(&cluster), verbs(&told.work), told.status.replicas_before), (7, vec![], None));
        assert_eq!(condition(&told.status, ConditionType::ManualOverride).0, "False");
        assert_eq!(condition(&told.status, ConditionType::Ready).1, "AsScheduled");
        assert!(!verbs(&told.report).iter().any(|one| one.starts_with("ReplicasScheduled")), "{told:?}");
    }
    // One from within the window is no count of its own.
    let mut cluster = inside().at("2026-03-02T17:05:00Z");
    cluster.scale(7, by_kubectl("2026-03-02T16:59:00Z"));
    cluster.pass(&office());
    assert_eq!(has(&cluster), 5);
}

#[test]
fn a_leader_whose_clock_is_behind_does_not_take_back_what_was_given_back() {
    let mut cluster = inside().at(CLOSING);
    cluster.pass(&office());
    let mut told = cluster.clone();
    told.pass(&office());
    assert_eq!((has(&cluster), has(&told), told.0.status.replicas_before), (5, 5, None));
    for (mut cluster, is_told) in [(cluster, false), (told, true)] {
        // What was carried out is not known to another process.
        cluster.0.remembered.carried = Unreported::default();
        for seconds in [3, 119] {
            let now = at(CLOSING) - SignedDuration::from_secs(seconds);
            let planned = plan(&office(), &cluster.clone().at(&now.to_string()).0);
            assert_eq!(verbs(&planned.work), [""; 0], "{now}, told: {is_told}");
            assert_eq!(planned.status.scheduled_replicas, None, "{now}, told: {is_told}");
        }
    }
}

#[test]
fn a_count_that_is_taken_back_within_a_window_is_not_the_one_that_is_given_back() {
    let mut cluster = inside();
    cluster.scale(9, by_kubectl(OPENING));
    cluster.pass(&office());
    cluster.pass(&office());
    assert_eq!(has(&cluster), 6);
    let mut cluster = cluster.at(CLOSING);
    cluster.pass(&office());
    assert_eq!(has(&cluster), 5);
}

#[test]
fn a_count_that_is_refused_when_it_is_given_back_is_given_back_later() {
    let mut cluster = inside().at(CLOSING);
    let told = cluster.refused_pass(&office(), COUNT);
    assert_eq!((has(&cluster), told.status.replicas_before), (6, Some(5)));
    cluster.pass(&office());
    let told = cluster.pass(&office());
    assert_eq!((has(&cluster), told.status.replicas_before), (5, None));
    let note = verbs(&told.report).remove(0);
    assert!(note.starts_with("ReplicasScheduled: replicas 6 → 5: outside all windows, no longer"), "{note}");
}

#[test]
fn a_schedule_that_is_suspended_at_the_end_of_a_window_gives_the_count_back_when_it_goes_on() {
    let mut cluster = inside().at(CLOSING);
    let suspended = web(&json!({"defaultReplicas": null, "suspend": true}));
    cluster.pass(&suspended);
    assert_eq!((has(&cluster), cluster.0.status.replicas_before), (6, Some(5)));
    cluster.pass(&office());
    cluster.pass(&office());
    assert_eq!((has(&cluster), cluster.0.status.replicas_before), (5, None));
}

#[test]
fn a_fault_in_the_spec_does_not_forget_the_count() {
    let cluster = inside();
    let fault = FieldError::required(crate::api::field::Path::spec().at("timeZone"), "");
    let told = plan_with(&office(), vec![fault], &cluster.0);
    assert_eq!(told.status.replicas_before, Some(5));
}

#[test]
fn without_a_count_for_other_times_that_of_before_the_window_is_given_back() {
    let mut cluster = super::workloads::settled(&web(&json!({})), EARLY).at(OPENING);
    for _ in 0..2 {
        cluster.pass(&web(&json!({})));
    }
    assert_eq!(has(&cluster), 6);
    // defaultReplicas was 2, and is taken out.
    let mut edited = office();
    edited.metadata.generation = Some(3);
    cluster.pass(&edited);
    assert_eq!(cluster.0.status.replicas_before, Some(2));
    cluster.pass(&edited);
    let mut cluster = cluster.at(CLOSING);
    cluster.pass(&edited);
    assert_eq!(has(&cluster), 2);
}

#[test]
fn with_a_count_for_other_times_again_nothing_is_given_back() {
    let mut cluster = inside();
    let edited = edited(3, &json!({"defaultReplicas": 3}));
    cluster.pass(&edited);
    cluster.pass(&edited);
    let mut cluster = cluster.at(CLOSING);
    cluster.pass(&edited);
    cluster.pass(&edited);
    assert_eq!((has(&cluster), cluster.0.status.replicas_before), (3, None));
}

/// The office of that generation, with these fields besides.
fn edited(generation: i64, fields: &Value) -> TDSet {
    let mut tdset = web(fields);
    tdset.metadata.generation = Some(generation);
    tdset
}

#[test]
fn a_ramp_leads_back_to_the_count() {
    let slow = web(&json!({"defaultReplicas": null, "ramp": {"down": {"step": 1, "every": "10m"}}}));
    let mut cluster = cluster();
    cluster.scale(2, by_kubectl(EARLY));
    cluster.pass(&slow);
    let mut cluster = cluster.at(OPENING);
    for _ in 0..3 {
        cluster.pass(&slow);
    }
    assert_eq!(has(&cluster), 6);
    let mut counts = Vec::new();
    for now in [CLOSING, "2026-03-02T17:10:00Z", "2026-03-02T17:20:00Z", "2026-03-02T17:30:00Z"] {
        cluster = cluster.at(now);
        cluster.pass(&slow);
        cluster.pass(&slow);
        counts.push((has(&cluster), cluster.0.status.replicas_before));
    }
    assert_eq!(counts, [(5, Some(2)), (4, Some(2)), (3, Some(2)), (2, None)]);
}

#[test]
fn a_workload_without_its_count_field_gets_one_replica_back_and_not_none() {
    let mut cluster = Cluster::empty(EARLY);
    cluster.0.target = Some(Ok(Scaled { is_unset: true, ..scaled(0, Writer::Unknown) }));
    let told = cluster.pass(&office());
    assert_eq!(verbs(&told.work), [""; 0], "it is left alone");
    let (state, reason, message) = condition(&told.status, ConditionType::Ready);
    assert_eq!((state.as_str(), reason.as_str()), ("True", "AsScheduled"));
    assert_eq!(message, "Deployment web has no count; the count is left alone");
    assert_eq!(told.status.replicas, None, "how many there are is not known");
    assert_eq!(condition(&told.status, ConditionType::Progressing).1, "UpToDate");
    let mut cluster = cluster.at(OPENING);
    for _ in 0..3 {
        cluster.pass(&office());
    }
    assert_eq!((has(&cluster), cluster.0.status.replicas_before), (6, Some(1)));
    let mut cluster = cluster.at(CLOSING);
    cluster.pass(&office());
    assert_eq!(has(&cluster), 1);
}
