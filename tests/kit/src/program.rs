//! gatehouse as a process that runs beside a test, and what it logs meanwhile.
//!
//! Guarantees: a process ends when it is dropped, and when the process of the tests ends, however that ends; its log is
//! read once, each line as it comes, however often a test looks.
//! Assumes: `sh`, and a program that logs JSON to its standard error.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use testbed::ProcessId;

use crate::process;
use crate::wait::{PATIENCE, patient};

/// Between two looks at a log.
const PAUSE: Duration = Duration::from_millis(20);

/// How many of the last lines of a log are reported where a process does not do what is awaited.
const LAST_LINES: usize = 40;

/// Runs its arguments, tells the id of that process, and kills it when what it reads from ends. It ends when that does,
/// and as it did.
const SCRIPT: &str = r#"
    exec 3<&0
    "$@" </dev/null >/dev/null 3<&- &
    process=$!
    echo $process
    (read -r _ <&3; kill -9 $process) >/dev/null 2>&1 &
    watcher=$!
    wait $process
    code=$?
    kill $watcher
    exit $code"#;

/// What a process lives by: dropped, it is killed, if it has not ended.
#[derive(Debug)]
pub struct Leash {
    _pipe: ChildStdin,
}

/// A process. Dropped, it is killed.
#[derive(Debug)]
pub struct Program {
    /// Dropped, it makes the shell kill the process.
    pipe: Option<ChildStdin>,
    shell: Child,
    id: ProcessId,
    log: Log,
}

impl Program {
    /// Starts what the command says, with a log of its own in that file. The command's input and output are not used.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(command: &Command, log: &Path) -> Result<Self, String> {
        drop(File::create(log).map_err(|error| format!("unable to write {}: {error}", log.display()))?);
        Self::resume(command, log)
    }

    /// The same with a log behind what is in that file.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn resume(command: &Command, log: &Path) -> Result<Self, String> {
        let program = command.get_program().to_string_lossy().into_owned();
        let failed = |error: std::io::Error| format!("unable to start {program}: {error}");
        let file = File::options().create(true).append(true).open(log).map_err(failed)?;
        let log = Log::of_what_follows(log);
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "sh"]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            shell.current_dir(folder);
        }
        let mut shell =
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file).spawn().map_err(failed)?;
        let (pipe, output) = (shell.stdin.take(), shell.stdout.take().expect("it is piped"));
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).map_err(failed)?;
        let number = line.trim().parse().map_err(|_| format!("{program}: no process id in {line:?}"))?;
        let id = ProcessId::of(number).map_err(|_| format!("{program} ended at once:\n{}", log.end()))?;
        Ok(Self { pipe, shell, id, log })
    }

    /// gatehouse with these words, which logs as JSON what a test may have to know and sees no cluster.
    #[must_use]
    pub fn gatehouse(program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(["--log-format", "json"]).args(words);
        command.env_remove("KUBECONFIG").env("GATEHOUSE_LOG", "info,gatehouse=debug");
        command
    }

    /// Which process it is.
    #[must_use]
    pub const fn id(&self) -> &ProcessId {
        &self.id
    }

    /// What kills it for one who does not wait for it; dropping the process itself then waits. Once.
    #[must_use]
    pub fn leash(&mut self) -> Option<Leash> {
        self.pipe.take().map(|pipe| Leash { _pipe: pipe })
    }

    /// What it logs.
    #[must_use]
    pub const fn log(&self) -> &Log {
        &self.log
    }

    /// The first line of its log with that message.
    ///
    /// # Errors
    /// It ends without logging that, or does not log it in time; the end of its log.
    pub fn wait_for(&self, message: &str) -> Result<Value, String> {
        let (begun, limit) = (Instant::now(), patient(PATIENCE));
        loop {
            // In this order: what it logged last is read after it has ended.
            let has_ended = !self.id.runs();
            if let Some(line) = self.log.first(message) {
                return Ok(line);
            }
            if has_ended || begun.elapsed() > limit {
                let how = if has_ended { "ended" } else { "runs" };
                return Err(format!("it {how} and has not logged {message:?}:\n{}", self.log.end()));
            }
            std::thread::park_timeout(PAUSE);
        }
    }

    /// The same for a test that cannot go on without it.
    #[track_caller]
    pub fn logs(&self, message: &str) -> Value {
        self.wait_for(message).unwrap_or_else(|why| panic!("{why}"))
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        process::terminate(self.id.pid());
    }

    /// Asks it to end, as Ctrl-C does.
    pub fn interrupt(&self) {
        process::interrupt(self.id.pid());
    }

    /// Ends it as a crash would.
    pub fn kill(mut self) {
        process::kill(self.id.pid());
        self.ended();
    }

    /// Asks it to end, and waits until it has; whether it ended well.
    #[must_use]
    pub fn stop(self) -> bool {
        self.terminate();
        self.code() == Some(0)
    }

    /// Waits until it has ended; its exit code.
    #[must_use]
    pub fn code(mut self) -> Option<i32> {
        self.ended().code()
    }

    fn ended(&mut self) -> std::process::ExitStatus {
        self.shell.wait().expect("the shell ends")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ended = self.shell.wait();
    }
}

/// The log of a process, followed as it grows.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    read: Mutex<Followed>,
}

/// What has been read of a log.
#[derive(Debug, Default)]
struct Followed {
    /// Up to here, the end of a line.
    offset: u64,
    /// The first line with each message.
    first: BTreeMap<String, Value>,
}

