//! One process of a control plane, in a process group of its own, with its output in a file.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use crate::{Error, ProcessId, process::Signal, reaper::Reaper};

const TAIL_LINES: usize = 15;
const TAIL_COLUMNS: usize = 400;

/// A started component. It is killed when dropped, unless it was let go.
#[derive(Debug)]
pub(crate) struct Component {
    label: &'static str,
    process: ProcessId,
    log: PathBuf,
    child: Option<Child>,
}

impl Component {
    /// Starts `command` with its output appended to `<folder>/<label>.log`, and the reaper knowing of it.
    pub(crate) fn start(
        label: &'static str,
        command: &mut Command,
        folder: &Path,
        reaper: &mut Reaper,
    ) -> Result<Self, Error> {
        let log = folder.join(format!("{label}.log"));
        let mut child = start_detached(command, &log)?;
        let known = ProcessId::of(child.id()).and_then(|id| {
            reaper.watch(&id)?;
            record(folder, label, &id)?;
            Ok(id)
        });
        let process = match known {
            Ok(process) => process,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error);
            }
        };
        Ok(Self { label, process, log, child: Some(child) })
    }

    pub(crate) fn label(&self) -> &'static str {
        self.label
    }

    pub(crate) fn process(&self) -> &ProcessId {
        &self.process
    }

    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// The error that it ended with, if it ended.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        let Some(status) = self.status() else {
            return Ok(());
        };
        let logs = self.tail();
        Err(Error::Exited {
            label: self.label,
            status,
            address_in_use: logs.contains("address already in use"),
            logs,
        })
    }

    /// Asks it to end, and kills it after `grace`.
    pub(crate) fn stop(self, grace: Duration) -> Result<(), Error> {
        self.process.stop(grace) // what is left of it is collected by the drop
    }

    /// Lets it live on without us.
    pub(crate) fn let_go(mut self) {
        self.child = None;
    }

    /// The last lines of its log, under a heading.
    pub(crate) fn tail(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let mut tail = format!("--- {} ({})", self.label, self.log.display());
        for line in lines.iter().skip(lines.len().saturating_sub(TAIL_LINES)) {
            tail.push('\n');
            tail.extend(line.chars().take(TAIL_COLUMNS));
        }
        tail
    }

    fn status(&mut self) -> Option<ExitStatus> {
        self.child.as_mut()?.try_wait().ok()?
    }
}

impl Drop for Component {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            if self.process.runs() {
                let _ = self.process.signal(Signal::Kill); // the group: some wait for what they started inside
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Adds a line to the file `pids`, by which a cluster can be cleared away when no process is left that knows it.
pub(crate) fn record(folder: &Path, label: &str, process: &ProcessId) -> Result<(), Error> {
    let path = folder.join("pids");
    let line = format!("{} {} {label}\n", process.pid(), process.started());
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .map_err(Error::io(format!("writing {}", path.display())))
}

/// Starts a command that leads a process group, reads nothing and appends what it says to `log`.
pub(crate) fn start_detached(command: &mut Command, log: &Path) -> Result<Child, Error> {
    let doing = || format!("opening the log {}", log.display());
    let output = OpenOptions::new().create(true).append(true).open(log).map_err(Error::io(doing()))?;
    let errors = output.try_clone().map_err(Error::io(doing()))?;
    let program = command.get_program().to_string_lossy().into_owned();
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .map_err(Error::io(format!("starting {program}")))
}
