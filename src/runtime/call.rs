//! One call to the API server, with a limit.
//!
//! Guarantees: a call ends. The client alone does not see to that: it waits for an answer without limit, and
//! repeats what was throttled for many minutes.

use std::future::Future;
use std::time::Duration;

use kube::core::Status;

/// How long one call may take.
pub const LIMIT: Duration = Duration::from_secs(10);

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
