//! The coming days, as data: which count holds when, on which local days, and changes of the clocks.
//!
//! Guarantees: the spans follow one another without a hole, and each says what [`Schedule::effective`] says at every
//! instant of it; every local date asked for is there once, those of 23 or 25 hours and those that a country left out
//! too. Assumes nothing of the zone that it is shown in: it need not be the schedule's own.
//! Never: asks the time, or draws.

use std::sync::Arc;
use std::time::Duration;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::{Effective, Schedule, When};
use crate::api::time_zone::{self, Shift};
use crate::kinds::tdset::api::ramp::Ramp;

/// Seconds of a day of 24 hours.
pub const DAY_SECONDS: i32 = 24 * 60 * 60;

/// Some local days of a timetable.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The zone whose days these are.
    pub zone: TimeZone,
    /// The first instant.
    pub start: Timestamp,
    /// The end, itself no longer part.
    pub end: Timestamp,
    /// What holds, from the start to the end.
    pub spans: Vec<Span>,
    /// The local days, in order.
    pub days: Vec<Day>,
}

/// A time during which the same rule decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its first instant.
    pub start: Timestamp,
    /// Its end, itself no longer part.
    pub end: Timestamp,
    /// What holds.
    pub what: Effective,
    /// How the count gets there, where a ramp keeps it from being there at once.
    pub glide: Option<Glide>,
}

/// The way of a count by a ramp, provided that no other owner or writer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glide {
    /// The count that it starts from.
    pub from: i32,
    /// How many times the count is written.
    pub steps: u32,
    /// When it is there; `None` where the next change comes first.
    pub arrives: Option<Timestamp>,
    /// The count at the end of the span.
    pub reached: i32,
}

/// A local day.
#[derive(Clone, Debug)]
pub struct Day {
    /// Its date.
    pub date: Date,
    /// Its parts, in the order of time; none for a date that does not occur.
    pub pieces: Vec<Piece>,
    /// The changes of the clocks on it.
    pub shifts: Vec<Shift>,
    /// The exceptions that hold or skip something on it, by name.
    pub exceptions: Vec<Arc<str>>,
}

/// A part of a local day within one span, without a change of the clocks in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its first instant.
    pub start: Timestamp,
    /// Its end, itself no longer part.
    pub end: Timestamp,
    /// What the clock shows at its start, in seconds of the day.
    pub from: i32,
    /// What the clock shows at its end, in seconds of the day.
    pub to: i32,
    /// Whether the clock has shown these times before on this day.
    pub again: bool,
    /// Which of the spans it is of.
    pub span: usize,
}

impl Day {
    /// How long it is; zero for a date that does not occur.
    #[must_use]
    pub fn length(&self) -> SignedDuration {
        let lengths = self.pieces.iter().map(|piece| piece.end.duration_since(piece.start));
        lengths.fold(SignedDuration::ZERO, |sum, length| sum + length)
    }
}

impl Timeline {
    /// The span that holds `time`.
    #[must_use]
    pub fn at(&self, time: Timestamp) -> Option<&Span> {
        self.spans.iter().find(|span| span.start <= time && time < span.end)
    }

    /// The counts on the way through a span that started from `from`, each with the instant at which it is written.
    pub fn counts(span: &Span, ramp: Ramp, from: i32) -> impl Iterator<Item = (Timestamp, i32)> {
        let (goal, end) = (span.what.replicas, span.end);
        let (start, mut next) = (span.start, Some(Duration::ZERO));
        std::iter::from_fn(move || {
            let (goal, elapsed) = (goal?, next.take()?);
            let time = start.checked_add(SignedDuration::try_from(elapsed).ok()?).ok()?;
            if time >= end {
                return None;
            }
            let place = ramp.at(from, goal, elapsed);
            next = place.next;
            Some((time, place.replicas))
        })
    }
}

impl Schedule {
    /// `days` local days of `zone` from `first` on, at most 400 of them. The count is taken to be the scheduled one at
    /// the start, and to move by `ramp` from then on.
    #[must_use]
    pub fn timeline(&self, zone: &TimeZone, first: Date, days: u16, ramp: Ramp) -> Timeline {
        let midnight = |date: Date| time_zone::resolve(zone, date.to_datetime(Time::midnight()));
        let dates: Vec<Date> = first.series(jiff::Span::new().days(1)).take(usize::from(days)).collect();
        let after = dates.last().and_then(|date| date.tomorrow().ok());
        let (start, end) = (midnight(first), after.map_or(Timestamp::MAX, midnight));
        let before = start.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(start);
        let shifts = time_zone::shifts(zone, before, end);
        let mut timeline = Timeline {
            zone: zone.clone(),
            start,
            end,
            spans: self.spans(start, end, ramp),
            days: dates.into_iter().map(Day::on).collect(),
        };
        timeline.cut(&shifts);
        for day in &mut timeline.days {
            let on_it = |shift: &&Shift| shift.before.min(shift.after).date() == day.date;
            day.shifts = shifts.iter().filter(on_it).copied().collect();
            day.exceptions = self.exceptions_during(&day.pieces);
        }
        timeline
    }

