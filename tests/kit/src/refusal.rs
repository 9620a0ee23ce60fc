//! What the API server says where it refuses a request.

use std::collections::BTreeSet;

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
