//! The values of the chart: documented, and refused when they are wrong.

use std::collections::BTreeMap;
use std::fs;

use kit::deploy::{chart, kind, objects, template, variant};
use serde_json::Value;

fn schema() -> Value {
    serde_json::from_str(&fs::read_to_string(chart().join("values.schema.json")).unwrap()).unwrap()
}

fn values() -> Value {
    objects(&fs::read_to_string(chart().join("values.yaml")).unwrap()).remove(0)
}

/// Default and meaning of each value, by its path. What may hold anything is one value.
fn leaves(value: &Value, schema: &Value, path: &str, found: &mut BTreeMap<String, (String, String)>) {
    let Value::Object(properties) = &schema["properties"] else {
        let meaning = schema["description"].as_str().unwrap_or_else(|| panic!("{path} has no description"));
        found.insert(path.to_owned(), (value.to_string(), meaning.to_owned()));
        return;
    };
    assert_eq!(schema["additionalProperties"], false, "{path:?} takes anything");
    let Value::Object(fields) = value else { panic!("{path}: expected an object, not {value}") };
    for (key, value) in fields {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let schema = properties.get(key).unwrap_or_else(|| panic!("{path} is not in the schema"));
        leaves(value, schema, &path, found);
    }
    for key in properties.keys().filter(|key| *key != "global") {
        assert!(fields.contains_key(key), "{path}: {key} is in the schema and has no default");
    }
}

#[test]
fn the_table_of_the_readme_has_every_value_with_its_default_and_meaning() {
    let mut wanted = BTreeMap::new();
    leaves(&values(), &schema(), "", &mut wanted);
    let readme = fs::read_to_string(chart().join("README.md")).unwrap();
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    let mut found = BTreeMap::new();
    for row in rows {
        let mut cells = row.splitn(3, " | ");
        let mut cell = || cells.next().unwrap_or_default().trim_matches('`').to_owned();
        let (path, default, meaning) = (cell(), cell(), cell());
        // Spaces within lists are for readers.
        let default: Value = serde_json::from_str(&default).unwrap_or_else(|_| panic!("{path}: {default}"));
        found.insert(path, (default.to_string(), meaning));
    }
    assert_eq!(found, wanted, "README left, values right");
}

#[track_caller]
fn refused(values: &[&str], says: &[&str]) {
    let error = template(values).expect_err("a refusal");
    for words in says {
        assert!(error.contains(words), "{values:?}: {error}");
    }
}

#[test]
fn wrong_values_are_refused_by_name() {
    refused(&["replica=3"], &["additional properties 'replica' not allowed"]);
    refused(&["image.tagg=edge"], &["at '/image'", "'tagg'"]);
    refused(&["replicas=many"], &["at '/replicas'", "want integer"]);
    refused(&["replicas=0"], &["at '/replicas'", "minimum"]);
    refused(&["certificates.source=certmanager"], &["at '/certificates/source'", "'certManager'"]);
    refused(&["lease.duration=15"], &["at '/lease/duration'"]);
    refused(&["listen.webhookPort=443"], &["at '/listen/webhookPort'", "minimum"]);
    refused(&["watchNamespaces={a,a}"], &["at '/watchNamespaces'"]);
    refused(&["tls.minVersion=1.1"], &["at '/tls/minVersion'"]);
    refused(&["tracing.otlpEndpoint=collector:4318"], &["at '/tracing/otlpEndpoint'"]);
    refused(&["servedVersions={v1,v2}"], &["at '/servedVersions/1'", "'v1alpha1'"]);
    refused(&["migrateStorage=never"], &["at '/migrateStorage'", "want boolean"]);
    refused(&["image.digest=latest"], &["at '/image/digest'"]);
}

#[test]
fn a_chart_without_an_image_says_what_to_set() {
    refused(
        &["image.repository="],
        &["image.repository is not set", "image.repository=registry.example.org/gatehouse"],
    );
}

#[test]
fn values_that_do_not_go_together_are_refused_with_what_would() {
    refused(
        &["installedBy=chart"],
        &["installedBy: chart needs to know what API servers have to trust", "certManager"],
    );
    refused(
        &["installedBy=chart", "certificates.source=secret"],
        &["certificates.caBundle", "now: source secret without caBundle"],
    );
    refused(&["servedVersions={v1alpha1}"], &["servedVersions lacks v1", "now: v1alpha1", "set it to {v1}"]);
    refused(&["installedBy=administrator"], &["certificates.source: gatehouse needs installedBy: gatehouse"]);
}

#[test]
fn policies_that_are_turned_off_are_not_there() {
    let policies = |name: &str| {
        variant(name).iter().filter(|object| kind(object).starts_with("ValidatingAdmissionPolicy")).count()
    };
    assert!(policies("default") > 0);
    assert_eq!(policies("bare"), 0);
}
