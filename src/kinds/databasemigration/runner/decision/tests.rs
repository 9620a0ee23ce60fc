use serde_json::{Value, json};

use super::*;
use crate::kinds::databasemigration::assignment::checksum;
use crate::kinds::databasemigration::runner::scripts::{Text, Way};
use crate::kinds::databasemigration::sql::mysql::modes::Modes;
use crate::kinds::databasemigration::sql::split;

const SCRIPTS: [&str; 3] = ["1", "2", "3"];

fn assignment(change: &Value) -> Assignment {
    let scripts: Vec<_> = SCRIPTS.iter().map(|id| json!({ "id": id, "up": { "file": id } })).collect();
    let mut value = json!({
        "version": 1, "database": { "engine": "MariaDB", "host": "h", "name": "d" },
        "run": { "uid": "now" }, "mode": "Apply", "scripts": scripts,
    });
    for (field, given) in change.as_object().unwrap() {
        value[field] = given.clone();
    }
    Assignment::read(&value.to_string()).unwrap()
}

fn text_of(id: &str) -> String {
    format!("CREATE TABLE t{id} (a int); CREATE TABLE u{id} (a int)")
}

fn loaded(assignment: &Assignment) -> Vec<Loaded> {
    let load = |script: &crate::kinds::databasemigration::assignment::Script| {
        let text = text_of(&script.id);
        let statements = split(assignment.database.engine, &text).unwrap();
        let up = Text {
            checksum: checksum(text.as_bytes()),
            all: text,
            statements,
            way: Way::Statements,
            refusal: None,
            modes: Modes::default(),
        };
        Loaded { script: script.clone(), down: Some(up.clone()), up }
    };
    assignment.scripts.iter().map(load).collect()
}

fn row(id: &str, state: State, statement: u32) -> Row {
    let text = text_of(id);
    let before = &text[..text.find(';').unwrap()];
    Row {
        id: id.to_owned(),
        position: id.parse().unwrap(),
        kind: "Schema".to_owned(),
        checksum: checksum(text.as_bytes()),
        state,
        statement,
        done: (statement == 2).then(|| checksum(before.as_bytes())),
        at: "2026-11-24T21:00:00.000Z".to_owned(),
        duration_ms: None,
        run: "before".to_owned(),
        object: None,
        session: Some("7".to_owned()),
    }
}

fn decided(change: &Value, rows: &[Row], around: &Surroundings) -> Decision {
    let assignment = assignment(change);
    decide(&assignment, &loaded(&assignment), rows, around)
}

fn of(change: &Value, rows: &[Row]) -> Decision {
    decided(change, rows, &Surroundings::default())
}

fn pending(decision: &Decision) -> Vec<(usize, u32)> {
    let Decision::Work(work) = decision else { panic!("no work: {decision:?}") };
    work.pending.iter().map(|one| (one.index, one.from)).collect()
}

fn reason(decision: &Decision) -> (BlockedReason, &str) {
    let Decision::Blocked(blocked) = decision else { panic!("not blocked: {decision:?}") };
    (blocked.reason, blocked.id.as_deref().unwrap_or_default())
}

#[test]
fn what_is_not_applied_is_pending_in_order() {
    assert_eq!(pending(&of(&json!({}), &[])), [(0, 1), (1, 1), (2, 1)]);
    assert_eq!(pending(&of(&json!({}), &[row("1", State::Applied, 2)])), [(1, 1), (2, 1)]);
    let reverted = [row("1", State::Applied, 2), row("2", State::Reverted, 1)];
    assert_eq!(pending(&of(&json!({}), &reverted)), [(1, 1), (2, 1)]);
    let all = SCRIPTS.map(|id| row(id, State::Applied, 2));
    assert_eq!(pending(&of(&json!({}), &all)), []);
}

#[test]
fn an_edited_script_blocks_with_both_checksums_unless_it_is_accepted() {
    let mut edited = row("1", State::Applied, 2);
    edited.checksum = checksum(b"other");
    let decision = of(&json!({}), &[edited.clone()]);
    assert_eq!(reason(&decision), (BlockedReason::ChecksumMismatch, "1"));
    let Decision::Blocked(blocked) = decision else { unreachable!() };
    let found = checksum(text_of("1").as_bytes());
    assert_eq!(
        (blocked.expected, blocked.found.clone()),
        (Some(edited.checksum.clone()), Some(found.clone()))
    );
    assert!(blocked.message.contains(&edited.checksum) && blocked.message.contains(&found));
    let Decision::Work(work) = of(&json!({ "acceptChecksums": { "1": found } }), &[edited]) else {
        panic!("it is accepted")
    };
    assert_eq!(work.repairs, [("1".to_owned(), found)]);
}

#[test]
fn the_list_and_the_history_must_agree() {
    let unknown = [row("9", State::Applied, 2)];
    assert_eq!(reason(&of(&json!({}), &unknown)), (BlockedReason::HistoryDiverged, "9"));
    let late = [row("1", State::Applied, 2), row("3", State::Applied, 2)];
    assert_eq!(reason(&of(&json!({}), &late)), (BlockedReason::OutOfOrder, "2"));
    assert_eq!(pending(&of(&json!({ "outOfOrder": "Allow" }), &late)), [(1, 1)]);
}

