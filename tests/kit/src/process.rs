//! The processes of Pods, seen from the machine that is their node.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::wait;

/// The processes that run in the Pod of that uid and whose command line begins with these words, the program without
/// its folder.
#[must_use]
pub fn of_pod(uid: &str, words: &[&str]) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc");
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter(|id| is_of(*id, uid, words)).collect()
}

/// One that has ended meanwhile is not.
fn is_of(id: u32, uid: &str, words: &[&str]) -> bool {
    let folder = Path::new("/proc").join(id.to_string());
    let groups = fs::read_to_string(folder.join("cgroup")).unwrap_or_default();
    let line = fs::read(folder.join("cmdline")).unwrap_or_default();
    // The kubelet writes the uid with underscores where systemd manages the groups.
    let is_in_pod = groups.contains(uid) || groups.contains(&uid.replace('-', "_"));
    let line = String::from_utf8_lossy(&line);
    let mut said = line.split('\0');
    let program = said.next().and_then(|path| path.rsplit('/').next());
    is_in_pod && program.into_iter().chain(said).take(words.len()).eq(words.iter().copied())
}

/// Ends it without a word.
pub fn kill(id: u32) {
    signal(id, "-KILL");
}

/// Asks it to end.
pub fn terminate(id: u32) {
    signal(id, "-TERM");
}

/// Asks it to end, as Ctrl-C does.
pub fn interrupt(id: u32) {
    signal(id, "-INT");
}

/// Waits until it has ended.
#[track_caller]
pub fn until_ended(id: u32) {
    // One that has ended and was not waited for yet has no command line.
    wait::eventually(|| match fs::read(format!("/proc/{id}/cmdline")) {
        Ok(line) if !line.is_empty() => Err(format!("process {id} runs")),
        _ => Ok(()),
    });
}

/// Has it stand still, as if its machine hung.
pub fn freeze(id: u32) {
    signal(id, "-STOP");
}

/// Has it go on.
pub fn thaw(id: u32) {
    signal(id, "-CONT");
}

fn signal(id: u32, signal: &str) {
    let sent = Command::new("kill").args([signal, &id.to_string()]).status();
    assert!(sent.expect("kill runs").success(), "process {id} has ended before");
}

/// What a process has taken so far.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Time on a processor.
    pub cpu: Duration,
    /// Bytes in memory.
    pub resident: u64,
}

/// What a process has taken so far. Linux counts processor time in hundredths of a second, and memory in pages of 4 KiB
/// (proc(5)).
#[must_use]
pub fn usage(id: u32) -> Usage {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
    let fields: Vec<u64> = fields.split(' ').map(|field| field.trim().parse().unwrap_or_default()).collect();
    Usage { cpu: Duration::from_millis((fields[11] + fields[12]) * 10), resident: fields[21] * 4096 }
}

/// The most bytes that a process has had in memory so far.
#[must_use]
pub fn peak(id: u32) -> u64 {
    memory(id, "VmHWM:")
}

/// The bytes in memory that are of no file: heap, stacks, and data of the program that it has written to. The rest are
/// pages of the program, which the system keeps once for all who run it, and takes back where memory is short.
#[must_use]
pub fn anonymous(id: u32) -> u64 {
    memory(id, "RssAnon:")
}

/// What `/proc/PID/status` says by that name, in bytes.
fn memory(id: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("it has memory");
    line.trim().strip_suffix(" kB").and_then(|number| number.parse::<u64>().ok()).expect("a number") << 10
}
