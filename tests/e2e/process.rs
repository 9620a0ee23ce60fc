//! The processes of Pods, seen from the machine that is their node.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The processes that run in the Pod of that uid and whose command line begins with these words, the program without
/// its folder.
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
    let sent = Command::new("kill").args(["-KILL", &id.to_string()]).status();
    assert!(sent.expect("kill runs").success(), "process {id} has ended before");
}
