//! The controllers, one for each kind.

use futures::future::{BoxFuture, FutureExt as _};
use kube::Client;
use prometheus_client::registry::Registry;

use crate::controllers::metrics::{Metrics as _, Reconciliations};
use crate::controllers::reconciler::Reconciler;
use crate::controllers::scope::Scope;
use crate::controllers::{self, Settings};
use crate::kinds::{self, for_each_kind};
use crate::rbac::Rule;
use crate::runtime::leader::Stop;
use crate::runtime::readiness::Ready;

macro_rules! controllers {
    ($($folder:ident::api::$kind:ident,)*) => {
        /// The controller of every kind.
        pub(super) const CONTROLLERS: &[fn() -> Box<dyn Controller>] = &[
            $(|| of::<kinds::$folder::Operator>(kinds::$folder::rbac::rules)),*
        ];
    };
}

for_each_kind!(controllers);

/// What all of them need of the API server, in every namespace whose objects are reconciled.
pub fn rules() -> Vec<Rule> {
    CONTROLLERS.iter().flat_map(|controller| controller().rules()).collect()
}

/// The controller of one kind, with what it counts.
pub(super) trait Controller: Send + Sync {
    /// What it is called in logs, metrics and in what is ready.
    fn name(&self) -> &'static str;

    /// What it needs of the API server, in every namespace whose objects are reconciled.
    fn rules(&self) -> Vec<Rule>;

    /// Puts what it counts on the page of `registry`.
    fn register(&self, registry: &mut Registry);

    /// Runs until `stop`. `ready` is set while all of its objects are known.
    fn work<'a>(&'a self, with: &'a Surroundings, ready: &'a Ready, stop: Stop) -> BoxFuture<'a, ()>;
}

/// What all controllers have in common.
pub(super) struct Surroundings {
    /// Reads and writes objects.
    pub client: Client,
    /// The namespaces whose objects are reconciled.
    pub scope: Scope,
    /// What is set for the process.
    pub settings: Settings,
    /// What every controller counts.
    pub reconciliations: Reconciliations,
}

struct Of<Kind: Reconciler> {
    metrics: Kind::Metrics,
    rules: fn() -> Vec<Rule>,
}

fn of<Kind: Reconciler>(rules: fn() -> Vec<Rule>) -> Box<dyn Controller> {
    Box::new(Of::<Kind> { metrics: Kind::Metrics::default(), rules })
}

impl<Kind: Reconciler> Controller for Of<Kind> {
    fn name(&self) -> &'static str {
        Kind::IDENTITY.name
    }

    fn rules(&self) -> Vec<Rule> {
        (self.rules)()
    }

    fn register(&self, registry: &mut Registry) {
        self.metrics.register(registry);
    }

    fn work<'a>(&'a self, with: &'a Surroundings, ready: &'a Ready, stop: Stop) -> BoxFuture<'a, ()> {
        async move {
            let working = Working(ready);
            let metrics = (with.reconciliations.clone(), self.metrics.clone());
            let set = || working.0.set();
            controllers::run::<Kind>(with.client.clone(), &with.scope, metrics, &with.settings, set, &stop)
                .await;
        }
        .boxed()
    }
}

/// Listed as working until the work ends, in whichever way.
struct Working<'a>(&'a Ready);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.unset("this replica does not lead");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::GROUP;
    use crate::kinds::KINDS;

    #[test]
    fn every_kind_has_a_controller_that_may_watch_its_objects() {
        let kinds: Vec<_> = KINDS.iter().map(|kind| kind.names().plural.to_owned()).collect();
        let mut watched: Vec<_> = CONTROLLERS
            .iter()
            .flat_map(|controller| {
                let rules = controller().rules().into_iter();
                let rules = rules.filter(|rule| rule.group == GROUP && rule.verbs.contains(&"watch"));
                rules.flat_map(|rule| rule.resources)
            })
            .collect();
        watched.sort();
        assert_eq!(watched, kinds);
    }
}
