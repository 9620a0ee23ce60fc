//! A script whose end is not known, and the person who says what became of it.

use super::*;
use crate::kinds::databasemigration::assignment::Resolution;

/// The run finds the doubt that an earlier run has left.
fn in_doubt(result: &mut RunResult) {
    left_by("u1.1")(result);
}

/// The run finds a doubt that this one has left.
fn left_by(run: &str) -> impl FnOnce(&mut RunResult) {
    move |result| {
        result.outcome = result::Outcome::InDoubt;
        let run = Some(run.to_owned());
        result.in_doubt = Some(result::InDoubt { id: "002".to_owned(), statement: 1, run });
    }
}

fn says(cluster: &mut Cluster, word: &str) -> Plan {
    let word = if word.is_empty() { Value::Null } else { json!(word) };
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/resolve": word}}}));
    cluster.settle()
}

#[test]
fn a_script_in_doubt_waits_for_a_person_and_each_word_counts_once() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    let plan = cluster.end_as(in_doubt);
    is(&plan, Phase::InDoubt, "False", "InDoubt");
    assert!(ready(&plan).2.contains("gatehouse.dev/resolve=002=applied"));
    for word in ["002=perhaps", "999=applied", "002"] {
        cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/resolve": word}}}));
        is(&cluster.settle(), Phase::InDoubt, "False", "InDoubt");
    }
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/resolve": "002=retry"}}}));
    is(&cluster.settle(), Phase::Running, "False", "Running");
    is(&cluster.end_as(in_doubt), Phase::InDoubt, "False", "InDoubt");
    assert_eq!(cluster.created.len(), 2, "the word was for the doubt before");
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "1"}}}));
    cluster.settle();
    is(&cluster.end_as(in_doubt), Phase::InDoubt, "False", "InDoubt");
    assert_eq!(cluster.created.len(), 3);
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/resolve": "002=applied"}}}));
    cluster.settle();
    is(&cluster.end_as(|_| ()), Phase::Succeeded, "True", "Applied");
    assert_eq!(cluster.created.len(), 4);
}

#[test]
fn a_doubt_names_the_line_and_the_kind_of_its_statement() {
    let found = "it is not known how the statement in line 7 (CALL) ended: look whether it took effect";
    let lost = "the connection broke off in line 12";
    for (message, statement, expected) in [
        (found, 1, "whether statement 1 in line 7 (CALL) was carried out"),
        (lost, 1, "whether statement 1 in line 12 was carried out"),
        ("the connection broke off", 1, "whether statement 1 was carried out"),
        ("it failed in line ups", 1, "whether statement 1 was carried out"),
        // The refused statement is not the statement in doubt.
        (found, 2, "whether statement 1 was carried out"),
    ] {
        let mut cluster = Cluster::new(&json!({}));
        cluster.settle();
        let plan = cluster.end_as(|result| {
            failure(Class::Connection)(result);
            in_doubt(result);
            let error = result.last_error.as_mut().unwrap();
            (error.message, error.statement) = (message.to_owned(), Some(statement));
        });
        is(&plan, Phase::InDoubt, "False", "InDoubt");
        let reported = ready(&plan).2;
        assert!(reported.contains(expected), "{message}, {statement}: {reported}");
    }
}

#[test]
fn a_word_that_no_run_came_to_is_not_used_up() {
    for class in [Class::Connection, Class::Busy] {
        let mut cluster = Cluster::new(&json!({}));
        cluster.settle();
        cluster.end_as(in_doubt);
        is(&says(&mut cluster, "002=retry"), Phase::Running, "False", "Running");
        let plan = cluster.end_as(|result| {
            failure(class)(result);
            result.plan = None;
        });
        is(&plan, Phase::Pending, "False", "BackingOff");
        cluster.later(1.minutes());
        cluster.settle();
        // It still finds the doubt, and the word settles it.
        is(&cluster.end_as(in_doubt), Phase::Running, "False", "Running");
        assert_eq!(cluster.assignment().resolve.unwrap().id, "002", "{class:?}");
    }
}

