//! How many files this process may have open. A connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit to the highest that is allowed; what it is then. Container runtimes often start programs with 1024,
/// for the sake of those that use `select`.
#[must_use]
pub fn raise_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: limit.maximum, ..limit };
    let raised = setrlimit(Resource::Nofile, wanted).is_ok();
    let now = if raised { limit.maximum } else { limit.current };
    // None is no limit.
    now.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX))
}
