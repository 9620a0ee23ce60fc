//! Runs: what is run, repeated, blocked and followed.

use super::*;

#[test]
fn scripts_are_applied_by_one_job_and_then_nothing_is_done() {
    let mut cluster = Cluster::new(&json!({}));
    let running = cluster.settle();
    is(&running, Phase::Running, "False", "Running");
    assert_eq!(running.status.current_run.as_ref().unwrap().attempt, 1);
    assert_eq!(cluster.created.len(), 1);
    let done = cluster.end_as(|_| ());
    is(&done, Phase::Succeeded, "True", "Applied");
    assert_eq!((done.status.applied_count, done.status.pending_count), (Some(2), Some(0)));
    assert_eq!(cluster.object.metadata.finalizers, None, "a deletion has nothing to wait for");
    cluster.later(3.hours());
    cluster.observed.runs.clear();
    let later = cluster.settle();
    is(&later, Phase::Succeeded, "True", "Applied");
    assert_eq!((cluster.created.len(), cluster.observed.snapshots.len()), (1, 0));
    let reasons: Vec<_> = cluster.events.iter().map(|event| event.reason).collect();
    assert_eq!(reasons, ["RunStarted", "RunDone"]);
}

#[test]
fn what_is_run_is_what_was_planned_whatever_becomes_of_the_source() {
    let mut cluster = Cluster::new(&json!({}));
    let plan = cluster.step(2);
    let Action::CreateSnapshot(snapshot) = &plan.actions[1] else { panic!("{plan:?}") };
    assert_eq!(snapshot.object["immutable"], true);
    assert_eq!(snapshot.object["data"]["001.up.sql"], "INSERT");
    let told: Value = serde_json::from_str(snapshot.object["data"][ASSIGNMENT].as_str().unwrap()).unwrap();
    assert!(told["scripts"][1]["planned"].as_str().unwrap().starts_with("sha256:"), "{told}");
    // The process ends here; the next one finds another text, and does not run the old one under its name.
    let old = cluster.observed.snapshots.keys().next().unwrap().clone();
    let edited = [("002.sql".to_owned(), b"UPDATE".to_vec())].into();
    cluster.observed.sources.insert("sql".to_owned(), edited);
    cluster.settle();
    assert!(cluster.created.len() == 1 && cluster.created[0] != old, "{:?}", cluster.created);
    cluster.end_as(|_| ());
    assert!(!cluster.observed.snapshots.contains_key(&old), "no run reads it");
    // An edit while a run is under way is planned after it.
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "1"}}}));
    cluster.settle();
    assert_eq!(cluster.created.len(), 2);
    cluster.edit(&json!({"spec": {"outOfOrder": "Allow"}}));
    cluster.settle();
    assert_eq!(cluster.created.len(), 2);
    cluster.end_as(|_| ());
    assert_eq!(cluster.created.len(), 3);
}

#[test]
fn a_config_map_with_the_name_of_a_run_and_our_labels_is_not_what_it_reads() {
    let mut cluster = Cluster::new(&json!({}));
    let plan = cluster.plan();
    let made = |action: &Action| match action {
        Action::CreateSnapshot(manifest) => Some(manifest.place.name.clone()),
        _ => None,
    };
    let name = plan.actions.iter().find_map(made).unwrap();
    let planted = Snapshot { uid: "planted".to_owned(), number: 0, purpose: None, stamp: None };
    cluster.observed.snapshots.insert(name.clone(), planted);
    cluster.settle();
    assert_ne!(cluster.created, std::slice::from_ref(&name));
    is(&cluster.end_as(|_| ()), Phase::Succeeded, "True", "Applied");
    assert!(!cluster.observed.snapshots.contains_key(&name), "it is deleted");
}

#[test]
fn a_config_map_of_the_same_run_is_compared_before_its_job_is_made() {
    let mut cluster = Cluster::new(&json!({}));
    let plan = cluster.step(0);
    plan.actions.iter().take(2).for_each(|action| cluster.carry_out(action));
    let again = cluster.plan();
    assert_eq!(again.actions[..], plan.actions[1..], "the finalizer is there");
    assert!(matches!(again.actions[0], Action::CreateSnapshot(_)));
}

