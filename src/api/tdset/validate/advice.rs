//! What the author of a TDSet should know although it is accepted.
//!
//! Guarantees: few warnings, the most telling one first; each fits into what the API server passes on.

use jiff::civil::{Date, DateTime, Weekday};
use jiff::{SignedDuration, Timestamp};

use super::super::schedule::{Schedule, Source};
use super::super::v1::{Day, Overlap, Season, TDSetSpec, Window};
use crate::api::field::Verdict;
use crate::api::time_zone::{self, Shift};

/// Most warnings of one kind.
const MOST_ALIKE: usize = 3;
/// From here on a look at the workload is rare enough to be asked about, in minutes.
const RARE: i32 = 60;
/// How far ahead changes of the clocks are looked for.
const YEAR: SignedDuration = SignedDuration::from_hours(366 * 24);
/// Minutes of a week.
const WEEK: usize = 7 * 24 * 60;

/// Adds what there is to say of a sound spec.
pub(super) fn advise(
    spec: &TDSetSpec,
    schedule: &Schedule,
    old: Option<&TDSetSpec>,
    now: Timestamp,
    verdict: &mut Verdict,
) {
    let zone_name = spec.time_zone.as_deref().unwrap_or("UTC");
    let overlap = spec.overlap.unwrap_or_default();
    let used = used(spec, overlap);
    let parts = [
        at_once(spec, schedule, old, now).into_iter().collect(),
        never_active(&used, schedule, now),
        overlaps(&used, overlap),
        clock_changes(&used, schedule, zone_name, now),
        without_endpoints(spec, &used).into_iter().collect(),
        rare_looks(spec).into_iter().collect(),
    ];
    for part in parts {
        let more = part.len().saturating_sub(MOST_ALIKE);
        for text in part.iter().take(MOST_ALIKE) {
            verdict.warn(text);
        }
        if more > 0 {
            verdict.warn(format!("spec.windows: {more} more of the same kind"));
        }
    }
}

/// The change of the count that an update brings about right now.
fn at_once(spec: &TDSetSpec, schedule: &Schedule, old: Option<&TDSetSpec>, now: Timestamp) -> Option<String> {
    let old = old?;
    if spec.suspend == Some(true) || old.suspend == Some(true) {
        return None;
    }
    let before = Schedule::parse(old).ok()?.effective(now);
    let after = schedule.effective(now);
    if before.replicas == after.replicas {
        return None;
    }
    let place = match &after.source {
        Source::Default => "outside all windows".to_owned(),
        Source::Window(name) => format!("window {name}"),
        Source::Exception(name) => format!("exception {name}"),
    };
    let what = if spec.autoscaler.is_some() { "minReplicas" } else { "replicas" };
    let ramp = if spec.ramp.is_some() { ", by the ramp" } else { "" };
    Some(format!("{what} {} -> {} now, {place}{ramp}", before.replicas, after.replicas))
}

/// A window that takes part in the timetable.
struct Used<'a> {
    at: usize,
    window: &'a Window,
    minutes: Minutes,
    /// Whether it holds only while one before it in the list does, and that one decides.
    covered: bool,
}

fn used(spec: &TDSetSpec, overlap: Overlap) -> Vec<Used<'_>> {
    let mut used: Vec<Used<'_>> = Vec::new();
    for (at, window) in spec.windows().iter().enumerate() {
        if window.enabled == Some(false) || window.from == window.to {
            continue;
        }
        let minutes = Minutes::of(window);
        let mut left = minutes;
        for above in used.iter().filter(|above| season_within(window, above.window)) {
            left.remove(&above.minutes);
        }
        let covered = overlap == Overlap::FirstMatch && left.is_empty();
        used.push(Used { at, window, minutes, covered });
    }
    used
}

