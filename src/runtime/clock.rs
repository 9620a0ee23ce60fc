//! The only place that reads the time.
//!
//! Everything that depends on time takes it as an argument; what hands it in takes it from here.
//!
//! The wall clock may jump: it is set, or the machine has slept. What waits for a time of it looks again then ([`jumps`]).
//!
//! # A clock for tests
//!
//! A build with debug assertions, or with the feature `fail-points`, adds an offset to the wall clock: the signed
//! duration, such as `PT2H` or `-30m`, in the file that `GATEHOUSE_CLOCK` names. No file and an empty one mean none. A
//! test that replaces the file jumps, and need not wait for a boundary. What such a jump does:
//!
//! - reconciliations: each object is looked at once ([`jumps`]);
//! - the lease: nothing. Terms are computed by [`instant`]; only the times in a Lease are shifted;
//! - certificates: the next look at them, within a minute, sees the new time, and renews what is due by then and
//!   nothing else. A server rejects what is valid by the offset alone if its own clock has another one;
//! - etcd clusters: what is remembered of them has ages by [`instant`], which a jump leaves as they are. The ages of
//!   pods and of conditions are computed by the wall clock, and grow by the jump;
//! - times of the API server, such as those of managed fields and of creation, stay real; how old a definition is by
//!   them grows by the jump ([`shifted`]).
//!
//! Never: anything of it in a release build without that feature.

mod jumps;
#[cfg(any(debug_assertions, feature = "fail-points"))]
mod offset;

pub use jumps::jumps;

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// The wall clock: for rules, certificates and whatever a person reads. May jump.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn now() -> Timestamp {
    let real = Timestamp::now();
    #[cfg(any(debug_assertions, feature = "fail-points"))]
    let real = offset::added_to(real);
    real
}

/// A time by the clock of another machine, to be compared with one that was told by that clock before: as if that clock
/// had jumped as well where a test has ours jump.
#[must_use]
pub fn shifted(time: Timestamp) -> Timestamp {
    #[cfg(any(debug_assertions, feature = "fail-points"))]
    let time = offset::added_to(time);
    time
}

/// The clock that never goes back: for durations and deadlines.
#[must_use]
pub fn instant() -> Instant {
    Instant::now()
}

/// Between two looks at the clocks, which are so far apart where no test has them jump.
fn pause(usual: Duration) -> Duration {
    #[cfg(any(debug_assertions, feature = "fail-points"))]
    let usual = offset::pause(usual);
    usual
}
