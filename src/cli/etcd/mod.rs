//! `gatehouse etcd`: what runs in the pods of an EtcdCluster. The operator writes these command lines.

pub mod guard;
pub mod run;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{FAILED, Failure, output};
use crate::member::Refusal;

/// What can be done in the pod of a member.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Wait until etcd may start in this pod, and see that the volume is the member's.
    Guard(guard::Options),
    /// See once more that the volume is the member's, and become etcd.
    Run(run::Options),
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
    }
}

/// Tells why etcd does not start on a volume: `<Cause>: <words>`, by which the operator knows that its data are beyond
/// use.
fn refuse(termination_log: &Path, refusal: Refusal) -> ExitCode {
    let message = format!("{}: {}", refusal.cause, refusal.words);
    if let Err(error) = std::fs::write(termination_log, &message) {
        // The kubelet takes the end of the log instead, which is the message below.
        tracing::warn!(file = %termination_log.display(), %error, "failed to write the termination message");
    }
    output::error(message);
    ExitCode::from(FAILED)
}
