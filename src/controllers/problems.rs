//! Objects that are not worked, and those whose status the API server refuses, for the metrics page: neither can say by
//! the metrics of its kind what is wrong.

use super::object_metrics::{Line, Metric, Sample, gauge};

/// What is shown of an object.
#[derive(Clone, Debug)]
pub struct Problems {
    /// Its kind.
    pub kind: &'static str,
    /// The reasons of its condition or of its event.
    pub reasons: Vec<&'static str>,
}

impl Line for Problems {
    const METRICS: &'static [Metric] = &[gauge(
        "object_problem",
        "1 for each reason why an object is not worked or its status not written, such as NamespaceRefused",
    )];

    fn samples(&self, _metric: &str) -> Vec<Sample> {
        let sample = |reason: &&str| Sample::labelled(&[("kind", self.kind), ("problem", reason)], 1);
        self.reasons.iter().map(sample).collect()
    }
}
