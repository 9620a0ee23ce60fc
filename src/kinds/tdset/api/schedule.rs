//! The timetable of a TDSet: which replica count holds at which instant, and when it changes.
//!
//! Guarantees: [`Schedule::effective`] is a function of the spec, the dates, the time zone database and the instant,
//! of nothing else; so a restart, a missed tick or a jump of the clock heals by asking once. Two boundaries never
//! change places, whatever the clocks do ([`time_zone`] has the rule).
//! Assumes nothing: what cannot be read as a timetable is refused by [`Schedule::parse`].
//! Never: steps through time; boundaries are computed from local dates, one date at a time, as far as asked for.

mod dates;
mod outlook;
mod parse;
pub mod timeline;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::v1::{self, Overlap};
use crate::api::time_zone;

pub use dates::{DateErrors, DateList, HolidayDates};
pub use outlook::Outlook;
pub use parse::minute_of_day;

/// How far ahead a change is looked for.
const HORIZON: SignedDuration = SignedDuration::from_hours(400 * 24);

/// Minutes of a day.
const DAY: u16 = 24 * 60;

/// A timetable that is known to make sense.
#[derive(Clone, Debug)]
pub struct Schedule {
    zone: TimeZone,
    /// The count outside of all windows and exceptions; none: the workload is left alone there.
    replicas: Option<i32>,
    overlap: Overlap,
    windows: Vec<Window>,
    exceptions: Vec<Exception>,
    /// The dates that the spec itself names.
    dates: BTreeMap<Date, Dated>,
    /// The exceptions whose dates come from elsewhere, with those in order. Many timetables share them.
    elsewhere: Vec<(usize, Arc<[Date]>)>,
}

/// What exceptions say of a date.
#[derive(Clone, Copy, Debug, Default)]
struct Dated {
    /// Windows that do not start on it, one bit each.
    skipped: u64,
    /// The exception that has the whole of it.
    whole_day: Option<usize>,
    /// Exceptions that name it, one bit each.
    excepted: u64,
}

impl Dated {
    /// That exception names the date, too. Of those that have it whole, the first one in the list does.
    fn add(&mut self, at: usize, exception: &Exception) {
        self.skipped |= exception.skips;
        self.excepted |= 1 << at;
        if exception.replicas.is_some() {
            self.whole_day = Some(self.whole_day.map_or(at, |first| first.min(at)));
        }
    }
}

#[derive(Clone, Debug)]
struct Window {
    name: Arc<str>,
    /// Minute of the day.
    from: u16,
    /// Minute of the day, up to [`DAY`].
    to: u16,
    /// Weekdays on which it starts, Monday the lowest bit.
    days: u8,
    first: Option<Date>,
    last: Option<Date>,
    replicas: i32,
    enabled: bool,
}

#[derive(Clone, Debug)]
struct Exception {
    name: Arc<str>,
    when: When,
    skips: u64,
    replicas: Option<i32>,
}

#[derive(Clone, Debug)]
enum When {
    Between(Timestamp, Timestamp),
    Dates(Vec<Date>),
    /// Dates that come from outside of the object.
    Elsewhere,
}

/// What decides at some instant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// No window and no exception: `spec.defaultReplicas`.
    Default,
    /// The window of that name.
    Window(Arc<str>),
    /// The exception of that name.
    Exception(Arc<str>),
}

impl fmt::Display for Source {
    /// As status has it: empty, `evening`, `exception/xmas`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => Ok(()),
            Self::Window(name) => formatter.write_str(name),
            Self::Exception(name) => write!(formatter, "exception/{name}"),
        }
    }
}

/// What the timetable asks for at some instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// What decides.
    pub source: Source,
    /// The replica count; none: the workload is left alone, and gets back what it had before.
    pub replicas: Option<i32>,
}

impl Effective {
    /// As status has it.
    #[must_use]
    pub fn phase(&self) -> v1::Phase {
        v1::Phase { window: self.source.to_string(), replicas: self.replicas }
    }
}

/// A change of what the timetable asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The first instant at which `to` holds.
    pub time: Timestamp,
    /// What held until then.
    pub from: Effective,
    /// What holds from then on.
    pub to: Effective,
}

/// Which of the rules decides, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Default,
    Window(usize),
    Exception(usize),
}

impl Schedule {
    /// The time zone that local times are in.
    #[must_use]
    pub const fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Whether there is a count for the time outside of all windows and exceptions.
    #[must_use]
    pub const fn has_default(&self) -> bool {
        self.replicas.is_some()
    }

