//! The day goes on while the API server refuses some of it, and what held a count back is reported when it ends.

use kube::core::Status;

use super::autoscalers::{beside, hpa};
use super::workloads::{has, settled, web};
use super::*;
use crate::controllers::action::Failure;
use crate::controllers::outcome::Error;
use crate::runtime::call;

const COUNT: &str = "tdset.write-count";
const SERVICE: &str = "tdset.make-service";
const TEMPLATE: &str = "tdset.apply-deployment";
const BOUNDS: &str = "tdset.write-bounds";

/// Two replicas, six in office hours, one more every ten minutes; and a Service.
fn ramped_shop() -> TDSet {
    let pace = json!({"step": 1, "every": "10m"});
    changed("/spec/ramp", json!({"up": pace, "down": pace}))
}

fn count(cluster: &Cluster) -> i32 {
    cluster.0.deployment.as_ref().unwrap().replicas()
}

/// One whose Service has gone.
fn without_service(tdset: &TDSet) -> Cluster {
    let mut cluster = Cluster::settled(tdset, EARLY);
    cluster.0.service = None;
    cluster
}

#[test]
fn a_ramp_keeps_its_pace_while_a_service_is_refused() {
    let tdset = ramped_shop();
    let mut cluster = without_service(&tdset).at(OPENING);
    let counts = [
        (OPENING, 3),
        ("2026-03-02T07:00:01Z", 3),
        ("2026-03-02T07:00:03Z", 3),
        ("2026-03-02T07:10:00Z", 4),
        ("2026-03-02T07:10:01Z", 4),
    ];
    for (now, expected) in counts {
        cluster = cluster.at(now);
        cluster.refused_pass(&tdset, SERVICE);
        assert_eq!(count(&cluster), expected, "{now}");
    }
    let ramp = cluster.0.status.ramp.clone().unwrap();
    assert_eq!((ramp.since, ramp.from, ramp.to), (Time(at(OPENING)), 2, 6));
}

#[test]
fn a_status_tells_of_the_day_while_a_service_is_refused() {
    let tdset = shop();
    let mut cluster = without_service(&tdset).at(OPENING);
    let told = cluster.refused_pass(&tdset, SERVICE);
    let note = "ReplicasScheduled: replicas 2 → 6: window office, 0 ms late";
    assert_eq!(verbs(&told.report), [note, "ApplyFailed: refused (403)", "status"]);
    let status = &told.status;
    assert_eq!((status.active_window.as_deref(), status.scheduled_replicas), (Some("office"), Some(6)));
    assert_eq!(status.next_transition.as_ref().unwrap().time, Time(at(CLOSING)));
    assert_eq!(status.last_transition.as_ref().unwrap().to.replicas, Some(6));
    assert_eq!(condition(status, ConditionType::Ready).1, "ApplyFailed");
    let again = cluster.refused_pass(&tdset, SERVICE);
    assert_eq!(verbs(&again.report), ["status"], "nothing twice; the count is there now");
    assert_eq!(verbs(&cluster.refused_pass(&tdset, SERVICE).report), [""; 0]);
}

