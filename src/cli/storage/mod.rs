//! `gatehouse storage`: which versions the objects of definitions are stored in, and bringing them into one.
//!
//! Works for any definition of any group, in a cluster that has nothing else of gatehouse.

mod migrate;
mod progress;
mod rights;
mod status;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use tokio_util::sync::CancellationToken;

use super::connect::{NoCluster, infer};
use super::ending::{FAILED, Failure, USAGE};
use super::output;
use crate::runtime::supervisor::chain;
use crate::storage::observation::Definition;
use crate::storage::plan::Goal;
use crate::storage::requests::Requests;
use crate::storage::{Error, Migration, Options as Way, Silent};

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

async fn connect() -> Result<Requests, NoCluster> {
    infer("KUBECONFIG, ~/.kube/config or a pod's service account", Requests::new).await
}

/// The definitions of these names; or the exit code, where one cannot be read, which is then said.
async fn read(look: &Migration<'_>, names: &[String]) -> Result<Vec<Definition>, u8> {
    let mut definitions = Vec::new();
    for name in names {
        match look.definition(name).await {
            Ok(definition) => definitions.push(definition),
            Err(error) => {
                output::error(chain(&error));
                return Err(if matches!(error, Error::NoDefinition(_)) { USAGE } else { FAILED });
            }
        }
    }
    Ok(definitions)
}

/// One that only looks.
fn looking(requests: &Requests, chunks: Chunks) -> Migration<'_> {
    let options = Way { chunk: chunks.chunk_size, ..Way::default() };
    Migration { requests, goal: Goal::default(), options, stop: CancellationToken::new(), watch: &Silent }
}
