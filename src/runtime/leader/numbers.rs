//! The metrics of the election.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// All of them. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    leads: Gauge,
    transitions: Counter,
}

impl Numbers {
    /// Puts them on the page of `registry`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("gatehouse");
        registry.register("leader", "1 while this replica leads", self.leads.clone());
        registry.register(
            "leader_transitions",
            "Times that this replica began or ceased to lead",
            self.transitions.clone(),
        );
    }

    /// Whether this replica leads, from now on.
    pub(super) fn lead(&self, leads: bool) {
        if self.leads.set(leads.into()) != i64::from(leads) {
            self.transitions.inc();
        }
    }
}
