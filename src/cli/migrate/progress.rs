//! The progress of a run: lines in a log, and a bar on a terminal.

use super::super::bar::{self, percent, redraw};
use crate::kinds::databasemigration::runner::{Phase, Progress, Step};

/// Who tells.
#[derive(Clone, Copy, Debug)]
pub struct Teller {
    is_terminal: bool,
}

impl Teller {
    /// A bar where standard error is a terminal, lines elsewhere.
    pub fn new() -> Self {
        Self { is_terminal: bar::is_there() }
    }

    /// Takes the bar away.
    pub fn end(self) {
        if self.is_terminal {
            redraw("");
        }
    }
}

impl Progress for Teller {
    fn tell(&self, step: Step<'_>) {
        if self.is_terminal {
            redraw(&shown(step));
        } else {
            log(step);
        }
    }
}

fn log(step: Step<'_>) {
    match step {
        Step::Waiting { patience } => {
            tracing::info!(for_at_most_s = patience.as_secs(), "another run is at work: waiting");
        }
        Step::Begun { id, number, of } => tracing::info!(script = id, number, of, "script begun"),
        Step::Running { id, elapsed, phase } => {
            let (phase, percent) =
                phase.map_or((None, None), |phase| (Some(&*phase.name), percent(phase.done, phase.total)));
            tracing::info!(script = id, elapsed_s = elapsed.as_secs(), phase, percent, "script at work");
        }
        Step::Again { id, message } => tracing::warn!(script = id, reason = message, "script is tried again"),
        Step::Done { id, took } => {
            let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            tracing::info!(script = id, took_ms, "script done");
        }
    }
}

fn shown(step: Step<'_>) -> String {
    match step {
        Step::Waiting { patience } => {
            format!("another run is at work: waiting for at most {} s", patience.as_secs())
        }
        Step::Begun { id, number, of } => {
            format!("{} {number}/{of} {id}", bar::of(number.saturating_sub(1) as u64, of as u64))
        }
        Step::Running { id, elapsed, phase } => {
            let elapsed = elapsed.as_secs();
            match phase.filter(|phase| phase.total > 0) {
                Some(Phase { name, done, total }) => {
                    format!("{} {id}: {name} ({elapsed} s)", bar::of(*done, *total))
                }
                None => format!("{id}: at work for {elapsed} s"),
            }
        }
        Step::Again { id, message } => format!("{id}: tried again: {message}"),
        Step::Done { id, took } => format!("{id}: done in {} ms", took.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_phase_is() {
        let phase = Phase { name: "building index".to_owned(), done: 1, total: 2 };
        let step = Step::Running { id: "003", elapsed: Duration::from_secs(65), phase: Some(&phase) };
        let text = shown(step);
        assert_eq!(text, format!("{}{}  50 % 003: building index (65 s)", "█".repeat(12), "░".repeat(12)));
        let empty = Phase { total: 0, ..phase };
        let step = Step::Running { id: "003", elapsed: Duration::from_secs(5), phase: Some(&empty) };
        assert_eq!(shown(step), "003: at work for 5 s");
    }
}
