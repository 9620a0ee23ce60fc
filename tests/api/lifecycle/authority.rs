//! The authority of the gate's certificates, lost and made again.

use std::cell::Cell;

use gatehouse::runtime::clock;
use kit::bed::Bed;
use kit::deploy::NAMESPACE;
use kit::objects::{Ask, http_get};
use serde_json::json;

use super::{Life, cluster, until};
use crate::installed::{SECRET, VALIDATING, WRITTEN};

/// How many certificates a bundle has, in base64.
pub fn certificates(text: &str) -> usize {
    use base64::Engine as _;
    let pem = base64::engine::general_purpose::STANDARD.decode(text).expect("base64");
    String::from_utf8(pem).expect("PEM").matches("BEGIN CERTIFICATE").count()
}

pub fn a_lost_authority_is_replaced_without_a_failed_call(bed: &Bed) {
    let (life, gate) = Life::with_gate(bed);
    let port = gate.address.port();
    let before = life.bundles();
    assert!(before.iter().all(|bundle| *bundle == before[0]), "one bundle everywhere");
    let secret = || life.ask(Ask::get(SECRET));
    // The guard reads the Secret when something is amiss; else it would be read within a minute.
    let look = |text: &str| life.patch(VALIDATING, json!({"metadata": {"labels": {"look": text}}}));

    life.ask(Ask::delete(SECRET)).expect("deleted");
    life.use_both_versions("without");
    look("again");
    until("there is an authority again", || secret().is_ok());
    let key = secret().expect("there")["data"]["ca.key"].clone();
    let asked = Cell::new(0);
    until("everybody trusts it", || {
        let bundles = life.bundles();
        asked.set(asked.get() + 1);
        let name = format!("asked-{}", asked.get());
        life.create(&cluster("v1", &name)).expect("every call is answered");
        let path = format!("{}/{name}", life.of("v1", "etcdclusters"));
        life.ask(Ask::delete(path)).expect("every call is answered");
        bundles[0] != before[0] && bundles.iter().all(|bundle| *bundle == bundles[0])
    });
    assert_eq!(secret().expect("there")["data"]["ca-bundle.crt"], life.bundles()[0]);
    let trusted = life.bundles().remove(0);
    assert_eq!(certificates(&trusted), certificates(&before[0]) + 1, "the one before stays trusted");
    life.use_both_versions("both-trusted");
    let metric = |name: &str| {
        let page = http_get(gate.health, "/metrics");
        let value = page.lines().find_map(|line| line.strip_prefix(name));
        value.unwrap_or_else(|| panic!("no {name}in {page}")).to_owned()
    };
    let ends = metric(r#"gatehouse_certificate_expiry_timestamp_seconds{which="authority"} "#);
    let now = clock::now().as_duration().as_secs_f64();
    assert!(ends.parse::<f64>().is_ok_and(|ends| ends > now), "the authority ends at {ends}");
    let count = certificates(&trusted).to_string();
    until("what is trusted is counted", || metric("gatehouse_bundle_certificates ") == count);

    // The bundle is damaged: it is written again, with the rights that gatehouse has.
    life.patch(SECRET, json!({"data": {"ca-bundle.crt": null}}));
    look("once-more");
    until("the bundle is whole", || {
        let bundle = secret().expect("there")["data"]["ca-bundle.crt"].clone();
        bundle.as_str().is_some_and(|bundle| certificates(bundle) >= 1)
    });
    assert_eq!(secret().expect("there")["data"]["ca.key"], key, "the authority is the same");
    until("everybody has the whole bundle", || {
        let bundle = secret().expect("there")["data"]["ca-bundle.crt"].clone();
        life.bundles().iter().all(|one| bundle == **one)
    });

    let settled = life.versions(&WRITTEN);
    gate.into_program().kill();
    let _gate = life.again(port);
    life.use_both_versions("restarted");
    assert_eq!(life.versions(&WRITTEN), settled, "a new process finds all as it should be");
}

const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/gatehouse";

/// Whether gatehouse may change definitions.
fn may_define(life: &Life) -> bool {
    let attributes = json!({"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions",
        "verb": "patch", "name": "tdsets.gatehouse.dev"});
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": format!("system:serviceaccount:{NAMESPACE}:gatehouse"), "resourceAttributes": attributes}});
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    life.ask(Ask::post(path, review)).expect("a verdict")["status"]["allowed"] == true
}

pub fn a_new_key_waits_for_its_bundle_to_be_in_force(bed: &Bed) {
    let life = Life::begin(bed);
    let folder = tempfile::tempdir().expect("a folder");
    let clock = folder.path().join("clock");
    let gate = life.spawn_with(&[], Some(&clock), 0, 0);
    gate.logs("installed");
    life.until_guarded();
    let before = life.bundles();
    let follows = || {
        let lines = gate.log().from_the_start()();
        lines.iter().any(|line| line["why"] == "the authority has another key")
    };
    let failures = || {
        let lines = gate.log().from_the_start()();
        lines.iter().filter(|line| line["message"] == "failed to correct the installation").count()
    };
    let look = |text: &str| life.patch(VALIDATING, json!({"metadata": {"labels": {"look": text}}}));

    // The new bundle cannot be written.
    let role = life.at(ROLE);
    let mut fewer = role["rules"].clone();
    for rule in fewer.as_array_mut().expect("rules") {
        if rule["apiGroups"].to_string().contains("apiextensions.k8s.io") {
            rule["verbs"].as_array_mut().expect("verbs").retain(|verb| verb != "patch");
        }
    }
    // A rule needs a verb.
    fewer.as_array_mut().expect("rules").retain(|rule| rule["verbs"] != json!([]));
    life.patch(ROLE, json!({"rules": fewer}));
    until("gatehouse may not change definitions", || !may_define(&life));
    life.ask(Ask::delete(SECRET)).expect("deleted");
    look("lost");
    until("there is an authority again", || life.ask(Ask::get(SECRET)).is_ok());

    // Long after all clients had time to trust it, none does, and calls go on.
    let new = folder.path().join("new");
    std::fs::write(&new, "PT30M").expect("written");
    std::fs::rename(&new, &clock).expect("replaced");
    let failed = failures();
    look("later");
    until("it has looked again", || failures() >= failed + 2);
    assert_eq!(life.bundles()[..2], before[..2]);
    assert!(!follows(), "API servers do not trust the new key");
    life.use_both_versions("old-key");

    // A replica that starts now has a certificate of the new key alone: calls go to the others.
    let late = life.spawn_with(&[], Some(&clock), 0, gate.address.port());
    let page = || http_get(late.health, "/readyz");
    late.logs("task ended, will restart it");
    let untrusted = "[-]trust not ready: the CA bundles in force lack the authority of the certificate";
    until("it has a certificate that is not trusted", || {
        let page = page();
        page.contains("[+]certificate ok") && page.contains(untrusted)
    });

    life.ask(Ask::patch(ROLE, json!({"rules": role["rules"]}))).expect("given back");
    until("the new key is used once it is trusted", follows);
    assert!(life.bundles().iter().all(|bundle| *bundle != before[0]));
    life.use_both_versions("new-key");
    until("the other replica is ready", || page().starts_with("HTTP/1.1 200"));
    drop(late);
    // The next gate makes an authority of its own, and no client trusts these two any longer.
    drop(gate);
    life.ask(Ask::delete(SECRET)).expect("deleted");
}
