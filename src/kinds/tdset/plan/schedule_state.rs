//! What follows from a TDSet, the clock and what was found: the facts that the plan and the status agree on. Pure.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Service;

use crate::kinds::tdset::api::schedule::{Effective, Schedule, Transition};
use crate::kinds::tdset::api::status::Reason;
use crate::kinds::tdset::api::v1::{Create, PastTransition, Phase, RampStatus};
use crate::kinds::tdset::observation::{Blocker, Observed, OwnedObject, Scaled, Writer};
use crate::kinds::tdset::spec::{Spec, Timetable};

/// Most changes that a status looks ahead.
const MOST_UPCOMING: usize = 5;

/// A nanosecond, to include a boundary in what lies after.
const INSTANT: SignedDuration = SignedDuration::from_nanos(1);

/// How far back the last change is looked for, in days: mostly it is near.
const LOOKS_BACK: [i64; 3] = [1, 8, 400];

/// Where the count is written.
#[derive(Clone, Copy, Debug)]
pub enum Counter<'a> {
    /// Into the Deployment that was made.
    Deployment(&'a Deployment),
    /// Into the scale subresource of another owner's workload.
    Scale(&'a Scaled),
    /// Into the lower bound of an autoscaler.
    Autoscaler(&'a HorizontalPodAutoscaler),
}

impl Counter<'_> {
    /// The count that is there; absent means 1.
    pub fn count(&self) -> i32 {
        let count = match self {
            Self::Deployment(deployment) => deployment.spec.as_ref().and_then(|spec| spec.replicas),
            Self::Scale(scaled) => Some(scaled.count()),
            Self::Autoscaler(autoscaler) => autoscaler.spec.as_ref().and_then(|spec| spec.min_replicas),
        };
        count.unwrap_or(1)
    }

    /// Who wrote it last.
    pub fn writer(&self) -> Writer {
        match self {
            Self::Deployment(deployment) => Writer::of(&deployment.metadata),
            Self::Scale(scaled) => scaled.writer.clone(),
            Self::Autoscaler(autoscaler) => Writer::of(&autoscaler.metadata),
        }
    }
}

/// Where the count ought to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaTarget {
    /// The count that is to be had now; none where it is not ours to write.
    pub wanted: Option<i32>,
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
    /// Its timetable, with the dates that come from elsewhere.
    pub schedule: &'a Schedule,
    /// How fast its count moves, and between which bounds.
    pub timetable: &'a Timetable,
    /// What the timetable asks for now.
    pub effective: Effective,
    /// The next changes.
    pub upcoming: Vec<Transition>,
    /// The Deployment.
    pub deployment: OwnedObject<'a, Deployment>,
    /// The Service; one of another owner matters only where one is asked for.
    pub service: OwnedObject<'a, Service>,
    /// What keeps the count from being written, `suspend` aside.
    pub blocker: Option<Blocker>,
    /// Where the count ought to be.
    pub replica_target: ReplicaTarget,
}

impl<'a> ScheduleState<'a> {
    /// The facts of `spec`, whose timetable with all of its dates is `schedule`.
    pub fn new(
        spec: &'a Spec,
        timetable: &'a Timetable,
        schedule: &'a Schedule,
        observed: &'a Observed,
    ) -> Self {
        let mut view = Self {
            spec,
            observed,
            timetable,
            schedule,
            effective: schedule.effective(observed.now),
            upcoming: schedule.upcoming(observed.now, MOST_UPCOMING),
            deployment: OwnedObject::of(observed.deployment.as_deref(), &spec.metadata),
            service: OwnedObject::of(observed.service.as_deref(), &spec.metadata),
            blocker: None,
            replica_target: ReplicaTarget::default(),
        };
        view.blocker = view.find_blocker();
        view
    }

