//! Programs as users run them: kubectl, helm and gatehouse itself, with what they print.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::refusal::until_judged;

/// How often kubectl was run.
static KUBECTL: AtomicUsize = AtomicUsize::new(0);

/// How often this process has run kubectl: it costs more than what it asks for.
#[must_use]
pub fn kubectl_runs() -> usize {
    KUBECTL.load(Ordering::Relaxed)
}

/// One call of a program.
#[derive(Debug)]
pub struct Call {
    command: Command,
    input: String,
}

impl Call {
    /// A call that was put together elsewhere, with its arguments.
    #[must_use]
    pub const fn new(command: Command) -> Self {
        Self { command, input: String::new() }
    }

    /// gatehouse with these words, which sees no cluster.
    #[must_use]
    pub fn gatehouse(program: &Path, words: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(words).env_remove("KUBECONFIG");
        Self::new(command)
    }

    /// What it reads with `-f -`.
    #[must_use]
    pub fn input(self, text: impl Into<String>) -> Self {
        let mut call = self.reads(text);
        call.command.args(["-f", "-"]);
        call
    }

    /// What it reads anyhow.
    #[must_use]
    pub fn reads(mut self, text: impl Into<String>) -> Self {
        self.input = text.into();
        self
    }

    fn line(&self) -> String {
        let program = self.command.get_program().to_string_lossy();
        let name = program.rsplit('/').next().unwrap_or_default().to_owned();
        let words = self.command.get_args().map(|word| word.to_string_lossy().into_owned());
        std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Whether it worked, its output, and what it printed beside. kubectl is run again where a webhook had not judged in
    /// time what it asked for.
    fn end(mut self) -> (bool, String, String) {
        let line = self.line();
        if !line.starts_with("kubectl ") {
            return self.once(&line);
        }
        let run = || {
            KUBECTL.fetch_add(1, Ordering::Relaxed);
            self.once(&line)
        };
        until_judged(run, |(worked, _, errors)| Some(&**errors).filter(|_| !worked))
    }

    fn once(&mut self, line: &str) -> (bool, String, String) {
        let child = self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{line}: {error}"));
        let (mut pipe, input) = (child.stdin.take().expect("piped"), self.input.clone());
        // Beside reading: it may write before it has read everything, and end without reading.
        let writer = std::thread::spawn(move || drop(pipe.write_all(input.as_bytes())));
        let output = child.wait_with_output().expect("it ends");
        writer.join().expect("what writes to it ends");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it writes UTF-8");
        (output.status.success(), text(output.stdout), text(output.stderr))
    }

    /// Its output.
    ///
    /// # Errors
    /// It fails; what it printed.
    pub fn run(self) -> Result<String, String> {
        let line = self.line();
        let (worked, output, errors) = self.end();
        if worked { Ok(output) } else { Err(format!("{line}: {errors}{output}")) }
    }

    /// It works; its output.
    #[track_caller]
    pub fn ok(self) -> String {
        self.run().unwrap_or_else(|why| panic!("{why}"))
    }

    /// It works; what it prints beside its output: warnings.
    #[track_caller]
    pub fn warnings(self) -> String {
        let line = self.line();
        let (worked, _, errors) = self.end();
        assert!(worked, "{line}: {errors}");
        errors
    }

    /// It fails; what it prints.
    #[track_caller]
    pub fn fails(self) -> String {
        let line = self.line();
        let (worked, output, errors) = self.end();
        assert!(!worked, "{line} should fail, and prints {output}{errors}");
        format!("{errors}{output}")
    }
}
