//! What a kind implements to be reconciled.
//!
//! Guarantees: what is decided about an object is pure; what has effects is `observe`, `execute` and `finish`.

use std::collections::HashSet;
use std::fmt::Debug;

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::action::{Action, Executed, Failure, RefusedWrite};
use super::api_write::{ApiWriter, Note, STATUS_REFUSED};
use super::fail_points::FailPoints;
use super::metrics;
use super::outcome::{Error, Outcome};
use super::problems::Problems;
use super::scope::WatchScope;
use super::status::{Change, Precondition};
use super::triggers::Triggers;
use super::{Settings, Watched};
use crate::api;
use crate::api::condition::Statement;
use crate::api::field::FieldError;
use crate::rbac::Rule;

/// When the status is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// Before the actions: it records the intent, and the next leader continues from there.
    First,
    /// After the actions, and not while they change something: the next reconciliation sees the effect. The events come
    /// before the status, so that one may be published twice and none is lost.
    Last,
    /// By one of the actions.
    InActions,
}

/// A kind that is reconciled.
pub trait Reconciler: Send + Sync + Sized + 'static {
    /// The kind, in the stored version: what is watched is not converted.
    type Object: Resource<DynamicType = (), Scope = NamespaceResourceScope>
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
    type Metrics: metrics::Metrics;

    /// What an object asks for, resolved.
    type Spec: Send + Sync;

    /// What was read.
    type Observation: Send + Sync;

    /// What is decided.
    type Plan: Send + Sync;

    /// One thing to do.
    type Action: Action;

    /// What is reported.
    type Status: Serialize + Clone + PartialEq + Send + Sync;

    /// The kind as the gate has it.
    const KIND: &'static dyn api::Kind;

    /// The controller's name in logs, metrics and events.
    const NAME: &'static str;

    /// The field manager of the status.
    const MANAGER: &'static str;

    /// The finalizer that has a deletion wait for us.
    const FINALIZER: &'static str;

    /// Whether an object that cannot be decoded keeps the finalizer: what its deletion has to do is not known.
    const KEEPS_UNDECODABLE: bool;

    /// Whether an object is read from the API server for each reconciliation, and not only as it was watched.
    const IS_READ_LIVE: bool;

    /// What the write of a status is conditional on.
    const PRECONDITION: Precondition;

    /// The fail points around the write of a status.
    const STATUS_POINTS: FailPoints;

    /// Those around an event.
    const EVENT_POINTS: FailPoints;

    /// Whether each action is worth a line of the log.
    const LOGS_ACTIONS: bool;

    /// What reconciling needs of the API server in every namespace whose objects are reconciled.
    fn rules() -> Vec<Rule>;

    /// What reconciliations need, and the objects whose parts have changed, from watches of those parts.
    fn start(
        client: Client,
        realm: &WatchScope,
        metrics: &Self::Metrics,
        settings: &Settings,
    ) -> (Self, Triggers<Self::Object>);

    /// Resolves when reconciliations can run; false when they never will. Called once: a store wakes only the last of
    /// those who wait for it.
    fn ready(&self) -> impl Future<Output = bool> + Send;

    /// Reads and writes objects.
    fn client(&self) -> &Client;

    /// Does what plans ask for.
    fn writer(&self) -> &ApiWriter;

    /// The object is as it is now. Called before any reconciliation of it.
    fn seen(&self, object: &Watched<Self::Object>);

    /// The object is in the store at that resource version: what is remembered until then may go.
    fn watched(_state: &mut Self::State, _resource_version: Option<&str>) {}

    /// The object of that uid is gone.
    fn forget(&self, uid: &str);

    /// Only the objects of these uids are left.
    fn forget_all_but(&self, uids: &HashSet<String>);

    /// Nothing is done for the object, and nothing is shown of it.
    fn hide(&self, metadata: &ObjectMeta);

    /// Whether other objects go first. Once they need not, the kind asks for a reconciliation of this one.
    fn gives_way(&self, _metadata: &ObjectMeta, _now: Timestamp) -> bool {
        false
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
        &self,
        object: &Self::Object,
        spec: &Self::Spec,
        state: &mut State<Self>,
        now: Timestamp,
    ) -> impl Future<Output = Result<Self::Observation, Error>> + Send;

    /// What to do, and what to say.
    fn plan(spec: &Self::Spec, seen: &Self::Observation) -> Self::Plan;

    /// What to do, in this order.
    fn actions(plan: &Self::Plan) -> &[Self::Action];

    /// When the status is written.
    fn report(plan: &Self::Plan) -> Report;

    /// What was observed, with the write that has been refused since. For a kind that reports last.
    fn with_refusal(_seen: &Self::Observation, _refused: &RefusedWrite) -> Option<Self::Observation> {
        None
    }

    /// The status as it was written last, and what it says from now on.
    fn status(
        object: &Self::Object,
        spec: &Self::Spec,
        seen: &Self::Observation,
        plan: &Self::Plan,
        now: Timestamp,
    ) -> Change<Self::Status>;

    /// The events that go with the status.
    fn events(execution: &Execution<'_, Self>, state: &mut Self::State) -> Vec<Note>;

    /// It is planned: nothing of it is done yet.
    fn planned(&self, execution: &Execution<'_, Self>, state: &mut Self::State, now: Timestamp);

    /// Does one thing.
    fn execute(
        &self,
        execution: &Execution<'_, Self>,
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
    fn defers_report(
        _execution: &Execution<'_, Self>,
        _state: &mut Self::State,
        _is_changed: bool,
        _now: Timestamp,
    ) -> bool {
        false
    }

    /// The status is written, and made that resource version if it said something new.
    fn reported(&self, _execution: &Execution<'_, Self>, _state: &mut Self::State, _written: Option<String>) {
    }

    /// What is left to do once all else is done, and when to look again.
    fn finish(
        &self,
        execution: &Execution<'_, Self>,
        state: &mut Self::State,
        progress: &Progress,
        now: Timestamp,
    ) -> impl Future<Output = Outcome> + Send;

    /// The conditions of an object that cannot be decoded, for these faults.
    fn undecodable(faults: &[FieldError]) -> Vec<Statement>;

    /// The condition of an object in the namespace of gatehouse, with that message.
    fn in_own_namespace(message: String) -> Statement;

    /// What is new in the conditions `after` and worth an event, against those `before`.
    fn news(before: &[Condition], after: &[Condition]) -> Vec<Note>;
}

/// What a process knows of an object from one reconciliation to the next.
#[derive(Debug)]
pub struct State<Kind: Reconciler> {
    /// What its kind remembers.
    pub own: Kind::State,
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
        Problems { kind: Kind::KIND.names().kind, reasons: self.unworked.into_iter().chain(status).collect() }
    }
}

impl<Kind: Reconciler> Clone for State<Kind> {
    fn clone(&self) -> Self {
        let Self { own, refused, failed, is_lasting, is_status_refused, published, unworked } = self;
        let (is_lasting, is_status_refused, unworked) = (*is_lasting, *is_status_refused, *unworked);
        Self {
            own: own.clone(),
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
            refused: None,
            failed: None,
            is_lasting: false,
            is_status_refused: false,
            published: Vec::new(),
            unworked: None,
        }
    }
}

/// The results of the actions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether something is otherwise now.
    pub is_changed: bool,
    /// Whether one of them was not carried out, or not surely.
    pub is_incomplete: bool,
    /// The first that the API server refused for good.
    pub refused: Option<RefusedWrite>,
}

/// What a reconciliation has read and decided, and the executor of its actions.
#[derive(Debug)]
pub struct Execution<'a, Kind: Reconciler> {
    /// Who acts.
    pub kind: &'a Kind,
    /// The object, as it was read.
    pub object: &'a Kind::Object,
    /// What it asks for.
    pub spec: &'a Kind::Spec,
    /// What was read.
    pub seen: &'a Kind::Observation,
    /// What is decided.
    pub plan: &'a Kind::Plan,
    /// The status as it was written last, and what it says from now on.
    pub status: &'a Change<Kind::Status>,
}

impl<Kind: Reconciler> Clone for Execution<'_, Kind> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Kind: Reconciler> Copy for Execution<'_, Kind> {}
