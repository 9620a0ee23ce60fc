//! The borders that keep this code easy to change, held by a test.
//!
//! - `src/api`, the API of each kind, `src/review` and each file whose head says so are pure: they name no client, no
//!   server, no clock, no file, nothing asynchronous.
//! - Only `src/runtime` starts tasks and asks the time.
//! - Imports run in one direction: each room says which others it may name, and no file comes back to itself.
//! - The grid is complete: every kind has a file for every concern.
//! - No file grows beyond what one reads at a sitting, tests included.
//! - Properties draw the same cases in each run.
//! - What users read is in plain words.
//!
//! Each rule is a function of sources, so that it is also held against sources that break it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by unwrapping")]

mod imports;
mod names;
mod resolved;
mod rooms;
mod sources;
mod words;

use std::path::Path;

use sources::{Source, below, root};

/// Lines of code in a file, at most, its tests included. A review decides about the size of a concept; this limit only finds
/// files that grow without one.
const LONGEST_FILE: usize = 800;

/// Items of the trait that a kind implements to be reconciled, at most.
const MOST_ITEMS: usize = 20;

/// Where files are counted.
const COUNTED: &[&str] = &["benches", "src", "tests"];

/// Files that are about seeds.
const ABOUT_SEEDS: &[&str] = &["src/properties.rs", "tests/architecture/main.rs"];

/// What pure code does not name.
const EFFECTS: &[&str] = &[
    "kube::Client",
    "kube::Api",
    "kube::api",
    "kube::client",
    "kube::runtime",
    "tokio",
    "axum",
    "hyper",
    "futures",
    "rand",
    "std::env",
    "std::fs",
    "std::io",
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::ToSocketAddrs",
    "std::net::UdpSocket",
    "std::process",
    "std::thread",
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "crate::runtime",
    "crate::server",
    "async",
    "await",
];

/// What only the runtime names.
const TASKS_AND_TIME: &[&str] = &[
    "tokio::spawn",
    "tokio::task::spawn",
    "tokio::task::spawn_blocking",
    "std::thread::spawn",
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "Zoned::now",
];

/// What a file names all the same, and why. What it does not name any more has to leave the list.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// Folders of the library that are pure throughout.
const PURE: &[&str] = &["src/api", "src/review"];

/// Pure files in folders with effects.
const PURE_FILES: &[&str] = &[
    "actions.rs",
    "decision.rs",
    "kept.rs",
    "names.rs",
    "observation.rs",
    "plan.rs",
    "rbac.rs",
    "rotate.rs",
    "spec.rs",
];

/// Folders that are pure wherever they lie, and in a kind the file beside such a folder.
const PURE_PARTS: &[&str] = &["api", "observation", "plan", "resources", "status"];

/// The files that each kind has below `src/kinds`.
const GRID: &[&str] = &[
    "actions",
    "api/convert",
    "api/default",
    "api/mod",
    "api/status",
    "api/v1",
    "api/v1alpha1",
    "api/validate",
    "metrics",
    "mod",
    "names",
    "observation",
    "observe",
    "plan",
    "rbac",
    "resources",
    "spec",
    "state",
];

/// A file is pure by where it lies, or because its head says so.
fn is_pure(Source { path, text }: &Source) -> bool {
    let mut head = text.lines().take_while(|line| line.starts_with("//! "));
    head.any(|line| line.ends_with(" Pure.") || line.contains(" Pure. "))
        || PURE.iter().any(|folder| path.starts_with(folder))
        || path.file_name().is_some_and(|name| PURE_FILES.iter().any(|pure| name == *pure))
        || path.iter().any(|part| PURE_PARTS.iter().any(|pure| part == *pure))
        || path.starts_with("src/kinds")
            && PURE_PARTS.iter().any(|pure| path.file_stem() == Some(pure.as_ref()))
}

/// Whether a name leads to a file that is pure wherever it lies, such as the rules of access beside what needs them.
fn is_in_pure_file(name: &names::Name) -> bool {
    let mut parts = name.parts().iter();
    parts.any(|part| PURE_FILES.iter().any(|pure| pure.strip_suffix(".rs") == Some(part.as_str())))
}

fn is_the_runtime(path: &Path) -> bool {
    path.starts_with("src/runtime")
}

