//! What operators logged of their passes during tests, planned again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use kit::reconciliations::log::{Event, Log};
use kit::reconciliations::replay::{Report, check};

use super::cluster::Etcd;
use super::{NEWEST, gone_with_its_object};
use crate::cluster::Bed;
use crate::release::{NAMESPACE, Way};

/// What an operator logs that has to be planned again: everything, and each reconciliation.
pub const FILTER: &str = "info,gatehouse::reconciles=trace";

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

/// After all other tests of etcd, whose reconciliations by the deployed operators it plans too. Where it is run alone
/// it has those of a cluster of its own.
pub fn etcd_is_worked_as_its_passes_plan_when_they_are_planned_again(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-told");
    let etcd = Etcd::new(&namespace, "Disabled", NEWEST, 1);
    etcd.until_settled(1);
    etcd.scale(2);
    etcd.scale(1);
    gone_with_its_object(bed, &namespace);
    let report = again(way, &logs_of_the_deployed(bed));
    assert!(report.clusters > 0, "no pass is logged: {report}");
    let is_done = |name: &&str| report.actions.contains_key(&((*name).to_owned(), "done".to_owned()));
    let missed: Vec<_> = DONE.iter().filter(|name| !is_done(name)).collect();
    assert!(missed.is_empty(), "{missed:?} are not logged: {:?}", report.actions);
}

/// What is in logs, planned again: no rule is broken. With `KEEP_TRACES=FOLDER` the passes of each cluster are left
/// there, as `tests/traces` keeps them.
#[track_caller]
pub fn again(way: Way, texts: &[String]) -> Report {
    let log = Log::read(texts.iter().map(String::as_str));
    if let Some(folder) = std::env::var_os("KEEP_TRACES") {
        keep(&log, Path::new(&folder));
    }
    let report = check(&log);
    crate::figure(format!("{}: etcd: {report}", way.name()));
    assert!(report.violations.is_empty(), "{report}: {:#?}", report.violations);
    report
}

fn keep(log: &Log, folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let objects = log.lines.iter().filter_map(|line| match &line.event {
        Event::Pass(pass) => pass.object.split('/').next(),
        Event::Action(_) => None,
    });
    for namespace in objects.collect::<BTreeSet<_>>() {
        let file = folder.join(format!("{namespace}.ndjson"));
        fs::write(file, log.of(namespace).written()).expect("it is written");
    }
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
