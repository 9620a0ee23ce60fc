//! Runs whose pods do not start, and runs that take too long.

use super::*;

#[test]
fn a_run_that_does_not_start_needs_attention_and_is_tried_again() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    let plan = cluster.waits("ImagePullBackOff: not found");
    is(&plan, Phase::Running, "False", "PodNotStarted");
    assert!(ready(&plan).2.contains("ImagePullBackOff: not found"), "{:?}", ready(&plan));
    assert_eq!(problems(plan.status.conditions.as_ref().unwrap()).count(), 1);
    let plan = cluster.end(Ending::Late(None));
    is(&plan, Phase::Pending, "False", "BackingOff");
    let last = plan.status.last_run.unwrap();
    assert_eq!((last.outcome, last.reason.as_deref()), (Outcome::Lost, Some("PodNotStarted")));
    assert!(last.message.unwrap().contains("it did not run when it was last seen"));
    // The second one starts, and takes too long.
    cluster.later(1.minutes());
    cluster.settle();
    cluster.waits("ContainerCreating");
    cluster.settle();
    let plan = cluster.end(Ending::Late(None));
    is(&plan, Phase::Planning, "False", "Planning");
    assert_eq!(plan.status.last_run.unwrap().reason.as_deref(), Some("DeadlineExceeded"));
}

#[test]
fn a_run_that_was_too_late_is_not_repeated_and_what_it_did_is_known() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    let mut result = said(result::Outcome::Failed, 1, &["001", "002"]);
    failure(Class::Interrupted)(&mut result);
    result.applied_now = 1;
    let plan = cluster.end(Ending::Late(Some(Box::new(result))));
    is(&plan, Phase::Failed, "False", "DeadlineExceeded");
    assert_eq!((plan.status.applied_count, plan.status.pending_count), (Some(1), Some(1)));
    assert_eq!(plan.status.plan.unwrap().pending.unwrap(), ["002"]);
    assert_eq!(plan.status.last_run.unwrap().unknown_changes, None);
}

#[test]
fn what_a_shortened_list_does_not_have_is_still_counted() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    let plan = cluster.end_as(|result| {
        failure(Class::Constraint)(result);
        let plan = result.plan.as_mut().unwrap();
        (plan.pending, plan.pending_count) = (vec!["1".to_owned(), "2".to_owned(), "3".to_owned()], 9);
        result.applied_now = 2;
    });
    assert_eq!(plan.status.pending_count, Some(7));
    assert_eq!(plan.status.plan.unwrap().pending.unwrap(), ["3"], "the others are applied");
}

#[test]
fn without_the_history_nothing_is_said_of_it() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    let plan = cluster.end_as(|result| {
        failure(Class::Connection)(result);
        result.server = None;
    });
    assert_eq!((plan.status.pending_count, plan.status.applied_count, plan.status.plan), (None, None, None));
}

#[test]
fn a_run_that_did_not_come_to_the_history_leaves_what_is_known_of_it() {
    // It waited for the lock until its time was over.
    let waited = |result: &mut RunResult| {
        failure(Class::Busy)(result);
        (result.plan, result.applied_count) = (None, None);
    };
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    let applied =
        [AppliedScript { id: "001".to_owned(), run: Some("r".to_owned()), ..AppliedScript::default() }];
    let before = cluster.end_as(|result| result.applied = applied.to_vec()).status;
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "1"}}}));
    cluster.settle();
    let after = cluster.end_as(waited).status;
    assert_eq!(after.last_run.as_ref().unwrap().outcome, Outcome::Retryable);
    assert_eq!((after.applied_count, &after.applied), (Some(2), &before.applied));
    // Nor does it tell what a run before it has done without a report.
    cluster.later(1.minutes());
    cluster.settle();
    cluster.end(Ending::Silent("evicted".to_owned()));
    cluster.later(2.minutes());
    cluster.settle();
    let after = cluster.end_as(waited).status;
    assert_eq!(after.last_run.unwrap().unknown_changes, Some(true));
}
