//! EtcdCluster: an etcd cluster that is scaled, repaired and upgraded.
//!
//! ```text
//!   the object, live ─▶ desired ─┐
//!                                ├─▶ plan ─▶ status ─▶ actions, each under its guards
//!   objects, members ─▶ observe ─┘
//! ```
//!
//! Guarantees: etcd's member list is the source of truth, read linearizably in the reconciliation that acts on it; an
//! intent is written into the status before it is carried out, so that the next leader continues from there; a
//! reconciliation has at most one action that cannot be taken back. Nothing is decided on a cache: watches only say
//! when to look.
//! Never: looks at a cluster at rest more often than every 30 seconds, changes of its objects aside.
//!
//! Pure: what the object looks like ([`api`]) and asks for ([`spec`]), what a reconciliation knows ([`observation`]),
//! what it can do ([`actions`]) and does ([`plan`]), what it makes ([`resources`]), what it says ([`status`]) and shows
//! ([`metrics`]). With effects: the reads ([`observe`]), the check of root's password ([`root_password`]), the
//! comparison of members' data ([`consistency`]), the actions ([`execute`]), metrics and the log ([`report`],
//! [`trace`]). Besides: a client of etcd ([`etcd`]), the guard in a member's pod ([`agent`]), and what takes backups
//! ([`backup`]).

pub mod actions;
pub mod agent;
pub mod api;
pub mod backup;
pub mod consistency;
pub mod etcd;
mod execute;
pub mod last_words;
mod member_clients;
mod metrics;
pub mod names;
pub mod observation;
mod observe;
pub mod plan;
pub mod rbac;
mod report;
pub mod resources;
mod root_password;
pub mod spec;
mod state;
pub mod status;
pub mod trace;

use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use tokio::sync::Mutex;
use tracing::debug;

use crate::api::condition::Statement;
use crate::api::field::FieldError;
use crate::controllers::action::{self, Executed, Failure};
use crate::controllers::api_write::Note;
use crate::controllers::fail_points::fail_points;
use crate::controllers::named;
use crate::controllers::outcome::{Error, Outcome};
use crate::controllers::reconciler::{Context, Execution, Identity, Pass, Progress, Reconciler, State};
use crate::controllers::status::StatusRole;
use crate::controllers::triggers::{self, Triggers};
use crate::kinds::etcdcluster::api::EtcdClusterKind;
use crate::kinds::etcdcluster::api::v1::{EtcdCluster, EtcdClusterStatus};
use actions::Action;
pub use metrics::Metrics;
use names::{FINALIZER, MANAGER};
use observe::Snapshot;
use plan::{BlockedReason, Plan, Wake};
use spec::Spec;
use state::ReconcileState;
use trace::Trace;

#[cfg(test)]
pub(super) use status::tests::situations;

/// When to look again after something was done: what it made is read again, so there is nothing to wait for.
const AT_ONCE: Duration = Duration::from_millis(200);

/// When to look again while something moves.
const SOON: Duration = Duration::from_secs(2);

/// The same where reconciliation after reconciliation found nothing to do: what is waited for shows in pods mostly, and
/// they are watched.
const PATIENTLY: Duration = Duration::from_secs(15);

/// Reconciliations in a row with nothing to do after which each wait is longer than the one before.
const PATIENCE: u32 = 10;

/// When to look again while nothing does.
const LATER: Duration = Duration::from_secs(30);

/// Reconciles EtcdClusters.
pub struct Operator {
    /// Held while the members of a cluster compare their data.
    comparing: Mutex<()>,
    trace: Trace,
}

impl Reconciler for Operator {
    type Object = EtcdCluster;
    type State = ReconcileState;
    type Metrics = Metrics;
    type Spec = Spec;
    type Observation = Snapshot;
    type Plan = Plan;
    type Action = Action;

    const IDENTITY: Identity = Identity {
        kind: &EtcdClusterKind,
        name: "etcdcluster",
        manager: MANAGER,
        finalizer: FINALIZER,
        keeps_undecodable: true,
        status: StatusRole::Record,
        status_points: fail_points!("status"),
        event_points: fail_points!("publish-event"),
    };

    fn start(context: &Context<Self>) -> (Self, Triggers<EtcdCluster>) {
        let Context { client, realm, .. } = context;
        let triggers = [
            triggers::by_label::<StatefulSet, _>(client, realm, names::APPLICATION),
            triggers::by_label::<Pod, _>(client, realm, names::APPLICATION),
        ];
        let operator = Self { comparing: Mutex::new(()), trace: Trace::default() };
        (operator, stream::select_all(triggers).boxed())
    }

    /// There is no cache to fill.
    async fn ready(&self) -> bool {
        true
    }

    fn resolve(
        cluster: &EtcdCluster,
        faults: impl FnOnce() -> Vec<FieldError>,
        _state: &mut Self::State,
    ) -> Spec {
        let faults = faults();
        if let Some(fault) = faults.first() {
            debug!(object = named(cluster), path = %fault.path, "not valid");
        }
        Spec::resolve(cluster, &faults)
    }

    async fn observe(pass: Pass<'_, Self>, state: &mut State<Self>) -> Result<Snapshot, Error> {
        Ok(Box::pin(observe::look(pass, state)).await)
    }

    fn plan(_spec: &Spec, sight: &Snapshot) -> Plan {
        plan::plan(&sight.desired, &sight.observation)
    }

