//! Counts that are taken back, once and again and again; and clocks that differ.

use super::workloads::{by_kubectl, has, ramped, settled, web};
use super::*;
use crate::kinds::tdset::observation::{Contest, FieldOwner};

fn by(manager: &str) -> Writer {
    Writer::Other(FieldOwner { manager: manager.to_owned(), time: None })
}

fn contest(until: &str, over: &str) -> Contest {
    Contest { managers: ["argocd-controller".to_owned()].into(), until: at(until), over: at(over) }
}

#[test]
fn a_count_that_is_taken_back_is_reported() {
    let tdset = web(&json!({}));
    for (writer, who) in [(by("kubectl"), "kubectl"), (Writer::Unknown, "another client")] {
        let mut cluster = settled(&tdset, EARLY);
        cluster.scale(9, writer);
        assert!(cluster.pass(&tdset).reverted.is_some());
        let told = cluster.pass(&tdset);
        assert_eq!(verbs(&told.report), [format!("ReplicasReverted: replicas 9 → 2: taken back from {who}")]);
        assert_eq!((has(&cluster), told.reverted), (2, None));
        assert_eq!(verbs(&cluster.pass(&tdset).report), [""; 0], "once");
    }
    // So is one of a Deployment that is made.
    let mut cluster = Cluster::settled(&shop(), EARLY);
    cluster.edit(|deployment| scale(deployment, 9, "kubectl"));
    cluster.pass(&shop());
    let told = verbs(&cluster.pass(&shop()).report);
    assert_eq!(told, ["ReplicasReverted: replicas 9 → 2: taken back from kubectl"]);
}

#[test]
fn an_edit_of_something_else_takes_no_count_back_in_silence() {
    let edited = changed("/spec/target/create/image", json!("shop:2"));
    let mut cluster = Cluster::settled(&shop(), EARLY);
    cluster.edit(|deployment| scale(deployment, 9, "kubectl"));
    let expected = ["ReplicasReverted: replicas 9 → 2: taken back from kubectl", "status"];
    cluster.pass(&edited);
    assert_eq!(verbs(&cluster.pass(&edited).report), expected);
    assert_eq!(verbs(&cluster.pass(&edited).report), [""; 0], "once");
}

#[test]
fn an_edit_does_not_wait_for_a_contest() {
    let tdset = web(&json!({}));
    let mut cluster = settled(&tdset, EARLY);
    cluster.scale(9, by("argocd-controller"));
    cluster.0.remembered.contest = Some(contest("2026-03-02T06:01:00Z", "2026-03-02T06:10:00Z"));
    let mut edited = tdset;
    edited.metadata.generation = Some(7);
    cluster.pass(&edited);
    assert_eq!(has(&cluster), 2);
}

#[test]
fn a_transition_takes_nothing_back() {
    let tdset = web(&json!({}));
    let mut cluster = settled(&tdset, EARLY).at(OPENING);
    cluster.scale(9, by("kubectl"));
    assert_eq!(cluster.pass(&tdset).reverted, None);
    let told = verbs(&cluster.pass(&tdset).report);
    assert_eq!(told, ["ReplicasScheduled: replicas 2 → 6: window office, 0 ms late", "status"]);
}

#[test]
fn a_contest_slows_down_and_names_the_client() {
    let tdset = web(&json!({}));
    let mut cluster = settled(&tdset, EARLY);
    cluster.scale(9, by("argocd-controller"));
    cluster.0.remembered.contest = Some(contest("2026-03-02T06:01:00Z", "2026-03-02T06:10:00Z"));
    let told = cluster.pass(&tdset);
    assert_eq!((verbs(&told.work), has(&cluster)), (vec![], 9));
    for about in [ConditionType::Conflict, ConditionType::Ready] {
        let (state, reason, message) = condition(&told.status, about);
        let expected = if about == ConditionType::Ready { "False" } else { "True" };
        assert_eq!((state.as_str(), reason.as_str()), (expected, "Contested"), "{about:?}");
        assert!(message.contains("argocd-controller"), "{message}");
    }
    assert!(told.conflict && verbs(&told.report)[0].starts_with("Contested: argocd-controller"), "{told:?}");
    assert_eq!(told.wake, Some(at("2026-03-02T06:01:00Z")));
    let mut due = cluster.clone().at("2026-03-02T06:01:00Z");
    assert!(due.pass(&tdset).reverted.is_some(), "it is tried again");
    assert_eq!(has(&due), 2);
    let mut stands = due.at("2026-03-02T06:02:00Z");
    let told = stands.pass(&tdset);
    assert_eq!(condition(&told.status, ConditionType::Conflict).1, "Contested", "until it is over");
    assert_eq!(condition(&told.status, ConditionType::Ready).1, "AsScheduled");
    stands.0.remembered.contest = None;
    let told = stands.at("2026-03-02T06:10:00Z").pass(&tdset);
    assert_eq!(condition(&told.status, ConditionType::Conflict).1, "NoConflict");
    assert_eq!(told.transition, None, "a contest held no transition back");
}

