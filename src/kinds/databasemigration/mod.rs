//! DatabaseMigration: scripts that are run once each, in order, in a database.
//!
//! Guarantees: no statement is sent to a database from here: Jobs do that, with this program, and hold their lock there;
//! what was planned and approved is what runs; all that decides is in objects of the cluster and in the history in the
//! database, so that another process goes on at any point.
//! Never: reads a Secret, ends a run, or begins one for an object whose last run failed for good.

pub mod actions;
pub mod api;
pub mod assignment;
mod metrics;
pub mod names;
pub mod observation;
mod observe;
pub mod plan;
pub mod rbac;
pub mod resources;
pub mod result;
pub mod run_state;
pub mod runner;
pub mod spec;
pub mod state;
mod subjects;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::channel::mpsc;
use futures::stream;
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::{Client, Resource, ResourceExt as _};

use crate::api::Kind;
use crate::api::condition::Statement;
use crate::api::field::FieldError;
use crate::controllers::action::{Executed, Failure};
use crate::controllers::api_write::{ApiWrite, ApiWriter, Note};
use crate::controllers::fail_points::FailPoints;
use crate::controllers::manifest::{APPLIED_HASH, Manifest};
use crate::controllers::object_metrics::ObjectMetrics;
use crate::controllers::outcome::{Error, Outcome};
use crate::controllers::reconciler::{Execution, Progress, Reconciler, Report, State};
use crate::controllers::scope::WatchScope;
use crate::controllers::status::{Change, Precondition};
use crate::controllers::triggers::{self, Triggers};
use crate::controllers::{Settings, Watched};
use crate::kinds::databasemigration::api::DatabaseMigrationKind;
use crate::kinds::databasemigration::api::v1::{DatabaseMigration, DatabaseMigrationStatus};
use crate::rbac::Rule;
use crate::runtime::call::watching;
use crate::runtime::clock;
use actions::Action;
use metrics::Line;
pub use metrics::Metrics;
use names::{FINALIZER, MANAGER};
use observation::Observed;
use plan::Plan;
use resources::snapshot;
use spec::Spec;
use state::ReconcileState;
use subjects::Subjects;

#[cfg(test)]
pub(super) use plan::tests::situations;

/// When to look again after something was done.
const AT_ONCE: Duration = Duration::from_millis(200);

/// When to look again where something was not done.
const SOON: Duration = Duration::from_secs(5);

/// Reconciles DatabaseMigrations.
pub struct Operator {
    client: Client,
    writer: ApiWriter,
    image: String,
    subjects: Arc<Subjects>,
    board: Arc<ObjectMetrics<Line>>,
    metrics: Metrics,
}

impl Reconciler for Operator {
    type Object = DatabaseMigration;
    type State = ReconcileState;
    type Metrics = Metrics;
    type Spec = Spec;
    type Observation = Observed;
    type Plan = Plan;
    type Action = Action;
    type Status = DatabaseMigrationStatus;

    const KIND: &'static dyn Kind = &DatabaseMigrationKind;
    const NAME: &'static str = "databasemigration";
    const MANAGER: &'static str = MANAGER;
    const FINALIZER: &'static str = FINALIZER;
    const KEEPS_UNDECODABLE: bool = true;
    const IS_READ_LIVE: bool = true;
    const PRECONDITION: Precondition = Precondition::Unchanged;
    const STATUS_POINTS: FailPoints = actions::STATUS_POINTS;
    const EVENT_POINTS: FailPoints = actions::EVENT_POINTS;
    const LOGS_ACTIONS: bool = true;

    fn rules() -> Vec<Rule> {
        rbac::rules()
    }

    fn start(
        client: Client,
        realm: &WatchScope,
        metrics: &Metrics,
        settings: &Settings,
    ) -> (Self, Triggers<DatabaseMigration>) {
        let (told, of_requirements) = mpsc::unbounded();
        let subjects = Arc::new(Subjects::new(told));
        let triggers = [
            triggers::by_label::<Job, _>(&client, realm, names::APPLICATION),
            triggers::by_label::<Pod, _>(&client, realm, names::APPLICATION),
            sources(&client, realm, Arc::clone(&subjects)),
            of_requirements.boxed(),
        ];
        let operator = Self {
            writer: ApiWriter::new(client.clone(), MANAGER),
            client,
            image: settings.image.clone(),
            subjects,
            board: metrics.objects.add(),
            metrics: metrics.clone(),
        };
        (operator, stream::select_all(triggers).boxed())
    }

    /// There is no cache to fill.
    async fn ready(&self) -> bool {
        true
    }

    fn client(&self) -> &Client {
        &self.client
    }

    fn writer(&self) -> &ApiWriter {
        &self.writer
    }

    fn seen(&self, object: &Watched<DatabaseMigration>) {
        self.subjects.seen(object, object.meta());
        self.board.admit(object.meta());
    }

    fn forget(&self, uid: &str) {
        self.subjects.forget(uid);
        self.board.forget(uid);
    }

    fn forget_all_but(&self, uids: &HashSet<String>) {
        self.subjects.forget_all_but(uids);
        self.board.forget_all_but(uids);
    }

    fn hide(&self, metadata: &ObjectMeta) {
        self.board.hide(metadata);
    }

