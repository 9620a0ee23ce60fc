//! `gatehouse schedule preview` by the built binary: what it shows of manifests with all that is hard about clocks in
//! them, byte by byte, in each of its forms.
//!
//! The expected files are in `tests/preview/` and `docs/`. `UPDATE_EXPECTED=1 cargo test --test preview` replaces
//! them, but not where `CI` is set; read the difference before it is committed.

#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A manifest and the days of it that are expected: a spring gap, an autumn fold, and a fold of half an hour.
const CASES: [(&str, &str); 3] = [
    ("new-york-spring", "2027-03-13"),
    ("berlin-autumn", "2026-10-24T14:30"),
    ("lord-howe-autumn", "2026-04-04T23:00+11:00"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatehouse"));
    command.args(["schedule", "preview"]).args(arguments).current_dir(root()).env_remove("GATEHOUSE_LOG");
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn piped(arguments: &[&str], text: &str) -> Output {
    let mut child = command(arguments);
    let child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[track_caller]
fn shown(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn refused(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.stdout.is_empty(), "nothing is shown");
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn manifest(name: &str) -> String {
    format!("tests/preview/{name}.yaml")
}

/// No picture depends on the release of the time zone database.
#[track_caller]
fn is_current(path: &Path, found: &str) {
    kit::expected(path, found, |line| !line.starts_with("  \"tzdb\": "));
}

/// Run by themselves with both variables, the tests that compare fail before they write.
#[test]
fn where_ci_is_set_no_expected_file_is_replaced() {
    let mut tests = Command::new(std::env::current_exe().unwrap());
    tests.arg("the_pictures_in_the_documentation_are_current");
    let output = tests.env("UPDATE_EXPECTED", "1").env("CI", "true").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        !output.status.success() && said.contains("UPDATE_EXPECTED is not for a run with CI set"),
        "{said}"
    );
}

#[test]
fn gaps_folds_and_half_hours_are_shown_as_expected_in_every_form() {
    for (name, from) in CASES {
        for (form, ending) in [("text", "txt"), ("svg", "svg"), ("json", "json")] {
            let shown =
                shown(&run(&["-f", &manifest(name), "--from", from, "--days", "5", "--output", form]));
            is_current(&root().join("tests/preview").join(format!("{name}.{ending}")), &shown);
        }
    }
}

/// The page shows what the commands in it print.
#[test]
fn the_pictures_in_the_documentation_are_current() {
    let page = fs::read_to_string(root().join("docs/tdset/tasks.md")).unwrap();
    let arguments = ["-f", "examples/tdset/night.yaml", "--from", "2026-10-30", "--days", "5"];
    let text = shown(&run(&arguments));
    let block = format!("$ gatehouse schedule preview {}\n{text}```", arguments.join(" "));
    assert!(page.contains(&block), "docs/tdset/tasks.md does not have:\n{block}");
    let arguments =
        ["-f", "tests/preview/berlin-autumn.yaml", "--from", "2026-10-24T14:30", "--days", "6", "-o", "svg"];
    let command = format!("$ gatehouse schedule preview {}", arguments.join(" "));
    assert!(page.contains(&command), "docs/tdset/tasks.md does not have: {command}");
    is_current(&root().join("docs/schedule.svg"), &shown(&run(&arguments)));
}

#[test]
fn a_picture_of_characters_fits_80_columns_and_has_no_colours_but_on_a_terminal() {
    for (name, from) in CASES {
        let text = shown(&run(&["-f", &manifest(name), "--from", from, "--days", "30"]));
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{name}: {line}");
            assert!(!line.contains('\u{1b}') && !line.ends_with(' '), "{name}: {line:?}");
        }
    }
}

/// Its standard output is a terminal, by way of script(1).
#[test]
fn colours_are_for_terminals_that_want_them() {
    let on_a_terminal = |no_colour: Option<&str>| {
        let gatehouse = env!("CARGO_BIN_EXE_gatehouse");
        let line = format!("{gatehouse} schedule preview -f {} --from 2026-10-24", manifest("berlin-autumn"));
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(root());
        command.env("TERM", "xterm");
        match no_colour {
            Some(value) => command.env("NO_COLOR", value),
            None => command.env_remove("NO_COLOR"),
        };
        let output = command.stdin(Stdio::null()).output();
        shown(&output.unwrap_or_else(|error| panic!("unable to start script of util-linux: {error}")))
    };
    let is_coloured = |text: &str| text.contains("\u{1b}[36m") && text.contains("\u{1b}[1;33m25 h\u{1b}[0m");
    let plain = on_a_terminal(Some("1"));
    assert!(plain.contains("25 h") && !plain.contains("\u{1b}[36m"), "{plain}");
    assert!(is_coloured(&on_a_terminal(None)));
    assert!(is_coloured(&on_a_terminal(Some(""))), "an empty NO_COLOR is none");
    let piped = |color: &str| {
        shown(&run(&["--color", color, "-f", &manifest("berlin-autumn"), "--from", "2026-10-24"]))
    };
    assert!(is_coloured(&piped("always")), "also where no terminal is");
    assert!(!piped("auto").contains('\u{1b}') && !piped("never").contains('\u{1b}'));
}

#[test]
fn files_and_standard_input_give_the_same() {
    for file in ["examples/tdset/office-hours.yaml", "examples/tdset/night.yaml"] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let tail = ["--from", "2026-12-21", "--days", "3"];
        let from_file = shown(&run(&[&["-f", file], &tail[..]].concat()));
        assert_eq!(from_file, shown(&piped(&[&["-f", "-"], &tail[..]].concat(), &text)));
        assert!(from_file.contains("3 days from 2026-12-21"), "{from_file}");
    }
}

/// The deprecated version, and the ancestor's own: the same hours as the same words in `v1`.
#[test]
fn all_versions_of_a_timetable_are_shown_alike() {
    let spans = |file: &str| {
        let shown = shown(&run(&[
            "-f",
            file,
            "--from",
            "2026-06-01",
            "--days",
            "1",
            "--time-zone",
            "UTC",
            "-o",
            "json",
        ]));
        let report: Value = serde_json::from_str(&shown).unwrap();
        let spans = report["timetables"][0]["spans"].as_array().unwrap().clone();
        spans.iter().map(|span| span["replicas"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(spans("examples/ancestors/tdset-day.yaml"), [1, 3, 8, 5, 2, 3]);
    assert_eq!(spans("examples/tdset/classic.yaml"), [2, 5, 3, 2]);
}

#[test]
fn several_documents_are_shown_in_order_and_other_kinds_are_skipped() {
    let folder =
        shown(&run(&["-f", "examples/tdset", "examples/etcdcluster", "--from", "2026-06-01", "-o", "json"]));
    let report: Value = serde_json::from_str(&folder).unwrap();
    let files: Vec<_> =
        report["timetables"].as_array().unwrap().iter().map(|one| one["file"].as_str().unwrap()).collect();
    assert_eq!(
        files,
        [
            "examples/tdset/autoscaled.yaml",
            "examples/tdset/classic.yaml",
            "examples/tdset/keda.yaml",
            "examples/tdset/night.yaml",
            "examples/tdset/office-hours.yaml",
            "examples/tdset/sleeping.yaml"
        ]
    );
    let text = shown(&run(&["-f", "examples/tdset", "--from", "2026-06-01", "--days", "2"]));
    assert_eq!(text.lines().filter(|line| line.starts_with("TDSet ")).count(), 6, "{text}");
    let picture = shown(&run(&["-f", "examples/tdset", "--from", "2026-06-01", "-o", "svg"]));
    assert_eq!((picture.matches("<svg ").count(), picture.matches("class=\"title\"").count()), (1, 6));
    let nothing = refused(&run(&["-f", "examples/etcdcluster"]), 2);
    assert!(nothing.contains("no TDSet in what -f names"), "{nothing}");
}

#[test]
fn what_is_wrong_is_reported_with_field_value_and_what_is_allowed() {
    let told = refused(&run(&["-f", "examples/rejected/tdset-schedule.yaml"]), 1);
    for part in ["spec.timeZone", "\"europe/berlin\"", "Europe/Berlin", "spec.exceptions[0].skipWindows[0]"] {
        assert!(told.contains(part), "no {part} in: {told}");
    }
    for (arguments, parts) in [
        (["--days", "0"], ["--days", "'0'", "1..=366"]),
        (["--days", "367"], ["--days", "'367'", "1..=366"]),
        (["--from", "tomorrow"], ["--from", "'tomorrow'", "2026-10-25T14:30"]),
        (["--time-zone", "CEST"], ["--time-zone", "'CEST'", "Europe/Berlin"]),
        (["--output", "png"], ["--output", "'png'", "text, svg, json"]),
    ] {
        let told = refused(&run(&[&["-f", "examples/tdset/night.yaml"], &arguments[..]].concat()), 2);
        for part in parts {
            assert!(told.contains(part), "no {part} in: {told}");
        }
    }
    let told = refused(&run(&["-f", "examples/tdset/none.yaml"]), 2);
    assert!(told.contains("failed to read examples/tdset/none.yaml"), "{told}");
}
