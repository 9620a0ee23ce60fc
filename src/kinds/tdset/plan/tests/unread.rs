//! What cannot be read for a while is as it was: another client's count goes on to stand.

use super::workloads::{has, settled, web};
use super::*;
use crate::api::condition::State;
use crate::kinds::tdset::api::schedule::HolidayDates;
use crate::kinds::tdset::observation::FieldOwner;

/// Something is in the way.
type Hold = fn(&mut Observed);

/// Something cannot be read, in each way that there is. The dates are not known where they are among that.
const UNREAD: [Hold; 5] = [
    |observed| (observed.unread_object, observed.dates) = (Some(not_readable()), HolidayDates::default()),
    |observed| observed.target = Some(Err(not_readable())),
    |observed| observed.target = Some(Err(Blocker::forbidden("get and patch", "deployments/scale", "apps"))),
    |observed| without_dates(observed, State::False, Reason::DatesNotFound),
    |observed| without_dates(observed, State::Unknown, Reason::DatesNotReadable),
];

fn without_dates(observed: &mut Observed, state: State, reason: Reason) {
    observed.unread = Some(Blocker::dates(state, reason, "no days".to_owned()));
    observed.dates = HolidayDates::default();
}

const LATER: &str = "2026-03-02T06:30:00Z";

fn not_readable() -> Blocker {
    Blocker::ready(Reason::TargetNotReadable, "no answer".to_owned())
}

/// Two replicas, six in office hours, and none on days that may not be readable.
fn keeping() -> TDSet {
    let from = json!({"configMapKeyRef": {"name": "days", "key": "all"}});
    let exceptions = json!([{"name": "fair", "replicas": 0, "datesFrom": from}]);
    let policy = "KeepUntilNextTransition";
    web(&json!({"manualScalePolicy": policy, "onUnreadableDates": "Hold", "exceptions": exceptions}))
}

/// One whose workload `kubectl scale` gave nine, and whose status says that they stand. The managed fields have no time
/// of it.
fn overridden(tdset: &TDSet) -> Cluster {
    let mut cluster = settled(tdset, EARLY);
    cluster.scale(9, Writer::Other(FieldOwner { manager: "kubectl".to_owned(), time: None }));
    cluster.pass(tdset);
    assert_eq!(overriding(&cluster), "True");
    cluster
}

fn overriding(cluster: &Cluster) -> String {
    condition(&cluster.0.status, ConditionType::ManualOverride).0
}

/// The same after something was in the way until `now`.
fn held(tdset: &TDSet, hold: Hold, now: &str) -> Cluster {
    let before = overridden(tdset);
    let mut during = before.clone();
    hold(&mut during.0);
    for now in ["2026-03-02T06:10:00Z", now] {
        during = during.at(now);
        during.pass(tdset);
    }
    Cluster(Observed { status: during.0.status, ..before.0 }).at(now)
}

#[test]
fn a_count_of_another_client_outlives_what_cannot_be_read() {
    let tdset = keeping();
    for (nth, hold) in UNREAD.into_iter().enumerate() {
        let mut cluster = held(&tdset, hold, LATER);
        assert_eq!(overriding(&cluster), "True", "{nth}: while it cannot be read");
        let told = cluster.pass(&tdset);
        assert_eq!(
            (has(&cluster), overriding(&cluster).as_str(), told.transition),
            (9, "True", None),
            "{nth}"
        );
        cluster.pass(&tdset);
        let mut cluster = cluster.at(OPENING);
        cluster.pass(&tdset);
        assert_eq!(has(&cluster), 6, "{nth}: until the next transition");
    }
}

#[test]
fn it_does_so_on_a_day_of_the_calendar_too() {
    let tdset = keeping();
    for (nth, hold) in UNREAD.into_iter().enumerate() {
        let mut cluster = settled(&tdset, EARLY);
        cluster.0.dates.read("fair", "2026-03-02").unwrap();
        for _ in 0..3 {
            cluster.pass(&tdset);
        }
        assert_eq!((has(&cluster), cluster.0.status.active_window.as_deref()), (0, Some("exception/fair")));
        cluster.scale(9, Writer::Other(FieldOwner { manager: "kubectl".to_owned(), time: None }));
        cluster.pass(&tdset);
        let before = cluster.0.clone();
        hold(&mut cluster.0);
        let told = cluster.pass(&tdset);
        assert_eq!(overriding(&cluster), "True", "{nth}");
        assert_ne!(told.status.active_window.as_deref(), Some(""), "{nth}: no ordinary day is claimed");
        let mut cluster = Cluster(Observed { status: told.status, ..before }).at(LATER);
        cluster.pass(&tdset);
        assert_eq!((has(&cluster), overriding(&cluster).as_str()), (9, "True"), "{nth}");
    }
}

#[test]
fn an_edit_that_asks_for_another_count_ends_it() {
    let tdset = keeping();
    let mut edited = json!(tdset);
    edited["spec"]["defaultReplicas"] = 4.into();
    edited["metadata"]["generation"] = 9.into();
    let edited: TDSet = serde_json::from_value(edited).unwrap();
    for (nth, hold) in UNREAD.into_iter().enumerate() {
        // Whether the time of the count is known or not.
        for time in [None, Some(at("2026-03-02T06:05:00Z"))] {
            let mut before = overridden(&tdset).at("2026-03-02T06:06:00Z");
            before.scale(9, Writer::Other(FieldOwner { manager: "kubectl".to_owned(), time }));
            before.pass(&tdset);
            let mut during = before.clone().at("2026-03-02T06:10:00Z");
            hold(&mut during.0);
            for tdset in [&tdset, &edited, &edited] {
                during.pass(tdset);
            }
            assert_eq!(overriding(&during), "False", "{nth}");
            let mut cluster = Cluster(Observed { status: during.0.status, ..before.0 }).at(LATER);
            cluster.pass(&edited);
            assert_eq!(has(&cluster), 4, "{nth}, {time:?}");
        }
    }
}

