//! Spans of reviews for a collector: OTLP over HTTP, in protobuf.
//!
//! ```text
//!   review ──▶ spans that wait, up to a limit ──▶ one task: batches ──POST──▶ collector
//!                 └▶ counted, where there is no room       └▶ counted, where it takes none
//! ```
//!
//! Guarantees: recording a span waits for nothing; a collector that is down, slow or says no costs spans, which
//! are counted, and nothing else; a trace whose caller does not record it is not recorded here either.
//! Never: sends anything of an object, or who asked; tries twice.
//!
//! Why by hand: what is needed of the protocol is a dozen fields of prost, which is here for etcd, and hyper's client,
//! which is too. opentelemetry-otlp with tracing-opentelemetry would be thirteen crates more, with another major of
//! rand, and its batches are sent by a thread that blocks, for which it wants an HTTP client that does.

mod context;
mod export;
mod message;

use std::fmt;

use aws_lc_rs::rand;
use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use tokio::sync::mpsc;

pub use context::Parent;
pub use export::{Endpoint, Exporter, InvalidEndpoint, Unusable};
pub use message::Value;

/// Spans that may wait.
const MOST: usize = 2048;

/// The span of one review.
#[derive(Clone, Debug)]
pub struct Span {
    /// The caller's span; without it the review is a trace of its own.
    pub parent: Option<Parent>,
    /// What was asked for: a path that is known at compile time, or derived from the table of kinds.
    pub name: &'static str,
    /// When it began.
    pub begun: Timestamp,
    /// When it was answered.
    pub ended: Timestamp,
    /// It failed for a reason of ours.
    pub has_failed: bool,
    /// More of it.
    pub attributes: Vec<(&'static str, Value)>,
}

/// How many spans became what. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    exported: Counter,
    dropped: Counter,
}

impl Numbers {
    /// Puts them on the page of `registry`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("gatehouse");
        registry.register("spans_exported", "Spans that the collector took", self.exported.clone());
        registry.register("spans_dropped", "Spans that no collector took in time", self.dropped.clone());
    }
}

/// Where spans are recorded. Clones share it; the default one records nothing.
#[derive(Clone, Default)]
pub struct Traces(Option<Sink>);

#[derive(Clone)]
struct Sink {
    spans: mpsc::Sender<Span>,
    numbers: Numbers,
}

impl Traces {
    /// Those that this exporter sends.
    #[must_use]
    pub fn to(endpoint: Endpoint, numbers: Numbers) -> (Self, Exporter) {
        let (spans, told) = mpsc::channel(MOST);
        let exporter = Exporter::new(endpoint, told, numbers.clone());
        (Self(Some(Sink { spans, numbers })), exporter)
    }

    /// Whether the span of a review with that parent is recorded.
    #[must_use]
    pub fn wants(&self, parent: Option<&Parent>) -> bool {
        self.0.is_some() && parent.is_none_or(|parent| parent.is_sampled)
    }

    /// Records a review that has been answered.
    pub fn tell(&self, span: Span) {
        let Some(sink) = &self.0 else { return };
        if sink.spans.try_send(span).is_err() {
            sink.numbers.dropped.inc();
        }
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "Traces(on)" } else { "Traces(off)" })
    }
}

/// A unique id.
fn fresh<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut id = [0; LENGTH];
    // The system has random bytes; did it not, no TLS connection would have brought this review.
    let _always = rand::fill(&mut id);
    id
}

impl Span {
    fn message(self) -> message::Span {
        let trace_id = self.parent.map_or_else(fresh, |parent| parent.trace_id);
        let attributes = self.attributes.into_iter().map(|(key, value)| message::attribute(key, value));
        message::Span {
            trace_id: trace_id.to_vec(),
            span_id: fresh::<8>().to_vec(),
            parent_span_id: self.parent.map_or_else(Vec::new, |parent| parent.span_id.to_vec()),
            name: self.name.to_owned(),
            kind: message::SERVER,
            start_time_unix_nano: nanoseconds(self.begun),
            end_time_unix_nano: nanoseconds(self.ended.max(self.begun)),
            attributes: attributes.collect(),
            status: self.has_failed.then_some(message::Status { code: message::ERROR }),
            // It is recorded, or it would not be here.
            flags: 1,
        }
    }
}

fn nanoseconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_nanosecond()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(is_sampled: bool) -> Parent {
        Parent { trace_id: [1; 16], span_id: [2; 8], is_sampled }
    }

    fn span(parent: Option<Parent>) -> Span {
        let time = Timestamp::UNIX_EPOCH;
        Span {
            parent,
            name: "/validate",
            begun: time,
            ended: time,
            has_failed: false,
            attributes: Vec::new(),
        }
    }

    #[test]
    fn a_span_is_its_parents_child_or_a_trace_of_its_own() {
        let child = span(Some(parent(true))).message();
        assert_eq!((child.trace_id, child.parent_span_id), (vec![1; 16], vec![2; 8]));
        let (one, other) = (span(None).message(), span(None).message());
        assert_eq!((one.trace_id.len(), one.span_id.len(), one.parent_span_id.len()), (16, 8, 0));
        assert_ne!((one.trace_id, one.span_id), (other.trace_id, other.span_id));
    }

    #[test]
    fn a_trace_that_its_caller_does_not_record_is_not_recorded() {
        assert!(!Traces::default().wants(None));
        let (traces, _exporter) = Traces::to("http://localhost:4318".parse().unwrap(), Numbers::default());
        assert!(traces.wants(None) && traces.wants(Some(&parent(true))));
        assert!(!traces.wants(Some(&parent(false))));
    }

    #[test]
    fn spans_that_are_not_sent_are_dropped_and_counted() {
        let numbers = Numbers::default();
        let (traces, _exporter) = Traces::to("http://localhost:4318".parse().unwrap(), numbers.clone());
        for _ in 0..MOST + 3 {
            traces.tell(span(None));
        }
        assert_eq!(numbers.dropped.get(), 3);
    }
}
