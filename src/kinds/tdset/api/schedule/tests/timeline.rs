//! The days to come, against the instants that they are made of.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::super::timeline::{Day, Glide, Timeline};
use super::*;
use crate::kinds::tdset::api::ramp::Ramp;
use crate::kinds::tdset::api::v1::{Ramp as RampSpec, RampStep};

fn at_once() -> Ramp {
    Ramp::default()
}

fn days(zone: &str, windows: Vec<WindowSpec>, first: Date, days: u16) -> Timeline {
    let schedule = parse(&spec(zone, windows));
    schedule.timeline(schedule.zone(), first, days, at_once())
}

/// A day's pieces: `00:00 1, 02:00 again 9`.
fn told(timeline: &Timeline, day: &Day) -> String {
    let pieces = day.pieces.iter().map(|piece| {
        let again = if piece.again { " again" } else { "" };
        let count = timeline.spans[piece.span].what.replicas.unwrap();
        format!("{:02}:{:02}{again} {count}", piece.from / 3600, piece.from / 60 % 60)
    });
    pieces.collect::<Vec<_>>().join(", ")
}

#[test]
fn days_are_as_long_as_the_clocks_make_them() {
    let minutes = |zone: &str, first: Date, count: u16| -> Vec<i64> {
        days(zone, vec![], first, count).days.iter().map(|day| day.length().as_mins()).collect()
    };
    assert_eq!(minutes("Europe/Berlin", date(2026, 10, 24), 3), [24 * 60, 25 * 60, 24 * 60]);
    assert_eq!(minutes("Europe/Berlin", date(2026, 3, 29), 1), [23 * 60]);
    assert_eq!(minutes("Australia/Lord_Howe", date(2026, 4, 5), 2), [24 * 60 + 30, 24 * 60]);
    assert_eq!(minutes("Africa/Cairo", date(2026, 4, 23), 2), [24 * 60, 23 * 60]);
    assert_eq!(minutes("America/Santiago", date(2026, 4, 4), 2), [25 * 60, 24 * 60]);
    assert_eq!(minutes("Pacific/Apia", date(2011, 12, 29), 3), [24 * 60, 0, 24 * 60]);
}

#[test]
fn an_hour_that_comes_twice_is_there_twice() {
    let windows = vec![window("w", "02:30", "05:00", 9)];
    let timeline = days("Europe/Berlin", windows.clone(), date(2026, 10, 25), 1);
    assert_eq!(told(&timeline, &timeline.days[0]), "00:00 1, 02:30 9, 02:00 again 9, 03:00 9, 05:00 1");
    let timeline = days("Europe/Berlin", windows, date(2026, 3, 29), 1);
    assert_eq!(told(&timeline, &timeline.days[0]), "00:00 1, 03:00 9, 05:00 1");
    assert_eq!(timeline.days[0].shifts.len(), 1);
    let timeline = days("Europe/Berlin", vec![window("w", "22:00", "24:00", 9)], date(2026, 6, 1), 2);
    assert_eq!(told(&timeline, &timeline.days[0]), "00:00 1, 22:00 9");
    assert_eq!(told(&timeline, &timeline.days[1]), "00:00 1, 22:00 9");
}

#[test]
fn exceptions_are_named_on_their_days_in_whatever_zone_they_are_shown() {
    let mut spec = spec("Europe/Berlin", vec![window("night", "22:00", "06:00", 9)]);
    spec.exceptions = Some(xmas());
    let schedule = parse(&spec);
    let names = |zone: &str| -> Vec<String> {
        let zone = time_zone::find(zone).unwrap();
        let timeline = schedule.timeline(&zone, date(2026, 12, 24), 3, at_once());
        timeline.days.iter().map(|day| day.exceptions.join(" ")).collect()
    };
    assert_eq!(names("Europe/Berlin"), ["", "xmas launch", ""]);
    assert_eq!(names("America/New_York"), ["xmas", "xmas launch", ""]);
    assert_eq!(names("Asia/Tokyo"), ["", "xmas launch", "xmas"]);
}

#[test]
fn a_ramp_is_followed_from_span_to_span() {
    let step =
        |step: i32, every: &str| Some(RampStep { step: IntOrString::Int(step), every: every.to_owned() });
    let ramp = RampSpec { up: step(2, "30m"), down: step(3, "1h") };
    let ramp = Ramp::parse(Some(&ramp)).unwrap();
    let schedule =
        parse(&spec("Etc/UTC", vec![window("a", "08:00", "10:00", 9), window("b", "10:00", "11:00", 20)]));
    let timeline = schedule.timeline(schedule.zone(), date(2026, 6, 1), 1, ramp);
    let glides: Vec<_> = timeline.spans.iter().map(|span| span.glide).collect();
    let glide = |from, steps, arrives: Option<&str>, reached| {
        Some(Glide { from, steps, arrives: arrives.map(at), reached })
    };
    let expected = [
        None,
        glide(1, 4, Some("2026-06-01T09:30:00Z"), 9),
        glide(9, 2, None, 13),
        glide(13, 4, Some("2026-06-01T14:00:00Z"), 1),
    ];
    assert_eq!(glides, expected);
    let counts: Vec<_> = Timeline::counts(&timeline.spans[3], ramp, 13).map(|(_, count)| count).collect();
    assert_eq!(counts, [10, 7, 4, 1]);
}

/// Every span is what its instants are, and every piece is where the clock shows it.
fn is_sound(schedule: &Schedule, timeline: &Timeline) -> Result<(), TestCaseError> {
    let mut end = timeline.start;
    for span in &timeline.spans {
        prop_assert_eq!(span.start, end);
        prop_assert!(span.start < span.end);
        let last = span.end - SignedDuration::from_nanos(1);
        for instant in [span.start, span.start + span.end.duration_since(span.start) / 2, last] {
            prop_assert_eq!(&schedule.effective(instant), &span.what, "at {}", instant);
        }
        end = span.end;
    }
    prop_assert_eq!(end, timeline.end);
    let mut next = timeline.start;
    for (day, piece) in timeline.days.iter().flat_map(|day| day.pieces.iter().map(move |piece| (day, piece)))
    {
        prop_assert_eq!(piece.start, next);
        let shown = timeline.zone.to_datetime(piece.start);
        let seconds = i32::from(shown.hour()) * 3600 + i32::from(shown.minute()) * 60;
        prop_assert_eq!((shown.date(), seconds), (day.date, piece.from));
        let length = i32::try_from(piece.end.duration_since(piece.start).as_secs()).unwrap();
        prop_assert_eq!(piece.to - piece.from, length);
        let span = &timeline.spans[piece.span];
        prop_assert!(span.start <= piece.start && piece.end <= span.end);
        next = piece.end;
    }
    prop_assert_eq!(next, timeline.end);
    Ok(())
}

#[test]
fn the_days_of_any_timetable_are_whole() {
    for (name, (year, month, day)) in PLACES {
        let middle = date(year, month, day);
        for shown in [name, "Etc/UTC", "Europe/Berlin"] {
            let zone = time_zone::find(shown).unwrap();
            let case = arbitrary_spec(name, middle, 5);
            let run = runner(6).run(&case, |spec| {
                let schedule = parse(&spec);
                is_sound(&schedule, &schedule.timeline(&zone, middle - 4.days(), 9, at_once()))
            });
            run.unwrap();
        }
    }
}
