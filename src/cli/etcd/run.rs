//! `gatehouse etcd run`: the process of a member's own container, until it becomes etcd.
//!
//! Guarantees: the process stays the same, so that etcd hears the signals of the kubelet itself; it never waits.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::ExitCode;

use clap::Args;

use super::super::ending::Failure;
use super::pod::{Places, refuse};
use crate::kinds::etcdcluster::agent;
use crate::kinds::etcdcluster::agent::run::{FLAGS, FLAGS_AGAIN, Start};

/// The options of `gatehouse etcd run`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    places: Places,
    /// Etcd and its flags.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The program could not be started.
#[derive(Debug, thiserror::Error)]
#[error("failed to start {program:?}")]
struct NotStarted {
    program: OsString,
    source: std::io::Error,
}

/// Becomes etcd, where the volume is the member's.
///
/// # Errors
/// Something could not be read or written, or there is no such program.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let places = &options.places;
    let start = match agent::run::prepare(&places.work, &places.data)? {
        Ok(start) => start,
        Err(refusal) => return Ok(refuse(&places.termination_log, refusal)),
    };
    let [program, flags @ ..] = options.command.as_slice() else {
        return Err("there is no command to become".into());
    };
    let file = |name: &str| OsString::from(format!("--config-file={}", places.work.join(name).display()));
    let (told, again) = (file(FLAGS), file(FLAGS_AGAIN));
    let flags = flags.iter().map(|flag| if start == Start::Again && *flag == told { &again } else { flag });
    let source = std::process::Command::new(program).args(flags).exec();
    Err(NotStarted { program: program.clone(), source }.into())
}
