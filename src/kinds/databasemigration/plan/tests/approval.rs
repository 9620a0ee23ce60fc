//! Nothing but an approved plan is run, where approval is required.

use super::*;

#[test]
fn nothing_is_run_that_nobody_has_approved() {
    let mut cluster = Cluster::new(&json!({"spec": {"approval": {"required": true}}}));
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Plan);
    let plan = cluster.end_as(|result| *result = said(result::Outcome::Planned, 0, &["001", "002"]));
    is(&plan, Phase::AwaitingApproval, "False", "AwaitingApproval");
    assert_eq!(plan.status.plan.as_ref().unwrap().pending.as_ref().unwrap(), &["001", "002"]);
    let hash = ready(&plan).2.split(' ').nth(1).unwrap().to_owned();
    cluster.later(24.hours());
    cluster.observed.runs.clear();
    cluster.settle();
    assert_eq!(cluster.created.len(), 1);
    cluster.edit(&json!({"spec": {"approval": {"planHash": "0".repeat(64)}}}));
    is(&cluster.settle(), Phase::AwaitingApproval, "False", "AwaitingApproval");
    // Another text is another plan.
    let edited = [("002.sql".to_owned(), b"UPDATE".to_vec())].into();
    let kept = cluster.observed.sources.insert("sql".to_owned(), edited).unwrap();
    cluster.edit(&json!({"spec": {"approval": {"planHash": hash}}}));
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Plan);
    cluster.observed.sources.insert("sql".to_owned(), kept);
    let plan = cluster.end_as(|result| *result = said(result::Outcome::Planned, 0, &["001", "002"]));
    is(&plan, Phase::Running, "False", "Running");
    assert_eq!(cluster.last_purpose(), Purpose::Apply);
    assert!(condition::holds(plan.status.conditions.as_ref().unwrap(), "Approved"));
    is(&cluster.end_as(|_| ()), Phase::Succeeded, "True", "Applied");
}

#[test]
fn a_plan_with_a_secret_is_approved_by_the_hash_that_a_run_has_found() {
    let secret = json!([{"id": "1", "kind": "Schema", "up": {"secretKeyRef": {"name": "sql", "key": "1"}}}]);
    let mut cluster = Cluster::new(
        &json!({"spec": {"approval": {"required": true, "planHash": "f".repeat(64)}, "scripts": secret}}),
    );
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Plan);
    cluster.end_as(|result| *result = said(result::Outcome::Planned, 0, &["1"]));
    assert_eq!(cluster.last_purpose(), Purpose::Apply);
    let plan = cluster.plan();
    assert!(plan.actions.is_empty());
}
