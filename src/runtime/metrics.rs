//! The metrics that `/metrics` shows.
//!
//! Guarantees: every label value is known at compile time or derived from the table of kinds, so that no caller
//! can make series. The names of the first three are those of controller-runtime, so that its dashboards and
//! alerts fit.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// `{webhook}`: the path of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Webhook {
    /// Such as `/validate/tdsets`.
    pub webhook: &'static str,
}

/// `{webhook,code}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Request {
    /// The path of the endpoint.
    pub webhook: &'static str,
    /// The HTTP status: 200 for every review that was answered, whatever the answer says.
    pub code: &'static str,
}

/// `{endpoint,kind,operation,code}`: what the answers say.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Review {
    /// `mutate`, `validate` or `convert`.
    pub endpoint: &'static str,
    /// A known kind, or empty.
    pub kind: &'static str,
    /// `CREATE`, `UPDATE`, `DELETE`, or empty.
    pub operation: &'static str,
    /// The code inside the review: 200 for allowed or converted.
    pub code: &'static str,
}

/// `{from,to,kind,result}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Conversion {
    /// The version that the object came in, or empty.
    pub from: &'static str,
    /// The version that was asked for, or empty.
    pub to: &'static str,
    /// A known kind, or empty.
    pub kind: &'static str,
    /// `success` or `failure`.
    pub result: &'static str,
}

/// `{kind}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfKind {
    /// A known kind, or empty.
    pub kind: &'static str,
}

/// `{webhook,kind}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DryRun {
    /// The path of the endpoint.
    pub webhook: &'static str,
    /// A known kind, or empty.
    pub kind: &'static str,
}

/// `{reason}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Reason {
    /// One word.
    pub reason: &'static str,
}

/// `{which}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Which {
    /// `serving`, `authority`.
    pub which: &'static str,
}

/// Upper bounds of the latency histogram, in seconds: finer than controller-runtime's where reviews really end.
const LATENCY_BUCKETS: [f64; 14] =
    [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

type Latency = Family<Webhook, Histogram, fn() -> Histogram>;

/// Metrics that a Prometheus server scrapes together. Clones share them.
#[derive(Clone)]
pub struct Page(Arc<Registry>);

impl Page {
    /// Those that `fill` registers.
    pub fn new(fill: impl FnOnce(&mut Registry)) -> Self {
        let mut registry = Registry::default();
        fill(&mut registry);
        Self(Arc::new(registry))
    }

    /// The page in the `OpenMetrics` text format.
    ///
    /// # Errors
    /// When a metric cannot be written, which only a faulty collector could cause.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.0)?;
        Ok(page)
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Page")
    }
}

/// Every metric of the gate. Clones share them.
#[derive(Clone, Debug)]
pub struct Metrics {
    page: Page,
    /// HTTP answers by path and status.
    pub requests: Family<Request, Counter>,
    /// Seconds from the head of a request to its answer.
    pub latency: Latency,
    /// Requests that are being processed.
    pub in_flight: Family<Webhook, Gauge>,
    /// Reviews by what was answered.
    pub reviews: Family<Review, Counter>,
    /// Admission reviews of requests that store nothing.
    pub dry_runs: Family<DryRun, Counter>,
    /// Objects in conversion reviews.
    pub conversion_objects: Family<Conversion, Counter>,
    /// Objects shown in the older version without what only the newer one can say, since it did not fit.
    pub conversion_loss: Family<OfKind, Counter>,
    /// Reviews that panicked, each answered with a failure.
    pub panics: Counter,
    /// Requests turned away because too many were in flight.
    pub shed: Counter,
    /// 1 while draining.
    pub draining: Gauge,
    /// Connections accepted.
    pub connections: Counter,
    /// Connections open.
    pub connections_open: Gauge,
    /// Connections ended by the server because the client was silent for too long.
    pub connections_closed: Family<Reason, Counter>,
    /// Handshakes that failed, by `timeout` or `tls`.
    pub handshake_failures: Family<Reason, Counter>,
    /// Accepts that failed.
    pub accept_failures: Counter,
    /// When certificates end, in seconds since 1970.
    pub certificate_expiry: Family<Which, Gauge<f64, AtomicU64>>,
    /// Authorities that the CA bundles of the API server's clients have in common, as they were last read back; 0 where
    /// they are not read.
    pub bundle_certificates: Gauge,
    /// 1 while the last attempt to install, or to correct what is installed, failed.
    pub installation_failing: Gauge,
    /// 1 while the last look at the certificates failed.
    pub certificates_failing: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(|_registry| {})
    }
}

