//! What a timetable says at single moments, and what makes none.

use super::*;

/// How long the window holds that starts at or after local midnight of `day`, in minutes; 0 if it does not by the
/// end of the next day.
fn length(zone: &str, from: &str, to: &str, day: Date) -> i64 {
    let schedule = parse(&spec(zone, vec![window("w", from, to, 9)]));
    let start = time_zone::resolve(schedule.zone(), day.to_datetime(Time::midnight()));
    let end = time_zone::resolve(schedule.zone(), day.tomorrow().unwrap().to_datetime(Time::midnight()));
    let mut changes = schedule.changes(start - 1.minute());
    let starts = changes.find(|change| change.to.replicas == Some(9) && change.time >= start).unwrap();
    if starts.time >= end {
        return 0;
    }
    let ends = changes.next().unwrap();
    ends.time.duration_since(starts.time).as_mins()
}

#[test]
fn windows_over_clock_changes_last_as_long_as_the_rule_says() {
    let (gap, fold) = (date(2026, 3, 29), date(2026, 10, 25));
    let berlin = "Europe/Berlin";
    assert_eq!(length(berlin, "02:30", "05:00", gap), 2 * 60);
    assert_eq!(length(berlin, "02:30", "05:00", fold), 3 * 60 + 30);
    assert_eq!(length(berlin, "01:00", "02:30", fold), 60 + 30);
    assert_eq!(length(berlin, "02:30", "03:15", gap), 15);
    assert_eq!(length(berlin, "02:10", "02:50", gap), 0);
    assert_eq!(length(berlin, "22:00", "06:00", date(2026, 10, 24)), 9 * 60);
    assert_eq!(length(berlin, "22:00", "06:00", date(2026, 3, 28)), 7 * 60);
    assert_eq!(length(berlin, "00:05", "24:00", fold), 25 * 60 - 5);
    assert_eq!(length("America/New_York", "02:30", "05:00", date(2026, 3, 8)), 2 * 60);
    assert_eq!(length("America/New_York", "02:30", "05:00", date(2026, 11, 1)), 2 * 60 + 30);
    assert_eq!(length("Australia/Lord_Howe", "01:45", "03:00", date(2026, 4, 5)), 60 + 45);
    assert_eq!(length("Australia/Lord_Howe", "01:45", "03:00", date(2026, 10, 4)), 45);
    // The clocks skip the first hour of the day: what starts at midnight starts at one.
    assert_eq!(length("Africa/Cairo", "00:00", "02:00", date(2026, 4, 24)), 60);
}

#[test]
fn a_window_on_a_date_that_a_country_skipped_does_not_happen() {
    assert_eq!(length("Pacific/Apia", "08:00", "18:00", date(2011, 12, 29)), 10 * 60);
    let schedule = parse(&spec("Pacific/Apia", vec![window("w", "08:00", "18:00", 9)]));
    let starts: Vec<String> = schedule
        .changes(at("2011-12-29T00:00:00Z"))
        .filter(|change| change.to.replicas == Some(9))
        .take(3)
        .map(|change| schedule.local(change.time))
        .collect();
    let expected = [
        "2011-12-29T08:00-10:00[Pacific/Apia]",
        "2011-12-31T08:00+14:00[Pacific/Apia]",
        "2012-01-01T08:00+14:00[Pacific/Apia]",
    ];
    assert_eq!(starts, expected);
}

#[test]
fn a_night_window_belongs_to_the_day_on_which_it_starts() {
    let mut night = window("night", "20:00", "08:00", 0);
    night.days = Some(vec![Day::Fri]);
    let schedule = parse(&spec("Etc/UTC", vec![night]));
    // 2026-10-23 is a Friday.
    let shown: Vec<_> = schedule
        .upcoming(at("2026-10-21T00:00:00Z"), 3)
        .iter()
        .map(|change| (change.time.to_string(), change.to.source.to_string()))
        .collect();
    let expected =
        [("2026-10-23T20:00:00Z", "night"), ("2026-10-24T08:00:00Z", ""), ("2026-10-30T20:00:00Z", "night")];
    assert_eq!(shown, expected.map(|(time, name)| (time.to_owned(), name.to_owned())));
}

