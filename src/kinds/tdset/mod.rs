//! TDSet: a workload whose count follows a timetable.
//!
//! Guarantees: a transition is carried out when it is due, whatever `resyncMinutes` is; between two of them nothing is
//! written while nothing changes; a field that another client changed is taken back, and a count too unless the object
//! lets it stand; of a workload that another client made nothing but the count is written.
//!
//! A reconciliation that has changed something does not report: the change comes back by the watch and starts another
//! one, which reports the state. An object whose count is not due gives way to those whose count is. So when thousands
//! of objects share a boundary, all counts are written before the first status is.

pub mod actions;
pub mod api;
mod calendars;
mod due_queue;
pub mod kept;
mod metrics;
pub mod names;
pub mod observation;
mod observe;
pub mod plan;
pub mod rbac;
pub mod resources;
pub mod spec;
pub mod state;
pub mod target_ownership;
mod targets;

use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc;
use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource as _, ResourceExt as _};
use tokio::sync::OnceCell;

use crate::api::condition::Statement;
use crate::api::field::FieldError;
use crate::controllers::Watched;
use crate::controllers::action::{Action as _, Executed, Failure, RefusedWrite};
use crate::controllers::api_write::Note;
use crate::controllers::cache::Cache;
use crate::controllers::difference::Difference;
use crate::controllers::diffing_store::DiffingStore;
use crate::controllers::outcome::Error;
use crate::controllers::reconciler::{
    Context, Execution, Identity, ObjectChange, Pass, Read, Reconciler, Started, State, Step, Why,
};
use crate::controllers::status::StatusRole;
use crate::kinds::tdset::api::TDSetKind;
use crate::kinds::tdset::api::v1::{AutoscalerKind, TDSet};
use crate::runtime::call::watching;
use crate::runtime::clock;
use actions::Action;
use calendars::Calendars;
use due_queue::DueQueue;
use kept::ObjectState;
use metrics::Line;
pub use metrics::Metrics;
use names::{FINALIZER, MANAGER};
use observation::{Bounds, FoundDeployment, ObjectKey, Observed, autoscaler};
use plan::{Detail, Plan};
use spec::Spec;
use state::Reverts;
use target_ownership::TargetOwnership;
use targets::Targets;

#[cfg(test)]
pub(super) use plan::tests::situations;

/// How long what is watched may take until it has been listed. What is missing then, as where a right is, is read for each
/// object, whose status says what cannot be read.
const UNTIL_FILLED: Duration = Duration::from_secs(30);

/// When to look again at the latest where other objects go first: the queue asks for a reconciliation before.
const GIVES_WAY: Duration = Duration::from_secs(10);

/// Reconciles TDSets.
pub struct Operator {
    deployments: Cache<FoundDeployment>,
    services: Cache<Service>,
    autoscalers: DiffingStore<HorizontalPodAutoscaler>,
    /// Whether the API server takes a lower bound of 0 of those.
    scales_to_zero: OnceCell<bool>,
    targets: Targets,
    calendars: Calendars,
    claims: Arc<TargetOwnership>,
    due_queue: DueQueue<ObjectRef<Watched<TDSet>>>,
}

impl Reconciler for Operator {
    type Object = TDSet;
    type State = ObjectState;
    type Metrics = Metrics;
    type Spec = Arc<Spec>;
    type Observation = Observed;
    type Action = Action;
    type Detail = Detail;

    const IDENTITY: Identity = Identity {
        kind: &TDSetKind,
        name: "tdset",
        manager: MANAGER,
        finalizer: FINALIZER,
        keeps_undecodable: false,
        status: StatusRole::Report,
        status_points: actions::STATUS_POINTS,
        event_points: actions::EVENT_POINTS,
    };