    /// What the timetable asks for at `now`.
    #[must_use]
    pub fn effective(&self, now: Timestamp) -> Effective {
        self.describe(self.slot(now))
    }

    /// The first change after `now`, if there is one within 400 days. The source changing at the same count is a
    /// change too: status and events name it.
    #[must_use]
    pub fn next_change(&self, now: Timestamp) -> Option<Transition> {
        self.changes(now).next()
    }

    /// The next `most` changes after `now`, of those within 400 days.
    #[must_use]
    pub fn upcoming(&self, now: Timestamp, most: usize) -> Vec<Transition> {
        self.changes(now).take(most).collect()
    }

    /// The changes after `now`, computed one by one, up to 400 days ahead.
    pub fn changes(&self, now: Timestamp) -> impl Iterator<Item = Transition> {
        self.changes_until(now, horizon(now))
    }

    fn changes_until(&self, now: Timestamp, until: Timestamp) -> impl Iterator<Item = Transition> {
        let mut current = self.slot(now);
        self.boundaries(now, until).filter_map(move |time| {
            let next = self.slot(time);
            let from = std::mem::replace(&mut current, next);
            (from != next).then(|| Transition { time, from: self.describe(from), to: self.describe(next) })
        })
    }

    /// `time` in the schedule's time zone: `2026-10-24T19:00+02:00[Europe/Berlin]`.
    #[must_use]
    pub fn local(&self, time: Timestamp) -> String {
        let zoned = time.to_zoned(self.zone.clone());
        zoned.strftime("%Y-%m-%dT%H:%M%:z[%Q]").to_string()
    }

    /// The same for reading: `Sat 2026-10-24 19:00 CEST`.
    fn display(&self, time: Timestamp) -> String {
        time.to_zoned(self.zone.clone()).strftime("%a %Y-%m-%d %H:%M %Z").to_string()
    }

    /// A change as status shows it.
    #[must_use]
    pub fn shown(&self, transition: &Transition) -> v1::Transition {
        v1::Transition {
            time: transition.time.into(),
            local: self.local(transition.time),
            display: Some(self.display(transition.time)),
            window: transition.to.source.to_string(),
            replicas: transition.to.replicas,
        }
    }

    fn describe(&self, slot: Slot) -> Effective {
        let (source, replicas) = match slot {
            Slot::Default => (Source::Default, self.replicas),
            Slot::Window(at) => {
                let window = &self.windows[at];
                (Source::Window(Arc::clone(&window.name)), Some(window.replicas))
            }
            Slot::Exception(at) => {
                let exception = &self.exceptions[at];
                let replicas = exception.replicas.or(self.replicas);
                (Source::Exception(Arc::clone(&exception.name)), replicas)
            }
        };
        Effective { source, replicas }
    }

    fn slot(&self, now: Timestamp) -> Slot {
        let holds = |exception: &Exception| match exception.when {
            When::Between(start, end) => start <= now && now < end,
            When::Dates(_) | When::Elsewhere => false,
        };
        if let Some(at) = self.exceptions.iter().position(holds) {
            return Slot::Exception(at);
        }
        let local = time_zone::reached(&self.zone, now);
        match self.dated(local.date()).whole_day {
            Some(at) => Slot::Exception(at),
            None => self.window_at(local).map_or(Slot::Default, Slot::Window),
        }
    }

    /// The window that decides once the wall clock has reached `local`.
    fn window_at(&self, local: DateTime) -> Option<usize> {
        let today = self.starting(local.date());
        let yesterday = local.date().yesterday().map_or(0, |date| self.starting(date));
        let minute = minute_of(local.time());
        let has = |starting: u64, at: usize| starting & (1 << at) != 0;
        let holding = (0..self.windows.len()).filter(|&at| {
            let window = &self.windows[at];
            if window.wraps() {
                (window.from <= minute && has(today, at)) || (minute < window.to && has(yesterday, at))
            } else {
                window.from <= minute && minute < window.to && has(today, at)
            }
        });
        let count = |at: &usize| self.windows[*at].replicas;
        match self.overlap {
            Overlap::FirstMatch => holding.min(),
            Overlap::Min => holding.min_by_key(count),
            // Of equals, max_by_key takes the last one.
            Overlap::Max => holding.rev().max_by_key(count),
        }
    }

    /// What exceptions say of that date.
    fn dated(&self, date: Date) -> Dated {
        let mut dated = self.dates.get(&date).copied().unwrap_or_default();
        for (at, dates) in &self.elsewhere {
            if dates.binary_search(&date).is_ok() {
                dated.add(*at, &self.exceptions[*at]);
            }
        }
        dated
    }

