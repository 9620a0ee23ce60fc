//! Runs whose report is lost: the history says what they did.

use super::*;

fn read(applied: u32, pending: &'static [&str]) -> Ending {
    Ending::Said(Box::new(said(result::Outcome::Planned, applied, pending)))
}

/// A run that was ended because it was late, and whose pod was gone before its report was read.
fn late(change: &Value) -> Cluster {
    let mut cluster = Cluster::new(change);
    cluster.settle();
    let plan = cluster.end(Ending::Late(None));
    is(&plan, Phase::Planning, "False", "Planning");
    assert_eq!((cluster.created.len(), cluster.last_purpose()), (2, Purpose::Verify));
    let last = plan.status.last_run.unwrap();
    assert_eq!((last.outcome, last.reason.as_deref()), (Outcome::Lost, Some("DeadlineExceeded")));
    assert_eq!(last.unknown_changes, Some(true));
    assert!(!last.message.unwrap().contains("rolled back"), "it is not known");
    cluster
}

#[test]
fn what_a_late_run_did_is_read_in_the_history() {
    let mut cluster = late(&json!({}));
    let plan = cluster.end(read(2, &[]));
    is(&plan, Phase::Succeeded, "True", "Applied");
    assert_eq!((plan.status.applied_count, plan.status.last_run.unwrap().unknown_changes), (Some(2), None));

    let mut cluster = late(&json!({}));
    let plan = cluster.end(read(1, &["002"]));
    is(&plan, Phase::Failed, "False", "DeadlineExceeded");
    assert!(
        ready(&plan).2.ends_with("1 scripts are pending, as the history says since"),
        "{:?}",
        ready(&plan)
    );
    cluster.later(25.hours());
    cluster.settle();
    assert_eq!(cluster.created.len(), 2, "it is not repeated");
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "1"}}}));
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Apply);

    let mut cluster = late(&json!({}));
    let doubt = |result: &mut RunResult| {
        (result.outcome, result.plan) = (result::Outcome::InDoubt, None);
        let run = Some("u1.1".to_owned());
        result.in_doubt = Some(result::InDoubt { id: "002".to_owned(), statement: 1, run });
    };
    is(&cluster.end_as(doubt), Phase::InDoubt, "False", "InDoubt");
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/resolve": "002=applied"}}}));
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Apply);
    assert_eq!(cluster.assignment().resolve.unwrap().id, "002");
}

#[test]
fn the_last_lost_attempt_is_no_failure_until_the_history_says_so() {
    let mut lost = Cluster::new(&json!({"spec": {"retry": {"limit": 1}}}));
    lost.settle();
    is(&lost.end(Ending::Silent("evicted".to_owned())), Phase::Pending, "False", "BackingOff");
    lost.later(1.minutes());
    lost.settle();
    assert_eq!(lost.last_purpose(), Purpose::Apply);
    // The Job is deleted, or its pod ends without a word.
    for is_deleted in [false, true] {
        let mut cluster = Cluster::new(&json!({"spec": {"retry": {"limit": 0}}}));
        cluster.settle();
        if is_deleted {
            cluster.observed.runs.clear();
            cluster.settle();
        } else {
            cluster.end(Ending::Silent("evicted".to_owned()));
        }
        assert_eq!((cluster.created.len(), cluster.last_purpose()), (2, Purpose::Verify));
        let plan = cluster.end(read(1, &["002"]));
        is(&plan, Phase::Failed, "False", "RetriesExhausted");
        cluster.later(25.hours());
        cluster.settle();
        assert_eq!(cluster.created.len(), 2);
    }
}

#[test]
fn a_look_that_fails_is_repeated_and_claims_nothing() {
    let mut cluster = late(&json!({"spec": {"retry": {"limit": 2}}}));
    is(&cluster.end_as(unreached), Phase::Pending, "False", "BackingOff");
    cluster.later(2.minutes());
    cluster.settle();
    assert_eq!((cluster.created.len(), cluster.last_purpose()), (3, Purpose::Verify));
    let plan = cluster.end_as(unreached);
    is(&plan, Phase::Failed, "False", "RetriesExhausted");
    assert!(
        ready(&plan).2.ends_with("what the run before did in the database is not known"),
        "{:?}",
        ready(&plan)
    );
    assert_eq!(plan.status.last_run.unwrap().unknown_changes, Some(true));
    // A look that is under way does not say that all is applied, and neither does an object that waits.
    let mut cluster = late(&json!({}));
    cluster.edit(&json!({"spec": {"suspend": true}}));
    is(&cluster.settle(), Phase::Planning, "False", "Planning");
    is(&cluster.end(Ending::Silent("evicted".to_owned())), Phase::Pending, "False", "BackingOff");
    cluster.later(5.minutes());
    let plan = cluster.settle();
    is(&plan, Phase::Pending, "False", "Suspended");
    assert!(ready(&plan).2.contains("is not known"), "{:?}", ready(&plan));
}

fn unreached(result: &mut RunResult) {
    failure(Class::Connection)(result);
    (result.server, result.plan, result.applied_count) = (None, None, None);
}

#[test]
fn what_the_history_says_is_applied_is_what_a_deletion_takes_back() {
    let scripts = json!([{"id": "1", "kind": "Schema", "up": {"configMapKeyRef": {"name": "sql", "key": "1"}},
        "down": {"configMapKeyRef": {"name": "sql", "key": "1.down"}}}]);
    let mut cluster = Cluster::new(&json!({"spec": {"deletionPolicy": "Revert", "scripts": scripts}}));
    let texts = [("1".to_owned(), b"CREATE".to_vec()), ("1.down".to_owned(), b"DROP".to_vec())];
    cluster.observed.sources.insert("sql".to_owned(), texts.into());
    cluster.settle();
    cluster.end(Ending::Late(None));
    is(&cluster.end(read(1, &[])), Phase::Succeeded, "True", "Applied");
    cluster.observed.sources.clear();
    cluster.observed.runs.clear();
    cluster.settle();
    cluster.edit(&json!({"metadata": {"deletionTimestamp": "2026-11-24T12:00:00Z"}}));
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Revert);
    assert_eq!(cluster.told[cluster.created.last().unwrap()]["data"]["000.down.sql"], "DROP");
    // A run that takes scripts back and is late without a report goes on with what is left.
    is(&cluster.end(Ending::Late(None)), Phase::Pending, "False", "BackingOff");
    cluster.later(1.minutes());
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Revert);
}

#[test]
fn what_changes_nothing_is_late_and_no_more() {
    for mode in ["Plan", "Rehearse"] {
        let mut cluster = Cluster::new(&json!({"spec": {"mode": mode}}));
        cluster.settle();
        is(&cluster.end(Ending::Late(None)), Phase::Failed, "False", "DeadlineExceeded");
        assert_eq!(cluster.created.len(), 1);
    }
}
