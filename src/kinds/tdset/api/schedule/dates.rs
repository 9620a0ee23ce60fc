//! Dates of exceptions that are kept outside of the object.

use std::collections::BTreeMap;

use jiff::civil::Date;

/// The dates of exceptions that take them from elsewhere, by the exception's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HolidayDates(BTreeMap<String, Vec<Date>>);

/// A line that is not a date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text:?} is not a date: expected one such as 2026-12-25")]
pub struct DateError {
    /// Its number, from 1.
    pub line: usize,
    /// What it says, cut where it is long.
    pub text: String,
}

impl HolidayDates {
    /// Reads the dates of the exception of that name: one a line; blank lines and what follows a `#` do not count.
    ///
    /// # Errors
    /// [`DateError`] for the first line that is something else; then nothing is taken.
    pub fn read(&mut self, exception: &str, text: &str) -> Result<(), DateError> {
        const LONGEST_SHOWN: usize = 40;
        let lines = text.lines().enumerate().filter_map(|(at, line)| {
            let entry = line.split('#').next().unwrap_or_default().trim();
            (!entry.is_empty()).then_some((at + 1, entry))
        });
        let dates: Result<Vec<Date>, DateError> = lines
            .map(|(line, entry)| {
                date(entry)
                    .ok_or_else(|| DateError { line, text: entry.chars().take(LONGEST_SHOWN).collect() })
            })
            .collect();
        self.0.insert(exception.to_owned(), dates?);
        Ok(())
    }

    /// The dates of the exception of that name, none if it was not read.
    #[must_use]
    pub fn of(&self, exception: &str) -> &[Date] {
        self.0.get(exception).map(Vec::as_slice).unwrap_or_default()
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
    fn the_first_line_that_is_no_date_is_named() {
        let error = HolidayDates::default().read("xmas", "2026-12-25\n2026-13-01\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 2: \"2026-13-01\" is not a date: expected one such as 2026-12-25"
        );
    }

    #[test]
    fn only_one_way_of_writing_a_date_is_taken() {
        for text in ["20261225", "2026-12-5", "25.12.2026", "2026-12-25T00:00", "2026-02-30", "+002026-12"] {
            assert_eq!(date(text), None, "{text}");
        }
    }
}
