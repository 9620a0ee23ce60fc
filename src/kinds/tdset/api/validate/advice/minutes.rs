//! A week of a window, minute by minute, as a set: cheap enough for every write.

use jiff::civil::Weekday;

use super::starts_on;
use crate::kinds::tdset::api::v1::Window;

/// Minutes of a week.
const WEEK: usize = 7 * 24 * 60;

/// The minutes of a week at which a window holds, clock changes aside.
#[derive(Clone, Copy)]
pub(super) struct Minutes([u64; WEEK.div_ceil(64)]);

impl Minutes {
    pub(super) fn of(window: &Window) -> Self {
        let mut minutes = Self([0; WEEK.div_ceil(64)]);
        let (Some(from), Some(to)) = (minute(&window.from), minute(&window.to)) else {
            return minutes;
        };
        let length = if to < from { to + 24 * 60 - from } else { to - from };
        for (day, weekday) in Weekday::Monday.cycle_forward().take(7).enumerate() {
            if starts_on(window, weekday) {
                let start = day * 24 * 60 + from;
                minutes.fill(start, (start + length).min(WEEK));
                minutes.fill(0, (start + length).saturating_sub(WEEK));
            }
        }
        minutes
    }

    /// Adds the minutes from `start` up to `end`.
    fn fill(&mut self, start: usize, end: usize) {
        let mut at = start;
        while at < end {
            let (word, bit) = (at / 64, at % 64);
            let count = (64 - bit).min(end - at);
            self.0[word] |= (u64::MAX >> (64 - count)) << bit;
            at += count;
        }
    }

    pub(super) fn remove(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= !other;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub(super) fn meet(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(word, other)| word & other != 0)
    }
}

/// Minutes of the day; 24:00 is the last one.
fn minute(text: &str) -> Option<usize> {
    let (hours, minutes) = text.split_once(':')?;
    Some(hours.parse::<usize>().ok()? * 60 + minutes.parse::<usize>().ok()?)
}
