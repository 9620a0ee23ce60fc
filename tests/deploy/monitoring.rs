//! Alerts look at numbers that there are.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gatehouse::cli::serve::{ControllerMetrics, Starts};
use gatehouse::runtime::metrics::{OfKind, Webhook, Which};
use gatehouse::runtime::telemetry::Dropped;
use gatehouse::runtime::{Metrics, leader, otlp};
use kit::deploy::{of_kind, rendered, variant};
use serde_json::Value;

/// Every name on the page with its suffixes, and the labels of its series where it has one.
fn shown() -> BTreeMap<String, BTreeSet<String>> {
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
    let names = types.flat_map(|(name, of_type)| {
        let suffixes: &[&str] = match of_type {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        suffixes.iter().map(move |suffix| (format!("{name}{suffix}"), BTreeSet::new()))
    });
    let mut shown: BTreeMap<_, BTreeSet<_>> = names.collect();
    let series = page.lines().filter(|line| !line.starts_with('#'));
    for (name, rest) in series.filter_map(|line| line.split_once('{')) {
        // The series of an info have a name that is longer than that of their type, and are in no alert.
        let Some(of) = shown.get_mut(name) else { continue };
        of.extend(labels(rest).into_iter().map(str::to_owned));
    }
    shown
}

/// What stands before `="`, `=~"` and their like.
fn labels(text: &str) -> BTreeSet<&str> {
    let before_values = text.split('"').step_by(2).filter(|text| text.ends_with(['=', '~']));
    before_values.map(|text| last_word(text.trim_end_matches(['=', '~', '!']))).collect()
}

/// The name at the end of a text.
fn last_word(text: &str) -> &str {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    &text[text.trim_end_matches(is_name).len()..]
}

/// What stands before `{` in PromQL, and the labels by which it is selected: in our alerts every metric has a selector.
fn selected(expression: &str) -> Vec<(&str, BTreeSet<&str>)> {
    let selectors = expression.match_indices('{').map(|(at, _)| expression.split_at(at));
    selectors
        .map(|(before, rest)| (last_word(before), labels(rest.split('}').next().unwrap_or_default())))
        .collect()
}

/// The labels that an aggregation keeps, such as `max by (definition)`: in our alerts each metric has them.
fn grouped(expression: &str) -> BTreeSet<&str> {
    let lists = expression.split("by (").skip(1).filter_map(|rest| rest.split(')').next());
    lists.flat_map(|list| list.split(", ")).collect()
}

/// Every alert of the chart.
fn alerts() -> Vec<&'static Value> {
    let rules = of_kind(variant("monitored"), "PrometheusRule");
    let groups = rules[0]["spec"]["groups"].as_array().expect("groups");
    let alerts: Vec<&Value> = groups.iter().flat_map(|group| group["rules"].as_array().unwrap()).collect();
    assert!(!alerts.is_empty());
    alerts
}

/// Pages of `docs/runbooks` without an alert: the table of all alerts, and the problems of an EtcdCluster by reason.
const OTHER_PAGES: [&str; 2] = ["README.md", "etcdcluster.md"];

/// The parts that each runbook has.
const PARTS: [&str; 3] = ["\n## Meaning\n", "\n## What gatehouse does\n", "\n## What to do\n"];

/// An alert wakes a person up, who opens the page with its name.
#[test]
fn each_alert_has_a_runbook_and_no_other_page_is_there() {
    let folder = kit::root().join("docs/runbooks");
    let names = alerts().into_iter().map(|alert| alert["alert"].as_str().expect("a name"));
    let names: BTreeSet<&str> = names.collect();
    let pages = std::fs::read_dir(&folder).expect("the runbooks");
    let pages = pages.map(|page| page.expect("a page").file_name().into_string().expect("UTF-8"));
    let pages: BTreeSet<String> = pages.collect();
    let expected = names.iter().map(|name| format!("{name}.md"));
    let expected: BTreeSet<String> = expected.chain(OTHER_PAGES.map(str::to_owned)).collect();
    assert_eq!(
        pages, expected,
        "left: files of docs/runbooks, right: one for each alert, and {OTHER_PAGES:?}"
    );
    let read = |page: &str| std::fs::read_to_string(folder.join(page)).expect("a page");
    let table = read("README.md");
    for name in names {
        let row = format!("| [{name}]({name}.md) |");
        assert!(table.contains(&row), "docs/runbooks/README.md has no row for {name}");
        let page = read(&format!("{name}.md"));
        assert!(page.starts_with(&format!("# {name}\n")), "docs/runbooks/{name}.md has another title");
        let missing: Vec<_> = PARTS.iter().filter(|part| !page.contains(**part)).collect();
        assert!(missing.is_empty(), "docs/runbooks/{name}.md has no {missing:?}");
    }
}

/// Labels that Prometheus adds to what it scrapes.
const OF_THE_TARGET: [&str; 3] = ["job", "namespace", "pod"];

#[test]
fn every_metric_and_label_of_an_alert_is_on_the_page() {
    let shown = shown();
    for alert in alerts() {
        let expression = alert["expr"].as_str().expect("an expression");
        let (selected, grouped) = (selected(expression), grouped(expression));
        assert!(!selected.is_empty(), "{alert}");
        // `up` is Prometheus's own.
        for (name, selectors) in selected.into_iter().filter(|(name, _)| *name != "up") {
            let labels = shown.get(name);
            let labels = labels.unwrap_or_else(|| panic!("{}: {name}; there are {shown:#?}", alert["alert"]));
            let is_there =
                |label: &str| OF_THE_TARGET.contains(&label) || labels.is_empty() || labels.contains(label);
            let lacks: Vec<_> = selectors.iter().chain(&grouped).filter(|&&label| !is_there(label)).collect();
            assert!(lacks.is_empty(), "{}: {name} has no {lacks:?}, but {labels:?}", alert["alert"]);
        }
    }
}

/// The metrics of an object have its namespace, and so have its alerts: they go to the owners of the object.
#[test]
fn alerts_of_objects_have_the_namespace_of_the_object() {
    for objects in [variant("monitored"), rendered("overlays/monitoring")] {
        assert_eq!(of_kind(objects, "ServiceMonitor")[0]["spec"]["endpoints"][0]["honorLabels"], true);
    }
    let kinds = ["object_problem", "tdset_", "databasemigration_", "etcdcluster_"];
    let mut count = 0;
    for alert in alerts() {
        let expression = alert["expr"].as_str().expect("an expression");
        for (name, selectors) in selected(expression) {
            let metric = name.strip_prefix("gatehouse_").unwrap_or_default();
            if kinds.iter().any(|kind| metric.starts_with(kind)) {
                assert!(!selectors.contains("namespace"), "{}: {expression}", alert["alert"]);
                count += 1;
            }
        }
    }
    assert!(count > 10, "{count} alerts of objects");
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
