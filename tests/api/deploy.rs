//! Real API servers take everything that is rendered below `deploy/`, with the Pod Security level `restricted` enforced
//! and without a warning.

use gatehouse::install::{Address, Plan, webhooks};
use kit::bed::Bed;
use kit::deploy::{IMAGE, NAMESPACE, Rendered, chart, everything, kind, of_kind, outcome, variant};
use kit::objects::{Ask, Objects, collection_of};
use kit::wait::eventually;
use serde_json::{Value, json};

use crate::Test;
use crate::corpus::bare;

pub const EVERYWHERE: &[Test] = &[("everything_is_taken", everything_is_taken)];
pub const ONCE: &[Test] = &[(
    "the_chart_refuses_what_would_break_another_installation",
    the_chart_refuses_what_would_break_another_installation,
)];

/// Kinds of others, which no control plane of ours serves.
const OF_OTHERS: [&str; 4] = ["Certificate", "Issuer", "ServiceMonitor", "PrometheusRule"];

/// What has to be there before the rest can be tried.
const FIRST: [&str; 3] = ["Namespace", "PriorityClass", "ServiceAccount"];

fn namespace(name: &str, level: &str) -> Value {
    let labels: serde_json::Map<_, _> = ["enforce", "audit", "warn"]
        .into_iter()
        .map(|mode| (format!("pod-security.kubernetes.io/{mode}"), level.into()))
        .collect();
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } })
}

/// The API server takes an object without a warning.
fn is_taken(objects: &Objects, source: &str, ask: Ask) {
    let what = ask.path.clone();
    let (outcome, warnings) = objects.warned(ask);
    if let Err(refusal) = outcome {
        panic!("{source}: {what}: {}", refusal.message);
    }
    assert_eq!(warnings, [""; 0], "{source}: {what}: a warning");
}

/// A pod as the Deployment would make it.
fn pod(deployment: &Value) -> Value {
    let template = &deployment["spec"]["template"];
    json!({
        "apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
        "metadata": { "name": "one", "namespace": NAMESPACE, "labels": template["metadata"]["labels"] },
    })
}

fn tried(pod: &Value) -> Ask {
    let place = collection_of(pod, "");
    Ask::post(format!("{place}?dryRun=All&fieldValidation=Strict"), pod.clone())
}

/// A pod that asks for so much, in a class where one is named.
fn plain_pod(is_fit: bool, class: Option<&Value>) -> Value {
    let mut container = json!({"name": "one", "image": "one"});
    if is_fit {
        container["securityContext"] = json!({
            "allowPrivilegeEscalation": false, "runAsNonRoot": true,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
        });
    }
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": NAMESPACE},
        "spec": {"containers": [container]}});
    if let Some(class) = class {
        pod["spec"]["priorityClassName"] = class["metadata"]["name"].clone();
    }
    pod
}

/// Waits until the API server judges such a pod like that: what admission goes by comes into force a moment after it is
/// written.
fn until_judged(objects: &Objects, pod: &Value, is_taken: bool, says: &str) {
    eventually(|| match objects.one(tried(pod)) {
        Ok(_) if is_taken => Ok(()),
        Err(refusal) if !is_taken && refusal.message.contains(says) => Ok(()),
        Ok(_) => Err(format!("{pod} is taken")),
        Err(refusal) => Err(refusal.message),
    });
}

