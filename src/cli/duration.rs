//! Durations on the command line.

use std::time::Duration;

use crate::api::duration;

/// The duration that a word means.
///
/// # Errors
/// What was expected instead.
pub fn parse(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|_| "expected a duration such as 10s or 1m30s".to_owned())
}
