//! Clears away a cluster by what its folder says, whichever process started it and however that ended.
//!
//! The folder's file `pids` has a line `PID START LABEL` for each process, oldest first, written as they start;
//! `cgroup` names the control group, and `boot` the boot that all of it is of.

use std::{fs, path::Path, time::Duration};

use crate::{Error, ProcessId, files::write_private, node::remove_group, process::boot_id};

const GRACE: Duration = Duration::from_secs(5);

/// The process whose end ends all that runs on a node.
pub(crate) const HOLDER: &str = "namespaces";

/// Notes which boot the processes of this folder are of.
pub(crate) fn record_boot(folder: &Path) -> Result<(), Error> {
    write_private(&folder.join("boot"), &boot_id())
}

/// Ends the processes and removes the control group. The folder stays.
pub(crate) fn clear(folder: &Path) -> Result<(), Error> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    if read("boot").trim() == boot_id() {
        let processes = parse(&read("pids"));
        let (holder, others): (Vec<_>, Vec<_>) = processes.iter().partition(|(label, _)| label == HOLDER);
        for (_, process) in holder {
            process.stop(Duration::ZERO)?;
        }
        for (_, process) in others.iter().rev() {
            process.stop(GRACE)?;
        }
    }
    match read("cgroup").trim() {
        "" => Ok(()),
        group => remove_group(group),
    }
}

/// What a file `pids` has, oldest first. A line that was cut off is left out.
fn parse(text: &str) -> Vec<(String, ProcessId)> {
    let process = |line: &str| {
        let (process, label) = line.rsplit_once(' ')?;
        Some((label.to_owned(), ProcessId::parse(process)?))
    };
    text.split_inclusive('\n').filter_map(|line| process(line.strip_suffix('\n')?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_off_is_no_process() {
        let found = parse("12 345 etcd\n67 890 kube-apiserver\n12 3");
        let labels: Vec<&str> = found.iter().map(|(label, _)| label.as_str()).collect();
        assert_eq!(labels, ["etcd", "kube-apiserver"]);
        assert_eq!((found[0].1.pid(), found[0].1.started()), (12, 345));
    }
}
