//! The only place that asks the time.
//!
//! Everything that depends on time takes it as an argument; what hands it in takes it from here.
//!
//! # A clock for tests
//!
//! A build with debug assertions, or with the feature `fail-points`, adds an offset to the wall clock: the signed
//! duration, such as `PT2H` or `-30m`, in the file that `GATEHOUSE_CLOCK` names. No file and an empty one mean none. A
//! test that replaces the file jumps, and need not wait for a boundary. What such a jump does:
//!
//! - passes: an object whose next look was to be by then has it at once ([`Alarms`]); others keep their timers;
//! - the lease: nothing. Terms are reckoned by [`instant`]; only the times that a Lease tells a reader are shifted;
//! - certificates: the next look at them, within a minute, sees the new time, and renews what is due by then and
//!   nothing else. A server rejects what is valid by the offset alone if its own clock has another one;
//! - etcd clusters: what is remembered of them has ages by [`instant`], which a jump leaves as they are. The ages of
//!   pods and of conditions are reckoned by the wall clock, and grow by the jump;
//! - times of the API server, such as those of managed fields and of creation, stay real.
//!
//! Never: anything of it in a release build without that feature.

#[cfg(any(debug_assertions, feature = "fail-points"))]
mod offset;

use std::hash::Hash;
#[cfg(any(debug_assertions, feature = "fail-points"))]
use std::sync::Arc;
use std::time::Duration;

#[cfg(not(any(debug_assertions, feature = "fail-points")))]
use futures::stream;
use futures::stream::{BoxStream, StreamExt as _};
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

/// The clock that never goes back: for durations and deadlines.
#[must_use]
pub fn instant() -> Instant {
    Instant::now()
}

/// Who waits for a time of the wall clock by a timer, which counts another clock's time: a jump of the wall clock rings
/// for who is due by it. Where the clock cannot jump nothing is kept and nobody is rung for.
#[derive(Debug)]
pub struct Alarms<Key> {
    #[cfg(any(debug_assertions, feature = "fail-points"))]
    set: Arc<offset::Alarms<Key>>,
    #[cfg(not(any(debug_assertions, feature = "fail-points")))]
    set: std::marker::PhantomData<Key>,
}

/// What the clock showed before a wait was reckoned.
#[derive(Clone, Copy, Debug)]
pub struct Shown(#[cfg(any(debug_assertions, feature = "fail-points"))] Option<offset::Shown>);

impl<Key: Clone + Eq + Hash + Send + Sync + 'static> Alarms<Key> {
    /// What the clock shows now.
    #[must_use]
    pub fn shown(&self) -> Shown {
        Shown(
            #[cfg(any(debug_assertions, feature = "fail-points"))]
            self.set.shown(),
        )
    }

    /// The next look at `key` is so long after what was `shown`, or there is none. This replaces what was set for it.
    pub fn set(&self, key: &Key, shown: Shown, after: Option<Duration>) {
        #[cfg(any(debug_assertions, feature = "fail-points"))]
        self.set.set(key, shown.0, after);
        #[cfg(not(any(debug_assertions, feature = "fail-points")))]
        let _never = (key, shown, after, self.set);
    }

    /// Who is due by a jump, each once.
    #[must_use]
    pub fn rung(&self) -> BoxStream<'static, Key> {
        #[cfg(any(debug_assertions, feature = "fail-points"))]
        return offset::rung(Arc::clone(&self.set)).boxed();
        #[cfg(not(any(debug_assertions, feature = "fail-points")))]
        return stream::empty().boxed();
    }
}

impl<Key> Default for Alarms<Key> {
    fn default() -> Self {
        Self {
            #[cfg(any(debug_assertions, feature = "fail-points"))]
            set: Arc::new(offset::Alarms::of(offset::file())),
            #[cfg(not(any(debug_assertions, feature = "fail-points")))]
            set: std::marker::PhantomData,
        }
    }
}
