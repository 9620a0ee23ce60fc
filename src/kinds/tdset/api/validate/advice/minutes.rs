//! A week of a window by its hours, and minute by minute, as a set: cheap enough for every write.

use std::cell::OnceCell;

use crate::kinds::tdset::api::schedule::minute_of_day;
use crate::kinds::tdset::api::v1::Window;

/// Every day of the week.
const EVERY_DAY: u8 = 0b111_1111;

/// Minutes of a day.
const DAY: usize = 24 * 60;

/// Minutes of a week.
const WEEK: usize = 7 * DAY;

/// When a window holds in each week, clock changes aside.
pub(super) struct Hours {
    /// Minute of the day.
    from: usize,
    length: usize,
    /// Weekdays on which it starts, Monday the lowest bit.
    days: u8,
    /// Worked out where a comparison of two windows does not tell enough.
    minutes: OnceCell<Box<Minutes>>,
}

impl Hours {
    pub(super) fn of(window: &Window) -> Self {
        let days = window.days.as_ref();
        let days = days.map_or(EVERY_DAY, |days| days.iter().fold(0, |days, day| days | 1 << *day as u8));
        let minutes = OnceCell::new();
        match (minute_of_day(&window.from), minute_of_day(&window.to)) {
            (Some(from), Some(to)) => {
                let (from, to) = (usize::from(from), usize::from(to));
                let length = if to < from { to + DAY - from } else { to - from };
                Self { from, length, days, minutes }
            }
            _ => Self { from: 0, length: 0, days: 0, minutes },
        }
    }

    /// Whether both hold at the same time. Neither lasts longer than a day, so only one that starts on the day before,
    /// on the same one or on the next can.
    pub(super) fn meet(&self, other: &Self) -> bool {
        let days = u32::from(other.days) * 0b1000_0001;
        let starts = [days >> 6, days, days >> 1].map(|days| days & u32::from(self.days) != 0);
        let (from, end) = (self.from + DAY, self.from + DAY + self.length);
        starts.into_iter().zip([0, DAY, 2 * DAY]).any(|(starts, day)| {
            let start = day + other.from;
            starts && from < start + other.length && start < end
        })
    }

    pub(super) fn minutes(&self) -> &Minutes {
        self.minutes.get_or_init(|| Box::new(Minutes::of(self)))
    }
}

/// The minutes of a week.
#[derive(Clone, Copy)]
pub(super) struct Minutes([u64; WEEK.div_ceil(64)]);

impl Minutes {
    fn of(hours: &Hours) -> Self {
        let mut minutes = Self([0; WEEK.div_ceil(64)]);
        for day in (0..7).filter(|day| hours.days & 1 << day != 0) {
            let start = day * DAY + hours.from;
            let end = start + hours.length;
            minutes.fill(start, end.min(WEEK));
            minutes.fill(0, end.saturating_sub(WEEK));
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tdset::api::v1::Day;

    #[test]
    fn windows_meet_where_they_have_a_minute_in_common() {
        let days = [None, Some(vec![Day::Mon]), Some(vec![Day::Sun, Day::Tue]), Some(vec![Day::Sat])];
        let times = ["00:00", "05:59", "06:00", "12:30", "22:00", "23:59", "24:00"];
        let mut all = Vec::new();
        for days in &days {
            for (from, to) in times[..6].iter().flat_map(|from| times[1..].iter().map(move |to| (from, to))) {
                let window = Window {
                    from: (*from).to_owned(),
                    to: (*to).to_owned(),
                    days: days.clone(),
                    ..Window::default()
                };
                all.extend((from != to).then(|| Hours::of(&window)));
            }
        }
        for one in &all {
            for other in &all {
                let mut left = *one.minutes();
                left.remove(other.minutes());
                let has_common = left.0 != one.minutes().0;
                let told = |hours: &Hours| (hours.days, hours.from, hours.length);
                assert_eq!(one.meet(other), has_common, "{:?} {:?}", told(one), told(other));
            }
        }
    }
}
