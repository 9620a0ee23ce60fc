//! `gatehouse migrate wait`: what the init container of an application runs.

use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::super::duration;
use super::super::ending::{FAILED, Failure, OK, USAGE};
use super::super::output;
use super::target::{Reach, Target, id};
use crate::kinds::databasemigration::assignment::Engine;
use crate::kinds::databasemigration::runner::{Awaited, wait};
use crate::runtime::signals::Signals;

/// The options of `gatehouse migrate wait`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    reach: Reach,
    /// The script that has to be applied.
    #[arg(long, value_name = "ID", value_parser = id)]
    min_id: String,
    /// How long it is waited for. A kubelet starts the container again.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration::parse)]
    timeout: Duration,
}

/// Waits until the script is applied.
///
/// # Errors
/// There is no runtime for it.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let access = options.target.database().and_then(|database| {
        if database.engine != Engine::SQLite && database.host.is_none() {
            return Err(format!("--host: {} needs a host", database.engine));
        }
        options.reach.access(&database, "gatehouse/wait")
    });
    let access = match access {
        Ok(access) => access,
        Err(message) => {
            output::error(message);
            return Ok(ExitCode::from(USAGE));
        }
    };
    let awaited =
        Awaited { history: options.target.history(), id: options.min_id.clone(), timeout: options.timeout };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let waited = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let stop = CancellationToken::new();
        let mut waiting = pin!(wait(&access, &awaited, &stop));
        loop {
            tokio::select! {
                waited = &mut waiting => return Ok::<_, Failure>(waited),
                _ = signals.next() => stop.cancel(),
            }
        }
    })?;
    match waited {
        Ok(()) => {
            output::note(&format!("script {} is applied", options.min_id));
            Ok(ExitCode::from(OK))
        }
        Err(failure) => {
            output::error(failure.message);
            Ok(ExitCode::from(FAILED))
        }
    }
}
