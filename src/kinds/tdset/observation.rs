//! What was read for a reconciliation, as data. Pure.

pub mod autoscaler;
mod bounds;
mod field_owner;
mod found_deployment;
mod found_metadata;
mod object_key;

pub use bounds::{Bounds, tells_of_none};
pub use field_owner::{
    FieldOwner, is_only_in_the_template, is_owned, is_written_by_us, other, other_of_max, retain_others, trim,
};
pub use found_deployment::FoundDeployment;
pub use found_metadata::FoundMetadata;
pub use object_key::ObjectKey;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

use crate::api::condition::State;
use crate::controllers::action::RefusedWrite;
use crate::controllers::manifest::Place;
use crate::kinds::tdset::api::schedule::{HolidayDates, Outlook};
use crate::kinds::tdset::api::status::{ConditionType, Reason};
use crate::kinds::tdset::api::v1::{PastTransition, RampStatus, TDSetStatus};

/// All that was read at one moment, and what the process remembers of the object.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// That moment.
    pub now: Timestamp,
    /// The status as it was written last.
    pub status: TDSetStatus,
    /// The Deployment of that name, whatever its owner.
    pub deployment: Option<Arc<FoundDeployment>>,
    /// The Service of that name, whatever its owner.
    pub service: Option<Arc<Service>>,
    /// The workload of `target.ref`, where one is given.
    pub target: Option<Result<Scaled, Blocker>>,
    /// The autoscaler of the spec, where one is given.
    pub autoscaler: Option<Result<Arc<Bounds>, Blocker>>,
    /// Whether changes of that autoscaler, of what was made, or of dates that could not be read, are not noticed.
    pub is_unwatched: bool,
    /// Another TDSet that holds the workload or the autoscaler: what, and its name.
    pub holder: Option<(String, String)>,
    /// Names of other autoscalers that scale the workload.
    pub autoscalers: Vec<String>,
    /// Why it is not known whether there are any.
    pub unread_autoscalers: Option<Blocker>,
    /// The dates that the timetable takes from elsewhere, as far as they could be read.
    pub dates: HolidayDates,
    /// What of them could not be read.
    pub unread: Option<Blocker>,
    /// What the API server has not answered for a while, or will not: then nothing else is known but the time, the
    /// status and what is remembered.
    pub unread_object: Option<Blocker>,
    /// The write that the API server refused in this reconciliation.
    pub refused: Option<RefusedWrite>,
    /// The memory of the process. It is empty in the first reconciliation of a process.
    pub remembered: Remembered,
}

/// The facts that no read shows: a process remembers them from the reconciliations before.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// The phase of the timetable and its next changes.
    pub outlook: Option<Arc<Outlook>>,
    /// The made objects that are as they were when they lacked nothing.
    pub whole: Whole,
    /// What was carried out and not yet reported.
    pub carried: Unreported,
    /// Clients that revert the count each time that it is written.
    pub contest: Option<Contest>,
    /// Clients that revert each repair of the made objects, the count aside.
    pub repair_contest: Option<Contest>,
    /// The count that was written last into the scale of the workload that was found.
    pub written: Option<i32>,
    /// Whether the workload that was reported last was another one of the same name.
    pub is_replaced: bool,
}

/// Which of the objects that were made lack nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Whole {
    /// The Deployment.
    pub deployment: bool,
    /// The Service.
    pub service: bool,
}

/// What was carried out and not yet reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unreported {
    /// A transition.
    pub transition: Option<PastTransition>,
    /// The beginning of a ramp.
    pub ramp: Option<RampStatus>,
    /// A count of another client that was taken back.
    pub reverted: Option<Reverted>,
}

impl Unreported {
    /// The transition, if `status` reports it already: the API server wrote the status, and its answer was lost.
    #[must_use]
    pub fn reported_by(&self, status: &TDSetStatus) -> Option<&PastTransition> {
        // A status has whole seconds.
        let second = |transition: &PastTransition| transition.time.0.as_second();
        let last = status.last_transition.as_ref()?;
        self.transition
            .as_ref()
            .filter(|transition| transition.to == last.to && second(transition) == second(last))
    }
}

/// A count of another client that is taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reverted {
    /// Who wrote it, if that is known.
    pub manager: Option<String>,
    /// The count that was found.
    pub from: i32,
    /// The count that is written in its place.
    pub to: i32,
    /// Where it was found.
    pub field: CountField,
}

/// Where a count stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountField {
    /// The workload itself.
    Replicas,
    /// The lower bound of its autoscaler.
    Min,
    /// The upper bound of its autoscaler.
    Max,
}

/// Other clients that undo each time what is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contest {
    /// Those whose names are known.
    pub managers: BTreeSet<String>,
    /// When it may be written again.
    pub until: Timestamp,
    /// When it is over, if it stands until then.
    pub over: Timestamp,
}

/// What has a workload or an autoscaler made and keeps it: its controller, by its owner reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Its API group.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl Controller {
    /// That of an object, if it has one.
    #[must_use]
    pub fn of(object: &ObjectMeta) -> Option<Self> {
        let mut references = object.owner_references.iter().flatten();
        let owner = references.find(|reference| reference.controller == Some(true))?;
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        Some(Self { group: group.to_owned(), kind: owner.kind.clone(), name: owner.name.clone() })
    }
}

