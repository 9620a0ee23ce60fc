//! What a kind implements to be reconciled.
//!
//! Guarantees: what is decided about an object is pure; what has effects is `observe`, `execute` and `finish`.

use std::fmt::Debug;
use std::future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::object::HasStatus;
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Watched;
use super::action::{Action, Executed, Failure, RefusedWrite};
use super::api_write::{ApiWriter, Note, STATUS_REFUSED};
use super::fail_points::FailPoints;
use super::metrics::{KindMetrics, Reconciliations};
use super::object_metrics::ObjectMetrics;
use super::outcome::{Error, Outcome};
use super::plan::{Plan, Progress};
use super::problems::Problems;
use super::scope::{Scope, WatchScope};
use super::status::{StatusRole, WrittenStatus};
use super::triggers::Triggers;
use crate::api;
use crate::api::condition::Statement;
use crate::api::field::FieldError;
use crate::runtime::clock;

/// What an object of a kind reports.
pub type StatusOf<Kind> = <<Kind as Reconciler>::Object as HasStatus>::Status;

/// What is decided about an object of a kind.
pub type PlanOf<Kind> = Plan<<Kind as Reconciler>::Action, StatusOf<Kind>, <Kind as Reconciler>::Detail>;

/// A kind that is reconciled.
pub trait Reconciler: Send + Sync + Sized + 'static {
    /// The kind, in the stored version: what is watched is not converted.
    type Object: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + HasStatus<Status: Serialize + Clone + Default + PartialEq + Send + Sync>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync
        + 'static;

    /// What this process knows of an object from one reconciliation to the next. Nothing that matters is there alone.
    type State: Clone + Default + Send;

    /// What is counted, and shown of objects.
    type Metrics: KindMetrics;

    /// What an object asks for, resolved.
    type Spec: Send + Sync;

    /// What was read.
    type Observation: Send + Sync;

    /// One thing to do.
    type Action: Action;

    /// What the kind's own code needs of a plan beside.
    type Detail: Send + Sync;

    /// The kind's names, and what never changes of how it is reconciled.
    const IDENTITY: Identity;

    /// What reconciliations need, and the objects whose parts have changed, from watches of those parts.
    fn start(context: &Context<Self>) -> Started<Self>;

    /// An object came, changed or went, or nothing is done for it any more.
    fn notice(&self, _change: ObjectChange<'_, Self::Object>) {}

    /// The object to reconcile. A kind whose status is a record reads it from the API server.
    fn read(
        &self,
        context: &Context<Self>,
        watched: Arc<Watched<Self::Object>>,
    ) -> impl Future<Output = Result<Read<Self::Object>, Error>> + Send {
        context.read_live(watched)
    }

    /// What an object asks for; `faults` says what the gate has against it. A kind that keeps this asks only where the
    /// object has changed.
    fn resolve(
        object: &Self::Object,
        faults: impl FnOnce() -> Vec<FieldError>,
        state: &mut Self::State,
    ) -> Self::Spec;

    /// Reads everything that is decided on.
    fn observe(
        pass: Pass<'_, Self>,
        state: &mut State<Self>,
    ) -> impl Future<Output = Result<Self::Observation, Error>> + Send;

    /// What to do, and what to say. `refused`: the write that has been refused since, for a kind whose status is a report.
    fn plan(
        object: &Self::Object,
        spec: &Self::Spec,
        seen: &Self::Observation,
        now: Timestamp,
        refused: Option<&RefusedWrite>,
    ) -> PlanOf<Self>;

    /// A step is over. The state takes what later reconciliations need of it, and the metrics show the object.
    fn remember(_execution: &Execution<'_, Self>, _state: &mut Self::State, _step: Step) {}

    /// Does one thing.
    fn execute(
        execution: Execution<'_, Self>,
        action: &Self::Action,
    ) -> impl Future<Output = Result<Executed, Failure>> + Send;

    /// One thing was done, or tried. The event of it, if there is one.
    fn executed(
        _execution: &Execution<'_, Self>,
        _state: &mut Self::State,
        _action: &Self::Action,
        _done: Result<&Executed, &Failure>,
    ) -> Option<Note> {
        None
    }

    /// Whether the report is left to the next reconciliation, which comes soon; `is_changed`: the actions have changed
    /// something.
    fn defers_report(_execution: &Execution<'_, Self>, _state: &mut Self::State, _is_changed: bool) -> bool {
        false
    }

    /// What is left to do once all else is done, and when to look again.
    fn finish(
        execution: Execution<'_, Self>,
        _state: &mut Self::State,
        progress: &Progress,
    ) -> impl Future<Output = Outcome> + Send {
        let Plan { actions, wake, .. } = execution.plan;
        future::ready(wake.outcome(actions.is_empty(), progress, clock::now()))
    }

    /// The conditions of an object that is not reconciled. The first one is the event, too.
    fn unworked(why: Why<'_>) -> Vec<Statement>;
}

/// A kind's names, and what never changes of how it is reconciled.
#[derive(Clone, Copy)]
pub struct Identity {
    /// The kind as the gate has it.
    pub kind: &'static dyn api::Kind,
    /// The controller's name in logs, metrics and events.
    pub name: &'static str,
    /// The field manager of the status.
    pub manager: &'static str,
    /// The finalizer that has a deletion wait for us.
    pub finalizer: &'static str,
    /// Whether an object that cannot be decoded keeps the finalizer: what its deletion has to do is not known.
    pub keeps_undecodable: bool,
    /// The role of the status.
    pub status: StatusRole,
    /// The fail points around the write of a status.
    pub status_points: FailPoints,
    /// The fail points around an event.
    pub event_points: FailPoints,
}

/// A kind that has been started in a realm.
pub struct Started<Kind: Reconciler> {
    /// The kind's own caches and clients.
    pub kind: Kind,
    /// The objects whose parts have changed.
    pub triggers: Triggers<Kind::Object>,
    /// Resolves when reconciliations can run; false when they never will. Awaited once: a store wakes only the last of
    /// those who wait for it.
    pub ready: BoxFuture<'static, bool>,
}

impl<Kind: Reconciler> Started<Kind> {
    /// A kind that has no cache to fill.
    #[must_use]
    pub fn at_once(kind: Kind, triggers: Triggers<Kind::Object>) -> Self {
        Self { kind, triggers, ready: Box::pin(future::ready(true)) }
    }
}

/// A step of a reconciliation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is planned: nothing of it is done yet.
    Planned,
    /// The status is reported.
    Reported {
        /// Whether the status said something new.
        is_written: bool,
    },
}

/// Why an object is not reconciled.
#[derive(Clone, Debug)]
pub enum Why<'a> {
    /// This release cannot decode it: the faults.
    Undecodable(&'a [FieldError]),
    /// It is in the namespace of gatehouse: a message.
    InOwnNamespace(String),
}

/// The object that a reconciliation begins with.
#[derive(Debug)]
pub enum Read<Object> {
    /// The object as it is.
    Found(Arc<Watched<Object>>),
    /// The object is gone, or another one has its name.
    Gone,
    /// Other objects go first: the reconciliation is left to a later one, after that time at the latest.
    Later(Duration),
}

/// A change of an object that the kind's own caches follow.
#[derive(Clone, Copy)]
pub enum ObjectChange<'a, Object> {
    /// The object is as it is now, before any reconciliation of it.
    Seen(&'a Watched<Object>),
    /// The object of that uid is gone.
    Gone(&'a str),
    /// Nothing is done for the object of that metadata.
    Hidden(&'a ObjectMeta),
}

/// What all reconciliations of a kind in a realm share.
pub struct Context<Kind: Reconciler> {
    /// Reads and writes objects.
    pub client: Client,
    /// Does what plans ask for.
    pub writer: ApiWriter,
    /// Where objects are watched.
    pub realm: WatchScope,
    /// The image with gatehouse's own program, which pods that are made run.
    pub image: String,
    /// What the kind counts.
    pub metrics: Kind::Metrics,
    /// What is shown of objects.
    pub(super) objects: Arc<ObjectMetrics<<Kind::Metrics as KindMetrics>::Line>>,
    /// Which objects cannot be reconciled.
    pub(super) problems: Arc<ObjectMetrics<Problems>>,
    /// The namespaces whose objects are reconciled.
    pub(super) scope: Scope,
    /// What is counted for all kinds.
    pub(super) reconciliations: Reconciliations,
}

/// A reconciliation of one object: what is known before anything is read.
pub struct Pass<'a, Kind: Reconciler> {
    /// The kind's own caches and clients.
    pub kind: &'a Kind,
    /// What all reconciliations of the kind share.
    pub context: &'a Context<Kind>,
    /// The object, as it was read.
    pub object: &'a Kind::Object,
    /// What the object asks for.
    pub spec: &'a Kind::Spec,
    /// When the reconciliation began.
    pub now: Timestamp,
}

impl<Kind: Reconciler> Clone for Pass<'_, Kind> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Kind: Reconciler> Copy for Pass<'_, Kind> {}

/// What a process knows of an object from one reconciliation to the next.
pub struct State<Kind: Reconciler> {
    /// What its kind remembers.
    pub own: Kind::State,
    /// The status that this process wrote last, of a kind whose status is a report.
    pub written: WrittenStatus<StatusOf<Kind>>,
    /// The write that the API server refused for good in the last reconciliation.
    pub refused: Option<RefusedWrite>,
    /// The action that failed last, and the event of that. A failure is reported once.
    pub failed: Option<(&'static str, String)>,
    /// Whether the last reconciliations all failed; after this one's actions, whether one of them failed still.
    pub is_lasting: bool,
    /// Whether the API server has refused the status for good, which is reported once.
    pub is_status_refused: bool,
    /// The events that were published of a status that could not be written then, and that goes with them still. They are
    /// not published again until something is done again.
    pub published: Vec<Note>,
    /// The reason of the condition of an object that is not worked.
    pub unworked: Option<&'static str>,
}

impl<Kind: Reconciler> State<Kind> {
    /// What is shown of an object that its kind may show nothing of.
    #[must_use]
    pub fn problems(&self) -> Problems {
        let status = self.is_status_refused.then_some(STATUS_REFUSED);
        Problems {
            kind: Kind::IDENTITY.kind.names().kind,
            reasons: self.unworked.into_iter().chain(status).collect(),
        }
    }
}

impl<Kind: Reconciler> Clone for State<Kind> {
    fn clone(&self) -> Self {
        let Self { own, written, refused, failed, is_lasting, is_status_refused, published, unworked } = self;
        let (is_lasting, is_status_refused, unworked) = (*is_lasting, *is_status_refused, *unworked);
        Self {
            own: own.clone(),
            written: written.clone(),
            refused: refused.clone(),
            failed: failed.clone(),
            is_lasting,
            is_status_refused,
            published: published.clone(),
            unworked,
        }
    }
}

impl<Kind: Reconciler> Default for State<Kind> {
    fn default() -> Self {
        Self {
            own: Kind::State::default(),
            written: WrittenStatus::default(),
            refused: None,
            failed: None,
            is_lasting: false,
            is_status_refused: false,
            published: Vec::new(),
            unworked: None,
        }
    }
}

/// A reconciliation with what it has read and decided: it can carry actions out.
pub struct Execution<'a, Kind: Reconciler> {
    /// The reconciliation.
    pub pass: Pass<'a, Kind>,
    /// What was read.
    pub seen: &'a Kind::Observation,
    /// What is decided.
    pub plan: &'a PlanOf<Kind>,
}

impl<Kind: Reconciler> Clone for Execution<'_, Kind> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Kind: Reconciler> Copy for Execution<'_, Kind> {}

impl<'a, Kind: Reconciler> Deref for Execution<'a, Kind> {
    type Target = Pass<'a, Kind>;

    fn deref(&self) -> &Self::Target {
        &self.pass
    }
}