    /// The windows that start on that local date, one bit each.
    fn starting(&self, date: Date) -> u64 {
        let starts = self.windows.iter().enumerate().filter(|(_, window)| window.starts(date));
        starts.fold(0, |all, (at, _)| all | 1 << at) & !self.dated(date).skipped
    }

    /// All instants after `now` at which something starts or ends, in order, each once, up to `until`.
    fn boundaries(&self, now: Timestamp, until: Timestamp) -> Boundaries<'_> {
        let date = Some(time_zone::reached(&self.zone, now).date());
        Boundaries { schedule: self, date, now, until, queue: VecDeque::new() }
    }

    /// The local times on `date` at which a window or a whole day starts or ends.
    fn local_boundaries(&self, date: Date) -> impl Iterator<Item = DateTime> {
        let yesterday = date.yesterday().ok();
        let midnight =
            [Some(date), yesterday].into_iter().flatten().any(|day| self.dated(day).whole_day.is_some());
        let starting = self.starting(date);
        let started = yesterday.map_or(0, |day| self.starting(day));
        let of_windows = self.windows.iter().enumerate().flat_map(move |(at, window)| {
            let (today, before) = (starting & (1 << at) != 0, started & (1 << at) != 0);
            let start = (today && !window.is_empty()).then_some(window.from);
            let end = match window.to {
                DAY => before.then_some(0),
                to if window.wraps() => before.then_some(to),
                to => today.then_some(to),
            };
            [start, end].into_iter().flatten()
        });
        let midnight = midnight.then_some(0);
        of_windows.chain(midnight).map(move |minute| date.to_datetime(time_of(minute)))
    }
}

impl Window {
    /// Whether it goes on into the next day.
    const fn wraps(&self) -> bool {
        self.to < self.from
    }

    /// Whether it has no length at all, as only old objects can have it.
    const fn is_empty(&self) -> bool {
        self.to == self.from
    }

    /// Whether it starts on that local date, exceptions aside.
    fn starts(&self, date: Date) -> bool {
        let day = 1 << date.weekday().to_monday_zero_offset();
        self.enabled
            && self.days & day != 0
            && self.first.is_none_or(|first| first <= date)
            && self.last.is_none_or(|last| date <= last)
    }
}

/// Reckons one local date at a time. All boundaries of a date lie between its midnight and the next, and local
/// times resolve in order, so no later date can have an earlier boundary.
struct Boundaries<'a> {
    schedule: &'a Schedule,
    date: Option<Date>,
    now: Timestamp,
    until: Timestamp,
    queue: VecDeque<Timestamp>,
}

impl Boundaries<'_> {
    /// Queues what `date` holds; `None` past the horizon.
    fn reckon(&mut self, date: Date) -> Option<()> {
        let schedule = self.schedule;
        let midnight = |date: Date| time_zone::resolve(&schedule.zone, date.to_datetime(Time::midnight()));
        let start = midnight(date);
        if start > self.until {
            return None;
        }
        let next = date.tomorrow().ok()?;
        let end = midnight(next);
        let spans = schedule.exceptions.iter().flat_map(|exception| match exception.when {
            When::Between(first, last) => [Some(first), Some(last)],
            When::Dates(_) | When::Elsewhere => [None, None],
        });
        let mut found: Vec<Timestamp> = schedule
            .local_boundaries(date)
            .map(|local| time_zone::resolve(&schedule.zone, local))
            .chain(spans.flatten().filter(|instant| start <= *instant && *instant < end))
            .filter(|instant| self.now < *instant && *instant <= self.until)
            .collect();
        found.sort_unstable();
        found.dedup();
        self.queue.extend(found);
        self.date = Some(next);
        Some(())
    }
}

impl Iterator for Boundaries<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        loop {
            if let Some(instant) = self.queue.pop_front() {
                return Some(instant);
            }
            let date = self.date.take()?;
            self.reckon(date)?;
        }
    }
}

/// How far a change is looked for at `now`.
fn horizon(now: Timestamp) -> Timestamp {
    now.checked_add(HORIZON).unwrap_or(Timestamp::MAX)
}

fn minute_of(time: Time) -> u16 {
    u16::try_from(i32::from(time.hour()) * 60 + i32::from(time.minute())).unwrap_or_default()
}

fn time_of(minute: u16) -> Time {
    let part = |value: u16| i8::try_from(value).unwrap_or_default();
    Time::new(part(minute / 60), part(minute % 60), 0, 0).unwrap_or(Time::midnight())
}

#[cfg(test)]
mod tests;
