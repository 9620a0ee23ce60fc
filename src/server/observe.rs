//! What is seen of a request: one span, the metrics, and a line for each refusal. A decorator: nothing here changes
//! an answer.

use axum::http::StatusCode;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Span, debug_span, info, warn};

use super::route;
use crate::review::{Endpoint, Report};
use crate::runtime::metrics::{Conversion, Request, Review, Webhook, code_label};
use crate::runtime::{Metrics, clock};

/// Paths of faults that one log line names; the rest are counted.
const MOST_FAULTS: usize = 20;

/// A request under way. Its end is seen even where its client goes away before.
pub(super) struct Observed<'a> {
    metrics: &'a Metrics,
    endpoint: Endpoint,
    webhook: &'static str,
    begun: Instant,
    latency: Histogram,
    in_flight: Gauge,
    span: Span,
}

impl<'a> Observed<'a> {
    pub(super) fn begin(metrics: &'a Metrics, endpoint: Endpoint, path: &str) -> Self {
        let webhook = route::label(endpoint, path);
        let in_flight = metrics.in_flight.get_or_create_owned(&Webhook { webhook });
        in_flight.inc();
        Self {
            metrics,
            endpoint,
            webhook,
            begun: clock::instant(),
            latency: metrics.latency.get_or_create_owned(&Webhook { webhook }),
            in_flight,
            span: debug_span!(
                "review",
                webhook,
                uid = Empty,
                kind = Empty,
                operation = Empty,
                object = Empty,
                user = Empty,
                code = Empty
            ),
        }
    }

    pub(super) const fn span(&self) -> &Span {
        &self.span
    }

    /// The request was answered with this status and no review.
    pub(super) fn status(&self, status: StatusCode) {
        let request = Request { webhook: self.webhook, code: code_label(status.as_u16()) };
        self.metrics.requests.get_or_create(&request).inc();
    }

    /// The review was answered.
    pub(super) fn answered(&self, report: &Report) {
        self.status(StatusCode::OK);
        self.count(report);
        if !self.span.is_disabled() {
            self.span.record("uid", &report.uid);
            self.span.record("kind", report.kind);
            self.span.record("operation", report.operation);
            self.span.record("object", &report.object);
            self.span.record("user", &report.user);
            self.span.record("code", report.code);
        }
        match report.code {
            200 => self.span.in_scope(|| tracing::debug!("answered")),
            500.. => self.fail(report),
            _ => self.refuse(report),
        }
    }

    fn count(&self, report: &Report) {
        let review = Review {
            endpoint: self.endpoint.name(),
            kind: report.kind,
            operation: report.operation,
            code: code_label(report.code),
        };
        self.metrics.reviews.get_or_create(&review).inc();
        if self.endpoint == Endpoint::Convert {
            let conversion = Conversion {
                kind: report.kind,
                result: if report.code == 200 { "success" } else { "failure" },
            };
            let objects = u64::try_from(report.objects).unwrap_or(u64::MAX);
            self.metrics.conversion_objects.get_or_create(&conversion).inc_by(objects);
        }
    }

    fn refuse(&self, report: &Report) {
        let named = report.faults.iter().take(MOST_FAULTS).map(String::as_str);
        info!(
            webhook = self.webhook,
            uid = report.uid,
            kind = report.kind,
            operation = report.operation,
            object = report.object,
            user = report.user,
            code = report.code,
            faults = named.collect::<Vec<_>>().join(", "),
            faults_total = report.faults.len(),
            "refused"
        );
    }

    fn fail(&self, report: &Report) {
        warn!(
            webhook = self.webhook,
            uid = report.uid,
            kind = report.kind,
            operation = report.operation,
            object = report.object,
            user = report.user,
            code = report.code,
            "failed to work on a review"
        );
    }
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
