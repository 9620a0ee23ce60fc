//! Autoscalers: their bounds, the ceiling, and workloads that sleep beside them.

use super::scaled_objects::scaled_object;
use super::workloads::{by_kubectl, has, settled, web};
use super::*;
use crate::kinds::tdset::observation::{Bounds, Contest, Controller, FieldOwner};

/// Bounds of a HorizontalPodAutoscaler.
pub(super) fn hpa(min: i32, max: i32) -> Bounds {
    let reference = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let metadata = json!({"name": "web", "namespace": "default", "uid": "h", "resourceVersion": "7"});
    let spec = json!({"scaleTargetRef": reference, "minReplicas": min, "maxReplicas": max});
    Bounds::of(&serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap())
}

/// One with these bounds, and that count of the workload.
pub(super) fn beside(now: &str, bounds: Bounds, count: i32) -> Cluster {
    let mut cluster = Cluster::empty(now);
    cluster.scale(count, Writer::Ours);
    cluster.0.autoscaler = Some(Ok(Arc::new(bounds)));
    cluster
}

impl Cluster {
    /// Changes the bounds as another client does.
    pub(super) fn bound(&mut self, change: impl FnOnce(&mut Bounds), manager: &str) {
        let Some(Ok(found)) = &mut self.0.autoscaler else { panic!("there is no autoscaler") };
        let found = Arc::make_mut(found);
        change(found);
        found.writer_of_max = Writer::Other(FieldOwner { manager: manager.to_owned(), time: None });
    }
}

pub(super) fn bounds(cluster: &Cluster) -> (i32, i32) {
    let found = cluster.0.autoscaler.as_ref().unwrap().as_ref().unwrap();
    (found.min(), found.max())
}

/// Reconciles until nothing is left to do.
pub(super) fn rest(cluster: &mut Cluster, tdset: &TDSet) -> Planned {
    for _ in 0..3 {
        cluster.pass(tdset);
    }
    let rest = cluster.pass(tdset);
    assert_eq!((verbs(&rest.work), verbs(&rest.report)), (vec![], vec![]));
    rest
}

#[test]
fn an_autoscaler_gets_its_bounds_and_the_workload_is_left_to_it() {
    let mut tdset = web(&json!({"autoscaler": {"name": "web", "maxReplicas": 10}}));
    tdset.spec.windows.as_mut().unwrap()[0].max_replicas = Some(40);
    let mut cluster = settled(&web(&json!({})), EARLY);
    cluster.0.autoscaler = Some(Ok(Arc::new(hpa(1, 3))));
    cluster.scale(5, by_kubectl(EARLY));
    let expected = json!({"minReplicas": 2, "maxReplicas": 10});
    let work = cluster.pass(&tdset).work;
    let [ApiWrite::Merge(merge)] = work.as_slice() else { panic!("{work:?}") };
    assert_eq!((&merge.manifest.object["spec"], merge.manager), (&expected, COUNT_MANAGER));
    let told = cluster.pass(&tdset);
    assert_eq!(verbs(&told.work), [""; 0]);
    let ready = condition(&told.status, ConditionType::Ready);
    let message = "5 of 5 replicas are there; minReplicas of HorizontalPodAutoscaler web is 2";
    assert_eq!(ready, ("True".to_owned(), "AsScheduled".to_owned(), message.to_owned()));

    let mut cluster = cluster.at(OPENING);
    cluster.pass(&tdset);
    assert_eq!((bounds(&cluster), has(&cluster)), ((6, 40), 5));
}

#[test]
fn an_upper_bound_that_is_no_longer_asked_for_stays_and_the_lower_one_follows() {
    let both = web(&json!({"autoscaler": {"name": "web", "maxReplicas": 30}}));
    let mut cluster = beside(EARLY, hpa(1, 10), 5);
    rest(&mut cluster, &both);
    assert_eq!(bounds(&cluster), (2, 30));
    let least = web(&json!({"autoscaler": {"name": "web"}}));
    let mut cluster = cluster.at(OPENING);
    let work = cluster.pass(&least).work;
    // Merged: what is left out stays. Applied, it would be taken away, and the autoscaler be refused without it.
    let [ApiWrite::Merge(merge)] = work.as_slice() else { panic!("{work:?}") };
    assert_eq!(merge.manifest.object["spec"], json!({"minReplicas": 6}));
    assert_eq!(bounds(&cluster), (6, 30));
}

