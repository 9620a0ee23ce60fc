//! The timetable at one instant: what it asks for, and what comes next. Pure.
//!
//! Guarantees: a moment is whole when it is built, and no one changes it.
//! Assumes: the observed outlook belongs to this timetable.
//! Never: merges the dates from elsewhere into the schedule twice, or before something needs them.

use std::cell::OnceCell;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::facts::Facts;
use crate::kinds::tdset::api::schedule::{Effective, HolidayDates, Outlook, Schedule, Transition};
use crate::kinds::tdset::api::v1::Phase;
use crate::kinds::tdset::observation::Observed;
use crate::kinds::tdset::spec::Timetable;

/// Most changes that a status looks ahead.
const MOST_UPCOMING: usize = 5;

/// A nanosecond: the time before a boundary is the boundary less an instant.
pub const INSTANT: SignedDuration = SignedDuration::from_nanos(1);

/// How far back the last change is searched, in days: mostly it is near.
const LOOKS_BACK: [i64; 3] = [1, 8, 400];

/// The timetable at one instant.
pub struct Moment<'a> {
    /// The instant.
    pub time: Timestamp,
    /// The phase of that instant.
    pub phase: Phase,
    /// The phase of that instant, and the next changes.
    pub outlook: Arc<Outlook>,
    /// The timetable, without the dates from elsewhere.
    pub timetable: &'a Timetable,
    schedule: Dated<'a>,
}

/// A schedule with its dates from elsewhere.
struct Dated<'a> {
    schedule: &'a Schedule,
    /// None if the schedule takes no dates from elsewhere.
    dates: Option<&'a HolidayDates>,
    merged: OnceCell<Schedule>,
}

impl Dated<'_> {
    fn schedule(&self) -> &Schedule {
        let Some(dates) = self.dates else { return self.schedule };
        self.merged.get_or_init(|| self.schedule.clone().with_dates(dates))
    }
}

impl<'a> Moment<'a> {
    /// The timetable at `time`.
    pub fn new(time: Timestamp, facts: &Facts<'a>, timetable: &'a Timetable) -> Self {
        let dates = (!facts.spec.dates.is_empty()).then_some(&facts.observed.dates);
        let schedule = Dated { schedule: &timetable.schedule, dates, merged: OnceCell::new() };
        Self::with_schedule(time, facts.observed, timetable, schedule)
    }

    /// The same timetable at another time.
    pub fn moved(self, time: Timestamp, facts: &Facts<'a>) -> Self {
        Self::with_schedule(time, facts.observed, self.timetable, self.schedule)
    }

    fn with_schedule(
        time: Timestamp,
        observed: &Observed,
        timetable: &'a Timetable,
        schedule: Dated<'a>,
    ) -> Self {
        let (dates, cached) = (&observed.dates, observed.remembered.outlook.as_ref());
        let cached = cached.filter(|outlook| outlook.holds(time, dates)).cloned();
        let outlook =
            cached.unwrap_or_else(|| Arc::new(schedule.schedule().outlook(time, dates, MOST_UPCOMING)));
        Self { time, phase: outlook.effective().phase(), outlook, timetable, schedule }
    }

    /// The rule that decides, and its count.
    pub fn effective(&self) -> &Effective {
        self.outlook.effective()
    }

    /// The timetable with the dates from elsewhere.
    pub fn schedule(&self) -> &Schedule {
        self.schedule.schedule()
    }

    /// The next change.
    pub fn next(&self) -> Option<&Transition> {
        self.outlook.upcoming(self.time).first()
    }

    /// The upper bound that the timetable asks for.
    pub fn max_replicas(&self) -> Option<i32> {
        self.timetable.max_replicas(&self.effective().source)
    }

    /// Whether the timetable asks for something else than was reported last.
    pub fn is_changed(&self, facts: &Facts) -> bool {
        facts.reported.as_ref().is_some_and(|reported| *reported != self.phase)
    }

    /// Whether the status reports as ahead a transition that has passed. Several may have passed, and the timetable may
    /// ask again for what the status reports.
    pub fn has_missed(&self, facts: &Facts) -> bool {
        let promised = facts.observed.status.next_transition.as_ref();
        promised.is_some_and(|next| next.time.0 <= self.time)
    }

    /// The time when the phase began, if the status announced a transition.
    pub fn boundary(&self, facts: &Facts) -> Option<Timestamp> {
        let promised = facts.observed.status.next_transition.as_ref().filter(|_| !facts.is_edited)?;
        self.last_change_after(promised.time.0.checked_sub(INSTANT).ok()?)
    }

    /// The time when the phase began, whatever the status announced.
    pub fn last_change(&self) -> Option<Timestamp> {
        LOOKS_BACK.into_iter().find_map(|days| {
            self.last_change_after(self.time.checked_sub(SignedDuration::from_hours(24 * days)).ok()?)
        })
    }

    fn last_change_after(&self, since: Timestamp) -> Option<Timestamp> {
        let passed = self.schedule().changes(since).take_while(|change| change.time <= self.time);
        passed.last().map(|change| change.time)
    }
}
