//! `gatehouse etcd`: what runs in the pods of an EtcdCluster. The operator writes these command lines.

pub mod guard;
mod pod;
pub mod run;
pub mod snapshot;

use std::process::ExitCode;

use clap::Subcommand;

use super::ending::Failure;

/// What can be done in the pods of an EtcdCluster.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Wait until etcd may start in this pod, and see that the volume is the member's.
    Guard(guard::Options),
    /// See once more that the volume is the member's, and become etcd.
    Run(run::Options),
    /// Take a backup into a folder, verify it, and delete those that are no longer to be kept.
    ///
    /// Exit codes: 0 there is another backup that was verified, 1 there is none, 2 the command line is wrong or the
    /// certificates could not be read, 143 it was ended by a signal.
    Snapshot(snapshot::Options),
}

/// Does what the command says.
///
/// # Errors
/// It could not be done.
pub fn run(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Guard(options) => guard::run(options),
        Command::Run(options) => run::run(options),
        Command::Snapshot(options) => snapshot::run(options),
    }
}
