//! The metrics of all controllers.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

use crate::controllers::metrics::{Metrics as _, Reconciliations};
use crate::kinds::{etcdcluster, tdset};

/// What is shown of all controllers. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// What each controller counts.
    pub reconciliations: Reconciliations,
    tdset: tdset::Metrics,
    etcdcluster: etcdcluster::Metrics,
}

impl Metrics {
    /// Puts them on the page of `registry`.
    pub fn register(&self, registry: &mut Registry) {
        self.reconciliations.register(registry);
        self.tdset.register(registry);
        self.etcdcluster.register(registry);
    }

    pub(super) fn of_tdset(&self) -> (Reconciliations, tdset::Metrics) {
        (self.reconciliations.clone(), self.tdset.clone())
    }

    pub(super) fn of_etcdcluster(&self) -> (Reconciliations, etcdcluster::Metrics) {
        (self.reconciliations.clone(), self.etcdcluster.clone())
    }
}

/// How often the controllers were started. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Starts(Counter);

impl Starts {
    /// Puts it on the page of `registry`.
    pub fn register(&self, registry: &mut Registry) {
        registry.sub_registry_with_prefix("gatehouse").register(
            "controllers_starts",
            "Times that the controllers were started: more than once where they ended with an error or a panic",
            self.0.clone(),
        );
    }

    pub(super) fn count(&self) {
        self.0.inc();
    }
}
