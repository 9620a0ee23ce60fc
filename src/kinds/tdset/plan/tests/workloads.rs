//! Workloads that another client made, counts that others write, ramps, dates from elsewhere.

mod let_go;

use super::*;
use crate::api::condition::State;
use crate::kinds::tdset::observation::{Controller, FieldOwner};

/// The same timetable on a workload that is there, with these fields besides.
pub(super) fn web(fields: &Value) -> TDSet {
    let reference = json!({"ref": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}});
    let mut object = json!(changed("/spec/target", reference));
    for (field, value) in fields.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    serde_json::from_value(object).unwrap()
}

pub(super) fn kept() -> TDSet {
    web(&json!({"manualScalePolicy": "KeepUntilNextTransition"}))
}

pub(super) fn ramped() -> TDSet {
    web(&json!({"ramp": {"up": {"step": 1, "every": "10m"}, "down": {"step": "50%", "every": "1m"}}}))
}

/// One in which `tdset` has been worked on until nothing was left to do.
pub(super) fn settled(tdset: &TDSet, now: &str) -> Cluster {
    let mut cluster = Cluster::empty(now);
    cluster.scale(2, Writer::Ours);
    for _ in 0..4 {
        cluster.pass(tdset);
    }
    assert_eq!(verbs(&plan(tdset, &cluster.0).work), [""; 0]);
    cluster
}

pub(super) fn by_kubectl(time: &str) -> Writer {
    Writer::Other(FieldOwner { manager: "kubectl".to_owned(), time: Some(at(time)) })
}

pub(super) fn has(cluster: &Cluster) -> i32 {
    cluster.0.target.as_ref().unwrap().as_ref().unwrap().count()
}

#[test]
fn nothing_but_the_count_of_a_workload_is_written_and_by_its_scale() {
    let mut cluster = settled(&web(&json!({})), EARLY).at(OPENING);
    let plan = cluster.pass(&web(&json!({})));
    assert_eq!(verbs(&plan.work), ["merge Deployment 6 as gatehouse-tdset-count"]);
    let told = cluster.pass(&web(&json!({})));
    assert_eq!(
        verbs(&told.report),
        ["ReplicasScheduled: replicas 2 → 6: window office, 0 ms late", "status"]
    );
    assert_eq!((told.status.replicas, told.status.ready_replicas), (Some(6), None));
    assert_eq!(told.status.selector.as_deref(), Some("app=web"));
    assert_eq!(condition(&told.status, ConditionType::Ready).1, "AsScheduled");
}

#[test]
fn a_window_that_ends_before_its_count_was_reported_does_not_end_in_silence() {
    let tdset = web(&json!({}));
    let mut cluster = settled(&tdset, EARLY).at(OPENING);
    cluster.pass(&tdset);
    // The status does not tell of the six yet, whether the process remembers them or was started again.
    for carried in [cluster.0.remembered.carried.clone(), Unreported::default()] {
        let mut cluster = cluster.clone().at(CLOSING);
        cluster.0.remembered.carried = carried;
        assert_eq!(verbs(&cluster.pass(&tdset).work), ["merge Deployment 2 as gatehouse-tdset-count"]);
        let told = cluster.pass(&tdset);
        let note = "ReplicasScheduled: replicas 6 → 2: outside all windows, 0 ms late";
        assert_eq!(verbs(&told.report), [note, "status"]);
        assert_eq!(told.transition.unwrap().from.window, "office");
        assert_eq!(verbs(&cluster.pass(&tdset).report), [""; 0], "once");
    }
}

#[test]
fn an_edit_that_is_undone_before_its_count_was_reported_does_not_end_in_silence() {
    let mut edited = json!(web(&json!({})));
    let mut cluster = settled(&serde_json::from_value(edited.clone()).unwrap(), EARLY);
    let undone = [(2, 3), (3, 2)].map(|(generation, count)| -> TDSet {
        edited["spec"]["defaultReplicas"] = count.into();
        edited["metadata"]["generation"] = generation.into();
        serde_json::from_value(edited.clone()).unwrap()
    });
    for tdset in &undone {
        cluster.pass(tdset);
    }
    assert_eq!(has(&cluster), 2);
    let note = "ReplicasScheduled: replicas 3 → 2: outside all windows, after a change of the object";
    assert_eq!(verbs(&cluster.pass(&undone[1]).report), [note, "status"]);
}

