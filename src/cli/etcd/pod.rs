//! The pod of a member, as its containers see it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::super::ending::FAILED;
use super::super::output;
use crate::kinds::etcdcluster::agent::Refusal;

/// Where things are in the pod of a member.
#[derive(Args, Clone, Debug)]
pub struct Places {
    /// Where the member's volume is mounted.
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/etcd")]
    pub data: PathBuf,
    /// The folder that the containers of the pod share.
    #[arg(long, value_name = "FOLDER", default_value = "/gatehouse-run")]
    pub work: PathBuf,
    /// What a kubelet reads when the container has ended.
    #[arg(long, value_name = "FILE", default_value = "/dev/termination-log")]
    pub termination_log: PathBuf,
}

/// Reports why etcd does not start on a volume: `<Cause>: <words>`, by which the operator knows that its data are
/// beyond use.
pub fn refuse(termination_log: &Path, refusal: Refusal) -> ExitCode {
    let message = format!("{}: {}", refusal.cause, refusal.words);
    leave_message(termination_log, &message);
    output::error(message);
    ExitCode::from(FAILED)
}

/// Leaves what a kubelet reads when the container has ended.
pub fn leave_message(termination_log: &Path, message: &str) {
    if let Err(error) = std::fs::write(termination_log, message) {
        // The kubelet takes the end of the log instead, which has the same message.
        tracing::warn!(file = %termination_log.display(), %error, "failed to write the termination message");
    }
}
