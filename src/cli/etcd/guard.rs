//! `gatehouse etcd guard`: the init container of a member.
//!
//! Guarantees: it ends with 0 only where etcd may start; when it is stopped while it waits, it ends at once, with the
//! code that a shell gives for it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::super::ending::{Failure, OK};
use super::pod::{Places, refuse};
use crate::kinds::etcdcluster::agent::guard::Guard;
use crate::runtime::signals::Signals;

/// 128 and the number of SIGTERM.
const TERMINATED: u8 = 143;

/// The options of `gatehouse etcd guard`.
#[derive(Args, Debug)]
pub struct Options {
    /// Name of the member: of its pod.
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    member: String,
    /// Uid of the pod.
    #[arg(long, value_name = "UID", env = "POD_UID")]
    pod: String,
    /// Uid of the EtcdCluster.
    #[arg(long, value_name = "UID")]
    cluster: String,
    /// The template that the pod was made from, as its annotation has it.
    #[arg(long, value_name = "TEXT")]
    template: String,
    /// What the data hang on.
    #[arg(long, value_enum, default_value_t)]
    volume: Lifetime,
    /// Where the ConfigMap with the members' entries is mounted.
    #[arg(long, value_name = "FOLDER", default_value = "/etc/gatehouse/config")]
    config: PathBuf,
    #[command(flatten)]
    places: Places,
}

/// What the data of a member hang on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Lifetime {
    /// A claim, which outlives pods.
    #[default]
    Claim,
    /// The pod: they lie in memory.
    Pod,
}

/// Waits until etcd may start.
///
/// # Errors
/// Something could not be read or written.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(stand(options))
}

async fn stand(options: &Options) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen()?;
    let guard = Guard {
        member: options.member.clone(),
        pod: options.pod.clone(),
        cluster: options.cluster.clone(),
        template: options.template.clone(),
        is_in_memory: options.volume == Lifetime::Pod,
        config: options.config.clone(),
        data: options.places.data.clone(),
        work: options.places.work.clone(),
    };
    tokio::select! {
        stood = guard.stand() => match stood? {
            Ok(()) => Ok(ExitCode::from(OK)),
            Err(refusal) => Ok(refuse(&options.places.termination_log, refusal)),
        },
        signal = signals.next() => {
            tracing::info!(signal, "no longer waiting");
            Ok(ExitCode::from(TERMINATED))
        }
    }
}
