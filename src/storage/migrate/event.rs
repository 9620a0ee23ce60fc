//! The events of a migration, for progress displays and logs.

use std::time::Duration;

use super::super::plan::checkpoint::Checkpoint;
use super::super::plan::tally::Tally;

/// What happens on the way.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The definition was written so lately that API servers may not have seen it.
    Waits(Duration),
    /// A pass begins, or is taken up where it stood.
    Begins {
        /// Which one.
        place: &'a Checkpoint,
    },
    /// Objects are dealt with.
    Moves {
        /// What the pass has done.
        tally: &'a Tally,
        /// About how many objects follow.
        remaining: u64,
        /// How many patches may be under way.
        pace: usize,
    },
    /// A pass has ended.
    Ends {
        /// Which one.
        pass: u32,
        /// What it has done.
        tally: &'a Tally,
    },
    /// The place cannot be kept: a migration that ends early begins again.
    Forgets(&'a str),
    /// The API server cannot be reached, which is waited for.
    Unreached(&'a str),
}

/// The receiver of what happens on the way.
pub trait Watch: Sync {
    /// Receives one event.
    fn see(&self, event: Event<'_>);
}

/// Drops all events.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Watch for Silent {
    fn see(&self, _event: Event<'_>) {}
}
