//! Programs that are run to their end.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use crate::Error;

/// Runs a program and takes what it says. Its input is empty unless the caller set one by `feed`.
pub(crate) fn run(command: &mut Command) -> Result<String, Error> {
    finish(command.stdin(Stdio::null()))
}

/// Runs a program with a file for its input.
pub(crate) fn feed(command: &mut Command, input: &Path) -> Result<String, Error> {
    let file = std::fs::File::open(input).map_err(Error::io(format!("opening {}", input.display())))?;
    finish(command.stdin(file))
}

/// Whether a program succeeds. What it says is thrown away.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn finish(command: &mut Command) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(Error::io(format!("running {program}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    let arguments = arguments.filter(|argument| !argument.contains('\n')); // scripts
    let words: Vec<_> = [program.as_str().into()].into_iter().chain(arguments).collect();
    Err(Error::Command {
        command: words.join(" "),
        stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}
