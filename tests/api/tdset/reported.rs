//! What is reported of TDSets beside their status.

use kit::bed::Bed;
use kit::objects::{Ask, http_get, path_of};
use kit::wait::eventually;
use serde_json::{Value, json};

use super::{notes, patch, tdset};
use crate::Test;
use crate::site::problems;

pub const TESTS: &[Test] = &[
    ("actions_are_counted", actions_are_counted),
    ("a_status_that_is_refused_is_an_event", a_status_that_is_refused_is_an_event),
];

fn actions_are_counted(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(&tdset("counted", &json!({})));
    namespace.until("tdset/counted", "{.status.observedGeneration}", "1");
    let line =
        "gatehouse_actions_total{controller=\"tdset\",action=\"tdset.make-deployment\",result=\"done\"} ";
    let page = bed.gate(|gate| http_get(gate.health, "/metrics"));
    let counted = page.lines().find_map(|one| one.strip_prefix(line)?.parse::<u64>().ok());
    let actions: Vec<_> = page.lines().filter(|line| line.starts_with("gatehouse_actions")).collect();
    assert!(counted.is_some_and(|count| count > 0), "{actions:#?}");
}

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/// A status that cannot be written says nothing: an event does, once, and a series while it is so.
fn a_status_that_is_refused_is_an_event(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(&tdset("held", &json!({})));
    namespace.until("tdset/held", "{.status.observedGeneration}", "1");
    let name = format!("{}-status", namespace.name);
    let about = |kind: &str, spec: Value| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
            "spec": spec})
    };
    let here = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace.name}});
    let rules = json!([{"apiGroups": ["gatehouse.dev"], "apiVersions": ["*"], "operations": ["UPDATE"],
        "resources": ["tdsets/status"]}]);
    let policy = json!({"failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules, "namespaceSelector": here},
        "validations": [{"expression": "false", "message": "no status here"}]});
    bed.objects.must(Ask::post(POLICIES, about("ValidatingAdmissionPolicy", policy)));
    let binding = json!({"policyName": name, "validationActions": ["Deny"]});
    bed.objects.must(Ask::post(BINDINGS, about("ValidatingAdmissionPolicyBinding", binding)));
    let status = format!("{}/held/status?dryRun=All", path_of("tdsets", &namespace.name));
    eventually(|| match bed.objects.one(Ask::patch(&*status, json!({"status": {"replicas": 4}}))) {
        Err(refusal) if refusal.message.contains("no status here") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    patch(&namespace, "held", &json!({"defaultReplicas": 3}));
    eventually(|| match notes(&namespace, "held", "StatusUpdateFailed").as_slice() {
        [] => Err("no event".to_owned()),
        told => {
            assert!(told[0].contains("Invalid (422)"), "{told:?}");
            Ok(())
        }
    });
    let shown = || bed.gate(|gate| problems(&http_get(gate.health, "/metrics"), &namespace.name));
    let refused = ("TDSet".to_owned(), "held".to_owned(), "StatusUpdateFailed".to_owned());
    eventually(|| if shown() == [refused.clone()].into() { Ok(()) } else { Err(format!("{:?}", shown())) });
    bed.objects.must(Ask::delete(format!("{BINDINGS}/{name}")));
    bed.objects.must(Ask::delete(format!("{POLICIES}/{name}")));
    namespace.until("tdset/held", "{.status.observedGeneration}", "2");
    assert_eq!(notes(&namespace, "held", "StatusUpdateFailed").len(), 1, "it is reported once");
    eventually(|| if shown().is_empty() { Ok(()) } else { Err(format!("{:?}", shown())) });
}
