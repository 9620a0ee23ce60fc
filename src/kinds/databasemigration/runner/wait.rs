//! Waiting until a script is applied, by the history table alone: what an application does before it starts.
//!
//! Guarantees: needs the right to read the history table, and none of Kubernetes. A database that cannot be reached, a file
//! and a history that are not there yet are waited for; nothing is written.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::super::assignment::History;
use super::super::result::Class;
use super::access::Access;
use super::connection::Connection;
use super::failure::Failure;
use super::history::Log;
use super::lock::Patience;

/// Between two looks.
const PAUSE: Duration = Duration::from_secs(2);

/// What is waited for.
#[derive(Clone, Debug)]
pub struct Awaited {
    /// Where the history is.
    pub history: History,
    /// The script that has to be applied.
    pub id: String,
    /// How long it is waited for.
    pub timeout: Duration,
}

/// Waits until the script is applied.
///
/// # Errors
/// What stood against it at the last look.
pub async fn wait(access: &Access, awaited: &Awaited, stop: &CancellationToken) -> Result<(), Failure> {
    let patience = Patience::of(awaited.timeout, stop);
    let access = access.reading();
    let mut last = String::new();
    loop {
        let failure = match look(&access, awaited).await {
            Ok(true) => return Ok(()),
            Ok(false) => {
                let message =
                    format!("script {} of the series {} is not applied", awaited.id, awaited.history.series);
                Failure::new(Class::Busy, message)
            }
            // Another try needs another command line, or another file.
            Err(failure) if matches!(failure.class, Class::Configuration | Class::Tls) => {
                return Err(failure);
            }
            Err(failure) => failure,
        };
        if failure.message != last {
            tracing::info!(reason = failure.message, "waiting");
            last.clone_from(&failure.message);
        }
        patience.pause(PAUSE, failure).await?;
    }
}

async fn look(access: &Access, awaited: &Awaited) -> Result<bool, Failure> {
    let mut connection = Connection::to(access).await?;
    let log = Log::of(&mut connection, &awaited.history, "wait", None).await?;
    log.has(&mut connection, &awaited.id).await
}
