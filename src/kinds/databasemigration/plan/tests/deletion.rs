//! What a deletion waits for, and what it takes back.

use super::*;

#[test]
fn a_deletion_waits_for_the_run_and_takes_back_what_it_is_asked_to() {
    let down = json!({"deletionPolicy": "Revert", "scripts": [
        {"id": "1", "kind": "Schema", "up": {"inline": "CREATE TABLE a (b int)"}, "down": {"inline": "DROP TABLE a"}}]});
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-11-24T12:00:00Z"}});
    let mut cluster = Cluster::new(&json!({"spec": down}));
    cluster.settle();
    cluster.edit(&deleted);
    let plan = cluster.settle();
    assert_eq!((ready(&plan).1.as_str(), cluster.created.len()), ("DeletionWaits", 1));
    cluster.end_as(|_| ());
    assert_eq!(cluster.last_purpose(), Purpose::Revert);
    let plan = cluster.end_as(failure(Class::Syntax));
    is(&plan, Phase::Failed, "False", "RevertFailed");
    assert!(cluster.object.metadata.finalizers.is_some());
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "1"}}}));
    cluster.settle();
    cluster.observed.runs.last_mut().unwrap().state =
        RunState::Ended(Ending::Said(Box::new(said(result::Outcome::Reverted, 0, &[]))));
    let plan = cluster.step(usize::MAX);
    assert_eq!((plan.status.phase, &cluster.object.metadata.finalizers), (Some(Phase::Reverted), &None));
    // One that has applied nothing takes nothing back, and one that is to retain neither.
    for spec in [down, json!({})] {
        let mut cluster = Cluster::new(&json!({"spec": spec, "metadata": {"finalizers": [FINALIZER]}}));
        cluster.edit(&deleted);
        cluster.step(usize::MAX);
        assert_eq!((cluster.created.len(), &cluster.object.metadata.finalizers), (0, &None));
    }
}

fn with_down() -> Value {
    json!({"deletionPolicy": "Revert", "scripts": [
        {"id": "1", "kind": "Schema", "up": {"configMapKeyRef": {"name": "sql", "key": "1"}},
            "down": {"configMapKeyRef": {"name": "sql", "key": "1.down"}}}]})
}

pub fn applied(change: &Value) -> Cluster {
    let mut cluster = Cluster::new(&json!({"spec": with_down()}));
    cluster.edit(&json!({"spec": change}));
    let texts = [("1".to_owned(), b"CREATE".to_vec()), ("1.down".to_owned(), b"DROP".to_vec())];
    cluster.observed.sources.insert("sql".to_owned(), texts.into());
    cluster.settle();
    if cluster.last_purpose() == Purpose::Plan {
        cluster.end_as(|result| *result = said(result::Outcome::Planned, 0, &["1"]));
        let hash = cluster.approval_asked_for().unwrap();
        cluster.edit(&json!({"spec": {"approval": {"planHash": hash}}}));
        cluster.settle();
    }
    is(&cluster.end_as(|_| ()), Phase::Succeeded, "True", "Applied");
    cluster
}

const DELETED: &str = "2026-11-24T12:00:00Z";

#[test]
fn what_is_to_be_taken_back_is_waited_for_although_that_was_said_late() {
    let mut cluster = applied(&json!({"deletionPolicy": "Retain"}));
    assert!(!finalizer::is_on(&cluster.object.metadata, FINALIZER));
    cluster.edit(&json!({"spec": {"deletionPolicy": "Revert"}}));
    cluster.settle();
    assert!(finalizer::is_on(&cluster.object.metadata, FINALIZER));
    cluster.edit(&json!({"metadata": {"deletionTimestamp": DELETED}}));
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Revert);
}

#[test]
fn a_finalizer_that_another_client_removes_comes_back_while_a_run_is_under_way() {
    let held = |cluster: &Cluster| finalizer::is_on(&cluster.object.metadata, FINALIZER);
    let without = json!({"metadata": {"finalizers": null}});
    for spec in [with_down(), json!({"mode": "Rehearse"}), json!({"mode": "Plan"}), json!({})] {
        let mut cluster = Cluster::new(&json!({"spec": spec}));
        let texts = [("1", "CREATE"), ("1.down", "DROP"), ("002.sql", "INSERT")];
        let texts = texts.map(|(key, text)| (key.to_owned(), text.as_bytes().to_vec()));
        cluster.observed.sources.insert("sql".to_owned(), texts.into());
        cluster.settle();
        assert!(held(&cluster) && cluster.created.len() == 1, "{spec}");
        cluster.edit(&without);
        cluster.settle();
        assert!(held(&cluster) && cluster.created.len() == 1, "{spec}");
        // The API server refuses another finalizer on an object that is being deleted.
        cluster.edit(&json!({"metadata": {"deletionTimestamp": DELETED, "finalizers": ["example.com/a"]}}));
        assert!(!cluster.plan().actions.contains(&Action::Hold), "{spec}");
    }
    // All is applied, and the deletion reverts it.
    let mut cluster = applied(&json!({}));
    cluster.edit(&without);
    cluster.settle();
    assert!(held(&cluster));
    // A look at the history alone holds no object that has nothing to revert.
    let mut cluster = applied(&json!({"deletionPolicy": "Retain"}));
    cluster.later(25.hours());
    cluster.observed.runs.clear();
    cluster.settle();
    assert_eq!((cluster.last_purpose(), held(&cluster)), (Purpose::Verify, false));
}