#[test]
fn a_declared_ceiling_holds() {
    let tdset = web(&json!({"autoscaler": {"name": "web", "maxReplicas": 4}}));
    let mut cluster = beside(OPENING, hpa(1, 10), 5);
    cluster.pass(&tdset);
    assert_eq!(bounds(&cluster), (4, 4), "six are scheduled, and no write asks for them");
    let told = rest(&mut cluster, &tdset);
    assert_eq!(bounds(&cluster), (4, 4));
    let message = "6 are scheduled, minReplicas of HorizontalPodAutoscaler web can be 4";
    let expected = ("False".to_owned(), "ReplicasOutOfRange".to_owned(), message.to_owned());
    assert_eq!(condition(&told.status, ConditionType::Ready), expected);
}

#[test]
fn a_ramp_begins_at_the_ceiling_and_stays_below_it() {
    let ramp = json!({"down": {"step": 2, "every": "10m"}});
    let mut tdset = web(&json!({"autoscaler": {"name": "web", "maxReplicas": 10}, "ramp": ramp}));
    let rush = &mut tdset.spec.windows.as_mut().unwrap()[0];
    (rush.replicas, rush.max_replicas) = (30, Some(40));
    let mut cluster = beside(OPENING, hpa(1, 10), 5);
    rest(&mut cluster, &tdset);
    assert_eq!(bounds(&cluster), (30, 40));
    // The ceiling holds from the end of the rush on: a lower bound above it would be refused.
    let mut cluster = cluster.at(CLOSING);
    rest(&mut cluster, &tdset);
    assert_eq!(bounds(&cluster), (8, 10));
    for (minute, least) in [(9, 8), (10, 6), (20, 4), (30, 2), (40, 2)] {
        cluster = cluster.at(&format!("2026-03-02T17:{minute:02}:00Z"));
        rest(&mut cluster, &tdset);
        assert_eq!(bounds(&cluster), (least, 10), "after {minute} minutes");
    }

    // A ceiling that is lowered meanwhile holds at once.
    let mut cluster = cluster.at(OPENING);
    rest(&mut cluster, &tdset);
    let mut cluster = cluster.at("2026-03-02T17:00:00Z");
    rest(&mut cluster, &tdset);
    tdset.spec.autoscaler.as_mut().unwrap().max_replicas = Some(5);
    tdset.metadata.generation = tdset.metadata.generation.map(|generation| generation + 1);
    rest(&mut cluster, &tdset);
    assert_eq!(bounds(&cluster).1, 5);
}

fn nights() -> TDSet {
    web(&json!({"autoscaler": {"name": "web"}, "defaultReplicas": 0}))
}

#[test]
fn a_workload_sleeps_beside_an_autoscaler_and_wakes() {
    let nights = nights();
    let mut cluster = beside(EARLY, hpa(3, 10), 5);
    assert_eq!(verbs(&cluster.pass(&nights).work), ["merge Deployment 0 as gatehouse-tdset-count"]);
    let told = rest(&mut cluster, &nights);
    assert_eq!((has(&cluster), bounds(&cluster)), (0, (3, 10)), "the autoscaler rests, as it is");
    let message =
        "0 of 0 replicas are there; HorizontalPodAutoscaler web is inactive while 0 replicas are scheduled";
    let expected = ("True".to_owned(), "AsScheduled".to_owned(), message.to_owned());
    assert_eq!(condition(&told.status, ConditionType::Ready), expected);

    let mut cluster = cluster.at(OPENING);
    let work = verbs(&cluster.pass(&nights).work);
    let expected = [
        "merge HorizontalPodAutoscaler null as gatehouse-tdset-count",
        "merge Deployment 6 as gatehouse-tdset-count",
    ];
    assert_eq!(work, expected);
    let told = rest(&mut cluster, &nights);
    assert_eq!((has(&cluster), bounds(&cluster)), (6, (6, 10)));
    assert_eq!(told.status.last_transition.unwrap().to.replicas, Some(6));
    // From then on the count is the autoscaler's.
    cluster.scale(9, by_kubectl(OPENING));
    assert_eq!(verbs(&cluster.pass(&nights).work), [""; 0]);
}

#[test]
fn a_workload_that_is_made_beside_an_autoscaler_for_the_night_begins_with_none() {
    let mut tdset = changed("/spec/autoscaler", json!({"name": "web"}));
    tdset.spec.default_replicas = Some(0);
    let mut cluster = Cluster::empty(EARLY);
    cluster.0.autoscaler = Some(Ok(Arc::new(hpa(3, 10))));
    assert_eq!(verbs(&cluster.pass(&tdset).work)[0], "apply Deployment 0 as gatehouse-tdset");
    // The day begins before the count that came with the template is claimed.
    cluster = cluster.at(OPENING);
    cluster.pass(&tdset);
    assert_eq!(cluster.0.deployment.as_ref().unwrap().replicas(), 6);
}

