//! A corpus of scripts, each run by gatehouse and by the engine's own client on databases that nothing was in. What both
//! leave is compared byte by byte.
//!
//! Guarantees: each script of the corpus is compared. With `NIGHTLY=1` each statement of each script fails once, and each
//! point of a run is the last one of a process once; else that holds for the slice that `WITH_SLICE` names.
//! Assumes: each script does the same each time.

mod base;
mod rows;
mod speed;
mod text;

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use kit::databases::{Server, Servers};
use serde_json::Value;

use base::{Assigned, Base, Ended, Engine, With};
use rows::{KNOWN, refused};
use speed::{a_megabyte_is_read, ten_thousand_statements};
use text::{Part, Script, scripts};

/// Scripts of an engine that run side by side.
const THREADS: usize = 3;
/// The slices of what takes long.
const SLICES: usize = 24;
/// The points that a process may die at; whether the statement in doubt has taken effect by then. After a commit it is the
/// next one. Behind a statement that depends on its transaction.
const POINTS: [(&str, Option<bool>); 5] = [
    (BEFORE, Some(false)),
    ("migrate.statement.after", None),
    ("migrate.commit.before", Some(false)),
    ("migrate.row.written", Some(true)),
    ("migrate.commit.after", Some(false)),
];
const BEFORE: &str = "migrate.statement.before";

/// How often each thing happened.
#[derive(Default)]
struct Counts(Mutex<BTreeMap<String, usize>>);

impl Counts {
    fn add(&self, what: impl Into<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(what.into()).or_default() += 1;
    }

    fn print(&self, engine: Engine<'_>, about: &str) {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts: Vec<_> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
        println!("figure: corpus, {}, {about}: {}", engine.name(), counts.join(", "));
    }
}

/// Does the same for each item, several side by side; all results.
fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> Vec<R> + Sync) -> Vec<R> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = work(item);
                    results.lock().unwrap_or_else(PoisonError::into_inner).extend(result);
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The scripts whose statements fail and whose runs die this time.
fn slice(engine: Engine<'_>) -> Vec<Script> {
    let all = scripts(engine.folders()).into_iter().filter(|script| known(engine, script).is_none());
    if std::env::var("NIGHTLY").is_ok_and(|value| value == "1") {
        return all.collect();
    }
    let asked = std::env::var("WITH_SLICE").ok().filter(|number| !number.is_empty());
    let number: usize = asked.map_or(0, |number| number.parse().expect("WITH_SLICE is a number"));
    all.enumerate().filter(|(place, _)| place % SLICES == number % SLICES).map(|(_, script)| script).collect()
}

/// Why a script is known to differ.
fn known(engine: Engine<'_>, script: &Script) -> Option<&'static str> {
    let row = KNOWN.iter().find(|(name, title, _)| *name == engine.name() && *title == script.name);
    row.map(|(_, _, reason)| *reason)
}

fn id(index: usize) -> String {
    format!("{:03}", index + 1)
}

/// The scripts, of which one has another text.
fn assigned(parts: &[Part], other: Option<(usize, &str)>) -> Vec<Assigned> {
    let texts = parts.iter().enumerate().map(|(index, part)| {
        let text = match other {
            Some((at, text)) if at == index => text.to_owned(),
            _ => part.text.clone(),
        };
        Assigned { id: id(index), text, is_outside: part.is_outside }
    });
    texts.collect()
}

/// What the engine's own client leaves.
fn expected(engine: Engine<'_>, script: &Script) -> Result<String, String> {
    let base = Base::new(engine);
    for part in &script.parts {
        base.by_client(part).map_err(|error| format!("the client refuses it: {error}"))?;
    }
    Ok(base.dump())
}

/// The first lines in which two dumps differ.
fn difference(dump: &str, expected: &str) -> Option<String> {
    if dump == expected {
        return None;
    }
    let (mut ours, mut theirs) = (dump.lines(), expected.lines());
    loop {
        let lines = (ours.next(), theirs.next());
        match lines {
            (Some(one), Some(other)) if one == other => {}
            (one, other) => return Some(format!("gatehouse left {one:?}, the client {other:?}")),
        }
    }
}

/// Why what gatehouse leaves is not what the client leaves.
fn differs(engine: Engine<'_>, script: &Script) -> Option<String> {
    let expected = match expected(engine, script) {
        Ok(expected) => expected,
        Err(why) => return Some(why),
    };
    let base = Base::new(engine);
    let ended = base.by_gatehouse(&assigned(&script.parts, None), "r1", &With::default());
    if ended.code == Some(0) { difference(&base.dump(), &expected) } else { Some(format!("{ended:?}")) }
}

fn all_are_equal(engine: Engine<'_>) {
    let scripts = scripts(engine.folders());
    assert!(scripts.len() >= 150, "{}: {} scripts", engine.name(), scripts.len());
    let counts = Counts::default();
    let wrong = each(&scripts, |script| {
        let wrong = match (differs(engine, script), known(engine, script)) {
            (None, None) => {
                counts.add("equal");
                None
            }
            (Some(_), Some(_)) => {
                counts.add("known to differ");
                None
            }
            (Some(why), None) => Some(format!("{}: {why}", script.name)),
            (None, Some(_)) => Some(format!("{}: it is equal by now: take it from KNOWN", script.name)),
        };
        wrong.into_iter().collect()
    });
    counts.print(engine, "scripts");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), scripts.len(), wrong.join("\n\n"));
}

