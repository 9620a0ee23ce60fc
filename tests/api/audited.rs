//! What the API server's audit log has of reviews: the gate's annotations, and no values.

use std::collections::BTreeMap;

use kit::audit::Line;
use kit::bed::{Bed, Namespace};
use kit::objects::{Ask, Outcome, of};
use kit::wait::eventually;
use serde_json::{Value, json};

use crate::Test;
use crate::policies::{account_of, author, grant};

pub const TESTS: &[Test] = &kit::tests![the_audit_log_has_the_annotations_of_the_gate];

/// The gate's annotations of the request that this field manager made, by the webhook and their own name, once the
/// request is in the log.
fn annotations(namespace: &Namespace, manager: &str) -> BTreeMap<String, String> {
    let log = namespace.bed.cluster.audit_log().expect("it is kept");
    let asked = format!("fieldManager={manager}");
    eventually(|| {
        let lines = Line::read_of(&account_of(namespace), log);
        let is_it = |line: &&Line| {
            let uri = line.value()["requestURI"].as_str().unwrap_or_default();
            uri.ends_with(&asked) && !line.lacked_the_right()
        };
        let line = lines.iter().find(is_it).ok_or("it is not in the log")?;
        let all = line.value()["annotations"].as_object().cloned().unwrap_or_default();
        let ours = all.into_iter().filter(|(key, _)| {
            ["mutate.gatehouse.dev/", "validate.gatehouse.dev/"].iter().any(|hook| key.starts_with(hook))
        });
        Ok::<_, &str>(ours.map(|(key, text)| (key, text.as_str().unwrap_or_default().to_owned())).collect())
    })
}

/// These annotations, of both webhooks.
fn of_both(annotations: &[(&str, &str)]) -> BTreeMap<String, String> {
    let of = |hook: &'static str| {
        annotations.iter().map(move |(key, text)| (format!("{hook}.gatehouse.dev/{key}"), (*text).to_owned()))
    };
    of("mutate").chain(of("validate")).collect()
}

fn the_audit_log_has_the_annotations_of_the_gate(bed: &Bed) {
    let namespace = bed.namespace();
    let author = author(&namespace);
    grant(&namespace, "deployments", "apps", &["deployments"]);
    // The authorizer, and the policy that asks it, may not have heard yet of what was granted a moment ago, and an
    // operator's write of the status may overtake a change: what is asked for again has another name in the log.
    let mut tries = 0;
    let mut ask = |manager: &str, ask: &dyn Fn(&str) -> Ask| -> (Outcome, BTreeMap<String, String>) {
        eventually(|| {
            tries += 1;
            let manager = format!("{manager}-{tries}");
            match author.one(ask(&format!("?fieldManager={manager}"))) {
                Err(refusal) if matches!(refusal.code, 403 | 409) => Err(refusal.message),
                outcome => Ok((outcome, annotations(&namespace, &manager))),
            }
        })
    };
    let create = |object: Value| {
        let version = object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        let place = of(&version, &namespace.name, "tdsets");
        move |query: &str| Ask::post(format!("{place}{query}"), object.clone())
    };
    let target = json!({"create": {"image": "shop:1", "port": 80}});
    let tdset = |name: &str, spec: Value| json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": name}, "spec": spec});
    let plain = json!({"defaultReplicas": 0, "timeZone": "Europe/Berlin", "target": target});

    // What is allowed as it was written says nothing.
    let (outcome, annotations) = ask("plain", &create(tdset("plain", plain.clone())));
    outcome.expect("accepted");
    assert_eq!(annotations, of_both(&[]));

    let mut bare = plain.clone();
    bare.as_object_mut().unwrap().remove("timeZone");
    let (outcome, annotations) = ask("bare", &create(tdset("bare", bare.clone())));
    outcome.expect("accepted");
    let by_mutate = |key: &str, text: &str| {
        BTreeMap::from(
            [("verdict", "allowed"), (key, text)]
                .map(|(key, text)| (format!("mutate.gatehouse.dev/{key}"), text.to_owned())),
        )
    };
    assert_eq!(annotations, by_mutate("defaulted", "1: spec.timeZone"));

    let path = namespace.path("tdsets.v1.gatehouse.dev/plain");
    let (outcome, annotations) = ask("kept", &|query| {
        let mut replaced = tdset("plain", bare.clone());
        let stored = namespace.get("tdsets.v1.gatehouse.dev", "plain");
        replaced["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
        Ask::put(format!("{path}{query}"), replaced)
    });
    assert_eq!(outcome.expect("accepted")["spec"]["timeZone"], "Europe/Berlin");
    assert_eq!(annotations, by_mutate("kept", "1: spec.timeZone"));

    let old = json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet", "metadata": {"name": "old"},
        "spec": {"defaultReplica": 0, "container": {"image": "shop:1", "port": 80}, "schedulingConfig": []}});
    let (outcome, annotations) = ask("old", &create(old));
    outcome.expect("accepted");
    let mut expected = of_both(&[("verdict", "allowed"), ("written-as", "v1alpha1")]);
    expected.insert("mutate.gatehouse.dev/defaulted".to_owned(), "1: spec.timeZone".to_owned());
    assert_eq!(annotations, expected);

    // The first webhook that refuses is the last that is asked. The audit annotations have no values.
    let mut wrong = plain;
    wrong["defaultReplicas"] = json!(-1);
    wrong["timeZone"] = json!("Europe/Atlantis");
    let (outcome, annotations) = ask("wrong", &create(tdset("wrong", wrong)));
    assert_eq!(outcome.expect_err("refused").code, 422);
    let expected = [("verdict", "denied"), ("errors", "2: spec.defaultReplicas, spec.timeZone")];
    let expected = expected.map(|(key, text)| (format!("mutate.gatehouse.dev/{key}"), text.to_owned()));
    assert_eq!(annotations, BTreeMap::from(expected));
}
