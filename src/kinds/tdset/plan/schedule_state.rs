//! What follows from a TDSet, the clock and what was found: the facts that the plan and the status agree on. Pure.

use std::cell::OnceCell;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::hold::{self, Hold};
use crate::api::{GROUP, condition};
use crate::kinds::tdset::actions;
use crate::kinds::tdset::api::schedule::{Effective, Outlook, Schedule, Transition};
use crate::kinds::tdset::api::status::{ConditionType, Reason};
use crate::kinds::tdset::api::v1::{
    AutoscalerKind, ControllerPolicy, Create, Phase, RampStatus, UnreadableDates,
};
use crate::kinds::tdset::observation::{
    Blocker, Bounds, Controller, FoundDeployment, Observed, OwnedObject, Reverted, Scaled, Writer,
};
use crate::kinds::tdset::spec::{Spec, Timetable};

/// Most changes that a status looks ahead.
const MOST_UPCOMING: usize = 5;

/// Where the count is written.
#[derive(Clone, Copy, Debug)]
pub enum Counter<'a> {
    /// Into the Deployment that was made.
    Deployment(&'a FoundDeployment),
    /// Into the scale subresource of another owner's workload.
    Scale(&'a Scaled),
    /// Into the lower bound of an autoscaler.
    Bounds(&'a Bounds),
}

impl Counter<'_> {
    /// The count that is there; absent means 1.
    pub fn count(&self) -> i32 {
        let count = match self {
            Self::Deployment(deployment) => Some(deployment.replicas()),
            Self::Scale(scaled) => Some(scaled.count()),
            Self::Bounds(bounds) => Some(bounds.min()),
        };
        count.unwrap_or(1)
    }

    /// Whether it is another one than that.
    pub fn differs(&self, count: i32) -> bool {
        self.count() != count || self.is_unset()
    }

    /// Whether none was ever written.
    pub const fn is_unset(&self) -> bool {
        matches!(self, Self::Scale(scaled) if scaled.is_unset)
    }

    /// Who wrote it last.
    pub fn writer(&self) -> Writer {
        match self {
            Self::Deployment(deployment) => Writer::of(&deployment.metadata),
            Self::Scale(_) if self.is_unset() => Writer::Maker,
            Self::Scale(scaled) => scaled.writer.clone(),
            Self::Bounds(bounds) => bounds.writer.clone(),
        }
    }
}

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
    /// What is asked for.
    pub spec: &'a Spec,
    /// What was read.
    pub observed: &'a Observed,
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
    /// The Deployment.
    pub deployment: OwnedObject<'a, FoundDeployment>,
    /// The Service; one of another owner matters only where one is asked for.
    pub service: OwnedObject<'a, Service>,
    /// What keeps the count from being written, `suspend` aside.
    pub blocker: Option<Blocker>,
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
            spec,
            observed,
            now: observed.now,
            timetable,
            effective: ahead.effective().clone(),
            outlook: ahead,
            dated,
            deployment: OwnedObject::of(observed.deployment.as_deref(), &spec.metadata),
            service: OwnedObject::of(observed.service.as_deref(), &spec.metadata),
            blocker: None,
            manual_max: None,
            replica_target: ReplicaTarget::default(),
        };
        let now = view.steady();
        if now != view.now {
            let ahead = Arc::new(view.schedule().outlook(now, &observed.dates, MOST_UPCOMING));
            (view.now, view.effective) = (now, ahead.effective().clone());
            view.outlook = ahead;
        }
        view.blocker = view.find_blocker();
        view
    }

    /// The timetable with the dates that come from elsewhere.
    pub fn schedule(&self) -> &Schedule {
        with_dates(self.spec, self.timetable, self.observed, &self.dated)
    }

    /// The next change.
    pub fn next(&self) -> Option<&Transition> {
        self.outlook.upcoming(self.now).first()
    }

    /// The workload that is to be made.
    pub fn create(&self) -> Option<&'a Create> {
        self.spec.create()
    }

    /// The workload that another client made, where it could be read.
    pub fn scaled(&self) -> Option<&'a Scaled> {
        self.observed.target.as_ref()?.as_ref().ok()
    }

    /// Whether what the timetable asks for is known: not where nothing was read, and it takes dates from elsewhere; nor
    /// where those could not be read, and such days are not to be taken for ordinary ones.
    pub fn is_reckoned(&self) -> bool {
        match (&self.observed.unread_object, &self.observed.unread) {
            (Some(_), _) => self.spec.dates.is_empty(),
            (None, unread) => unread.is_none() || self.spec.on_unreadable_dates == UnreadableDates::Ignore,
        }
    }

    /// What is in the way, the most telling first.
    fn find_blocker(&self) -> Option<Blocker> {
        let observed = self.observed;
        if let Some(blocker) = &observed.unread_object {
            return Some(blocker.clone());
        }
        if let Some(blocker) = observed.unread.as_ref().filter(|_| !self.is_reckoned()) {
            return Some(blocker.clone());
        }
        let name = self.spec.name();
        if self.create().is_some() && self.deployment.is_foreign() {
            let message = format!("Deployment {name} exists and is not controlled by this object");
            return Some(Blocker::conflict(Reason::NameTaken, message));
        }
        if let Some(Err(blocker)) = &observed.target {
            return Some(blocker.clone());
        }
        if let Some(Err(blocker)) = &observed.autoscaler {
            return Some(blocker.clone());
        }
        if let Some((subject, holder)) = &observed.holder {
            let message = format!("TDSet {holder} is older and scales {subject}: the count is left to it");
            return Some(Blocker::conflict(Reason::OtherSchedule, message));
        }
        if let Some(message) = controlled(self.spec, observed) {
            return Some(Blocker::conflict(Reason::ControlledByOther, message));
        }
        let [first, ..] = observed.autoscalers.as_slice() else { return observed.unread_autoscalers.clone() };
        let message = format!(
            "HorizontalPodAutoscaler {first} scales the workload: the count is left to it; \
             spec.autoscaler sets its bounds instead"
        );
        Some(Blocker::conflict(Reason::OtherAutoscaler, message))
    }

    /// Whether nothing is in the way but what cannot be read.
    pub fn is_unread(&self) -> bool {
        let is_unread = |blocker: &Blocker| hold::is_unread(blocker.reason);
        self.blocker.as_ref().is_some_and(is_unread) && !self.spec.is_suspended
    }

    /// Whether the count is written.
    pub fn counts(&self) -> bool {
        self.blocker.is_none() && !self.spec.is_suspended
    }

    /// Where the count is written, if that is there.
    pub fn counter(&self) -> Option<Counter<'a>> {
        match (&self.spec.autoscaler, &self.observed.autoscaler) {
            (Some(_), Some(Ok(bounds))) => Some(Counter::Bounds(bounds)),
            (Some(_), _) => None,
            (None, _) => self.workload(),
        }
    }

    /// The workload itself, if it is there.
    pub fn workload(&self) -> Option<Counter<'a>> {
        match self.create() {
            Some(_) => self.deployment.ours().map(Counter::Deployment),
            None => self.scaled().map(Counter::Scale),
        }
    }

    /// The count that the timetable asks for, as far as an autoscaler takes it and its ceiling goes; where it leaves the
    /// workload alone, the count that is still to be given back.
    pub fn scheduled(&self) -> Option<i32> {
        let replicas = self.effective.replicas.or_else(|| self.noted())?;
        let Some(Ok(bounds)) = &self.observed.autoscaler else { return Some(replicas) };
        Some(bounds.nearest_min(replicas, self.most()))
    }

    /// That count, or the ceiling of the autoscaler where it is lower: no lower bound is above the upper one.
    pub fn at_most(&self, replicas: i32) -> i32 {
        let Some(Ok(bounds)) = &self.observed.autoscaler else { return replicas };
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
        let Some(Ok(bounds)) = &self.observed.autoscaler else { return false };
        self.effective.replicas == Some(0) && bounds.least_min() > 0
    }

    /// Whether the autoscaler is KEDA's, whose kind may not be there.
    pub fn is_keda(&self) -> bool {
        self.spec.autoscaler.as_ref().is_some_and(|one| one.kind == AutoscalerKind::ScaledObject)
    }

    /// What held the count back when the status was written.
    pub fn held(&self) -> Option<Hold> {
        hold::last(self.observed.status.conditions.as_deref().unwrap_or_default())
    }

    /// The condition of another client's count that stood when the status was written: no edit asks for another one, and
    /// no transition has come since. While what is asked for is not known, any edit may.
    pub fn standing_override(&self) -> Option<&Condition> {
        let found = self.said_of_override()?;
        let stands = if self.is_reckoned() {
            let is_new = |change: Timestamp| change > found.last_transition_time.0;
            // An edit may ask for another count where the status does not say what was asked for.
            let is_asked_anew = self.edited() && self.observed.status.active_window.is_none();
            !self.is_changed() && !is_asked_anew && !self.last_change().is_some_and(is_new)
        } else {
            !self.edited()
        };
        (found.status == "True" && self.spec.keeps_manual_counts() && stands).then_some(found)
    }

    /// When the status began to say that no count of another client stands.
    pub fn override_ended(&self) -> Option<Timestamp> {
        let found = self.said_of_override()?;
        (found.status == "False").then_some(found.last_transition_time.0)
    }

    fn said_of_override(&self) -> Option<&Condition> {
        let conditions = self.observed.status.conditions.as_deref().unwrap_or_default();
        condition::find(conditions, ConditionType::ManualOverride.as_str())
    }

    /// Whether the API server has refused the count in this reconciliation.
    pub fn is_count_refused(&self) -> bool {
        self.observed.refused.as_ref().is_some_and(|refused| actions::brings_count(&refused.action))
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

    /// Whether the spec has changed since the status was written.
    pub fn edited(&self) -> bool {
        self.spec.is_edited(&self.observed.status)
    }

    /// Until when what was made is left as it is: another client changes it each time that it is put back.
    pub fn repairs_wait(&self) -> Option<Timestamp> {
        let contest = self.observed.repair_contest.as_ref().filter(|contest| self.now < contest.until);
        contest.filter(|_| !self.edited()).map(|contest| contest.until)
    }

    /// What was reported last that the timetable asks for. While that is not known the last transition decides.
    pub fn told(&self) -> Option<Phase> {
        let status = &self.observed.status;
        match &status.active_window {
            Some(window) => Some(Phase { window: window.clone(), replicas: status.scheduled_replicas }),
            None => status.last_transition.as_ref().map(|last| last.to.clone()),
        }
    }

    /// Whether the timetable asks for something else than was reported last.
    pub fn is_changed(&self) -> bool {
        self.told().is_some_and(|told| told != self.effective.phase())
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

/// The message where another controller owns the workload or the autoscaler, and keeps it.
pub fn controlled(spec: &Spec, observed: &Observed) -> Option<String> {
    let is_left =
        |owner: &&Controller| owner.group == GROUP || spec.controller_policy == ControllerPolicy::Respect;
    let message = |what: String, owner: &Controller| {
        let Controller { group, kind, name } = owner;
        let remedy = if group == GROUP {
            "scale that instead".to_owned()
        } else if kind == "ScaledObject" {
            "name that in spec.autoscaler instead".to_owned()
        } else {
            "scale that instead, or set spec.controllerPolicy to Override".to_owned()
        };
        format!("{what} is controlled by {kind} {name}: its count is left to that; {remedy}")
    };
    if let Some(Ok(scaled)) = &observed.target
        && let Some(owner) = scaled.controller.as_ref().filter(is_left)
    {
        let what = format!("{} {}", scaled.place.resource.kind, scaled.place.name);
        return Some(message(what, owner));
    }
    let bounds = observed.autoscaler.as_ref()?.as_ref().ok()?;
    let owner = bounds.controller.as_ref().filter(is_left)?;
    Some(message(bounds.shown(), owner))
}