#[test]
fn a_season_counts_start_dates_and_includes_both_ends() {
    let mut night = window("night", "22:00", "06:00", 5);
    night.season = Some(Season { first: Some("2026-12-01".to_owned()), last: Some("2026-12-02".to_owned()) });
    let schedule = parse(&spec("Etc/UTC", vec![night]));
    let times: Vec<_> = schedule
        .upcoming(at("2026-11-20T00:00:00Z"), 9)
        .iter()
        .map(|change| change.time.to_string())
        .collect();
    let expected =
        ["2026-12-01T22:00:00Z", "2026-12-02T06:00:00Z", "2026-12-02T22:00:00Z", "2026-12-03T06:00:00Z"];
    assert_eq!(times, expected);
}

#[test]
fn overlap_is_settled_as_the_spec_says() {
    let now = at("2026-06-01T12:00:00Z");
    let decided = |overlap| {
        let windows = vec![
            window("few", "08:00", "18:00", 2),
            window("many", "08:00", "18:00", 7),
            window("as-many", "08:00", "18:00", 7),
        ];
        let mut spec = spec("Etc/UTC", windows);
        spec.overlap = overlap;
        parse(&spec).effective(now).source.to_string()
    };
    assert_eq!(decided(None), "few");
    assert_eq!(decided(Some(Overlap::FirstMatch)), "few");
    assert_eq!(decided(Some(Overlap::Max)), "many");
    assert_eq!(decided(Some(Overlap::Min)), "few");
}

#[test]
fn spans_beat_dates_and_dates_beat_windows() {
    let mut spec = spec("Europe/Berlin", vec![window("night", "22:00", "06:00", 9)]);
    spec.exceptions = Some(xmas());
    let schedule = parse(&spec);
    let mut story = String::new();
    for change in schedule.upcoming(at("2026-12-24T20:00:00Z"), 7) {
        writeln!(
            story,
            "{} {} {}",
            schedule.local(change.time),
            change.to.replicas.unwrap(),
            change.to.source
        )
        .unwrap();
    }
    let expected = "\
        2026-12-24T22:00+01:00[Europe/Berlin] 9 night\n\
        2026-12-25T00:00+01:00[Europe/Berlin] 3 exception/xmas\n\
        2026-12-25T10:00+01:00[Europe/Berlin] 40 exception/launch\n\
        2026-12-25T12:00+01:00[Europe/Berlin] 3 exception/xmas\n\
        2026-12-26T00:00+01:00[Europe/Berlin] 1 \n\
        2026-12-26T22:00+01:00[Europe/Berlin] 9 night\n\
        2026-12-27T06:00+01:00[Europe/Berlin] 1 \n";
    assert_eq!(story, expected);
}

#[test]
fn dates_from_elsewhere_count_once_they_are_given() {
    let mut spec = spec("Etc/UTC", vec![]);
    let mut exception = xmas().remove(0);
    exception.dates = None;
    spec.exceptions = Some(vec![exception]);
    let schedule = parse(&spec);
    let now = at("2026-12-20T00:00:00Z");
    assert_eq!(schedule.next_change(now), None);
    let mut dates = HolidayDates::default();
    dates.read("xmas", "2026-12-25").unwrap();
    let change = schedule.with_dates(&dates).next_change(now).unwrap();
    assert_eq!(change.time, at("2026-12-25T00:00:00Z"));
    assert_eq!(change.to.phase().window, "exception/xmas");
}