#[test]
fn nothing_is_rolled_back_by_scripts_without_approval() {
    let mut cluster = applied(&json!({"approval": {"required": true}}));
    let edited = [("1".to_owned(), b"CREATE".to_vec()), ("1.down".to_owned(), b"DROP ALL".to_vec())];
    cluster.observed.sources.insert("sql".to_owned(), edited.into());
    cluster.edit(&json!({"metadata": {"deletionTimestamp": DELETED}}));
    let plan = cluster.settle();
    is(&plan, Phase::AwaitingApproval, "False", "AwaitingApproval");
    let message = ready(&plan).2;
    assert!(message.contains("deletionPolicy Retain"), "{message}");
    assert_ne!(cluster.last_purpose(), Purpose::Revert);
    let hash = cluster.approval_asked_for().unwrap();
    cluster.edit(&json!({"spec": {"approval": {"planHash": hash}}}));
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Revert);
    assert_eq!(cluster.assignment().approved_plan_hash, Some(hash), "the run compares it");
}

#[test]
fn what_was_applied_is_taken_back_where_its_scripts_are_gone() {
    let mut cluster = applied(&json!({}));
    cluster.observed.runs.clear();
    cluster.settle();
    assert_eq!(cluster.observed.snapshots.len(), 1, "the texts are kept for the deletion");
    cluster.observed.sources.clear();
    cluster.edit(&json!({"metadata": {"deletionTimestamp": DELETED}}));
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Revert);
    assert_eq!(cluster.told[cluster.created.last().unwrap()]["data"]["000.down.sql"], "DROP");
    // Without them, the message names what lets the object go.
    let mut cluster = applied(&json!({}));
    cluster.observed.sources.clear();
    cluster.observed.snapshots.clear();
    cluster.edit(&json!({"metadata": {"deletionTimestamp": DELETED}}));
    let plan = cluster.settle();
    is(&plan, Phase::Failed, "False", "ScriptNotFound");
    assert!(ready(&plan).2.contains("deletionPolicy Retain"), "{:?}", ready(&plan));
}

#[test]
fn nothing_is_taken_back_where_it_is_not_known_what_was_applied() {
    let mut cluster = applied(&json!({}));
    let edited = [("1".to_owned(), b"CREATE 2".to_vec()), ("1.down".to_owned(), b"DROP 2".to_vec())];
    cluster.observed.sources.insert("sql".to_owned(), edited.into());
    cluster.settle();
    cluster.end(Ending::Silent("killed".to_owned()));
    let before = cluster.observed.sources.remove("sql");
    cluster.edit(&json!({"metadata": {"deletionTimestamp": DELETED}}));
    let plan = cluster.settle();
    is(&plan, Phase::Failed, "False", "ScriptNotFound");
    let message = ready(&plan).2;
    let names = cluster.created.iter().all(|name| message.contains(name));
    assert!(names && message.contains("deletionPolicy Retain"), "{message}");
    // Who puts it back says by it what is taken back.
    cluster.observed.sources.extend(before.map(|texts| ("sql".to_owned(), texts)));
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Revert);
}

#[test]
fn what_a_run_may_have_applied_without_a_word_is_taken_back() {
    for ending in [Ending::Late(None), Ending::Silent("killed".to_owned())] {
        let mut cluster = Cluster::new(&json!({"spec": with_down()}));
        let texts = [("1".to_owned(), b"CREATE".to_vec()), ("1.down".to_owned(), b"DROP".to_vec())];
        cluster.observed.sources.insert("sql".to_owned(), texts.into());
        cluster.settle();
        cluster.end(ending);
        if cluster.last_purpose() == Purpose::Apply {
            cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "1"}}}));
            cluster.later(1.minutes());
            cluster.settle();
        }
        // The next one does not come to the database, and so does not know either.
        let plan = cluster.end_as(|result| {
            failure(Class::Authentication)(result);
            result.server = None;
        });
        assert_eq!(plan.status.last_run.unwrap().unknown_changes, Some(true));
        assert!(cluster.object.metadata.finalizers.is_some());
        cluster.edit(&json!({"metadata": {"deletionTimestamp": DELETED}}));
        cluster.settle();
        assert_eq!(cluster.last_purpose(), Purpose::Revert);
    }
}

