//! `gatehouse storage`: which versions the objects of definitions are stored in, and bringing them into one.
//!
//! Works for any definition of any group, in a cluster that has nothing else of gatehouse.

mod migrate;
mod progress;
mod rights;
mod status;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use kube::Config;
use tokio_util::sync::CancellationToken;

use super::ending::Failure;
use crate::storage::plan::Goal;
use crate::storage::requests::Requests;
use crate::storage::{Migration, Options as Way, Silent};

/// What can be done with what is stored.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show which versions objects are stored in, and what holds old versions back.
    Status(status::Options),
    /// Write all objects of definitions in their storage version.
    Migrate(migrate::Options),
}

/// How objects are listed.
#[derive(Args, Clone, Copy, Debug)]
struct Chunks {
    /// How many objects are listed at a time.
    #[arg(long, value_name = "COUNT", default_value_t = Way::default().chunk,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    chunk_size: u32,
}

/// Does what the command line says.
///
/// # Errors
/// There is no way to an API server, or standard output takes nothing. The exit code says all else.
pub fn run(command: Command) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Status(options) => status::run(&options).await,
            Command::Migrate(options) => migrate::run(&options).await,
        }
    })
}

/// There is no way to an API server.
#[derive(Debug, thiserror::Error)]
#[error("unable to find a Kubernetes API: expected KUBECONFIG, ~/.kube/config or a pod's service account")]
struct NoCluster {
    source: Box<dyn std::error::Error + Send + Sync>,
}

async fn connect() -> Result<Requests, NoCluster> {
    let config = Config::infer().await.map_err(|source| NoCluster { source: source.into() })?;
    Requests::new(config).map_err(|source| NoCluster { source: source.into() })
}

/// One that only looks.
fn looking(requests: &Requests, chunks: Chunks) -> Migration<'_> {
    let options = Way { chunk: chunks.chunk_size, ..Way::default() };
    Migration { requests, goal: Goal::default(), options, stop: CancellationToken::new(), watch: &Silent }
}