#[test]
fn a_count_that_is_kept_stands_until_the_next_transition_and_no_longer() {
    let kept = kept();
    let mut cluster = settled(&kept, EARLY);
    cluster.scale(9, by_kubectl(EARLY));
    let told = cluster.pass(&kept);
    assert_eq!(verbs(&told.work), [""; 0]);
    let (state, reason, message) = condition(&told.status, ConditionType::ManualOverride);
    assert_eq!((state.as_str(), reason.as_str()), ("True", "ManuallyScaled"));
    let expected = "kubectl wrote 9, 2 are scheduled: it stands until 2026-03-02T08:00+01:00[Europe/Berlin]";
    assert_eq!(message, expected);
    assert_eq!(condition(&told.status, ConditionType::Ready).0, "True");

    let mut cluster = cluster.at(OPENING);
    assert_eq!(verbs(&cluster.pass(&kept).work), ["merge Deployment 6 as gatehouse-tdset-count"]);
    assert_eq!(condition(&cluster.pass(&kept).status, ConditionType::ManualOverride).0, "False");
}

#[test]
fn what_was_written_while_no_operator_ran_stands_if_no_transition_came_after_it() {
    for (written, stands) in
        [("2026-03-02T06:59:59Z", false), (OPENING, true), ("2026-03-02T07:30:00Z", true)]
    {
        // Nothing is remembered, and the status is older.
        let mut cluster = settled(&kept(), EARLY).at("2026-03-02T08:00:00Z");
        cluster.scale(9, by_kubectl(written));
        cluster.pass(&kept());
        assert_eq!(has(&cluster) == 9, stands, "{written}");
    }
}

#[test]
fn what_stood_when_the_schedule_was_made_is_not_kept() {
    let (made, after) = ("2026-03-01T10:00:00Z", "2026-03-01T10:00:01Z");
    let mut object = json!(kept());
    object["metadata"]["creationTimestamp"] = made.into();
    let object: TDSet = serde_json::from_value(object).unwrap();
    for (written, stands) in [(made, false), (after, true)] {
        let mut cluster = Cluster::empty(EARLY);
        cluster.scale(9, by_kubectl(written));
        cluster.pass(&object);
        assert_eq!(has(&cluster) == 9, stands, "{written}");
    }
}

#[test]
fn a_count_of_an_unknown_time_stands_if_it_is_found_after_all_was_reported() {
    let untimed = || Writer::Other(FieldOwner { manager: "kubectl".to_owned(), time: None });
    let mut cluster = settled(&kept(), EARLY);
    cluster.scale(9, untimed());
    assert_eq!(condition(&cluster.pass(&kept()).status, ConditionType::ManualOverride).0, "True");
    let mut missed = settled(&kept(), EARLY).at("2026-03-02T08:00:00Z");
    missed.scale(9, untimed());
    missed.pass(&kept());
    assert_eq!(has(&missed), 6, "it may have been written before the transition that was not observed");
    let mut missed = settled(&kept(), EARLY).at("2026-03-02T18:00:00Z");
    missed.scale(9, untimed());
    missed.pass(&kept());
    assert_eq!(has(&missed), 2, "nor has anybody seen the one back");

    let mut held = web(&json!({"manualScalePolicy": "KeepUntilNextTransition", "suspend": true}));
    let mut cluster = settled(&held, EARLY);
    cluster.scale(9, untimed());
    cluster.pass(&held);
    held.spec.suspend = None;
    cluster.pass(&held);
    assert_eq!(has(&cluster), 2, "what was written meanwhile is brought up to the timetable");
}

