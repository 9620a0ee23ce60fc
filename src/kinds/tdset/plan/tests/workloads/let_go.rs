//! Workloads that are let go: by a finalizer, a deletion, a stated count.

use super::*;

/// One whose workload is left with that count.
fn left_with(count: i32) -> TDSet {
    let reference =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "replicasOnDeletion": count});
    web(&json!({"target": {"ref": reference}}))
}

#[test]
fn a_stated_count_is_left_behind_and_a_finalizer_sees_to_it() {
    let mut tdset = left_with(4);
    let mut cluster = Cluster::empty(EARLY);
    cluster.scale(2, Writer::Ours);
    let finalizer = "merge TDSet [\"gatehouse.dev/replicas-on-deletion\"] as gatehouse-tdset";
    assert_eq!(verbs(&plan(&tdset, &cluster.0).work), [finalizer]);
    cluster.scale(5, Writer::Ours);
    let count = "merge Deployment 2 as gatehouse-tdset-count";
    assert_eq!(verbs(&plan(&tdset, &cluster.0).work), [finalizer, count], "nothing is written before it");
    cluster.scale(2, Writer::Ours);
    tdset.metadata.finalizers =
        Some(vec!["other".to_owned(), "gatehouse.dev/replicas-on-deletion".to_owned()]);
    assert_eq!(verbs(&plan(&tdset, &cluster.0).work), [""; 0]);

    tdset.metadata.deletion_timestamp = Some(Time(at(EARLY)));
    let leave = |observed: &Observed| verbs(&plan(&tdset, observed).work);
    assert_eq!(leave(&cluster.0), ["merge Deployment 4 as gatehouse-tdset-count"]);
    let free = ["merge TDSet [\"other\"] as gatehouse-tdset"];
    cluster.scale(4, Writer::Ours);
    assert_eq!(leave(&cluster.0), free);
    cluster.scale(2, Writer::Ours);
    let held = Observed { holder: Some((String::new(), String::new())), ..cluster.0.clone() };
    assert_eq!(leave(&held), free, "what another client holds is left alone");
    cluster.0.target = Some(Err(Blocker::ready(Reason::TargetNotFound, String::new())));
    assert_eq!(leave(&cluster.0), free);
    for unread in [
        Blocker::forbidden("get", "widgets/scale", "example.com"),
        Blocker::ready(Reason::TargetNotReadable, String::new()),
    ] {
        cluster.0.target = Some(Err(unread.clone()));
        assert_eq!(leave(&cluster.0), [""; 0], "it is tried again: {unread:?}");
        let nothing = Observed { target: None, unread_object: Some(unread), ..cluster.0.clone() };
        assert_eq!(leave(&nothing), [""; 0]);
    }
}

#[test]
fn a_workload_without_its_count_field_is_left_with_the_stated_count() {
    let tdset = autoscalers::deleted(left_with(0));
    let mut cluster = Cluster::empty(EARLY);
    cluster.0.target = Some(Ok(Scaled { is_unset: true, ..scaled(0, Writer::Ours) }));
    assert_eq!(verbs(&cluster.pass(&tdset).work), ["merge Deployment 0 as gatehouse-tdset-count"]);
    assert_eq!(verbs(&cluster.pass(&tdset).work), ["merge TDSet [] as gatehouse-tdset"]);
}

#[test]
fn a_deletion_leaves_what_another_controller_owns_as_it_is() {
    let reference =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "replicasOnDeletion": 0});
    let free = "merge TDSet [] as gatehouse-tdset";
    let count = "merge Deployment 0 as gatehouse-tdset-count";
    for (group, policy, expected) in [
        ("gatehouse.dev", "Respect", free),
        ("gatehouse.dev", "Override", free),
        ("argoproj.io", "Respect", free),
        ("argoproj.io", "Override", count),
    ] {
        let mut tdset = web(&json!({"target": {"ref": reference}, "controllerPolicy": policy}));
        tdset.metadata.finalizers = Some(vec!["gatehouse.dev/replicas-on-deletion".to_owned()]);
        tdset.metadata.deletion_timestamp = Some(Time(at(EARLY)));
        let mut cluster = Cluster::empty(EARLY);
        cluster.scale(3, Writer::Ours);
        let owner = Controller { group: group.to_owned(), kind: "Kind".to_owned(), name: "db".to_owned() };
        cluster.0.target.as_mut().unwrap().as_mut().unwrap().controller = Some(owner);
        assert_eq!(verbs(&plan(&tdset, &cluster.0).work), [expected], "{group} {policy}");
    }
}

#[test]
fn a_deletion_leaves_the_count_to_an_autoscaler_that_scales_the_workload() {
    let tdset = autoscalers::deleted(left_with(0));
    let mut cluster = Cluster::empty(EARLY);
    cluster.scale(3, Writer::Ours);
    assert_eq!(verbs(&plan(&tdset, &cluster.0).work), ["merge Deployment 0 as gatehouse-tdset-count"]);
    cluster.0.autoscalers = vec!["web".to_owned()];
    assert_eq!(verbs(&plan(&tdset, &cluster.0).work), ["merge TDSet [] as gatehouse-tdset"]);
    // While it is not known whether there is one, the deletion waits.
    cluster.0.autoscalers.clear();
    cluster.0.unread_autoscalers =
        Some(Blocker::forbidden("list and watch", "horizontalpodautoscalers", "autoscaling"));
    for gone in [Ok(scaled(0, Writer::Ours)), Err(Blocker::ready(Reason::TargetNotFound, String::new()))] {
        let mut done = cluster.clone();
        done.0.target = Some(gone);
        assert_eq!(
            verbs(&plan(&tdset, &done.0).work),
            ["merge TDSet [] as gatehouse-tdset"],
            "nothing is left to do"
        );
    }
    let told = plan(&tdset, &cluster.0);
    assert_eq!(
        (verbs(&told.work), condition(&told.status, ConditionType::Ready).1),
        (vec![], "Forbidden".to_owned())
    );
}

#[test]
fn a_deletion_whose_write_is_refused_says_so() {
    let tdset = autoscalers::deleted(left_with(0));
    let mut cluster = settled(&web(&json!({})), EARLY);
    let why = "deployments/scale is forbidden: no".to_owned();
    let refused = RefusedWrite { action: "tdset.write-scale".to_owned(), why: why.clone() };
    cluster.0.refused = Some(refused);
    let told = plan(&tdset, &cluster.0);
    assert_eq!(verbs(&told.work), ["merge Deployment 0 as gatehouse-tdset-count"], "it is tried again");
    let ready = condition(&told.status, ConditionType::Ready);
    assert_eq!(ready, ("False".to_owned(), "CountRefused".to_owned(), why));
}

#[test]
fn no_count_is_written_while_the_finalizer_is_refused() {
    let mut tdset = left_with(4);
    let mut cluster = Cluster::empty(EARLY);
    cluster.scale(5, Writer::Ours);
    let told = cluster.refused_pass(&tdset, "tdset.add-finalizer");
    assert_eq!((has(&cluster), told.status.scheduled_replicas), (5, Some(2)));
    assert_eq!(condition(&told.status, ConditionType::Ready).1, "CountRefused");
    tdset.metadata.finalizers = Some(vec!["gatehouse.dev/replicas-on-deletion".to_owned()]);
    cluster.pass(&tdset);
    let told = cluster.pass(&tdset);
    assert_eq!(has(&cluster), 2);
    let note = "ReplicasScheduled: replicas 5 → 2: outside all windows, no longer refused";
    assert!(verbs(&told.report).iter().any(|one| one.starts_with(note)), "{:?}", verbs(&told.report));
}