#[test]
fn what_was_made_is_not_put_back_all_the_time() {
    let shop = shop();
    let mut cluster = Cluster::settled(&shop, EARLY);
    cluster.edit(|deployment| {
        scale(deployment, 2, COUNT_MANAGER);
        let pods = deployment.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
        pods.containers[0].image = Some("other:1".to_owned());
    });
    let until = "2026-03-02T06:01:00Z";
    cluster.0.remembered.repair_contest =
        Some(Contest { managers: [].into(), ..contest(until, "2026-03-02T06:10:00Z") });
    for _ in 0..2 {
        let told = cluster.pass(&shop);
        assert_eq!((verbs(&told.work), told.wake), (vec![], Some(at(until))));
        for (about, state) in [(ConditionType::Conflict, "True"), (ConditionType::Ready, "False")] {
            let (found, reason, message) = condition(&told.status, about);
            assert_eq!((found.as_str(), reason.as_str()), (state, "Contested"), "{about:?}");
            assert!(message.contains("another client changes what was made"), "{message}");
        }
    }
    let apply = ["apply! Deployment null as gatehouse-tdset"];
    let mut edited = shop.clone();
    edited.metadata.generation = Some(7);
    assert_eq!(verbs(&plan(&edited, &cluster.0).work), apply, "an edit does not wait");
    let mut open = cluster.clone().at(OPENING);
    open.0.remembered.repair_contest = Some(contest("2026-03-02T07:01:00Z", "2026-03-02T07:10:00Z"));
    let work = verbs(&plan(&shop, &open.0).work);
    assert_eq!(work, ["apply! Deployment 6 as gatehouse-tdset-count"], "nor does a count");
    let mut due = cluster.at(until);
    assert_eq!(verbs(&due.pass(&shop).work), apply, "it is tried again");
    let told = due.pass(&shop);
    assert_eq!(condition(&told.status, ConditionType::Conflict).1, "Contested", "until it is over");
    assert_eq!(condition(&told.status, ConditionType::Ready).1, "AsScheduled");
    // As it is where the client has stopped.
    due.0.remembered.repair_contest =
        Some(Contest { managers: [].into(), ..contest("2026-03-02T06:03:00Z", "2026-03-02T06:11:00Z") });
    let told = due.pass(&shop);
    assert_eq!(condition(&told.status, ConditionType::Ready).1, "AsScheduled", "nothing is missing");
}

#[test]
fn a_transition_does_not_wait_for_a_contest() {
    let tdset = web(&json!({}));
    let mut cluster = settled(&tdset, EARLY);
    cluster.scale(9, by("argocd-controller"));
    cluster.0.remembered.contest = Some(contest("2026-03-02T07:04:00Z", "2026-03-02T07:09:00Z"));
    cluster.pass(&tdset);
    let mut cluster = cluster.at(OPENING);
    assert_eq!(verbs(&cluster.pass(&tdset).work), ["merge Deployment 6 as gatehouse-tdset-count"]);
}

#[test]
fn a_tool_that_applies_a_repository_does_not_scale() {
    let kept = web(&json!({"manualScalePolicy": "KeepUntilNextTransition"}));
    for (manager, stands) in
        [("kubectl", true), ("argocd-controller", false), ("kustomize-controller", false)]
    {
        let mut cluster = settled(&kept, EARLY);
        let time = Some(at(EARLY));
        cluster.scale(9, Writer::Other(FieldOwner { manager: manager.to_owned(), time }));
        cluster.pass(&kept);
        assert_eq!(has(&cluster) == 9, stands, "{manager}");
    }
}

#[test]
fn a_leader_whose_clock_is_behind_does_not_undo_a_transition() {
    let shop = shop();
    let mut cluster = Cluster::settled(&shop, EARLY).at(OPENING);
    cluster.pass(&shop);
    cluster.pass(&shop);
    for now in ["2026-03-02T06:59:57Z", "2026-03-02T06:58:01Z"] {
        let behind = cluster.clone().at(now);
        let plan = plan(&shop, &behind.0);
        assert_eq!((verbs(&plan.work), verbs(&plan.report)), (vec![], vec![]), "{now}");
        assert!(plan.wake.unwrap() > at(OPENING));
    }
    // Hours are no difference of clocks.
    let work = verbs(&plan(&shop, &cluster.clone().at(EARLY).0).work);
    assert_eq!(work, ["apply! Deployment 2 as gatehouse-tdset-count"]);
}

