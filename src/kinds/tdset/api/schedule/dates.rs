//! Dates of exceptions that are kept outside of the object.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::civil::Date;

use crate::api::script::without_mark;

/// The dates of exceptions that take them from elsewhere, by the exception's name. Clones share the dates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HolidayDates(BTreeMap<String, Arc<[Date]>>);

/// A list of dates as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateList {
    /// Its dates, in order and each once.
    pub dates: Arc<[Date]>,
    /// What else is in it.
    pub errors: Option<DateErrors>,
}

/// The lines that are not dates, at least one, by their numbers from 1. What they say is not repeated: all may read a
/// status, and a ConfigMap only those who have the right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {first} is not a date: expected one such as 2026-12-25{}", more(.others))]
pub struct DateErrors {
    /// The first of them.
    pub first: usize,
    /// The others.
    pub others: Vec<usize>,
}

/// Most other lines that are named.
const MOST_NAMED: usize = 10;

fn more(lines: &[usize]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let named: Vec<_> = lines.iter().take(MOST_NAMED).map(usize::to_string).collect();
    let more = lines.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("; nor are lines {}{more}", named.join(", "))
}

impl DateList {
    /// Reads dates, one a line; blank lines, what follows a `#` and a byte order mark do not count.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let lines = without_mark(text).lines().enumerate().filter_map(|(at, line)| {
            let entry = line.split('#').next().unwrap_or_default().trim();
            (!entry.is_empty()).then_some((at + 1, entry))
        });
        let (mut dates, mut errors) = (Vec::new(), None::<DateErrors>);
        for (line, entry) in lines {
            match (date(entry), &mut errors) {
                (Some(date), _) => dates.push(date),
                (None, Some(errors)) => errors.others.push(line),
                (None, None) => errors = Some(DateErrors { first: line, others: Vec::new() }),
            }
        }
        dates.sort_unstable();
        dates.dedup();
        Self { dates: dates.into(), errors }
    }
}

impl HolidayDates {
    /// Reads the dates of the exception of that name, as [`DateList::read`] does.
    ///
    /// # Errors
    /// [`DateErrors`] for the lines that are no dates; all others are taken.
    pub fn read(&mut self, exception: &str, text: &str) -> Result<(), DateErrors> {
        let list = DateList::read(text);
        self.set(exception, &list);
        list.errors.map_or(Ok(()), Err)
    }

    /// The exception of that name has the dates of that list.
    pub fn set(&mut self, exception: &str, list: &DateList) {
        self.0.insert(exception.to_owned(), Arc::clone(&list.dates));
    }

    /// The dates of the exception of that name, none if it was not read.
    #[must_use]
    pub fn of(&self, exception: &str) -> &[Date] {
        self.shared(exception).map(|dates| &**dates).unwrap_or_default()
    }

    /// The same to share, in order and each once.
    pub(super) fn shared(&self, exception: &str) -> Option<&Arc<[Date]>> {
        self.0.get(exception)
    }
}

/// A date in exactly the form `2026-12-25`.
pub(super) fn date(text: &str) -> Option<Date> {
    const LENGTH: usize = 10;
    let date: Date = (text.len() == LENGTH).then(|| text.parse().ok())??;
    (date.to_string() == text).then_some(date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_one_a_line_with_comments() {
        let mut dates = HolidayDates::default();
        let text = "# public holidays\n2026-12-25\n\n 2026-12-26 # second day\r\n";
        assert_eq!(dates.read("xmas", text), Ok(()));
        let shown: Vec<_> = dates.of("xmas").iter().map(Date::to_string).collect();
        assert_eq!(shown, ["2026-12-25", "2026-12-26"]);
        assert!(dates.of("other").is_empty());
    }

    #[test]
    fn a_byte_order_mark_hides_no_date() {
        let mut dates = HolidayDates::default();
        assert_eq!(dates.read("xmas", "\u{feff}2026-12-25\r\n2026-12-26\r\n"), Ok(()));
        assert_eq!(dates.of("xmas").len(), 2);
        assert_eq!(dates.read("xmas", "\u{feff}# public holidays\n2026-12-25\n"), Ok(()));
        assert_eq!(dates.of("xmas").len(), 1);
    }

    #[test]
    fn lines_that_are_no_dates_are_named_by_their_numbers_and_the_others_count() {
        let mut dates = HolidayDates::default();
        let error = dates.read("xmas", "2026-12-25\n2026-13-01\n2026-12-26\nNew Year\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 2 is not a date: expected one such as 2026-12-25; nor are lines 4"
        );
        assert_eq!(dates.of("xmas").len(), 2);
        let many = "x\n".repeat(13);
        let error = dates.read("xmas", &many).unwrap_err().to_string();
        assert!(error.ends_with("; nor are lines 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more"), "{error}");
    }

    #[test]
    fn only_one_way_of_writing_a_date_is_taken() {
        for text in ["20261225", "2026-12-5", "25.12.2026", "2026-12-25T00:00", "2026-02-30", "+002026-12"] {
            assert_eq!(date(text), None, "{text}");
        }
    }
}
