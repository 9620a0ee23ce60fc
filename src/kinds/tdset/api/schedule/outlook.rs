//! What a timetable asks for now and next, and for how long that answer holds.
//!
//! Guarantees: at every instant at which an outlook [holds](Outlook::holds), it says what the timetable says that it was
//! made of. So it is kept, and the same changes are not computed again and again.

use jiff::{SignedDuration, Timestamp};

use super::{Effective, HolidayDates, Schedule, Transition, horizon};
use crate::kinds::tdset::api::v1;

/// How long an outlook holds at most. A change that is further away than 400 days now comes within them as time goes by,
/// so it looks that much further ahead.
const LONGEST: SignedDuration = SignedDuration::from_hours(24);

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// The dates that it was computed with.
    dates: HolidayDates,
    since: Timestamp,
    /// Itself no longer part.
    until: Timestamp,
    effective: Effective,
    ahead: Vec<Transition>,
    shown: Vec<v1::Transition>,
}

impl Outlook {
    /// Whether it says at `now` what its timetable says with these dates.
    #[must_use]
    pub fn holds(&self, now: Timestamp, dates: &HolidayDates) -> bool {
        self.since <= now && now < self.until && self.dates == *dates
    }

    /// What is asked for.
    #[must_use]
    pub const fn effective(&self) -> &Effective {
        &self.effective
    }

    /// The next changes after `now`, at which it holds: as many as were looked for, of those within 400 days.
    #[must_use]
    pub fn upcoming(&self, now: Timestamp) -> &[Transition] {
        &self.ahead[..self.within(now)]
    }

    /// The same as status shows them.
    #[must_use]
    pub fn shown(&self, now: Timestamp) -> &[v1::Transition] {
        &self.shown[..self.within(now)]
    }

    fn within(&self, now: Timestamp) -> usize {
        self.ahead.partition_point(|change| change.time <= horizon(now))
    }
}

impl Schedule {
    /// What is asked for at `now`, and the next `most` changes. `dates` are those that the timetable has from elsewhere.
    #[must_use]
    pub fn outlook(&self, now: Timestamp, dates: &HolidayDates, most: usize) -> Outlook {
        let latest = now.checked_add(LONGEST).unwrap_or(Timestamp::MAX);
        let ahead: Vec<_> = self.changes_until(now, horizon(latest)).take(most).collect();
        Outlook {
            dates: dates.clone(),
            since: now,
            until: ahead.first().map_or(latest, |next| next.time.min(latest)),
            effective: self.effective(now),
            shown: ahead.iter().map(|change| self.shown(change)).collect(),
            ahead,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::tdset::api::v1::TDSetSpec;

    const MOST: usize = 5;

    fn schedule(fields: &serde_json::Value) -> Schedule {
        let mut spec = json!({"timeZone": "Europe/Berlin", "defaultReplicas": 1, "target": {}});
        spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        Schedule::parse(&serde_json::from_value::<TDSetSpec>(spec).unwrap()).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// Holds it against the timetable at all these seconds at which it holds; how many those are.
    fn compare(schedule: &Schedule, seconds: impl Iterator<Item = i64>, since: Timestamp) -> usize {
        let none = HolidayDates::default();
        let outlook = schedule.outlook(since, &none, MOST);
        let times = seconds.map(|second| since + SignedDuration::from_secs(second));
        let times: Vec<_> = times.filter(|time| outlook.holds(*time, &none)).collect();
        for now in &times {
            assert_eq!(*outlook.effective(), schedule.effective(*now), "{now}");
            let upcoming = schedule.upcoming(*now, MOST);
            assert_eq!(outlook.upcoming(*now), upcoming, "{now}");
            let shown: Vec<_> = upcoming.iter().map(|change| schedule.shown(change)).collect();
            assert_eq!(outlook.shown(*now), shown, "{now}");
        }
        times.len()
    }

    #[test]
    fn while_it_holds_it_says_what_the_timetable_says() {
        let office = json!({"windows": [{"name": "office", "from": "08:00", "to": "18:00", "replicas": 6}]});
        let office = schedule(&office);
        for start in ["2026-03-28T22:30:00Z", "2026-10-24T23:59:59Z", "2026-06-01T06:00:00Z"] {
            let held = compare(&office, (-60..1500).map(|minute| minute * 60), at(start));
            assert!(held > 300 && held < 1440, "{held}: until the next boundary");
        }
    }

    #[test]
    fn a_change_comes_in_sight_that_was_too_far_away() {
        let between = json!({"start": "2027-06-01T12:00:00Z", "end": "2027-06-02T00:00:00Z"});
        let far = schedule(&json!({"exceptions": [{"name": "far", "between": between, "replicas": 4}]}));
        // 400 days before both are some hours ahead.
        let since = at("2026-04-27T06:00:00Z");
        assert!(far.upcoming(since, MOST).is_empty());
        assert_eq!(compare(&far, (0..1440).map(|minute| minute * 60), since), 1440);
        let outlook = far.outlook(since, &HolidayDates::default(), MOST);
        let seen = |hours: i64| outlook.upcoming(since + SignedDuration::from_hours(hours)).len();
        assert_eq!([0, 5, 6, 17, 18, 23].map(seen), [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn it_holds_from_its_instant_to_the_next_change_a_day_at_most_and_for_its_dates() {
        let none = HolidayDates::default();
        let since = at("2026-03-02T06:00:00Z");
        let calm = schedule(&json!({})).outlook(since, &none, MOST);
        let held = |outlook: &Outlook, seconds: i64| {
            outlook.holds(since + SignedDuration::from_secs(seconds), &none)
        };
        assert_eq!([-1, 0, 86_399, 86_400].map(|second| held(&calm, second)), [false, true, true, false]);
        let office = json!({"windows": [{"name": "office", "from": "08:00", "to": "18:00", "replicas": 6}]});
        let office = schedule(&office).outlook(since, &none, MOST);
        assert_eq!([0, 3599, 3600].map(|second| held(&office, second)), [true, true, false]);
        let mut others = HolidayDates::default();
        others.read("fair", "2026-03-02").unwrap();
        assert!(!office.holds(since, &others));
    }
}
