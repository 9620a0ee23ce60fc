//! TDSet: a workload whose count follows a timetable.
//!
//! Guarantees: a transition is carried out when it is due, whatever `resyncMinutes` is; between two of them nothing is
//! written while nothing changes; a field that somebody else changed is taken back, and a count too unless the object
//! lets it stand; of a workload that somebody else made nothing but the count is written.
//!
//! A pass that has changed something does not report: what it changed comes back by the watch and starts another one,
//! which tells how things are. A pass over an object whose count is not due gives way to those whose is. So when
//! thousands of objects share a boundary, all counts are written before the first status is.

mod agenda;
pub mod claims;
mod conditions;
mod course;
pub mod found;
pub mod hands;
mod metrics;
mod observe;
pub mod plan;
pub mod points;
pub mod rbac;
pub mod recall;
pub mod resources;
pub mod spec;
mod status;
mod targets;
mod view;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::channel::mpsc;
use futures::stream::{self, BoxStream};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ObjectReference, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::runtime::reflector::ObjectRef;
use kube::{Client, Resource as _, ResourceExt as _};
use tracing::warn;

use super::board::Board;
use super::cache::Cache;
use super::outcome::{Class, Error, Outcome};
use super::scope::Realm;
use super::shelf::Shelf;
use super::step::{Effect, Interpreter, Note, Step};
use super::{Controlled, Triggers, Watched, faults, undecodable};
use crate::api;
use crate::api::condition::Statement;
use crate::api::field::Fault;
use crate::api::tdset::TDSetKind;
use crate::api::tdset::v1::TDSet;
use crate::runtime::{call, clock};
use agenda::Agenda;
use claims::{Claims, Subject};
use metrics::Line;
pub use metrics::Metrics;
use plan::Plan;
use recall::Recall;
use resources::finalizer;
use resources::names::MANAGER;
use spec::Spec;
use targets::Targets;

/// When to look where the watch should have told before.
const SOON: Duration = Duration::from_secs(1);

/// When to try again what the API server refused.
const REFUSED: Duration = Duration::from_mins(1);

/// Works on TDSets.
pub struct Operator {
    client: Client,
    deployments: Cache<Deployment>,
    services: Cache<Service>,
    autoscalers: Shelf<HorizontalPodAutoscaler>,
    targets: Targets,
    claims: Arc<Claims>,
    interpreter: Interpreter,
    agenda: Agenda,
    board: Arc<Board<Line>>,
    metrics: Metrics,
}

impl Controlled for Operator {
    type Object = TDSet;
    type Settings = ();
    type State = Recall;
    type Metrics = Metrics;

    const KIND: &'static dyn api::Kind = &TDSetKind;

    const NAME: &'static str = "tdset";

    const MANAGER: &'static str = MANAGER;

    fn start(client: Client, realm: &Realm, metrics: &Metrics, (): &()) -> (Self, Triggers<TDSet>) {
        let (deployments, of_deployments) = Cache::watch(&client, realm, trim_deployment);
        let (services, of_services) = Cache::watch(&client, realm, trim_service);
        let (autoscalers, of_autoscalers) =
            Shelf::watch(realm.api(client.clone()), trim_autoscaler, is_same_autoscaler);
        let (targets, of_targets) = Targets::new(client.clone(), realm.clone());
        let (told, of_claims) = mpsc::unbounded();
        let claims = Arc::new(Claims::new(told));
        let subjects =
            stream::select(of_targets, of_autoscalers.flat_map(|one| stream::iter(subjects(&one))));
        let concerned = concerned(Arc::clone(&claims), subjects.boxed());
        let operator = Self {
            interpreter: Interpreter::new(client.clone(), MANAGER),
            client,
            deployments,
            services,
            autoscalers,
            targets,
            claims,
            agenda: Agenda::default(),
            board: metrics.objects.add(),
            metrics: metrics.clone(),
        };
        let triggers = [of_deployments, of_services, concerned, of_claims.boxed()];
        (operator, stream::select_all(triggers).boxed())
    }

    fn client(&self) -> &Client {
        &self.client
    }

    fn interpreter(&self) -> &Interpreter {
        &self.interpreter
    }

