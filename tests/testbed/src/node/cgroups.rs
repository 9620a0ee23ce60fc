//! The control group that all pods of a cluster are below, on whatever the machine has: version 1, 2 or both.

use std::{path::Path, process::Command};

use crate::{
    Error,
    command::run,
    files::{random_hex, write_private},
    reaper::Reaper,
};

/// Makes the group `$1` in every hierarchy. In version 2 its controllers have to be switched on above it;
/// which of them there are, and whether they are on already, differs.
const MAKE: &str = r#"
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*; do
    [ -f "$hierarchy/cgroup.procs" ] && [ ! -L "$hierarchy" ] || continue
    case $hierarchy in /sys/fs/cgroup/*) [ ! -f /sys/fs/cgroup/cgroup.procs ] || continue ;; esac
    if [ -f "$hierarchy/cgroup.subtree_control" ]; then
        for controller in cpu cpuset memory pids io hugetlb; do
            { echo "+$controller" >"$hierarchy/cgroup.subtree_control"; } 2>/dev/null || true
        done
    fi
    mkdir -p "$hierarchy/$1" || exit 1
done
"#;

/// Removes the group `$1` with those below it, waiting ten seconds for the last processes in it to end.
/// It is part of the reaper's script as well.
pub(crate) const REMOVE: &str = r#"
groups() { find /sys/fs/cgroup -maxdepth 2 -type d -name "$1" 2>/dev/null; }
remove_groups() {
    tries=100
    while :; do
        groups "$1" | while read -r top; do find "$top" -depth -type d -exec rmdir '{}' ';' 2>/dev/null; done
        [ -n "$(groups "$1")" ] || return 0
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || break
        sleep 0.1
    done
    echo "processes are left in" $(groups "$1") >&2
    return 1
}
"#;

/// Makes a group named after the cluster, with the reaper knowing of it, and leaves its name in the folder for
/// the process that clears up later.
pub(crate) fn make(folder: &Path, name: &str, reaper: &mut Reaper) -> Result<String, Error> {
    let group = format!("testbed-{name}-{}", random_hex(4)?);
    write_private(&folder.join("cgroup"), &group)?;
    reaper.watch_group(&group)?;
    run(Command::new("sh").args(["-c", MAKE, "testbed-groups", &group]))?;
    Ok(group)
}

/// Removes the group. That it is gone is fine.
pub(crate) fn remove(group: &str) -> Result<(), Error> {
    let script = format!("{REMOVE}\nremove_groups \"$1\"");
    run(Command::new("sh").args(["-c", &script, "testbed-groups", group])).map(drop)
}
