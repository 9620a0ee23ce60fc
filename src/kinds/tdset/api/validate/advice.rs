//! Warnings about a TDSet that is accepted.
//!
//! Guarantees: few warnings, the most telling one first; each fits into what the API server passes on; an update is
//! warned only about what it touches, so that a new image does not bring the timetable's warnings back.

mod clocks;
mod exceptions;
mod minutes;

use jiff::Timestamp;
use jiff::civil::{Date, Weekday};

use super::super::schedule::{Schedule, Source};
use super::super::v1::{AutoscalerKind, Day, Overlap, Season, TDSetSpec, Window};
use crate::api::field::Validation;
use crate::api::time_zone;
use minutes::Hours;

/// Most warnings of one kind.
const MOST_ALIKE: usize = 3;
/// Longest time between two reconciliations, in minutes; a larger `resyncMinutes` changes nothing.
const LONGEST: i32 = 10;

/// Adds the warnings about a sound spec.
pub(super) fn advise(
    spec: &TDSetSpec,
    schedule: &Schedule,
    old: Option<&TDSetSpec>,
    now: Timestamp,
    validation: &mut Validation,
) {
    let zone_name = spec.time_zone.as_deref().unwrap_or("UTC");
    let overlap = spec.overlap.unwrap_or_default();
    let used = used(spec, overlap);
    let today = time_zone::reached(schedule.zone(), now).date();
    let timetable = old.is_none_or(|old| !same_timetable(old, spec));
    let service = timetable || old.is_none_or(|old| service_port(old) != service_port(spec));
    let looks = old.is_none_or(|old| old.resync_minutes != spec.resync_minutes);
    let parts = [
        (true, "spec", at_once(spec, schedule, old, now).into_iter().collect()),
        (timetable, "spec.windows", never_active(&used, overlap, today)),
        (timetable, "spec.windows", overlaps(&used, overlap)),
        (timetable, "spec.windows", clocks::advise(&used, schedule.zone(), zone_name, now)),
        (timetable, "spec.exceptions", exceptions::advise(spec, today, now)),
        (service, "spec", without_endpoints(spec, &used).into_iter().collect()),
        (looks, "spec", without_effect(spec).into_iter().collect()),
    ];
    for (_, list, part) in parts.into_iter().filter(|(touched, ..)| *touched) {
        let more = part.len().saturating_sub(MOST_ALIKE);
        for text in part.iter().take(MOST_ALIKE) {
            validation.warn(text);
        }
        if more > 0 {
            validation.warn(format!("{list}: {more} more of the same kind"));
        }
    }
}

/// Whether all that decides about the scheduled count is as it was.
fn same_timetable(old: &TDSetSpec, new: &TDSetSpec) -> bool {
    old.time_zone == new.time_zone
        && old.default_replicas == new.default_replicas
        && old.overlap == new.overlap
        && old.windows == new.windows
        && old.exceptions == new.exceptions
}

fn service_port(spec: &TDSetSpec) -> Option<i32> {
    spec.target.create.as_ref()?.service_port
}

/// The change of the count that the write brings about right now.
fn at_once(spec: &TDSetSpec, schedule: &Schedule, old: Option<&TDSetSpec>, now: Timestamp) -> Option<String> {
    if spec.suspend == Some(true) {
        return None;
    }
    let after = schedule.effective(now);
    let to = after.replicas?;
    // Beside a HorizontalPodAutoscaler none are a count of the workload itself.
    let is_bound =
        spec.autoscaler.as_ref().is_some_and(|one| to > 0 || one.kind == Some(AutoscalerKind::ScaledObject));
    let what = if is_bound { "minReplicas " } else { "" };
    let ramp = if spec.ramp.is_some() { ", by the ramp" } else { "" };
    let place = match &after.source {
        Source::Default => "outside all windows".to_owned(),
        Source::Window(name) => format!("window {name}"),
        Source::Exception(name) => format!("exception {name}"),
    };
    let path = path_of(spec, &after.source);
    let Some(old) = old else {
        // What a new workload has before it is made is no news.
        let target = spec.target.reference.as_ref().filter(|_| to == 0 && !is_bound)?;
        return Some(format!("{path}: {} {} -> 0 now, {place}{ramp}", target.kind, target.name));
    };
    if old.suspend == Some(true) {
        return Some(format!("spec.suspend: {what}-> {to} now, {place}{ramp}"));
    }
    let before = Schedule::parse(old).ok()?.effective(now).replicas;
    let from = before.map_or_else(String::new, |before| format!("{before} "));
    (before != Some(to)).then(|| format!("{path}: {what}{from}-> {to} now, {place}{ramp}"))
}

/// The field that holds the count of a source.
fn path_of(spec: &TDSetSpec, source: &Source) -> String {
    let list = match source {
        Source::Default => return "spec.defaultReplicas".to_owned(),
        Source::Window(name) => {
            spec.windows().iter().position(|one| *one.name == **name).map(|at| format!(".windows[{at}]"))
        }
        Source::Exception(name) => spec
            .exceptions()
            .iter()
            .position(|one| *one.name == **name)
            .map(|at| format!(".exceptions[{at}]")),
    };
    format!("spec{}.replicas", list.unwrap_or_default())
}

