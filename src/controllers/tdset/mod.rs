//! TDSet: a Deployment whose count follows a timetable.
//!
//! Guarantees: a transition is carried out when it is due, whatever `resyncMinutes` is; between two of them nothing is
//! written while nothing changes; a count or a field that somebody else changed is taken back; an object of somebody
//! else is left alone.
//!
//! A pass that has changed something does not report: what it changed comes back by the watch and starts another one,
//! which tells how things are. A pass over an object whose count is not due gives way to those whose is. So when
//! thousands of objects share a boundary, all counts are written before the first status is.

mod agenda;
mod observe;
mod plan;
mod resources;
pub mod rights;
mod status;
mod view;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::{Client, Resource as _};
use tracing::warn;

use super::cache::Cache;
use super::memory::Memory;
use super::outcome::{Class, Error, Outcome};
use super::scope::Realm;
use super::step::{Interpreter, Step};
use super::{Controlled, Numbers, Triggers, Watched};
use crate::api::tdset::v1::{PastTransition, TDSet, TDSetStatus};
use crate::runtime::clock;
use agenda::Agenda;
use plan::Plan;
use view::lateness;

/// The field manager of everything but the count.
pub const MANAGER: &str = "gatehouse-tdset";

/// The field manager of the count.
pub const COUNT_MANAGER: &str = "gatehouse-tdset-count";

/// When to look where the watch should have told before.
const SOON: Duration = Duration::from_secs(1);

/// When to try again what the API server refused.
const REFUSED: Duration = Duration::from_mins(1);

/// Works on TDSets.
pub struct Operator {
    client: Client,
    deployments: Cache<Deployment>,
    services: Cache<Service>,
    interpreter: Interpreter,
    memory: Memory<Recall>,
    agenda: Agenda,
    numbers: Numbers,
}

/// What is remembered of a TDSet.
#[derive(Clone, Debug, Default)]
struct Recall {
    /// The status that was written last, and the resource version that it made.
    said: Option<(String, TDSetStatus)>,
    /// A transition that was carried out and not yet told of.
    carried: Option<PastTransition>,
    /// Something was changed and not yet told of.
    unreported: bool,
}

impl Controlled for Operator {
    type Object = TDSet;

    const NAME: &'static str = "tdset";

    fn start(client: Client, realm: &Realm, numbers: &Numbers) -> (Self, Triggers<TDSet>) {
        let (deployments, of_deployments) = Cache::watch(&client, realm, view::trim_deployment);
        let (services, of_services) = Cache::watch(&client, realm, view::trim_service);
        let operator = Self {
            interpreter: Interpreter::new(client.clone(), MANAGER),
            client,
            deployments,
            services,
            memory: Memory::default(),
            agenda: Agenda::default(),
            numbers: numbers.clone(),
        };
        (operator, futures::stream::select(of_deployments, of_services).boxed())
    }

    async fn ready(&self) -> bool {
        self.deployments.filled().await && self.services.filled().await
    }

    async fn reconcile(&self, object: Arc<Watched<TDSet>>) -> Result<Outcome, Error> {
        if object.meta().deletion_timestamp.is_some() {
            return Ok(Outcome::Leaving);
        }
        let now = clock::now();
        if self.agenda.gives_way(uid(&object), now) {
            return Ok(Outcome::Waiting(SOON));
        }
        let judged = observe::judged(self, &object, now).await?; // effect
        let observed = observe::parts(self, &object, now).await?; // effect
        let plan = match judged {
            Ok(tdset) => plan::plan(tdset, &observed), // pure
            Err(faults) => plan::invalid(object.meta(), &faults, &observed), // pure
        };
        self.agenda.expect(uid(&object), plan.due);
        let worked = self.work(&object, &plan).await?; // effect
        if worked == Worked::Changed && self.defers_report(&object, &plan) {
            return Ok(Outcome::Waiting(until(plan.wake).min(SOON)));
        }
        let (plan, refused) = match worked {
            Worked::Refused(why) => (plan::refused(&plan, object.meta(), why, &observed), true), // pure
            Worked::Settled | Worked::Changed => (plan, false),
        };
        self.report(&object, plan, refused).await // effect
    }

    fn forget(&self, uid: &str) {
        self.memory.forget(uid);
        self.agenda.expect(uid, None);
    }

    fn forget_all_but(&self, uids: &HashSet<String>) {
        self.memory.forget_all_but(uids);
        self.agenda.forget_all_but(uids);
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
    /// Does all of the work, whatever becomes of its parts: a Service that is refused holds up no count.
    async fn work(&self, object: &Watched<TDSet>, plan: &Plan) -> Result<Worked, Error> {
        let regarding = object.object_ref(&());
        let mut worked = Worked::Settled;
        for step in &plan.work {
            match self.interpreter.perform(step, &regarding).await {
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

    /// Whether what the plan changed is told of by the next pass. Twice in a row it is not: somebody may undo each
    /// time what we do, and that is worth telling.
    fn defers_report(&self, object: &Watched<TDSet>, plan: &Plan) -> bool {
        let now = clock::now();
        self.memory.update(uid(object), |recall| {
            if let Some(transition) = &plan.transition
                && recall.carried.as_ref().is_none_or(|carried| carried.to != transition.to)
            {
                let lateness_ms = lateness(transition.time.0, now);
                recall.carried = Some(PastTransition { lateness_ms, ..transition.clone() });
            }
            !std::mem::replace(&mut recall.unreported, true)
        })
    }

    async fn report(&self, object: &Watched<TDSet>, plan: Plan, refused: bool) -> Result<Outcome, Error> {
        let regarding = object.object_ref(&());
        let mut written = None;
        for step in &plan.report {
            let effect = self.interpreter.perform(step, &regarding).await?;
            if let Step::Status { .. } = step {
                written = effect.resource_version;
            }
        }
        if let Some(transition) = &plan.transition {
            let lateness = u64::try_from(transition.lateness_ms).unwrap_or_default();
            self.numbers.transition(Duration::from_millis(lateness));
        }
        let again = until(plan.wake);
        let outcome = match plan.wake {
            None => Outcome::Invalid,
            Some(_) if refused => Outcome::Refused(again.min(REFUSED)),
            Some(_) => Outcome::Done(again),
        };
        self.memory.update(uid(object), |recall| {
            (recall.carried, recall.unreported) = (None, false);
            recall.said = written.map(|version| (version, plan.status)).or_else(|| recall.said.take());
        });
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