#[test]
fn a_boundary_passes_whatever_is_refused() {
    let bounded = web(&json!({"autoscaler": {"name": "web"}}));
    let edited = changed("/spec/target/create/image", json!("shop:2"));
    let mut claimed = Cluster::settled(&shop(), EARLY);
    claimed.pass(&edited);
    let cases = [
        (SERVICE, shop(), without_service(&shop()), "ApplyFailed", "0 ms late"),
        (TEMPLATE, edited, claimed, "ApplyFailed", "0 ms late"),
        (BOUNDS, bounded, beside(EARLY, hpa(2, 10), 5), "CountRefused", "no longer refused, 1800000 ms late"),
    ];
    for (action, tdset, mut cluster, reason, lateness) in cases {
        let is_count = action == BOUNDS;
        let (mut transitions, mut notes) = (0, Vec::new());
        let mut report = |told: &Planned| {
            transitions += usize::from(told.transition.is_some());
            let said = verbs(&told.report);
            notes.extend(said.into_iter().filter(|note| note.starts_with("ReplicasScheduled")));
        };
        if is_count {
            cluster.pass(&tdset);
        } else {
            cluster.refused_pass(&tdset, action);
        }
        for now in [OPENING, OPENING, "2026-03-02T07:10:00Z"] {
            cluster = cluster.at(now);
            let told = cluster.refused_pass(&tdset, action);
            report(&told);
            let status = &told.status;
            let day = (status.active_window.as_deref(), status.scheduled_replicas);
            assert_eq!(day, (Some("office"), Some(6)), "{action} at {now}");
            assert_eq!(status.next_transition.as_ref().unwrap().time, Time(at(CLOSING)), "{action} at {now}");
            let (state, found, message) = condition(status, ConditionType::Ready);
            assert_eq!(
                (&*state, &*found, &*message),
                ("False", reason, "refused (403)"),
                "{action} at {now}"
            );
            assert_eq!(status.last_transition.is_none(), is_count, "{action} at {now}");
            assert!(is_count || count(&cluster) == 6, "{action} at {now}");
        }
        cluster = cluster.at("2026-03-02T07:30:00Z");
        cluster.pass(&tdset);
        let told = cluster.pass(&tdset);
        assert_eq!(verbs(&told.work), [""; 0], "{action}");
        report(&told);
        assert_ne!(condition(&told.status, ConditionType::Ready).1, reason, "{action}");
        assert_eq!(told.status.last_transition.unwrap().time, Time(at(OPENING)), "{action}");
        let expected = format!("ReplicasScheduled: replicas 2 → 6: window office, {lateness}");
        assert_eq!((transitions, notes), (1, vec![expected]), "{action}");
        assert_eq!(verbs(&cluster.pass(&tdset).report), [""; 0], "{action}");
    }
}

#[test]
fn a_new_object_whose_service_is_refused_tells_of_the_day() {
    let mut cluster = Cluster::empty(OPENING);
    let status = cluster.refused_pass(&shop(), SERVICE).status;
    assert_eq!((status.active_window.as_deref(), status.observed_generation), (Some("office"), Some(1)));
}

#[test]
fn a_count_that_is_kept_stands_while_a_service_is_refused() {
    let tdset = changed("/spec/manualScalePolicy", json!("KeepUntilNextTransition"));
    let mut cluster = without_service(&tdset).at(OPENING);
    for _ in 0..2 {
        cluster.refused_pass(&tdset, SERVICE);
    }
    cluster.edit(|deployment| scale(deployment, 9, "kubectl"));
    cluster.refused_pass(&tdset, SERVICE);
    assert_eq!(count(&cluster), 9);
}

#[test]
fn a_count_that_is_refused_is_reported_when_it_is_written_and_not_before() {
    let tdset = shop();
    let mut cluster = Cluster::settled(&tdset, EARLY).at(OPENING);
    for _ in 0..2 {
        let told = cluster.refused_pass(&tdset, COUNT);
        assert_eq!((told.transition, &told.status.last_transition), (None, &None));
        assert_eq!(told.status.active_window.as_deref(), Some("office"));
        assert_eq!(condition(&told.status, ConditionType::Ready).1, "CountRefused");
    }
    let mut cluster = cluster.at("2026-03-02T07:30:00Z");
    cluster.pass(&tdset);
    let told = cluster.pass(&tdset);
    let note = "ReplicasScheduled: replicas 2 → 6: window office, no longer refused, 1800000 ms late";
    assert_eq!(verbs(&told.report), [note, "status"]);
    assert_eq!(told.status.last_transition.unwrap().time, Time(at(OPENING)));
    assert_eq!(verbs(&cluster.pass(&tdset).report), [""; 0]);
}

