//! Everything that is rendered fits the schemas of Kubernetes, of cert-manager and of the Prometheus operator, unknown
//! fields refused.

use kit::deploy::{IMAGE, Rendered, VARIANTS, chart, everything, outcome, template, tool};

#[track_caller]
fn assert_fits(source: &str, manifests: &str) {
    let schemas = format!("{}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json", tool("schemas").display());
    let words = ["-strict", "-verbose", "-schema-location", &schemas, "-"];
    if let Err(error) = outcome("kubeconform", &words, manifests) {
        panic!("{source}: {error}");
    }
}

#[test]
fn everything_that_is_rendered_fits() {
    for Rendered { source, text, .. } in everything() {
        assert_fits(source, text);
    }
}

#[test]
fn a_field_that_no_schema_knows_is_noticed() {
    let manifests = template(&[]).unwrap().replace("revisionHistoryLimit", "revisionHistory");
    let caught = std::panic::catch_unwind(|| assert_fits("misspelt", &manifests)).unwrap_err();
    let said = caught.downcast_ref::<String>().unwrap();
    assert!(said.contains("revisionHistory"), "{said}");
}

#[test]
fn helm_finds_no_fault_with_the_chart() {
    let chart = chart();
    for (name, values) in VARIANTS {
        let mut words =
            vec!["lint", "--strict", "--quiet", "--kube-version", "1.34.0", chart.to_str().unwrap()];
        words.extend(["--set", IMAGE]);
        words.extend(values.iter().flat_map(|value| ["--set", value]));
        if let Err(error) = outcome("helm", &words, "") {
            panic!("{name}: {error}");
        }
    }
}
