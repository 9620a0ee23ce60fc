//! What the API server lets no pods be made from holds nothing else up.

use kit::wait::eventually;
use serde_json::json;

use super::cluster::{Etcd, NAME, condition};
use super::{NEWEST, gone_with_its_object};
use crate::cluster::{Bed, Namespace};
use crate::release::Way;

/// The label that a policy lets no pod have.
const LABEL: &str = "refused";

pub fn etcd_grows_and_is_backed_up_although_its_template_is_refused(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-refused");
    let etcd = Etcd::new(&namespace, "Disabled", NEWEST, 1);
    etcd.until_settled(1);
    let policy = Policy::new(&namespace);
    etcd.may_have(3);
    let backup = json!({"destination": {"persistentVolumeClaim": {"claimName": "none"}},
        "schedule": "0 2 * * *"});
    etcd.change(&json!({"replicas": 3, "pod": {"labels": {LABEL: "yes"}}, "backup": backup}));
    let told = etcd.until(|members| {
        let members =
            members.map_or(0, |members| members.members.iter().filter(|one| !one.is_learner).count());
        let budget = namespace.get(&format!("poddisruptionbudget/{NAME}"))?["spec"]["minAvailable"].clone();
        let schedule = namespace.get(&format!("cronjob/{NAME}-backup"))?["spec"]["schedule"].clone();
        let told = condition(&etcd.object()?, "Degraded");
        if members == 3 && budget == 2 && schedule == "0 2 * * *" && told["reason"] == "ApplyFailed" {
            Ok(told)
        } else {
            Err(format!("{members} voters, budget {budget}, schedule {schedule}, {told}"))
        }
    });
    let message = told["message"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("apply-stateful-set: ") && message.contains("ValidatingAdmissionPolicy"),
        "{told}"
    );
    assert!(etcd.pods().iter().all(|pod| pod["metadata"]["labels"][LABEL].is_null()));
    drop(policy);
    etcd.until(|_| {
        let labels: Vec<_> = etcd.pods().iter().map(|pod| pod["metadata"]["labels"][LABEL].clone()).collect();
        if labels == ["yes"; 3] { Ok(()) } else { Err(format!("{labels:?}")) }
    });
    etcd.until_settled(3);
    gone_with_its_object(bed, &namespace);
}

/// A policy that refuses StatefulSets of a namespace whose pods would have the label, until this is dropped.
struct Policy<'a> {
    namespace: &'a Namespace<'a>,
}

impl<'a> Policy<'a> {
    /// Makes it, and waits until it is in force.
    fn new(namespace: &'a Namespace<'a>) -> Self {
        let name = &namespace.name;
        let about = |kind: &str, spec| {
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
                "spec": spec})
        };
        let rules = json!([{"apiGroups": ["apps"], "apiVersions": ["*"], "operations": ["UPDATE"],
            "resources": ["statefulsets"]}]);
        let here = json!({"matchLabels": {"kubernetes.io/metadata.name": name}});
        let allows = format!("!('{LABEL}' in object.spec.template.metadata.labels)");
        let policy = json!({"failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules, "namespaceSelector": here},
            "validations": [{"expression": allows, "message": "no such pods"}]});
        namespace.apply(&about("ValidatingAdmissionPolicy", policy));
        let binding = json!({"policyName": name, "validationActions": ["Deny"]});
        namespace.apply(&about("ValidatingAdmissionPolicyBinding", binding));
        let policy = Self { namespace };
        let patch = json!({"spec": {"template": {"metadata": {"labels": {LABEL: "yes"}}}}}).to_string();
        let words = ["patch", "statefulset", NAME, "--dry-run=server", "--type=merge", "--patch", &patch];
        eventually(|| match namespace.kubectl(&words).run() {
            Err(why) if why.contains("no such pods") => Ok(()),
            other => Err(format!("{other:?}")),
        });
        policy
    }
}

impl Drop for Policy<'_> {
    fn drop(&mut self) {
        for kind in ["validatingadmissionpolicybinding", "validatingadmissionpolicy"] {
            let words = ["delete", kind, &self.namespace.name, "--ignore-not-found"];
            let _told = self.namespace.kubectl(&words).run();
        }
    }
}
