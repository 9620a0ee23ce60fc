//! A progress bar on the last line of a terminal, on standard error.
//!
//! Never: where standard error is no terminal. Who is at work writes lines there.

use std::io::{IsTerminal as _, Write as _, stderr};

/// Columns of a bar.
const WIDTH: u64 = 24;

/// Goes to the beginning of the line and clears it.
const CLEAR: &str = "\r\u{1b}[2K";

/// Whether there is a line to draw on.
pub(super) fn is_there() -> bool {
    stderr().is_terminal()
}

/// Replaces the last line. Standard error is closed: there is nowhere to report that.
pub(super) fn redraw(text: &str) {
    let mut out = stderr().lock();
    let _closed = write!(out, "{CLEAR}{text}").and_then(|()| out.flush());
}

/// Clears the last line where there is one to draw on, so that what is written next begins it.
pub(super) fn clear() {
    if is_there() {
        redraw("");
    }
}

/// As much of a bar as is done of all, and how much that is. Nothing to do is done.
pub(super) fn of(done: u64, all: u64) -> String {
    let percent = percent(done, all).unwrap_or(100);
    let full = percent * WIDTH / 100;
    let cells: String = (0..WIDTH).map(|cell| if cell < full { '█' } else { '░' }).collect();
    format!("{cells} {percent:>3} %")
}

/// How much is done of all; none where there is nothing.
pub(super) fn percent(done: u64, all: u64) -> Option<u64> {
    done.saturating_mul(100).checked_div(all).map(|percent| percent.min(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_what_is_done() {
        assert_eq!(of(0, 10), format!("{}   0 %", "░".repeat(24)));
        assert_eq!(of(5, 10), format!("{}{}  50 %", "█".repeat(12), "░".repeat(12)));
        assert_eq!(of(0, 0), format!("{} 100 %", "█".repeat(24)));
        assert_eq!(of(20, 10), of(10, 10));
    }
}
