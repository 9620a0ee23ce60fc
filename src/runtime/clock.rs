//! The only place that asks the time.
//!
//! Everything that depends on time takes it as an argument; what hands it in takes it from here.

use jiff::Timestamp;
use tokio::time::Instant;

/// The wall clock: for rules, certificates and whatever a person reads. May jump.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// The clock that never goes back: for durations and deadlines.
#[must_use]
pub fn instant() -> Instant {
    Instant::now()
}