#[test]
fn a_pause_that_is_longer_than_any_doubled_one_is_kept() {
    for (backoff, pauses) in [("1h", [60, 60, 60]), ("20m", [20, 30, 30])] {
        let mut cluster = Cluster::new(&json!({"spec": {"retry": {"backoff": backoff}}}));
        cluster.settle();
        for (pause, runs) in pauses.into_iter().zip(1..) {
            is(&cluster.end_as(failure(Class::Connection)), Phase::Pending, "False", "BackingOff");
            cluster.later((pause - 1).minutes());
            cluster.settle();
            assert_eq!(cluster.created.len(), runs, "{backoff}");
            cluster.later(2.minutes());
            cluster.settle();
            assert_eq!(cluster.created.len(), runs + 1, "{backoff}");
        }
    }
}

#[test]
fn only_what_may_pass_is_tried_again_and_not_for_ever() {
    let mut cluster = Cluster::new(&json!({"spec": {"retry": {"limit": 2, "backoff": "30s"}}}));
    cluster.settle();
    let plan = cluster.end_as(failure(Class::LockTimeout));
    is(&plan, Phase::Pending, "False", "BackingOff");
    assert_eq!(plan.wake.rest.time().unwrap(), cluster.observed.now + 30.seconds());
    cluster.later(31.seconds());
    cluster.settle();
    let plan = cluster.end(Ending::Silent("its pod is gone".to_owned()));
    assert_eq!(plan.wake.rest.time().unwrap(), cluster.observed.now + 60.seconds());
    cluster.later(61.seconds());
    cluster.settle();
    assert_eq!(cluster.created.len(), 3);
    let plan = cluster.end_as(failure(Class::Deadlock));
    is(&plan, Phase::Failed, "False", "RetriesExhausted");
    cluster.later(24.hours());
    cluster.settle();
    assert_eq!(cluster.created.len(), 3);
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "please"}}}));
    is(&cluster.settle(), Phase::Running, "False", "Running");
    let plan = cluster.end_as(failure(Class::Constraint));
    is(&plan, Phase::Failed, "False", "ScriptFailed");
    assert!(ready(&plan).2.contains("script 002, statement 1: 23505: a value is there already"));
    assert_eq!(plan.status.last_run.unwrap().outcome, Outcome::Failed);
    cluster.later(24.hours());
    cluster.settle();
    assert_eq!(cluster.created.len(), 4);
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "again"}}}));
    cluster.settle();
    cluster.end(Ending::Late(None));
    assert_eq!(cluster.last_purpose(), Purpose::Verify);
}

#[test]
fn a_job_that_is_deleted_is_noticed_and_followed() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    cluster.observed.runs.clear();
    let plan = cluster.settle();
    is(&plan, Phase::Pending, "False", "BackingOff");
    assert_eq!(plan.status.last_run.as_ref().unwrap().outcome, Outcome::Lost);
    cluster.later(1.minutes());
    cluster.settle();
    assert_eq!(cluster.created.len(), 2);
    assert_ne!(cluster.created[0], cluster.created[1]);
    is(&cluster.end_as(|_| ()), Phase::Succeeded, "True", "Applied");
}

#[test]
fn what_is_missing_or_pinned_otherwise_is_named_and_nothing_is_run() {
    let mut cluster = Cluster::new(&json!({}));
    let kept = cluster.observed.sources.clone();
    cluster.observed.sources.clear();
    let plan = cluster.settle();
    is(&plan, Phase::Pending, "False", "ScriptNotFound");
    assert!(ready(&plan).2.contains("script 002: ConfigMap sql does not exist"));
    cluster.observed.sources = kept;
    let pinned = json!([{"id": "1", "kind": "Schema", "checksum": format!("sha256:{}", "0".repeat(64)), "up": {"inline": "SELECT 1"}}]);
    cluster.edit(&json!({"spec": {"scripts": pinned}}));
    is(&cluster.settle(), Phase::Blocked, "False", "ChecksumPinMismatch");
    cluster.edit(&json!({"spec": {"scripts": [{"id": "1", "kind": "Schema", "up": {"inline": " ".repeat(1_000_001)}}]}}));
    is(&cluster.settle(), Phase::Blocked, "False", "ScriptsTooLarge");
    assert!(cluster.created.is_empty());
    let faults = vec![FieldError::required(Path::spec(), "x")];
    let invalid = Spec::resolve(&cluster.object, faults);
    let plan = super::plan(&invalid, &cluster.observed);
    is(&plan, Phase::Pending, "False", "SpecInvalid");
    assert_eq!((plan.wake.rest.time(), plan.actions), (None, vec![]));
}