/// A window that takes part in the timetable.
struct Used<'a> {
    at: usize,
    window: &'a Window,
    hours: Hours,
    /// Whether it holds only while others do that decide.
    covered: bool,
}

fn used(spec: &TDSetSpec, overlap: Overlap) -> Vec<Used<'_>> {
    let windows = spec.windows().iter().enumerate();
    let windows = windows.filter(|(_, window)| window.enabled != Some(false) && window.from != window.to);
    let mut used: Vec<Used<'_>> =
        windows.map(|(at, window)| Used { at, window, hours: Hours::of(window), covered: false }).collect();
    let covered = |one: &Used<'_>| {
        let covers = |other: &&Used<'_>| {
            beats(other, one, overlap)
                && one.hours.meet(&other.hours)
                && season_within(one.window, other.window)
        };
        let mut covering = used.iter().filter(covers).peekable();
        covering.peek().is_some() && {
            let mut left = *one.hours.minutes();
            covering.for_each(|other| left.remove(other.hours.minutes()));
            left.is_empty()
        }
    };
    let covered: Vec<bool> = used.iter().map(covered).collect();
    used.iter_mut().zip(covered).for_each(|(one, covered)| one.covered = covered);
    used
}

/// Whether the first one decides wherever both hold.
fn beats(one: &Used<'_>, other: &Used<'_>, overlap: Overlap) -> bool {
    let (count, against) = (one.window.replicas, other.window.replicas);
    let above = one.at < other.at;
    match overlap {
        Overlap::FirstMatch => above,
        Overlap::Max => count > against || (count == against && above),
        Overlap::Min => count < against || (count == against && above),
    }
}

/// Windows that others cover, or whose time is over.
fn never_active(used: &[Used<'_>], overlap: Overlap, today: Date) -> Vec<String> {
    let why = used.iter().filter_map(|one| {
        let why = if let Some(last) = over(one.window, today) {
            format!("its season ended on {last}")
        } else if !meets_its_days(one.window) {
            "no date of its season is one of its days".to_owned()
        } else if one.covered {
            match overlap {
                Overlap::FirstMatch => "windows above it cover it (overlap FirstMatch)".to_owned(),
                Overlap::Max => "windows with as many replicas cover it (overlap Max)".to_owned(),
                Overlap::Min => "windows with as few replicas cover it (overlap Min)".to_owned(),
            }
        } else {
            return None;
        };
        Some(format!("spec.windows[{}]: {} is never active: {why}", one.at, one.window.name))
    });
    why.collect()
}

/// The last date of a season if no occurrence can be left, an overnight one included.
fn over(window: &Window, today: Date) -> Option<Date> {
    let last: Date = window.season.as_ref()?.last.as_ref()?.parse().ok()?;
    (last.tomorrow().ok()? < today).then_some(last)
}

fn meets_its_days(window: &Window) -> bool {
    let Some(Season { first: Some(first), last: Some(last) }) = &window.season else {
        return true;
    };
    let (Ok(first), Ok(last)) = (first.parse::<Date>(), last.parse::<Date>()) else {
        return true;
    };
    let dates = first.series(jiff::Span::new().days(1)).take_while(|date| *date <= last);
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
    (season.and_then(|season| season.first.as_deref()), season.and_then(|season| season.last.as_deref()))
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
        for above in used[..position].iter().filter(|above| !above.covered) {
            let (window, other) = (one.window, above.window);
            let meet = || one.hours.meet(&above.hours) && seasons_meet(window, other);
            if window.replicas == other.replicas || !meet() {
                continue;
            }
            let decides = if beats(above, one, overlap) { other } else { window };
            found.push(format!(
                "spec.windows[{}]: {} overlaps {}: {} decides (overlap {overlap:?})",
                one.at, window.name, other.name, decides.name
            ));
        }
    }
    found
}

/// A Service that will have no endpoints.
fn without_endpoints(spec: &TDSetSpec, used: &[Used<'_>]) -> Option<String> {
    service_port(spec)?;
    let place = if spec.default_replicas == Some(0) {
        "spec.defaultReplicas".to_owned()
    } else {
        let empty = used.iter().find(|one| one.window.replicas == 0 && !one.covered)?;
        format!("spec.windows[{}].replicas", empty.at)
    };
    Some(format!("{place}: 0 leaves the Service without endpoints"))
}

fn without_effect(spec: &TDSetSpec) -> Option<String> {
    let minutes = spec.resync_minutes.filter(|minutes| *minutes > LONGEST)?;
    Some(format!(
        "spec.resyncMinutes: {minutes} acts like {LONGEST}: the operator reconciles at least every {LONGEST} minutes"
    ))
}
