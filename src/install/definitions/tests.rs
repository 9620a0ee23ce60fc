use serde_json::json;

use super::*;
use crate::install::{Address, INSTALLED_BY};

#[test]
fn a_definition_keeps_what_it_has_and_gets_a_conversion() {
    let mut definition = CustomResourceDefinition::default();
    definition.metadata.name = Some("tdsets.gatehouse.dev".to_owned());
    definition.metadata.annotations = Some([("a".to_owned(), "b".to_owned())].into());
    let plan = Plan::at(Address::from_url("https://[::1]:9443/").unwrap());
    let definition = with_conversion(definition, &plan);
    assert_eq!(definition.metadata.name.as_deref(), Some("tdsets.gatehouse.dev"));
    let annotations = definition.metadata.annotations.unwrap();
    assert_eq!(annotations["a"], "b");
    assert_eq!(annotations[INSTALLED_BY], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        serde_json::to_value(definition.spec.conversion).unwrap(),
        json!({
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"url": "https://[::1]:9443/convert"},
                "conversionReviewVersions": ["v1"],
            },
        })
    );
}

#[test]
fn base_urls_are_taken_and_anything_else_is_refused_with_what_is_allowed() {
    let url = |host: &str, port| Address::Url { host: host.to_owned(), port };
    assert_eq!(Address::from_url("https://gate.example").unwrap(), url("gate.example", 443));
    assert_eq!(Address::from_url("https://127.0.0.1:9443/").unwrap(), url("127.0.0.1", 9443));
    assert_eq!(Address::from_url("https://[::1]:9443").unwrap(), url("::1", 9443));
    for bad in [
        "",
        "gate.example",
        "http://gate.example",
        "https://",
        "https://gate.example/path",
        "https://gate.example?query",
        "https://user@gate.example",
        "https://gate.example:port",
        "https://gate.example:99999",
    ] {
        let message = Address::from_url(bad).unwrap_err().to_string();
        assert!(message.contains(&format!("{bad:?}")) && message.contains("https://host:port"), "{message}");
    }
}

#[test]
fn a_service_is_called_by_the_name_that_its_certificate_carries() {
    let address =
        Address::Service { name: "gatehouse".to_owned(), namespace: "system".to_owned(), port: 443 };
    assert_eq!(address.server_name(), "gatehouse.system.svc");
    assert!(address.names().contains(&address.server_name()));
    assert_eq!(address.to_string(), "service system/gatehouse:443");
}

#[test]
fn a_version_that_is_not_served_stays_in_the_definition() {
    let served: Served = "v1".parse().unwrap();
    let plan = Plan { served, ..Plan::at(Address::from_url("https://[::1]:9443").unwrap()) };
    for definition in all(&plan) {
        let versions: Vec<_> =
            definition.spec.versions.iter().map(|one| (one.name.as_str(), one.served, one.storage)).collect();
        assert_eq!(versions, [("v1", true, true), ("v1alpha1", false, false)]);
    }
    assert_eq!("v1, v1alpha1".parse::<Served>().unwrap(), Served::default());
    assert_eq!(Served::default().to_string().parse::<Served>().unwrap(), Served::default());
    for (wrong, says) in
        [("v1alpha1", "lacks v1"), ("", "unknown version"), ("v1,v2", "unknown version \"v2\"")]
    {
        let error = wrong.parse::<Served>().unwrap_err().to_string();
        assert!(error.contains(says), "{wrong}: {error}");
    }
}

#[test]
fn what_is_served_is_written_as_it_is_asked_for() {
    assert_eq!(Served::default().to_string(), "v1,v1alpha1");
    for text in ["v1", "v1,v1alpha1"] {
        assert_eq!(text.parse::<Served>().unwrap().to_string(), text);
    }
}