#[test]
fn an_edit_of_the_timetable_is_a_transition_of_now() {
    let mut cluster = settled(&kept(), EARLY);
    cluster.scale(9, by_kubectl(EARLY));
    cluster.pass(&kept());
    let mut edited = json!(kept());
    (edited["spec"]["defaultReplicas"], edited["metadata"]["generation"]) = (3.into(), 3.into());
    let edited: TDSet = serde_json::from_value(edited).unwrap();
    cluster.pass(&edited);
    assert_eq!(has(&cluster), 3);
}

#[test]
fn a_ramp_is_a_line_from_the_count_that_was_found() {
    let ramped = ramped();
    let mut cluster = settled(&ramped, EARLY).at(OPENING);
    let first = cluster.pass(&ramped);
    let step = at("2026-03-02T07:10:00Z");
    assert_eq!((has(&cluster), first.due), (3, Some(step)));
    assert!(first.wake.unwrap() <= step, "{:?}", first.wake);
    let told = cluster.pass(&ramped);
    assert_eq!(
        verbs(&told.report),
        ["ReplicasScheduled: replicas 2 → 6: window office, 0 ms late", "status"]
    );
    assert_eq!(condition(&told.status, ConditionType::Progressing).1, "Ramping");
    assert_eq!(condition(&told.status, ConditionType::Ready).0, "True");
    // A look between two steps finds nothing to do; what another client writes is taken back to the line.
    assert_eq!(verbs(&cluster.clone().at("2026-03-02T07:05:00Z").pass(&ramped).work), [""; 0]);
    let mut other = cluster.clone().at("2026-03-02T07:05:00Z");
    other.scale(9, by_kubectl(OPENING));
    other.pass(&ramped);
    assert_eq!(has(&other), 3);
    // No operator ran for a while: the count is where it would have been.
    let mut later = cluster.at("2026-03-02T07:25:00Z");
    assert_eq!(verbs(&later.pass(&ramped).work), ["merge Deployment 5 as gatehouse-tdset-count"]);
    let told = later.pass(&ramped);
    assert_eq!(verbs(&told.report), ["status"], "one event a transition, none a step");
    let mut last = later.at("2026-03-02T07:30:00Z");
    last.pass(&ramped);
    let told = last.pass(&ramped);
    assert_eq!((has(&last), &told.status.ramp), (6, &None));
    assert_eq!(condition(&told.status, ConditionType::Progressing).0, "False");
}

#[test]
fn a_transition_during_a_ramp_sets_out_from_where_it_is() {
    let ramped = ramped();
    let mut cluster = settled(&ramped, EARLY).at(OPENING);
    for now in [OPENING, OPENING, "2026-03-02T07:10:00Z", "2026-03-02T07:10:00Z"] {
        cluster = cluster.at(now);
        cluster.pass(&ramped);
    }
    assert_eq!(has(&cluster), 4);
    let mut cluster = cluster.at(CLOSING);
    cluster.pass(&ramped);
    assert_eq!(has(&cluster), 2, "half of four at a time");
    let told = cluster.pass(&ramped);
    assert_eq!(told.status.ramp, None);
}