    /// The workload that is to be made.
    pub fn create(&self) -> Option<&'a Create> {
        self.spec.create()
    }

    /// The workload that another client made, where it could be read.
    pub fn scaled(&self) -> Option<&'a Scaled> {
        self.observed.target.as_ref()?.as_ref().ok()
    }

    /// Whether the dates that the timetable takes from elsewhere could be read, and so what it asks for is known.
    pub const fn is_reckoned(&self) -> bool {
        self.observed.dates.is_ok()
    }

    /// What is in the way, the most telling first.
    fn find_blocker(&self) -> Option<Blocker> {
        let observed = self.observed;
        if let Err(blocker) = &observed.dates {
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
        let [first, ..] = observed.autoscalers.as_slice() else { return None };
        let message = format!(
            "HorizontalPodAutoscaler {first} scales the workload: the count is left to it; \
             spec.autoscaler sets its bounds instead"
        );
        Some(Blocker::conflict(Reason::OtherAutoscaler, message))
    }

    /// Whether the count is written.
    pub fn counts(&self) -> bool {
        self.blocker.is_none() && !self.spec.is_suspended
    }

    /// Where the count is written, if that is there.
    pub fn counter(&self) -> Option<Counter<'a>> {
        match (&self.spec.autoscaler, &self.observed.autoscaler) {
            (Some(_), Some(Ok(autoscaler))) => Some(Counter::Autoscaler(autoscaler)),
            (Some(_), _) => None,
            (None, _) if self.create().is_some() => self.deployment.ours().map(Counter::Deployment),
            (None, _) => self.scaled().map(Counter::Scale),
        }
    }

    /// The count that the timetable asks for, as far as an autoscaler takes it.
    pub fn scheduled(&self) -> i32 {
        let replicas = self.effective.replicas;
        let Some(Ok(autoscaler)) = &self.observed.autoscaler else { return replicas };
        // Whether 0 is allowed hangs on a feature gate that is off everywhere.
        let replicas = replicas.max(1);
        match (self.most(), &autoscaler.spec) {
            (None, Some(spec)) => replicas.min(spec.max_replicas),
            _ => replicas,
        }
    }

    /// The upper bound that the autoscaler is to have.
    pub fn most(&self) -> Option<i32> {
        self.timetable.max_replicas(&self.effective.source)
    }

    /// The count that is to be had now.
    pub const fn wanted(&self) -> Option<i32> {
        self.replica_target.wanted
    }

    /// Whether the spec has changed since the status was written.
    pub fn edited(&self) -> bool {
        self.observed.status.observed_generation != self.spec.metadata.generation
    }

    /// What was told last that the timetable asks for. While that is not known the last transition tells.
    pub fn told(&self) -> Option<Phase> {
        let status = &self.observed.status;
        match (&status.active_window, status.scheduled_replicas) {
            (Some(window), Some(replicas)) => Some(Phase { window: window.clone(), replicas }),
            _ => status.last_transition.as_ref().map(|last| last.to.clone()),
        }
    }

    /// Whether the timetable asks for something else than was told last.
    pub fn is_changed(&self) -> bool {
        self.told().is_some_and(|told| told != self.effective.phase())
    }

    /// The transition between what the status says and now.
    pub fn transition(&self) -> Option<PastTransition> {
        let (from, to) = (self.told()?, self.effective.phase());
        if from == to || !self.counts() {
            return None;
        }
        if let Some(carried) = &self.observed.carried.transition
            && (&carried.from, &carried.to) == (&from, &to)
        {
            return Some(carried.clone());
        }
        let now = self.observed.now;
        let time = self.boundary().unwrap_or(now);
        Some(PastTransition { time: time.into(), from, to, lateness_ms: lateness(time, now) })
    }

    /// When the timetable began to ask for what it asks for now, as far as the status knew of it before.
    pub fn boundary(&self) -> Option<Timestamp> {
        let promised = self.observed.status.next_transition.as_ref().filter(|_| !self.edited())?;
        let before = promised.time.0.checked_sub(INSTANT).ok()?;
        let passed = self.schedule.changes(before).take_while(|change| change.time <= self.observed.now);
        passed.last().map(|change| change.time)
    }

    /// When the timetable began to ask for what it asks for now, whatever the status knows.
    pub fn last_change(&self) -> Option<Timestamp> {
        let now = self.observed.now;
        LOOKS_BACK.into_iter().find_map(|days| {
            let since = now.checked_sub(SignedDuration::from_hours(24 * days)).ok()?;
            let passed = self.schedule.changes(since).take_while(|change| change.time <= now);
            passed.last().map(|change| change.time)
        })
    }
}

/// Milliseconds from `time` to `now`.
#[must_use]
pub fn lateness(time: Timestamp, now: Timestamp) -> i64 {
    i64::try_from(now.duration_since(time).as_millis()).unwrap_or(i64::MAX)
}
