//! What was applied, looked for again.

use super::*;
use crate::kinds::databasemigration::assignment::Mode;

fn applied() -> Cluster {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    is(&cluster.end_as(|_| ()), Phase::Succeeded, "True", "Applied");
    cluster
}

/// The run that looks, a day later.
fn looking() -> Cluster {
    let mut cluster = applied();
    cluster.later(25.hours());
    let plan = cluster.settle();
    is(&plan, Phase::Succeeded, "True", "Applied");
    assert_eq!((cluster.created.len(), cluster.last_purpose()), (2, Purpose::Verify));
    assert_eq!(plan.status.current_run.unwrap().purpose, "Verify");
    assert_eq!(cluster.object.metadata.finalizers, None, "no deletion waits for it");
    cluster
}

fn read(applied: u32, pending: &'static [&str]) -> Ending {
    Ending::Said(Box::new(said(result::Outcome::Planned, applied, pending)))
}

#[test]
fn a_success_is_looked_at_each_day_and_stays_one_meanwhile() {
    let mut cluster = looking();
    is(&cluster.end(read(2, &[])), Phase::Succeeded, "True", "Applied");
    cluster.later(23.hours());
    cluster.settle();
    assert_eq!(cluster.created.len(), 2);
    cluster.later(2.hours());
    cluster.settle();
    assert_eq!((cluster.created.len(), cluster.last_purpose()), (3, Purpose::Verify));
    let only_reads = Cluster::new(&json!({"spec": {"mode": "Plan"}}));
    for mut cluster in [only_reads, applied()] {
        cluster.edit(&json!({"spec": {"suspend": null}}));
        cluster.settle();
        if cluster.observed.runs.iter().any(|run| run.state == RunState::Active(None)) {
            cluster.end(read(0, &["001", "002"]));
        }
        let runs = cluster.created.len();
        cluster.edit(&json!({"spec": {"suspend": true}}));
        cluster.later(25.hours());
        cluster.settle();
        assert_eq!(cluster.created.len(), runs, "it asks for nothing, or is suspended");
    }
}

#[test]
fn what_is_missing_in_the_history_is_reported_and_applied_only_when_a_person_asks() {
    let mut cluster = looking();
    let plan = cluster.end(read(1, &["002"]));
    is(&plan, Phase::Blocked, "False", "HistoryDiverged");
    assert!(
        ready(&plan).2.starts_with("1 scripts that were applied are not in the history"),
        "{:?}",
        ready(&plan)
    );
    cluster.later(25.hours());
    cluster.settle();
    assert_eq!(cluster.created.len(), 2);
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "restored"}}}));
    cluster.settle();
    assert_eq!((cluster.created.len(), cluster.last_purpose()), (3, Purpose::Apply));
    is(&cluster.end_as(|_| ()), Phase::Succeeded, "True", "Applied");
}

#[test]
fn a_look_whose_pod_is_gone_before_its_job_has_ended_has_said_what_it_said() {
    let doubt: fn(&mut RunResult) = |result| {
        result.outcome = result::Outcome::InDoubt;
        let run = Some("u1.1".to_owned());
        result.in_doubt = Some(result::InDoubt { id: "002".to_owned(), statement: 1, run });
    };
    let lacks: fn(&mut RunResult) = |result| *result = said(result::Outcome::Planned, 1, &["002"]);
    for (ends, reason) in [(doubt, "InDoubt"), (lacks, "HistoryDiverged")] {
        let mut cluster = looking();
        let before = cluster.end_as(ends);
        assert_eq!((ready(&before).0, ready(&before).1), ("False".to_owned(), reason.to_owned()));
        // The Job controller deletes the pod first, and ends the Job afterwards.
        cluster.observed.runs.last_mut().unwrap().state = RunState::Active(None);
        assert_eq!(ready(&cluster.settle()), ready(&before));
    }
}

#[test]
fn a_script_that_was_edited_behind_our_back_is_reported() {
    let mut cluster = looking();
    let plan = cluster.end_as(blocked(result::BlockedReason::ChecksumMismatch, "edited"));
    is(&plan, Phase::Blocked, "False", "ChecksumMismatch");
}

#[test]
fn a_server_that_does_not_answer_undoes_no_success() {
    let mut cluster = looking();
    let plan = cluster.end_as(failure(Class::Connection));
    is(&plan, Phase::Succeeded, "True", "Applied");
    assert!(ready(&plan).2.contains("the last look at the history failed"), "{:?}", ready(&plan));
    cluster.later(50.minutes());
    cluster.settle();
    assert_eq!(cluster.created.len(), 2);
    cluster.later(11.minutes());
    cluster.settle();
    assert_eq!((cluster.created.len(), cluster.last_purpose()), (3, Purpose::Verify));
    // It is deleted in the middle of that, or its Job is.
    cluster.observed.runs.clear();
    is(&cluster.settle(), Phase::Succeeded, "True", "Applied");
}

#[test]
fn an_edit_is_not_called_applied_while_an_older_look_is_under_way() {
    let mut cluster = looking();
    let scripts = json!([{"id": "001", "kind": "Schema", "up": {"inline": "CREATE TABLE a (b int)"}}]);
    cluster.edit(&json!({"spec": {"scripts": scripts}}));
    is(&cluster.settle(), Phase::Planning, "False", "Planning");
    cluster.end(read(2, &[]));
    assert_eq!(cluster.last_purpose(), Purpose::Apply);
}

