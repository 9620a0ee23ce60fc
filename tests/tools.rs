//! The scripts below `tools/` that judge others, against folders and machines with faults on purpose.

#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn ran(command: &mut Command) -> (bool, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.success(), text(stdout) + &text(stderr))
}

/// A repository with these files.
fn repository(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    git(folder.path(), &["init", "--quiet"]);
    folder
}

fn git(folder: &Path, words: &[&str]) -> String {
    let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let (is_fine, said) = ran(Command::new("git").arg("-C").arg(folder).args(who).args(words));
    assert!(is_fine, "{words:?}: {said}");
    said
}

/// One with the scripts and no more.
fn with_scripts(files: &[(&str, &[u8])]) -> TempDir {
    let folder = repository(files);
    let copied = Command::new("cp").arg("-r").arg(root().join("tools")).arg(folder.path()).status().unwrap();
    assert!(copied.success());
    folder
}

fn bash(folder: &Path, script: &str) -> (bool, String) {
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", script]).current_dir(folder);
    ran(command.env_remove("TESTS_RUN").env_remove("CARGO_TARGET_DIR"))
}

#[test]
fn what_does_not_belong_in_the_repository_is_found() {
    let hygiene = |files: &[(&str, &[u8])]| {
        let folder = repository(files);
        ran(Command::new(root().join("tools/hygiene.sh")).arg(folder.path()))
    };
    let sound: (&str, &[u8]) = ("sound.sh", b"#!/usr/bin/env bash\necho sound\n");
    let (is_fine, said) = hygiene(&[sound, ("empty", b"")]);
    assert!(is_fine, "{said}");
    let large = "a line\n".repeat(40_000);
    for (name, content, fault) in [
        ("program", &b"\x7fELF\0\0"[..], "a binary or a profile"),
        ("default.profraw", b"text\n", "a binary or a profile"),
        ("large.txt", large.as_bytes(), "larger than 200 KiB"),
        ("windows.txt", b"a\r\n", "lines end in CRLF"),
        ("unended.txt", b"a", "the last line does not end"),
        ("broken.sh", b"if true\n", "bash cannot read it"),
        ("script", b"#!/bin/sh\nfi\n", "bash cannot read it"),
    ] {
        let (is_fine, said) = hygiene(&[sound, (name, content)]);
        assert!(!is_fine && said.contains(&format!("{name}: {fault}")), "{name}: {said}");
        assert!(said.contains("faults found: 1"), "{name}: {said}");
    }
}

#[test]
fn what_a_machine_lacks_is_reported_at_once_with_what_installs_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("/bin/bash");
    command.arg(root().join("tools/doctor.sh")).arg("check").env("PATH", folder.path());
    let (is_fine, said) = ran(&mut command);
    assert!(!is_fine, "{said}");
    for lacking in ["missing: cargo and rustc", "missing: make"] {
        // The script also looks into the system's own folders, where a machine may have its make.
        let is_elsewhere = lacking.ends_with("make") && Path::new("/usr/sbin/make").exists();
        assert!(is_elsewhere || said.contains(lacking), "{lacking}: {said}");
    }
    assert!(said.contains("to install: ") && said.contains("this machine lacks "), "{said}");
    let (is_fine, said) = ran(Command::new(root().join("tools/doctor.sh")).arg("everything"));
    assert!(!is_fine && said.contains("unknown: everything"), "{said}");
}

#[test]
fn the_ledger_keeps_what_a_part_found_and_tells_how_old_it_is() {
    let folder = with_scripts(&[("tests/ledger.ndjson", b"")]);
    let commit = |message| git(folder.path(), &["commit", "--quiet", "--allow-empty", "--message", message]);
    git(folder.path(), &["add", "--all"]);
    commit("first");
    let figure = "a \"quoted\" figure with a \\";
    let ledger = |words: &[&str]| ran(Command::new("tools/ledger.sh").args(words).current_dir(folder.path()));
    assert!(ledger(&["add", "model", "7", "61", "ok", figure, "another"]).0);
    let line = fs::read_to_string(folder.path().join("tests/ledger.ndjson")).unwrap();
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["part"], &line["seed"], &line["seconds"]), (&"model".into(), &7.into(), &61.into()));
    assert_eq!((&line["figures"][0], &line["figures"][1]), (&figure.into(), &"another".into()));
    assert_eq!(line["changed"], false, "the ledger itself is no change");
    commit("second");
    let (_, ages) = ledger(&["ages"]);
    let about = |part: &str| ages.lines().find(|line| line.starts_with(part)).unwrap().to_owned();
    assert_eq!(about("model "), "model        1 commits ago: ok after 61 s");
    assert!(about("fuzz ").ends_with("never run: make nightly PART=fuzz"), "{ages}");
    for _ in 0..20 {
        commit("more");
    }
    assert!(ledger(&["ages"]).1.contains("21 commits ago: ok after 61 s  OLD: make nightly PART=model"));
}

#[test]
fn a_test_program_that_no_stage_runs_is_found() {
    let folder = with_scripts(&[("target/test-programs.tsv", b"api\t.\tx\ngate\t.\tx\nlost\t.\tx\n")]);
    let after = |run: &str| {
        let script = format!(
            "source tools/lib/common.sh; source tools/lib/tests.sh; export TESTS_RUN=$PWD/run
             for name in {run}; do pass_by \"$name\"; done; none_is_left_out"
        );
        let _ = fs::remove_file(folder.path().join("run"));
        bash(folder.path(), &script)
    };
    let (is_fine, said) = after("gate api gate");
    assert!(!is_fine && said.contains("no stage runs these test programs: lost"), "{said}");
    let (is_fine, said) = after("gate api lost");
    assert!(is_fine, "{said}");
}

#[test]
fn each_stage_has_a_budget_and_ends_at_three_times_that_unless_its_limit_is_said() {
    let script = "source <(sed -n '/^seconds_of()/,/^}/p; /^limit_of()/,/^}/p' tools/ci.sh)
        for stage in image servers build; do limit_of $stage; done
        eval \"$(sed -n 's/^readonly STAGES=/stages=/p' tools/ci.sh)\"
        for stage in \"${stages[@]}\"; do seconds_of budget \"$stage\"; done";
    let (is_fine, said) = bash(&root(), script);
    assert!(is_fine, "{said}");
    let seconds: Vec<u32> = said.lines().map(|line| line.parse().unwrap()).collect();
    let budgets = fs::read_to_string(root().join("tests/budget.toml")).unwrap();
    let of = |table: &str, stage: &str| {
        let (_, after) = budgets.split_once(&format!("[{table}]")).unwrap();
        let mut lines = after.lines().skip(1).take_while(|line| !line.starts_with('['));
        let found = lines.find_map(|line| line.strip_prefix(&format!("{stage} = ")))?;
        Some(found.parse::<u32>().unwrap())
    };
    let expected = ["image", "servers", "build"];
    let expected =
        expected.map(|stage| of("limit", stage).unwrap_or_else(|| of("budget", stage).unwrap() * 3));
    assert_eq!(seconds[..3], expected);
    assert_eq!(seconds.len(), 3 + 7, "each stage has a budget: {said}");
}
