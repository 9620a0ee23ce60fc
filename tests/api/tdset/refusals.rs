//! The day goes on while the API server refuses a part of the work.

use kit::bed::{Bed, Namespace};
use kit::objects::{Ask, path_of};
use kit::operator::Fate;
use kit::wait::eventually;
use serde_json::{Value, json};

use super::autoscalers::autoscaler;
use super::{condition, for_workload, foreign, message, notes, patch, tdset, until_condition, until_status};
use crate::Test;
use crate::site::Site;

pub const ON_CLOCKS: &[Test] = &kit::tests![a_boundary_passes_whatever_is_refused];

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// What the API server refuses in a namespace, until it is lifted.
pub struct Refusal<'a> {
    bed: &'a Bed,
    paths: Vec<String>,
}

impl<'a> Refusal<'a> {
    /// Updates of a resource for which that is not true: for good, and as invalid (422).
    pub fn by_policy(namespace: &Namespace<'a>, group: &str, resource: &str, expression: &str) -> Self {
        let name = format!("{}-{}", namespace.name, resource.replace('/', "-"));
        let rules = json!([{"apiGroups": [group], "apiVersions": ["*"], "operations": ["UPDATE"],
            "resources": [resource]}]);
        let policy = json!({"failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules, "namespaceSelector": here(namespace)},
            "validations": [{"expression": expression, "message": "not here"}]});
        let binding = json!({"policyName": name, "validationActions": ["Deny"]});
        let mut refusal = Self { bed: namespace.bed, paths: Vec::new() };
        refusal.make("ValidatingAdmissionPolicy", "validatingadmissionpolicies", &name, "spec", &policy);
        let bindings = "validatingadmissionpolicybindings";
        refusal.make("ValidatingAdmissionPolicyBinding", bindings, &name, "spec", &binding);
        refusal
    }

    /// The creation of a resource, by a webhook that does not answer: that may be otherwise a moment later (500).
    fn by_webhook(namespace: &Namespace<'a>, group: &str, resource: &str) -> Self {
        let name = format!("{}-{resource}", namespace.name);
        let rules = json!([{"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"],
            "resources": [resource]}]);
        let webhook = json!({"name": "absent.example.com", "rules": rules, "namespaceSelector": here(namespace),
            "clientConfig": {"url": "https://127.0.0.1:1/"}, "failurePolicy": "Fail", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "timeoutSeconds": 1});
        let mut refusal = Self { bed: namespace.bed, paths: Vec::new() };
        let webhooks = "validatingwebhookconfigurations";
        refusal.make("ValidatingWebhookConfiguration", webhooks, &name, "webhooks", &json!([webhook]));
        refusal
    }

    fn make(&mut self, kind: &str, plural: &str, name: &str, field: &str, value: &Value) {
        let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": name}, field: value});
        let path = format!("{ADMISSION}/{plural}");
        self.bed.objects.must(Ask::post(&*path, object));
        self.paths.insert(0, format!("{path}/{name}"));
    }

    /// Waits until it refuses what is asked for, which is best a dry run.
    #[track_caller]
    pub fn until_refused(self, code: u16, ask: impl Fn() -> Ask) -> Self {
        eventually(|| match self.bed.objects.one(ask()) {
            Err(refusal) if refusal.code == code => Ok(()),
            other => Err(format!("{other:?}")),
        });
        self
    }

    pub fn lift(self) {
        for path in self.paths {
            self.bed.objects.must(Ask::delete(path));
        }
    }

    /// The same, and waits until what it refused is taken.
    #[track_caller]
    fn lift_for(self, ask: impl Fn() -> Ask) {
        let bed = self.bed;
        self.lift();
        eventually(|| bed.objects.one(ask()).map(drop).map_err(|refusal| refusal.message));
    }
}

fn here(namespace: &Namespace) -> Value {
    json!({"matchLabels": {"kubernetes.io/metadata.name": namespace.name}})
}

const TRANSITIONS: &str = "gatehouse_tdset_transitions_total";

/// Waits for the status of a TDSet that could not do all after a boundary to 4, and for its condition.
#[track_caller]
fn until_past_the_boundary(namespace: &Namespace, name: &str, reason: &str, why: &str) -> Value {
    let status = until_status(namespace, name, |status| status["scheduledReplicas"] == 4);
    assert_eq!(status["activeWindow"], "exception/rush", "{status}");
    let object = until_condition(namespace, name, "Ready", "False", reason);
    assert!(message(&object, "Ready").contains(why), "{object}");
    object["status"].clone()
}

/// A Service, a template and the bounds of an autoscaler that are refused, with a dry run of each.
struct Parts<'a> {
    namespace: &'a Namespace<'a>,
}

/// An image that a policy refuses.
const REFUSED: &str = "registry.k8s.io/pause:refused";

impl Parts<'_> {
    fn serve(&self) -> Ask {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "any"},
            "spec": {"ports": [{"port": 80}]}});
        Ask::post(path_of("services", &self.namespace.name) + "?dryRun=All", service)
    }

    fn roll(&self) -> Ask {
        let image = "/spec/template/spec/containers/0/image";
        let image = json!([{"op": "replace", "path": image, "value": REFUSED}]);
        Ask::patch(self.namespace.path("deployment/rolled") + "?dryRun=All", image)
    }

    fn bound(&self) -> Ask {
        let path = self.namespace.path("hpa/bounded") + "?dryRun=All";
        Ask::patch(path, json!({"spec": {"minReplicas": 4}}))
    }
}

