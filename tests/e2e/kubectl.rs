//! Programs as users run them: kubectl, helm and gatehouse itself, with what they say.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything that has to come true may take.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// One call of a program.
pub struct Call {
    command: Command,
    input: String,
}

impl Call {
    pub fn new(command: Command) -> Self {
        Self { command, input: String::new() }
    }

    /// What it reads with `-f -`.
    pub fn input(mut self, text: impl Into<String>) -> Self {
        self.input = text.into();
        self.command.args(["-f", "-"]);
        self
    }

    fn said(&self) -> String {
        let words = self.command.get_args().map(|word| word.to_string_lossy());
        let program = self.command.get_program().to_string_lossy();
        let name = program.rsplit('/').next().unwrap_or_default();
        [name.into()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Its output; what it says, where it fails.
    pub fn run(mut self) -> Result<String, String> {
        let said = self.said();
        let child = self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| format!("{said}: {error}"))?;
        let mut pipe = child.stdin.take().expect("piped");
        // It may end without reading.
        let _unread = pipe.write_all(self.input.as_bytes());
        drop(pipe);
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it writes UTF-8");
        let (output, worked, errors) = (text(output.stdout), output.status.success(), text(output.stderr));
        if worked { Ok(output) } else { Err(format!("{said}: {errors}{output}")) }
    }

    /// It works; its output.
    #[track_caller]
    pub fn ok(self) -> String {
        self.run().unwrap_or_else(|why| panic!("{why}"))
    }

    /// It fails; what it says.
    #[track_caller]
    pub fn fails(self) -> String {
        let said = self.said();
        match self.run() {
            Ok(output) => panic!("{said} should fail, and says {output}"),
            Err(why) => why,
        }
    }
}

/// The program on this machine, with these words; what it prints.
#[track_caller]
pub fn gatehouse(words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatehouse"));
    command.args(words).env_remove("KUBECONFIG");
    Call::new(command).ok()
}

/// Waits until `look` finds what it looks for; what it said last, where it does not.
#[track_caller]
pub fn eventually<T>(look: impl FnMut() -> Result<T, String>) -> T {
    within(PATIENCE, look)
}

/// The same, with a limit of its own.
#[track_caller]
pub fn within<T>(limit: Duration, mut look: impl FnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(last) => assert!(begun.elapsed() < limit, "not within {limit:?}: {last}"),
        }
        std::thread::park_timeout(Duration::from_millis(100));
    }
}