#[test]
fn another_migration_comes_first_and_suspend_starts_nothing() {
    let requires = json!({"spec": {"requires": [{"name": "base", "minId": "7"}], "suspend": true}});
    let mut cluster = Cluster::new(&requires);
    is(&cluster.settle(), Phase::Pending, "False", "Suspended");
    cluster.edit(&json!({"spec": {"suspend": null}}));
    let mut base = Required { is_ready: false, applies: true, is_waiting: false, ids: vec!["6".to_owned()] };
    for (found, part) in [
        (None, "does not exist"),
        (Some(base.clone()), "is not ready"),
        (Some(Required { is_ready: true, applies: false, ..base.clone() }), "does not apply"),
        (Some(Required { is_ready: true, ..base.clone() }), "has no script 7"),
    ] {
        cluster.observed.required = found.map(|found| ("base".to_owned(), found)).into_iter().collect();
        let plan = cluster.settle();
        is(&plan, Phase::Pending, "False", "RequirementNotReady");
        assert!(ready(&plan).2.contains(part), "{:?}", ready(&plan));
    }
    base = Required { is_ready: true, applies: true, is_waiting: false, ids: vec!["7".to_owned()] };
    cluster.observed.required.insert("base".to_owned(), base);
    is(&cluster.settle(), Phase::Running, "False", "Running");
}

#[test]
fn wherever_a_process_ends_each_run_is_made_once() {
    for died_after in 0..4 {
        let mut cluster = Cluster::new(&json!({}));
        cluster.step(died_after);
        cluster.settle();
        assert_eq!(cluster.created.len(), 1, "{died_after}");
        // It ends before it has written what the run told.
        let run = cluster.observed.runs.last_mut().unwrap();
        run.state = RunState::Ended(Ending::Said(Box::new(said(result::Outcome::Succeeded, 2, &[]))));
        let _lost = cluster.plan();
        is(&cluster.settle(), Phase::Succeeded, "True", "Applied");
        assert_eq!(cluster.created.len(), 1, "{died_after}");
    }
}

#[test]
fn a_status_lists_the_newest_of_many_and_counts_all() {
    let ids = |count: usize| -> Vec<String> { (1..=count).map(|number| format!("{number:03}")).collect() };
    let one = |id: &String| AppliedScript { id: id.clone(), ..AppliedScript::default() };
    for (applied, pending) in [(50, 256), (51, 257), (400, 300)] {
        let mut cluster = Cluster::new(&json!({}));
        cluster.settle();
        let left = ids(pending);
        let plan = cluster.end_as(|result| {
            let left: Vec<_> = left.iter().map(String::as_str).collect();
            *result = said(result::Outcome::Failed, u32::try_from(applied).unwrap(), &left);
            result.applied = ids(applied).iter().map(one).collect();
            failure(Class::Syntax)(result);
            let warnings = &mut result.plan.as_mut().unwrap().warnings;
            *warnings = ids(21);
        });
        is(&plan, Phase::Failed, "False", "ScriptFailed");
        let status = &plan.status;
        let counts = (status.applied_count, status.pending_count);
        assert_eq!(counts, (i32::try_from(applied).ok(), i32::try_from(pending).ok()));
        let listed: Vec<_> = status.applied.iter().flatten().map(|script| script.id.clone()).collect();
        assert_eq!(listed, ids(applied)[applied - 50..], "the newest, in their order");
        let told = status.plan.as_ref().unwrap();
        assert_eq!(told.pending.as_ref().unwrap(), &left[..256], "what comes first");
        assert_eq!(told.warnings.as_ref().unwrap(), &ids(20));
    }
}

#[test]
fn a_ring_of_requirements_is_said_once_all_in_it_wait() {
    let mut cluster = Cluster::new(&json!({"spec": {"requires": [{"name": "base"}]}}));
    cluster.observed.ring = ["shop", "base", "shop"].map(str::to_owned).to_vec();
    let base = Required { is_ready: false, applies: true, is_waiting: false, ids: Vec::new() };
    cluster.observed.required.insert("base".to_owned(), base.clone());
    is(&cluster.settle(), Phase::Pending, "False", "RequirementNotReady");
    cluster.observed.required.insert("base".to_owned(), Required { is_waiting: true, ..base.clone() });
    let plan = cluster.settle();
    is(&plan, Phase::Blocked, "False", "RequirementCycle");
    assert!(ready(&plan).2.contains("shop requires base requires shop"), "{:?}", ready(&plan));
    assert_eq!(problems(plan.status.conditions.as_ref().unwrap()).count(), 1);
    // What is ready is not waited for, although it requires what waits for it.
    cluster.observed.required.insert("base".to_owned(), Required { is_ready: true, ..base });
    is(&cluster.settle(), Phase::Running, "False", "Running");
}
