//! Nothing but an approved plan is run, where approval is required.

use super::*;

#[test]
fn nothing_is_run_without_approval() {
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
    let before = cluster.observed.sources.insert("sql".to_owned(), edited).unwrap();
    cluster.settle();
    assert_eq!((cluster.created.len(), cluster.last_purpose()), (2, Purpose::Plan));
    cluster.end_as(|result| *result = said(result::Outcome::Planned, 0, &["001", "002"]));
    cluster.edit(&json!({"spec": {"approval": {"planHash": hash}}}));
    is(&cluster.settle(), Phase::AwaitingApproval, "False", "AwaitingApproval");
    cluster.observed.sources.insert("sql".to_owned(), before);
    let plan = cluster.settle();
    is(&plan, Phase::Running, "False", "Running");
    assert_eq!(cluster.last_purpose(), Purpose::Apply);
    assert!(condition::holds(plan.status.conditions.as_ref().unwrap(), "Approved"));
    is(&cluster.end_as(|_| ()), Phase::Succeeded, "True", "Applied");
}

#[test]
fn a_plan_with_a_secret_is_approved_by_the_hash_that_a_run_has_found() {
    let secret = json!([{"id": "1", "kind": "Schema", "up": {"secretKeyRef": {"name": "sql", "key": "1"}}}]);
    let mut cluster = Cluster::new(&json!({"spec": {"approval": {"required": true}, "scripts": secret}}));
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Plan);
    cluster.end_as(|result| *result = said(result::Outcome::Planned, 0, &["1"]));
    let hash = cluster.approval_asked_for().unwrap();
    cluster.edit(&json!({"spec": {"approval": {"planHash": hash}}}));
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Apply);
    let plan = cluster.plan();
    assert!(plan.actions.is_empty());
}

/// One whose plan is approved, and which waits for another migration; the hash of the plan.
fn approved() -> (Cluster, String) {
    let waits = json!({"spec": {"approval": {"required": true}, "requires": [{"name": "base"}]}});
    let mut cluster = Cluster::new(&waits);
    cluster.observed.required.insert(
        "base".to_owned(),
        Required { is_ready: true, applies: true, is_waiting: false, ids: Vec::new() },
    );
    cluster.settle();
    cluster.end_as(|result| *result = said(result::Outcome::Planned, 0, &["001", "002"]));
    let hash = cluster.approval_asked_for().unwrap();
    cluster.observed.required.clear();
    cluster.edit(&json!({"spec": {"approval": {"planHash": hash}}}));
    let plan = cluster.settle();
    is(&plan, Phase::Pending, "False", "RequirementNotReady");
    assert!(is_said_to_be_approved(&plan), "what is held up is approved");
    (cluster, hash)
}

fn is_said_to_be_approved(plan: &Plan) -> bool {
    condition::holds(plan.status.conditions.as_ref().unwrap(), "Approved")
}

fn base_is_ready(cluster: &mut Cluster) -> Plan {
    let ready = Required { is_ready: true, applies: true, is_waiting: false, ids: Vec::new() };
    cluster.observed.required.insert("base".to_owned(), ready);
    cluster.settle()
}

#[test]
fn what_was_approved_runs_whatever_becomes_of_where_it_came_from() {
    for edited in [Some(b"DROP".to_vec()), None] {
        let (mut cluster, hash) = approved();
        // The Job that made the plan goes, and the source changes or goes.
        cluster.observed.runs.clear();
        cluster.observed.sources.clear();
        let keys = edited.map(|text| [("002.sql".to_owned(), text)].into());
        cluster.observed.sources.extend(keys.map(|keys| ("sql".to_owned(), keys)));
        is(&cluster.settle(), Phase::Pending, "False", "RequirementNotReady");
        is(&base_is_ready(&mut cluster), Phase::Running, "False", "Running");
        assert_eq!(cluster.last_purpose(), Purpose::Apply);
        assert_eq!(cluster.told[cluster.created.last().unwrap()]["data"]["001.up.sql"], "INSERT");
        assert_eq!(cluster.assignment().approved_plan_hash, Some(hash));
        // A passing failure changes nothing about that.
        cluster.end_as(failure(Class::LockTimeout));
        cluster.later(1.minutes());
        cluster.settle();
        assert_eq!(cluster.told[cluster.created.last().unwrap()]["data"]["001.up.sql"], "INSERT");
    }
}

#[test]
fn another_run_that_is_asked_for_is_one_of_what_was_approved() {
    let (mut cluster, hash) = approved();
    let edited = [("002.sql".to_owned(), b"DROP".to_vec())].into();
    cluster.observed.sources.insert("sql".to_owned(), edited);
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "1"}}}));
    is(&base_is_ready(&mut cluster), Phase::Running, "False", "Running");
    assert_eq!(
        (cluster.last_purpose(), cluster.assignment().approved_plan_hash),
        (Purpose::Apply, Some(hash))
    );
    // Where the run failed for a passing reason, a person need not wait for the next attempt.
    cluster.end_as(failure(Class::LockTimeout));
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "2"}}}));
    is(&cluster.settle(), Phase::Running, "False", "Running");
    assert_eq!(cluster.last_purpose(), Purpose::Apply);
    assert_eq!(cluster.told[cluster.created.last().unwrap()]["data"]["001.up.sql"], "INSERT");
}

