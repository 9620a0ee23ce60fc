//! The last time at which a schedule was due. Pure.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::{MINUTES_OF_DAY, Schedule};
use crate::api::time_zone;

/// Days that are looked back: two of the rarest, the 29th of February, over a century without a leap day.
const DAYS: usize = 366 * 13;

impl Schedule {
    /// The last times at which it was due, by the clocks of `zone`, the latest first, none after `now`. At a time that the
    /// clocks skipped it was not, since a CronJob does not run then; one that they repeated counts once.
    #[must_use]
    pub fn past(&self, zone: &TimeZone, now: Timestamp, count: usize) -> Vec<Timestamp> {
        // Clocks that go back over midnight show yesterday again.
        let today = time_zone::reached(zone, now).date();
        let days = std::iter::successors(Some(today), |day| day.yesterday().ok()).take(DAYS);
        let due = days.filter(|day| self.is_due_on(*day)).flat_map(|day| self.times(zone, day));
        due.filter(|time| *time <= now).take(count).collect()
    }

    fn is_due_on(&self, day: Date) -> bool {
        let number = |number: i8| u32::try_from(number).unwrap_or(0);
        let weekday = number(day.weekday().to_sunday_zero_offset());
        self.matches_date(number(day.month()), number(day.day()), weekday)
    }

    /// The times of a day, the latest first.
    fn times(&self, zone: &TimeZone, day: Date) -> impl Iterator<Item = Timestamp> {
        let due = (0..MINUTES_OF_DAY).rev().filter(|minute| self.matches_time(minute / 60, minute % 60));
        due.filter_map(move |minute| {
            let (hour, minute) = (i8::try_from(minute / 60).ok()?, i8::try_from(minute % 60).ok()?);
            let local = day.at(hour, minute, 0, 0);
            let time = time_zone::resolve(zone, local);
            (zone.to_datetime(time) == local).then_some(time)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(schedule: &str, zone: &str, now: &str) -> Vec<String> {
        let zone = TimeZone::get(zone).unwrap();
        let past = Schedule::parse(schedule).unwrap().past(&zone, now.parse().unwrap(), 2);
        past.into_iter().map(|time| time.to_string()).collect()
    }

    #[test]
    fn the_last_two_are_found_by_the_clocks_of_the_zone() {
        let berlin = |schedule, now| past(schedule, "Europe/Berlin", now);
        assert_eq!(
            berlin("0 2 * * *", "2026-07-02T00:00:00Z"),
            ["2026-07-02T00:00:00Z", "2026-07-01T00:00:00Z"]
        );
        assert_eq!(
            berlin("0 2 * * *", "2026-07-01T23:59:59Z"),
            ["2026-07-01T00:00:00Z", "2026-06-30T00:00:00Z"]
        );
        assert_eq!(
            berlin("*/5 * * * *", "2026-07-02T00:07:00Z"),
            ["2026-07-02T00:05:00Z", "2026-07-02T00:00:00Z"]
        );
        assert_eq!(
            past("@weekly", "Etc/UTC", "2026-11-22T00:00:00Z"),
            ["2026-11-22T00:00:00Z", "2026-11-15T00:00:00Z"]
        );
    }

    #[test]
    fn the_rarest_is_found_too() {
        let rare = past("0 0 29 2 *", "Etc/UTC", "2026-01-01T00:00:00Z");
        assert_eq!(rare, ["2024-02-29T00:00:00Z", "2020-02-29T00:00:00Z"]);
        assert_eq!(past("0 0 29 2 *", "Etc/UTC", "2104-02-28T00:00:00Z").len(), 2);
    }

    #[test]
    fn an_hour_that_the_clocks_skip_does_not_count_and_one_that_they_repeat_counts_once() {
        let skipped = past("30 2 * * *", "Europe/Berlin", "2026-03-29T12:00:00Z");
        assert_eq!(skipped, ["2026-03-28T01:30:00Z", "2026-03-27T01:30:00Z"]);
        let repeated = past("30 2 * * *", "Europe/Berlin", "2026-10-25T12:00:00Z");
        assert_eq!(repeated, ["2026-10-25T00:30:00Z", "2026-10-24T00:30:00Z"]);
    }

    #[test]
    fn what_the_clocks_show_around_a_change_comes_in_order_and_not_twice() {
        let half_an_hour = past("*/10 1,2 * * *", "Australia/Lord_Howe", "2026-10-03T15:35:00Z");
        assert_eq!(half_an_hour, ["2026-10-03T15:30:00Z", "2026-10-03T15:20:00Z"]);
        let an_hour = past("30 2,3 * * *", "Europe/Berlin", "2026-03-29T12:00:00Z");
        assert_eq!(an_hour, ["2026-03-29T01:30:00Z", "2026-03-28T02:30:00Z"]);
        let midnight = past("0 0 * * *", "America/St_Johns", "1993-10-31T02:31:00Z");
        assert_eq!(midnight, ["1993-10-31T02:30:00Z", "1993-10-30T02:30:00Z"]);
        let a_date = past("0 6,12 * * *", "Pacific/Apia", "2011-12-30T12:00:00Z");
        assert_eq!(a_date, ["2011-12-29T22:00:00Z", "2011-12-29T16:00:00Z"]);
    }
}
