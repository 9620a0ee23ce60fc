//! What ends a control plane when its parent cannot: a small shell that reads a pipe which only the parent
//! holds.
//!
//! Guarantees: when the pipe closes, whether the parent closed it, crashed or was killed, every process that it watches
//! is killed, and then the control group and the folder are removed. A process id that meanwhile means another process
//! is left alone. After [`Reaper::release`] nothing is killed or removed.
//!
//! Between the start of a component and [`Reaper::watch`] lie microseconds in which a killed parent leaves
//! that component behind.

use std::{
    io::Write,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
};

use crate::{Error, ProcessId, node::REMOVE_GROUPS};

const SCRIPT: &str = r#"
trap '' INT TERM HUP
watched=
group=
while read -r line; do
    case $line in
    release) exit 0 ;;
    "group "*) group=${line#group } ;;
    *) watched="$line
$watched" ;;
    esac
done

# runs PID START: whether it is still that process
runs() {
    read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
    wanted=$2
    set -- ${stat##*) }
    [ "$1" != Z ] && [ "${20}" = "$wanted" ]
}

printf '%s' "$watched" | while read -r pid start; do
    if runs "$pid" "$start"; then kill -s KILL -- "-$pid"; fi
done
printf '%s' "$watched" | while read -r pid start; do
    tries=100
    while [ "$tries" -gt 0 ] && runs "$pid" "$start"; do
        sleep 0.1
        tries=$((tries - 1))
    done
done
if [ -n "$group" ]; then remove_groups "$group"; fi
if [ -n "$1" ]; then rm -rf -- "$1"; fi
"#;

/// The shell, and the end of the pipe that keeps it waiting.
#[derive(Debug)]
pub(crate) struct Reaper {
    shell: Child,
    pipe: Option<ChildStdin>,
}

impl Reaper {
    /// Starts to watch; `folder` is what is removed at the end.
    pub(crate) fn start(folder: Option<&Path>) -> Result<Self, Error> {
        let mut shell = Command::new("sh")
            .args(["-c", &format!("{REMOVE_GROUPS}{SCRIPT}"), "testbed-reaper"])
            .arg(folder.unwrap_or_else(|| Path::new("")))
            .current_dir("/")
            .process_group(0) // out of reach of an interrupt at the terminal
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Error::io("starting sh, which ends what a crashed test leaves"))?;
        let pipe = shell.stdin.take();
        Ok(Self { shell, pipe })
    }

    /// Has this process killed at the end as well.
    pub(crate) fn watch(&mut self, process: &ProcessId) -> Result<(), Error> {
        self.tell(&format!("{} {}\n", process.pid(), process.started()))
    }

    /// Has this control group removed at the end, when its processes are gone.
    pub(crate) fn watch_group(&mut self, group: &str) -> Result<(), Error> {
        self.tell(&format!("group {group}\n"))
    }

    /// Lets everything live.
    pub(crate) fn release(mut self) -> Result<(), Error> {
        self.tell("release\n")
        // The drop closes the pipe, at whose end the shell has nothing left to do.
    }

    fn tell(&mut self, line: &str) -> Result<(), Error> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        pipe.write_all(line.as_bytes()).map_err(Error::io("telling the reaper"))
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        self.pipe = None;
        let _ = self.shell.wait(); // bounded: the script waits ten seconds per process at most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> (Child, ProcessId) {
        let child = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        let id = ProcessId::of(child.id()).unwrap();
        (child, id)
    }

    #[test]
    fn when_the_pipe_closes_the_processes_end_and_the_folder_goes() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("it's a folder");
        std::fs::create_dir(&folder).unwrap();
        let mut reaper = Reaper::start(Some(&folder)).unwrap();
        let (mut one, one_id) = sleeper();
        let (mut other, other_id) = sleeper();
        reaper.watch(&one_id).unwrap();
        reaper.watch(&other_id).unwrap();
        drop(reaper);
        assert!(!one_id.runs() && !other_id.runs());
        assert!(!folder.exists() && parent.path().exists());
        one.wait().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn what_was_released_lives_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut reaper = Reaper::start(Some(folder.path())).unwrap();
        let (mut child, id) = sleeper();
        reaper.watch(&id).unwrap();
        reaper.release().unwrap();
        assert!(id.runs() && folder.path().exists());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
