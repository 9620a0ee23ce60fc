//! Time zones and times in them, often soon after the clocks have changed; and what holds of the clocks anywhere.
//!
//! Assumes: the years from 1980 on, in which all clocks differ by whole minutes.

use std::sync::LazyLock;

use gatehouse::api::time_zone;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kit::random::Random;

use crate::drawn::{one_in, one_of, pick};

static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut names: Vec<_> = time_zone::names().filter(|name| time_zone::find(name).is_ok()).collect();
    names.sort_unstable();
    names
});

/// Zones whose clocks do what those of few others do.
const ODD: &[&str] = &[
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Havana",
    "Africa/Cairo",
    "Asia/Beirut",
    "America/Santiago",
    "Atlantic/Azores",
    "Africa/Casablanca",
    "Pacific/Apia",
    "Asia/Kathmandu",
    "America/Nuuk",
    "Antarctica/Troll",
    "Asia/Pyongyang",
    "America/Caracas",
    "Pacific/Kiritimati",
    "Europe/Dublin",
    "Asia/Gaza",
];

/// The times that are drawn lie between these seconds: from 1980 to 2037.
const YEARS: (i64, i64) = (315_532_800, 2_114_380_800);

/// Whether a time is of the years that are drawn.
pub fn is_whole(time: Timestamp) -> bool {
    (YEARS.0..YEARS.1).contains(&time.as_second())
}

/// A zone and a time.
pub fn draw(random: &mut Random) -> (&'static str, Timestamp) {
    let name = if one_in(random, 2) { pick(random, ODD) } else { one_of(random, &NAMES).as_str() };
    let span = usize::try_from(YEARS.1 - YEARS.0 - 86_400).unwrap_or_default();
    let mut time = second(YEARS.0 + 43_200 + i64::try_from(random.below(span)).unwrap_or_default());
    if let (false, Ok(zone)) = (one_in(random, 3), time_zone::find(name)) {
        time = near_change(random, &zone, time).unwrap_or(time);
    }
    if one_in(random, 2) {
        time = second(time.as_second() - time.as_second().rem_euclid(60));
    }
    (name, time)
}

/// Within some hours of the next change of the clocks, or just at it.
fn near_change(random: &mut Random, zone: &TimeZone, time: Timestamp) -> Option<Timestamp> {
    let change = zone.following(time).next()?.timestamp();
    let beside = i64::try_from(random.below(16 * 3600)).ok()? - 4 * 3600;
    let at = if one_in(random, 4) { change } else { change + SignedDuration::from_secs(beside) };
    is_whole(at).then_some(at)
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// A local time is reached when the clock first shows it or a later one, and not before.
pub fn hold_clock(zone: &TimeZone, time: Timestamp) {
    let (shown, reached) = (zone.to_datetime(time), time_zone::reached(zone, time));
    assert!(reached >= shown, "{time}: {shown} is shown and not reached");
    for local in [shown, reached] {
        let first = time_zone::resolve(zone, local);
        let just_before = first - SignedDuration::from_nanos(1);
        assert!(time_zone::reached(zone, first) >= local, "{local} is not reached at {first}");
        assert!(time_zone::reached(zone, just_before) < local, "{local} is reached before {first}");
        assert!(first <= time, "{local} is reached by {time} and comes at {first}");
    }
}
