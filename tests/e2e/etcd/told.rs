//! What the operators of all tests told of their passes, planned again.

use std::fs;
use std::path::{Path, PathBuf};

use super::cluster::Etcd;
use super::passes::again::check;
use super::passes::log::Log;
use super::{NEWEST, gone_with_its_object};
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

/// After all others, whose passes it plans too. Where it is run alone it has those of a cluster of its own.
pub fn etcd_is_worked_as_its_passes_plan_when_they_are_planned_again(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-told");
    let etcd = Etcd::new(&namespace, "Disabled", NEWEST, 1);
    etcd.until_settled(1);
    etcd.scale(2);
    etcd.scale(1);
    gone_with_its_object(bed, &namespace);
    let texts = logs(bed);
    let report = check(&Log::read(texts.iter().map(String::as_str)));
    bed.say(format!("{}: etcd: {report}", way.name()));
    assert!(report.violations.is_empty(), "{report}: {:#?}", report.violations);
    let is_done = |name: &&str| report.effects.contains_key(&((*name).to_owned(), "done".to_owned()));
    let missed: Vec<_> = DONE.iter().filter(|name| !is_done(name)).collect();
    assert!(missed.is_empty(), "nobody told of {missed:?}: {:?}", report.effects);
}

/// The logs of all operators, of those that were started by a test too.
fn logs(bed: &Bed) -> Vec<String> {
    let folder = bed.cluster.folder().join("told");
    bed.cluster.collect_logs(&folder).expect("logs");
    let mut files = Vec::new();
    files_below(&folder.join("containers"), &mut files);
    files.retain(|file| {
        let place = file.strip_prefix(&folder).unwrap_or(file).to_string_lossy().into_owned();
        place.starts_with(&format!("containers/{NAMESPACE}_"))
    });
    assert!(!files.is_empty(), "there are logs");
    files.extend(Some(bed.cluster.folder().join("mortal/log")).filter(|file| file.exists()));
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