    fn invalid(faults: &[Fault]) -> Vec<Statement> {
        status::invalid_statements(faults).into()
    }

    fn events(before: &[Condition], after: &[Condition]) -> Vec<Note> {
        plan::warnings(before, after).collect()
    }

    async fn ready(&self) -> bool {
        self.deployments.filled().await && self.services.filled().await && self.autoscalers.filled().await
    }

    async fn reconcile(&self, object: Arc<Watched<TDSet>>, state: &mut Recall) -> Result<Outcome, Error> {
        let now = clock::now();
        if object.meta().deletion_timestamp.is_some() {
            return self.leave(&object, state, now).await;
        }
        if self.agenda.gives_way(uid(&object), now) {
            return Ok(Outcome::Waiting(SOON));
        }
        let Ok(tdset) = &object.0 else {
            self.agenda.expect(uid(&object), None);
            self.board.hide(object.meta());
            return undecodable::report(self, &object, now).await; // effect
        };
        let spec = Spec::resolve(tdset, faults::<Self>(tdset, now)); // pure
        let observed = observe::parts(self, tdset, &spec, state, now).await?; // effect
        let plan = plan::plan(&spec, &observed); // pure
        self.agenda.expect(uid(&object), plan.due);
        let worked = self.work(&object, &plan).await?; // effect
        if worked == Worked::Changed && state.defers_report(&plan, clock::now()) {
            return Ok(Outcome::Waiting(until(plan.wake).min(SOON)));
        }
        let (plan, refused) = match worked {
            Worked::Refused(why) => (plan::refused(&plan, object.meta(), why, &observed), true), // pure
            Worked::Settled | Worked::Changed => (plan, false),
        };
        self.report(&object, state, plan, refused).await // effect
    }

    fn seen(&self, object: &Watched<TDSet>) {
        self.claims.seen(object, object.0.as_ref().ok().map(spec::subjects));
        self.board.admit(object.meta());
    }

    fn forget(&self, uid: &str) {
        self.agenda.expect(uid, None);
        self.claims.forget(uid);
        self.targets.forget(uid);
        self.board.forget(uid);
    }

    fn forget_all_but(&self, uids: &HashSet<String>) {
        self.agenda.forget_all_but(uids);
        self.claims.forget_all_but(uids);
        self.targets.forget_all_but(uids);
        self.board.forget_all_but(uids);
    }
}

/// What became of the work of a plan.
#[derive(Debug, PartialEq, Eq)]
enum Worked {
    /// All was so already.
    Settled,
    /// Something is otherwise now.
    Changed,
    /// The API server refused some of it, for this reason.
    Refused(String),
}

impl Operator {
    /// A pass over an object that is being deleted.
    async fn leave(
        &self,
        object: &Watched<TDSet>,
        state: &mut Recall,
        now: Timestamp,
    ) -> Result<Outcome, Error> {
        self.agenda.expect(uid(object), None);
        if !finalizer::is_on(object.meta()) {
            return Ok(Outcome::Leaving);
        }
        let Ok(tdset) = &object.0 else {
            let released = finalizer::set(object.meta(), false);
            self.perform(&released, &object.object_ref(&())).await?; // effect
            return Ok(Outcome::Waiting(SOON));
        };
        let spec = Spec::resolve(tdset, faults::<Self>(tdset, now)); // pure
        let observed = observe::parts(self, tdset, &spec, state, now).await?; // effect
        let plan = plan::leaving(&spec, &observed); // pure
        match self.work(object, &plan).await? {
            Worked::Changed => Ok(Outcome::Waiting(SOON)),
            Worked::Settled => self.report(object, state, plan, true).await,
            Worked::Refused(why) => {
                let plan = plan::refused(&plan, object.meta(), why, &observed); // pure
                self.report(object, state, plan, true).await
            }
        }
    }

