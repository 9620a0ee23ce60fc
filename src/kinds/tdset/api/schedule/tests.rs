//! The timetable against the rule in words, and against a scan of every minute that shares no code with it.

mod ancestors;
mod rules;
mod timeline;
mod zones;

use std::fmt::Write as _;

use jiff::ToSpan as _;
use jiff::civil::{Date, DateTime, date};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use crate::kinds::tdset::api::v1::{
    Between, Day, Exception as ExceptionSpec, Season, TDSetSpec, Window as WindowSpec,
};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn window(name: &str, from: &str, to: &str, replicas: i32) -> WindowSpec {
    WindowSpec {
        name: name.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        replicas,
        ..WindowSpec::default()
    }
}

fn spec(zone: &str, windows: Vec<WindowSpec>) -> TDSetSpec {
    TDSetSpec {
        time_zone: Some(zone.to_owned()),
        default_replicas: Some(1),
        windows: Some(windows),
        ..TDSetSpec::default()
    }
}

fn parse(spec: &TDSetSpec) -> Schedule {
    Schedule::parse(spec).unwrap()
}

fn xmas() -> Vec<ExceptionSpec> {
    let dated = ExceptionSpec {
        name: "xmas".to_owned(),
        dates: Some(vec!["2026-12-25".to_owned()]),
        skip_windows: Some(vec!["*".to_owned()]),
        replicas: Some(3),
        ..ExceptionSpec::default()
    };
    let span = ExceptionSpec {
        name: "launch".to_owned(),
        between: Some(Between {
            start: "2026-12-25T10:00:00+01:00".to_owned(),
            end: "2026-12-25T12:00:00+01:00".to_owned(),
        }),
        replicas: Some(40),
        ..ExceptionSpec::default()
    };
    vec![dated, span]
}

// ---------------------------------------------------------------------------------------------------------------
// The scan: what each window says at each moment, told from the highest local time that the clock has shown.

/// A zone and the day around which a fortnight is scanned: its clocks change there, or once did.
const PLACES: [(&str, (i16, i8, i8)); 14] = [
    ("Europe/Berlin", (2026, 3, 29)),
    ("Europe/Berlin", (2026, 10, 25)),
    ("America/New_York", (2026, 11, 1)),
    ("Australia/Lord_Howe", (2026, 4, 5)),
    ("Australia/Lord_Howe", (2026, 10, 4)),
    ("America/Havana", (2026, 3, 8)),
    ("America/Havana", (2026, 11, 1)),
    ("Africa/Cairo", (2026, 4, 24)),
    ("Asia/Beirut", (2026, 10, 25)),
    ("America/Santiago", (2026, 9, 6)),
    ("Atlantic/Azores", (2026, 10, 25)),
    ("Africa/Casablanca", (2026, 3, 22)),
    ("Pacific/Apia", (2011, 12, 30)),
    ("Asia/Kathmandu", (2026, 6, 1)),
];

/// Each moment of a fortnight, `step` minutes apart, with the highest local time that was shown by then.
fn fortnight(zone: &str, middle: Date, step: i64) -> Vec<(Timestamp, DateTime)> {
    let zone = time_zone::find(zone).unwrap();
    let middle = middle.to_zoned(TimeZone::UTC).unwrap().timestamp();
    let start = middle - (7 * 24).hours();
    let mut highest = DateTime::MIN;
    (0..14 * 24 * 60 / step)
        .map(|count| {
            let now = start + (count * step).minutes();
            // The end of a first pass is shown just before the change, not at any whole minute.
            let just_before = zone.to_datetime(now - SignedDuration::from_nanos(1));
            highest = highest.max(just_before).max(zone.to_datetime(now));
            (now, highest)
        })
        .collect()
}

/// What a spec means, in the words of its fields.
struct Told<'a> {
    spec: &'a TDSetSpec,
    dates: Vec<Vec<Date>>,
    spans: Vec<Option<(Timestamp, Timestamp)>>,
}

impl<'a> Told<'a> {
    fn new(spec: &'a TDSetSpec) -> Self {
        let exceptions = spec.exceptions().iter();
        let dates = exceptions
            .clone()
            .map(|one| one.dates.iter().flatten().map(|date| date.parse().unwrap()).collect());
        let spans =
            exceptions.clone().map(|one| one.between.as_ref().map(|span| (at(&span.start), at(&span.end))));
        Self { spec, dates: dates.collect(), spans: spans.collect() }
    }