/// What these sources name although they must not, each with its file, and exceptions that are none.
fn crossed(files: &[Source], exceptions: &[(&str, &str, &str)]) -> Vec<String> {
    let mut used = Vec::new();
    let mut broken = Vec::new();
    for file in files.iter().filter(|file| !file.is_unit_test()) {
        let pure = if is_pure(file) { EFFECTS } else { &[] };
        let outside = if is_the_runtime(&file.path) { &[] } else { TASKS_AND_TIME };
        let names = names::of(&file.text);
        for wanted in pure.iter().chain(outside) {
            let is_effect = |name: &&names::Name| name.has(wanted) && !is_in_pure_file(name);
            let Some(name) = names.iter().find(is_effect) else { continue };
            let excepted =
                |(path, what, _): &(&str, &str, &str)| file.path == Path::new(path) && what == wanted;
            match exceptions.iter().position(excepted) {
                Some(which) => used.push(which),
                None => broken.push(format!("{}: names {wanted} by {name}", file.path.display())),
            }
        }
    }
    let unused = exceptions.iter().enumerate().filter(|(which, _)| !used.contains(which));
    let unused = unused.map(|(_, (path, what, _))| format!("{path}: names {what} no more: no exception"));
    broken.into_iter().chain(unused).collect()
}

/// Files that are too long.
fn too_long(files: &[Source]) -> Vec<String> {
    let long = files.iter().filter(|file| file.lines_of_code() > LONGEST_FILE);
    long.map(|file| {
        format!("{}: {} lines, at most {LONGEST_FILE}", file.path.display(), file.lines_of_code())
    })
    .collect()
}

/// Files whose properties draw other cases in each run.
fn unseeded(files: &[Source]) -> Vec<String> {
    let is_unseeded = |file: &&Source| {
        let blocks = file.text.split("proptest! {\n").skip(1);
        let by_hand = file.text.split("TestRunner::new(").skip(1);
        let is_seeded = |code: &str| code.lines().next().is_some_and(|line| line.contains("properties::"));
        !blocks.chain(by_hand).all(is_seeded)
    };
    let others = files.iter().filter(|file| !ABOUT_SEEDS.iter().any(|path| file.path == Path::new(path)));
    others.filter(is_unseeded).map(|file| file.path.display().to_string()).collect()
}

/// Files of a grid that there are not.
fn missing(folder: &str, kinds: &[String], grid: &[&str]) -> Vec<String> {
    let files =
        kinds.iter().flat_map(|kind| grid.iter().map(move |concern| format!("{folder}/{kind}/{concern}")));
    let is_there = |file: &String| {
        root().join(format!("{file}.rs")).exists() || root().join(file).join("mod.rs").exists()
    };
    files.filter(|file| !is_there(file)).collect()
}