    fn actions(plan: &Plan) -> &[Action] {
        &plan.actions
    }

    fn status(
        cluster: &EtcdCluster,
        spec: &Spec,
        sight: &Snapshot,
        plan: &Plan,
        now: Timestamp,
    ) -> EtcdClusterStatus {
        let before = cluster.status.clone().unwrap_or_default();
        let certificates = sight.certificates.words.as_deref();
        let said = status::StatusInputs {
            previous: &before,
            certificates,
            backups: &sight.backups,
            hindrances: &sight.hindrances,
            now,
        };
        status::of(spec, said, &sight.observation, plan)
    }

    fn events(execution: &Execution<'_, Self>, state: &mut ReconcileState) -> Vec<Note> {
        let (name, sight) = (execution.name(), execution.seen);
        let before = execution.object.status.clone().unwrap_or_default();
        let certificates = (sight.certificates.words.as_deref(), sight.certificates.is_problem);
        let change = (&before, execution.status);
        let (notes, reported) =
            status::events(&name, change, &sight.observation, certificates, &state.reported);
        state.reported = reported;
        notes
    }

    fn news(before: &[Condition], after: &[Condition]) -> Vec<Note> {
        let status = |conditions: &[Condition]| EtcdClusterStatus {
            conditions: Some(conditions.to_vec()),
            ..EtcdClusterStatus::default()
        };
        status::news(&status(before), &status(after), None).0
    }

    fn undecodable(faults: &[FieldError]) -> Vec<Statement> {
        status::undecodable(faults)
    }

    fn in_own_namespace(message: String) -> Statement {
        status::in_own_namespace(message)
    }

    fn planned(execution: &Execution<'_, Self>, state: &mut ReconcileState) {
        state.line = report::trace(&execution.kind.trace, execution, state);
        execution.context.show(&execution.object.metadata, report::metrics(execution, state));
    }

    async fn execute(execution: Execution<'_, Self>, action: &Action) -> Result<Executed, Failure> {
        execution.carry_out(action).await?;
        Ok(Executed { changed: true, resource_version: None })
    }

    fn executed(
        execution: &Execution<'_, Self>,
        state: &mut ReconcileState,
        action: &Action,
        done: Result<&Executed, &Failure>,
    ) -> Option<Note> {
        let result = action::result(done);
        state.tally.count(action.name(), result);
        let is_refused = state.is_refused(action, done);
        state.carried_out(action, is_refused);
        if let Some(line) = state.line {
            execution.kind.trace.action(line, action.name(), result);
        }
        let left = state.put_back(action, done.is_ok(), is_refused);
        if let Err(failure) = done {
            return execute::note_of_failure(action, &execution.name(), &failure.to_string());
        }
        execute::note_of_contest(&left).or_else(|| execute::note(action, execution))
    }

    async fn finish(
        execution: Execution<'_, Self>,
        state: &mut ReconcileState,
        progress: &Progress,
    ) -> Outcome {
        let plan = execution.plan;
        let may_compare = plan.is_at_rest() && !execution.seen.desired.is_paused;
        let is_asked = plan.summary.blocked == Some(BlockedReason::Uncompared);
        let is_news = may_compare && compare(execution, state, is_asked).await; // effect
        outcome(plan, progress, is_news, state)
    }
}

/// Compares the members' data where it is time, of one cluster at a time. Whether what was found is new: what follows
/// from it is for the next reconciliation, which looks at all else again.
async fn compare(execution: Execution<'_, Operator>, state: &mut ReconcileState, is_asked: bool) -> bool {
    let now = execution.now;
    let is_due = is_asked || state.audit.is_due(now);
    let turn = is_due.then(|| execution.kind.comparing.try_lock().ok()).flatten();
    let Some(_turn) = turn else { return false };
    let told = consistency::look(execution.seen).await; // effect
    state.audit.heard(told, now);
    let found = state.audit.recall(None);
    is_asked || found.known().is_some() && found != execution.seen.observation.audit
}

/// When to look again.
fn outcome(plan: &Plan, progress: &Progress, is_news: bool, state: &mut ReconcileState) -> Outcome {
    let acts = !plan.actions.iter().all(Action::is_of_backups);
    state.idle = if acts { 0 } else { state.idle.saturating_add(1) };
    let is_done = !progress.is_incomplete && !plan.actions.is_empty();
    match plan.wake {
        // It is tried sooner at first: see [`crate::controllers::outcome::Class::Permanent`].
        _ if progress.refused.is_some() => Outcome::Waiting(LATER),
        _ if is_news || is_done => Outcome::Waiting(AT_ONCE),
        // What is waited for beside a CronJob that the API server does not take is looked for as usual.
        _ if progress.is_incomplete && !acts && (plan.is_at_rest() || starts_backup(plan)) => {
            Outcome::Waiting(LATER)
        }
        Wake::Soon => Outcome::Waiting(patiently(state.idle)),
        Wake::Later => Outcome::Done(LATER),
    }
}

/// Whether the backup before an upgrade begins.
fn starts_backup(plan: &Plan) -> bool {
    plan.actions.iter().any(|action| matches!(action, Action::StartBackup { .. }))
}

/// When to look again after so many reconciliations in a row with nothing to do.
fn patiently(idle: u32) -> Duration {
    SOON.saturating_mul(idle.saturating_sub(PATIENCE).saturating_add(1)).min(PATIENTLY)
}