/// How a run may be refused where the engine cannot roll back; nothing for another end.
fn refusal(engine: Engine<'_>, ended: &Ended) -> Option<String> {
    let is_refused = engine.commits_by_itself() && ended.result["blocked"]["reason"] == "NotRunnable";
    is_refused.then(|| "refused as NotRunnable".to_owned())
}

/// A script with a statement that fails: it fails, and without that statement it ends as if that had never been there.
fn fails_and_is_mended(engine: Engine<'_>, script: &Script, counts: &Counts) -> Vec<String> {
    let expected = match expected(engine, script) {
        Ok(expected) => expected,
        Err(why) => return vec![format!("{}: {why}", script.name)],
    };
    let mut wrong = Vec::new();
    let inside = script.parts.iter().enumerate().filter(|(_, part)| !part.is_outside);
    for (index, part) in inside {
        for place in part.places() {
            let base = Base::new(engine);
            let name = format!("{}, {} at byte {place}", script.name, id(index));
            let failing = assigned(&script.parts, Some((index, &part.failing(place))));
            let ended = base.by_gatehouse(&failing, "r1", &With::default());
            if ended.code != Some(20) || ended.result["lastError"]["id"] != id(index).as_str() {
                wrong.push(format!("{name}: does not fail as it has to: {ended:?}"));
                continue;
            }
            let ended = base.by_gatehouse(&assigned(&script.parts, None), "r2", &With::default());
            match (ended.code, refusal(engine, &ended)) {
                (Some(0), _) => match difference(&base.dump(), &expected) {
                    None => counts.add("mended and equal"),
                    Some(why) => wrong.push(format!("{name}: mended, {why}")),
                },
                (_, Some(refusal)) => counts.add(refusal),
                _ => wrong.push(format!("{name}: cannot be mended: {ended:?}")),
            }
        }
    }
    wrong
}

fn failures_are_mended(engine: Engine<'_>) {
    let (scripts, counts) = (slice(engine), Counts::default());
    let wrong = each(&scripts, |script| fails_and_is_mended(engine, script, &counts));
    counts.print(engine, "failing statements");
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Whether the engine numbers rows: a number that was rolled back does not come again.
fn generates_ids(script: &Script) -> bool {
    let generates = |text: &str| {
        let text = text.to_uppercase();
        ["AUTO_INCREMENT", "SERIAL", "AS IDENTITY", "NEXTVAL"].iter().any(|word| text.contains(word))
    };
    script.parts.iter().any(|part| generates(&part.text))
}

/// A dump without the numbers that tables give next.
fn without_next_numbers(dump: &str) -> String {
    let mut pieces = dump.split(" AUTO_INCREMENT=");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.trim_start_matches(|one: char| one.is_ascii_digit()))
}

/// A dump with one mark in the place of each number.
fn without_numbers(dump: &str) -> String {
    let mut digits = dump.chars().peekable();
    let mut text = String::with_capacity(dump.len());
    while let Some(one) = digits.next() {
        if one.is_ascii_digit() {
            while digits.next_if(char::is_ascii_digit).is_some() {}
            text.push('#');
        } else {
            text.push(one);
        }
    }
    text
}

/// Whether a database has what a statement does: it is not like a database whose run died before that statement.
fn has_run(base: &Base<'_>, script: &Script, time: usize) -> bool {
    let before = Base::new(base.engine);
    let death = Some(format!("{BEFORE}#{time}"));
    let ended = before.by_gatehouse(&assigned(&script.parts, None), "r1", &With { death, ..With::default() });
    assert_eq!(ended.code, None, "{ended:?}");
    let shown = |text: String| without_next_numbers(&text);
    base.try_dump().map(shown) != before.try_dump().map(shown)
}

/// Goes on where a run died; nothing if that gives what was to be left.
fn goes_on(
    base: &Base<'_>,
    script: &Script,
    has_run: impl FnOnce() -> bool,
    expected: &str,
    counts: &Counts,
) -> Option<String> {
    let scripts = assigned(&script.parts, None);
    let mut ended = base.by_gatehouse(&scripts, "r2", &With::default());
    let mut word = "equal";
    if let Some(id) = ended.result["inDoubt"]["id"].as_str() {
        let has_run = has_run();
        if !has_run {
            base.reset_numbers();
        }
        let answer = Some((id, if has_run { "applied" } else { "retry" }));
        word = "equal after an answer";
        ended = base.by_gatehouse(&scripts, "r3", &With { answer, ..With::default() });
    }
    match (ended.code, refusal(base.engine, &ended)) {
        (Some(0), _) => {
            let dump = base.dump();
            let why = difference(&dump, expected);
            if why.is_none() {
                counts.add(word);
            } else if generates_ids(script) && without_numbers(&dump) == without_numbers(expected) {
                counts.add("equal but for ids that a rollback had used up");
                return None;
            }
            why
        }
        (_, Some(refusal)) => {
            counts.add(refusal);
            None
        }
        _ => Some(format!("{ended:?}")),
    }
}

