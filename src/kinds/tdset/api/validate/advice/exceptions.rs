//! Exceptions that do nothing.

use std::collections::HashSet;

use jiff::Timestamp;
use jiff::civil::Date;

use super::{season, starts_on};
use crate::kinds::tdset::api::v1::{Exception, TDSetSpec, Window};

/// A warning for each exception that is over, that others leave nothing to, or that skips what does not happen.
pub(super) fn advise(spec: &TDSetSpec, today: Date, now: Timestamp) -> Vec<String> {
    let mut taken: HashSet<&str> = HashSet::new();
    let mut spans: Vec<(Timestamp, Timestamp)> = Vec::new();
    let mut found = Vec::new();
    for (at, exception) in spec.exceptions().iter().enumerate() {
        let why = if let Some(span) = span(exception) {
            let covered = spans.iter().any(|(start, end)| *start <= span.0 && span.1 <= *end);
            spans.push(span);
            let over = || format!(".between: it ended at {}", span.1.strftime("%Y-%m-%dT%H:%MZ"));
            let shadowed = || ".between: a span above it covers it".to_owned();
            (span.1 <= now).then(over).or_else(|| covered.then(shadowed))
        } else {
            let dates: Vec<&str> = exception.dates.iter().flatten().map(String::as_str).collect();
            let why = dated(spec, exception, &dates, &taken, today);
            taken.extend(dates.iter().filter(|_| exception.replicas.is_some()));
            why
        };
        found.extend(why.map(|why| format!("spec.exceptions[{at}]{why}")));
    }
    found
}

fn span(exception: &Exception) -> Option<(Timestamp, Timestamp)> {
    let between = exception.between.as_ref()?;
    Some((between.start.parse().ok()?, between.end.parse().ok()?))
}

fn dated(
    spec: &TDSetSpec,
    exception: &Exception,
    dates: &[&str],
    taken: &HashSet<&str>,
    today: Date,
) -> Option<String> {
    // A window that was skipped may have been one that goes on into the next day.
    let since = today.yesterday().ok()?.to_string();
    let last = dates.iter().max()?;
    if *last < since.as_str() {
        return Some(format!(".dates: all of them are past, the last one is {last}"));
    }
    if exception.replicas.is_some() && dates.iter().all(|date| taken.contains(date)) {
        return Some(".replicas: exceptions above it have all of its dates".to_owned());
    }
    let skips = exception.skip_windows.as_ref()?;
    // By name once, and not for each date.
    let names: HashSet<&str> = skips.iter().map(String::as_str).collect();
    let is_named = |window: &&Window| names.contains("*") || names.contains(window.name.as_str());
    let windows: Vec<_> = spec.windows().iter().filter(is_named).collect();
    let idle = !dates.iter().any(|date| skips_something(&windows, date));
    (exception.replicas.is_none() && idle)
        .then(|| ".skipWindows: none of them starts on one of the dates".to_owned())
}

/// Whether one of these windows starts on that date.
fn skips_something(windows: &[&Window], date: &str) -> bool {
    let Ok(weekday) = date.parse::<Date>().map(Date::weekday) else { return false };
    windows.iter().any(|window| {
        let (first, last) = season(window);
        window.enabled != Some(false)
            && first.is_none_or(|first| first <= date)
            && last.is_none_or(|last| date <= last)
            && starts_on(window, weekday)
    })
}
