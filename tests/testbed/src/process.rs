//! Processes told apart from any later one that got the same id, by the time they started at.
//!
//! Assumes that the process leads a process group of its own, as all that the testbed starts do: signals go
//! to the whole group.

use std::{
    fs,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::Error;

const POLL: Duration = Duration::from_millis(20);
const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// One process of this boot of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    pid: u32,
    /// In clock ticks since boot, from `/proc/PID/stat`.
    started: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Signal {
    Terminate,
    Kill,
    Stop,
    Continue,
}

impl ProcessId {
    /// The process that has this id now.
    ///
    /// # Errors
    /// There is no such process.
    pub fn of(pid: u32) -> Result<Self, Error> {
        let stat = Stat::of(pid).ok_or(Error::NoSuchProcess(pid))?;
        Ok(Self { pid, started: stat.started })
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn started(&self) -> u64 {
        self.started
    }

    /// Whether this very process still runs. One that ended and waits for its parent to notice does not.
    #[must_use]
    pub fn runs(&self) -> bool {
        Stat::of(self.pid).is_some_and(|stat| stat.started == self.started && !stat.ended)
    }

    /// One that was written down as `PID START`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (pid, started) = text.split_once(' ')?;
        Some(Self { pid: pid.parse().ok()?, started: started.parse().ok()? })
    }

    /// A process that this one started and has not waited for.
    ///
    /// # Errors
    /// There is none.
    pub fn child(&self) -> Result<Self, Error> {
        let child = all().find(|(_, stat)| stat.parent == self.pid);
        child.map(|(pid, stat)| Self { pid, started: stat.started }).ok_or(Error::NoSuchProcess(self.pid))
    }

    /// The memory in KiB (resident set) of the group that it leads, while it runs.
    #[must_use]
    pub fn resident_kib(&self) -> Option<u64> {
        let group = all().filter(|(_, stat)| stat.group == self.pid);
        self.runs().then(|| group.filter_map(|(pid, _)| resident_kib(pid)).sum())
    }

    /// Asks it to end, waits so long, then kills it. That it ended already is fine.
    pub(crate) fn stop(&self, grace: Duration) -> Result<(), Error> {
        if !self.runs() {
            return Ok(());
        }
        self.signal(Signal::Terminate)?;
        if self.ends_within(grace) {
            return Ok(());
        }
        self.signal(Signal::Kill)?;
        if self.ends_within(KILL_PATIENCE) { Ok(()) } else { Err(Error::Immortal(self.pid)) }
    }

    /// Sends a signal to the group that it leads. That the group is gone is fine.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Error> {
        let name = match signal {
            Signal::Terminate => "TERM",
            Signal::Kill => "KILL",
            Signal::Stop => "STOP",
            Signal::Continue => "CONT",
        };
        // The shell's own kill: there is none in std that takes an id.
        Command::new("sh")
            .args(["-c", r#"kill -s "$1" -- "-$2""#, "kill", name, &self.pid.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map_err(Error::io("running sh to send a signal"))?;
        Ok(())
    }

    fn ends_within(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while self.runs() {
            if Instant::now() >= deadline {
                return false;
            }
            pause(POLL);
        }
        true
    }
}

/// Lets some time pass between two looks at a process or a port, of which nothing tells when they change.
#[expect(
    clippy::disallowed_methods,
    reason = "other processes are watched, and no runtime is here to await in"
)]
pub(crate) fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// Tells one boot of a machine from another: process ids and start times mean nothing across them.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// All processes that there are now.
fn all() -> impl Iterator<Item = (u32, Stat)> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, Stat::of(pid)?)))
}

fn resident_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What the testbed reads of `/proc/PID/stat`.
struct Stat {
    parent: u32,
    group: u32,
    started: u64,
    ended: bool,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Field 2 is the command in parentheses, and may itself hold spaces and parentheses.
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?; // field 3
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let started = fields.nth(16)?.parse().ok()?; // field 22
        Some(Self { parent, group, started, ended: matches!(state, "Z" | "X") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;

    #[test]
    fn stat_is_read_past_any_command_name() {
        let line = "7 (a) b) Z 1 6 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.parent, stat.group, stat.started, stat.ended), (1, 6, 4711, true));
    }

    #[test]
    fn a_process_is_stopped_and_a_later_one_of_its_id_is_not() {
        let mut child = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        let id = ProcessId::of(child.id()).unwrap();
        let earlier = ProcessId { pid: id.pid, started: id.started + 1 };
        assert!(id.runs() && !earlier.runs());
        earlier.stop(Duration::ZERO).unwrap();
        assert!(id.runs());
        id.stop(Duration::from_secs(5)).unwrap();
        assert!(!id.runs()); // ended, although its parent has not waited for it yet
        child.wait().unwrap();
    }

    #[test]
    fn one_that_ignores_the_request_is_killed() {
        let mut child = Command::new("sh")
            .args(["-c", "trap '' TERM; while :; do sleep 1; done"])
            .process_group(0)
            .spawn()
            .unwrap();
        let id = ProcessId::of(child.id()).unwrap();
        pause(Duration::from_millis(100));
        id.stop(Duration::from_millis(100)).unwrap();
        assert!(!id.runs());
        child.wait().unwrap();
    }
}
