//! What the operators of all tests told of their passes, planned again.

use std::fs;
use std::path::{Path, PathBuf};

use super::cluster::Etcd;
use super::passes::again::{Report, check};
use super::passes::log::Log;
use super::passes::rules::Rule;
use super::{NEWEST, gone_with_its_object, mortal};
use crate::cluster::Bed;
use crate::release::{NAMESPACE, Way};

/// What an operator tells that has to be planned again: everything, and each pass.
pub const FILTER: &str = "info,gatehouse::passes=trace";

/// What is done for a cluster that is asked for a second member, for one less, and to go.
const DONE: [&str; 9] = [
    "write-record",
    "apply-stateful-set",
    "write-config",
    "member-add",
    "member-promote",
    "label-pod",
    "member-remove",
    "delete-volume",
    "remove-finalizer",
];

/// What an object that is read as it was a while ago seems to break: it remembers less than it did.
const STALE: [Rule; 2] = [Rule::OtherCluster, Rule::RecoveredTwice];

/// After all others, whose passes it plans too. Where it is run alone it has those of a cluster of its own.
pub fn etcd_is_worked_as_its_passes_plan_when_they_are_planned_again(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-told");
    let etcd = Etcd::new(&namespace, "Disabled", NEWEST, 1);
    etcd.until_settled(1);
    etcd.scale(2);
    etcd.scale(1);
    gone_with_its_object(bed, &namespace);
    let report = again(bed, way, &logs_of_the_deployed(bed), &[]);
    assert!(report.clusters > 0, "nobody told of a cluster: {report}");
    let is_done = |name: &&str| report.effects.contains_key(&((*name).to_owned(), "done".to_owned()));
    let missed: Vec<_> = DONE.iter().filter(|name| !is_done(name)).collect();
    assert!(missed.is_empty(), "nobody told of {missed:?}: {:?}", report.effects);
    those_of_tests(bed, way);
}

/// The same of the operators that tests start, and end at any moment: each log, beside theirs.
fn those_of_tests(bed: &Bed, way: Way) {
    for folder in fs::read_dir(mortal::folder(bed)).into_iter().flatten() {
        let folder = folder.expect("an entry").path();
        let text = fs::read(folder.join("log")).expect("a log");
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let but: &[Rule] = if was_told_old_news(&folder) { &STALE } else { &[] };
        let report = again(bed, way, &[String::from_utf8_lossy(&text).into_owned()], but);
        assert!(report.clusters > 0, "nobody told of the cluster in {name}: {report}");
    }
}

/// Whether one of them was told what was so before.
fn was_told_old_news(folder: &Path) -> bool {
    let mut files = Vec::new();
    files_below(folder, &mut files);
    files.retain(|file| !file.ends_with("log"));
    let is_old = |point: &str| point.split_once('.').is_some_and(|(_, fate)| fate == "stale");
    files.iter().any(|file| fs::read_to_string(file).expect("points").lines().any(is_old))
}

/// What is told in logs, planned again: no rule is broken but these.
#[track_caller]
fn again(bed: &Bed, way: Way, texts: &[String], but: &[Rule]) -> Report {
    let mut report = check(&Log::read(texts.iter().map(String::as_str)));
    report.violations.retain(|violation| !but.contains(&violation.rule));
    bed.say(format!("{}: etcd: {report}", way.name()));
    assert!(report.violations.is_empty(), "{report}: {:#?}", report.violations);
    report
}

/// The logs of those that are deployed.
fn logs_of_the_deployed(bed: &Bed) -> Vec<String> {
    let folder = bed.cluster.folder().join("told");
    bed.cluster.collect_logs(&folder).expect("logs");
    let mut files = Vec::new();
    files_below(&folder.join("containers"), &mut files);
    files.retain(|file| {
        let place = file.strip_prefix(&folder).unwrap_or(file).to_string_lossy().into_owned();
        place.starts_with(&format!("containers/{NAMESPACE}_"))
    });
    assert!(!files.is_empty(), "there are logs");
    let read = |file: &PathBuf| String::from_utf8_lossy(&fs::read(file).expect("a log")).into_owned();
    files.iter().map(read).collect()
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files_below(&path, files);
        } else {
            files.push(path);
        }
    }
}
