//! What the API server says where it refuses a request.

use std::collections::BTreeSet;

use crate::wait::eventually;

/// Why the API server refused a request.
#[derive(Clone, Debug, Default)]
pub struct Refusal {
    /// The HTTP status.
    pub code: u16,
    /// The message of the Status.
    pub message: String,
    /// The fields that its causes name.
    pub fields: BTreeSet<String>,
}

/// Whether a request was refused because a webhook had not answered in time: then nothing was stored.
#[must_use]
pub fn is_late(refusal: &str) -> bool {
    refusal.contains("failed calling webhook") && refusal.contains("context deadline exceeded")
}

/// What comes of a request, which is made again where it was not judged in time. `message` is that of a refusal.
///
/// # Errors
/// The refusal.
#[track_caller]
pub fn until_judged<T, E>(
    mut ask: impl FnMut() -> Result<T, E>,
    message: impl Fn(&E) -> &str,
) -> Result<T, E> {
    eventually(|| match ask() {
        Err(refusal) if is_late(message(&refusal)) => Err(message(&refusal).to_owned()),
        other => Ok(other),
    })
}
