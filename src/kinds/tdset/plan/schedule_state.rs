//! What follows from the facts and the clock. Pure.

use std::cell::OnceCell;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::facts::Facts;
use crate::kinds::tdset::api::schedule::{Effective, Outlook, Schedule, Transition};
use crate::kinds::tdset::api::v1::RampStatus;
use crate::kinds::tdset::observation::{Observed, Reverted};
use crate::kinds::tdset::spec::{Spec, Timetable};

/// Most changes that a status looks ahead.
const MOST_UPCOMING: usize = 5;

/// Where the count ought to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaTarget {
    /// The count that is to be had now; none where it is not ours to write.
    pub wanted: Option<i32>,
    /// The count that the workload itself is to be given, beside an autoscaler that does not leave or reach 0.
    pub workload: Option<i32>,
    /// The count of another client that is taken back thereby.
    pub reverted: Option<Reverted>,
    /// Until when it is not written: another client takes it back each time.
    pub waits: Option<Timestamp>,
    /// The ramp that it is on.
    pub ramp: Option<RampStatus>,
    /// When the ramp's next step is due.
    pub step: Option<Timestamp>,
    /// Another client whose count stands.
    pub manual: Option<ManualCount>,
}

/// A count of another owner that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManualCount {
    /// The count.
    pub count: i32,
    /// Who wrote it, if that is known.
    pub manager: Option<String>,
}

/// The facts.
pub struct ScheduleState<'a> {
    /// The facts that do not depend on the time.
    pub facts: Facts<'a>,
    /// What time it is.
    pub now: Timestamp,
    /// Its timetable, but for the dates that come from elsewhere.
    pub timetable: &'a Timetable,
    /// Its schedule with those dates, where it was asked for.
    dated: OnceCell<Schedule>,
    /// What the timetable asks for now, and next.
    pub outlook: Arc<Outlook>,
    /// What it asks for now.
    pub effective: Effective,
    /// Another client's upper bound of the autoscaler that stands.
    pub manual_max: Option<ManualCount>,
    /// Where the count ought to be.
    pub replica_target: ReplicaTarget,
}

impl<'a> ScheduleState<'a> {
    /// The facts of `spec`, which has that timetable.
    pub fn new(spec: &'a Spec, timetable: &'a Timetable, observed: &'a Observed) -> Self {
        let dated = OnceCell::new();
        let kept = observed.outlook.as_ref().filter(|kept| kept.holds(observed.now, &observed.dates));
        let ahead = kept.map_or_else(
            || {
                let schedule = with_dates(spec, timetable, observed, &dated);
                Arc::new(schedule.outlook(observed.now, &observed.dates, MOST_UPCOMING))
            },
            Arc::clone,
        );
        let mut view = Self {
            facts: Facts::new(spec, observed),
            now: observed.now,
            timetable,
            effective: ahead.effective().clone(),
            outlook: ahead,
            dated,
            manual_max: None,
            replica_target: ReplicaTarget::default(),
        };
        let now = view.steady();
        if now != view.now {
            let ahead = Arc::new(view.schedule().outlook(now, &observed.dates, MOST_UPCOMING));
            (view.now, view.effective) = (now, ahead.effective().clone());
            view.outlook = ahead;
        }
        view
    }

    /// The timetable with the dates that come from elsewhere.
    pub fn schedule(&self) -> &Schedule {
        with_dates(self.facts.spec, self.timetable, self.facts.observed, &self.dated)
    }

    /// The next change.
    pub fn next(&self) -> Option<&Transition> {
        self.outlook.upcoming(self.now).first()
    }

    /// The count that the timetable asks for, as far as an autoscaler takes it and its ceiling goes; where it leaves the
    /// workload alone, the count that is still to be given back.
    pub fn scheduled(&self) -> Option<i32> {
        let replicas = self.effective.replicas.or_else(|| self.noted())?;
        let Some(bounds) = self.facts.bounds() else { return Some(replicas) };
        Some(bounds.nearest_min(replicas, self.most()))
    }

    /// That count, or the ceiling of the autoscaler where it is lower: no lower bound is above the upper one.
    pub fn at_most(&self, replicas: i32) -> i32 {
        let Some(bounds) = self.facts.bounds() else { return replicas };
        replicas.min(self.most().unwrap_or_else(|| bounds.max()))
    }

    /// Another client's count that stands in place of one that the timetable asks for. Where the workload is left alone, a
    /// client that scales it overrides nothing.
    pub fn overriding(&self) -> Option<&ManualCount> {
        self.replica_target.manual.as_ref().filter(|_| self.effective.replicas.is_some())
    }

    /// Whether the workload's count is its own, and nothing is to be given back.
    pub fn is_left_alone(&self) -> bool {
        self.effective.replicas.is_none() && self.before().is_none()
    }

    /// Whether the workload itself is to have no replicas, beside an autoscaler that cannot have 0 as its lower bound.
    pub fn sleeps(&self) -> bool {
        let Some(bounds) = self.facts.bounds() else { return false };
        self.effective.replicas == Some(0) && bounds.least_min() > 0
    }

    /// The condition of another client's count that stood when the status was written: no edit asks for another one, and
    /// no transition has come since. While what is asked for is not known, any edit may.
    pub fn standing_override(&self) -> Option<&Condition> {
        let found = self.facts.override_condition()?;
        let stands = if self.facts.is_timetable_known {
            let is_new = |change: Timestamp| change > found.last_transition_time.0;
            // An edit may ask for another count where the status does not say what was asked for.
            let is_asked_anew = self.facts.is_edited && self.facts.observed.status.active_window.is_none();
            !self.is_changed() && !is_asked_anew && !self.last_change().is_some_and(is_new)
        } else {
            !self.facts.is_edited
        };
        (found.status == "True" && self.facts.spec.keeps_manual_counts() && stands).then_some(found)
    }

    /// The upper bound that the timetable asks for.
    pub fn scheduled_max(&self) -> Option<i32> {
        self.timetable.max_replicas(&self.effective.source)
    }

    /// The upper bound that the autoscaler is to have; none where it is left as it is.
    pub fn most(&self) -> Option<i32> {
        self.scheduled_max().filter(|_| self.manual_max.is_none())
    }

    /// The count that is to be had now.
    pub const fn wanted(&self) -> Option<i32> {
        self.replica_target.wanted
    }

    /// Until when what was made is left as it is: another client changes it each time that it is put back.
    pub fn repairs_wait(&self) -> Option<Timestamp> {
        let contest = self.facts.observed.repair_contest.as_ref().filter(|contest| self.now < contest.until);
        contest.filter(|_| !self.facts.is_edited).map(|contest| contest.until)
    }

    /// Whether the timetable asks for something else than was reported last.
    pub fn is_changed(&self) -> bool {
        self.facts.reported.as_ref().is_some_and(|reported| *reported != self.effective.phase())
    }
}

/// The timetable with the dates that come from elsewhere. They are put into it where that is asked for, and once.
fn with_dates<'a>(
    spec: &Spec,
    timetable: &'a Timetable,
    observed: &Observed,
    dated: &'a OnceCell<Schedule>,
) -> &'a Schedule {
    if spec.dates.is_empty() {
        return &timetable.schedule;
    }
    dated.get_or_init(|| timetable.schedule.clone().with_dates(&observed.dates))
}