#[test]
fn what_an_unobserved_run_may_have_applied_is_rolled_back() {
    let mut cluster = Cluster::new(&json!({"spec": with_down()}));
    let texts = [("1".to_owned(), b"CREATE".to_vec()), ("1.down".to_owned(), b"DROP".to_vec())];
    cluster.observed.sources.insert("sql".to_owned(), texts.into());
    // The operator is gone once it has created the Job, and comes back when that is deleted, as the object is then.
    cluster.step(usize::MAX);
    cluster.observed.runs.clear();
    for edit in [json!({"spec": {"suspend": true}}), json!({"metadata": {"deletionTimestamp": DELETED}})] {
        cluster.edit(&edit);
        cluster.observed.sources.clear();
        cluster.settle();
    }
    assert_eq!(cluster.last_purpose(), Purpose::Revert);
    assert_eq!(cluster.told[cluster.created.last().unwrap()]["data"]["000.down.sql"], "DROP");
}

#[test]
fn a_doubt_is_taken_back_whatever_became_of_the_runs_after_it() {
    let mut cluster = Cluster::new(&json!({"spec": with_down()}));
    let texts = [("1".to_owned(), b"CREATE".to_vec()), ("1.down".to_owned(), b"DROP".to_vec())];
    cluster.observed.sources.insert("sql".to_owned(), texts.into());
    cluster.settle();
    cluster.end_as(|result| {
        failure(Class::Connection)(result);
        result.outcome = result::Outcome::InDoubt;
        result.in_doubt =
            Some(result::InDoubt { id: "1".to_owned(), statement: 1, run: Some("r".to_owned()) });
    });
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/resolve": "1=applied"}}}));
    cluster.settle();
    cluster.end_as(|result| {
        failure(Class::Connection)(result);
        (result.server, result.plan) = (None, None);
    });
    cluster.later(1.minutes());
    cluster.observed.sources.clear();
    cluster.edit(&json!({"metadata": {"deletionTimestamp": DELETED}}));
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Revert);
}

#[test]
fn what_was_planned_since_is_not_taken_back() {
    let mut cluster = applied(&json!({}));
    cluster.edit(&json!({"spec": {"mode": "Plan"}}));
    let edited = [("1".to_owned(), b"CREATE".to_vec()), ("1.down".to_owned(), b"DROP ALL".to_vec())];
    cluster.observed.sources.insert("sql".to_owned(), edited.into());
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Plan);
    cluster.end_as(|result| *result = said(result::Outcome::Planned, 1, &[]));
    cluster.observed.runs.clear();
    cluster.settle();
    cluster.observed.sources.clear();
    cluster.edit(&json!({"metadata": {"deletionTimestamp": DELETED}}));
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Revert);
    assert_eq!(cluster.told[cluster.created.last().unwrap()]["data"]["000.down.sql"], "DROP");
}

#[test]
fn a_down_script_in_a_secret_is_compared_by_its_run() {
    let secret = |key: &str| json!({"secretKeyRef": {"name": "sql", "key": key}});
    let scripts = json!([{"id": "1", "kind": "Schema", "up": secret("up"), "down": secret("down")}]);
    let mut cluster =
        Cluster::new(&json!({"spec": {"approval": {"required": true}, "deletionPolicy": "Revert",
        "scripts": scripts}}));
    cluster.settle();
    cluster.end_as(|result| *result = said(result::Outcome::Planned, 0, &["1"]));
    let hash = cluster.approval_asked_for().unwrap();
    cluster.edit(&json!({"spec": {"approval": {"planHash": hash}}}));
    cluster.settle();
    cluster.end_as(|result| result.applied_now = 1);
    cluster.edit(&json!({"metadata": {"deletionTimestamp": DELETED}}));
    cluster.settle();
    let plan = cluster.end_as(failure(Class::Syntax));
    is(&plan, Phase::Failed, "False", "RevertFailed");
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "corrected"}}}));
    is(&cluster.settle(), Phase::Reverting, "False", "Reverting");
    assert_eq!(cluster.assignment().approved_plan_hash, Some(hash));
}