impl Metrics {
    /// All of them at zero. `more` adds the metrics of other parts to the same page.
    pub fn new(more: impl FnOnce(&mut Registry)) -> Self {
        let buckets: fn() -> Histogram = || Histogram::new(LATENCY_BUCKETS);
        let mut metrics = Self {
            page: Page::new(|_registry| {}),
            requests: Family::default(),
            latency: Family::new_with_constructor(buckets),
            in_flight: Family::default(),
            reviews: Family::default(),
            dry_runs: Family::default(),
            conversion_objects: Family::default(),
            conversion_loss: Family::default(),
            panics: Counter::default(),
            shed: Counter::default(),
            draining: Gauge::default(),
            connections: Counter::default(),
            connections_open: Gauge::default(),
            connections_closed: Family::default(),
            handshake_failures: Family::default(),
            accept_failures: Counter::default(),
            certificate_expiry: Family::default(),
            bundle_certificates: Gauge::default(),
            installation_failing: Gauge::default(),
            certificates_failing: Gauge::default(),
        };
        metrics.page = Page::new(|registry| {
            metrics.register_requests(registry.sub_registry_with_prefix("controller_runtime_webhook"));
            metrics.register_gate(registry.sub_registry_with_prefix("gatehouse"));
            more(registry);
        });
        metrics
    }

    fn register_requests(&self, registry: &mut Registry) {
        registry.register("requests", "HTTP answers by path and status", self.requests.clone());
        registry.register(
            "latency_seconds",
            "Seconds from the head of a request to its answer",
            self.latency.clone(),
        );
        registry.register("requests_in_flight", "Requests that are being worked on", self.in_flight.clone());
    }

    fn register_gate(&self, registry: &mut Registry) {
        registry.register("reviews", "Reviews by what was answered", self.reviews.clone());
        registry.register("dry_runs", "Reviews of requests that store nothing", self.dry_runs.clone());
        registry.register(
            "conversion_objects",
            "Objects in conversion reviews; where a review failed, those that were read, none of which was converted",
            self.conversion_objects.clone(),
        );
        registry.register(
            "conversion_loss",
            "Objects shown as v1alpha1 without what only v1 can say, since it did not fit into annotations",
            self.conversion_loss.clone(),
        );
        registry.register("panics", "Reviews that panicked", self.panics.clone());
        registry.register("requests_shed", "Requests turned away with 503", self.shed.clone());
        registry.register("draining", "1 while draining", self.draining.clone());
        registry.register("connections", "Connections accepted", self.connections.clone());
        registry.register("connections_open", "Connections open", self.connections_open.clone());
        registry.register(
            "connections_closed",
            "Connections ended because the client was silent",
            self.connections_closed.clone(),
        );
        registry.register(
            "handshake_failures",
            "TLS handshakes that failed",
            self.handshake_failures.clone(),
        );
        registry.register("accept_failures", "Accepts that failed", self.accept_failures.clone());
        registry.register(
            "certificate_expiry_timestamp_seconds",
            "When certificates end, in seconds since 1970",
            self.certificate_expiry.clone(),
        );
        registry.register(
            "bundle_certificates",
            "Authorities that the CA bundles by which API servers verify the gate have in common, as last read back",
            self.bundle_certificates.clone(),
        );
        registry.register(
            "installation_failing",
            "1 while the last attempt to install, or to correct what is installed, failed",
            self.installation_failing.clone(),
        );
        registry.register(
            "certificates_failing",
            "1 while the last look at the certificates failed",
            self.certificates_failing.clone(),
        );
    }

    /// All of them.
    #[must_use]
    pub const fn page(&self) -> &Page {
        &self.page
    }
}

/// `code` as a label. Codes that reviews do not have become `other`.
#[must_use]
pub const fn code_label(code: u16) -> &'static str {
    match code {
        200 => "200",
        400 => "400",
        401 => "401",
        403 => "403",
        404 => "404",
        405 => "405",
        409 => "409",
        413 => "413",
        415 => "415",
        422 => "422",
        500 => "500",
        503 => "503",
        504 => "504",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_names_that_dashboards_know() {
        let metrics = Metrics::default();
        let request = Request { webhook: "/validate", code: code_label(200) };
        metrics.requests.get_or_create(&request).inc();
        metrics.latency.get_or_create(&Webhook { webhook: "/validate" }).observe(0.002);
        let page = metrics.page().text().unwrap();
        for line in [
            r#"controller_runtime_webhook_requests_total{webhook="/validate",code="200"} 1"#,
            r#"controller_runtime_webhook_latency_seconds_bucket{le="0.0025",webhook="/validate"} 1"#,
            "gatehouse_panics_total 0",
            "gatehouse_draining 0",
        ] {
            assert!(page.lines().any(|one| one == line), "{line} is not in\n{page}");
        }
    }
}
