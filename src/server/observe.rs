//! Observability of a request: one span, the metrics, and a line for each refusal. A decorator: nothing here changes
//! an answer.
//!
//! Guarantees: no more than [`LONGEST`] characters of anything that a client has written get into one field of a line.

use axum::http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Span, debug_span, info, warn};

use super::route;
use crate::review::{Conversions, Endpoint, Report};
use crate::runtime::metrics::{Conversion, DryRun, OfKind, Request, Review, Webhook, code_label};
use crate::runtime::otlp::{self, Parent, Traces};
use crate::runtime::{Metrics, clock};

/// Paths of faults that one log line names; the rest are counted.
const MOST_FAULTS: usize = 20;

/// Characters of one field, or of the path of one fault: a path has keys in it that users make up.
const LONGEST: usize = 128;

/// A request under way. Its end is seen even where its client goes away before.
pub(super) struct Observed<'a> {
    metrics: &'a Metrics,
    endpoint: Endpoint,
    webhook: &'static str,
    /// What the caller's own trace goes by, where there is one.
    trace_id: String,
    begun: Instant,
    latency: Histogram,
    in_flight: Gauge,
    span: Span,
    trace: Option<Trace<'a>>,
}

/// The span for a collector, where there is one that wants it.
struct Trace<'a> {
    traces: &'a Traces,
    parent: Option<Parent>,
    begun: Timestamp,
}

impl<'a> Observed<'a> {
    pub(super) fn begin(
        metrics: &'a Metrics,
        traces: &'a Traces,
        endpoint: Endpoint,
        path: &str,
        headers: &HeaderMap,
    ) -> Self {
        let parent = Parent::of(headers);
        let is_wanted = traces.wants(parent.as_ref());
        let trace_id = trace_id(headers).unwrap_or_default();
        let webhook = route::label(endpoint, path);
        let in_flight = metrics.in_flight.get_or_create_owned(&Webhook { webhook });
        in_flight.inc();
        let span = debug_span!(
            "review",
            webhook,
            trace_id,
            uid = Empty,
            kind = Empty,
            operation = Empty,
            object = Empty,
            user = Empty,
            dry_run = Empty,
            code = Empty
        );
        Self {
            metrics,
            endpoint,
            webhook,
            trace_id: trace_id.to_owned(),
            begun: clock::instant(),
            latency: metrics.latency.get_or_create_owned(&Webhook { webhook }),
            in_flight,
            span,
            trace: is_wanted.then(|| Trace { traces, parent, begun: clock::now() }),
        }
    }

    pub(super) const fn span(&self) -> &Span {
        &self.span
    }

    /// The request was answered with this status and no review.
    pub(super) fn turned_away(&self, status: StatusCode) {
        self.status(status);
        self.trace(status, None);
    }

    fn status(&self, status: StatusCode) {
        let request = Request { webhook: self.webhook, code: code_label(status.as_u16()) };
        self.metrics.requests.get_or_create(&request).inc();
    }

    /// The review was answered.
    pub(super) fn answered(&self, report: &Report) {
        self.status(StatusCode::OK);
        self.count(report);
        self.trace(StatusCode::OK, Some(report));
        if !self.span.is_disabled() {
            self.span.record("uid", cut(&report.uid));
            self.span.record("kind", report.kind);
            self.span.record("operation", report.operation);
            self.span.record("object", cut(&report.object));
            self.span.record("user", cut(&report.user));
            self.span.record("dry_run", report.dry_run);
            self.span.record("code", report.code);
        }
        match report.code {
            200 => self.span.in_scope(|| tracing::debug!("answered")),
            500.. => self.fail(report),
            _ => self.refuse(report),
        }
    }

