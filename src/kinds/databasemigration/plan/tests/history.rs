//! What the condition HistoryConsistent says: what the last run found.

use super::*;

/// The condition, after a run that ended so.
fn consistent(plan: &Plan) -> (String, String) {
    let found = find(plan.status.conditions.as_ref().unwrap(), "HistoryConsistent").unwrap().clone();
    (found.status, found.reason)
}

#[track_caller]
fn says(plan: &Plan, status: &str, reason: &str) {
    assert_eq!(consistent(plan), (status.to_owned(), reason.to_owned()));
}

fn edits(cluster: &mut Cluster) {
    let number = cluster.created.len().to_string();
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": number}}}));
    cluster.settle();
}

#[test]
fn a_run_that_fails_at_a_script_has_found_the_history_consistent() {
    for class in [Class::Constraint, Class::LockTimeout] {
        let mut cluster = Cluster::new(&json!({}));
        says(&cluster.settle(), "Unknown", "NotRead");
        says(&cluster.end_as(failure(class)), "True", "Consistent");
    }
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    says(
        &cluster.end_as(blocked(result::BlockedReason::ChecksumMismatch, "edited")),
        "False",
        "ChecksumMismatch",
    );
    // The edit is undone, and another script fails.
    edits(&mut cluster);
    says(&cluster.end_as(failure(Class::Syntax)), "True", "Consistent");
    // A run that did not come to the history found nothing.
    for finds_nothing in [true, false] {
        edits(&mut cluster);
        says(&cluster.end_as(blocked(result::BlockedReason::OutOfOrder, "late")), "False", "OutOfOrder");
        edits(&mut cluster);
        let plan = if finds_nothing {
            cluster.end(Ending::Silent("evicted".to_owned()))
        } else {
            cluster.end_as(|result| {
                failure(Class::Connection)(result);
                (result.server, result.plan) = (None, None);
            })
        };
        says(&plan, "False", "OutOfOrder");
    }
}

#[test]
fn a_run_that_was_late_has_found_what_it_reports() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    let mut result = said(result::Outcome::Failed, 1, &["001", "002"]);
    failure(Class::Interrupted)(&mut result);
    let plan = cluster.end(Ending::Late(Some(Box::new(result))));
    says(&plan, "True", "Consistent");
    assert!(condition::holds(plan.status.conditions.as_ref().unwrap(), "DatabaseReachable"));
}

#[test]
fn scripts_that_are_missing_make_it_inconsistent_until_they_are_there() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    says(&cluster.end_as(|_| ()), "True", "Consistent");
    cluster.later(25.hours());
    cluster.settle();
    let read =
        |applied, pending: &[&str]| Ending::Said(Box::new(said(result::Outcome::Planned, applied, pending)));
    says(&cluster.end(read(1, &["002"])), "False", "HistoryDiverged");
    cluster.edit(&json!({"spec": {"mode": "Plan"}}));
    cluster.settle();
    says(&cluster.end(read(1, &["002"])), "False", "HistoryDiverged");
    edits(&mut cluster);
    says(&cluster.end(read(2, &[])), "True", "Consistent");
}

#[test]
fn a_doubt_stays_one_while_a_plan_goes_by_an_answer() {
    let mut cluster = Cluster::new(&json!({"spec": {"mode": "Plan"}}));
    cluster.settle();
    let plan = cluster.end_as(|result| {
        (result.outcome, result.plan) = (result::Outcome::InDoubt, None);
        let run = Some("u0.1".to_owned());
        result.in_doubt = Some(result::InDoubt { id: "002".to_owned(), statement: 1, run });
    });
    says(&plan, "False", "InDoubt");
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/resolve": "002=retry"}}}));
    cluster.settle();
    let plan = cluster.end(Ending::Said(Box::new(said(result::Outcome::Planned, 1, &["002"]))));
    is(&plan, Phase::Succeeded, "True", "Planned");
    says(&plan, "False", "InDoubt");
}