#[test]
fn pure_code_names_no_effect_and_only_the_runtime_starts_tasks_and_asks_the_time() {
    let broken = crossed(&below(&["src"]), EXCEPTIONS);
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn a_kind_has_few_items_to_implement() {
    let text = std::fs::read_to_string(root().join("src/controllers/reconciler.rs")).unwrap();
    let (_, rest) = text.split_once("pub trait Reconciler").unwrap();
    let (body, _) = rest.split_once("\n}\n").unwrap();
    let is_item =
        |line: &&str| ["    type ", "    const ", "    fn "].iter().any(|item| line.starts_with(item));
    let items = body.lines().filter(is_item).count();
    assert!((1..=MOST_ITEMS).contains(&items), "{items}");
}

#[test]
fn no_file_is_longer_than_one_reads_at_a_sitting() {
    let broken = too_long(&below(COUNTED));
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn properties_draw_the_same_cases_in_each_run() {
    let broken = unseeded(&below(COUNTED));
    assert!(broken.is_empty(), "no configuration of `properties` in {broken:#?}");
}

#[test]
fn every_kind_has_a_file_for_every_concern() {
    let kinds = gatehouse::kinds::KINDS.iter().map(|kind| kind.names().kind.to_lowercase());
    let kinds: Vec<_> = kinds.collect();
    assert!(!kinds.is_empty());
    assert_eq!(missing("src/kinds", &kinds, GRID), [""; 0]);
}

#[test]
fn a_border_that_is_crossed_is_found() {
    let file = |path: &str, text: &str| crossed(&[Source::planted(path, text)], &[]);
    let reads = "use std::{env, fs};";
    for path in [
        "src/kinds/tdset/api/convert.rs",
        "src/kinds/etcdcluster/backup/decision.rs",
        "src/kinds/x/plan/scale.rs",
        "src/kinds/x/status.rs",
        "src/kinds/x/status/events.rs",
    ] {
        let told = file(path, reads);
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!(told[1], format!("{path}: names std::fs by std::fs"));
        assert_eq!(file(path, "use kube::{Client, CustomResource};").len(), 1);
        assert_eq!(file(path, "async fn f() { g().await }").len(), 2);
    }
    for path in [
        "src/kinds/etcdcluster/backup/store.rs",
        "src/kinds/tdset/api/tests.rs",
        "src/api/tests/table.rs",
        "src/cli/storage/status.rs",
    ] {
        assert_eq!(file(path, reads), [""; 0]);
    }
    let says_so = format!("//! What is shown. Pure.\n//!\n//! Never: asks.\n\n{reads}");
    assert_eq!(file("src/server/shown.rs", &says_so).len(), 2);
    assert_eq!(file("src/server/shown.rs", &format!("//! What is shown.\n\n{reads}\n// Pure.")), [""; 0]);
    let asks = "use jiff::Timestamp as Time; fn f() { Time::now(); tokio::spawn(g()); }";
    assert_eq!(file("src/server/mod.rs", asks).len(), 2);
    let rules = "use crate::runtime::leader::rbac; fn f() { rbac::rules() }";
    assert_eq!(file("src/cli/manifests/rbac.rs", rules), [""; 0], "pure as well");
    assert_eq!(file("src/cli/manifests/rbac.rs", "use crate::runtime::leader;").len(), 1);
    assert_eq!(file("src/runtime/clock.rs", asks), [""; 0]);
}

#[test]
fn an_exception_is_for_one_file_and_has_to_be_needed() {
    let files = ["src/api/a.rs", "src/api/b.rs"].map(|path| Source::planted(path, "use std::fs;"));
    let told = crossed(&files, &[("src/api/a.rs", "std::fs", "planted")]);
    assert_eq!(told, ["src/api/b.rs: names std::fs by std::fs"]);
    let told =
        crossed(&files[..1], &[("src/api/a.rs", "std::fs", ""), ("src/api/a.rs", "std::env", "planted")]);
    assert_eq!(told, ["src/api/a.rs: names std::env no more: no exception"]);
}

#[test]
fn a_long_file_is_found_wherever_it_lies() {
    let file = |path: &str, lines: usize| Source::planted(path, &"let a = 1;\n// why\n".repeat(lines));
    let library = ["src/server/mod.rs", "src/a/tests.rs", "src/a/tests/b.rs", "benches/a.rs"];
    for path in library.into_iter().chain(["tests/api/main.rs", "tests/testbed/tests/node.rs"]) {
        assert_eq!(too_long(&[file(path, LONGEST_FILE)]), [""; 0], "comments do not count");
        assert_eq!(too_long(&[file(path, LONGEST_FILE + 1)]), [format!("{path}: 801 lines, at most 800")]);
    }
    let tests = "use a;\n#[cfg(test)]\nmod tests {\n".to_owned() + &"a\n".repeat(800) + "}\n";
    let broken = too_long(&[Source::planted("src/a.rs", &tests)]);
    assert_eq!(broken, ["src/a.rs: 804 lines, at most 800"], "the tests at its end count");
}

#[test]
fn a_property_without_its_seed_is_found() {
    let config = "    #![proptest_config(crate::properties::config())]\n";
    let (plain, seeded) = ("proptest! {\n    #[test]\n", format!("proptest! {{\n{config}"));
    let run = "TestRunner::new(Config::default())";
    for text in [plain, run, &format!("{seeded}\n{plain}"), &format!("{seeded}\n{run}")] {
        assert_eq!(unseeded(&[Source::planted("src/a.rs", text)]), ["src/a.rs"], "{text}");
    }
    let run = "TestRunner::new(properties::cases(20))";
    assert_eq!(unseeded(&[Source::planted("src/a.rs", &(seeded + run))]), [""; 0]);
}
