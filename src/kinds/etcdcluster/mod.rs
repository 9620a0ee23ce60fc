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
use kube::ResourceExt as _;
use tokio::sync::Mutex;
use tracing::debug;

use crate::api::condition::Statement;
use crate::api::field::FieldError;
use crate::controllers::action::{self, Executed, Failure, RefusedWrite};
use crate::controllers::api_write::Note;
use crate::controllers::fail_points::fail_points;
use crate::controllers::outcome::{Error, Outcome};
use crate::controllers::plan::{Progress, Rest, Wake};
use crate::controllers::reconciler::{
    Context, Execution, Identity, Pass, Reconciler, Started, State, Step, Why,
};
use crate::controllers::status::StatusRole;
use crate::controllers::triggers;
use crate::controllers::{self, named};
use crate::kinds::etcdcluster::api::EtcdClusterKind;
use crate::kinds::etcdcluster::api::v1::{EtcdCluster, EtcdClusterStatus};
use crate::runtime::clock;
use actions::Action;
pub use metrics::Metrics;
use names::{FINALIZER, MANAGER};
use observe::Snapshot;
use plan::BlockedReason;
use spec::Spec;
use state::ReconcileState;
use status::Reported;
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

/// What is decided about a cluster.
type Plan = controllers::plan::Plan<Action, EtcdClusterStatus, Detail>;

/// What is decided beside.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// The decision as it is traced.
    decided: plan::Plan,
    /// What the events of this plan report, and those before.
    reported: Reported,
    /// Reconciliations in a row that had nothing to do.
    idle: u32,
}

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
    type Action = Action;
    type Detail = Detail;

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

    fn start(context: &Context<Self>) -> Started<Self> {
        let Context { client, realm, .. } = context;
        let triggers = [
            triggers::by_label::<StatefulSet, _>(client, realm, names::APPLICATION),
            triggers::by_label::<Pod, _>(client, realm, names::APPLICATION),
        ];
        let operator = Self { comparing: Mutex::new(()), trace: Trace::default() };
        Started::at_once(operator, stream::select_all(triggers).boxed())
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

    fn plan(
        cluster: &EtcdCluster,
        spec: &Spec,
        sight: &Snapshot,
        now: Timestamp,
        _refused: Option<&RefusedWrite>,
    ) -> Plan {
        let (seen, certificates) = (&sight.observation, &sight.certificates);
        let decided = plan::plan(&sight.desired, seen);
        let previous = cluster.status.clone().unwrap_or_default();
        let said = status::StatusInputs {
            previous: &previous,
            certificates: certificates.words.as_deref(),
            backups: &sight.backups,
            hindrances: &sight.hindrances,
            now,
        };
        let status = status::of(spec, said, seen, &decided);
        let message = (certificates.words.as_deref(), certificates.is_problem);
        let (events, reported) =
            status::events(&cluster.name_any(), (&previous, &status), seen, message, &sight.reported);
        let acts = !decided.actions.iter().all(Action::is_of_backups);
        let idle = if acts { 0 } else { sight.idle.saturating_add(1) };
        let wake = wake(&decided, acts, idle);
        let detail = Detail { decided, reported, idle };
        Plan { actions: detail.decided.actions.clone(), status, events, wake, detail }
    }

    fn unworked(why: Why<'_>) -> Vec<Statement> {
        match why {
            Why::Undecodable(faults) => status::undecodable(faults),
            Why::InOwnNamespace(message) => vec![status::in_own_namespace(message)],
        }
    }

    fn remember(execution: &Execution<'_, Self>, state: &mut ReconcileState, step: Step) {
        match step {
            Step::Planned => {
                state.line = report::trace(&execution.kind.trace, execution, state);
                execution.context.show(&execution.object.metadata, report::metrics(execution, state));
            }
            Step::Reported { .. } => state.reported = execution.plan.detail.reported.clone(),
        }
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
        let controllers::plan::Plan { actions, wake, detail, .. } = execution.plan;
        state.idle = detail.idle;
        let may_compare = detail.decided.is_at_rest() && !execution.seen.desired.is_paused;
        let is_asked = detail.decided.summary.blocked == Some(BlockedReason::Uncompared);
        if may_compare && compare(execution, state, is_asked).await && progress.refused.is_none() {
            return Outcome::Waiting(AT_ONCE);
        }
        wake.outcome(actions.is_empty(), progress, clock::now())
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

/// When to look again. `acts`: something is to be done that is not about backups alone.
fn wake(decided: &plan::Plan, acts: bool, idle: u32) -> Wake {
    let outcome = match decided.wake {
        plan::Wake::Soon => Outcome::Waiting(patiently(idle)),
        plan::Wake::Later => Outcome::Done(LATER),
    };
    // What is waited for beside a CronJob that the API server does not take is looked for as usual.
    let is_left = !acts && (decided.is_at_rest() || starts_backup(decided));
    Wake {
        rest: Rest::In(outcome),
        is_news: false,
        done: Some(AT_ONCE),
        undone: is_left.then_some(LATER),
        // It is tried sooner at first: see [`crate::controllers::outcome::Class::Permanent`].
        refused: Some(LATER),
    }
}

/// Whether the backup before an upgrade begins.
fn starts_backup(plan: &plan::Plan) -> bool {
    plan.actions.iter().any(|action| matches!(action, Action::StartBackup { .. }))
}

/// When to look again after so many reconciliations in a row with nothing to do.
fn patiently(idle: u32) -> Duration {
    SOON.saturating_mul(idle.saturating_sub(PATIENCE).saturating_add(1)).min(PATIENTLY)
}