#[test]
fn a_word_that_a_plan_goes_by_is_not_used_up() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    cluster.end_as(in_doubt);
    cluster.edit(&json!({"spec": {"mode": "Plan"}}));
    cluster.settle();
    is(&cluster.end_as(in_doubt), Phase::InDoubt, "False", "InDoubt");
    says(&mut cluster, "002=retry");
    assert_eq!((cluster.last_purpose(), cluster.created.len()), (Purpose::Plan, 3));
    let plan = cluster.end_as(|result| *result = said(result::Outcome::Planned, 0, &["001", "002"]));
    is(&plan, Phase::Succeeded, "True", "Planned");
    assert!(plan.status.applied_snapshot.is_some(), "the doubt is as it was");
    // The run that applies finds the doubt, and the next one goes by the word without a person being asked again.
    cluster.edit(&json!({"spec": {"mode": "Apply"}}));
    cluster.settle();
    is(&cluster.end_as(in_doubt), Phase::Running, "False", "Running");
    assert_eq!(cluster.assignment().resolve.unwrap().resolution, Resolution::Retry);
    is(&cluster.end_as(|_| ()), Phase::Succeeded, "True", "Applied");
    assert_eq!(cluster.created.len(), 5);
}

#[test]
fn a_plan_that_a_word_does_not_help_is_not_made_again_for_it() {
    let mut cluster = Cluster::new(&json!({"spec": {"mode": "Plan"}}));
    cluster.settle();
    cluster.end_as(in_doubt);
    says(&mut cluster, "002=retry");
    is(&cluster.end_as(in_doubt), Phase::InDoubt, "False", "InDoubt");
    assert_eq!(cluster.created.len(), 2);
}

#[test]
fn a_word_that_was_used_counts_again_once_it_was_taken_away() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    cluster.end_as(in_doubt);
    says(&mut cluster, "002=retry");
    let plan = cluster.end_as(in_doubt);
    is(&plan, Phase::InDoubt, "False", "InDoubt");
    assert!(ready(&plan).2.contains("decides nothing"), "{:?}", ready(&plan));
    is(&says(&mut cluster, ""), Phase::InDoubt, "False", "InDoubt");
    is(&says(&mut cluster, "002=retry"), Phase::Running, "False", "Running");
}

#[test]
fn a_word_that_was_corrected_is_the_one_that_counts() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    cluster.end_as(in_doubt);
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/resolve": "002=applied"}}}));
    // The process ends between what the run reads and its Job.
    let plan = cluster.step(0);
    cluster.carry_out(plan.actions.iter().find(|one| matches!(one, Action::CreateSnapshot(_))).unwrap());
    says(&mut cluster, "002=retry");
    assert_eq!(cluster.assignment().resolve.unwrap().resolution, Resolution::Retry);
}

#[test]
fn a_word_settles_one_doubt_and_not_the_one_after_it() {
    // The connection breaks again in the middle of the script, or the Job is deleted while the run is at work.
    let breaks: fn(&mut Cluster) -> Plan = |cluster| {
        cluster.end_as(|result| {
            failure(Class::Connection)(result);
            in_doubt(result);
        })
    };
    let is_deleted: fn(&mut Cluster) -> Plan = |cluster| {
        cluster.observed.runs.clear();
        cluster.settle();
        cluster.later(1.minutes());
        cluster.settle();
        assert_eq!(cluster.assignment().resolve, None);
        cluster.end_as(in_doubt)
    };
    for ends in [breaks, is_deleted] {
        let mut cluster = Cluster::new(&json!({}));
        cluster.settle();
        cluster.end_as(in_doubt);
        is(&says(&mut cluster, "002=retry"), Phase::Running, "False", "Running");
        is(&ends(&mut cluster), Phase::InDoubt, "False", "InDoubt");
    }
}

#[test]
fn an_answer_that_was_there_before_the_doubt_decides_nothing() {
    let stale = json!({"metadata": {"annotations": {"gatehouse.dev/resolve": "002=applied"}}});
    // The run says that it has left the doubt, or dies, and the next one finds that.
    for dies in [false, true] {
        let mut cluster = Cluster::new(&stale);
        cluster.settle();
        if dies {
            is(&cluster.end(Ending::Silent("killed".to_owned())), Phase::Pending, "False", "BackingOff");
            cluster.later(1.minutes());
            cluster.settle();
        }
        let runs = cluster.created.len();
        let plan = cluster.end_as(in_doubt);
        is(&plan, Phase::InDoubt, "False", "InDoubt");
        assert_eq!(cluster.created.len(), runs, "nothing is run");
        let mark = format!("u1-{runs}");
        let message = ready(&plan).2;
        for part in ["was there before this doubt", &format!("write @{mark} behind the answer")] {
            assert!(message.contains(part), "{message}");
        }
        cluster.later(25.hours());
        is(&cluster.settle(), Phase::InDoubt, "False", "InDoubt");
        // The same word counts with anything behind it, or once the annotation has been without it.
        if dies {
            is(&says(&mut cluster, &format!("002=retry@{mark}")), Phase::Running, "False", "Running");
            assert_eq!(cluster.assignment().resolve.unwrap().resolution, Resolution::Retry);
        } else {
            is(&says(&mut cluster, ""), Phase::InDoubt, "False", "InDoubt");
            is(&says(&mut cluster, "002=applied"), Phase::Running, "False", "Running");
        }
    }
}

