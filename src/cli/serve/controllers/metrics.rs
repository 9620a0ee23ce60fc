//! The metrics of all controllers.

use std::fmt;
use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

use super::table::{CONTROLLERS, Controller};
use crate::controllers::metrics::{Metrics as _, Reconciliations};
use crate::storage::numbers::Numbers;

/// What is shown of all controllers. Clones share it.
#[derive(Clone)]
pub struct Metrics {
    /// What each controller counts.
    pub reconciliations: Reconciliations,
    /// What is shown of the migration of stored objects.
    pub storage: Numbers,
    controllers: Arc<[Box<dyn Controller>]>,
}

impl Default for Metrics {
    fn default() -> Self {
        let controllers = CONTROLLERS.iter().map(|controller| controller()).collect();
        let (reconciliations, storage) = (Reconciliations::default(), Numbers::default());
        Self { reconciliations, storage, controllers }
    }
}

impl Metrics {
    /// Puts them on the page of `registry`.
    pub fn register(&self, registry: &mut Registry) {
        self.reconciliations.register(registry);
        self.storage.register(registry);
        for controller in self.controllers() {
            controller.register(registry);
        }
    }

    pub(super) fn controllers(&self) -> impl Iterator<Item = &dyn Controller> {
        self.controllers.iter().map(AsRef::as_ref)
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.controllers().map(Controller::name)).finish()
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
