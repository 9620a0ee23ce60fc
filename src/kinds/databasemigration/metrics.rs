//! The metrics of DatabaseMigrations.
//!
//! Guarantees: what is shown of a single object is what its status says.

use std::collections::BTreeSet;
use std::fmt;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::plan;
use crate::api::condition::{self, State};
use crate::controllers::metrics;
use crate::controllers::object_metrics::{self, Metric, ObjectMetricsRegistries, Rows, Sample, gauge};
use crate::kinds::databasemigration::api::status::ConditionType;
use crate::kinds::databasemigration::api::v1::{DatabaseMigrationStatus, FinishedRun};

/// What a run is counted by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RunLabels {
    purpose: String,
    outcome: &'static str,
}

/// All of them. Clones share them.
#[derive(Clone, Default)]
pub struct Metrics {
    runs: Family<RunLabels, Counter>,
    /// Where operators show what their DatabaseMigrations are doing.
    objects: ObjectMetricsRegistries<Line>,
}

impl Metrics {
    /// A run has ended.
    pub fn ended(&self, run: &FinishedRun) {
        let labels = RunLabels { purpose: run.purpose.clone(), outcome: run.outcome.as_str() };
        self.runs.get_or_create(&labels).inc();
    }
}

impl metrics::KindMetrics for Metrics {
    type Line = Line;

    fn objects(&self) -> &ObjectMetricsRegistries<Line> {
        &self.objects
    }
}

impl metrics::Metrics for Metrics {
    fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("gatehouse_databasemigration");
        registry.register(
            "runs",
            "Runs that have ended, by what they were for and how they ended",
            self.runs.clone(),
        );
        registry.register_collector(Box::new(self.objects.clone()));
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Metrics")
    }
}

const PHASE: &str = "phase_info";
const APPLIED: &str = "applied_scripts";
const PENDING: &str = "pending_scripts";
const READY: &str = "ready";
const PROBLEM: &str = "problem";

/// What is shown of a DatabaseMigration.
#[derive(Clone, Debug)]
pub struct Line(Rows);

impl Line {
    /// What the status of an object says.
    #[must_use]
    pub fn of(status: &DatabaseMigrationStatus) -> Self {
        let conditions = status.conditions.as_deref().unwrap_or_default();
        let ready = condition::find(conditions, ConditionType::Ready.as_str());
        let is_ready = ready.map(|ready| i64::from(ready.status == State::True.as_str()));
        let counts = [
            (APPLIED, status.applied_count.map(i64::from)),
            (PENDING, status.pending_count.map(i64::from)),
            (READY, is_ready),
        ];
        let counts = counts.into_iter().filter_map(|(name, count)| Some((name, Sample::plain(count?))));
        let phase = status.phase.map(|phase| (PHASE, Sample::labelled(&[("phase", phase.as_str())], 1)));
        let problems: BTreeSet<_> = plan::problems(conditions).map(|(_, reason)| reason.as_str()).collect();
        let problems = problems.into_iter().map(|problem| (PROBLEM, Sample::problem(problem)));
        Self(phase.into_iter().chain(counts).chain(problems).collect())
    }
}

impl object_metrics::Line for Line {
    const METRICS: &'static [Metric] = &[
        gauge(PHASE, "The phase of the migration"),
        gauge(APPLIED, "Scripts that are applied"),
        gauge(PENDING, "Scripts that are still to be run"),
        gauge(READY, "1 where all that the object asks for is done"),
        gauge(PROBLEM, "1 for each thing that needs attention, such as ScriptFailed"),
    ];

    fn samples(&self, metric: &str) -> Vec<Sample> {
        object_metrics::samples(&self.0, metric)
    }
}
