//! Log lines with the observation, plan and actions of a reconciliation, by which it can be planned again.
//!
//! Guarantees: a reconciliation is logged before its first action, so that one in which the process ends is logged too,
//! and each action when its result is known; lines are numbered without a gap, so that what is missing was lost on the
//! way; a reconciliation that does nothing on the same facts as the previous one is left out; while the trace is off,
//! nothing is formatted.
//! Never: logs a secret. [`Desired`] and [`Observation`] have no place for one.

use std::collections::hash_map::{DefaultHasher, RandomState};
use std::hash::{BuildHasher as _, Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use tracing::{Level, enabled, trace, warn};

use super::observation::{Desired, Observation};
use super::plan::Plan;

/// The target of the log lines, which have the level trace.
pub const TARGET: &str = "gatehouse::reconciles";

/// Whether the trace is on.
#[must_use]
pub fn is_on() -> bool {
    enabled!(target: TARGET, Level::TRACE)
}

/// The digest of a reconciliation's facts, within one process.
#[must_use]
pub fn digest(desired: &Desired, seen: &Observation) -> u64 {
    let mut hasher = DefaultHasher::new();
    (desired, seen).hash(&mut hasher);
    hasher.finish()
}

/// A reconciliation, up to its first action.
#[derive(Debug, Serialize)]
pub struct Reconciliation<'a> {
    /// Namespace and name of the EtcdCluster.
    pub object: &'a str,
    /// Its uid.
    pub uid: &'a str,
    /// What it asks for.
    pub desired: &'a Desired,
    /// What was read.
    pub seen: &'a Observation,
    /// What is to be done.
    pub plan: &'a Plan,
}

/// The result of an action.
#[derive(Debug, Serialize)]
struct Action {
    /// The line of its reconciliation.
    pass: u64,
    name: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Serialize)]
enum Event<'a> {
    #[serde(rename = "Pass")]
    Reconciliation(&'a Reconciliation<'a>),
    Action(Action),
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    /// The id of one operator's lines.
    run: &'a str,
    /// The so-many-th, from 0.
    number: u64,
    event: Event<'a>,
}

/// The lines of one operator.
#[derive(Debug)]
pub struct Trace {
    run: String,
    /// The next line's number. Held while a line is written: they come in order.
    next: Mutex<u64>,
}

impl Default for Trace {
    fn default() -> Self {
        // A process has keys of its own, and each of these hashers too.
        let run = RandomState::new().hash_one(TARGET);
        Self { run: format!("{run:016x}"), next: Mutex::new(0) }
    }
}

impl Trace {
    /// Logs what a reconciliation has observed and plans; the number of the line.
    pub fn reconciliation(&self, reconciliation: &Reconciliation<'_>) -> Option<u64> {
        self.write(Event::Reconciliation(reconciliation))
    }

    /// Logs the result of one of the actions of the reconciliation of that line.
    pub fn action(&self, pass: u64, name: &'static str, outcome: &'static str) {
        self.write(Event::Action(Action { pass, name, outcome }));
    }

    /// Writes a line; its number.
    fn write(&self, event: Event<'_>) -> Option<u64> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let number = *next;
        match serde_json::to_string(&Line { run: &self.run, number, event }) {
            Ok(line) => {
                trace!(target: TARGET, line);
                *next = number.saturating_add(1);
                Some(number)
            }
            Err(error) => {
                warn!(%error, "a reconciliation cannot be logged");
                None
            }
        }
    }
}