/// One TDSet for each, with four replicas in an hour.
fn create(site: &Site) {
    let namespace = site.namespace;
    let exceptions = json!({"exceptions": [site.span("rush", 60, 120, 4)]});
    let mut served = tdset("served", &exceptions);
    served["spec"]["target"]["create"]["servicePort"] = json!(80);
    namespace.create(&served);
    namespace.create(&tdset("rolled", &exceptions));
    foreign(namespace, "bounded", 3);
    autoscaler(namespace, "bounded", "bounded", 2, 9);
    let mut bounded = for_workload("bounded", "apps/v1", "Deployment", "bounded", &exceptions);
    bounded["spec"]["autoscaler"] = json!({"name": "bounded"});
    namespace.create(&bounded);
    for name in ["rolled", "bounded"] {
        namespace.until(&format!("tdset/{name}"), "{.status.nextTransition.replicas}", "4");
    }
}

fn a_boundary_passes_whatever_is_refused(bed: &Bed) {
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let operator = site.start(Fate::Lives);
    let parts = Parts { namespace: &namespace };
    let webhook = Refusal::by_webhook(&namespace, "", "services").until_refused(500, || parts.serve());
    create(&site);
    let images = format!("object.spec.template.spec.containers.all(one, one.image != '{REFUSED}')");
    let templates =
        Refusal::by_policy(&namespace, "apps", "deployments", &images).until_refused(422, || parts.roll());
    let hpas = "horizontalpodautoscalers";
    let bounds = Refusal::by_policy(&namespace, "autoscaling", hpas, "object.spec.minReplicas != 4")
        .until_refused(422, || parts.bound());
    patch(&namespace, "rolled", &json!({"target": {"create": {"image": REFUSED}}}));
    // The webhook that does not answer is in the status once it has not for a while.
    for (name, why) in [("served", "(500)"), ("rolled", "(422)")] {
        let object = until_condition(&namespace, name, "Ready", "False", "ApplyFailed");
        assert!(message(&object, "Ready").contains(why), "{object}");
        assert_eq!(object["status"]["nextTransition"]["replicas"], 4, "{object}");
    }
    let before = operator.metric(TRANSITIONS);
    let until_counted = |more: u64| {
        eventually(|| match operator.metric(TRANSITIONS) - before {
            found if found == more => Ok(()),
            found => Err(format!("{found} transitions, and not {more}")),
        });
    };

    site.jump(60);
    until_all_tell_of_the_day(&site);
    until_counted(2);
    let page = operator.page();
    for name in ["served", "rolled", "bounded"] {
        let labels = format!("namespace=\"{}\",name=\"{name}\"", namespace.name);
        let line = format!("gatehouse_tdset_scheduled_replicas{{{labels}}} 4");
        assert!(page.lines().any(|one| one == line), "{line} is not in {page}");
    }

    webhook.lift_for(|| parts.serve());
    templates.lift_for(|| parts.roll());
    bounds.lift_for(|| parts.bound());
    // What was refused is tried again within a minute.
    site.jump(62);
    namespace.until("hpa/bounded", "{.spec.minReplicas}", "4");
    namespace.until_created("service/served");
    let image = "{.spec.template.spec.containers[0].image}";
    namespace.until("deployment/rolled", image, REFUSED);
    until_counted(3);
    until_all_is_done(&namespace);
}

/// Two counts are written, and the bounds are not; each status tells of the day, and why not all is done.
fn until_all_tell_of_the_day(site: &Site) {
    let namespace = site.namespace;
    for (name, why) in [("served", "(500)"), ("rolled", "(422)")] {
        namespace.until(&format!("deployment/{name}"), "{.spec.replicas}", "4");
        let status = until_past_the_boundary(namespace, name, "ApplyFailed", why);
        assert_eq!(status["lastTransition"]["to"]["replicas"], 4, "{status}");
        assert_eq!(status["lastTransition"]["time"], site.at(60).to_string(), "{status}");
    }
    let status = until_past_the_boundary(namespace, "bounded", "CountRefused", "(422)");
    assert!(status["lastTransition"].is_null(), "{status}");
    assert_eq!(namespace.get("hpa", "bounded")["spec"]["minReplicas"], 2);
}

/// Nothing is refused any more, and each boundary has one event.
fn until_all_is_done(namespace: &Namespace) {
    for (name, from, tail) in
        [("served", 1, " ms late"), ("rolled", 1, " ms late"), ("bounded", 2, ", no longer refused, ")]
    {
        let notes = notes(namespace, name, "ReplicasScheduled");
        let head = format!("replicas {from} → 4: exception rush, ");
        let boundaries: Vec<_> = notes.iter().filter(|note| note.starts_with(&head)).collect();
        let [note] = boundaries.as_slice() else { panic!("one event for the boundary: {notes:?}") };
        assert!(note.contains(tail), "{note}");
        until_status(namespace, name, |status| {
            let ready = condition(&json!({"status": status}), "Ready");
            let is_refused = ["ApplyFailed", "CountRefused"].contains(&&*ready.1);
            !is_refused && status["lastTransition"]["to"]["replicas"] == 4
        });
    }
}
