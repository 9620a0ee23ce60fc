//! Parses a timetable from a spec, and reports all errors.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::dates::{HolidayDates, date};
use super::{DAY, Dated, Exception, Schedule, When, Window};
use crate::api::field::{FieldError, Path, Reason};
use crate::api::time_zone;
use crate::kinds::tdset::api::v1::{self, MOST_RULES};

/// Every day of the week.
const ALL_DAYS: u8 = 0b111_1111;

impl Schedule {
    /// Reads the timetable of a spec. An absent time zone is UTC; dates that the spec takes from elsewhere come by
    /// [`Schedule::with_dates`], and until then there are none.
    ///
    /// A window that starts when it ends is taken (old objects may have it) and is never active.
    ///
    /// # Errors
    /// A fault for each field that leaves open what the timetable is.
    pub fn parse(spec: &v1::TDSetSpec) -> Result<Self, Vec<FieldError>> {
        let mut faults = Faults(Vec::new());
        let path = Path::spec();
        let zone = faults.zone(|| path.at("timeZone"), spec.time_zone.as_deref());
        for (list, length) in [("windows", spec.windows().len()), ("exceptions", spec.exceptions().len())] {
            if length > MOST_RULES {
                let detail = format!("{length} items: must have at most {MOST_RULES}");
                faults.0.push(FieldError::new(path.at(list), Reason::TooMany, detail));
            }
        }
        let windows = spec.windows().iter().enumerate();
        let windows: Vec<Window> = windows
            .take(MOST_RULES)
            .map(|(at, window)| faults.window(&|| path.at("windows").index(at), window))
            .collect();
        let exceptions = spec.exceptions().iter().enumerate();
        let exceptions: Vec<Exception> = exceptions
            .take(MOST_RULES)
            .map(|(at, exception)| faults.exception(&|| path.at("exceptions").index(at), exception, &windows))
            .collect();
        if !faults.0.is_empty() {
            return Err(faults.0);
        }
        let mut dates = BTreeMap::<_, Dated>::new();
        for (at, exception) in exceptions.iter().enumerate() {
            let When::Dates(own) = &exception.when else { continue };
            for date in own {
                dates.entry(*date).or_default().add(at, exception);
            }
        }
        Ok(Self {
            zone,
            replicas: spec.default_replicas,
            overlap: spec.overlap.unwrap_or_default(),
            windows,
            exceptions,
            dates,
            elsewhere: Vec::new(),
        })
    }

    /// The same timetable with `holidays` as the dates that its spec takes from elsewhere, which it shares.
    #[must_use]
    pub fn with_dates(mut self, holidays: &HolidayDates) -> Self {
        let exceptions = self.exceptions.iter().enumerate();
        let elsewhere = exceptions.filter(|(_, exception)| matches!(exception.when, When::Elsewhere));
        self.elsewhere = elsewhere
            .filter_map(|(at, exception)| Some((at, Arc::clone(holidays.shared(&exception.name)?))))
            .collect();
        self
    }
}

/// Collects faults while parts are read; a part with a fault is read as something harmless.
struct Faults(Vec<FieldError>);

impl Faults {
    fn zone(&mut self, path: impl FnOnce() -> Path, name: Option<&str>) -> TimeZone {
        let found = name.map_or(Ok(TimeZone::UTC), time_zone::find);
        found.unwrap_or_else(|error| {
            let name = name.unwrap_or_default();
            self.0.push(FieldError::invalid(path(), name, error.to_string()));
            TimeZone::UTC
        })
    }

    fn window(&mut self, path: &dyn Fn() -> Path, window: &v1::Window) -> Window {
        let season = window.season.as_ref();
        let bound = |season: &'static str| move || path().at("season").at(season);
        let days = window
            .days
            .as_ref()
            .map_or(ALL_DAYS, |days| days.iter().fold(0, |mask, day| mask | 1 << *day as u8));
        Window {
            name: Arc::from(window.name.as_str()),
            from: self.time(|| path().at("from"), &window.from, DAY - 1),
            to: self.time(|| path().at("to"), &window.to, DAY),
            days,
            first: self.bound(bound("first"), season.and_then(|season| season.first.as_deref())),
            last: self.bound(bound("last"), season.and_then(|season| season.last.as_deref())),
            replicas: window.replicas,
            enabled: window.enabled.unwrap_or(true),
        }
    }

    fn exception(
        &mut self,
        path: &dyn Fn() -> Path,
        exception: &v1::Exception,
        windows: &[Window],
    ) -> Exception {
        let when = match (&exception.between, &exception.dates) {
            (Some(between), _) => {
                let instant = |end: &'static str| move || path().at("between").at(end);
                let start = self.instant(instant("start"), &between.start);
                When::Between(start, self.instant(instant("end"), &between.end))
            }
            (None, Some(dates)) => {
                let dates = dates.iter().enumerate();
                let date = |(at, text): (usize, &String)| self.date(|| path().at("dates").index(at), text);
                When::Dates(dates.filter_map(date).collect())
            }
            (None, None) => When::Elsewhere,
        };
        let skips = exception.skip_windows.iter().flatten().fold(0, |mask, name| mask | bits(name, windows));
        Exception { name: Arc::from(exception.name.as_str()), when, skips, replicas: exception.replicas }
    }

    /// A local time as minutes of the day, at most `last`.
    fn time(&mut self, path: impl FnOnce() -> Path, text: &str, last: u16) -> u16 {
        minute_of_day(text).filter(|minute| *minute <= last).unwrap_or_else(|| {
            let latest = format!("{:02}:{:02}", last / 60, last % 60);
            let detail = format!("must be a local time, \"HH:MM\" from 00:00 to {latest}");
            self.0.push(FieldError::invalid(path(), text, detail));
            0
        })
    }

    fn bound(&mut self, path: impl FnOnce() -> Path, text: Option<&str>) -> Option<Date> {
        text.and_then(|text| self.date(path, text))
    }

    fn date(&mut self, path: impl FnOnce() -> Path, text: &str) -> Option<Date> {
        let found = date(text);
        if found.is_none() {
            let detail = "must be a date, such as 2026-12-25";
            self.0.push(FieldError::invalid(path(), text, detail));
        }
        found
    }

    fn instant(&mut self, path: impl FnOnce() -> Path, text: &str) -> Timestamp {
        text.parse().unwrap_or_else(|_| {
            let detail = "must be an instant with an offset, such as 2026-11-27T06:00:00+01:00";
            self.0.push(FieldError::invalid(path(), text, detail));
            Timestamp::MIN
        })
    }
}

/// The windows of that name, `*` being all.
fn bits(name: &str, windows: &[Window]) -> u64 {
    let named = windows.iter().enumerate().filter(|(_, window)| name == "*" || name == &*window.name);
    named.fold(0, |mask, (at, _)| mask | 1 << at)
}

/// Minutes of the day of a time in exactly the form `HH:MM`, up to 24:00.
#[must_use]
pub fn minute_of_day(text: &str) -> Option<u16> {
    let [hour_ten, hour, b':', minute_ten, minute] = *text.as_bytes() else {
        return None;
    };
    let number = |ten: u8, one: u8| {
        (ten.is_ascii_digit() && one.is_ascii_digit())
            .then(|| u16::from(ten - b'0') * 10 + u16::from(one - b'0'))
    };
    let (hours, minutes) = (number(hour_ten, hour)?, number(minute_ten, minute)?);
    let total = hours * 60 + minutes;
    (minutes < 60 && total <= DAY).then_some(total)
}