/// The process ends between what the next run reads and its Job.
fn ends_before_the_job(cluster: &mut Cluster) {
    let plan = cluster.step(0);
    let made = |action: &&Action| matches!(action, Action::CreateSnapshot(_) | Action::Hold);
    plan.actions.iter().filter(made).for_each(|action| cluster.carry_out(action));
    assert_eq!(plan.actions.len(), plan.actions.iter().filter(made).count() + 1, "the Job is left");
}

#[test]
fn what_a_look_was_to_read_is_not_what_another_run_reads() {
    let asks = |word: &Value| json!({"metadata": {"annotations": {"gatehouse.dev/retry": word}}});
    let mut cluster = applied();
    cluster.later(25.hours());
    ends_before_the_job(&mut cluster);
    cluster.edit(&asks(&json!("restored")));
    cluster.settle();
    assert_eq!((cluster.last_purpose(), cluster.assignment().mode), (Purpose::Apply, Mode::Apply));
    is(&cluster.end_as(|_| ()), Phase::Succeeded, "True", "Applied");
    // The other way round: the wish is taken back, and what follows only reads.
    cluster.later(25.hours());
    cluster.edit(&asks(&json!("again")));
    ends_before_the_job(&mut cluster);
    cluster.edit(&asks(&json!("restored")));
    cluster.settle();
    assert_eq!((cluster.last_purpose(), cluster.assignment().mode), (Purpose::Verify, Mode::Plan));
    assert_eq!(cluster.created.len(), 3);
}

#[test]
fn what_is_missing_is_not_applied_by_an_edit() {
    let appended = json!([
        {"id": "001", "kind": "Schema", "up": {"inline": "CREATE TABLE a (b int)"}},
        {"id": "002", "kind": "Data", "up": {"configMapKeyRef": {"name": "sql", "key": "002.sql"}}},
        {"id": "003", "kind": "Data", "up": {"inline": "SELECT 1"}},
    ]);
    let retried = json!({"metadata": {"annotations": {"gatehouse.dev/retry": "once"}}});
    let edits: [&[Value]; 7] = [
        &[json!({"spec": {"scripts": appended}})],
        &[json!({"spec": {"outOfOrder": "Allow"}})],
        &[json!({"spec": {"database": {"credentialsSecret": {"name": "other"}}}})],
        &[json!({"spec": {"suspend": true}}), json!({"spec": {"suspend": null}})],
        &[json!({"spec": {"mode": "Plan"}}), json!({"spec": {"mode": "Apply"}})],
        &[json!({"spec": {"mode": "Rehearse"}}), json!({"spec": {"mode": "Apply", "scripts": appended}})],
        &[json!({"metadata": {"annotations": {"gatehouse.dev/retry": null}}})],
    ];
    for edits in edits {
        for is_reached in [true, false] {
            let mut cluster = Cluster::new(&retried);
            cluster.settle();
            cluster.end_as(|_| ());
            cluster.later(25.hours());
            cluster.settle();
            is(&cluster.end(read(1, &["002"])), Phase::Blocked, "False", "HistoryDiverged");
            for edit in edits {
                cluster.edit(edit);
                cluster.settle();
                while cluster.observed.runs.iter().any(|run| run.state == RunState::Active(None)) {
                    assert_ne!(cluster.last_purpose(), Purpose::Apply, "{edit}");
                    if is_reached {
                        cluster.end(read(1, &["002"]));
                    } else {
                        cluster.end(Ending::Silent("evicted".to_owned()));
                    }
                }
            }
            let plan = cluster.settle();
            is(&plan, Phase::Blocked, "False", "HistoryDiverged");
            assert!(ready(&plan).2.contains("gatehouse.dev/retry"), "{:?}", ready(&plan));
            cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "restored"}}}));
            cluster.settle();
            assert_eq!(cluster.last_purpose(), Purpose::Apply, "{edits:?}");
        }
    }
}

#[test]
fn an_annotation_that_is_removed_asks_for_no_run() {
    let mut cluster = Cluster::new(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "1"}}}));
    cluster.settle();
    is(&cluster.end_as(failure(Class::Syntax)), Phase::Failed, "False", "ScriptFailed");
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": null}}}));
    is(&cluster.settle(), Phase::Failed, "False", "ScriptFailed");
    assert_eq!(cluster.created.len(), 1);
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "2"}}}));
    is(&cluster.settle(), Phase::Running, "False", "Running");
    // Where a plan awaits its approval, too.
    let required = json!({"metadata": {"annotations": {"gatehouse.dev/retry": "1"}}, "spec": {"approval": {"required": true}}});
    let mut cluster = Cluster::new(&required);
    cluster.settle();
    cluster.end_as(|result| *result = said(result::Outcome::Planned, 0, &["001", "002"]));
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": null}}}));
    is(&cluster.settle(), Phase::AwaitingApproval, "False", "AwaitingApproval");
    assert_eq!(cluster.created.len(), 1);
}
