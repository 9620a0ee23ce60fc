//! Boundaries that the clocks will skip or repeat.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::{Used, season, starts_on};
use crate::api::time_zone::{self, Shift};
use crate::kinds::tdset::api::schedule::minute_of_day;
use crate::kinds::tdset::api::v1::Window;

/// How far ahead changes of the clocks are looked for.
const YEAR: SignedDuration = SignedDuration::from_hours(366 * 24);

/// A warning for each boundary that a coming change of the clocks skips or repeats, with the instant that counts
/// instead, and for each window that lies in a gap whole.
pub(super) fn advise(used: &[Used<'_>], zone: &TimeZone, zone_name: &str, now: Timestamp) -> Vec<String> {
    let until = now.checked_add(YEAR).unwrap_or(Timestamp::MAX);
    let shifts = time_zone::shifts(zone, now, until);
    let mut found = Vec::new();
    for Used { at, window, .. } in used {
        let ends = time(&window.from).zip(time(&window.to));
        let swallowed =
            ends.and_then(|ends| shifts.iter().find_map(|shift| swallows(window, ends, zone, shift)));
        if let Some(date) = swallowed {
            let name = &window.name;
            found.push(format!(
                "spec.windows[{at}]: {name} does not happen on {date}: the clocks in {zone_name} skip it"
            ));
            continue;
        }
        let wraps = window.to < window.from;
        for (field, text, next_day) in [("from", &window.from, false), ("to", &window.to, wraps)] {
            // 24:00 is the midnight that ends the day.
            let (time, next_day) =
                if text == "24:00" { (Some(Time::midnight()), true) } else { (time(text), next_day) };
            let meets = |shift: &Shift| touches(window, time?, next_day, zone, shift);
            if let Some((date, what)) = shifts.iter().find_map(meets) {
                found.push(format!("spec.windows[{at}].{field}: {text} on {date} in {zone_name} {what}"));
            }
        }
    }
    found
}

/// The date on which the gap has both ends of the window, so that no time is left of it.
fn swallows(window: &Window, (from, to): (Time, Time), zone: &TimeZone, shift: &Shift) -> Option<Date> {
    let date = shift.before.date();
    let (from, to) = (date.to_datetime(from), date.to_datetime(to));
    let inside = shift.before <= from && from < to && to <= shift.after;
    (inside && happens(window, date) && time_zone::resolve(zone, from) == time_zone::resolve(zone, to))
        .then_some(date)
}

/// The date on which the change of the clocks meets a boundary of the window, and what it does to it.
fn touches(
    window: &Window,
    time: Time,
    next_day: bool,
    zone: &TimeZone,
    shift: &Shift,
) -> Option<(Date, String)> {
    shift.dates().find_map(|date| {
        let start = if next_day { date.yesterday().ok()? } else { date };
        let is_touched = |local: &DateTime| shift.skips(*local) || shift.repeats(*local);
        let local = Some(date.to_datetime(time)).filter(is_touched).filter(|_| happens(window, start))?;
        let instant = time_zone::resolve(zone, local).strftime("%H:%MZ");
        let what = if shift.skips(local) {
            format!("is skipped by the clocks: {} counts, {instant}", shift.after.strftime("%H:%M"))
        } else {
            format!("comes twice: the first one counts, {instant}")
        };
        Some((date, what))
    })
}

fn time(text: &str) -> Option<Time> {
    let minute = minute_of_day(text)?;
    let part = |number: u16| i8::try_from(number).ok();
    Time::new(part(minute / 60)?, part(minute % 60)?, 0, 0).ok()
}

/// Whether the window starts on that date, exceptions aside.
fn happens(window: &Window, date: Date) -> bool {
    let in_season = match season(window) {
        (None, None) => true,
        (first, last) => {
            let day = date.to_string();
            first.is_none_or(|first| first <= day.as_str()) && last.is_none_or(|last| day.as_str() <= last)
        }
    };
    in_season && starts_on(window, date.weekday())
}