#[test]
fn a_day_that_ends_before_it_was_reported_does_not_end_in_silence() {
    let nights = nights();
    let mut cluster = beside(EARLY, hpa(3, 10), 5);
    rest(&mut cluster, &nights);
    let mut cluster = cluster.at(OPENING);
    cluster.pass(&nights);
    let mut cluster = cluster.at(CLOSING);
    let transition = cluster.pass(&nights).transition.unwrap();
    assert_eq!((has(&cluster), transition.from.replicas, transition.to.replicas), (0, Some(6), Some(0)));
}

#[test]
fn what_scales_a_sleeping_workload_is_taken_back_or_kept() {
    let kubectl = || Writer::Other(FieldOwner { manager: "kubectl".to_owned(), time: None });
    for (policy, count) in [("Revert", 0), ("KeepUntilNextTransition", 4)] {
        let tdset =
            web(&json!({"autoscaler": {"name": "web"}, "defaultReplicas": 0, "manualScalePolicy": policy}));
        let mut cluster = beside(EARLY, hpa(3, 10), 5);
        rest(&mut cluster, &tdset);
        cluster.scale(4, kubectl());
        cluster.pass(&tdset);
        assert_eq!(has(&cluster), count, "{policy}");
        let told = cluster.pass(&tdset);
        assert_eq!(
            condition(&told.status, ConditionType::ManualOverride).0 == "True",
            count == 4,
            "{policy}"
        );
    }
}

#[test]
fn what_puts_a_workload_to_sleep_by_day_is_taken_back_or_kept() {
    for (policy, count) in [("Revert", 6), ("KeepUntilNextTransition", 0)] {
        let tdset =
            web(&json!({"autoscaler": {"name": "web"}, "defaultReplicas": 0, "manualScalePolicy": policy}));
        let mut cluster = beside(OPENING, hpa(3, 10), 5);
        rest(&mut cluster, &tdset);
        let mut cluster = cluster.at("2026-03-02T08:00:00Z");
        cluster.scale(0, by_kubectl("2026-03-02T08:00:00Z"));
        let planned = cluster.pass(&tdset);
        assert_eq!((has(&cluster), bounds(&cluster)), (count, (6, 10)), "{policy}");
        let told = cluster.pass(&tdset);
        let manual = condition(&told.status, ConditionType::ManualOverride).0;
        assert_eq!(manual == "True", count == 0, "{policy}");
        let Some(reverted) = planned.reverted else {
            assert_eq!(count, 0, "it is reported");
            continue;
        };
        assert_eq!((reverted.manager.as_deref(), reverted.from, reverted.to), (Some("kubectl"), 0, 6));
        let note = "ReplicasReverted: replicas 0 → 6: taken back from kubectl";
        assert!(verbs(&told.report).contains(&note.to_owned()), "{:?}", verbs(&told.report));

        // Against a client that does so again and again, it waits.
        cluster.scale(0, by_kubectl("2026-03-02T08:00:00Z"));
        let (until, over) = (at("2026-03-02T08:01:00Z"), at("2026-03-02T08:10:00Z"));
        cluster.0.remembered.contest =
            Some(Contest { managers: reverted.manager.into_iter().collect(), until, over });
        let told = cluster.pass(&tdset);
        assert_eq!((has(&cluster), told.wake), (0, Some(until)));
        assert_eq!(condition(&told.status, ConditionType::Ready).1, "Contested");
        let mut cluster = cluster.at("2026-03-02T08:01:00Z");
        cluster.pass(&tdset);
        assert_eq!(has(&cluster), 6);
    }
}

#[test]
fn an_autoscaler_that_goes_to_none_by_itself_has_its_bounds_alone() {
    let gate = hpa(0, 10);
    let mut object = json!(nights());
    object["spec"]["autoscaler"]["kind"] = "ScaledObject".into();
    let target = json!({"scaleTargetRef": {"name": "web"}, "minReplicaCount": 3});
    for (tdset, found) in
        [(nights(), gate), (serde_json::from_value(object).unwrap(), scaled_object(&target))]
    {
        let mut cluster = beside(EARLY, found, 5);
        let told = rest(&mut cluster, &tdset);
        assert_eq!((has(&cluster), bounds(&cluster).0), (5, 0));
        assert_eq!(condition(&told.status, ConditionType::Ready).1, "AsScheduled");
    }
}

