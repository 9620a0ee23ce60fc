//! Real API servers take everything that is rendered, with the Pod Security level `restricted` enforced and without a
//! warning.

use std::io::Write as _;
use std::process::Stdio;

use gatehouse::install::{Address, Plan, webhooks};
use serde_json::{Value, json};
use testbed::{ControlPlane, KubernetesVersion, Options};

use super::support::{NAMESPACE, chart, everything, kind, name, of_kind, outcome};

/// Kinds of others, which no control plane of ours serves.
const OF_OTHERS: [&str; 4] = ["Certificate", "Issuer", "ServiceMonitor", "PrometheusRule"];

/// What has to be there before the rest can be tried.
const FIRST: [&str; 3] = ["Namespace", "PriorityClass", "ServiceAccount"];

fn list(objects: &[&Value]) -> Value {
    json!({ "apiVersion": "v1", "kind": "List", "items": objects })
}

/// kubectl with these words, reading objects; what it warns of, or why it fails.
fn kubectl(cluster: &ControlPlane, words: &[&str], input: &Value) -> Result<String, String> {
    let mut command = cluster.kubectl();
    command.args(words).args(["--filename", "-"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    if output.status.success() { Ok(said) } else { Err(said) }
}

fn namespace(name: &str, level: &str) -> Value {
    let labels: serde_json::Map<_, _> = ["enforce", "audit", "warn"]
        .into_iter()
        .map(|mode| (format!("pod-security.kubernetes.io/{mode}"), level.into()))
        .collect();
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } })
}

/// A pod as the Deployment would make it.
fn pod(deployment: &Value) -> Value {
    let template = &deployment["spec"]["template"];
    json!({
        "apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
        "metadata": { "name": "one", "namespace": NAMESPACE, "labels": template["metadata"]["labels"] },
    })
}

/// The API server would take all of it as it is.
fn try_variant(cluster: &ControlPlane, source: &str, objects: &[Value]) {
    let must = |what: &str, said: Result<String, String>| match said {
        Ok(said) => assert_eq!(said, "", "{source}: {what}: a warning"),
        Err(error) => panic!("{source}: {what}: {error}"),
    };
    let on_hosts = of_kind(objects, "Deployment")
        .iter()
        .any(|one| one["spec"]["template"]["spec"]["hostNetwork"] == true);
    let mut namespaces = vec![namespace(NAMESPACE, if on_hosts { "privileged" } else { "restricted" })];
    namespaces.extend(["team-a", "team-b", "default"].map(|name| namespace(name, "restricted")));
    must(
        "namespaces",
        kubectl(cluster, &["apply", "--server-side"], &list(&namespaces.iter().collect::<Vec<_>>())),
    );

    let ours: Vec<_> = objects.iter().filter(|object| !OF_OTHERS.contains(&kind(object))).collect();
    let (first, rest): (Vec<_>, Vec<_>) = ours.into_iter().partition(|object| FIRST.contains(&kind(object)));
    if !first.is_empty() {
        must("first", kubectl(cluster, &["apply", "--server-side", "--validate=strict"], &list(&first)));
    }
    let tried =
        kubectl(cluster, &["apply", "--server-side", "--dry-run=server", "--validate=strict"], &list(&rest));
    if !rest.is_empty() {
        must("all", tried);
    }
    for deployment in of_kind(objects, "Deployment") {
        must(
            "a pod",
            kubectl(cluster, &["create", "--dry-run=server", "--validate=strict"], &pod(deployment)),
        );
    }
    if !first.is_empty() {
        let names: Vec<_> =
            first.iter().filter(|one| kind(one) == "PriorityClass").map(|one| name(one)).collect();
        for name in names {
            assert!(
                cluster.kubectl().args(["delete", "priorityclass", name]).output().unwrap().status.success()
            );
        }
    }
}

fn start(version: KubernetesVersion) -> ControlPlane {
    let options = Options { version, controller_manager: false, ..Options::from_env().unwrap() };
    ControlPlane::start(&options).unwrap_or_else(|error| panic!("{error}"))
}

fn try_all(version: KubernetesVersion) {
    let cluster = start(version);
    for (source, objects) in everything() {
        try_variant(&cluster, source, objects);
    }
    let unfit = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "one", "namespace": NAMESPACE },
        "spec": { "containers": [{ "name": "one", "image": "one" }] } });
    let levels = list(&[&namespace(NAMESPACE, "restricted")]).clone();
    kubectl(&cluster, &["apply", "--server-side"], &levels).unwrap();
    let error = kubectl(&cluster, &["create", "--dry-run=server"], &unfit).unwrap_err();
    assert!(error.contains("violates PodSecurity \"restricted"), "what is enforced is not: {error}");
}

#[test]
fn kubernetes_1_36_takes_everything() {
    try_all(KubernetesVersion::V1_36);
}

#[test]
fn kubernetes_1_34_takes_everything() {
    try_all(KubernetesVersion::V1_34);
}

#[test]
fn the_chart_refuses_a_second_gatehouse_in_a_cluster() {
    let cluster = start(KubernetesVersion::default());
    let chart = chart();
    let render = |namespace: &str| {
        let kubeconfig = cluster.kubeconfig().to_str().unwrap();
        let words = ["install", "gatehouse", chart.to_str().unwrap(), "--dry-run=server"];
        let place = ["--namespace", namespace, "--kubeconfig", kubeconfig];
        outcome("helm", &[&words[..], &place[..]].concat(), "")
    };
    render(NAMESPACE).unwrap();
    let plan =
        Plan::at(Address::Service { name: "gatehouse".into(), namespace: NAMESPACE.into(), port: 443 });
    let mut first = json!(webhooks::validating(&plan, &webhooks::resources()));
    first["apiVersion"] = "admissionregistration.k8s.io/v1".into();
    first["kind"] = "ValidatingWebhookConfiguration".into();
    kubectl(&cluster, &["apply", "--server-side"], &first).unwrap();
    render(NAMESPACE).unwrap();
    let error = render("elsewhere").unwrap_err();
    let words =
        "gatehouse is installed in this cluster already, behind the Service gatehouse-system/gatehouse";
    assert!(error.contains(words), "{error}");
}