/// The API server would take all of it as it is.
fn try_one(objects: &Objects, Rendered { source, objects: rendered, .. }: &Rendered) {
    let on_hosts = of_kind(rendered, "Deployment")
        .iter()
        .any(|one| one["spec"]["template"]["spec"]["hostNetwork"] == true);
    let level = if on_hosts { "privileged" } else { "restricted" };
    is_taken(objects, source, Ask::apply(&namespace(NAMESPACE, level), "", ""));
    let ours: Vec<_> = rendered.iter().filter(|object| !OF_OTHERS.contains(&kind(object))).collect();
    let (first, rest): (Vec<_>, Vec<_>) = ours.into_iter().partition(|object| FIRST.contains(&kind(object)));
    for object in &first {
        is_taken(objects, source, Ask::apply(object, "default", ""));
    }
    let classes: Vec<_> = first.into_iter().filter(|object| kind(object) == "PriorityClass").collect();
    until_judged(objects, &plain_pod(false, None), on_hosts, "violates PodSecurity \"restricted");
    for class in &classes {
        until_judged(objects, &plain_pod(true, Some(class)), true, "");
    }
    for object in rest {
        is_taken(objects, source, Ask::apply(object, "default", "dryRun=All"));
    }
    for deployment in of_kind(rendered, "Deployment") {
        is_taken(objects, source, tried(&pod(deployment)));
    }
    for class in classes {
        let name = class["metadata"]["name"].as_str().expect("a name");
        objects.must(Ask::delete(format!("{}/{name}", collection_of(class, ""))));
        until_judged(objects, &plain_pod(true, Some(class)), false, "no PriorityClass with name");
    }
}

fn everything_is_taken(bed: &Bed) {
    let bare = bare::beside(bed);
    let _turn = bare.turn_of_one();
    let objects = &bare.bed.objects;
    // What is rendered makes them.
    bare.undefine();
    for name in ["team-a", "team-b", "default"] {
        is_taken(objects, "namespaces", Ask::apply(&namespace(name, "restricted"), "", ""));
    }
    for rendered in everything() {
        try_one(objects, rendered);
    }
    bare.define(&bare.definitions());
}

fn the_chart_refuses_what_would_break_another_installation(bed: &Bed) {
    let bare = bare::beside(bed);
    let _turn = bare.turn_of_one();
    let (objects, chart) = (&bare.bed.objects, chart());
    // helm takes nothing over that it has not made.
    for object in variant("default") {
        let name = object["metadata"]["name"].as_str().expect("a name");
        objects.if_there(Ask::delete(format!("{}/{name}", collection_of(object, "default"))));
    }
    let render = |namespace: &str, values: &[&str]| {
        let kubeconfig = bare.bed.cluster.kubeconfig().to_str().expect("UTF-8");
        let words = ["install", "gatehouse", chart.to_str().expect("UTF-8"), "--dry-run=server"];
        let place = ["--namespace", namespace, "--kubeconfig", kubeconfig, "--set", IMAGE];
        outcome("helm", &[&words[..], &place[..], values].concat(), "")
    };
    render(NAMESPACE, &[]).unwrap();
    let plan =
        Plan::at(Address::Service { name: "gatehouse".into(), namespace: NAMESPACE.into(), port: 443 });
    let mut first = json!(webhooks::validating(&plan, &webhooks::resources()));
    first["apiVersion"] = "admissionregistration.k8s.io/v1".into();
    first["kind"] = "ValidatingWebhookConfiguration".into();
    objects.must(Ask::apply(&first, "", ""));
    render(NAMESPACE, &[]).unwrap();
    let error = render("elsewhere", &[]).unwrap_err();
    let words =
        "gatehouse is installed in this cluster already, behind the Service gatehouse-system/gatehouse";
    assert!(error.contains(words), "{error}");

    // What the gate has installed would go with its ClusterRole.
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "gatehouse"}, "rules": []});
    let role = objects.must(Ask::create(&role, ""));
    first["metadata"]["ownerReferences"] = json!([{"apiVersion": role["apiVersion"], "kind": role["kind"],
        "name": "gatehouse", "uid": role["metadata"]["uid"]}]);
    objects.must(Ask::apply(&first, "", ""));
    let by_others = "installedBy=administrator,certificates.source=secret";
    let without = format!("{by_others},watchNamespaces={{team-a}}");
    let error = render(NAMESPACE, &["--set", &without]).unwrap_err();
    assert!(error.contains("belongs to the ClusterRole gatehouse, which these values leave out"), "{error}");
    let name = first["metadata"]["name"].as_str().expect("a name");
    let path = format!("{}/{name}", collection_of(&first, ""));
    objects.must(Ask::patch(&*path, json!({"metadata": {"ownerReferences": null}})));
    render(NAMESPACE, &["--set", &without]).unwrap();
    objects.must(Ask::delete(path));
    objects.must(Ask::delete(format!("{}/gatehouse", collection_of(&role, ""))));
    bare.bed.grant();
}