#[test]
fn what_is_in_the_way_is_said_and_no_count_is_written() {
    type Edit = Box<dyn Fn(&mut Observed)>;

    let missing = Blocker::ready(Reason::TargetNotFound, "Deployment web does not exist".to_owned());
    let dates = Blocker::dates(State::False, Reason::InvalidDates, "line 2".to_owned());
    let owned = |kind: &str, group: &str| {
        let owner = Controller { group: group.to_owned(), kind: kind.to_owned(), name: "db".to_owned() };
        Box::new(move |observed: &mut Observed| {
            observed.target.as_mut().unwrap().as_mut().unwrap().controller = Some(owner.clone());
        })
    };
    let cases: [(Edit, ConditionType, &str, &str); 7] = [
        (owned("EtcdCluster", "gatehouse.dev"), ConditionType::Conflict, "True", "ControlledByOther"),
        (owned("Rollout", "argoproj.io"), ConditionType::Conflict, "True", "ControlledByOther"),
        (
            Box::new(move |observed| observed.target = Some(Err(missing.clone()))),
            ConditionType::Ready,
            "False",
            "TargetNotFound",
        ),
        (
            Box::new(move |observed| observed.unread = Some(dates.clone())),
            ConditionType::ScheduleValid,
            "False",
            "InvalidDates",
        ),
        (
            Box::new(|observed| observed.holder = Some(("Deployment web".to_owned(), "old".to_owned()))),
            ConditionType::Conflict,
            "True",
            "OtherSchedule",
        ),
        (
            Box::new(|observed| observed.autoscalers = vec!["web".to_owned()]),
            ConditionType::Conflict,
            "True",
            "OtherAutoscaler",
        ),
        (
            Box::new(|observed| {
                let blocker = Blocker::forbidden("list and watch", "horizontalpodautoscalers", "autoscaling");
                observed.unread_autoscalers = Some(blocker);
            }),
            ConditionType::Ready,
            "False",
            "Forbidden",
        ),
    ];
    for (edit, about, state, reason) in cases {
        let tdset = web(&json!({"onUnreadableDates": "Hold"}));
        let mut cluster = settled(&tdset, EARLY).at(OPENING);
        edit(&mut cluster.0);
        let first = cluster.pass(&tdset);
        assert_eq!((verbs(&first.work), &first.transition), (vec![], &None), "{reason}");
        let said = condition(&first.status, about);
        assert_eq!((said.0.as_str(), said.1.as_str()), (state, reason));
        assert_eq!(condition(&first.status, ConditionType::Ready).0, "False", "{reason}");
        assert!(verbs(&first.report)[0].starts_with(reason), "{:?}", verbs(&first.report));
        assert_eq!(first.conflict, about == ConditionType::Conflict);
        let second = cluster.pass(&tdset);
        assert_eq!((second.report, second.conflict), (vec![], false), "{reason}");
    }
}

#[test]
fn what_another_controller_owns_is_scaled_if_the_spec_says_so_and_our_own_never() {
    let tdset = web(&json!({"controllerPolicy": "Override"}));
    for (group, is_scaled) in [("argoproj.io", true), ("gatehouse.dev", false)] {
        let mut cluster = settled(&tdset, EARLY).at(OPENING);
        let owner = Controller { group: group.to_owned(), kind: "Kind".to_owned(), name: "db".to_owned() };
        cluster.0.target.as_mut().unwrap().as_mut().unwrap().controller = Some(owner);
        assert_eq!(plan(&tdset, &cluster.0).work.is_empty(), !is_scaled, "{group}");
    }
}

#[test]
fn a_workload_whose_status_has_changed_is_read_again_soon() {
    let tdset = web(&json!({}));
    let mut cluster = settled(&tdset, OPENING);
    let Some(Ok(scaled)) = &mut cluster.0.target else { panic!("there is a workload") };
    scaled.stands_for = Some(Duration::from_millis(1_500));
    assert_eq!(cluster.pass(&tdset).wake, Some(cluster.0.now + SignedDuration::from_millis(1_500)));
}

#[test]
fn a_workload_without_its_count_field_gets_a_count() {
    let nothing = web(&json!({"defaultReplicas": 0}));
    for (tdset, count) in [(web(&json!({})), 2), (nothing, 0), (kept(), 2)] {
        let mut cluster = Cluster::empty(EARLY);
        let unset = Scaled { is_unset: true, ..scaled(0, by_kubectl(EARLY)) };
        cluster.0.target = Some(Ok(unset));
        let work = verbs(&cluster.pass(&tdset).work);
        assert_eq!(work, [format!("merge Deployment {count} as gatehouse-tdset-count")]);
        assert_eq!(verbs(&cluster.pass(&tdset).work), [""; 0]);
    }
}