    /// Does all of the work, whatever becomes of its parts: a Service that is refused holds up no count.
    async fn work(&self, object: &Watched<TDSet>, plan: &Plan) -> Result<Worked, Error> {
        let regarding = object.object_ref(&());
        let mut worked = Worked::Settled;
        for step in &plan.work {
            match self.perform(step, &regarding).await {
                Ok(effect) if effect.changed && worked == Worked::Settled => worked = Worked::Changed,
                Ok(_) => {}
                Err(error) if error.class() == Class::Permanent => {
                    let said = error.said();
                    warn!(object = %super::named(object), error = said, "refused");
                    worked = Worked::Refused(said);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(worked)
    }

    /// Does one thing, between its two points.
    async fn perform(&self, step: &Step, regarding: &ObjectReference) -> Result<Effect, Error> {
        let points = points::of(step);
        let lost = || {
            let object = regarding.name.clone().unwrap_or_default();
            Error { verb: points.name(), object, source: call::Error::Timeout }
        };
        points.around(self.interpreter.perform(step, regarding), lost).await
    }

    async fn report(
        &self,
        object: &Watched<TDSet>,
        state: &mut Recall,
        plan: Plan,
        refused: bool,
    ) -> Result<Outcome, Error> {
        let regarding = object.object_ref(&());
        let mut written = None;
        for step in &plan.report {
            let effect = self.perform(step, &regarding).await?;
            if let Step::Status { .. } = step {
                written = effect.resource_version;
            }
        }
        if let Some(transition) = &plan.transition {
            let lateness = u64::try_from(transition.lateness_ms).unwrap_or_default();
            self.metrics.transition(Duration::from_millis(lateness));
        }
        if plan.conflict {
            self.metrics.conflict();
        }
        self.board.show(object.meta(), Line::of(&plan.status));
        let again = until(plan.wake);
        let outcome = match plan.wake {
            None => Outcome::Invalid,
            Some(_) if refused => Outcome::Refused(again.min(REFUSED)),
            Some(_) => Outcome::Done(again),
        };
        state.told(written, plan.status);
        Ok(outcome)
    }
}

fn uid(object: &Watched<TDSet>) -> &str {
    object.meta().uid.as_deref().unwrap_or_default()
}

/// Time from now until `wake`. Reckoned at a pass's end, so that the pass does not delay the next one.
fn until(wake: Option<Timestamp>) -> Duration {
    let wake = wake.unwrap_or(Timestamp::MAX);
    Duration::try_from(wake.duration_since(clock::now())).unwrap_or_default()
}

/// Whoever has to do with the objects that have changed.
fn concerned(
    claims: Arc<Claims>,
    changed: BoxStream<'static, Subject>,
) -> BoxStream<'static, ObjectRef<Watched<TDSet>>> {
    changed.flat_map(move |subject| stream::iter(claims.concerned(&subject))).boxed()
}

/// An autoscaler and what it scales.
fn subjects(autoscaler: &HorizontalPodAutoscaler) -> Vec<Subject> {
    let namespace = autoscaler.namespace().unwrap_or_default();
    let own = Subject::autoscaler(&namespace, &autoscaler.name_any());
    observe::scaled_by(autoscaler).into_iter().chain([own]).collect()
}

/// Takes out of a Deployment what nobody looks at: of its managed fields, all but who owns the count.
fn trim_deployment(deployment: &mut Deployment) {
    hands::trim(&mut deployment.metadata);
}

/// The same of a Service.
fn trim_service(service: &mut Service) {
    service.metadata.managed_fields = None;
}

/// The same of an autoscaler, of which nothing but its target and its bounds matters.
fn trim_autoscaler(autoscaler: &mut HorizontalPodAutoscaler) {
    autoscaler.status = None;
    let metadata = std::mem::take(&mut autoscaler.metadata);
    autoscaler.metadata = ObjectMeta { labels: None, annotations: None, owner_references: None, ..metadata };
    hands::trim(&mut autoscaler.metadata);
    if let Some(spec) = &mut autoscaler.spec {
        (spec.metrics, spec.behavior) = (None, None);
    }
}

/// Whether two autoscalers differ in nothing that matters.
fn is_same_autoscaler(one: &HorizontalPodAutoscaler, other: &HorizontalPodAutoscaler) -> bool {
    let key = |autoscaler: &HorizontalPodAutoscaler| {
        let metadata = &autoscaler.metadata;
        (metadata.uid.clone(), metadata.deletion_timestamp.clone(), hands::other(metadata))
    };
    one.spec == other.spec && key(one) == key(other)
}