impl Log {
    /// The log in that file, which another process writes.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), read: Mutex::default() }
    }

    /// The same without the lines that are there.
    fn of_what_follows(path: &Path) -> Self {
        let offset = fs::metadata(path).map_or(0, |file| file.len());
        let read = Mutex::new(Followed { offset, first: BTreeMap::new() });
        Self { path: path.to_owned(), read }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The first line with that message so far.
    #[must_use]
    pub fn first(&self, message: &str) -> Option<Value> {
        let mut read = self.locked();
        for line in self.lines_from(&mut read.offset) {
            let said = line["message"].as_str().unwrap_or_default().to_owned();
            read.first.entry(said).or_insert(line);
        }
        read.first.get(message).cloned()
    }

    /// All lines that come from now on, whenever it is asked for them.
    pub fn from_now(&self) -> impl FnMut() -> Vec<Value> + use<> {
        self.lines_after(fs::metadata(&self.path).map_or(0, |file| file.len()))
    }

    /// All lines, those that are there first.
    pub fn from_the_start(&self) -> impl FnMut() -> Vec<Value> + use<> {
        self.lines_after(0)
    }

    fn lines_after(&self, mut offset: u64) -> impl FnMut() -> Vec<Value> + use<> {
        let log = Self::of(&self.path);
        move || log.lines_from(&mut offset)
    }

    /// All of it as text.
    #[must_use]
    pub fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap_or_default()
    }

    /// Its last lines.
    #[must_use]
    pub fn end(&self) -> String {
        let text = self.text();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }

    /// The lines that are complete, from there on.
    fn lines_from(&self, offset: &mut u64) -> Vec<Value> {
        let mut text = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(*offset))?;
            file.read_to_end(&mut text)
        });
        // A log that is not there yet has no lines.
        let complete =
            read.ok().and_then(|_| text.iter().rposition(|byte| *byte == b'\n')).map_or(0, |at| at + 1);
        *offset += complete as u64;
        let lines = text[..complete].split(|byte| *byte == b'\n');
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    fn locked(&self) -> MutexGuard<'_, Followed> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A gatehouse that serves.
#[derive(Debug)]
pub struct Gate {
    program: Program,
    /// Where it serves reviews.
    pub address: SocketAddr,
    /// Where it serves its health and its metrics.
    pub health: SocketAddr,
}

impl Gate {
    /// Starts `gatehouse serve` with these words on ports of its own, and waits until it serves.
    ///
    /// # Errors
    /// It cannot be started, or ends before it serves.
    pub fn start(
        program: &Path,
        words: &[&str],
        kubeconfig: Option<&Path>,
        log: &Path,
    ) -> Result<Self, String> {
        let serve = ["serve", "--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0"];
        let mut command = Program::gatehouse(program, &[&serve, words].concat());
        if let Some(kubeconfig) = kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        Self::of(&command, log)
    }

    /// Starts what the command says, and waits until it serves.
    ///
    /// # Errors
    /// It cannot be started, or ends before it serves.
    pub fn of(command: &Command, log: &Path) -> Result<Self, String> {
        let program = Program::start(command, log)?;
        let serving = program.wait_for("serving")?;
        let address = |field: &str| {
            let text = serving[field].as_str().unwrap_or_default();
            text.parse().map_err(|_| format!("no {field} in {serving}"))
        };
        Ok(Self { address: address("address")?, health: address("health")?, program })
    }

    /// The process itself.
    #[must_use]
    pub fn into_program(self) -> Program {
        self.program
    }
}

impl Deref for Gate {
    type Target = Program;

    fn deref(&self) -> &Program {
        &self.program
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_log_is_read_line_by_line_as_it_comes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let log = Log::of(&path);
        assert_eq!(log.first("one"), None, "it is not there yet");
        let mut file = File::create(&path).expect("a file");
        file.write_all(b"no JSON\n{\"message\":\"one\",\"at\":1}\n{\"message\":\"t").expect("written");
        assert_eq!(log.first("one").map(|line| line["at"].clone()), Some(1.into()));
        assert_eq!(log.first("two"), None);
        let mut later = log.from_now();
        file.write_all(b"wo\"}\n{\"message\":\"one\",\"at\":2}\n").expect("written");
        assert!(log.first("two").is_some());
        assert_eq!(log.first("one").map(|line| line["at"].clone()), Some(1.into()), "the first stays");
        assert_eq!(later().last().map(|line| line["at"].clone()), Some(2.into()));
        assert!(later().is_empty());
    }

    #[test]
    fn what_ends_without_a_word_is_reported_with_its_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let program =
            Program::start(&shell("sleep 0.1; echo no luck >&2; exit 3"), &folder.path().join("log"));
        let program = program.expect("it starts");
        let why = program.wait_for("serving").expect_err("it logs no such thing");
        assert!(why.contains("ended") && why.contains("no luck"), "{why}");
        assert_eq!(program.code(), Some(3));
    }

    #[test]
    fn a_process_ends_with_what_holds_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let program =
            Program::start(&shell("exec sleep 600"), &folder.path().join("log")).expect("it starts");
        let id = program.id().clone();
        assert!(id.runs());
        drop(program);
        assert!(!id.runs());
        let program =
            Program::start(&shell("exec sleep 600"), &folder.path().join("log")).expect("it starts");
        assert!(!program.stop(), "it knows no SIGTERM");
    }
}
