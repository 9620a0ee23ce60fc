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
mod sql;
pub mod state;
mod subjects;

use std::sync::Arc;

use futures::StreamExt as _;
use futures::channel::mpsc;
use futures::stream;
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{Client, Resource, ResourceExt as _};

use crate::api::condition::Statement;
use crate::api::field::FieldError;
use crate::controllers::action::{Executed, Failure, RefusedWrite};
use crate::controllers::api_write::ApiWrite;
use crate::controllers::manifest::{APPLIED_HASH, Manifest};
use crate::controllers::outcome::Error;
use crate::controllers::reconciler::{
    Context, Execution, Identity, ObjectChange, Pass, Reconciler, Started, State, Step, Why,
};
use crate::controllers::scope::WatchScope;
use crate::controllers::status::StatusRole;
use crate::controllers::triggers::{self, Triggers};
use crate::kinds::databasemigration::api::DatabaseMigrationKind;
use crate::kinds::databasemigration::api::v1::DatabaseMigration;
use crate::runtime::call::watching;
use actions::Action;
use metrics::Line;
pub use metrics::Metrics;
use names::{FINALIZER, MANAGER};
use observation::Observed;
use plan::{Detail, Plan};
use resources::snapshot;
use spec::Spec;
use state::ReconcileState;
use subjects::Subjects;

#[cfg(test)]
pub(super) use plan::tests::situations;

/// Reconciles DatabaseMigrations.
pub struct Operator {
    subjects: Arc<Subjects>,
}

impl Reconciler for Operator {
    type Object = DatabaseMigration;
    type State = ReconcileState;
    type Metrics = Metrics;
    type Spec = Spec;
    type Observation = Observed;
    type Action = Action;
    type Detail = Detail;

    /// What a run has ended with is written before the next one is created.
    const IDENTITY: Identity = Identity {
        kind: &DatabaseMigrationKind,
        name: "databasemigration",
        manager: MANAGER,
        finalizer: FINALIZER,
        keeps_undecodable: true,
        status: StatusRole::Record,
        status_points: actions::STATUS_POINTS,
        event_points: actions::EVENT_POINTS,
    };

    fn start(context: &Context<Self>) -> Started<Self> {
        let Context { client, realm, .. } = context;
        let (told, of_requirements) = mpsc::unbounded();
        let subjects = Arc::new(Subjects::new(told));
        let triggers = [
            triggers::by_label::<Job, _>(client, realm, names::APPLICATION),
            triggers::by_label::<Pod, _>(client, realm, names::APPLICATION),
            sources(client, realm, Arc::clone(&subjects)),
            of_requirements.boxed(),
        ];
        Started::at_once(Self { subjects }, stream::select_all(triggers).boxed())
    }

    fn notice(&self, change: ObjectChange<'_, DatabaseMigration>) {
        match change {
            ObjectChange::Seen(object) => self.subjects.seen(object, object.meta()),
            ObjectChange::Gone(uid) => self.subjects.forget(uid),
            ObjectChange::Hidden(_) => {}
        }
    }

    fn resolve(
        object: &DatabaseMigration,
        faults: impl FnOnce() -> Vec<FieldError>,
        _state: &mut Self::State,
    ) -> Spec {
        Spec::resolve(object, faults())
    }

    async fn observe(pass: Pass<'_, Self>, state: &mut State<Self>) -> Result<Observed, Error> {
        observe::parts(pass, state.refused.clone()).await
    }

    fn plan(
        _object: &DatabaseMigration,
        spec: &Spec,
        observed: &Observed,
        _now: Timestamp,
        _refused: Option<&RefusedWrite>,
    ) -> Plan {
        plan::plan(spec, observed)
    }

    fn unworked(why: Why<'_>) -> Vec<Statement> {
        match why {
            Why::Undecodable(faults) => plan::invalid_statements(faults).into(),
            Why::InOwnNamespace(message) => vec![plan::in_own_namespace(message)],
        }
    }

    async fn execute(execution: Execution<'_, Self>, action: &Action) -> Result<Executed, Failure> {
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

    fn remember(execution: &Execution<'_, Self>, state: &mut ReconcileState, step: Step) {
        if step == Step::Planned {
            return;
        }
        let plan = execution.plan;
        if let Some(ended) = &plan.detail.ended
            && state.counted.as_ref() != Some(&ended.job)
        {
            execution.context.metrics.ended(ended);
            state.counted = Some(ended.job.clone());
        }
        execution.context.show(&execution.object.metadata, Line::of(&plan.status));
    }
}

/// Creates an object; one of that name that was created for the same run, and is as planned, is as good.
async fn create<K>(
    execution: Execution<'_, Operator>,
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
