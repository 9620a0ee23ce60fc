//! What follows from a TDSet, the clock and what was found: the facts that the plan and the status agree on. Pure.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

use super::MANAGER;
use crate::api::tdset::schedule::{Effective, Schedule, Transition};
use crate::api::tdset::v1::{Create, ManualScale, PastTransition, Phase, TDSet, TDSetStatus};

/// Most changes that a status looks ahead.
const MOST_UPCOMING: usize = 5;

/// A nanosecond, to include a boundary in what lies after.
const INSTANT: SignedDuration = SignedDuration::from_nanos(1);

/// All that was read, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// That moment.
    pub now: Timestamp,
    /// The status as it was written last.
    pub status: TDSetStatus,
    /// The Deployment of that name, whoever's it is.
    pub deployment: Option<Arc<Deployment>>,
    /// The Service of that name, whoever's it is.
    pub service: Option<Arc<Service>>,
    /// A transition that was carried out and not yet told of.
    pub carried: Option<PastTransition>,
}

/// An object of the name that is to be made.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a, Object> {
    /// There is none.
    Absent,
    /// It was made for this TDSet.
    Ours(&'a Object),
    /// It is somebody else's.
    Foreign,
}

impl<'a, Object: Resource<DynamicType = ()>> Part<'a, Object> {
    fn of(found: Option<&'a Object>, owner: &ObjectMeta) -> Self {
        match found {
            None => Self::Absent,
            Some(object) if controls(owner, object.meta()) => Self::Ours(object),
            Some(_) => Self::Foreign,
        }
    }

    /// The object, if it is ours.
    pub const fn ours(&self) -> Option<&'a Object> {
        match self {
            Self::Ours(object) => Some(object),
            Self::Absent | Self::Foreign => None,
        }
    }

    /// Whether somebody else has it.
    pub const fn is_foreign(&self) -> bool {
        matches!(self, Self::Foreign)
    }
}

/// Whether the object of `owner` is the controller of that of `owned`.
#[must_use]
pub fn controls(owner: &ObjectMeta, object: &ObjectMeta) -> bool {
    let references = object.owner_references.iter().flatten();
    let mut controllers = references.filter(|reference| reference.controller == Some(true));
    controllers.any(|controller| Some(&controller.uid) == owner.uid.as_ref())
}

/// The facts.
pub struct View<'a> {
    /// The object.
    pub tdset: &'a TDSet,
    /// What was read.
    pub observed: &'a Observed,
    /// Its timetable.
    pub schedule: &'a Schedule,
    /// What the timetable asks for now.
    pub effective: Effective,
    /// The next changes.
    pub upcoming: Vec<Transition>,
    /// The Deployment.
    pub deployment: Part<'a, Deployment>,
    /// The Service; one of somebody else matters only where one is asked for.
    pub service: Part<'a, Service>,
}

impl<'a> View<'a> {
    /// The facts of `tdset`, whose timetable is `schedule`.
    pub fn new(tdset: &'a TDSet, observed: &'a Observed, schedule: &'a Schedule) -> Self {
        Self {
            tdset,
            observed,
            schedule,
            effective: schedule.effective(observed.now),
            upcoming: schedule.upcoming(observed.now, MOST_UPCOMING),
            deployment: Part::of(observed.deployment.as_deref(), &tdset.metadata),
            service: Part::of(observed.service.as_deref(), &tdset.metadata),
        }
    }

    /// The workload that is to be made, unless something is asked for that is not acted on.
    pub fn create(&self) -> Option<&'a Create> {
        self.tdset.spec.target.create.as_deref().filter(|_| self.unsupported().is_empty())
    }

    /// Fields that ask for what this release does not do; then it does nothing at all, for half of it would be wrong.
    pub fn unsupported(&self) -> Vec<&'static str> {
        let spec = &self.tdset.spec;
        [
            (spec.target.reference.is_some(), "spec.target.ref"),
            (spec.autoscaler.is_some(), "spec.autoscaler"),
            (self.dates_are_elsewhere(), "spec.exceptions[*].datesFrom"),
        ]
        .into_iter()
        .filter_map(|(given, path)| given.then_some(path))
        .collect()
    }

    /// Whether the timetable depends on dates that are not in the object.
    pub fn dates_are_elsewhere(&self) -> bool {
        self.tdset.spec.exceptions().iter().any(|exception| exception.dates_from.is_some())
    }

    /// Whether replica writes are suspended.
    pub fn suspended(&self) -> bool {
        self.tdset.spec.suspend == Some(true)
    }

    /// Whether somebody else's count ought to stand until the next transition.
    pub fn keeps_manual_counts(&self) -> bool {
        self.tdset.spec.manual_scale == Some(ManualScale::KeepUntilNextTransition)
    }

    /// Whether the count is written.
    pub fn counts(&self) -> bool {
        self.create().is_some() && !self.suspended() && !self.deployment.is_foreign()
    }

    /// The count that the Deployment is to have.
    pub fn wanted(&self) -> Option<i32> {
        self.counts().then_some(self.effective.replicas)
    }

    /// Whether the spec has changed since the status was written.
    pub fn edited(&self) -> bool {
        self.observed.status.observed_generation != self.tdset.metadata.generation
    }

    /// The transition between what the status says and now.
    pub fn transition(&self) -> Option<PastTransition> {
        let status = &self.observed.status;
        let from = Phase { window: status.active_window.clone()?, replicas: status.scheduled_replicas? };
        let to = self.effective.phase();
        if from == to || !self.counts() {
            return None;
        }
        if let Some(carried) = &self.observed.carried
            && (&carried.from, &carried.to) == (&from, &to)
        {
            return Some(carried.clone());
        }
        let now = self.observed.now;
        let time = self.boundary().unwrap_or(now);
        Some(PastTransition { time: time.into(), from, to, lateness_ms: lateness(time, now) })
    }

    /// When the timetable began to ask for what it asks for now, as far as the status knew of it before.
    fn boundary(&self) -> Option<Timestamp> {
        let promised = self.observed.status.next_transition.as_ref().filter(|_| !self.edited())?;
        let before = promised.time.0.checked_sub(INSTANT).ok()?;
        let passed = self.schedule.changes(before).take_while(|change| change.time <= self.observed.now);
        passed.last().map(|change| change.time)
    }

    /// Whether `spec.replicas` of the Deployment would be lost if what we apply did not have it: nobody else owns it.
    pub fn alone_owns_count(deployment: &Deployment) -> bool {
        let owners = deployment.metadata.managed_fields.as_deref().unwrap_or_default();
        !owners.is_empty() && owners.iter().all(|entry| entry.manager.as_deref() == Some(MANAGER))
    }
}

/// Milliseconds from `time` to `now`.
pub fn lateness(time: Timestamp, now: Timestamp) -> i64 {
    i64::try_from(now.duration_since(time).as_millis()).unwrap_or(i64::MAX)
}

/// Takes out of a Deployment what nobody looks at: of its managed fields, all but who owns the count.
pub fn trim_deployment(deployment: &mut Deployment) {
    if let Some(entries) = &mut deployment.metadata.managed_fields {
        entries.retain(|entry| {
            let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
            fields.is_some_and(|fields| fields.pointer("/f:spec/f:replicas").is_some())
        });
        for entry in entries {
            entry.fields_v1 = None;
        }
    }
}

/// The same of a Service.
pub fn trim_service(service: &mut Service) {
    service.metadata.managed_fields = None;
}
