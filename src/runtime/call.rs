//! One call to the API server, with a limit, and how long its watches are quiet.
//!
//! Guarantees: a call ends. The client alone does not see to that: it waits for an answer without limit, and
//! repeats what was throttled for many minutes. A watch whose connection is dead begins again within two minutes.

use std::future::Future;
use std::time::Duration;

use kube::Config;
use kube::core::Status;
use kube::runtime::watcher;

/// How long one call may take.
pub const LIMIT: Duration = Duration::from_secs(10);

/// After how many seconds the API server ends a watch, which then goes on where it was. The client takes a watch that has
/// been quiet for five seconds longer for dead (kube-runtime, `WATCH_IDLE_TIMEOUT_MARGIN`): nothing else tells one whose
/// server has lost its power from one on which nothing happens. By default that takes 295 s.
const WATCH_SECONDS: u32 = 60;

/// How long an API server may send nothing on a connection that waits for it. Longer than a watch is quiet, and than a
/// list takes that no other limit ends (kube-apiserver, `--request-timeout`).
pub const SILENCE: Duration = Duration::from_secs(75);

/// How long an API server keeps a connection on which nothing is asked (kube-apiserver, `IdleTimeout` of
/// `SecureServingInfo`; the pool of hyper-util's client keeps it as long). A request that meets the closing fails, and it
/// is unknown whether it was carried out.
const KEPT: Duration = Duration::from_secs(90);

// The client closes first.
const _: () = assert!(SILENCE.as_secs() < KEPT.as_secs());

/// The configuration of a watch of all objects.
#[must_use]
pub fn watching() -> watcher::Config {
    watcher::Config::default().timeout(WATCH_SECONDS)
}

/// A configuration whose clients give up connections on which the API server has gone silent, and those that have not been
/// in use for as long.
#[must_use]
pub fn impatient(mut config: Config) -> Config {
    config.read_timeout = Some(SILENCE);
    // A connection that was not in use meanwhile was not waited for.
    config.reset_reader_on_write = true;
    config
}

/// A call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused.
    #[error("{}", .0.message)]
    Refused(Box<Status>),
    /// There was no answer that could be read.
    #[error("{0}")]
    Broken(#[source] Box<kube::Error>),
    /// There was no answer in time.
    #[error("no answer within {} s", LIMIT.as_secs())]
    Timeout,
}

impl Error {
    /// The object is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(status) if status.is_not_found())
    }

    /// A right is missing, or a policy refuses.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == 403)
    }

    /// Another client wrote first: the object is there already, or has another resource version.
    #[must_use]
    pub fn is_lost_race(&self) -> bool {
        matches!(self, Self::Refused(status) if status.is_conflict() || status.is_already_exists())
    }
}

/// Waits for a call, but no longer than [`LIMIT`].
///
/// # Errors
/// As the call, or when the time is over.
pub async fn call<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, Error> {
    match tokio::time::timeout(LIMIT, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) => Err(Error::Refused(status)),
        Ok(Err(error)) => Err(Error::Broken(Box::new(error))),
        Err(_) => Err(Error::Timeout),
    }
}