/// Takes out of owner references what does not say who the controller is.
pub fn trim_owners(metadata: &mut ObjectMeta) {
    if let Some(owners) = &mut metadata.owner_references {
        owners.retain(|owner| owner.controller == Some(true));
    }
}

/// Something that is in the way of the count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// The condition that it is about, beside Ready.
    pub about: Option<ConditionType>,
    /// What that condition is.
    pub state: State,
    /// Why, in one word.
    pub reason: Reason,
    /// Why.
    pub message: String,
    /// Whether it is known that there is no such object: its kind is served, and has none of that name.
    pub is_absence: bool,
}

impl Blocker {
    /// One that no other condition speaks of.
    #[must_use]
    pub const fn ready(reason: Reason, message: String) -> Self {
        Self { about: None, state: State::False, reason, message, is_absence: false }
    }

    /// There is no such workload.
    #[must_use]
    pub const fn absent(message: String) -> Self {
        let reason = Reason::TargetNotFound;
        Self { about: None, state: State::False, reason, message, is_absence: true }
    }

    /// Another client has the workload or its count.
    #[must_use]
    pub const fn conflict(reason: Reason, message: String) -> Self {
        let about = Some(ConditionType::Conflict);
        Self { about, state: State::True, reason, message, is_absence: false }
    }

    /// The timetable is not known.
    #[must_use]
    pub const fn dates(state: State, reason: Reason, message: String) -> Self {
        let about = Some(ConditionType::ScheduleValid);
        Self { about, state, reason, message, is_absence: false }
    }

    /// A right is missing.
    #[must_use]
    pub fn forbidden(verbs: &str, resource: &str, group: &str) -> Self {
        let group =
            if group.is_empty() { "the core API group".to_owned() } else { format!("API group {group}") };
        let message =
            format!("gatehouse may not {verbs} {resource} of {group}: grant that to its ServiceAccount");
        Self::ready(Reason::Forbidden, message)
    }
}

/// Who wrote a count last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writer {
    /// Not looked up, or the managed fields do not tell.
    Unknown,
    /// We did.
    Ours,
    /// No client did since the object was created.
    Maker,
    /// Another client.
    Other(FieldOwner),
}

impl Writer {
    /// As managed fields tell.
    #[must_use]
    pub fn of(metadata: &ObjectMeta) -> Self {
        match other(metadata) {
            Some(other) => Self::Other(other),
            None if is_written_by_us(metadata) => Self::Ours,
            None => Self::Maker,
        }
    }

    /// The same of the upper bound of an autoscaler, which is ours where no other client is known to have written it.
    #[must_use]
    pub fn of_max(metadata: &ObjectMeta) -> Self {
        other_of_max(metadata).map_or(Self::Ours, Self::Other)
    }
}

/// A workload by its scale subresource.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaled {
    /// Where it is.
    pub place: Place,
    /// What its scale subresource says.
    pub scale: Arc<Scale>,
    /// Whether its count field is absent: whatever count is asked for is another one.
    pub is_unset: bool,
    /// Who wrote its count last.
    pub writer: Writer,
    /// What has made it, as far as that may be read.
    pub controller: Option<Controller>,
    /// Whether its changes are noticed.
    pub watched: bool,
    /// How long this stands for it although its status has changed since, if that is so.
    pub stands_for: Option<Duration>,
}

impl Scaled {
    /// The count that it is to have; absent means 1, as of the workloads of Kubernetes. What it means of another kind, the
    /// API server does not tell.
    #[must_use]
    pub fn count(&self) -> i32 {
        // A count of 0 is left out of the answer.
        let count = || self.scale.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0);
        if self.is_unset { 1 } else { count() }
    }

    /// The count that it has; none where the API server does not tell.
    #[must_use]
    pub fn has(&self) -> Option<i32> {
        (!self.is_unset).then(|| self.scale.status.as_ref().map_or(0, |status| status.replicas))
    }

    /// The selector of its pods, as text.
    #[must_use]
    pub fn selector(&self) -> Option<&str> {
        self.scale.status.as_ref()?.selector.as_deref()
    }
}

/// An object of the name that is to be made.
#[derive(Clone, Copy, Debug)]
pub enum OwnedObject<'a, Object> {
    /// There is none.
    Absent,
    /// It was made for this TDSet.
    Ours(&'a Object),
    /// It belongs to another owner.
    Foreign,
}

impl<'a, Object: Resource<DynamicType = ()>> OwnedObject<'a, Object> {
    /// What that is for `owner`.
    #[must_use]
    pub fn of(found: Option<&'a Object>, owner: &ObjectMeta) -> Self {
        match found {
            None => Self::Absent,
            Some(object) if controls(owner, object.meta()) => Self::Ours(object),
            Some(_) => Self::Foreign,
        }
    }

    /// The object, if it is ours.
    #[must_use]
    pub const fn ours(&self) -> Option<&'a Object> {
        match self {
            Self::Ours(object) => Some(object),
            Self::Absent | Self::Foreign => None,
        }
    }

    /// Whether another client has it.
    #[must_use]
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
