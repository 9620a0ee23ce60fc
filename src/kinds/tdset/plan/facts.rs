//! Facts that do not depend on the timetable's present: the spec, the observation, and what follows from both. Pure.
//!
//! Guarantees: the facts are whole when they are built, and no one changes them.
//! Assumes: the observation belongs to the object of the spec.
//! Never: compares anything with the time. The clock may be corrected, see `clocks.rs`.

use k8s_openapi::api::core::v1::Service;

use super::hold::{self, Hold};
use crate::api::GROUP;
use crate::kinds::tdset::actions;
use crate::kinds::tdset::api::status::Reason;
use crate::kinds::tdset::api::v1::{AutoscalerKind, ControllerPolicy, Phase, TDSetStatus, UnreadableDates};
use crate::kinds::tdset::observation::{
    Blocker, Bounds, Controller, FoundDeployment, Observed, OwnedObject, Scaled, Writer,
};
use crate::kinds::tdset::spec::Spec;

/// The object that holds a count.
#[derive(Clone, Copy, Debug)]
pub enum Counter<'a> {
    /// The Deployment that gatehouse made.
    Deployment(&'a FoundDeployment),
    /// The scale subresource of another owner's workload.
    Scale(&'a Scaled),
    /// The lower bound of an autoscaler.
    Bounds(&'a Bounds),
}

impl Counter<'_> {
    /// The count that is there; absent means 1.
    pub fn count(&self) -> i32 {
        match self {
            Self::Deployment(deployment) => deployment.replicas(),
            Self::Scale(scaled) => scaled.count(),
            Self::Bounds(bounds) => bounds.min(),
        }
    }

    /// Whether the count is another one than `count`.
    pub fn differs(&self, count: i32) -> bool {
        self.count() != count || self.is_unset()
    }

    /// Whether no count was ever written.
    pub const fn is_unset(&self) -> bool {
        matches!(self, Self::Scale(scaled) if scaled.is_unset)
    }

    /// The client that wrote the count last.
    pub fn writer(&self) -> Writer {
        match self {
            Self::Deployment(deployment) => Writer::of(&deployment.metadata),
            Self::Scale(_) if self.is_unset() => Writer::Maker,
            Self::Scale(scaled) => scaled.writer.clone(),
            Self::Bounds(bounds) => bounds.writer.clone(),
        }
    }
}

/// The facts.
pub struct Facts<'a> {
    /// The spec.
    pub spec: &'a Spec,
    /// The observation.
    pub observed: &'a Observed,
    /// The Deployment.
    pub deployment: OwnedObject<'a, FoundDeployment>,
    /// The Service. A Service of another owner matters only if the spec asks for a Service.
    pub service: OwnedObject<'a, Service>,
    /// The reason why the count is not written, `suspend` aside.
    pub blocker: Option<Blocker>,
    /// The reason why the count was not written when the status was.
    pub hold: Option<Hold>,
    /// The phase that was reported last. While the timetable was not known, the last transition decides.
    pub reported: Option<Phase>,
    /// Whether the spec has changed since the status was written.
    pub is_edited: bool,
    /// Whether the timetable is known. If no object could be read, a timetable with dates from elsewhere is not.
    /// If only those dates could not be read, the spec decides.
    pub is_timetable_known: bool,
}

impl<'a> Facts<'a> {
    /// The facts of an object that was observed.
    pub fn new(spec: &'a Spec, observed: &'a Observed) -> Self {
        let deployment = OwnedObject::of(observed.deployment.as_deref(), &spec.metadata);
        let is_timetable_known = match (&observed.unread_object, &observed.unread) {
            (Some(_), _) => spec.dates.is_empty(),
            (None, unread) => unread.is_none() || spec.on_unreadable_dates == UnreadableDates::Ignore,
        };
        Self {
            spec,
            observed,
            blocker: blocker(spec, observed, deployment.is_foreign(), is_timetable_known),
            deployment,
            service: OwnedObject::of(observed.service.as_deref(), &spec.metadata),
            hold: hold::last(observed.status.conditions.as_deref().unwrap_or_default()),
            reported: reported(&observed.status),
            is_edited: spec.is_edited(&observed.status),
            is_timetable_known,
        }
    }

    /// The workload that another client made, if it could be read.
    pub fn scaled(&self) -> Option<&'a Scaled> {
        self.observed.target.as_ref()?.as_ref().ok()
    }

    /// The bounds of the autoscaler, if they could be read.
    pub fn bounds(&self) -> Option<&'a Bounds> {
        self.observed.autoscaler.as_ref()?.as_deref().ok()
    }

    /// Whether the autoscaler is a ScaledObject, whose kind may not be served.
    pub fn is_keda(&self) -> bool {
        self.spec.autoscaler.as_ref().is_some_and(|found| found.kind == AutoscalerKind::ScaledObject)
    }

    /// Whether the count is not written only because something cannot be read.
    pub fn is_unread(&self) -> bool {
        let is_unread = |blocker: &Blocker| hold::is_unread(blocker.reason);
        self.blocker.as_ref().is_some_and(is_unread) && !self.spec.is_suspended
    }

    /// Whether the count is written.
    pub const fn writes_count(&self) -> bool {
        self.blocker.is_none() && !self.spec.is_suspended
    }

    /// The object into which the count is written, if it is there.
    pub fn counter(&self) -> Option<Counter<'a>> {
        match &self.spec.autoscaler {
            Some(_) => self.bounds().map(Counter::Bounds),
            None => self.workload(),
        }
    }

    /// The workload itself, if it is there.
    pub fn workload(&self) -> Option<Counter<'a>> {
        match self.spec.create() {
            Some(_) => self.deployment.ours().map(Counter::Deployment),
            None => self.scaled().map(Counter::Scale),
        }
    }

    /// Whether the API server has refused the count in this reconciliation.
    pub fn is_count_refused(&self) -> bool {
        self.observed.refused.as_ref().is_some_and(|refused| actions::brings_count(&refused.action))
    }
}

/// The phase that a status reports.
fn reported(status: &TDSetStatus) -> Option<Phase> {
    match &status.active_window {
        Some(window) => Some(Phase { window: window.clone(), replicas: status.scheduled_replicas }),
        None => status.last_transition.as_ref().map(|last| last.to.clone()),
    }
}

/// The most important reason why the count is not written.
fn blocker(
    spec: &Spec,
    observed: &Observed,
    is_deployment_foreign: bool,
    is_timetable_known: bool,
) -> Option<Blocker> {
    if let Some(blocker) = &observed.unread_object {
        return Some(blocker.clone());
    }
    if let Some(blocker) = observed.unread.as_ref().filter(|_| !is_timetable_known) {
        return Some(blocker.clone());
    }
    if spec.create().is_some() && is_deployment_foreign {
        let message = format!("Deployment {} exists and is not controlled by this object", spec.name());
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
    if let Some(message) = controlled(spec, observed) {
        return Some(Blocker::conflict(Reason::ControlledByOther, message));
    }
    let [first, ..] = observed.autoscalers.as_slice() else { return observed.unread_autoscalers.clone() };
    let message = format!(
        "HorizontalPodAutoscaler {first} scales the workload: the count is left to it; \
         spec.autoscaler sets its bounds instead"
    );
    Some(Blocker::conflict(Reason::OtherAutoscaler, message))
}

/// The message about another controller that owns the workload or the autoscaler, and keeps it.
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
