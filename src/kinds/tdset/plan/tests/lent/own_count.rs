//! Which count is the workload's own, and which one was written for a window.

use super::super::workloads::{ramped, settled};
use super::*;

#[test]
fn a_count_for_other_times_that_comes_and_goes_does_not_forget_the_own_one() {
    let (with, without) = (json!({"defaultReplicas": 3}), json!({"defaultReplicas": null}));
    let mut cluster = inside();
    for (generation, fields) in [(3, &with), (4, &without)] {
        for _ in 0..2 {
            cluster.pass(&edited(generation, fields));
        }
        assert_eq!((has(&cluster), cluster.0.status.replicas_before), (6, Some(5)), "{fields}");
    }
    let mut cluster = cluster.at(CLOSING);
    cluster.pass(&edited(4, &without));
    assert_eq!(has(&cluster), 5);

    // So it is where that is after the window, and no count could be written meanwhile.
    let held = |fields: &Value| json!({"suspend": true, "defaultReplicas": fields["defaultReplicas"]});
    let mut cluster = inside().at(CLOSING);
    for (generation, fields) in [(3, &without), (4, &with), (5, &without)] {
        cluster.pass(&edited(generation, &held(fields)));
        assert_eq!((has(&cluster), cluster.0.status.replicas_before), (6, Some(5)), "{fields}");
    }
    cluster.pass(&edited(6, &without));
    assert_eq!(has(&cluster), 5);
}

#[test]
fn a_step_of_a_ramp_is_not_the_count_of_before_the_window() {
    let ramp = json!({"up": {"step": 1, "every": "10m"}});
    let mut cluster = settled(&web(&json!({"ramp": ramp})), EARLY).at(OPENING);
    for now in [OPENING, OPENING, "2026-03-02T07:10:00Z", "2026-03-02T07:10:00Z"] {
        cluster = cluster.at(now);
        cluster.pass(&web(&json!({"ramp": ramp})));
    }
    assert_eq!(has(&cluster), 4);
    let lent = edited(3, &json!({"ramp": ramp, "defaultReplicas": null}));
    assert_eq!(cluster.pass(&lent).status.replicas_before, Some(2));
}

#[test]
fn the_count_of_the_window_before_is_not_the_one_of_before_both() {
    let windows = json!([
        {"name": "morning", "from": "08:00", "to": "12:00", "replicas": 6},
        {"name": "noon", "from": "12:00", "to": "18:00", "replicas": 9},
    ]);
    let both = web(&json!({"windows": windows}));
    let mut cluster = settled(&both, EARLY);
    for now in [OPENING, "2026-03-02T11:00:00Z"] {
        cluster = cluster.at(now);
        cluster.pass(&both);
        cluster.pass(&both);
    }
    assert_eq!(has(&cluster), 9);
    let lent = edited(3, &json!({"windows": windows, "defaultReplicas": null}));
    assert_eq!(cluster.pass(&lent).status.replicas_before, Some(2));
}

#[test]
fn a_count_that_a_tdset_that_is_gone_has_written_is_not_taken_for_the_own_one() {
    for (writer, before) in [(Writer::Ours, None), (Writer::Maker, Some(7)), (by_kubectl(EARLY), Some(7))] {
        // It was deleted and made again within the window.
        let mut cluster = Cluster::empty("2026-03-02T08:00:00Z");
        cluster.scale(7, writer);
        for _ in 0..3 {
            cluster.pass(&office());
        }
        assert_eq!((has(&cluster), cluster.0.status.replicas_before), (6, before));
        // One from within the window is none either.
        cluster.scale(9, by_kubectl("2026-03-02T09:00:00Z"));
        for _ in 0..3 {
            cluster.pass(&office());
        }
        assert_eq!((has(&cluster), cluster.0.status.replicas_before), (6, before));
        let mut cluster = cluster.at(CLOSING);
        cluster.pass(&office());
        assert_eq!(has(&cluster), before.unwrap_or(6));
    }
}

#[test]
fn a_count_that_was_given_back_before_a_suspension_is_the_own_one() {
    let mut cluster = inside().at(CLOSING);
    for _ in 0..2 {
        cluster.pass(&office());
    }
    let suspended = edited(3, &json!({"defaultReplicas": null, "suspend": true}));
    cluster.pass(&suspended);
    let mut cluster = cluster.at(NEXT_MORNING);
    cluster.pass(&suspended);
    let resumed = edited(4, &json!({"defaultReplicas": null}));
    assert_eq!(cluster.pass(&resumed).status.replicas_before, Some(5));
}

#[test]
fn a_workload_that_is_made_again_does_not_get_the_count_of_the_one_before() {
    let again = |cluster: &mut Cluster, is_seen_gone: bool| {
        if is_seen_gone {
            cluster.0.target = Some(Err(Blocker::absent("Deployment web does not exist".to_owned())));
            cluster.pass(&office());
            assert_eq!(cluster.0.status.replicas_before, None);
        }
        cluster.scale(3, Writer::Maker);
        cluster.0.remembered.is_replaced = !is_seen_gone;
    };
    for is_seen_gone in [true, false] {
        let mut within = inside();
        again(&mut within, is_seen_gone);
        assert_eq!(within.pass(&office()).status.replicas_before, Some(3), "gone: {is_seen_gone}");
        within.0.remembered.is_replaced = false;
        for _ in 0..2 {
            within.pass(&office());
        }
        let mut within = within.at(CLOSING);
        within.pass(&office());
        assert_eq!(has(&within), 3, "gone: {is_seen_gone}");

        let mut after = inside().at(CLOSING);
        again(&mut after, is_seen_gone);
        let told = after.pass(&office());
        assert_eq!((verbs(&told.work), told.status.replicas_before), (vec![], None), "gone: {is_seen_gone}");
    }
    // What cannot be read is not gone, nor is an object of a kind that is not served.
    for reason in [Reason::TargetNotReadable, Reason::Forbidden, Reason::TargetNotFound] {
        let mut cluster = inside();
        cluster.0.target = Some(Err(Blocker::ready(reason, "no answer".to_owned())));
        cluster.pass(&office());
        assert_eq!(cluster.0.status.replicas_before, Some(5), "{reason:?}");
    }
}

#[test]
fn a_ramp_goes_on_to_the_count_for_other_times_that_is_taken_out() {
    let ramped = ramped();
    let mut cluster = settled(&ramped, EARLY);
    for now in [OPENING, "2026-03-02T08:00:00Z", CLOSING] {
        cluster = cluster.at(now);
        cluster.pass(&ramped);
        cluster.pass(&ramped);
    }
    assert_eq!((has(&cluster), cluster.0.status.ramp.is_some()), (3, true));
    let lent = edited(3, &json!({"defaultReplicas": null, "ramp": ramped.spec.ramp}));
    for (now, count, before) in [(CLOSING, 3, Some(2)), ("2026-03-02T17:01:00Z", 2, None)] {
        cluster = cluster.at(now);
        cluster.pass(&lent);
        let told = cluster.pass(&lent);
        assert_eq!((has(&cluster), cluster.0.status.replicas_before), (count, before), "{now}");
        assert!(!verbs(&told.report).iter().any(|note| note.starts_with("ReplicasScheduled")), "{told:?}");
    }
}
