//! How long scripts of many statements take, beside the engine's own client.
//!
//! Guarantees: each time is of work whose result is compared. One engine is measured after the other.
//! Never: judges a time.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::base::{Assigned, Base, Ended, Engine, With};
use super::text::Part;

/// Statements of a long script.
const STATEMENTS: usize = 10_000;
/// Statements of a script of a megabyte.
const LINES: usize = 15_000;
/// Each time is the middle one of so many.
const ROUNDS: usize = 5;

static ALONE: Mutex<()> = Mutex::new(());

/// The middle one of the times that some work takes.
fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// How long some work takes, and what it gives.
fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let begun = Instant::now();
    let given = work();
    (begun.elapsed(), given)
}

fn script(id: &str, text: &str) -> Assigned {
    Assigned { id: id.to_owned(), text: text.to_owned(), is_outside: false }
}

fn part(text: String) -> Part {
    Part { text, ends: Vec::new(), is_outside: false, is_bare: false }
}

#[track_caller]
fn succeeds(ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// So many statements, each with what ends it.
fn inserts(count: usize, end: &str) -> String {
    let insert = |n| format!("INSERT INTO a VALUES ({n}, 'the row of the number {n}; and more'){end}");
    (1..=count).map(insert).collect::<Vec<_>>().concat()
}

const TABLE: &str = "CREATE TABLE a (id INTEGER PRIMARY KEY, body VARCHAR(99));\n";

/// Statements in one transaction; and one after the other, on an engine that commits each change of a table.
pub fn ten_thousand_statements(engine: Engine<'_>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let rows = inserts(STATEMENTS, ";\n");
    if engine.commits_by_itself() {
        let within = format!("START TRANSACTION;\n{rows}COMMIT;\n");
        compared(engine, "in one transaction", &rows, within);
        let text = format!("CREATE TABLE b (id INTEGER);\n{rows}");
        compared(engine, "statement by statement", &text, text.clone());
    } else {
        compared(engine, "in one transaction", &rows, rows.clone());
    }
}

fn compared(engine: Engine<'_>, how: &str, text: &str, for_client: String) {
    let for_client = part(for_client);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (own, other) = (Base::new(engine), Base::new(engine));
        succeeds(&own.by_gatehouse(&[script("001", TABLE)], "r0", &With::default()));
        other.by_client(&part(TABLE.to_owned())).unwrap();
        let scripts = [script("001", TABLE), script("002", text)];
        let (time, ended) = timed(|| own.by_gatehouse(&scripts, "r1", &With::default()));
        succeeds(&ended);
        ours.push(time);
        let (time, ended) = timed(|| other.by_client(&for_client));
        ended.unwrap();
        theirs.push(time);
        assert!(own.dump() == other.dump(), "both leave the same");
    }
    let (ours, theirs) = (middle(ours), middle(theirs));
    println!(
        "figure: {STATEMENTS} statements, {}, {how}: {:.2} s, its client {:.2} s, {:.2} times",
        engine.name(),
        ours.as_secs_f64(),
        theirs.as_secs_f64(),
        ours.as_secs_f64() / theirs.as_secs_f64()
    );
}

/// How much longer a plan takes because its script has a megabyte.
pub fn a_megabyte_is_read(engine: Engine<'_>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = inserts(LINES, ";\n");
    let values: Vec<_> =
        (1..=LINES).map(|n| format!("({n}, 'the row of the number {n}; and more, and more')")).collect();
    let forms = [
        ("on lines of its own each", lines),
        ("on one line", inserts(LINES, "; ")),
        ("as one statement", format!("INSERT INTO a VALUES {};\n", values.join(", "))),
    ];
    let base = Base::new(engine);
    succeeds(&base.by_gatehouse(&[script("001", TABLE)], "r0", &With::default()));
    let planned = |text: &str| {
        let scripts = [script("001", TABLE), script("002", text)];
        let times = (0..ROUNDS).map(|_| {
            let (time, ended) =
                timed(|| base.by_gatehouse(&scripts, "r1", &With { mode: Some("Plan"), ..With::default() }));
            succeeds(&ended);
            assert_eq!(ended.result["plan"]["pending"][0], "002");
            time
        });
        middle(times.collect())
    };
    let short = planned("SELECT 1;");
    for (form, text) in forms {
        let long = planned(&text);
        println!(
            "figure: {} bytes of statements {form}, {}: read in {:.3} s",
            text.len(),
            engine.name(),
            long.saturating_sub(short).as_secs_f64()
        );
    }
}
