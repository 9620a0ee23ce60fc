//! `gatehouse migrate`: runs the scripts of a DatabaseMigration, says what is applied, and waits for it. The operator
//! writes these command lines for Jobs; people may, too.

mod folder;
mod progress;
mod run;
mod status;
mod target;
mod wait;
mod words;

use std::process::ExitCode;

use clap::Subcommand;

use super::ending::Failure;

/// What can be done with migrations.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the scripts that are pending, each once and in order.
    ///
    /// Exit codes: 0 done, 2 the command line is wrong or what it names could not be read, 10 it failed and may go well
    /// another time, 20 it failed or was not begun, 30 a script's end is not known. With an assignment, what could not be
    /// read is reported with the code 20, too.
    Run(Box<run::Options>),
    /// Say what is applied, by the history in the database. Writes nothing.
    ///
    /// Exit codes: as for run.
    Status(Box<status::Options>),
    /// Wait until a script is applied, by the history in the database: an init container of an application.
    ///
    /// Exit codes: 0 it is applied, 1 it was not in time, 2 the command line is wrong or what it names could not be read.
    Wait(Box<wait::Options>),
}

/// Does what the command says.
///
/// # Errors
/// It could not be done.
pub fn run(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(options) => run::run(options),
        Command::Status(options) => status::run(options),
        Command::Wait(options) => wait::run(options),
    }
}
