//! Which parts of the process are ready, and why others are not.
//!
//! ```text
//!   register("certificates") ──▶ Ready ── set() / unset("no certificate yet")
//!   check("expiry", || …)    ──▶ asked each time
//!                                    │
//!   report(now) ◀────────────────────┘   required ones decide, the others are only listed
//! ```

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Whether someone counts for the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// The process is ready only if this is.
    Required,
    /// Listed, and never a reason to take the gate out of service.
    Listed,
}

type State = Result<(), String>;
type Check = Arc<dyn Fn() -> State + Send + Sync>;

#[derive(Clone)]
struct Entry {
    name: String,
    weight: Weight,
    check: Check,
}

/// The list of all who have to be ready. Clones share it.
#[derive(Clone, Default)]
pub struct Readiness {
    entries: Arc<Mutex<Vec<Entry>>>,
    draining: Arc<AtomicBool>,
}

/// One task's own signal. Clones share it.
#[derive(Clone, Debug)]
pub struct Ready {
    state: Arc<Mutex<State>>,
}

impl Ready {
    /// Ready from now on.
    pub fn set(&self) {
        self.change(Ok(()));
    }

    /// Not ready any more: `why` is what `/readyz` says.
    pub fn unset(&self, why: impl Into<String>) {
        self.change(Err(why.into()));
    }

    fn change(&self, state: State) {
        *lock(&self.state) = state;
    }
}

impl Readiness {
    /// Nothing is registered: ready.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `name`, not ready until its signal is set. A name that was there before is replaced.
    pub fn register(&self, name: impl Into<String>, weight: Weight) -> Ready {
        let state = Arc::new(Mutex::new(Err("not started".to_owned())));
        let asked = Arc::clone(&state);
        self.check(name, weight, move || lock(&asked).clone());
        Ready { state }
    }

    /// Adds `name`, whose state is asked for each time. A name that was there before is replaced.
    pub fn check(
        &self,
        name: impl Into<String>,
        weight: Weight,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        let entry = Entry { name: name.into(), weight, check: Arc::new(check) };
        let mut entries = lock(&self.entries);
        match entries.iter_mut().find(|known| known.name == entry.name) {
            Some(known) => *known = entry,
            None => entries.push(entry),
        }
    }

    /// From now on nothing is ready: the process is going down.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Asks everyone.
    #[must_use]
    pub fn report(&self) -> Report {
        let entries = lock(&self.entries).clone();
        let mut lines: Vec<Line> = entries
            .into_iter()
            .map(|entry| Line { fault: (entry.check)().err(), name: entry.name, weight: entry.weight })
            .collect();
        if self.draining.load(Ordering::Acquire) {
            lines.push(Line {
                name: "shutdown".to_owned(),
                weight: Weight::Required,
                fault: Some("draining".to_owned()),
            });
        }
        Report { lines }
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(lock(&self.entries).iter().map(|entry| &entry.name)).finish()
    }
}

#[derive(Clone, Debug)]
struct Line {
    name: String,
    weight: Weight,
    fault: Option<String>,
}

/// The state of everyone at one moment. Prints as the API server prints its verbose health checks.
#[derive(Clone, Debug)]
pub struct Report {
    lines: Vec<Line>,
}

impl Report {
    /// True when no required one is missing.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.missing().next().is_none()
    }

    /// The required ones that are not ready.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        self.lines
            .iter()
            .filter(|line| line.weight == Weight::Required && line.fault.is_some())
            .map(|line| line.name.as_str())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Line { name, weight, fault } in &self.lines {
            match (fault, weight) {
                (None, _) => writeln!(formatter, "[+]{name} ok")?,
                (Some(why), Weight::Required) => writeln!(formatter, "[-]{name} not ready: {why}")?,
                (Some(why), Weight::Listed) => {
                    writeln!(formatter, "[~]{name} not ready, not required: {why}")?;
                }
            }
        }
        formatter.write_str(if self.ready() { "readyz check passed\n" } else { "readyz check failed\n" })
    }
}

/// A panic elsewhere leaves these lists whole: every change to them is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_required_one_that_is_not_ready_is_named_with_its_reason() {
        let readiness = Readiness::new();
        let gate = readiness.register("gate", Weight::Required);
        readiness.check("certificate", Weight::Required, || Err("none loaded".to_owned()));
        gate.set();
        let report = readiness.report();
        assert!(!report.ready());
        assert_eq!(report.missing().collect::<Vec<_>>(), ["certificate"]);
        assert_eq!(
            report.to_string(),
            "[+]gate ok\n[-]certificate not ready: none loaded\nreadyz check failed\n"
        );
    }

    #[test]
    fn one_that_is_only_listed_does_not_take_the_gate_out_of_service() {
        let readiness = Readiness::new();
        let controller = readiness.register("controller", Weight::Listed);
        controller.unset("restarting");
        let report = readiness.report();
        assert!(report.ready());
        assert!(report.to_string().contains("[~]controller"));
    }

    #[test]
    fn draining_is_never_ready() {
        let readiness = Readiness::new();
        assert!(readiness.report().ready());
        readiness.drain();
        assert_eq!(readiness.report().missing().collect::<Vec<_>>(), ["shutdown"]);
    }

    #[test]
    fn a_name_registered_again_replaces_the_first() {
        let readiness = Readiness::new();
        let _first = readiness.register("gate", Weight::Required);
        readiness.register("gate", Weight::Required).set();
        assert!(readiness.report().ready());
    }
}
