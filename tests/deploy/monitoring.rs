//! Alerts look at numbers that there are.

use std::collections::BTreeSet;
use std::time::Duration;

use gatehouse::cli::serve::{ControllerMetrics, Starts};
use gatehouse::runtime::metrics::{OfKind, Webhook, Which};
use gatehouse::runtime::telemetry::Dropped;
use gatehouse::runtime::{Metrics, leader, otlp};
use kit::deploy::{of_kind, variant};
use serde_json::Value;

/// Every name on the page, with its suffixes.
fn shown() -> BTreeSet<String> {
    let (controllers, elections) = (ControllerMetrics::default(), leader::Numbers::default());
    let metrics = Metrics::new(|registry| {
        controllers.register(registry);
        elections.register(registry);
        Starts::default().register(registry);
        Dropped::default().register(registry);
        otlp::Numbers::default().register(registry);
    });
    // What has labels shows once something has happened.
    metrics.certificate_expiry.get_or_create(&Which { which: "serving" }).set(0.0);
    metrics.latency.get_or_create(&Webhook { webhook: "/validate" }).observe(0.0);
    metrics.conversion_loss.get_or_create(&OfKind { kind: "TDSet" }).inc();
    controllers.reconciliations.ended("tdset", "done", Duration::ZERO);
    controllers.storage.has_older("tdsets.gatehouse.dev", 0);
    let page = metrics.page().text().expect("a page");
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types
        .flat_map(|(name, of_type)| {
            let suffixes: &[&str] = match of_type {
                "counter" => &["_total"],
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            suffixes.iter().map(move |suffix| format!("{name}{suffix}"))
        })
        .collect()
}

/// What stands before `{` in PromQL: in our alerts every metric has a selector.
fn named(expression: &str) -> Vec<&str> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let before = expression.match_indices('{').map(|(at, _)| &expression[..at]);
    before.map(|text| &text[text.trim_end_matches(is_name).len()..]).collect()
}

/// Every alert of the chart.
fn alerts() -> Vec<&'static Value> {
    let rules = of_kind(variant("monitored"), "PrometheusRule");
    let groups = rules[0]["spec"]["groups"].as_array().expect("groups");
    let alerts: Vec<&Value> = groups.iter().flat_map(|group| group["rules"].as_array().unwrap()).collect();
    assert!(!alerts.is_empty());
    alerts
}

/// An alert wakes a person up, who looks for its name.
#[test]
fn the_runbooks_have_a_row_for_every_alert() {
    let path = kit::root().join("docs/etcdcluster/runbooks.md");
    let runbooks = std::fs::read_to_string(path).expect("the runbooks");
    let named = |alert: &&Value| {
        let row = format!("| `{}` |", alert["alert"].as_str().expect("a name"));
        runbooks.lines().any(|line| line.starts_with(&row))
    };
    let missing: Vec<_> =
        alerts().into_iter().filter(|alert| !named(alert)).map(|alert| &alert["alert"]).collect();
    assert!(missing.is_empty(), "docs/etcdcluster/runbooks.md has no row for {missing:?}");
}

#[test]
fn every_metric_of_an_alert_is_on_the_page() {
    let shown = shown();
    for alert in alerts() {
        let names = named(alert["expr"].as_str().expect("an expression"));
        assert!(!names.is_empty(), "{alert}");
        for name in names {
            // `up` is Prometheus's own.
            assert!(name == "up" || shown.contains(name), "{}: {name}; there are {shown:#?}", alert["alert"]);
        }
    }
}

#[test]
fn prometheus_scrapes_one_service() {
    let objects = variant("monitored");
    let endpoint = of_kind(objects, "ServiceMonitor")[0]["spec"]["endpoints"][0]["port"].clone();
    let has_port = |service: &&&Value| {
        service["spec"]["ports"].as_array().unwrap().iter().any(|port| port["name"] == endpoint)
    };
    let services = of_kind(objects, "Service");
    let scraped: Vec<_> = services.iter().filter(has_port).map(|one| &one["metadata"]["name"]).collect();
    assert_eq!(scraped, ["gatehouse-metrics"]);
}
