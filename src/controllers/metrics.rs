//! The metrics that every controller has.
//!
//! Guarantees: as many series as there are controllers and outcomes, however many objects there are, and one for each
//! object with a problem that its kind cannot show. Other series of single objects are in [`super::object_metrics`].

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::object_metrics::{Line, ObjectMetricsRegistries};
use super::problems::Problems;

/// Metrics that have a place on the page. Clones share them.
pub trait Metrics: Clone + Default + Send + Sync {
    /// Puts them on the page of `registry`.
    fn register(&self, registry: &mut Registry);
}

/// The metrics of one kind.
pub trait KindMetrics: Metrics {
    /// What is shown of an object.
    type Line: Line;

    /// Where operators show the objects of the kind.
    fn objects(&self) -> &ObjectMetricsRegistries<Self::Line>;
}

/// `{controller,result}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Result {
    controller: &'static str,
    result: &'static str,
}

/// `{controller,action,result}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Done {
    controller: &'static str,
    action: &'static str,
    result: &'static str,
}

/// `{controller}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    controller: &'static str,
}

/// Upper bounds of the duration of a reconciliation, in seconds.
const DURATIONS: [f64; 12] =
    [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 10.0];

/// How many reconciliations there were, how long they took, and what they did.
#[derive(Clone)]
pub struct Reconciliations {
    results: Family<Result, Counter>,
    durations: Family<Of, Histogram, fn() -> Histogram>,
    actions: Family<Done, Counter>,
    /// Where controllers show the objects that they cannot work.
    pub problems: ObjectMetricsRegistries<Problems>,
}

impl Default for Reconciliations {
    fn default() -> Self {
        let durations: fn() -> Histogram = || Histogram::new(DURATIONS);
        Self {
            results: Family::default(),
            durations: Family::new_with_constructor(durations),
            actions: Family::default(),
            problems: ObjectMetricsRegistries::default(),
        }
    }
}

impl Reconciliations {
    /// One has ended.
    pub fn ended(&self, controller: &'static str, result: &'static str, took: Duration) {
        self.results.get_or_create(&Result { controller, result }).inc();
        self.durations.get_or_create(&Of { controller }).observe(took.as_secs_f64());
    }

    /// An action was carried out, or tried.
    pub fn acted(&self, controller: &'static str, action: &'static str, result: &'static str) {
        self.actions.get_or_create(&Done { controller, action, result }).inc();
    }
}

impl Metrics for Reconciliations {
    /// The names are those of controller-runtime, so that its dashboards and alerts fit.
    fn register(&self, registry: &mut Registry) {
        let runtime = registry.sub_registry_with_prefix("controller_runtime");
        runtime.register("reconcile", "Reconciliations by controller and result", self.results.clone());
        runtime.register(
            "reconcile_time_seconds",
            "Seconds that a reconciliation took",
            self.durations.clone(),
        );
        let gatehouse = registry.sub_registry_with_prefix("gatehouse");
        let help = "Actions carried out, by controller, action and result";
        gatehouse.register("actions", help, self.actions.clone());
        gatehouse.register_collector(Box::new(self.problems.clone()));
    }
}

impl fmt::Debug for Reconciliations {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Reconciliations")
    }
}