#[test]
fn a_leader_whose_clock_is_behind_does_not_undo_a_count_that_was_not_reported() {
    let (shop, web) = (shop(), web(&json!({})));
    let lent = self::web(&json!({"defaultReplicas": null}));
    let scaled = |tdset: &TDSet| {
        let mut cluster = settled(tdset, EARLY).at(OPENING);
        while has(&cluster) == 2 {
            cluster.pass(tdset);
        }
        cluster
    };
    let mut made = Cluster::settled(&shop, EARLY).at(OPENING);
    made.pass(&shop);
    for (tdset, mut cluster) in [(&shop, made), (&web, scaled(&web)), (&lent, scaled(&lent))] {
        // What was carried out is not known to another process.
        cluster.0.remembered.carried = Unreported::default();
        for now in ["2026-03-02T06:59:57Z", "2026-03-02T06:58:01Z"] {
            let planned = plan(tdset, &cluster.clone().at(now).0);
            assert_eq!(verbs(&planned.work), [""; 0], "{now}");
            assert_eq!(planned.status.scheduled_replicas, Some(6), "{now}");
        }
        assert_eq!(plan(tdset, &cluster.clone().at(EARLY).0).work.len(), 1, "hours are no difference");
        // A workload that is applied without its count does not say who wrote it.
        if let Some(Ok(found)) = &cluster.0.target {
            let mut unowned = cluster.clone().at("2026-03-02T06:59:57Z");
            unowned.scale(found.count(), Writer::Unknown);
            assert_eq!(verbs(&plan(tdset, &unowned.0).work), [""; 0]);
        }
        // A count that another client wrote is none that was carried out.
        let mut other = cluster.at("2026-03-02T06:59:57Z");
        match &mut other.0.target {
            Some(_) => other.scale(6, by("kubectl")),
            None => other.edit(|deployment| {
                scale(deployment, 9, "kubectl");
                scale(deployment, 6, "kubectl");
            }),
        }
        // It stands where the workload is left alone.
        let is_left_alone = tdset.spec.default_replicas.is_none();
        assert_eq!(plan(tdset, &other.0).work.len(), usize::from(!is_left_alone));
    }
}

#[test]
fn a_window_of_a_minute_is_no_difference_of_clocks() {
    let mut short = json!(shop());
    short["spec"]["windows"][0]["to"] = "08:01".into();
    let short: TDSet = serde_json::from_value(short).unwrap();
    let mut cluster = Cluster::settled(&short, EARLY).at(OPENING);
    assert_eq!(verbs(&cluster.pass(&short).work), ["apply! Deployment 6 as gatehouse-tdset-count"]);
}

#[test]
fn a_count_that_is_taken_back_after_a_ramp_takes_none() {
    let ramped = ramped();
    let mut cluster = settled(&ramped, EARLY);
    cluster.scale(9, by_kubectl(EARLY));
    cluster.pass(&ramped);
    assert_eq!(has(&cluster), 2);
}

/// The ramp of the office, where counts of other clients stand.
fn kept_on_a_ramp() -> TDSet {
    let ramp = json!({"up": {"step": 1, "every": "10m"}});
    web(&json!({"manualScalePolicy": "KeepUntilNextTransition", "ramp": ramp}))
}

#[test]
fn on_a_ramp_a_count_that_was_not_written_last_is_another_clients() {
    // The API server does not say which client wrote it, and the ramp has led to it before.
    for (tdset, is_kept) in [(ramped(), false), (kept_on_a_ramp(), true)] {
        let mut cluster = settled(&tdset, EARLY).at(OPENING);
        for _ in 0..3 {
            cluster.pass(&tdset);
        }
        cluster.0.remembered.written = Some(3);
        let mut other = cluster.clone().at("2026-03-02T07:05:00Z");
        other.scale(2, Writer::Unknown);
        let told = other.pass(&tdset);
        assert_eq!((has(&other), told.reverted.is_some()), if is_kept { (2, false) } else { (3, true) });
        let mut next = cluster.at("2026-03-02T07:10:00Z");
        next.scale(3, Writer::Unknown);
        assert_eq!((next.pass(&tdset).reverted, has(&next)), (None, 4), "a step takes nothing back");
    }
}

#[test]
fn on_a_ramp_a_count_that_it_cannot_have_led_to_is_another_clients() {
    // The API server does not say which client wrote it.
    let kept = kept_on_a_ramp();
    for (tdset, is_kept) in [(ramped(), false), (kept, true)] {
        let mut cluster = settled(&tdset, EARLY).at(OPENING);
        for _ in 0..3 {
            cluster.pass(&tdset);
        }
        assert_eq!((has(&cluster), cluster.0.status.ramp.is_some()), (3, true));
        // A step that was not reported, and one by a clock that is ahead by a minute.
        for (now, count) in [("2026-03-02T07:10:00Z", 3), ("2026-03-02T07:09:00Z", 4)] {
            let mut cluster = cluster.clone().at(now);
            cluster.scale(count, Writer::Unknown);
            assert_eq!(cluster.pass(&tdset).reverted, None, "{count}");
        }
        let mut cluster = cluster.at("2026-03-02T07:05:00Z");
        cluster.scale(9, Writer::Unknown);
        let told = cluster.pass(&tdset);
        assert_eq!((has(&cluster), told.reverted.is_some()), if is_kept { (9, false) } else { (3, true) });
        let stands = condition(&told.status, ConditionType::ManualOverride).0;
        assert_eq!(stands, if is_kept { "True" } else { "False" });
    }
}
