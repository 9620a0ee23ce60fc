//! Objects that are not worked, and those whose status the API server refuses, for the metrics page: neither can say by
//! the metrics of its kind what is wrong.

use super::object_metrics::{Line, Metric, MetricKind, Sample};

/// What is shown of an object.
#[derive(Clone, Debug)]
pub struct Problems {
    /// Its kind.
    pub kind: &'static str,
    /// The reasons of its condition or of its event.
    pub reasons: Vec<&'static str>,
}

impl Line for Problems {
    const METRICS: &'static [Metric] = &[Metric {
        name: "object_problem",
        help: "1 for each reason why an object is not worked or its status not written, such as NamespaceRefused",
        kind: MetricKind::Gauge,
    }];

    fn samples(&self, _metric: &str) -> Vec<Sample> {
        let sample = |reason: &&str| {
            let Sample { mut labels, value } = Sample::problem(reason);
            labels.insert(0, ("kind", self.kind.to_owned()));
            Sample { labels, value }
        };
        self.reasons.iter().map(sample).collect()
    }
}