#[test]
fn a_transition_that_came_meanwhile_ends_it() {
    let tdset = keeping();
    for (nth, hold) in UNREAD.into_iter().enumerate() {
        // The office has opened, and in the second case has closed again.
        for (now, expected) in [("2026-03-02T07:30:00Z", 6), ("2026-03-02T17:30:00Z", 2)] {
            let mut cluster = held(&tdset, hold, now);
            cluster.pass(&tdset);
            cluster.pass(&tdset);
            assert_eq!(
                (has(&cluster), overriding(&cluster).as_str()),
                (expected, "False"),
                "{nth} until {now}"
            );
        }
    }
}

#[test]
fn what_is_known_to_be_in_the_way_ends_it() {
    let tdset = keeping();
    let in_the_way: [Hold; 3] = [
        |observed| {
            let message = "Deployment web does not exist".to_owned();
            observed.target = Some(Err(Blocker::ready(Reason::TargetNotFound, message)));
        },
        |observed| observed.autoscalers = vec!["web".to_owned()],
        |observed| observed.holder = Some(("Deployment web".to_owned(), "old".to_owned())),
    ];
    for (nth, hold) in in_the_way.into_iter().enumerate() {
        let mut cluster = held(&tdset, hold, LATER);
        assert_eq!(overriding(&cluster), "False", "{nth}");
        cluster.pass(&tdset);
        assert_eq!(has(&cluster), 2, "{nth}");
    }
    let mut suspended = tdset.clone();
    suspended.spec.suspend = Some(true);
    suspended.metadata.generation = Some(9);
    let mut cluster = overridden(&tdset);
    cluster.pass(&suspended);
    assert_eq!(overriding(&cluster), "False", "the count is not written, whichever client wrote it");
    cluster.pass(&tdset);
    assert_eq!(has(&cluster), 2);
}

/// One that has taken the first step to the six of the office hours, of one replica every ten minutes.
fn ramping() -> (TDSet, Cluster) {
    let mut tdset = json!(keeping());
    tdset["spec"]["ramp"] = json!({"up": {"step": 1, "every": "10m"}});
    let tdset: TDSet = serde_json::from_value(tdset).unwrap();
    let mut cluster = settled(&tdset, EARLY).at(OPENING);
    for _ in 0..3 {
        cluster.pass(&tdset);
    }
    assert_eq!((has(&cluster), cluster.0.status.ramp.is_some()), (3, true));
    (tdset, cluster)
}

#[test]
fn a_ramp_goes_on_by_its_own_pace_after_what_could_not_be_read() {
    let (tdset, before) = ramping();
    for (nth, hold) in UNREAD.into_iter().enumerate() {
        let mut during = before.clone();
        hold(&mut during.0);
        for now in ["2026-03-02T07:01:00Z", "2026-03-02T07:02:00Z"] {
            during = during.at(now);
            during.pass(&tdset);
            assert_eq!(during.0.status.ramp, before.0.status.ramp, "{nth}");
        }
        let mut cluster = Cluster(Observed { status: during.0.status, ..before.0.clone() });
        for (now, count) in
            [("2026-03-02T07:05:00Z", 3), ("2026-03-02T07:09:00Z", 3), ("2026-03-02T07:10:00Z", 4)]
        {
            cluster = cluster.at(now);
            let told = cluster.pass(&tdset);
            assert_eq!((has(&cluster), told.transition), (count, None), "{nth} at {now}");
        }
    }
}

#[test]
fn a_ramp_whose_first_step_was_not_reported_yet_does_so_too() {
    let (tdset, _) = ramping();
    for (nth, hold) in UNREAD.into_iter().enumerate() {
        let mut before = settled(&tdset, EARLY).at(OPENING);
        before.pass(&tdset);
        assert_eq!((has(&before), before.0.status.ramp.is_some()), (3, false));
        let mut during = before.clone();
        hold(&mut during.0);
        during.pass(&tdset);
        let mut known = before.0;
        known.remembered.carried = Unreported::default();
        let mut cluster = Cluster(Observed { status: during.0.status, ..known }).at("2026-03-02T07:05:00Z");
        cluster.pass(&tdset);
        assert_eq!(has(&cluster), 3, "{nth}");
    }
}

#[test]
fn a_ramp_ends_with_a_transition_that_comes_while_something_cannot_be_read() {
    let (tdset, before) = ramping();
    for (nth, hold) in UNREAD.into_iter().enumerate() {
        let mut during = before.clone().at(CLOSING);
        hold(&mut during.0);
        during.pass(&tdset);
        let mut cluster = Cluster(Observed { status: during.0.status, ..before.0.clone() }).at(CLOSING);
        cluster.pass(&tdset);
        cluster.pass(&tdset);
        assert_eq!((has(&cluster), cluster.0.status.ramp), (2, None), "{nth}");
    }
}

#[test]
fn autoscalers_that_may_not_be_listed_are_looked_for_soon() {
    let tdset = web(&json!({}));
    let mut cluster = settled(&tdset, EARLY);
    let blocker = Blocker::forbidden("list and watch", "horizontalpodautoscalers", "autoscaling");
    cluster.0.unread_autoscalers = Some(blocker);
    let wake = cluster.pass(&tdset).wake.unwrap();
    assert!(
        wake <= cluster.0.now + SignedDuration::from_secs(30),
        "nothing tells of a right that is given back"
    );
}