#[test]
fn an_autoscaler_that_goes_to_none_by_itself_does_so_each_night() {
    let nights = nights();
    let mut cluster = beside(EARLY, hpa(0, 10), 5);
    for (now, count) in [(EARLY, 0), (OPENING, 6), (CLOSING, 0), ("2026-03-03T07:00:00Z", 6)] {
        cluster = cluster.at(now);
        let told = rest(&mut cluster, &nights);
        assert_eq!((has(&cluster), bounds(&cluster).0), (5, count), "{now}");
        // The autoscaler has still to go there.
        let reason = if count > 5 { "PodsNotReady" } else { "AsScheduled" };
        assert_eq!(condition(&told.status, ConditionType::Ready).1, reason, "{now}");
    }
    // One that rests since before it could go to none by itself does not wake by itself either.
    cluster.scale(0, Writer::Ours);
    rest(&mut cluster, &nights);
    assert_eq!(has(&cluster), 6);
}

#[test]
fn an_upper_bound_that_another_client_writes_is_taken_back_and_reported() {
    let tdset = web(&json!({"autoscaler": {"name": "web", "maxReplicas": 30}}));
    let mut cluster = beside(EARLY, hpa(2, 30), 5);
    rest(&mut cluster, &tdset);
    cluster.bound(|found| found.written_max = Some(10), "argocd-controller");
    let planned = cluster.pass(&tdset);
    let reverted = planned.reverted.unwrap();
    assert_eq!(
        (reverted.manager.as_deref(), reverted.from, reverted.to),
        (Some("argocd-controller"), 10, 30)
    );
    assert_eq!(bounds(&cluster), (2, 30));
    let note = "ReplicasReverted: maxReplicas of HorizontalPodAutoscaler web 10 → 30: taken back from argocd-controller";
    assert_eq!(verbs(&cluster.pass(&tdset).report), [note]);

    // Each time it is a new contest, which has its pace.
    cluster.bound(|found| found.written_max = Some(10), "argocd-controller");
    let until = at("2026-03-02T06:01:00Z");
    let over = at("2026-03-02T06:10:00Z");
    cluster.0.remembered.contest =
        Some(Contest { managers: reverted.manager.into_iter().collect(), until, over });
    let told = cluster.pass(&tdset);
    assert_eq!((verbs(&told.work), told.wake), (vec![], Some(until)));
    assert_eq!(condition(&told.status, ConditionType::Ready).1, "Contested");
}

#[test]
fn bounds_of_which_one_is_another_are_not_as_scheduled() {
    let tdset = web(&json!({"autoscaler": {"name": "web", "maxReplicas": 30}}));
    let mut cluster = beside(EARLY, hpa(2, 30), 5);
    rest(&mut cluster, &tdset);
    cluster.bound(|found| found.written_max = Some(10), "kubectl-edit");
    assert_eq!(condition(&cluster.pass(&tdset).status, ConditionType::Ready).1, "PodsNotReady");
}

#[test]
fn an_autoscaler_that_keda_made_is_left_to_it() {
    let tdset = web(&json!({"autoscaler": {"name": "web"}}));
    let keda =
        Controller { group: "keda.sh".to_owned(), kind: "ScaledObject".to_owned(), name: "web".to_owned() };
    let owned = Bounds { controller: Some(keda), ..hpa(1, 10) };
    let told = beside(EARLY, owned.clone(), 5).pass(&tdset);
    assert_eq!(verbs(&told.work), [""; 0]);
    let (state, reason, message) = condition(&told.status, ConditionType::Conflict);
    assert_eq!((state.as_str(), reason.as_str()), ("True", "ControlledByOther"));
    assert!(
        message.contains("ScaledObject web") && message.ends_with("name that in spec.autoscaler instead"),
        "{message}"
    );
    // So is it at the end.
    let mut tdset = leaving(&json!({"minReplicas": 4, "maxReplicas": 5}));
    tdset.spec.controller_policy = None;
    let work = verbs(&plan(&tdset, &beside(EARLY, owned, 5).0).work);
    assert_eq!(work, ["merge TDSet [] as gatehouse-tdset"]);
}

