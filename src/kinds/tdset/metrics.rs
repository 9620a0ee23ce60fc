//! The metrics of TDSets.
//!
//! Guarantees: what is shown of a single object is what its status says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::plan;
use crate::api::condition::{self, State};
use crate::api::time_zone;
use crate::controllers::metrics;
use crate::controllers::object_metrics::{self, Metric, ObjectMetricsRegistries, Sample, counter, gauge};
use crate::kinds::tdset::api::status::ConditionType;
use crate::kinds::tdset::api::v1::TDSetStatus;

/// Upper bounds of the time from a transition to its writing, in seconds.
const LATENESSES: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 10.0, 60.0, 600.0];

/// All of them. Clones share them.
#[derive(Clone)]
pub struct Metrics {
    transitions: Counter,
    lateness: Histogram,
    conflicts: Counter,
    /// Where operators show what their TDSets are doing.
    objects: ObjectMetricsRegistries<Line>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            transitions: Counter::default(),
            lateness: Histogram::new(LATENESSES),
            conflicts: Counter::default(),
            objects: ObjectMetricsRegistries::default(),
        }
    }
}

impl Metrics {
    /// A transition was carried out; that late, if it came by the clock.
    pub fn transition(&self, lateness: Option<Duration>) {
        self.transitions.inc();
        if let Some(lateness) = lateness {
            self.lateness.observe(lateness.as_secs_f64());
        }
    }

    /// A conflict with another client over a workload.
    pub fn conflict(&self) {
        self.conflicts.inc();
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
        let zones = Info::new([("version", time_zone::database_version())]);
        registry.register("gatehouse_tzdb", "Release of the time zone database inside", zones);
        let tdset = registry.sub_registry_with_prefix("gatehouse_tdset");
        tdset.register("transitions", "Transitions that were carried out", self.transitions.clone());
        let help = "Conflicts with another client over the replicas of a workload";
        tdset.register("conflicts", help, self.conflicts.clone());
        tdset.register_collector(Box::new(self.objects.clone()));
        let help = "Seconds from when a timetable asked for a count until it was written";
        tdset.register("transition_lateness_seconds", help, self.lateness.clone());
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Metrics")
    }
}

/// What is shown of a TDSet. There are many of them: this takes less memory than rows.
#[derive(Clone, Debug)]
pub struct Line {
    window: Option<String>,
    scheduled: Option<i32>,
    next: Option<i64>,
    is_ready: Option<bool>,
    /// In order, each once.
    problems: Box<[&'static str]>,
    /// How often a count was taken back from which client.
    reverts: BTreeMap<String, u64>,
}

impl Line {
    /// What the status of an object says, and from whom counts were taken back.
    #[must_use]
    pub fn of(status: &TDSetStatus, reverts: &BTreeMap<String, u64>) -> Self {
        let conditions = status.conditions.as_deref().unwrap_or_default();
        let ready = condition::find(conditions, ConditionType::Ready.as_str());
        let problems: BTreeSet<_> = plan::problems(conditions).map(|(_, reason)| reason.as_str()).collect();
        Self {
            window: status.active_window.clone(),
            scheduled: status.scheduled_replicas,
            next: status.next_transition.as_ref().map(|next| next.time.0.as_second()),
            is_ready: ready.map(|ready| ready.status == State::True.as_str()),
            problems: problems.into_iter().collect(),
            reverts: reverts.clone(),
        }
    }
}

impl object_metrics::Line for Line {
    const METRICS: &'static [Metric] = &[
        gauge("scheduled_replicas", "Replicas that the timetable asks for now"),
        gauge("active_window_info", "The window or exception that decides now; empty outside all of them"),
        gauge(
            "next_transition_timestamp_seconds",
            "When the timetable asks for something else next, in seconds since 1970",
        ),
        gauge("ready", "1 where the workload has its count, and all of it is there"),
        gauge("problem", "1 for each thing that needs attention, such as TargetNotFound"),
        counter(
            "reverts",
            "Counts of other clients that were taken back, by field manager; empty where that is not known",
        ),
    ];

    fn samples(&self, metric: &str) -> Vec<Sample> {
        let sample = match metric {
            "scheduled_replicas" => self.scheduled.map(|count| Sample::plain(count.into())),
            "active_window_info" => {
                self.window.as_ref().map(|window| Sample::labelled(&[("window", window)], 1))
            }
            "next_transition_timestamp_seconds" => self.next.map(Sample::plain),
            "ready" => self.is_ready.map(|is_ready| Sample::plain(is_ready.into())),
            "reverts" => {
                let sample = |(manager, count): (&String, &u64)| {
                    Sample::labelled(&[("manager", manager)], i64::try_from(*count).unwrap_or(i64::MAX))
                };
                return self.reverts.iter().map(sample).collect();
            }
            _ => return self.problems.iter().map(|problem| Sample::problem(problem)).collect(),
        };
        sample.into_iter().collect()
    }
}
