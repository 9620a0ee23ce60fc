//! What TDSets are doing, for the metrics page. Pure.
//!
//! Guarantees: what is shown is what the status says.

use crate::api::tdset::v1::TDSetStatus;
use crate::controllers::board::{self, Metric, MetricKind, Sample};

/// What is shown of a TDSet.
#[derive(Clone, Debug)]
pub struct Line {
    window: Option<String>,
    scheduled: Option<i32>,
    next: Option<i64>,
}

impl Line {
    /// What the status of an object says.
    #[must_use]
    pub fn of(status: &TDSetStatus) -> Self {
        Self {
            window: status.active_window.clone(),
            scheduled: status.scheduled_replicas,
            next: status.next_transition.as_ref().map(|next| next.time.0.as_second()),
        }
    }
}

impl board::Line for Line {
    const METRICS: &'static [Metric] = &[
        Metric {
            name: "scheduled_replicas",
            help: "Replicas that the timetable asks for now",
            kind: MetricKind::Gauge,
        },
        Metric {
            name: "active_window_info",
            help: "The window or exception that decides now; empty outside all of them",
            kind: MetricKind::Gauge,
        },
        Metric {
            name: "next_transition_timestamp_seconds",
            help: "When the timetable asks for something else next, in seconds since 1970",
            kind: MetricKind::Gauge,
        },
    ];

    fn samples(&self, metric: &str) -> Vec<Sample> {
        let sample = match metric {
            "scheduled_replicas" => self.scheduled.map(|count| Sample::plain(count.into())),
            "active_window_info" => {
                let window = self.window.clone();
                window.map(|window| Sample { labels: vec![("window", window)], value: 1 })
            }
            _ => self.next.map(Sample::plain),
        };
        sample.into_iter().collect()
    }
}
