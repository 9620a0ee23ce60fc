//! The progress of a migration: a bar on a terminal, lines elsewhere; on standard error.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::super::{bar, output};
use crate::runtime::clock;
use crate::storage::plan::tally::Tally;
use crate::storage::{Event, Watch};

/// Between two pictures of a bar, and between two lines.
const REDRAWN: Duration = Duration::from_millis(100);
const LINE: Duration = Duration::from_secs(10);

/// Shows the way of one migration.
pub(super) struct Progress {
    name: String,
    is_terminal: bool,
    state: Mutex<State>,
}

struct State {
    pass: u32,
    /// When the pass began here, and how many objects others had dealt with by then.
    begun: (Instant, u64),
    shown: Instant,
    has_bar: bool,
    is_forgetful: bool,
    /// Whether an unreachable API server was reported.
    is_unreached: bool,
}

impl Progress {
    /// One for the definition of that name.
    pub(super) fn of(name: &str) -> Self {
        let now = clock::instant();
        let (has_bar, is_forgetful, is_unreached) = (false, false, false);
        let state = State { pass: 1, begun: (now, 0), shown: now, has_bar, is_forgetful, is_unreached };
        Self { name: name.to_owned(), is_terminal: bar::is_there(), state: Mutex::new(state) }
    }

    fn line(&self, state: &mut State, text: &str) {
        if std::mem::take(&mut state.has_bar) {
            bar::redraw("");
        }
        output::note(&output::one_line(&format!("{}: {text}", self.name)));
    }

    fn draw(&self, state: &mut State, tally: &Tally, remaining: u64, pace: usize) {
        let now = clock::instant();
        let interval = if self.is_terminal { REDRAWN } else { LINE };
        if now.duration_since(state.shown) < interval {
            return;
        }
        state.shown = now;
        let (pass, rate) = (state.pass, rate(tally, state.begun, now));
        let (done, all) = (tally.objects(), tally.objects() + remaining);
        let mut text = format!("pass {pass}: {done}/{all} objects, {rate}/s, {pace} at a time");
        if tally.failed > 0 {
            // A text takes whatever is written to it.
            let _written = write!(text, ", {} not written", tally.failed);
        }
        if self.is_terminal {
            state.has_bar = true;
            bar::redraw(&output::one_line(&format!("{} {} {text}", self.name, bar::of(done, all))));
        } else {
            self.line(state, &text);
        }
    }
}

/// Objects a second.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "shown"
)]
fn rate(tally: &Tally, (begun, before): (Instant, u64), now: Instant) -> u64 {
    let seconds = now.duration_since(begun).as_secs_f64().max(0.001);
    (tally.objects().saturating_sub(before) as f64 / seconds).round() as u64
}

impl Watch for Progress {
    fn see(&self, event: Event<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Waits(time) => {
                let text = format!(
                    "waiting for {} s: the definition was written less than a minute ago, and an API server may not have \
                     seen that yet",
                    time.as_secs().max(1)
                );
                self.line(&mut state, &text);
            }
            Event::Begins { place } => {
                state.pass = place.pass;
                state.begun = (clock::instant(), place.tally.objects());
                if !place.next.is_empty() {
                    let text =
                        format!("pass {}: goes on after {} objects", place.pass, place.tally.objects());
                    self.line(&mut state, &text);
                }
            }
            Event::Moves { tally, remaining, pace } => {
                state.is_unreached = false;
                self.draw(&mut state, tally, remaining, pace);
            }
            Event::Unreached(why) => {
                if !std::mem::replace(&mut state.is_unreached, true) {
                    self.line(&mut state, &format!("waiting for the API server: {why}"));
                }
            }
            Event::Ends { pass, tally } => {
                let rate = rate(tally, state.begun, clock::instant());
                self.line(&mut state, &format!("pass {pass}: {tally}; {rate} objects/s"));
            }
            Event::Forgets(why) => {
                if !std::mem::replace(&mut state.is_forgetful, true) {
                    let text = format!(
                        "warning: its place cannot be kept, so that a run that ends early begins again: {why}"
                    );
                    self.line(&mut state, &text);
                }
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.has_bar {
            bar::redraw("");
        }
    }
}