fn dies_and_goes_on(engine: Engine<'_>, script: &Script, counts: &Counts) -> Vec<String> {
    let expected = match expected(engine, script) {
        Ok(expected) => expected,
        Err(why) => return vec![format!("{}: {why}", script.name)],
    };
    let mut wrong = Vec::new();
    for (point, known) in POINTS {
        for time in 1.. {
            let base = Base::new(engine);
            let death = Some(format!("{point}#{time}"));
            let ended =
                base.by_gatehouse(&assigned(&script.parts, None), "r1", &With { death, ..With::default() });
            match ended.code {
                None => {
                    let has_run = || known.unwrap_or_else(|| has_run(&base, script, time));
                    let why = goes_on(&base, script, has_run, &expected, counts);
                    wrong.extend(why.map(|why| format!("{}: killed at {point} {time}: {why}", script.name)));
                }
                Some(0) => break,
                Some(_) => {
                    wrong.push(format!("{}: {ended:?}", script.name));
                    break;
                }
            }
        }
    }
    wrong
}

fn deaths_are_survived(engine: Engine<'_>) {
    let (scripts, counts) = (slice(engine), Counts::default());
    let wrong = each(&scripts, |script| dies_and_goes_on(engine, script, &counts));
    counts.print(engine, "deaths");
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n\n"));
}

/// What the engine's own program dumps of a database is a script, too.
fn dumps_run_again(engine: Engine<'_>) {
    let (scripts, counts) = (slice(engine), Counts::default());
    let wrong = each(&scripts, |script| {
        let dumped = Base::new(engine);
        for part in &script.parts {
            dumped.by_client(part).unwrap();
        }
        let part = Part { text: dumped.loadable_dump(), ends: Vec::new(), is_outside: false, is_bare: false };
        let dump = Script { name: script.name.clone(), parts: vec![part] };
        let wrong = differs(engine, &dump);
        if wrong.is_none() {
            counts.add("equal");
        }
        wrong.into_iter().map(|why| format!("the dump of {}: {why}", script.name)).collect()
    });
    counts.print(engine, "dumps");
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n\n"));
}

/// What is refused by design leaves nothing, and its message has the words that lead on.
fn is_refused_by_name(engine: Engine<'_>) {
    let rows = refused(engine);
    let empty = Base::new(engine).dump();
    let wrong = each(&rows, |(text, words)| {
        let base = Base::new(engine);
        let script = Assigned { id: id(0), text: (*text).to_owned(), is_outside: false };
        let ended = base.by_gatehouse(&[script], "r1", &With::default());
        let lacks = words.iter().find(|word| !ended.stderr.contains(**word));
        let is_right = ended.code == Some(20) && lacks.is_none() && base.dump() == empty;
        (!is_right).then(|| format!("{text:?}: {ended:?}")).into_iter().collect()
    });
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Hundreds of scripts in one folder, some of them without a statement.
fn a_folder_of_hundreds(engine: Engine<'_>) {
    let (ours, theirs) = (Base::new(engine), Base::new(engine));
    let folder = ours.path("folder");
    fs::create_dir(&folder).unwrap();
    let mut all = String::new();
    for number in 1..=300 {
        let text = rows::of_folder(engine, number);
        fs::write(folder.join(format!("{number:03}_step.sql")), &text).unwrap();
        all.push_str(&text);
    }
    let ended = ours.folder_by_gatehouse(&folder);
    assert_eq!((ended.code, &ended.result["appliedNow"]), (Some(0), &Value::from(300)), "{ended:?}");
    theirs.by_client(&Part { text: all, ends: Vec::new(), is_outside: false, is_bare: false }).unwrap();
    assert_eq!(difference(&ours.dump(), &theirs.dump()), None);
    assert_eq!(ours.folder_by_gatehouse(&folder).result["appliedNow"], 0);
}

fn run<'a>(engine: Engine<'a>, test: fn(Engine<'a>)) {
    engine.make_roles();
    test(engine);
}

/// The tests on the server that they are given.
macro_rules! on_each {
    ($($test:ident),* $(,)?) => {
        pub mod on_server {
            use super::{Engine, Server};
            $(pub fn $test(server: &Server) { super::run(Engine::Server(server), super::$test); })*
        }
        pub mod on_postgres {
            use super::{Engine, Servers};
            $(pub fn $test(servers: &Servers) { super::run(Engine::Server(&servers.postgres), super::$test); })*
        }
        pub mod on_sqlite {
            use super::{Engine, Servers};
            $(pub fn $test(_: &Servers) { super::run(Engine::Sqlite, super::$test); })*
        }
    };
}

on_each![
    all_are_equal,
    failures_are_mended,
    deaths_are_survived,
    dumps_run_again,
    is_refused_by_name,
    a_folder_of_hundreds,
    a_megabyte_is_read,
    ten_thousand_statements,
];