    /// Who asked is in the audit log of the API server, and not in traces, which others read.
    fn trace(&self, status: StatusCode, report: Option<&Report>) {
        let Some(Trace { traces, parent, begun }) = &self.trace else { return };
        let mut attributes = vec![("http.response.status_code", status.as_u16().into())];
        if let Some(report) = report {
            attributes.extend([
                ("gatehouse.uid", cut(&report.uid).into()),
                ("gatehouse.kind", report.kind.into()),
                ("gatehouse.operation", report.operation.into()),
                ("gatehouse.object", cut(&report.object).into()),
                ("gatehouse.dry_run", report.dry_run.into()),
                ("gatehouse.code", report.code.into()),
            ]);
        }
        let code = report.map_or(status.as_u16(), |report| report.code);
        // By the clock that never goes back: the other may jump between both.
        let ended = begun.checked_add(self.begun.elapsed()).unwrap_or(*begun);
        let (parent, begun) = (*parent, *begun);
        let name = self.webhook;
        traces.tell(otlp::Span { parent, name, begun, ended, has_failed: code >= 500, attributes });
    }

    fn count(&self, report: &Report) {
        let review = Review {
            endpoint: self.endpoint.name(),
            kind: report.kind,
            operation: report.operation,
            code: code_label(report.code),
        };
        self.metrics.reviews.get_or_create(&review).inc();
        if report.dry_run {
            let dry_run = DryRun { webhook: self.webhook, kind: report.kind };
            self.metrics.dry_runs.get_or_create(&dry_run).inc();
        }
        let result = if report.code == 200 { "success" } else { "failure" };
        for &Conversions { kind, from, to, objects, lost } in &report.conversions {
            let conversion = Conversion { from, to, kind, result };
            self.metrics.conversion_objects.get_or_create(&conversion).inc_by(objects);
            // Nothing of a review that failed is shown.
            if lost > 0 && report.code == 200 {
                self.metrics.conversion_loss.get_or_create(&OfKind { kind }).inc_by(lost);
            }
        }
    }

    fn refuse(&self, report: &Report) {
        let named = report.faults.iter().take(MOST_FAULTS).map(|fault| cut(fault));
        info!(
            webhook = self.webhook,
            trace_id = self.trace_id,
            uid = cut(&report.uid),
            kind = report.kind,
            operation = report.operation,
            object = cut(&report.object),
            user = cut(&report.user),
            dry_run = report.dry_run,
            code = report.code,
            errors = named.collect::<Vec<_>>().join(", "),
            errors_total = report.faults.len(),
            "refused"
        );
    }

    fn fail(&self, report: &Report) {
        warn!(
            webhook = self.webhook,
            trace_id = self.trace_id,
            uid = cut(&report.uid),
            kind = report.kind,
            operation = report.operation,
            object = cut(&report.object),
            user = cut(&report.user),
            dry_run = report.dry_run,
            code = report.code,
            "failed to work on a review"
        );
    }
}

/// The beginning of a text, as far as a line has room for it.
fn cut(text: &str) -> &str {
    text.char_indices().nth(LONGEST).map_or(text, |(end, _)| &text[..end])
}

/// The trace that the caller is in, by its `traceparent` (W3C Trace Context, version 00).
fn trace_id(headers: &HeaderMap) -> Option<&str> {
    let mut parts = headers.get("traceparent")?.to_str().ok()?.split('-');
    let (_version, id) = (parts.next()?, parts.next()?);
    let is_sound = id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_sound && id.bytes().any(|byte| byte != b'0')).then_some(id)
}

impl Drop for Observed<'_> {
    fn drop(&mut self) {
        self.in_flight.dec();
        self.latency.observe(self.begun.elapsed().as_secs_f64());
    }
}

/// Counts a request that no route took.
pub(super) fn elsewhere(metrics: &Metrics, status: StatusCode) {
    let request = Request { webhook: route::ELSEWHERE, code: code_label(status.as_u16()) };
    metrics.requests.get_or_create(&request).inc();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"ü".repeat(LONGEST + 1)), "ü".repeat(LONGEST));
    }

    #[test]
    fn only_a_valid_trace_is_passed_on() {
        let of = |value: &'static str| {
            let headers: HeaderMap =
                [("traceparent".parse().unwrap(), value.parse().unwrap())].into_iter().collect();
            trace_id(&headers).map(str::to_owned)
        };
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").as_deref(), Some(id));
        for unsound in [
            "",
            "00",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-0-0",
            "00-abc-0-0",
            "00-00000000000000000000000000000000-0-0",
        ] {
            assert_eq!(of(unsound), None, "{unsound}");
        }
    }
}