    fn spans(&self, start: Timestamp, end: Timestamp, ramp: Ramp) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut current = Span { start, end, what: self.effective(start), glide: None };
        for change in self.changes(start).take_while(|change| change.time < end) {
            let next = Span { start: change.time, end, what: change.to, glide: None };
            spans.push(Span { end: change.time, ..std::mem::replace(&mut current, next) });
        }
        spans.push(current);
        let mut count = spans[0].what.replicas;
        for span in &mut spans {
            // Where the workload is left alone nothing is known of its count.
            let (Some(from), Some(goal)) = (std::mem::replace(&mut count, span.what.replicas), count) else {
                continue;
            };
            let mut steps = 0;
            let mut last = (span.start, from);
            for step in Timeline::counts(span, ramp, from) {
                steps += 1;
                last = step;
            }
            if steps > 1 || last.1 != goal {
                let arrives = (last.1 == goal).then_some(last.0);
                span.glide = Some(Glide { from, steps, arrives, reached: last.1 });
                count = Some(last.1);
            }
        }
        spans
    }

    /// The exceptions that have a part of these pieces, in list order.
    fn exceptions_during(&self, pieces: &[Piece]) -> Vec<Arc<str>> {
        let mut found: u64 = 0;
        for piece in pieces {
            let last = piece.end.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(piece.start);
            for date in [piece.start, last].map(|time| time_zone::reached(&self.zone, time).date()) {
                found |= self.dated(date).excepted;
            }
            for (at, exception) in self.exceptions.iter().enumerate() {
                if matches!(exception.when, When::Between(start, end) if start < piece.end && piece.start < end)
                {
                    found |= 1 << at;
                }
            }
        }
        let exceptions = self.exceptions.iter().enumerate();
        exceptions.filter(|(at, _)| found & (1 << at) != 0).map(|(_, one)| Arc::clone(&one.name)).collect()
    }
}

impl Timeline {
    /// Cuts the time from start to end into parts of days.
    fn cut(&mut self, shifts: &[Shift]) {
        let mut from = self.start;
        let changes = shifts.iter().map(|shift| shift.time);
        let inside = changes.filter(|time| self.start < *time && *time < self.end);
        for until in inside.chain([self.end]).collect::<Vec<_>>() {
            let offset = self.zone.to_offset(from);
            let last = offset.to_datetime(until);
            let mut local = offset.to_datetime(from);
            while local < last {
                let Ok(tomorrow) = local.date().tomorrow() else { break };
                let next = last.min(tomorrow.to_datetime(Time::midnight()));
                let to = if next.date() == local.date() { seconds(next) } else { DAY_SECONDS };
                let start = offset.to_timestamp(local).unwrap_or(from);
                if let Some(day) = self.days.iter_mut().find(|day| day.date == local.date()) {
                    day.add(&self.spans, start, seconds(local), to);
                }
                local = next;
            }
            from = until;
        }
    }
}

impl Day {
    const fn on(date: Date) -> Self {
        Self { date, pieces: Vec::new(), shifts: Vec::new(), exceptions: Vec::new() }
    }

    /// Adds a part, which the clock begins to show at `start`, without a change of the clocks or a midnight in it.
    fn add(&mut self, spans: &[Span], start: Timestamp, from: i32, to: i32) {
        let shown = self.pieces.iter().map(|piece| piece.to).max().unwrap_or_default();
        let instant = |shown: i32| {
            start.checked_add(SignedDuration::from_secs(i64::from(shown - from))).unwrap_or(Timestamp::MAX)
        };
        let shown_at =
            |time: Timestamp| from + i32::try_from(time.duration_since(start).as_secs()).unwrap_or_default();
        // What has been shown is shown again; the rest is new.
        for (first, last, again) in [(from, to.min(shown), true), (from.max(shown), to, false)] {
            let (first, last) = (instant(first), instant(last));
            for (at, span) in spans.iter().enumerate() {
                let (start, end) = (first.max(span.start), last.min(span.end));
                if start < end {
                    let (from, to) = (shown_at(start), shown_at(end));
                    self.pieces.push(Piece { start, end, from, to, again, span: at });
                }
            }
        }
    }
}

/// Seconds of the day.
fn seconds(local: DateTime) -> i32 {
    i32::from(local.hour()) * 3600 + i32::from(local.minute()) * 60 + i32::from(local.second())
}
