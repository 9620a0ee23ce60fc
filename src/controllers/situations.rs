//! What users see of objects that need attention: fills the table of the docs, and holds it true. For tests alone.
//!
//! A situation comes from the production code of a kind: its status, its events, and its lines of the metrics page. The
//! columns are those of the definition, the alerts those that the kustomization deploys.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ObjectMeta;
use serde_json::Value;

use super::api_write::Note;
use super::object_metrics::{Line, ObjectMetricsRegistries};
use crate::api::Kind;
use crate::runtime::metrics::Page;

/// One object that needs attention.
pub struct Situation {
    /// The object, with its status. Its name is the situation's.
    pub object: Value,
    /// The events that came with that status.
    pub events: Vec<Note>,
    /// Its lines of the metrics page.
    pub page: Vec<String>,
    /// The type of the condition that says what is wrong.
    pub condition: &'static str,
    /// The series that shows it, as far as its own labels.
    pub series: &'static str,
}

/// The lines of the metrics page of one object.
///
/// # Panics
/// Where the page cannot be written.
pub fn page<L: Line>(prefix: &str, name: &str, line: L) -> Vec<String> {
    let registries = ObjectMetricsRegistries::default();
    let shown = registries.add();
    let metadata = ObjectMeta {
        uid: Some("1".to_owned()),
        name: Some(name.to_owned()),
        namespace: Some("default".to_owned()),
        ..ObjectMeta::default()
    };
    shown.admit(&metadata);
    shown.show(&metadata, line);
    let page = Page::new(|registry| {
        registry.sub_registry_with_prefix(prefix).register_collector(Box::new(registries.clone()));
    });
    let text = page.text().unwrap();
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// Holds the part of a page of the docs that is between the markers against the situations of all kinds.
/// `UPDATE_EXPECTED` writes it. `told` are those that the page begins with, whatever the kind.
///
/// # Panics
/// Where the page is not as it has to be, or lacks one of the situations that it has to have.
pub fn hold(docs: &str, told: &[&str], kinds: &[(&dyn Kind, Vec<Situation>)]) {
    let path = root().join(docs);
    let text = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- situations: begin -->\n", "<!-- situations: end -->");
    let (before, rest) = text.split_once(begin).unwrap_or_else(|| panic!("{docs} has no {begin}"));
    let (shown, after) = rest.split_once(end).unwrap_or_else(|| panic!("{docs} has no {end}"));
    let expected = table(told, kinds);
    if std::env::var_os("UPDATE_EXPECTED").is_some() && std::env::var_os("CI").is_none() {
        std::fs::write(&path, format!("{before}{begin}{expected}{end}{after}")).unwrap();
        return;
    }
    assert_eq!(shown, expected, "{docs} says otherwise: UPDATE_EXPECTED=1 writes it again");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// What `kubectl get` prints of an object, but for its name and its age: each column that is filled.
fn printed(definition: &CustomResourceDefinition, object: &Value) -> String {
    let version = definition.spec.versions.iter().find(|version| version.storage).unwrap();
    let columns = version.additional_printer_columns.iter().flatten();
    let columns = columns.filter(|column| column.priority.unwrap_or_default() == 0 && column.name != "Age");
    let cells = columns.map(|column| (column.name.to_uppercase(), cell(object, &column.json_path)));
    let filled = cells.filter(|(_, cell)| !cell.is_empty());
    filled.map(|(name, cell)| format!("{name} `{cell}`")).collect::<Vec<_>>().join(", ")
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// What a column shows. Paths are of two forms: fields, and a field of the condition of a type.
fn cell(object: &Value, path: &str) -> String {
    let found = match path.split_once("[?(@.type==\"") {
        Some((list, rest)) => {
            let (about, field) = rest.split_once("\")].").unwrap();
            let list = object.pointer(&list.replace('.', "/")).and_then(Value::as_array);
            list.into_iter().flatten().find(|one| one["type"] == about).map(|one| &one[field])
        }
        None => object.pointer(&path.replace('.', "/")),
    };
    match found {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// What `kubectl get` prints, condition, event, metric and alert of each.
fn table(told: &[&str], kinds: &[(&dyn Kind, Vec<Situation>)]) -> String {
    let all = kinds.iter().flat_map(|(kind, situations)| {
        let (names, definition) = (kind.names(), kind.definition());
        situations.iter().map(move |situation| {
            let events = situation.events.iter().map(|note| format!("`{}`", note.reason));
            let name = name(&situation.object);
            let cells = [
                format!("`{name}`"),
                names.kind.to_owned(),
                printed(&definition, &situation.object).replace('|', "\\|"),
                condition(situation),
                or_none(events),
                format!("`{}`", series(situation).replace('|', "\\|")),
                or_none(alerts(&situation.page).into_iter().map(|alert| format!("`{alert}`"))),
            ];
            (told.iter().position(|told| *told == name).unwrap_or(told.len()), cells)
        })
    });
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(place, _)| *place);
    let missing: Vec<_> = (0..told.len())
        .filter(|place| all.iter().all(|(at, _)| at != place))
        .map(|place| told[place])
        .collect();
    assert!(missing.is_empty(), "no kind has {missing:?}");
    let mut text = "| situation | kind | `kubectl get` | condition | event | metric | alert |\n\
                    |---|---|---|---|---|---|---|\n"
        .to_owned();
    for (_, cells) in all {
        writeln!(text, "| {} |", cells.join(" | ")).unwrap();
    }
    text
}

fn or_none(words: impl Iterator<Item = String>) -> String {
    let words: Vec<_> = words.collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

fn condition(situation: &Situation) -> String {
    let conditions = situation.object["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|one| one["type"] == situation.condition).unwrap();
    let text = |field: &str| found[field].as_str().unwrap().replace('|', "\\|");
    format!("`{}` {} `{}`: {}", situation.condition, text("status"), text("reason"), text("message"))
}

/// The series as it stands on the page, without the labels that say which object it is.
fn series(situation: &Situation) -> String {
    let of_object = format!("namespace=\"default\",name=\"{}\"", name(&situation.object));
    let lines = situation.page.iter().map(|line| line.replacen(&of_object, "", 1));
    let lines = lines.map(|line| line.replacen("{,", "{", 1).replacen("{}", "", 1));
    let mut found = lines.filter(|line| line.starts_with(situation.series));
    let line = found.next().unwrap_or_else(|| panic!("no {} in {:#?}", situation.series, situation.page));
    assert_eq!(found.next(), None, "{} names one series", situation.series);
    line
}

/// The alerts that would fire if the page stayed as it is.
fn alerts(page: &[String]) -> Vec<String> {
    let path = root().join("deploy/components/monitoring/prometheusrule.yaml");
    let rules: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let rules = rules["spec"]["groups"][0]["rules"].as_array().unwrap().clone();
    let fires = |rule: &&Value| Comparison::read(rule["expr"].as_str().unwrap()).holds(page);
    rules.iter().filter(fires).map(|rule| rule["alert"].as_str().unwrap().to_owned()).collect()
}

/// An expression of an alert about one object: `[max by (…) (]NAME{…}[)] OP [FACTOR *] NUMBER|NAME{…}`.
struct Comparison<'a> {
    metric: &'a str,
    matchers: Vec<(&'a str, Vec<&'a str>)>,
    operator: &'a str,
    right: &'a str,
}

impl<'a> Comparison<'a> {
    fn read(expression: &'a str) -> Self {
        let (head, rest) = expression.split_once('{').expect("a selector");
        let (labels, rest) = rest.split_once('}').expect("its end");
        let rest = rest.trim_start().trim_start_matches(')').trim_start();
        let (operator, right) = rest.split_once(' ').unwrap_or((rest, ""));
        let matchers = labels.split(',').filter_map(|label| {
            let (label, value) = label.split_once('=')?;
            let value = value.trim_start_matches('~').trim_matches('"');
            Some((label.trim(), value.split('|').collect()))
        });
        // Prometheus adds these to what it scrapes.
        let matchers = matchers.filter(|(label, _)| !["job", "namespace"].contains(label)).collect();
        let metric = head.rsplit(['(', ' ', '\n']).next().unwrap();
        Self { metric, matchers, operator, right: right.trim() }
    }

    /// Whether it holds for a series of the page. Those that look at time or at rates never do.
    fn holds(&self, page: &[String]) -> bool {
        let values = page.iter().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let labels = series.strip_prefix(self.metric)?.strip_prefix('{')?;
            let is_matched = |(label, values): &(&str, Vec<&str>)| {
                values.iter().any(|value| labels.contains(&format!("{label}=\"{value}\"")))
            };
            self.matchers.iter().all(is_matched).then(|| value.parse::<f64>().ok())?
        });
        let right = self.right(page);
        let mut values = values.zip(std::iter::repeat(right));
        values.any(|(value, right)| match (self.operator, right) {
            ("==", Some(right)) => (value - right).abs() < f64::EPSILON,
            ("<", Some(right)) => value < right,
            (">", Some(right)) => value > right,
            _ => false,
        })
    }

    fn right(&self, page: &[String]) -> Option<f64> {
        let (factor, of) = self.right.split_once(" * ").unwrap_or((self.right, ""));
        let factor: f64 = factor.parse().ok()?;
        if of.is_empty() {
            return Some(factor);
        }
        let name = of.split_once('{')?.0;
        let lines = page.iter().filter(|line| line.starts_with(&format!("{name}{{")));
        let values = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        values.map(|value| value * factor).reduce(f64::max)
    }
}
