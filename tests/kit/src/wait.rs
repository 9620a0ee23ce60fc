//! Waiting for a state.
//!
//! Guarantees: the wait ends with what was looked for, or panics with what was there instead at the last look.
//! Assumes: only the awaited thing can bring the state about; the caller chooses such a state.
//! Never: asserts how long it took. [`PATIENCE`] only ends a test that would hang; `TEST_PATIENCE=3` triples it.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// How long anything that has to come true may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// A limit as this run has it: longer on a machine that is known to be slow.
#[must_use]
pub fn patient(limit: Duration) -> Duration {
    limit * crate::env_or("TEST_PATIENCE", 1)
}

/// The same as an argument of kubectl and helm.
#[must_use]
pub fn timeout(limit: Duration) -> String {
    format!("--timeout={}s", patient(limit).as_secs())
}

/// Waits until `look` finds what it looks for.
#[track_caller]
pub fn eventually<T, E: Display>(look: impl FnMut() -> Result<T, E>) -> T {
    within(PATIENCE, look)
}

/// The same, with a limit of its own.
#[track_caller]
pub fn within<T, E: Display>(limit: Duration, look: impl FnMut() -> Result<T, E>) -> T {
    reached(limit, look).unwrap_or_else(|last| panic!("not within {:?}: {last}", patient(limit)))
}

/// The same for callers that go on where the state does not come.
///
/// # Errors
/// What was there instead at the last look.
pub fn reached<T, E>(limit: Duration, mut look: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let (begun, limit) = (Instant::now(), patient(limit));
    loop {
        let looked = look();
        if looked.is_ok() || begun.elapsed() >= limit {
            return looked;
        }
        std::thread::park_timeout(PAUSE);
    }
}

/// The same for a look that is awaited. `tell` adds what helps to find out, such as logs.
pub async fn eventually_async<T, E: Display>(
    limit: Duration,
    look: impl AsyncFnMut() -> Result<T, E>,
    tell: impl Fn() -> String,
) -> T {
    let found = reached_async(limit, look).await;
    found.unwrap_or_else(|last| panic!("not within {:?}: {last}\n{}", patient(limit), tell()))
}

/// The same for callers that go on where the state does not come.
///
/// # Errors
/// What was there instead at the last look.
pub async fn reached_async<T, E>(
    limit: Duration,
    mut look: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, E> {
    let (begun, limit) = (Instant::now(), patient(limit));
    loop {
        let looked = look().await;
        if looked.is_ok() || begun.elapsed() >= limit {
            return looked;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_what_was_found() {
        let mut looks = 0;
        let found = eventually(|| {
            looks += 1;
            if looks == 3 { Ok("there") } else { Err("not yet") }
        });
        assert_eq!((found, looks), ("there", 3));
    }

    #[test]
    fn a_wait_that_ends_without_it_tells_what_was_there() {
        let ended = std::panic::catch_unwind(|| within(Duration::ZERO, || Err::<(), _>("two of three")));
        let said = ended.expect_err("nothing comes").downcast::<String>().expect("a message");
        assert!(said.ends_with("two of three"), "{said}");
    }
}