#[test]
fn days_whose_dates_cannot_be_read_are_ordinary_ones_and_that_is_said() {
    let exception = json!([{"name": "fair", "replicas": 8, "datesFrom": {"configMapKeyRef": {"name": "days", "key": "all"}}}]);
    let tdset = web(&json!({"exceptions": exception}));
    let mut cluster = settled(&tdset, EARLY);
    let missing = "ConfigMap days does not exist";
    cluster.0.unread = Some(Blocker::dates(State::False, Reason::DatesNotFound, missing.to_owned()));
    let told = cluster.pass(&tdset);
    let (state, reason, message) = condition(&told.status, ConditionType::ScheduleValid);
    assert_eq!((state.as_str(), reason.as_str()), ("False", "DatesNotFound"));
    assert_eq!(message, missing);
    assert_eq!(verbs(&told.report), [format!("DatesNotFound: {message}"), "status".to_owned()]);
    assert_eq!(condition(&told.status, ConditionType::Ready).0, "True");
    assert!(
        told.wake > Some(at("2026-03-02T06:01:00Z")),
        "its watch tells when it is there: {:?}",
        told.wake
    );
    cluster.0.is_unwatched = true;
    assert_eq!(plan(&tdset, &cluster.0).wake, Some(at("2026-03-02T06:00:30Z")));
    cluster.0.is_unwatched = false;
    let mut cluster = cluster.at(OPENING);
    cluster.pass(&tdset);
    assert_eq!(has(&cluster), 6, "the day goes on");
}

#[test]
fn dates_from_elsewhere_decide_and_while_they_are_unknown_nothing_is_claimed() {
    let exception = json!([{"name": "fair", "replicas": 8, "datesFrom": {"configMapKeyRef": {"name": "days", "key": "all"}}}]);
    let tdset = web(&json!({"exceptions": exception, "onUnreadableDates": "Hold"}));
    let mut cluster = settled(&tdset, EARLY);
    cluster.0.dates.read("fair", "2026-03-02").unwrap();
    cluster.pass(&tdset);
    let told = cluster.pass(&tdset);
    assert_eq!((has(&cluster), told.status.active_window.as_deref()), (8, Some("exception/fair")));
    let missing = "ConfigMap days does not exist".to_owned();
    cluster.0.unread = Some(Blocker::dates(State::False, Reason::DatesNotFound, missing));
    let told = cluster.pass(&tdset);
    assert_eq!((has(&cluster), told.status.scheduled_replicas, told.status.upcoming), (8, None, None));
}

proptest! {
    #![proptest_config(crate::properties::config())]

    /// Whatever happened and whichever client scaled: one reconciliation brings the count where it belongs, another one
    /// reports it, and then there is nothing left to do; a ramp, looked at when it asks to be, arrives.
    #[test]
    fn every_pass_ends_in_rest_and_every_ramp_arrives(
        start in 0..31_536_000_i64, later in 0..31_536_000_i64, count in 0..20_i32, ramp in any::<bool>(), keep in any::<bool>(),
        written in 0..31_536_000_i64,
    ) {
        let mut tdset = if ramp { ramped() } else { web(&json!({})) };
        if keep {
            tdset.spec.manual_scale_policy = Some(crate::kinds::tdset::api::v1::ManualScalePolicy::KeepUntilNextTransition);
        }
        let time = |seconds: i64| Timestamp::from_second(1_767_225_600 + seconds).unwrap().to_string();
        let mut cluster = Cluster::empty(&time(start));
        cluster.scale(count, Writer::Ours);
        for _ in 0..40 {
            cluster.pass(&tdset);
            cluster.pass(&tdset);
            let rest = cluster.pass(&tdset);
            prop_assert_eq!((verbs(&rest.work), verbs(&rest.report)), (vec![], vec![]));
            if rest.status.ramp.is_none() { break; }
            cluster = cluster.at(&rest.wake.unwrap().to_string());
        }
        prop_assert_eq!(Some(has(&cluster)), cluster.0.status.scheduled_replicas);

        let now = start + later;
        cluster = cluster.at(&time(now));
        cluster.scale(count, by_kubectl(&time(written.min(now))));
        cluster.pass(&tdset);
        cluster.pass(&tdset);
        let rest = cluster.pass(&tdset);
        prop_assert_eq!((verbs(&rest.work), verbs(&rest.report)), (vec![], vec![]));
        let manual = condition(&rest.status, ConditionType::ManualOverride).0 == "True";
        let wanted = rest.status.scheduled_replicas.unwrap();
        prop_assert!(!manual || keep && has(&cluster) == count);
        prop_assert!(manual || rest.status.ramp.is_some() || has(&cluster) == wanted);
    }
}
