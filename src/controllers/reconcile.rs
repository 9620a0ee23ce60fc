//! One reconciliation of one object, the same for all kinds.
//!
//! ```text
//!  read ─▶ resolve ─▶ observe ─▶ plan ─▶ execute ─▶ remember, requeue
//!           pure                 pure       │
//!                                           └─ report: the status and its events, before the actions or after them
//! ```
//!
//! Guarantees: an object that cannot be decoded, or that has faults, says so in its conditions; one that is being deleted
//! and does not wait for us is left alone; every action has a fail point before it and one after it; what the API server
//! refuses for good is in the observation of the next reconciliation, which comes soon, so that the status says it; a
//! refusal holds up only those later actions that need what was refused.
//! Never: decides anything about a kind. What is decided is in [`Reconciler::plan`], which is pure.

use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::{info, warn};

use super::execution::{Action, Executed, Execution, Failure, RefusedWrite};
use super::fail_points::FailPoints;
use super::outcome::{Class, Error, Outcome};
use super::scope::Realm;
use super::status::{Change, Precondition};
use super::step::{Interpreter, Note};
use super::{Triggers, Watched, finalizer, metrics, named, undecodable};
use crate::api::condition::Statement;
use crate::api::field::Fault;
use crate::api::judge::{self, Written};
use crate::api::{self, Version};
use crate::runtime::clock;

/// When to look again where something is seen otherwise than the status says.
const AT_ONCE: Duration = Duration::from_millis(200);

/// When to look again where others went first, or where a watch should have told before.
const SOON: Duration = Duration::from_secs(1);

/// The longest time until what was refused is tried again.
const REFUSED: Duration = Duration::from_mins(1);

/// When the status is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// Before the actions: it says what is intended, and whoever works next goes on from there.
    First,
    /// After the actions, and not while they change something: what comes of it is seen by the next reconciliation. The
    /// events come before the status, so that one may be published twice and none is lost.
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

    /// What the process has to be told, beside what the cluster tells.
    type Settings: Sync;

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
    type Status: Serialize + Clone + Send + Sync;

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

    /// What the write of a status is conditional on.
    const PRECONDITION: Precondition;

    /// The fail points around the write of a status.
    const STATUS_POINTS: FailPoints;

    /// Those around an event.
    const EVENT_POINTS: FailPoints;

    /// Whether each action is worth a line of the log.
    const LOGS_ACTIONS: bool;

    /// What reconciliations need, and the objects whose parts have changed, from watches of those parts.
    fn start(
        client: Client,
        realm: &Realm,
        metrics: &Self::Metrics,
        settings: &Self::Settings,
    ) -> (Self, Triggers<Self::Object>);

    /// Resolves when reconciliations can run; false when they never will. Called once: a store wakes only the last of
    /// those who wait for it.
    fn ready(&self) -> impl Future<Output = bool> + Send;

    /// Reads and writes objects.
    fn client(&self) -> &Client;

    /// Does what plans ask for.
    fn interpreter(&self) -> &Interpreter;

    /// The object is as it is now. Told before any reconciliation of it.
    fn seen(&self, object: &Watched<Self::Object>);

    /// The object of that uid is gone.
    fn forget(&self, uid: &str);

    /// Only the objects of these uids are left.
    fn forget_all_but(&self, uids: &HashSet<String>);

    /// Nothing is done for the object, and nothing is shown of it.
    fn hide(&self, metadata: &ObjectMeta);

    /// The object as it is reconciled: as it was watched, or as it is stored now. None: it is gone, or another one has
    /// its name.
    fn read(
        &self,
        watched: Arc<Watched<Self::Object>>,
    ) -> impl Future<Output = Result<Option<Arc<Watched<Self::Object>>>, Error>> + Send {
        async { Ok(Some(watched)) }
    }

    /// Whether other objects go first.
    fn gives_way(&self, _metadata: &ObjectMeta, _now: Timestamp) -> bool {
        false
    }

    /// What an object with these faults asks for.
    fn resolve(object: &Self::Object, faults: Vec<Fault>) -> Self::Spec;

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
        execution: &Execution<'_, Self>,
        state: &mut Self::State,
        action: &Self::Action,
        done: Result<(), &Failure>,
    ) -> Option<Note> {
        let _nothing_is_remembered = (execution, state, action, done);
        None
    }

    /// Whether the report is left to the next reconciliation, since the actions have changed something.
    fn defers_report(execution: &Execution<'_, Self>, state: &mut Self::State, now: Timestamp) -> bool {
        let _nothing_is_deferred = (execution, state, now);
        false
    }

    /// The status is written, and made that resource version if it said something new.
    fn reported(&self, execution: &Execution<'_, Self>, state: &mut Self::State, written: Option<String>) {
        let _nothing_is_remembered = (execution, state, written);
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
    fn undecodable(faults: &[Fault]) -> Vec<Statement>;

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
    /// The action that failed last, and the event of that. A failure is told once.
    failed: Option<(&'static str, String)>,
}

impl<Kind: Reconciler> Clone for State<Kind> {
    fn clone(&self) -> Self {
        Self { own: self.own.clone(), refused: self.refused.clone(), failed: self.failed.clone() }
    }
}

impl<Kind: Reconciler> Default for State<Kind> {
    fn default() -> Self {
        Self { own: Kind::State::default(), refused: None, failed: None }
    }
}

/// What became of the actions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether something is otherwise now.
    pub is_changed: bool,
    /// Whether one of them was not carried out, or not surely.
    pub is_incomplete: bool,
    /// The first that the API server refused for good.
    pub refused: Option<RefusedWrite>,
}