#[test]
fn a_count_that_gatehouse_lacks_the_right_to_write_is_forbidden_and_held_back() {
    let tdset = shop();
    let mut cluster = Cluster::settled(&tdset, EARLY).at(OPENING);
    let right = "User \"gatehouse\" cannot patch resource \"deployments\" in API group \"apps\"";
    let why = format!("failed to apply deployments default/shop: Forbidden (403): {right}");
    cluster.0.refused = Some(RefusedWrite { action: COUNT.to_owned(), why });
    let told = plan(&tdset, &cluster.0);
    assert_eq!(condition(&told.status, ConditionType::Ready).1, "Forbidden");
    (cluster.0.refused, cluster.0.status) = (None, told.status);
    let mut cluster = cluster.at("2026-03-02T07:30:00Z");
    cluster.pass(&tdset);
    let note = "ReplicasScheduled: replicas 2 → 6: window office, nothing is in the way any more";
    assert_eq!(verbs(&cluster.pass(&tdset).report), [note, "status"]);
}

#[test]
fn a_ramp_whose_steps_are_refused_sets_out_when_they_are_not() {
    let tdset = ramped_shop();
    let mut cluster = Cluster::settled(&tdset, EARLY).at(OPENING);
    assert_eq!(cluster.refused_pass(&tdset, COUNT).status.ramp, None);
    let mut cluster = cluster.at("2026-03-02T07:50:00Z");
    cluster.pass(&tdset);
    assert_eq!(count(&cluster), 3, "one step, and not five");
}

#[test]
fn a_step_whose_answer_was_lost_is_not_taken_twice() {
    let tdset = ramped_shop();
    let mut cluster = Cluster::settled(&tdset, EARLY).at(OPENING);
    cluster.pass(&tdset);
    // Nothing is remembered of it, and no status tells.
    cluster.0.remembered.carried = Unreported::default();
    assert_eq!(verbs(&cluster.pass(&tdset).work), [""; 0]);
    assert_eq!(count(&cluster), 3);
    let ramp = cluster.0.status.ramp.clone().unwrap();
    assert_eq!((ramp.since, ramp.from), (Time(at(OPENING)), 2));
}

#[test]
fn an_edit_of_something_else_takes_no_step_of_a_ramp() {
    let tdset = ramped_shop();
    let mut cluster = Cluster::settled(&tdset, EARLY).at(OPENING);
    cluster.pass(&tdset);
    cluster.pass(&tdset);
    for (generation, now) in [(3, "2026-03-02T07:01:00Z"), (4, "2026-03-02T07:02:00Z")] {
        let mut edited = tdset.clone();
        edited.metadata.generation = Some(generation);
        edited.spec.target.create.as_mut().unwrap().image = format!("shop:{generation}");
        cluster = cluster.at(now);
        cluster.pass(&edited);
        cluster.pass(&edited);
        assert_eq!((count(&cluster), cluster.0.status.observed_generation), (3, Some(generation)), "{now}");
        assert_eq!(cluster.0.status.ramp.as_ref().unwrap().since, Time(at(OPENING)));
    }
}

#[test]
fn an_edit_of_the_pace_of_a_ramp_goes_on_from_the_count_that_is_there() {
    let tdset = ramped_shop();
    let mut cluster = Cluster::settled(&tdset, EARLY).at(OPENING);
    for now in [OPENING, OPENING, "2026-03-02T07:10:00Z", "2026-03-02T07:10:00Z"] {
        cluster = cluster.at(now);
        cluster.pass(&tdset);
    }
    assert_eq!(count(&cluster), 4);
    let mut slower = json!(tdset);
    slower["spec"]["ramp"]["up"]["every"] = "1h".into();
    slower["metadata"]["generation"] = 3.into();
    let slower: TDSet = serde_json::from_value(slower).unwrap();
    let mut cluster = cluster.at("2026-03-02T07:15:00Z");
    cluster.pass(&slower);
    assert!(count(&cluster) >= 4, "never back");
}