    /// The name and the count once `highest` has been shown by the clock.
    fn at(&self, now: Timestamp, highest: DateTime) -> (String, Option<i32>) {
        let exceptions = || self.spec.exceptions().iter().enumerate();
        let spanned = |at: usize| self.spans[at].is_some_and(|(start, end)| start <= now && now < end);
        let dated = |at: usize| self.dates[at].contains(&highest.date());
        let decides = exceptions()
            .find(|(at, _)| spanned(*at))
            .or_else(|| exceptions().find(|(at, exception)| dated(*at) && exception.replicas.is_some()));
        if let Some((_, exception)) = decides {
            return (format!("exception/{}", exception.name), exception.replicas);
        }
        let windows = self.spec.windows().iter();
        let holding: Vec<_> = windows.filter(|window| self.holds(window, highest)).collect();
        let decides = match self.spec.overlap.unwrap_or_default() {
            Overlap::FirstMatch => holding.first(),
            Overlap::Max => holding.iter().rev().max_by_key(|window| window.replicas),
            Overlap::Min => holding.iter().min_by_key(|window| window.replicas),
        };
        decides.map_or((String::new(), self.spec.default_replicas), |window| {
            (window.name.clone(), Some(window.replicas))
        })
    }

    fn holds(&self, window: &WindowSpec, highest: DateTime) -> bool {
        let local = |date: Date, text: &str| match text {
            "24:00" => date.tomorrow().unwrap().to_datetime(Time::midnight()),
            text => date.at(text[..2].parse().unwrap(), text[3..].parse().unwrap(), 0, 0),
        };
        let week = [Day::Mon, Day::Tue, Day::Wed, Day::Thu, Day::Fri, Day::Sat, Day::Sun];
        [highest.date().yesterday().unwrap(), highest.date()].into_iter().any(|start| {
            let weekday = week[usize::try_from(start.weekday().to_monday_zero_offset()).unwrap()];
            let end = if window.to < window.from { start.tomorrow().unwrap() } else { start };
            let season = window.season.as_ref();
            let edge = |text: Option<&String>| text.map(|date| date.parse::<Date>().unwrap());
            let first = season.and_then(|season| edge(season.first.as_ref()));
            let last = season.and_then(|season| edge(season.last.as_ref()));
            window.enabled != Some(false)
                && first.is_none_or(|first| first <= start)
                && last.is_none_or(|last| start <= last)
                && window.days.as_ref().is_none_or(|days| days.contains(&weekday))
                && local(start, &window.from) <= highest
                && highest < local(end, &window.to)
                && !self.skips(window, start)
        })
    }

    fn skips(&self, window: &WindowSpec, start: Date) -> bool {
        self.spec.exceptions().iter().zip(&self.dates).any(|(exception, dates)| {
            let mut names = exception.skip_windows.iter().flatten();
            dates.contains(&start) && names.any(|name| *name == "*" || *name == window.name)
        })
    }
}

/// A window on a grid of `step` minutes, so that a scan of every such minute sees every boundary.
fn arbitrary_window(name: usize, step: u16, middle: Date) -> impl Strategy<Value = WindowSpec> {
    let days = prop::option::of(prop::sample::subsequence(
        vec![Day::Mon, Day::Tue, Day::Wed, Day::Thu, Day::Fri, Day::Sat, Day::Sun],
        1..7,
    ));
    // A season that begins, ends, or does both within the fortnight.
    let date = move |days: i32| (middle + days.days()).to_string();
    let season = (prop::option::of(-7..4_i32), prop::option::of(0..6_i32), prop::bool::weighted(0.4))
        .prop_map(move |(first, length, has_one)| {
            let last = length.map(|length| date(first.unwrap_or(-3) + length));
            has_one.then(|| Season { first: first.map(date), last })
        });
    let text = move |steps: u16| format!("{:02}:{:02}", steps * step / 60, steps * step % 60);
    // Half of all boundaries lie in the small hours, where clocks change.
    let early = || prop_oneof![0..240 / step, 0..DAY / step];
    let times = (early(), prop_oneof![early(), Just(DAY / step)]);
    (times, days, season, 0..5_i32, prop::bool::weighted(0.9)).prop_map(
        move |((from, to), days, season, replicas, enabled)| WindowSpec {
            days,
            season,
            enabled: Some(enabled),
            ..window(&format!("w{name}"), &text(from), &text(to), replicas)
        },
    )
}