/// Reconciles an object.
///
/// # Errors
/// When the API server does not answer, is in trouble, or somebody else wrote first.
pub async fn reconcile<Kind: Reconciler>(
    kind: &Kind,
    watched: Arc<Watched<Kind::Object>>,
    state: &mut State<Kind>,
) -> Result<Outcome, Error> {
    let Some(object) = kind.read(watched).await? else { return Ok(Outcome::Leaving) }; // effect
    let (metadata, now) = (object.meta(), clock::now());
    let is_deleting = metadata.deletion_timestamp.is_some();
    if is_deleting && !finalizer::is_on(metadata, Kind::FINALIZER) {
        kind.hide(metadata);
        return Ok(Outcome::Leaving);
    }
    if !is_deleting && kind.gives_way(metadata, now) {
        return Ok(Outcome::Waiting(SOON));
    }
    let Ok(object) = &object.0 else { return leave_undecodable(kind, &object, now).await }; // effect
    let spec = Kind::resolve(object, faults::<Kind>(object, now)); // pure
    let seen = Box::pin(kind.observe(object, &spec, state, now)).await?; // effect
    let plan = Kind::plan(&spec, &seen); // pure
    let status = Kind::status(object, &spec, &seen, &plan, now); // pure
    let execution = Execution { kind, object, spec: &spec, seen: &seen, plan: &plan, status: &status };
    kind.planned(&execution, &mut state.own, now); // effect
    let order = Kind::report(&plan);
    if order == Report::First {
        report(&execution, state).await?; // effect
    }
    let progress = Box::pin(execute(&execution, state)).await?; // effect
    let had_refused = std::mem::replace(&mut state.refused, progress.refused.clone()).is_some();
    match (order, &progress.refused) {
        (Report::InActions, _) if !progress.is_incomplete => publish(&execution, state).await, // effect
        (Report::First | Report::InActions, _) => {}
        (Report::Last, None) => {
            if progress.is_changed && Kind::defers_report(&execution, &mut state.own, clock::now()) {
                return Ok(Outcome::Waiting(SOON));
            }
            report(&execution, state).await?; // effect
        }
        (Report::Last, Some(refused)) => {
            let refused = Kind::with_refusal(&seen, refused); // pure
            let seen = refused.as_ref().unwrap_or(&seen);
            let plan = Kind::plan(&spec, seen); // pure
            let status = Kind::status(object, &spec, seen, &plan, now); // pure
            let refused = Execution { seen, plan: &plan, status: &status, ..execution };
            report(&refused, state).await?; // effect
        }
    }
    let outcome = kind.finish(&execution, &mut state.own, &progress, now).await; // effect
    Ok(match outcome {
        outcome if state.refused.is_some() => {
            Outcome::Refused(outcome.again().unwrap_or(REFUSED).min(REFUSED))
        }
        _ if had_refused && order != Report::Last => Outcome::Waiting(AT_ONCE),
        outcome => outcome,
    })
}

