//! ScaledObjects of KEDA: their bounds, which go to 0 and come back, and what is left behind.

use super::autoscalers::{beside, bounds, deleted, hpa, rest};
use super::workloads::{has, web};
use super::*;
use crate::kinds::tdset::api::v1::AutoscalerKind;
use crate::kinds::tdset::observation::Bounds;

/// Bounds of a ScaledObject.
pub(super) fn scaled_object(spec: &Value) -> Bounds {
    let resource = ApiResource {
        group: "keda.sh".to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: "keda.sh/v1alpha1".to_owned(),
        kind: "ScaledObject".to_owned(),
        plural: "scaledobjects".to_owned(),
    };
    let place = Place { resource, namespace: "default".to_owned(), name: "web".to_owned() };
    let found = json!({"metadata": {"name": "web", "uid": "k", "resourceVersion": "7"}, "spec": spec});
    Bounds::of_scaled_object(&serde_json::from_value(found).unwrap(), place)
}

#[test]
fn a_scaled_object_has_its_own_fields_and_defaults() {
    let found = scaled_object(&json!({"scaleTargetRef": {"name": "web"}}));
    assert_eq!((found.min(), found.max(), found.kind), (0, 100, AutoscalerKind::ScaledObject));
    let workload = web(&json!({}));
    assert_eq!(found.scales, Some(Spec::resolve(&workload, vec![]).workload()));
    let tdset = web(&json!({"autoscaler": {"kind": "ScaledObject", "name": "web", "maxReplicas": 20}}));
    let mut cluster = beside(EARLY, found, 5);
    let work = cluster.pass(&tdset).work;
    let [ApiWrite::Merge(merge)] = work.as_slice() else { panic!("{work:?}") };
    assert_eq!(merge.manifest.object["spec"], json!({"minReplicaCount": 2, "maxReplicaCount": 20}));
    assert_eq!(actions::points(&work[0]).name(), "tdset.write-bounds");
}

#[test]
fn stated_bounds_are_left_behind_for_a_scaled_object() {
    let of = |left: Value| {
        web(&json!({"defaultReplicas": 0,
            "autoscaler": {"kind": "ScaledObject", "name": "web", "maxReplicas": 20, "onDeletion": left}}))
    };
    let stated = of(json!({"minReplicas": 1, "maxReplicas": 3}));
    let found = scaled_object(&json!({"scaleTargetRef": {"name": "web"}, "minReplicaCount": 4}));
    let finalizer = "merge TDSet [\"gatehouse.dev/replicas-on-deletion\"] as gatehouse-tdset";
    let mut cluster = beside(EARLY, found, 5);
    let first = verbs(&plan(&stated, &cluster.0).work);
    assert_eq!((first[0].as_str(), first.len()), (finalizer, 2), "nothing is written before it: {first:?}");
    cluster.pass(&stated);
    assert_eq!((bounds(&cluster), has(&cluster)), ((0, 20), 5), "at night the bounds alone go to none");

    // KEDA has brought it there, and leaves that by itself.
    cluster.scale(0, Writer::Ours);
    let gone = vec!["merge TDSet [] as gatehouse-tdset".to_owned()];
    for least in [1, 0] {
        let leaving = deleted(of(json!({"minReplicas": least, "maxReplicas": 3})));
        let work = plan(&leaving, &cluster.0).work;
        let [ApiWrite::Merge(merge)] = work.as_slice() else { panic!("{work:?}") };
        assert_eq!(merge.manifest.object["spec"], json!({"minReplicaCount": least, "maxReplicaCount": 3}));
        cluster.pass(&leaving);
        assert_eq!(bounds(&cluster), (least, 3));
        assert_eq!((verbs(&plan(&leaving, &cluster.0).work), has(&cluster)), (gone.clone(), 0), "{least}");
    }
}