#[test]
fn an_answer_that_was_corrected_too_late_is_not_about_the_next_doubt() {
    // The run that goes by the first word leaves a doubt of its own, and says so or dies.
    for dies in [false, true] {
        let mut cluster = Cluster::new(&json!({}));
        cluster.settle();
        cluster.end_as(in_doubt);
        is(&says(&mut cluster, "002=retry"), Phase::Running, "False", "Running");
        is(&says(&mut cluster, "002=applied"), Phase::Running, "False", "Running");
        if dies {
            cluster.end(Ending::Silent("killed".to_owned()));
            cluster.later(1.minutes());
            cluster.settle();
        }
        let runs = cluster.created.len();
        is(&cluster.end_as(left_by("u1.2")), Phase::InDoubt, "False", "InDoubt");
        assert_eq!(cluster.created.len(), runs);
        is(&says(&mut cluster, "002=applied@again"), Phase::Running, "False", "Running");
    }
}

#[test]
fn a_doubt_that_a_run_did_not_come_to_is_known_as_before() {
    let at = |class, id: Option<&str>| {
        let mut cluster = Cluster::new(&json!({}));
        cluster.settle();
        cluster.end_as(in_doubt);
        is(&says(&mut cluster, "002=applied"), Phase::Running, "False", "Running");
        let id = id.map(str::to_owned);
        let plan = cluster.end_as(|result| {
            failure(class)(result);
            result.last_error.as_mut().unwrap().id = id;
        });
        let known = plan.status.last_run.as_ref().unwrap().doubt.clone();
        let history = find(plan.status.conditions.as_ref().unwrap(), "HistoryConsistent").unwrap();
        assert_eq!(history.status == "True", known.is_none(), "{class:?}: {history:?}");
        (cluster, known)
    };
    for class in [Class::Interrupted, Class::LockTimeout, Class::Connection] {
        assert_eq!(at(class, None).1.as_deref(), Some("u1.1"), "{class:?}");
    }
    assert_eq!(at(Class::Syntax, Some("002")).1, None, "its statement was refused, and the doubt is over");
    // The message asks for another answer, which is about the same doubt.
    let (mut cluster, known) = at(Class::InvalidIndex, Some("002"));
    assert_eq!(known.as_deref(), Some("u1.1"));
    says(&mut cluster, "002=retry");
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "1"}}}));
    cluster.settle();
    is(&cluster.end_as(in_doubt), Phase::Running, "False", "Running");
    assert_eq!(cluster.assignment().resolve.unwrap().resolution, Resolution::Retry);
}

#[test]
fn a_report_that_does_not_say_which_run_left_a_doubt_is_about_a_new_one() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    cluster.end_as(in_doubt);
    is(&says(&mut cluster, "002=retry"), Phase::Running, "False", "Running");
    let plan = cluster.end_as(|result| {
        in_doubt(result);
        result.in_doubt.as_mut().unwrap().run = None;
    });
    is(&plan, Phase::InDoubt, "False", "InDoubt");
    assert_eq!(cluster.created.len(), 2);
}

#[test]
fn what_is_behind_an_answer_is_of_no_meaning_and_short() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    cluster.end_as(in_doubt);
    for word in
        [format!("002=retry@{}", "a".repeat(65)), "002=perhaps@1".to_owned(), "002@1=retry".to_owned()]
    {
        is(&says(&mut cluster, &word), Phase::InDoubt, "False", "InDoubt");
    }
    is(&says(&mut cluster, "002=retry@a=b@c"), Phase::Running, "False", "Running");
}