#[test]
fn timetables_share_the_dates_that_they_have_from_elsewhere() {
    let mut spec = spec("Etc/UTC", vec![window("evening", "19:00", "23:00", 5)]);
    let [mut own, mut others] = [xmas().remove(0), xmas().remove(0)];
    own.name = "own".to_owned();
    own.dates = Some(vec!["2026-12-26".to_owned()]);
    (others.dates, others.replicas, others.skip_windows) = (None, Some(7), Some(vec!["evening".to_owned()]));
    spec.exceptions = Some(vec![others, own]);
    // In no order, and one of them twice.
    let list = DateList::read("2026-12-27\n2026-12-24\n2026-12-26\n2026-12-27\n");
    let mut dates = HolidayDates::default();
    dates.set("xmas", &list);
    let schedule = parse(&spec);
    let many: Vec<_> = (0..100).map(|_| schedule.clone().with_dates(&dates)).collect();
    assert_eq!(Arc::strong_count(&list.dates), 102, "one for each, beside the two here");
    for (day, source) in
        [(24, "exception/xmas"), (25, "evening"), (26, "exception/xmas"), (27, "exception/xmas")]
    {
        let phase = many[99].effective(at(&format!("2026-12-{day}T20:00:00Z"))).phase();
        assert_eq!(phase.window, source, "{day}");
    }
    let none = many[99].clone().with_dates(&HolidayDates::default());
    assert_eq!(none.effective(at("2026-12-26T20:00:00Z")).phase().window, "exception/own");
    assert_eq!(none.effective(at("2026-12-27T20:00:00Z")).phase().window, "evening");
}

#[test]
fn a_disabled_or_empty_window_never_holds() {
    let mut off = window("off", "08:00", "18:00", 7);
    off.enabled = Some(false);
    let schedule = parse(&spec("Etc/UTC", vec![off, window("empty", "08:00", "08:00", 7)]));
    assert_eq!(schedule.effective(at("2026-06-01T12:00:00Z")).replicas, Some(1));
    assert_eq!(schedule.next_change(at("2026-06-01T12:00:00Z")), None);
}

#[test]
fn a_change_beyond_the_horizon_is_not_looked_for() {
    let mut late = window("late", "08:00", "18:00", 7);
    late.season = Some(Season { first: Some("2030-01-01".to_owned()), last: None });
    assert_eq!(parse(&spec("Etc/UTC", vec![late])).next_change(at("2026-06-01T00:00:00Z")), None);
}

#[test]
fn the_end_of_time_is_no_trouble() {
    let schedule = parse(&spec("Europe/Berlin", vec![window("w", "08:00", "18:00", 7)]));
    for now in [Timestamp::MIN, Timestamp::MAX] {
        let _ = (schedule.effective(now), schedule.upcoming(now, 3));
    }
}

#[test]
fn everything_that_makes_no_timetable_is_named_at_once() {
    let mut bad = window("a", "8:00", "24:01", 1);
    bad.season = Some(Season { first: Some("2026-02-30".to_owned()), last: Some("tomorrow".to_owned()) });
    let mut spec =
        spec("europe/berlin", vec![window("ok", "00:00", "24:00", 1), bad, window("b", "24:00", "23:60", 1)]);
    let mut exceptions = xmas();
    exceptions[0].dates = Some(vec!["2026-12-24".to_owned(), "xmas".to_owned()]);
    exceptions[1].between.as_mut().unwrap().end = "2026-12-25T12:00:00".to_owned();
    spec.exceptions = Some(exceptions);
    let faults: Vec<String> =
        Schedule::parse(&spec).unwrap_err().iter().map(|fault| fault.path.to_string()).collect();
    let expected = [
        "spec.timeZone",
        "spec.windows[1].from",
        "spec.windows[1].to",
        "spec.windows[1].season.first",
        "spec.windows[1].season.last",
        "spec.windows[2].from",
        "spec.windows[2].to",
        "spec.exceptions[0].dates[1]",
        "spec.exceptions[1].between.end",
    ];
    assert_eq!(faults, expected);
}