#[test]
fn the_deletion_of_a_scaled_object_lets_go_of_its_tdset() {
    let left = json!({"minReplicas": 1, "maxReplicas": 3});
    let autoscaler = json!({"kind": "ScaledObject", "name": "web", "onDeletion": left});
    let tdset = deleted(web(&json!({"autoscaler": autoscaler})));
    let blocked = |blocker: Blocker| {
        let mut cluster = beside(EARLY, hpa(1, 10), 5);
        cluster.0.autoscaler = Some(Err(blocker));
        plan(&tdset, &cluster.0)
    };
    for message in ["ScaledObject web does not exist", "keda.sh/v1alpha1 is not served by this cluster"] {
        let told = blocked(Blocker::ready(Reason::AutoscalerNotFound, message.to_owned()));
        assert_eq!(verbs(&told.work), ["merge TDSet [] as gatehouse-tdset"], "{message}");
    }
    let found = scaled_object(&json!({"scaleTargetRef": {"name": "web"}}));
    let going = Bounds { is_deleting: true, ..found };
    let work = verbs(&plan(&tdset, &beside(EARLY, going, 5).0).work);
    assert_eq!(work, ["merge TDSet [] as gatehouse-tdset"], "one that goes itself");
}

#[test]
fn a_scaled_object_sleeps_and_wakes_by_its_bounds() {
    let autoscaler = json!({"kind": "ScaledObject", "name": "web", "maxReplicas": 20});
    let tdset = web(&json!({"defaultReplicas": 0, "autoscaler": autoscaler}));
    let found = scaled_object(&json!({"scaleTargetRef": {"name": "web"}, "minReplicaCount": 3}));
    let mut cluster = beside(EARLY, found, 5);
    for (now, least) in [(EARLY, 0), (OPENING, 6), (CLOSING, 0), ("2026-03-03T07:00:00Z", 6)] {
        cluster = cluster.at(now);
        let first = verbs(&cluster.pass(&tdset).work);
        assert_eq!(first, ["merge ScaledObject null as gatehouse-tdset-count"], "{now}");
        let told = rest(&mut cluster, &tdset);
        assert_eq!(bounds(&cluster), (least, 20), "{now}");
        let reason = if has(&cluster) == 0 && least > 0 { "PodsNotReady" } else { "AsScheduled" };
        assert_eq!(condition(&told.status, ConditionType::Ready).1, reason, "{now}");
        // KEDA goes to none and comes back: whichever count it has, it is KEDA's.
        cluster.scale(if least == 0 { 0 } else { 7 }, Writer::Ours);
        assert_eq!(verbs(&rest(&mut cluster, &tdset).work), [""; 0], "{now}");
        // At the boundary, it may not have come back yet.
        cluster.scale(0, Writer::Ours);
    }
}

#[test]
fn a_workload_outside_of_the_bounds_of_a_scaled_object_is_not_ready() {
    let tdset = web(&json!({"autoscaler": {"kind": "ScaledObject", "name": "web"}}));
    let of = |spec: &Value, annotations: &Value| {
        let mut object =
            json!({"metadata": {"name": "web", "uid": "k", "annotations": annotations}, "spec": spec});
        object["spec"]["scaleTargetRef"] = json!({"name": "web"});
        let place = scaled_object(&json!({})).place;
        Bounds::of_scaled_object(&serde_json::from_value(object).unwrap(), place)
    };
    let least = json!({"minReplicaCount": 2});
    let paused = json!({"autoscaling.keda.sh/paused": "true"});
    for (bounds, count, why) in [
        (of(&least, &paused), 1, Some("the workload has 1: ScaledObject web is paused by an annotation")),
        (
            of(&least, &json!({"autoscaling.keda.sh/paused-replicas": "0"})),
            0,
            Some("is paused by an annotation"),
        ),
        (of(&least, &json!({})), 0, Some("the workload has 0: ScaledObject web has not scaled it yet")),
        (of(&least, &paused), 3, None),
        (
            of(&least, &json!({"autoscaling.keda.sh/paused": "false"})),
            1,
            Some("the workload has 1: ScaledObject web has not scaled it yet"),
        ),
        (of(&json!({"minReplicaCount": 2, "idleReplicaCount": 0}), &json!({})), 0, None),
    ] {
        let mut cluster = beside(EARLY, bounds, count);
        let (status, reason, message) = condition(&rest(&mut cluster, &tdset).status, ConditionType::Ready);
        assert_eq!(status, if why.is_some() { "False" } else { "True" }, "{count}: {reason}: {message}");
        assert!(message.contains(why.unwrap_or_default()), "{message}");
    }
}