    fn start(context: &Context<Self>) -> Started<Self> {
        let Context { client, realm, .. } = context;
        let (deployments, of_deployments) =
            Cache::watch(client, realm, FoundDeployment::trim, FoundDeployment::difference);
        let (services, of_services) = Cache::watch(
            client,
            realm,
            |one: &mut Service| observation::retain_others(&mut one.metadata),
            |one, other| Difference::unless(one == other),
        );
        let (autoscalers, of_autoscalers) = DiffingStore::watch(
            realm.api(client.clone()),
            watching(),
            autoscaler::trim,
            |one, other| Difference::unless(autoscaler::is_same(one, other)),
            autoscaler::name_of_scaled,
        );
        let (targets, of_targets) = Targets::new(client.clone(), realm.clone());
        let (told, of_claims) = mpsc::unbounded();
        let (called, of_due_queue) = mpsc::unbounded();
        let claims = Arc::new(TargetOwnership::new(told));
        let subjects =
            stream::select(of_targets, of_autoscalers.flat_map(|(one, _)| stream::iter(subjects(&one))));
        let concerned = concerned(Arc::clone(&claims), subjects.boxed());
        let filled = (deployments.filled(), services.filled(), autoscalers.filled());
        let ready = async move {
            let all = async { filled.0.await && filled.1.await && filled.2.await };
            tokio::time::timeout(UNTIL_FILLED, all).await.unwrap_or(true)
        };
        let kind = Self {
            calendars: Calendars::new(client.clone()),
            deployments,
            services,
            autoscalers,
            scales_to_zero: OnceCell::new(),
            targets,
            claims,
            due_queue: DueQueue::new(called),
        };
        let triggers = [of_deployments, of_services, concerned, of_claims.boxed(), of_due_queue.boxed()];
        Started { kind, triggers: stream::select_all(triggers).boxed(), ready: ready.boxed() }
    }

    fn notice(&self, change: ObjectChange<'_, TDSet>) {
        match change {
            ObjectChange::Seen(object) => {
                if !self.claims.knows(object.meta()) {
                    let read = object.read().ok();
                    let claims = read.map(|tdset| (spec::makes(&tdset), spec::subjects(&tdset)));
                    self.claims.seen(object.meta(), claims);
                }
                self.calendars.asked.admit(uid(object.meta()));
            }
            ObjectChange::Gone(uid) => {
                self.due_queue.forget(uid);
                self.claims.forget(uid);
                self.targets.forget(uid);
                self.calendars.asked.forget(uid);
            }
            ObjectChange::Hidden(metadata) => self.due_queue.expect(uid(metadata), None),
        }
    }

    /// The object as it was watched. An object whose count is not due gives way to those whose count is.
    async fn read(
        &self,
        _context: &Context<Self>,
        watched: Arc<Watched<TDSet>>,
    ) -> Result<Read<TDSet>, Error> {
        let ObjectMeta { namespace, name, deletion_timestamp, .. } = watched.meta();
        let (namespace, name) =
            (namespace.as_deref().unwrap_or_default(), name.as_deref().unwrap_or_default());
        let object = || ObjectRef::new(name).within(namespace);
        let gives_way = deletion_timestamp.is_none()
            && self.due_queue.gives_way(uid(watched.meta()), object, clock::now());
        Ok(if gives_way { Read::Later(GIVES_WAY) } else { Read::Found(watched) })
    }

    fn resolve(
        tdset: &TDSet,
        faults: impl FnOnce() -> Vec<FieldError>,
        state: &mut ObjectState,
    ) -> Arc<Spec> {
        state.kept.spec(tdset, faults)
    }

    async fn observe(pass: Pass<'_, Self>, state: &mut State<Self>) -> Result<Observed, Error> {
        observe::parts(pass, state).await
    }

    fn plan(
        _tdset: &TDSet,
        spec: &Arc<Spec>,
        observed: &Observed,
        _now: Timestamp,
        refused: Option<&RefusedWrite>,
    ) -> Plan {
        match refused {
            None => plan::plan(spec, observed),
            refused => plan::plan(spec, &Observed { refused: refused.cloned(), ..observed.clone() }),
        }
    }

    fn unworked(why: Why<'_>) -> Vec<Statement> {
        match why {
            Why::Undecodable(faults) => plan::invalid_statements(faults).into(),
            Why::InOwnNamespace(message) => vec![plan::in_own_namespace(message)],
        }
    }

    fn remember(execution: &Execution<'_, Self>, state: &mut ObjectState, step: Step) {
        match step {
            Step::Planned => planned(execution, state),
            Step::Reported { is_written } => reported(execution, state, is_written),
        }
    }