fn arbitrary_exceptions(middle: Date) -> impl Strategy<Value = Vec<ExceptionSpec>> {
    let dated = (-6..6_i32, prop::sample::select(vec!["*", "w0", "w1"]), prop::option::of(0..5_i32))
        .prop_map(move |(days, skips, replicas)| ExceptionSpec {
            dates: Some(vec![(middle + days.days()).to_string()]),
            skip_windows: Some(vec![skips.to_owned()]),
            replicas,
            ..ExceptionSpec::default()
        });
    let span = (-1000..1000_i64, 1..300_i64, 0..5_i32).prop_map(move |(start, length, replicas)| {
        let start = middle.to_zoned(TimeZone::UTC).unwrap().timestamp() + (start * 5).minutes();
        ExceptionSpec {
            between: Some(Between {
                start: start.to_string(),
                end: (start + (length * 5).minutes()).to_string(),
            }),
            replicas: Some(replicas),
            ..ExceptionSpec::default()
        }
    });
    let either = prop_oneof![3 => dated, 1 => span];
    prop::collection::vec(either, 0..4).prop_map(|mut list| {
        for (at, exception) in list.iter_mut().enumerate() {
            exception.name = format!("e{at}");
        }
        list
    })
}

fn arbitrary_spec(zone: &str, middle: Date, step: u16) -> impl Strategy<Value = TDSetSpec> + use<> {
    let windows = (0..4_usize).prop_flat_map(move |count| {
        (0..count).map(|name| arbitrary_window(name, step, middle)).collect::<Vec<_>>()
    });
    let overlap = prop::sample::select(vec![Overlap::FirstMatch, Overlap::Max, Overlap::Min]);
    let zone = zone.to_owned();
    let default = prop::option::of(Just(1));
    let parts = (windows, arbitrary_exceptions(middle), overlap, default);
    parts.prop_map(move |(windows, exceptions, overlap, default_replicas)| TDSetSpec {
        exceptions: Some(exceptions),
        overlap: Some(overlap),
        default_replicas,
        ..spec(&zone, windows)
    })
}

/// Compares every moment of the fortnight, and every change that is announced in it.
fn agrees(spec: &TDSetSpec, moments: &[(Timestamp, DateTime)]) -> Result<(), TestCaseError> {
    let (schedule, told) = (parse(spec), Told::new(spec));
    let mut expected = Vec::new();
    let mut last = None;
    for (count, &(now, highest)) in moments.iter().enumerate() {
        let told = told.at(now, highest);
        if last.as_ref().is_some_and(|last| *last != told) {
            expected.push((now, told.clone()));
        }
        if count % 7 == 0 {
            let phase = schedule.effective(now).phase();
            prop_assert_eq!((phase.window, phase.replicas), told.clone(), "at {}", now);
        }
        last = Some(told);
    }
    let end = moments[moments.len() - 1].0;
    let told = |changes: Vec<Transition>| -> Vec<_> {
        let inside = changes.into_iter().filter(|change| change.time <= end);
        inside
            .map(|change| (change.time, change.to.phase()))
            .map(|(time, to)| (time, (to.window, to.replicas)))
            .collect()
    };
    let announced = schedule.changes(moments[0].0).take_while(|change| change.time <= end).collect();
    prop_assert_eq!(told(announced), expected.clone());
    // From here and there, and never on a whole minute.
    for &(moment, _) in moments.iter().step_by(moments.len() / 10) {
        let now = moment + SignedDuration::from_secs(17);
        let upcoming = schedule.upcoming(now, 5);
        prop_assert_eq!(schedule.next_change(now), upcoming.first().cloned());
        let later = expected.iter().filter(|(time, _)| *time > now);
        prop_assert_eq!(told(upcoming), later.take(5).cloned().collect::<Vec<_>>());
    }
    Ok(())
}

fn runner(usual: u32) -> TestRunner {
    TestRunner::new(Config { source_file: Some(file!()), ..crate::properties::cases(usual) })
}

fn compare_in_all_places(cases: u32, step: u16) {
    for (zone, (year, month, day)) in PLACES {
        let middle = date(year, month, day);
        let moments = fortnight(zone, middle, step.into());
        runner(cases).run(&arbitrary_spec(zone, middle, step), |spec| agrees(&spec, &moments)).unwrap();
    }
}

#[test]
fn changes_are_those_that_a_scan_of_every_fifth_minute_finds() {
    compare_in_all_places(20, 5);
}

#[test]
fn changes_are_those_that_a_scan_of_every_minute_finds() {
    compare_in_all_places(1, 1);
}
