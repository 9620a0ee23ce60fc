//! Timetables as one JSON document.
//!
//! Guarantees: every time is there as an instant and as local time with its zone; absent is absent, not null.

use jiff::Timestamp;
use serde::Serialize;

use super::preview::{Moment, Preview};
use crate::api::time_zone::{self, Shift};
use crate::cli::ending::Failure;
use crate::kinds::tdset::api::schedule::timeline::{Day, Span};
use crate::kinds::tdset::api::schedule::{Effective, Transition};

#[derive(Serialize)]
struct Report<'a> {
    /// Release of the time zone database that all of this was computed with.
    tzdb: &'static str,
    timetables: Vec<Timetable<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Timetable<'a> {
    file: &'a str,
    document: usize,
    #[serde(skip_serializing_if = "str::is_empty")]
    item: &'a str,
    object: &'a str,
    time_zone: &'a str,
    shown_in: &'a str,
    start: Timestamp,
    end: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<At>,
    spans: Vec<SpanOf>,
    days: Vec<DayOf<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'a [String],
}

/// What holds at the instant of which to tell.
#[derive(Serialize)]
struct At {
    time: Timestamp,
    local: String,
    window: String,
    /// Absent where the workload is left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Next>,
}

#[derive(Serialize)]
struct Next {
    time: Timestamp,
    local: String,
    window: String,
    /// Absent where the workload is left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<i32>,
}

#[derive(Serialize)]
struct SpanOf {
    start: Timestamp,
    end: Timestamp,
    local: String,
    /// As status has it: empty, a window's name, or `exception/<name>`.
    window: String,
    /// Absent where the workload is left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ramp: Option<RampOf>,
}

#[derive(Serialize)]
struct RampOf {
    from: i32,
    steps: u32,
    reached: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrives: Option<Timestamp>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DayOf<'a> {
    date: String,
    weekday: String,
    /// Zero for a date that does not occur.
    minutes: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<Timestamp>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    clock_changes: Vec<ClockChange>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exceptions: Vec<&'a str>,
}

#[derive(Serialize)]
struct ClockChange {
    time: Timestamp,
    /// `forward` or `back`.
    direction: &'static str,
    /// What the clock would show, and what it shows instead.
    from: String,
    to: String,
    minutes: i64,
}

/// Timetables as one JSON document.
///
/// # Errors
/// None that is known: all keys are texts.
pub(super) fn render(previews: &[Preview]) -> Result<String, Failure> {
    let report =
        Report { tzdb: time_zone::database_version(), timetables: previews.iter().map(timetable).collect() };
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}

fn timetable(preview: &Preview) -> Timetable<'_> {
    let (time_zone, shown_in) = preview.zones();
    let timeline = &preview.timeline;
    Timetable {
        file: &preview.origin.file,
        document: preview.origin.document,
        item: &preview.origin.item,
        object: &preview.origin.title,
        time_zone,
        shown_in,
        start: timeline.start,
        end: timeline.end,
        at: preview.moment.as_ref().map(|moment| at(preview, moment)),
        spans: timeline.spans.iter().map(|span| span_of(preview, span)).collect(),
        days: timeline.days.iter().map(day_of).collect(),
        notes: &preview.notes,
    }
}

fn local(preview: &Preview, time: Timestamp) -> String {
    time.to_zoned(preview.timeline.zone.clone()).strftime("%Y-%m-%dT%H:%M%:z[%Q]").to_string()
}

fn at(preview: &Preview, moment: &Moment) -> At {
    let Effective { source, replicas } = &moment.now;
    let next = moment.next.as_ref().map(|Transition { time, to, .. }| Next {
        time: *time,
        local: local(preview, *time),
        window: to.source.to_string(),
        replicas: to.replicas,
    });
    At {
        time: moment.time,
        local: local(preview, moment.time),
        window: source.to_string(),
        replicas: *replicas,
        next,
    }
}

fn span_of(preview: &Preview, span: &Span) -> SpanOf {
    SpanOf {
        start: span.start,
        end: span.end,
        local: local(preview, span.start),
        window: span.what.source.to_string(),
        replicas: span.what.replicas,
        ramp: span.glide.map(|glide| RampOf {
            from: glide.from,
            steps: glide.steps,
            reached: glide.reached,
            arrives: glide.arrives,
        }),
    }
}

fn day_of(day: &Day) -> DayOf<'_> {
    DayOf {
        date: day.date.to_string(),
        weekday: day.date.strftime("%a").to_string(),
        minutes: day.length().as_mins(),
        start: day.pieces.first().map(|piece| piece.start),
        clock_changes: day.shifts.iter().map(clock_change).collect(),
        exceptions: day.exceptions.iter().map(|name| &**name).collect(),
    }
}

fn clock_change(shift: &Shift) -> ClockChange {
    let text = |local: jiff::civil::DateTime| local.strftime("%Y-%m-%dT%H:%M").to_string();
    let moved = shift.after.duration_since(shift.before);
    ClockChange {
        time: shift.time,
        direction: if moved.is_positive() { "forward" } else { "back" },
        from: text(shift.before),
        to: text(shift.after),
        minutes: moved.as_mins(),
    }
}