    async fn execute(execution: Execution<'_, Self>, action: &Action) -> Result<Executed, Failure> {
        let effect = execution.perform(&action.0).await?;
        if let Some(scale) = effect.scale {
            execution.kind.targets.wrote(execution.spec.uid(), scale);
        }
        Ok(Executed { changed: effect.changed, resource_version: effect.resource_version })
    }

    fn executed(
        execution: &Execution<'_, Self>,
        state: &mut ObjectState,
        action: &Action,
        done: Result<&Executed, &Failure>,
    ) -> Option<Note> {
        state.has_made |= actions::makes(action.name());
        if let Some(written) = actions::scaled_to(&action.0) {
            // Where the answer was lost, it may be written and may be not.
            state.recall.scaled_to = done.ok().map(|_| written);
        }
        match done {
            Ok(done) if actions::writes_count(action.name()) => {
                let versions = (action.0.seen(), done.resource_version.as_deref());
                state.recall.wrote_count(execution.plan, versions, execution.seen.now);
            }
            Ok(done) if (done.changed || actions::removes(&action.0)) && actions::repairs(action.name()) => {
                let versions = (action.0.seen(), done.resource_version.as_deref());
                state.recall.wrote_repair(versions, execution.seen.now);
            }
            Err(failure) => state.recall.is_zero_refused |= actions::is_zero_refused(&action.0, failure),
            Ok(_) => {}
        }
        None
    }

    fn defers_report(execution: &Execution<'_, Self>, state: &mut ObjectState, is_changed: bool) -> bool {
        let now = clock::now();
        execution.kind.due_queue.settled(execution.spec.uid());
        if is_changed {
            return execution.spec.is_deleting() || state.recall.defers_report(execution.plan, now);
        }
        state.recall.paces(&execution.seen.status, &execution.plan.status, now)
    }
}

/// Nothing of the plan is done yet.
fn planned(execution: &Execution<'_, Operator>, state: &mut ObjectState) {
    let detail = &execution.plan.detail;
    state.recall.begin();
    state.kept.found(execution.plan, execution.seen);
    // What is written after an edit does not wait for a contest about what was asked for before.
    if execution.spec.is_edited(&execution.seen.status) {
        state.recall.repairs = Reverts::default();
    }
    execution.kind.due_queue.expect(execution.spec.uid(), detail.due);
}

/// The status is reported.
fn reported(execution: &Execution<'_, Operator>, state: &mut ObjectState, is_written: bool) {
    let (plan, metrics) = (execution.plan, &execution.context.metrics);
    let detail = &plan.detail;
    execution.kind.due_queue.settled(execution.spec.uid());
    if let Some(Ok(scaled)) = &execution.seen.target {
        state.recall.workload.clone_from(&scaled.scale.metadata.uid);
    }
    let answer_lost = state.recall.carried.reported_by(&execution.seen.status);
    if let Some(transition) = detail.transition.as_ref().or(answer_lost) {
        let lateness = u64::try_from(transition.lateness_ms).unwrap_or_default();
        metrics.transition(detail.is_timed.then_some(Duration::from_millis(lateness)));
    }
    if detail.conflict {
        metrics.conflict();
    }
    execution.context.show(&execution.object.metadata, Line::of(&plan.status, &state.recall.reverted));
    state.recall.told(is_written, clock::now());
}

fn uid(metadata: &ObjectMeta) -> &str {
    metadata.uid.as_deref().unwrap_or_default()
}

/// The TDSets that the changed objects concern.
fn concerned(
    claims: Arc<TargetOwnership>,
    changed: BoxStream<'static, ObjectKey>,
) -> BoxStream<'static, ObjectRef<Watched<TDSet>>> {
    changed.flat_map(move |subject| stream::iter(claims.concerned(&subject))).boxed()
}

/// An autoscaler and what it scales.
fn subjects(autoscaler: &HorizontalPodAutoscaler) -> Vec<ObjectKey> {
    let namespace = autoscaler.namespace().unwrap_or_default();
    let kind = AutoscalerKind::HorizontalPodAutoscaler;
    let own = ObjectKey::autoscaler(kind, &namespace, &autoscaler.name_any());
    Bounds::scaled(autoscaler).into_iter().chain([own]).collect()
}