/// Does one thing after the other. One that cannot be done ends it, unless those after it do not need it.
async fn execute<Kind: Reconciler>(
    execution: &Execution<'_, Kind>,
    state: &mut State<Kind>,
) -> Result<Progress, Error> {
    let mut progress = Progress::default();
    for action in Kind::actions(execution.plan) {
        let name = action.name();
        let lost = || Failure::Api(execution.lost(name));
        let done = action.points().around(execution.kind.execute(execution, action), lost).await; // effect
        let note = Kind::executed(execution, &mut state.own, action, done.as_ref().map(|_| ()));
        let object = named(execution.object);
        let failure = match done {
            Ok(executed) => {
                progress.is_changed |= executed.changed;
                state.failed = state.failed.take().filter(|(failed, _)| *failed != name);
                if Kind::LOGS_ACTIONS {
                    info!(controller = Kind::NAME, object, action = name, "carried out");
                }
                if let Some(note) = note {
                    execution.tell(note).await; // effect
                }
                continue;
            }
            Err(failure) => failure,
        };
        let why = failure.to_string();
        warn!(controller = Kind::NAME, object, action = name, why, "not carried out");
        if let Some(note) = note {
            let failed = Some((name, note.text.clone()));
            if state.failed != failed {
                state.failed = failed;
                execution.tell(note).await; // effect
            }
        }
        progress.is_incomplete = true;
        match failure {
            Failure::Api(error) if error.class() != Class::Permanent => return Err(error),
            failure if failure.is_permanent() && action.reports_refusal() => {
                progress.refused.get_or_insert(RefusedWrite { action: name.to_owned(), why });
            }
            _ => {}
        }
        if action.holds_up_others() {
            break;
        }
    }
    Ok(progress)
}

/// Writes the status where it says something new, and publishes the events that go with it.
async fn report<Kind: Reconciler>(
    execution: &Execution<'_, Kind>,
    state: &mut State<Kind>,
) -> Result<(), Error> {
    let is_last = Kind::report(execution.plan) == Report::Last;
    if is_last {
        publish(execution, state).await; // effect
    }
    let written = execution.write_status().await?; // effect
    if !is_last {
        publish(execution, state).await; // effect
    }
    execution.kind.reported(execution, &mut state.own, written);
    Ok(())
}

/// Publishes the events that go with the status.
async fn publish<Kind: Reconciler>(execution: &Execution<'_, Kind>, state: &mut State<Kind>) {
    for note in Kind::events(execution, &mut state.own) {
        execution.tell(note).await; // effect
    }
}

/// What the gate has against an object as it is stored.
fn faults<Kind: Reconciler>(object: &Kind::Object, now: Timestamp) -> Vec<Fault> {
    let object = serde_json::to_value(object).unwrap_or_default();
    judge::stored(Kind::KIND, Written { version: Version::V1, object: &object }, now).faults
}

/// Reports an object that cannot be decoded, or lets it go.
async fn leave_undecodable<Kind: Reconciler>(
    kind: &Kind,
    object: &Watched<Kind::Object>,
    now: Timestamp,
) -> Result<Outcome, Error> {
    kind.hide(object.meta());
    if object.meta().deletion_timestamp.is_none() || Kind::KEEPS_UNDECODABLE {
        return undecodable::report(kind, object, now).await; // effect
    }
    let released = finalizer::write::<Kind::Object>(object.meta(), Kind::FINALIZER, false, Kind::MANAGER);
    kind.interpreter().perform(&released, &object.object_ref(&())).await?; // effect
    Ok(Outcome::Waiting(SOON))
}