#[test]
fn an_autoscaler_that_is_not_watched_is_looked_at_every_half_minute() {
    for kind in ["HorizontalPodAutoscaler", "ScaledObject"] {
        let tdset = web(&json!({"autoscaler": {"kind": kind, "name": "web"}}));
        let mut cluster = beside(EARLY, hpa(2, 9), 5);
        let soon = at("2026-03-02T06:00:30Z");
        assert!(rest(&mut cluster, &tdset).wake.unwrap() > soon, "{kind}");
        cluster.0.is_unwatched = true;
        assert_eq!(rest(&mut cluster, &tdset).wake, Some(soon), "{kind}");
    }
}

/// One that is being deleted, whose autoscaler is to be left with these bounds.
fn leaving(bounds: &Value) -> TDSet {
    deleted(web(&json!({"autoscaler": {"name": "web", "onDeletion": bounds}})))
}

pub(super) fn deleted(mut tdset: TDSet) -> TDSet {
    tdset.metadata.finalizers = Some(vec!["gatehouse.dev/replicas-on-deletion".to_owned()]);
    tdset.metadata.deletion_timestamp = Some(Time(at(EARLY)));
    tdset
}

#[test]
fn a_deletion_waits_for_an_autoscaler_that_may_not_be_read() {
    let tdset = leaving(&json!({"minReplicas": 4, "maxReplicas": 5}));
    let leave = |blocker: &Blocker| {
        let mut cluster = beside(EARLY, hpa(1, 10), 5);
        cluster.0.autoscaler = Some(Err(blocker.clone()));
        plan(&tdset, &cluster.0)
    };
    let unread = Blocker::ready(Reason::TargetNotReadable, String::new());
    for blocker in [Blocker::forbidden("get and patch", "scaledobjects", "keda.sh"), unread] {
        let told = leave(&blocker);
        assert_eq!(verbs(&told.work), [""; 0]);
        assert_eq!(condition(&told.status, ConditionType::Ready).1, blocker.reason.as_str());
    }
    let gone = Blocker::ready(Reason::AutoscalerNotFound, String::new());
    assert_eq!(verbs(&leave(&gone).work), ["merge TDSet [] as gatehouse-tdset"]);
}

#[test]
fn stated_bounds_are_left_behind() {
    let left = json!({"minReplicas": 1, "maxReplicas": 3});
    let tdset = web(&json!({"autoscaler": {"name": "web", "onDeletion": left}}));
    let finalizer = "merge TDSet [\"gatehouse.dev/replicas-on-deletion\"] as gatehouse-tdset";
    assert_eq!(verbs(&plan(&tdset, &beside(EARLY, hpa(2, 9), 5).0).work), [finalizer]);
    let first = verbs(&plan(&tdset, &beside(EARLY, hpa(1, 9), 5).0).work);
    assert_eq!((first[0].as_str(), first.len()), (finalizer, 2), "nothing is written before it: {first:?}");
    let tdset = deleted(tdset);
    // It was asleep: no autoscaler would wake it.
    let mut cluster = beside(EARLY, hpa(2, 9), 0);
    cluster.pass(&tdset);
    assert_eq!(bounds(&cluster), (1, 3));
    cluster.pass(&tdset);
    assert_eq!(has(&cluster), 1);
    assert_eq!(verbs(&plan(&tdset, &cluster.0).work), ["merge TDSet [] as gatehouse-tdset"]);
}

#[test]
fn bounds_that_an_autoscaler_does_not_take_hold_up_no_deletion() {
    // A lower bound above the upper one that is there, and one of 0 where that is refused.
    for (left, expected) in [(json!({"minReplicas": 12}), (9, 9)), (json!({"minReplicas": 0}), (1, 9))] {
        let tdset = leaving(&left);
        let mut cluster = beside(EARLY, hpa(2, 9), 5);
        cluster.pass(&tdset);
        assert_eq!(bounds(&cluster), expected, "{left}");
        assert_eq!(verbs(&plan(&tdset, &cluster.0).work), ["merge TDSet [] as gatehouse-tdset"], "{left}");
    }
}

#[test]
fn what_an_autoscaler_does_not_allow_is_said() {
    let tdset = web(&json!({"autoscaler": {"name": "web"}}));
    let mut cluster = beside(OPENING, hpa(2, 4), 5);
    cluster.pass(&tdset);
    let told = cluster.pass(&tdset);
    assert_eq!(bounds(&cluster), (4, 4));
    let message = "6 are scheduled, minReplicas of HorizontalPodAutoscaler web can be 4";
    let expected = ("False".to_owned(), "ReplicasOutOfRange".to_owned(), message.to_owned());
    assert_eq!(condition(&told.status, ConditionType::Ready), expected);
}
