//! Transitions: when they are written, told of and looked for.

use super::*;

#[test]
fn the_count_gets_an_owner_of_its_own_before_the_template_is_applied_without_it() {
    let mut cluster = Cluster::empty(EARLY);
    cluster.pass(&shop());
    let edited = changed("/spec/target/create/image", json!("shop:2"));
    assert_eq!(verbs(&plan(&shop(), &cluster.0).work), [""; 0], "it came with the template, which stands");
    // An autoscaler has it from then on, and there has to be one that it can go on from.
    for (field, value) in [("suspend", json!(true)), ("autoscaler", json!({"name": "shop"}))] {
        let with = |tdset: TDSet| {
            let mut object = json!(tdset);
            object["spec"][field] = value.clone();
            serde_json::from_value::<TDSet>(object).unwrap()
        };
        assert_eq!(verbs(&plan(&with(shop()), &cluster.0).work), [""; 0], "{field}");
        let work = verbs(&plan(&with(edited.clone()), &cluster.0).work);
        assert_eq!(work, ["apply Deployment 2 as gatehouse-tdset-count"], "{field}");
    }

    // Not in one reconciliation: what the API server refuses holds up nothing else that the reconciliation does.
    assert_eq!(verbs(&cluster.pass(&edited).work), ["apply Deployment 2 as gatehouse-tdset-count"]);
    assert_eq!(verbs(&plan(&edited, &cluster.0).work), ["apply! Deployment null as gatehouse-tdset"]);
}

#[test]
fn a_transition_is_one_small_write_and_is_reported_once() {
    let shop = shop();
    let mut cluster = Cluster::settled(&shop, EARLY).at("2026-03-02T07:00:00.25Z");
    let first = cluster.pass(&shop);
    assert_eq!(verbs(&first.work), ["apply! Deployment 6 as gatehouse-tdset-count"]);
    let second = cluster.pass(&shop);
    assert_eq!(verbs(&second.work), [""; 0]);
    assert_eq!(
        verbs(&second.report),
        ["ReplicasScheduled: replicas 2 → 6: window office, 250 ms late", "status"]
    );
    let last = second.status.last_transition.clone().unwrap();
    assert_eq!((last.time, last.lateness_ms), (Time(at(OPENING)), 250));
    assert_eq!(second.status.next_transition.clone().unwrap().time, Time(at(CLOSING)));
    let third = cluster.pass(&shop);
    assert_eq!((third.work, third.report), (vec![], vec![]));
}

#[test]
fn a_transition_whose_status_was_written_without_an_answer_is_known_as_reported() {
    let shop = shop();
    let mut cluster = Cluster::settled(&shop, EARLY).at(OPENING);
    cluster.pass(&shop);
    let carried = cluster.0.remembered.carried.clone();
    assert_eq!(carried.reported_by(&cluster.0.status), None, "the status is not written yet");
    cluster.pass(&shop);
    cluster.0.remembered.carried = carried.clone();
    let next = plan(&shop, &cluster.0);
    assert_eq!((next.transition, next.report), (None, vec![]));
    assert_eq!(carried.reported_by(&cluster.0.status), carried.transition.as_ref());
    let tomorrow =
        PastTransition { time: Time(at("2026-03-03T07:00:00Z")), ..carried.transition.clone().unwrap() };
    let later = Unreported { transition: Some(tomorrow), ..Unreported::default() };
    assert_eq!(later.reported_by(&cluster.0.status), None, "another transition to the same count");
}

#[test]
fn what_was_missed_is_reported_as_the_one_transition_that_holds() {
    let shop = shop();
    let mut cluster = Cluster::settled(&shop, EARLY).at("2026-03-04T12:00:00Z");
    cluster.pass(&shop);
    let told = cluster.pass(&shop).status.last_transition.unwrap();
    assert_eq!(told.time, Time(at("2026-03-04T07:00:00Z")));
    assert_eq!(told.lateness_ms, 5 * 3_600_000);
}

#[test]
fn a_transition_that_was_carried_out_keeps_its_lateness_until_it_is_reported() {
    let shop = shop();
    let mut cluster = Cluster::settled(&shop, EARLY).at("2026-03-02T07:00:00.01Z");
    let carried = cluster.pass(&shop).transition;
    cluster.0.remembered.carried.transition =
        carried.map(|carried| PastTransition { lateness_ms: 12, ..carried });
    let told = cluster.at("2026-03-02T07:00:09Z").pass(&shop);
    assert_eq!(told.status.last_transition.unwrap().lateness_ms, 12);
}

#[test]
fn between_boundaries_nothing_is_written_and_the_status_stays() {
    let shop = shop();
    let cluster = Cluster::settled(&shop, EARLY);
    for now in ["2026-03-02T06:00:00.001Z", "2026-03-02T06:30:00Z", "2026-03-02T06:59:59.999999999Z"] {
        let later = cluster.clone().at(now);
        let plan = plan(&shop, &later.0);
        assert_eq!((plan.work, plan.report), (vec![], vec![]), "{now}");
        assert_eq!(plan.status, later.0.status, "{now}");
    }
}

#[test]
fn the_next_look_is_at_the_next_transition_or_after_the_resync_time() {
    for now in ["2026-03-02T06:55:00Z", "2026-03-02T06:59:59.9999Z"] {
        let observed = Cluster::settled(&shop(), now).0;
        assert_eq!(plan(&shop(), &observed).wake, Some(at(OPENING)), "{now}");
    }
    let often = changed("/spec/resyncMinutes", json!(3));
    for (tdset, now, minutes) in [(shop(), EARLY, 10), (shop(), OPENING, 10), (often, EARLY, 3)] {
        let observed = Cluster::settled(&tdset, now).0;
        let sleep = plan(&tdset, &observed).wake.unwrap().duration_since(at(now));
        let longest = SignedDuration::from_mins(minutes);
        assert!((longest * 4 / 5..=longest).contains(&sleep), "{now}: {sleep}");
    }
}

#[test]
fn objects_that_came_at_once_are_not_looked_at_together_for_good() {
    let sleeps: std::collections::BTreeSet<_> =
        (0..100).map(|uid| spread(Duration::from_mins(10), &uid.to_string())).collect();
    assert!(sleeps.len() > 50, "{sleeps:?}");
}

#[test]
fn a_look_that_comes_too_early_changes_nothing_and_looks_again() {
    let shop = shop();
    let cluster = Cluster::settled(&shop, EARLY).at("2026-03-02T06:59:59.998Z");
    let plan = plan(&shop, &cluster.0);
    assert_eq!((plan.work, plan.report, plan.wake), (vec![], vec![], Some(at(OPENING))));
}

#[test]
fn an_edit_that_changes_the_count_is_a_transition_of_now() {
    let mut cluster = Cluster::settled(&shop(), EARLY);
    let edited = changed("/spec/defaultReplicas", json!(4));
    cluster.pass(&edited);
    let plan = cluster.pass(&edited);
    let expected =
        ["ReplicasScheduled: replicas 2 → 4: outside all windows, after a change of the object", "status"];
    assert_eq!(verbs(&plan.report), expected);
}