    fn resolve(
        object: &DatabaseMigration,
        faults: impl FnOnce() -> Vec<FieldError>,
        _state: &mut Self::State,
    ) -> Spec {
        Spec::resolve(object, faults())
    }

    async fn observe(
        &self,
        object: &DatabaseMigration,
        spec: &Spec,
        state: &mut State<Self>,
        now: Timestamp,
    ) -> Result<Observed, Error> {
        let status = object.status.clone().unwrap_or_default();
        observe::parts(self, status, spec, state.refused.clone(), now).await
    }

    fn plan(spec: &Spec, observed: &Observed) -> Plan {
        plan::plan(spec, observed)
    }

    fn actions(plan: &Plan) -> &[Action] {
        &plan.actions
    }

    /// What a run has ended with is written before the next one is created.
    fn report(_plan: &Plan) -> Report {
        Report::First
    }

    fn status(
        _object: &DatabaseMigration,
        _spec: &Spec,
        observed: &Observed,
        plan: &Plan,
        _now: Timestamp,
    ) -> Change<DatabaseMigrationStatus> {
        Change { before: observed.status.clone(), after: plan.status.clone() }
    }

    fn events(execution: &Execution<'_, Self>, _state: &mut ReconcileState) -> Vec<Note> {
        execution.plan.events.clone()
    }

    fn news(before: &[Condition], after: &[Condition]) -> Vec<Note> {
        plan::warnings(before, after).collect()
    }

    fn undecodable(faults: &[FieldError]) -> Vec<Statement> {
        plan::invalid_statements(faults).into()
    }

    fn in_own_namespace(message: String) -> Statement {
        plan::in_own_namespace(message)
    }

    fn planned(&self, _execution: &Execution<'_, Self>, _state: &mut ReconcileState, _now: Timestamp) {}

    async fn execute(&self, execution: &Execution<'_, Self>, action: &Action) -> Result<Executed, Failure> {
        match action {
            Action::Hold => execution.set_finalizer(true).await?,
            Action::Release => execution.withdraw_finalizer().await?,
            Action::CreateSnapshot(manifest) => {
                create::<ConfigMap>(execution, manifest, snapshot::is_as_planned).await?;
            }
            // Who may make a Job of that name may have it do anything anyway.
            Action::CreateJob(manifest) => create::<Job>(execution, manifest, |_, _| true).await?,
            Action::DeleteSnapshot { name, uid } => {
                let (place, uid) = (execution.place::<ConfigMap>(name), uid.clone());
                execution.write(&ApiWrite::Delete { place, uid, resource_version: None }).await?;
            }
        }
        Ok(Executed { changed: true, resource_version: None })
    }

    fn reported(
        &self,
        execution: &Execution<'_, Self>,
        state: &mut ReconcileState,
        _written: Option<String>,
    ) {
        let plan = execution.plan;
        if let Some(ended) = &plan.ended
            && state.counted.as_ref() != Some(&ended.job)
        {
            self.metrics.ended(ended);
            state.counted = Some(ended.job.clone());
        }
        self.board.show(&execution.object.metadata, Line::of(&plan.status));
    }

    async fn finish(
        &self,
        execution: &Execution<'_, Self>,
        _state: &mut ReconcileState,
        progress: &Progress,
        _now: Timestamp,
    ) -> Outcome {
        let plan = execution.plan;
        let Some(wake) = plan.wake else { return Outcome::Invalid };
        let until = Duration::try_from(wake.duration_since(clock::now())).unwrap_or_default();
        if progress.is_incomplete {
            return Outcome::Waiting(until.min(SOON));
        }
        if !plan.actions.is_empty() || plan.ended.is_some() {
            return Outcome::Waiting(until.min(AT_ONCE));
        }
        Outcome::Done(until)
    }
}

/// Creates an object; one of that name that was created for the same run, and is as planned, is as good.
async fn create<K>(
    execution: &Execution<'_, Operator>,
    manifest: &Manifest,
    is_as_planned: fn(&K, &Manifest) -> bool,
) -> Result<(), Failure>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let step = ApiWrite::Create { manifest: manifest.clone(), manager: MANAGER };
    let Err(error) = execution.perform(&step).await else { return Ok(()) };
    if !error.source.is_lost_race() {
        return Err(error.into());
    }
    let found = execution.read::<K>(&manifest.place.name).await?;
    let Some(found) = found else { return Err(Failure::moved("it was there, and is gone")) };
    let stamp = found.annotations().get(APPLIED_HASH).map(String::as_str);
    let is_ours = names::is_owned(found.meta(), execution.spec.uid());
    match (is_ours, stamp == manifest.stamp()) {
        (true, true) if is_as_planned(&found, manifest) => Ok(()),
        (true, false) => Err(Failure::moved("another run has that name")),
        (true, true) | (false, _) => Err(Failure::Taken(manifest.place.clone().into())),
    }
}

/// The objects that take scripts from a ConfigMap that comes, goes or changes.
fn sources(client: &Client, realm: &WatchScope, subjects: Arc<Subjects>) -> Triggers<DatabaseMigration> {
    triggers::changes::<ConfigMap>(client, realm, watching())
        .flat_map(move |one| stream::iter(subjects.of_config_map(&one.metadata)))
        .boxed()
}
