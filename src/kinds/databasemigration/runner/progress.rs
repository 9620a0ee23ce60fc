//! The progress of a run.

use std::time::Duration;

/// Who hears of it.
pub trait Progress: Sync {
    /// It has come so far.
    fn tell(&self, step: Step<'_>);
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// Another run of the series is at work.
    Waiting {
        /// How long it may go on.
        patience: Duration,
    },
    /// A script begins.
    Begun {
        /// Its id.
        id: &'a str,
        /// Which one it is of those that are to run, from 1 on.
        number: usize,
        /// How many are to run.
        of: usize,
    },
    /// A statement takes long.
    Running {
        /// The script.
        id: &'a str,
        /// How long so far.
        elapsed: Duration,
        /// What it is at.
        phase: Option<&'a Phase>,
    },
    /// A script waits before it is tried again.
    Again {
        /// The script.
        id: &'a str,
        /// Why.
        message: &'a str,
    },
    /// A script is done.
    Done {
        /// The script.
        id: &'a str,
        /// How long it took.
        took: Duration,
    },
}

/// How far a statement is, as the server shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What it does.
    pub name: String,
    /// How much of that is done.
    pub done: u64,
    /// Of how much.
    pub total: u64,
}
