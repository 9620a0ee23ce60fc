//! What gatehouse and the members of a cluster log, of Pods that go meanwhile too.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde_json::Value;

use crate::cluster::Bed;
use crate::release::NAMESPACE;

/// Between two looks at which Pods there are.
const PAUSE: Duration = Duration::from_millis(300);

/// For what was logged last to be on its way.
const REST: Duration = Duration::from_secs(2);

/// One line.
pub struct Line {
    pub at: SystemTime,
    /// The Pod.
    pub pod: String,
    pub text: String,
}

/// Lets something happen, and follows what is logged in that namespace, and by gatehouse about it, meanwhile: the lines,
/// oldest first.
pub fn followed<T>(bed: &Bed, namespace: &str, happens: impl FnOnce() -> T) -> (T, Vec<Line>) {
    let folder = bed.cluster.folder().join("followed").join(namespace);
    fs::create_dir_all(&folder).expect("a folder");
    let is_over = AtomicBool::new(false);
    let happened = std::thread::scope(|scope| {
        let following = scope.spawn(|| follow(bed, namespace, &folder, &is_over));
        let over = Over(&is_over);
        let happened = happens();
        std::thread::park_timeout(REST);
        drop(over);
        for mut child in following.join().expect("the logs are followed") {
            // One whose Pod has gone has ended before.
            let _ended = child.kill();
            let _reaped = child.wait();
        }
        happened
    });
    let entries = fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut lines: Vec<_> = entries.flat_map(|path| read(&path, namespace)).collect();
    lines.sort_by_key(|line| line.at);
    (happened, lines)
}

/// Says that it is over, also where a test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Has a kubectl follow each container that runs, once for each time that it was started.
fn follow(bed: &Bed, namespace: &str, folder: &Path, is_over: &AtomicBool) -> Vec<Child> {
    let (mut seen, mut children) = (BTreeSet::new(), Vec::new());
    while !is_over.load(Ordering::Relaxed) {
        for (space, container) in [(namespace, "etcd"), (NAMESPACE, "gatehouse")] {
            // What cannot be listed now is listed the next time.
            for pod in bed.try_pods(space).unwrap_or_default() {
                let (metadata, statuses) = (&pod["metadata"], &pod["status"]["containerStatuses"]);
                let statuses = statuses.as_array().into_iter().flatten();
                let Some(status) = statuses
                    .into_iter()
                    .find(|status| status["name"] == container && status["state"]["running"].is_object())
                else {
                    continue;
                };
                let (uid, name) =
                    (metadata["uid"].to_string(), metadata["name"].as_str().unwrap_or_default());
                let starts = status["restartCount"].as_u64().unwrap_or_default();
                if seen.insert((uid, starts)) {
                    let file = folder.join(format!("{name}.{}.log", children.len()));
                    let mut kubectl = bed.cluster.kubectl();
                    kubectl.args(["logs", "--namespace", space, name, "--container", container]);
                    kubectl.args(["--follow", "--timestamps"]).stdin(Stdio::null()).stderr(Stdio::null());
                    let child = kubectl.stdout(File::create(file).expect("a file")).spawn();
                    children.push(child.expect("kubectl runs"));
                }
            }
        }
        std::thread::park_timeout(PAUSE);
    }
    children
}

/// The lines of a file: of gatehouse those about the namespace, without its trace.
fn read(path: &Path, namespace: &str) -> Vec<Line> {
    let text = String::from_utf8_lossy(&fs::read(path).expect("a log")).into_owned();
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let pod = name.split('.').next().unwrap_or_default();
    let is_of_gatehouse = pod.starts_with("gatehouse");
    let lines = text.lines().filter_map(|line| {
        let (at, text) = line.split_once(' ')?;
        let is_wanted =
            !is_of_gatehouse || text.contains(namespace) && !text.contains("gatehouse::reconciles");
        let at = at.parse::<Timestamp>().ok().filter(|_| is_wanted)?;
        Some(Line { at: at.into(), pod: pod.to_owned(), text: text.to_owned() })
    });
    lines.collect()
}

/// What was logged from one moment to another, in few words: each thing that a Pod says once, and how often it did.
pub fn said(lines: &[Line], from: SystemTime, to: SystemTime) -> String {
    let mut told: Vec<(String, u32)> = Vec::new();
    for line in lines.iter().filter(|line| (from..=to).contains(&line.at)) {
        let words = format!("{}: {}", line.pod, words(&line.text));
        match told.iter_mut().find(|(before, _)| *before == words) {
            Some((_, count)) => *count += 1,
            None => told.push((words, 1)),
        }
    }
    let told = told.into_iter().map(|(words, count)| match count {
        1 => words,
        _ => format!("{words} ({count} times)"),
    });
    let told: Vec<_> = told.collect();
    if told.is_empty() { "nothing was logged".to_owned() } else { told.join("; ") }
}

/// What a line is about: the message, and what gatehouse carried out.
fn words(text: &str) -> String {
    let line: Value = serde_json::from_str(text).unwrap_or_default();
    let field = |name: &str| line[name].as_str().or_else(|| line["fields"][name].as_str());
    let words = [field("msg").map(unnumbered), field("message"), field("action"), field("error")];
    let words: Vec<_> = words.into_iter().flatten().collect();
    if words.is_empty() { text.chars().take(200).collect() } else { words.join(" ") }
}

/// A message without the number that etcd gives each request that took long: `trace[7] put`.
fn unnumbered(message: &str) -> &str {
    match message.split_once("] ") {
        Some((number, request)) if number.starts_with("trace[") => request,
        _ => message,
    }
}