#[test]
fn what_an_edit_of_the_object_or_a_failure_asks_for_has_to_be_approved_again() {
    let (mut cluster, _) = approved();
    let mut scripts = json!(cluster.object.spec.scripts);
    scripts[0]["up"]["inline"] = json!("CREATE TABLE other (b int)");
    cluster.edit(&json!({"spec": {"scripts": scripts}}));
    assert!(!is_said_to_be_approved(&cluster.settle()), "that text was not approved");
    base_is_ready(&mut cluster);
    assert_eq!(cluster.last_purpose(), Purpose::Plan, "another text of its own is another plan");

    let (mut cluster, _) = approved();
    base_is_ready(&mut cluster);
    is(&cluster.end_as(failure(Class::Syntax)), Phase::Failed, "False", "ScriptFailed");
    let corrected = [("002.sql".to_owned(), b"INSERT INTO a".to_vec())].into();
    cluster.observed.sources.insert("sql".to_owned(), corrected);
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Plan, "what was approved has failed");
}

#[test]
fn a_plan_that_was_not_made_is_nothing_to_approve() {
    let planning = || {
        let mut cluster = Cluster::new(&json!({"spec": {"approval": {"required": true}}}));
        cluster.settle();
        cluster
    };
    let mut cluster = planning();
    let plan = cluster.end_as(|result| {
        failure(Class::Connection)(result);
        result.server = None;
    });
    is(&plan, Phase::Pending, "False", "BackingOff");
    cluster.later(1.minutes());
    cluster.settle();
    assert_eq!((cluster.created.len(), cluster.last_purpose()), (2, Purpose::Plan), "it is tried again");
    let plan = planning().end_as(failure(Class::Authentication));
    is(&plan, Phase::Failed, "False", "NotReached");
    let plan = planning().end_as(blocked(result::BlockedReason::ChecksumMismatch, "edited"));
    is(&plan, Phase::Blocked, "False", "ChecksumMismatch");
}

#[test]
fn another_config_map_means_other_texts() {
    let (mut cluster, _) = approved();
    let mut scripts = json!(cluster.object.spec.scripts);
    scripts[1]["up"]["configMapKeyRef"]["name"] = json!("sql-2");
    let corrected = [("002.sql".to_owned(), b"INSERT INTO a".to_vec())].into();
    cluster.observed.sources.insert("sql-2".to_owned(), corrected);
    cluster.edit(&json!({"spec": {"scripts": scripts}}));
    base_is_ready(&mut cluster);
    assert_eq!(cluster.last_purpose(), Purpose::Plan);
}

#[test]
fn a_plan_that_comes_to_nothing_does_not_have_the_one_before_run_again() {
    let (mut cluster, _) = approved();
    base_is_ready(&mut cluster);
    is(&cluster.end_as(|_| ()), Phase::Succeeded, "True", "Applied");
    // An applied script is edited: the run that plans finds that, and makes no plan.
    let text = [("002.sql".to_owned(), b"INSERT INTO a".to_vec())].into();
    cluster.observed.sources.insert("sql".to_owned(), text);
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Plan);
    let runs = cluster.created.len();
    let plan = cluster.end_as(|result| {
        blocked(result::BlockedReason::ChecksumMismatch, "edited")(result);
        result.plan = None;
    });
    is(&plan, Phase::Blocked, "False", "ChecksumMismatch");
    assert_eq!(cluster.created.len(), runs);
}

#[test]
fn what_was_approved_counts_no_longer_once_its_run_is_over() {
    let edit = |cluster: &mut Cluster| {
        let text = [("002.sql".to_owned(), b"INSERT INTO a".to_vec())].into();
        cluster.observed.sources.insert("sql".to_owned(), text);
        cluster.settle();
        cluster.last_purpose()
    };
    // Its runs have failed as often as they may.
    let (mut cluster, _) = approved();
    cluster.edit(&json!({"spec": {"retry": {"limit": 0}}}));
    base_is_ready(&mut cluster);
    is(&cluster.end_as(failure(Class::Connection)), Phase::Failed, "False", "RetriesExhausted");
    assert_eq!(edit(&mut cluster), Purpose::Plan);
    // It is applied, and the daily look failed.
    let (mut cluster, _) = approved();
    base_is_ready(&mut cluster);
    is(&cluster.end_as(|_| ()), Phase::Succeeded, "True", "Applied");
    cluster.later(25.hours());
    cluster.settle();
    assert_eq!(cluster.last_purpose(), Purpose::Verify);
    cluster.end_as(failure(Class::Connection));
    assert_eq!(edit(&mut cluster), Purpose::Plan);
    // Only the plan is asked for now.
    let (mut cluster, _) = approved();
    base_is_ready(&mut cluster);
    cluster.end_as(|_| ());
    cluster.edit(&json!({"spec": {"mode": "Plan"}}));
    cluster.settle();
    cluster.end_as(|result| *result = said(result::Outcome::Planned, 2, &[]));
    let runs = cluster.created.len();
    assert_eq!((edit(&mut cluster), cluster.created.len()), (Purpose::Plan, runs + 1));
}