#[test]
fn a_baseline_counts_on_first_contact_with_tables_alone() {
    let around = Surroundings { has_tables: true, ..Surroundings::default() };
    let baseline = json!({ "baseline": "2" });
    let Decision::Work(work) = decided(&baseline, &[], &around) else { panic!("there is work") };
    assert_eq!((work.baseline, work.pending.len()), (vec!["1".to_owned(), "2".to_owned()], 1));
    assert_eq!(pending(&of(&baseline, &[])).len(), 3, "an empty database gets everything");
    let Decision::Work(work) = decided(&json!({}), &[], &around) else { panic!("there is work") };
    assert_eq!(work.warnings.len(), 1);
    // Without a baseline, the first try met the tables that there are, and left nothing.
    let failed = [row("1", State::Failed, 1)];
    let Decision::Work(work) = decided(&baseline, &failed, &around) else { panic!("there is work") };
    assert_eq!((work.baseline, work.pending.len()), (vec!["1".to_owned(), "2".to_owned()], 1));
    assert_eq!(pending(&of(&baseline, &failed)).len(), 3, "it failed on an empty database");
}

#[test]
fn a_baseline_that_does_not_count_is_refused_or_for_an_object_reported() {
    let around = Surroundings { has_tables: true, ..Surroundings::default() };
    let object = json!({ "baseline": "2", "object": { "namespace": "a", "name": "shop", "uid": "u1" } });
    for known in [row("1", State::Applied, 2), row("1", State::Failed, 2), row("1", State::Reverted, 1)] {
        let refused = decided(&json!({ "baseline": "2" }), std::slice::from_ref(&known), &around);
        assert_eq!(reason(&refused).0, BlockedReason::BaselineIgnored, "{known:?}");
        let Decision::Work(work) = decided(&object, &[known], &around) else { panic!("it goes on") };
        assert!(work.baseline.is_empty() && work.warnings.len() == 1, "{work:?}");
    }
    let all = ["1", "2"].map(|id| row(id, State::Baseline, 1));
    assert_eq!(pending(&decided(&json!({ "baseline": "2" }), &all, &around)), [(2, 1)], "it has counted");
}

#[test]
fn tables_without_a_history_need_a_baseline_or_the_word_that_there_is_none() {
    let older = Some("shop.orders".to_owned());
    let around = Surroundings { has_tables: true, older_table: older, ..Surroundings::default() };
    let refused = decided(&json!({}), &[], &around);
    assert_eq!(reason(&refused).0, BlockedReason::BaselineRequired);
    let Decision::Work(work) = decided(&json!({ "existingTables": "Ignore" }), &[], &around) else {
        panic!("all run")
    };
    assert_eq!((work.pending.len(), work.warnings.len()), (3, 1));
    let Decision::Work(work) = decided(&json!({ "baseline": "3" }), &[], &around) else {
        panic!("none runs")
    };
    assert_eq!((work.baseline.len(), work.pending.len()), (3, 0));
}

#[test]
fn what_cannot_run_is_refused_where_it_is_to_run() {
    let assignment = assignment(&json!({}));
    let mut scripts = loaded(&assignment);
    scripts[0].up.refusal = Some("script 1 has a COMMIT".to_owned());
    let around = Surroundings::default();
    let decided = |scripts: &[Loaded], rows: &[Row]| decide(&assignment, scripts, rows, &around);
    assert_eq!(reason(&decided(&scripts, &[])), (BlockedReason::NotRunnable, "1"));
    assert_eq!(pending(&decided(&scripts, &[row("1", State::Applied, 2)])), [(1, 1), (2, 1)]);
    let down = scripts[1].down.as_mut().unwrap();
    down.refusal = Some("the down script of 2 has a COMMIT".to_owned());
    assert_eq!(reason(&decided(&scripts, &[row("1", State::Applied, 2)])), (BlockedReason::NotRunnable, "2"));
    scripts[1].down.as_mut().unwrap().all.clear();
    assert_eq!(
        pending(&decided(&scripts, &[row("1", State::Baseline, 1)])),
        [(1, 1), (2, 1)],
        "an empty one"
    );
}

#[test]
fn a_script_whose_end_is_not_known_waits_for_a_word() {
    let running = [row("1", State::Running, 2)];
    let in_doubt = left_in_doubt(&running[0]);
    assert_eq!(of(&json!({}), &running), Decision::InDoubt(in_doubt));
    let retry = json!({ "resolve": { "id": "1", "as": "retry" } });
    assert_eq!(pending(&of(&retry, &running))[0], (0, 2), "it goes on with the statement in doubt");
    let applied = json!({ "resolve": { "id": "1", "as": "applied" } });
    let Decision::Work(work) = of(&applied, &running) else { panic!("it is settled") };
    assert_eq!((work.settled, work.pending[0].index), (Some(settled(State::Applied, 2, None)), 1));
    assert_eq!(pending(&of(&applied, &[row("1", State::Running, 1)]))[0], (0, 2), "the rest still runs");
    let other = json!({ "resolve": { "id": "2", "as": "applied" } });
    assert!(matches!(of(&other, &running), Decision::InDoubt(_)), "a word about another one");
    let idempotent = json!({ "scripts": [{ "id": "1", "up": { "file": "1" }, "idempotent": true }] });
    assert_eq!(pending(&of(&idempotent, &running)), [(0, 1)]);
    let around = Surroundings { alive: vec!["7".to_owned()], ..Surroundings::default() };
    assert_eq!(decided(&retry, &running, &around), Decision::Busy("1".to_owned()));
}