#[test]
fn what_held_a_count_back_is_reported_when_it_ends() {
    type Edit = fn(&mut Observed, bool);
    let suspended = web(&json!({"suspend": true}));
    let free = web(&json!({}));
    let cases: [(&TDSet, Edit, &str); 3] = [
        (&suspended, |_, _| (), "no longer suspended"),
        (
            &free,
            |observed, on| observed.autoscalers = on.then(|| "theirs".to_owned()).into_iter().collect(),
            "no longer in conflict",
        ),
        (
            &free,
            |observed, on| {
                let missing = Blocker::ready(Reason::TargetNotFound, String::new());
                observed.target = Some(if on { Err(missing) } else { Ok(scaled(2, Writer::Ours)) });
            },
            "nothing is in the way any more",
        ),
    ];
    for (held, edit, why) in cases {
        let mut cluster = settled(&free, EARLY);
        edit(&mut cluster.0, true);
        let mut cluster = cluster.at(OPENING);
        let told = cluster.pass(held);
        assert_eq!((told.transition, told.status.scheduled_replicas), (None, Some(6)), "{why}");
        edit(&mut cluster.0, false);
        let mut cluster = cluster.at("2026-03-02T07:30:00Z");
        cluster.pass(&free);
        assert_eq!(has(&cluster), 6, "{why}");
        let told = cluster.pass(&free);
        let note = format!("ReplicasScheduled: replicas 2 → 6: window office, {why}");
        assert_eq!(verbs(&told.report), [note, "status".to_owned()]);
        assert_eq!(verbs(&cluster.pass(&free).report), [""; 0], "{why}");
    }
}

#[test]
fn a_deployment_of_a_suspended_schedule_is_made_with_the_scheduled_count() {
    let paused = changed("/spec/suspend", json!(true));
    let work = verbs(&plan(&paused, &Cluster::empty(OPENING).0).work);
    assert_eq!(work[0], "apply Deployment 6 as gatehouse-tdset");
}

#[test]
fn what_the_api_server_does_not_say_is_reported_and_nothing_is_made_meanwhile() {
    let tdset = shop();
    let why = "failed to read deployments default/shop: there was no answer";
    let known = Cluster::settled(&tdset, EARLY).0;
    let unread = Some(Blocker::ready(Reason::TargetNotReadable, why.to_owned()));
    let observed =
        Observed { unread_object: unread, status: known.status.clone(), ..Cluster::empty(EARLY).0 };
    let told = plan(&tdset, &observed);
    assert_eq!(verbs(&told.work), [""; 0], "it may be there");
    let (state, reason, message) = condition(&told.status, ConditionType::Ready);
    assert_eq!((state.as_str(), reason.as_str(), message.as_str()), ("False", "TargetNotReadable", why));
    assert_eq!(verbs(&told.report), [format!("TargetNotReadable: {why}"), "status".to_owned()]);
    assert_eq!(told.wake, Some(at("2026-03-02T06:00:30Z")), "it is unknown when it may be read again");
    // The transition that comes meanwhile is reported afterwards.
    let mut cluster = Cluster(Observed { now: at(OPENING), status: told.status, ..known });
    cluster.pass(&tdset);
    let note = "ReplicasScheduled: replicas 2 → 6: window office, nothing is in the way any more";
    assert_eq!(verbs(&cluster.pass(&tdset).report), [note, "status"]);
}

#[test]
fn a_lower_bound_of_none_is_refused_by_whatever_code_says_so() {
    let refusal = |code: u16, message: &str| {
        let status = Status { code, message: message.to_owned(), ..Status::default() };
        let source = call::Error::Refused(Box::new(status));
        let object = "horizontalpodautoscalers default/web".to_owned();
        Failure::Api(Error { verb: "patch", object, source })
    };
    let bounds = |min: i32| autoscaler::bounds(&hpa(3, 9), min, None).unwrap();
    let policy = "web is forbidden: ValidatingAdmissionPolicy 'a' with binding 'b' denied request: no";
    let right = "web is forbidden: User \"gatehouse\" cannot patch resource \"horizontalpodautoscalers\"";
    for (code, message, is_refused) in [
        (422, "", true),
        (400, "", true),
        (403, policy, true),
        (403, "admission webhook \"w\" denied the request", true),
        (403, right, false),
        (404, "", false),
        (409, "", false),
        (429, "", false),
        (500, "", false),
    ] {
        let failure = refusal(code, message);
        assert_eq!(actions::is_zero_refused(&bounds(0), &failure), is_refused, "{code} {message}");
        assert!(!actions::is_zero_refused(&bounds(2), &failure), "{code}: another bound");
    }
    assert!(!actions::is_zero_refused(&bounds(0), &Failure::moved("")));
}
