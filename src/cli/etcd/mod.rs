//! `gatehouse etcd`: what runs in the pods of an EtcdCluster. The operator writes these command lines.

pub mod guard;
pub mod run;
pub mod snapshot;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{FAILED, Failure, output};
use crate::member::Refusal;

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
    /// certificates could not be read, 143 it was told to end.
    Snapshot(snapshot::Options),
}

/// Where things are in the pod of a member.
#[derive(Args, Clone, Debug)]
pub struct Places {
    /// Where the member's volume is mounted.
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/etcd")]
    data: PathBuf,
    /// The folder that the containers of the pod share.
    #[arg(long, value_name = "FOLDER", default_value = "/gatehouse-run")]
    work: PathBuf,
    /// What a kubelet reads when the container has ended.
    #[arg(long, value_name = "FILE", default_value = "/dev/termination-log")]
    termination_log: PathBuf,
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

/// Tells why etcd does not start on a volume: `<Cause>: <words>`, by which the operator knows that its data are beyond
/// use.
fn refuse(termination_log: &Path, refusal: Refusal) -> ExitCode {
    let message = format!("{}: {}", refusal.cause, refusal.words);
    leave_message(termination_log, &message);
    output::error(message);
    ExitCode::from(FAILED)
}

/// Leaves what a kubelet reads when the container has ended.
fn leave_message(termination_log: &Path, message: &str) {
    if let Err(error) = std::fs::write(termination_log, message) {
        // The kubelet takes the end of the log instead, where the same is said.
        tracing::warn!(file = %termination_log.display(), %error, "failed to write the termination message");
    }
}