#[test]
fn a_word_is_about_what_a_run_before_has_left() {
    let told = |run: &str| {
        json!({ "resolve": { "id": "1", "as": "retry" }, "run": { "uid": run },
            "object": { "namespace": "a", "name": "shop", "uid": "u1" } })
    };
    let left = |run: &str| [Row { run: run.to_owned(), ..row("1", State::Running, 1) }];
    // A pod of the same run, or one of a later one, has begun the script since.
    for run in ["u1.3", "u1.10"] {
        assert!(matches!(of(&told("u1.3"), &left(run)), Decision::InDoubt(_)), "{run}");
    }
    for (run, before) in [("u1.10", "u1.3"), ("u1.3", "u2.10"), ("r1", "r1")] {
        assert_eq!(pending(&of(&told(run), &left(before)))[0], (0, 1), "{before}");
    }
}

/// As a doubt about the first script is settled.
fn settled(state: State, statement: u32, done: Option<String>) -> Settled {
    Settled { id: "1".to_owned(), state, statement, done }
}

#[test]
fn a_down_script_in_doubt_is_settled_the_other_way() {
    let running = |statement| [Row { kind: DOWN.to_owned(), ..row("1", State::Running, statement) }];
    let done = row("1", State::Running, 2).done;
    for statement in [1, 2] {
        assert!(matches!(of(&json!({}), &running(statement)), Decision::InDoubt(_)));
    }
    for (statement, word, expected, (first, is_half)) in [
        (1, "retry", settled(State::Applied, 1, None), (1, false)),
        (1, "applied", settled(State::Applied, 2, done.clone()), (0, true)),
        (2, "retry", settled(State::Applied, 2, done), (0, true)),
        (2, "applied", settled(State::Reverted, 2, None), (0, false)),
    ] {
        let told = json!({ "resolve": { "id": "1", "as": word } });
        let Decision::Work(work) = of(&told, &running(statement)) else { panic!("it is settled") };
        assert_eq!(work.settled, Some(expected), "{statement} {word}");
        let begun = &work.pending[0];
        assert_eq!(
            (begun.index, begun.from, begun.is_half_taken_back),
            (first, 1, is_half),
            "{statement} {word}"
        );
    }
}

#[test]
fn a_script_is_half_applied_where_the_history_has_what_ran_of_it() {
    let is_half = |state, statement| is_half_applied(&row("1", state, statement));
    assert_eq!([is_half(State::Failed, 1), is_half(State::Failed, 2)], [false, true]);
    assert_eq!([is_half(State::Running, 1), is_half(State::Running, 2)], [true, true]);
    for state in [State::Applied, State::Baseline, State::Reverted] {
        assert!(!is_half(state, 2), "{state:?}");
    }
    let down = Row { kind: DOWN.to_owned(), ..row("1", State::Running, 2) };
    assert!(!is_half_applied(&down), "its script is applied, and its down script goes on");
}

#[test]
fn what_has_run_of_a_down_script_may_not_be_edited() {
    let half = |done| [Row { kind: DOWN.to_owned(), done, ..row("1", State::Applied, 2) }];
    let Decision::Work(work) = of(&json!({}), &half(row("1", State::Applied, 2).done)) else {
        panic!("the rest of it is to run")
    };
    assert!(work.pending[0].is_half_taken_back);
    let edited = of(&json!({}), &half(Some(checksum(b"another statement"))));
    assert_eq!(reason(&edited), (BlockedReason::ChecksumMismatch, "1"));
}

#[test]
fn what_has_run_of_a_script_may_not_be_edited() {
    let mut failed = row("1", State::Failed, 2);
    assert_eq!(pending(&of(&json!({}), &[failed.clone()]))[0], (0, 2));
    failed.checksum = checksum(b"the statement that failed is mended");
    assert_eq!(pending(&of(&json!({}), &[failed.clone()]))[0], (0, 2));
    failed.done = Some(checksum(b"the one before it too"));
    assert_eq!(reason(&of(&json!({}), &[failed])), (BlockedReason::ChecksumMismatch, "1"));
}

#[test]
fn an_answer_about_a_script_that_is_not_in_doubt_is_reported() {
    let rows = [row("1", State::Applied, 2), row("2", State::Failed, 2)];
    let Decision::Work(work) = of(&json!({ "resolve": { "id": "2", "as": "applied" } }), &rows) else {
        panic!()
    };
    assert!(work.warnings.iter().any(|warning| warning.contains("goes on with statement 2")), "{work:?}");
    assert_eq!(work.pending[0], Pending { index: 1, from: 2, is_half_taken_back: false });
}
