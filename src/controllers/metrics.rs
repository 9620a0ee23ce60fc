//! The numbers of the operator.
//!
//! Guarantees: as many series as there are controllers and outcomes, however many objects there are; and besides, a
//! bounded number for each object, on the page of the replica that works it and of no other.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::board::Boards;
use super::{etcdcluster, tdset};
use crate::api::time_zone;

/// `{controller,result}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Pass {
    controller: &'static str,
    result: &'static str,
}

/// `{controller}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    controller: &'static str,
}

/// Upper bounds of a pass's duration, in seconds.
const DURATIONS: [f64; 12] =
    [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 10.0];

/// Upper bounds of the time from a transition to its writing, in seconds.
const LATENESSES: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 10.0, 60.0, 600.0];

/// All of them. Clones share them.
#[derive(Clone)]
pub struct Numbers {
    passes: Family<Pass, Counter>,
    durations: Family<Of, Histogram, fn() -> Histogram>,
    lateness: Histogram,
    transitions: Counter,
    conflicts: Counter,
    /// Where operators show what their TDSets are doing.
    pub tdsets: Boards<tdset::Line>,
    /// Where operators show how their EtcdClusters are.
    pub etcdclusters: Boards<etcdcluster::Line>,
}

impl Default for Numbers {
    fn default() -> Self {
        let durations: fn() -> Histogram = || Histogram::new(DURATIONS);
        Self {
            passes: Family::default(),
            durations: Family::new_with_constructor(durations),
            lateness: Histogram::new(LATENESSES),
            transitions: Counter::default(),
            conflicts: Counter::default(),
            tdsets: Boards::default(),
            etcdclusters: Boards::default(),
        }
    }
}

impl Numbers {
    /// Puts them on the page of `registry`. The names of the first two are those of controller-runtime.
    pub fn register(&self, registry: &mut Registry) {
        let runtime = registry.sub_registry_with_prefix("controller_runtime");
        runtime.register("reconcile", "Passes by controller and result", self.passes.clone());
        runtime.register("reconcile_time_seconds", "Seconds that a pass took", self.durations.clone());
        let zones = Info::new([("version", time_zone::database_version())]);
        registry.register("gatehouse_tzdb", "Release of the time zone database inside", zones);
        let tdset = registry.sub_registry_with_prefix("gatehouse_tdset");
        let help = "Transitions that were carried out";
        tdset.register("transitions", help, self.transitions.clone());
        let help = "Times that somebody else turned out to have a hand in a workload";
        tdset.register("conflicts", help, self.conflicts.clone());
        tdset.register_collector(Box::new(self.tdsets.clone()));
        tdset.register(
            "transition_lateness_seconds",
            "Seconds from when a timetable asked for a count until it was written",
            self.lateness.clone(),
        );
        let etcdcluster = registry.sub_registry_with_prefix("gatehouse_etcdcluster");
        etcdcluster.register_collector(Box::new(self.etcdclusters.clone()));
    }

    /// A pass ended.
    pub fn passed(&self, controller: &'static str, result: &'static str, took: Duration) {
        self.passes.get_or_create(&Pass { controller, result }).inc();
        self.durations.get_or_create(&Of { controller }).observe(took.as_secs_f64());
    }

    /// A transition was carried out that late.
    pub fn transition(&self, lateness: Duration) {
        self.transitions.inc();
        self.lateness.observe(lateness.as_secs_f64());
    }

    /// Somebody else turned out to have a hand in a workload.
    pub fn conflict(&self) {
        self.conflicts.inc();
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Numbers")
    }
}