/// Windows that others cover, or whose time is over.
fn never_active(used: &[Used<'_>], schedule: &Schedule, now: Timestamp) -> Vec<String> {
    let today = time_zone::reached(schedule.zone(), now).date();
    let why = used.iter().filter_map(|one| {
        let why = if let Some(last) = over(one.window, today) {
            format!("its season ended on {last}")
        } else if !meets_its_days(one.window) {
            "no date of its season is one of its days".to_owned()
        } else if one.covered {
            "windows above it cover it (overlap FirstMatch)".to_owned()
        } else {
            return None;
        };
        Some(format!("spec.windows[{}]: {} is never active: {why}", one.at, one.window.name))
    });
    why.collect()
}

/// The last date of a season if no occurrence can be left, an overnight one included.
fn over(window: &Window, today: Date) -> Option<Date> {
    let last: Date = window.season.as_ref()?.to.as_ref()?.parse().ok()?;
    (last.tomorrow().ok()? < today).then_some(last)
}

fn meets_its_days(window: &Window) -> bool {
    let Some(Season { from: Some(from), to: Some(to) }) = &window.season else {
        return true;
    };
    let (Ok(from), Ok(to)) = (from.parse::<Date>(), to.parse::<Date>()) else {
        return true;
    };
    let dates = from.series(jiff::Span::new().days(1)).take_while(|date| *date <= to);
    dates.take(7).any(|date| starts_on(window, date.weekday()))
}

fn starts_on(window: &Window, weekday: Weekday) -> bool {
    let day = match weekday {
        Weekday::Monday => Day::Mon,
        Weekday::Tuesday => Day::Tue,
        Weekday::Wednesday => Day::Wed,
        Weekday::Thursday => Day::Thu,
        Weekday::Friday => Day::Fri,
        Weekday::Saturday => Day::Sat,
        Weekday::Sunday => Day::Sun,
    };
    window.days.as_ref().is_none_or(|days| days.contains(&day))
}

/// Whether all of the season of `inner` is in that of `outer`.
fn season_within(inner: &Window, outer: &Window) -> bool {
    let (inner, outer) = (season(inner), season(outer));
    let from = outer.0.is_none_or(|outer| inner.0.is_some_and(|inner| outer <= inner));
    let to = outer.1.is_none_or(|outer| inner.1.is_some_and(|inner| inner <= outer));
    from && to
}

/// First and last date; dates in this form sort as text.
fn season(window: &Window) -> (Option<&str>, Option<&str>) {
    let season = window.season.as_ref();
    (season.and_then(|season| season.from.as_deref()), season.and_then(|season| season.to.as_deref()))
}

fn seasons_meet(one: &Window, other: &Window) -> bool {
    let before =
        |last: Option<&str>, first: Option<&str>| last.zip(first).is_some_and(|(last, first)| last < first);
    let (one, other) = (season(one), season(other));
    !before(one.1, other.0) && !before(other.1, one.0)
}

/// Pairs of windows that hold at the same time and ask for different counts.
fn overlaps(used: &[Used<'_>], overlap: Overlap) -> Vec<String> {
    let mut found = Vec::new();
    for (position, one) in used.iter().enumerate().filter(|(_, one)| !one.covered) {
        for above in &used[..position] {
            let (window, other) = (one.window, above.window);
            let meet = one.minutes.meet(&above.minutes) && seasons_meet(window, other);
            if !meet || window.replicas == other.replicas {
                continue;
            }
            let decides = match overlap {
                Overlap::FirstMatch => other,
                Overlap::Max if other.replicas > window.replicas => other,
                Overlap::Min if other.replicas < window.replicas => other,
                Overlap::Max | Overlap::Min => window,
            };
            found.push(format!(
                "spec.windows[{}]: {} overlaps {}: {} decides (overlap {overlap:?})",
                one.at, window.name, other.name, decides.name
            ));
        }
    }
    found
}

/// Boundaries that a coming change of the clocks skips or repeats.
fn clock_changes(used: &[Used<'_>], schedule: &Schedule, zone_name: &str, now: Timestamp) -> Vec<String> {
    let until = now.checked_add(YEAR).unwrap_or(Timestamp::MAX);
    let shifts = time_zone::shifts(schedule.zone(), now, until);
    let mut found = Vec::new();
    for one in used {
        let window = one.window;
        let wraps = window.to < window.from;
        for (field, text, next_day) in [("from", &window.from, false), ("to", &window.to, wraps)] {
            let touched = shifts.iter().find_map(|shift| touches(window, text, next_day, shift));
            if let Some((date, what)) = touched {
                found.push(format!(
                    "spec.windows[{}].{field}: {text} on {date} in {zone_name} {what}",
                    one.at
                ));
            }
        }
    }
    found
}

/// The date on which the change of the clocks meets a boundary of the window, and what it does to it.
fn touches(window: &Window, text: &str, next_day: bool, shift: &Shift) -> Option<(Date, String)> {
    // 24:00 is the midnight that ends the day.
    let (text, next_day) = if text == "24:00" { ("00:00", true) } else { (text, next_day) };
    shift.dates().find_map(|date| {
        let start = if next_day { date.yesterday().ok()? } else { date };
        let (first, last) = season(window);
        let day = start.to_string();
        let in_season =
            first.is_none_or(|first| first <= day.as_str()) && last.is_none_or(|last| day.as_str() <= last);
        if !in_season || !starts_on(window, start.weekday()) {
            return None;
        }
        let local: DateTime = format!("{date}T{text}").parse().ok()?;
        let what = if shift.skips(local) {
            format!("is skipped by the clocks: {} counts", shift.after.strftime("%H:%M"))
        } else if shift.repeats(local) {
            "comes twice: the first one counts".to_owned()
        } else {
            return None;
        };
        Some((date, what))
    })
}

/// A Service that will have nobody behind it.
fn without_endpoints(spec: &TDSetSpec, used: &[Used<'_>]) -> Option<String> {
    spec.target.create.as_ref()?.service_port?;
    let place = if spec.replicas == 0 {
        "spec.replicas".to_owned()
    } else {
        let empty = used.iter().find(|one| one.window.replicas == 0 && !one.covered)?;
        format!("spec.windows[{}].replicas", empty.at)
    };
    Some(format!("{place}: 0 leaves the Service of servicePort without endpoints"))
}

fn rare_looks(spec: &TDSetSpec) -> Option<String> {
    let minutes = spec.resync_minutes.filter(|minutes| *minutes > RARE)?;
    Some(format!("spec.resyncMinutes: drift may stand for {minutes} minutes; no transition waits for it"))
}

/// The minutes of a week at which a window holds, clock changes aside.
#[derive(Clone, Copy)]
struct Minutes([u64; WEEK.div_ceil(64)]);

impl Minutes {
    fn of(window: &Window) -> Self {
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

    fn remove(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= !other;
        }
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    fn meet(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(word, other)| word & other != 0)
    }
}

/// Minutes of the day; 24:00 is the last one.
fn minute(text: &str) -> Option<usize> {
    let (hours, minutes) = text.split_once(':')?;
    Some(hours.parse::<usize>().ok()? * 60 + minutes.parse::<usize>().ok()?)
}
