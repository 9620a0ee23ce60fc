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
use crate::controllers::object_metrics::{self, Metric, MetricKind, ObjectMetricsRegistries, Sample};
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

/// What is shown of a DatabaseMigration.
#[derive(Clone, Debug)]
pub struct Line {
    phase: Option<&'static str>,
    applied: Option<i32>,
    pending: Option<i32>,
    is_ready: Option<bool>,
    problems: BTreeSet<&'static str>,
}

impl Line {
    /// What the status of an object says.
    #[must_use]
    pub fn of(status: &DatabaseMigrationStatus) -> Self {
        let conditions = status.conditions.as_deref().unwrap_or_default();
        let ready = condition::find(conditions, ConditionType::Ready.as_str());
        Self {
            phase: status.phase.map(super::api::v1::Phase::as_str),
            applied: status.applied_count,
            pending: status.pending_count,
            is_ready: ready.map(|ready| ready.status == State::True.as_str()),
            problems: plan::problems(conditions).map(|(_, reason)| reason.as_str()).collect(),
        }
    }
}

impl object_metrics::Line for Line {
    const METRICS: &'static [Metric] = &[
        Metric { name: "phase_info", help: "The phase of the migration", kind: MetricKind::Gauge },
        Metric { name: "applied_scripts", help: "Scripts that are applied", kind: MetricKind::Gauge },
        Metric { name: "pending_scripts", help: "Scripts that are still to be run", kind: MetricKind::Gauge },
        Metric {
            name: "ready",
            help: "1 where all that the object asks for is done",
            kind: MetricKind::Gauge,
        },
        Metric {
            name: "problem",
            help: "1 for each thing that needs attention, such as ScriptFailed",
            kind: MetricKind::Gauge,
        },
    ];

    fn samples(&self, metric: &str) -> Vec<Sample> {
        let count = |count: Option<i32>| count.map(|count| Sample::plain(count.into()));
        let sample = match metric {
            "phase_info" => {
                self.phase.map(|phase| Sample { labels: vec![("phase", phase.to_owned())], value: 1 })
            }
            "applied_scripts" => count(self.applied),
            "pending_scripts" => count(self.pending),
            "ready" => self.is_ready.map(|is_ready| Sample::plain(is_ready.into())),
            _ => return self.problems.iter().map(|problem| Sample::problem(problem)).collect(),
        };
        sample.into_iter().collect()
    }
}
