use jiff::civil::{date, datetime};

use super::*;

fn zone(name: &str) -> TimeZone {
    find(name).unwrap()
}

#[test]
fn a_zone_is_found_by_its_exact_name_only() {
    for name in ["Europe/Berlin", "Etc/UTC", "UTC", "America/Argentina/Buenos_Aires", "EST5EDT", "Etc/GMT+5"]
    {
        assert_eq!(find(name).map(|zone| zone.iana_name() == Some(name)), Ok(true), "{name}");
    }
    assert_eq!(find("Local").unwrap_err(), ZoneError::Local);
    for name in [
        "+02:00",
        "-0330",
        "+2",
        "UTC+2",
        "utc+1",
        "GMT+2",
        "GMT-2",
        "GMT2",
        "UTC 1",
        "CET+1",
        "EST-5",
        "Etc/GMT+02",
        "Etc/GMT2",
        "Etc/UTC+1",
        "Etc/GMT+2:30",
        "UTC\u{2212}5",
    ] {
        assert_eq!(find(name).unwrap_err(), ZoneError::Offset, "{name}");
    }
    for name in
        ["CET-1CEST,M3.5.0,M10.5.0/3", "CET-1CEST", "EST5", "EST5EDT4", "CET1CEST", "<+03>-3", "XST5XDT"]
    {
        assert_eq!(find(name).unwrap_err(), ZoneError::Posix, "{name}");
    }
    for name in ["", "Etc/Unknown", "Mars/Olympus", "x", "2026", "Berlin2"] {
        assert_eq!(find(name).unwrap_err(), ZoneError::Unknown(None), "{name}");
    }
}

#[test]
fn a_near_miss_is_answered_with_the_name_that_was_meant() {
    for (written, meant) in [
        ("europe/berlin", "Europe/Berlin"),
        ("Europe/Berlni", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("utc", "UTC"),
        ("argentina/ushuaia", "America/Argentina/Ushuaia"),
        ("Urope/Berlinn", "Europe/Berlin"),
        ("Europe/Bexlix", "Europe/Berlin"),
    ] {
        assert_eq!(find(written).unwrap_err(), ZoneError::Unknown(Some(meant.to_owned())), "{written}");
    }
    let message = find("europe/berlin").unwrap_err().to_string();
    assert!(message.starts_with("unknown time zone, did you mean Europe/Berlin?: expected"), "{message}");
    for name in ["GMT+2", "UTC+1", "Etc/GMT+02", "+02:00"] {
        let message = find(name).unwrap_err().to_string();
        assert!(message.contains("daylight saving time") && !message.contains("did you mean"), "{message}");
    }
}

#[test]
fn two_typos_of_any_kind_are_forgiven() {
    for name in names().filter(|name| name.len() > 7 && !is_offset(name)) {
        let (head, last) = name.split_at(name.len() - 1);
        for written in
            [format!("q{}", &head[1..]), format!("qq{name}"), format!("{last}{head}q"), head[1..].to_owned()]
        {
            assert!(nearest(&written).is_some(), "{written} stands for {name}");
        }
    }
}

#[test]
fn the_database_names_its_release() {
    assert!(database_version().starts_with("20"), "{}", database_version());
}

#[test]
fn a_time_in_a_gap_is_the_gaps_end_and_in_a_fold_the_first_pass() {
    let berlin = zone("Europe/Berlin");
    let gap_end: Timestamp = "2026-03-29T01:00:00Z".parse().unwrap();
    for minute in [0, 1, 30, 59] {
        assert_eq!(resolve(&berlin, date(2026, 3, 29).at(2, minute, 0, 0)), gap_end);
    }
    assert_eq!(resolve(&berlin, datetime(2026, 3, 29, 3, 0, 0, 0)), gap_end);
    let first: Timestamp = "2026-10-25T00:30:00Z".parse().unwrap();
    assert_eq!(resolve(&berlin, datetime(2026, 10, 25, 2, 30, 0, 0)), first);
}

#[test]
fn in_the_second_pass_the_end_of_the_first_has_been_reached() {
    let berlin = zone("Europe/Berlin");
    let at = |text: &str| reached(&berlin, text.parse().unwrap());
    assert_eq!(at("2026-10-25T00:30:00Z"), datetime(2026, 10, 25, 2, 30, 0, 0));
    let end = datetime(2026, 10, 25, 2, 59, 59, 999_999_999);
    assert_eq!(at("2026-10-25T01:00:00Z"), end);
    assert_eq!(at("2026-10-25T01:59:59Z"), end);
    assert_eq!(at("2026-10-25T02:00:00Z"), datetime(2026, 10, 25, 3, 0, 0, 0));
}

#[test]
fn a_year_in_berlin_has_one_gap_and_one_fold() {
    let found = shifts(
        &zone("Europe/Berlin"),
        "2026-01-01T00:00:00Z".parse().unwrap(),
        "2027-01-01T00:00:00Z".parse().unwrap(),
    );
    assert_eq!(found.len(), 2);
    assert!(found[0].skips(datetime(2026, 3, 29, 2, 30, 0, 0)));
    assert!(!found[0].skips(datetime(2026, 3, 29, 2, 0, 0, 0)));
    assert!(found[1].repeats(datetime(2026, 10, 25, 2, 0, 0, 0)));
    assert!(!found[1].repeats(datetime(2026, 10, 25, 3, 0, 0, 0)));
    assert_eq!(found[1].dates().collect::<Vec<_>>(), [date(2026, 10, 25)]);
}

/// Every quarter of an hour of every day on which clocks change, and of its midnights, in every zone.
#[test]
fn resolving_is_monotone_and_means_reached_in_all_zones() {
    let (from, until) = ("2026-01-01T00:00:00Z".parse().unwrap(), "2031-01-01T00:00:00Z".parse().unwrap());
    let mut seen = 0;
    for name in names() {
        let zone = zone(&name);
        for shift in shifts(&zone, from, until) {
            seen += 1;
            let first = shift.before.min(shift.after).date();
            let end = shift.before.max(shift.after).date().to_datetime(jiff::civil::Time::midnight())
                + jiff::Span::new().hours(25);
            let quarters = first
                .to_datetime(jiff::civil::Time::midnight())
                .series(jiff::Span::new().minutes(15))
                .take_while(|local| *local <= end);
            let mut last = Timestamp::MIN;
            for local in quarters {
                let instant = resolve(&zone, local);
                assert!(instant >= last, "{name}: {local} steps back");
                assert!(reached(&zone, instant) >= local, "{name}: {local} is not reached");
                let just_before = instant - SignedDuration::from_nanos(1);
                assert!(reached(&zone, just_before) < local, "{name}: {local} is reached before");
                last = instant;
            }
        }
    }
    assert!(seen > 1000, "only {seen} changes of the clocks");
}
