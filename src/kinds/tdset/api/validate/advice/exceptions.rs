//! Exceptions that do nothing.

use std::array;
use std::collections::HashSet;
use std::hash::Hash;
use std::ops::Deref;

use jiff::Timestamp;
use jiff::civil::{Date, Weekday};

use super::{season, starts_on};
use crate::kinds::tdset::api::v1::{Exception, TDSetSpec, Window};

/// A warning for each exception that is over, that others leave nothing to, or that skips what does not happen.
pub(super) fn advise(spec: &TDSetSpec, today: Date, now: Timestamp) -> Vec<String> {
    advise_by::<&str>(spec, today, now)
}

/// The same with dates of that type.
fn advise_by<'a, Text>(spec: &'a TDSetSpec, today: Date, now: Timestamp) -> Vec<String>
where
    Text: From<&'a str> + Deref<Target = str> + Copy + Hash + Ord,
{
    let mut taken: HashSet<Text> = HashSet::new();
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
            let dates = exception.dates.iter().flatten();
            let dates: Vec<Text> = dates.map(|date| Text::from(date.as_str())).collect();
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

fn dated<Text: Deref<Target = str> + Copy + Hash + Ord>(
    spec: &TDSetSpec,
    exception: &Exception,
    dates: &[Text],
    taken: &HashSet<Text>,
    today: Date,
) -> Option<String> {
    // A window that was skipped may have been one that goes on into the next day.
    let since = today.yesterday().ok()?.to_string();
    let last = dates.iter().max()?;
    if **last < *since {
        return Some(format!(".dates: all of them are past, the last one is {}", &**last));
    }
    if exception.replicas.is_some() && dates.iter().all(|date| taken.contains(date)) {
        return Some(".replicas: exceptions above it have all of its dates".to_owned());
    }
    let skips = exception.skip_windows.as_ref()?;
    // By name once, and not for each date.
    let names: HashSet<&str> = skips.iter().map(String::as_str).collect();
    let is_named = |window: &&Window| names.contains("*") || names.contains(window.name.as_str());
    let mut windows = spec.windows().iter().filter(is_named);
    let by_weekday = by_weekday(dates);
    let idle = !windows.any(|window| starts_on_one_of(window, &by_weekday));
    (exception.replicas.is_none() && idle)
        .then(|| ".skipWindows: none of them starts on one of the dates".to_owned())
}

/// The dates of each day of the week, in their order. An exception has hundreds of dates, and many windows are looked for
/// among them.
fn by_weekday<Text: Deref<Target = str> + Copy + Ord>(dates: &[Text]) -> [(Weekday, Vec<Text>); 7] {
    let mut weekdays = Weekday::Monday.cycle_forward();
    let mut sorted = array::from_fn(|_| (weekdays.next().unwrap_or(Weekday::Monday), Vec::new()));
    for date in dates {
        let weekday = date.parse::<Date>().map(Date::weekday);
        let of_it = sorted.iter_mut().find(|(one, _)| weekday.as_ref().is_ok_and(|weekday| weekday == one));
        if let Some((_, of_it)) = of_it {
            of_it.push(*date);
        }
    }
    for (_, dates) in &mut sorted {
        dates.sort_unstable();
    }
    sorted
}

/// Whether the window starts on one of these dates.
fn starts_on_one_of<Text: Deref<Target = str>>(window: &Window, dates: &[(Weekday, Vec<Text>); 7]) -> bool {
    let (first, last) = season(window);
    let is_hit = |(weekday, dates): &(Weekday, Vec<Text>)| {
        if !starts_on(window, *weekday) {
            return false;
        }
        let before = dates.partition_point(|date| first.is_some_and(|first| **date < *first));
        dates.get(before).is_some_and(|date| last.is_none_or(|last| **date <= *last))
    };
    window.enabled != Some(false) && dates.iter().any(is_hit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::counted::{self, Counted};

    /// The largest timetable of which nothing can be said before all of it was looked at: no window starts in the season
    /// of the dates.
    fn largest(dates: usize) -> TDSetSpec {
        let names: Vec<_> = (0..64).map(|at| format!("window-{at}")).collect();
        let season = json!({"first": "2026-01-01", "last": "2026-06-30"});
        let window =
            |name| json!({"name": name, "from": "08:00", "to": "09:00", "replicas": 1, "season": season});
        let windows: Vec<_> = names.iter().map(window).collect();
        let first: Date = "2026-07-01".parse().unwrap();
        let days = first.series(jiff::Span::new().days(1)).take(dates);
        let days: Vec<_> = days.map(|day| day.to_string()).collect();
        let exception = |at| json!({"name": format!("e-{at}"), "dates": days, "skipWindows": names});
        let exceptions: Vec<_> = (0..64).map(exception).collect();
        let target = json!({"create": {"image": "shop:1", "port": 8000}});
        let spec =
            json!({"defaultReplicas": 1, "windows": windows, "exceptions": exceptions, "target": target});
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn what_exceptions_cost_does_not_grow_with_the_product_of_dates_and_windows() {
        let cost = |dates: usize| {
            let spec = largest(dates);
            counted::looks(|| {
                let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
                let found =
                    advise_by::<Counted<&str>>(&spec, now.to_zoned(jiff::tz::TimeZone::UTC).date(), now);
                assert_eq!(found.len(), 64, "all of them do nothing");
            })
        };
        let (half, whole) = (cost(200), cost(400));
        println!("{half} looks at dates, and {whole} at twice as many");
        assert!(whole < 25 * 64 * 400, "{whole} looks at dates: some for each of them");
        assert!(whole < 5 * half / 2, "{half} and then {whole}");
    }
}
