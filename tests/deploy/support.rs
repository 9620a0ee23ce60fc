//! helm, kustomize and kubeconform, and what they make of `deploy/`.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// The namespace that everything is rendered for.
pub const NAMESPACE: &str = "gatehouse-system";

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn deploy() -> PathBuf {
    root().join("deploy")
}

pub fn chart() -> PathBuf {
    deploy().join("chart/gatehouse")
}

/// The values of the chart that are tried, each by a name.
pub const VARIANTS: &[(&str, &[&str])] = &[
    ("default", &[]),
    ("single", &["replicas=1"]),
    ("cert-manager", &["certificates.source=certManager"]),
    (
        "issuer",
        &[
            "certificates.source=certManager",
            "certificates.certManager.issuerRef.name=corporate",
            "certificates.certManager.issuerRef.kind=ClusterIssuer",
        ],
    ),
    ("secret", &["certificates.source=secret", "certificates.secretName=mine"]),
    ("host-network", &["hostNetwork=true", "listen.webhookPort=19443", "listen.metricsPort=18080"]),
    ("monitored", &["serviceMonitor.enabled=true", "alerts.enabled=true"]),
    ("watching", &["watchNamespaces={team-a,team-b}"]),
    ("by-chart", &["installedBy=chart", "certificates.source=certManager"]),
    (
        "by-chart-with-bundle",
        &[
            "installedBy=chart",
            "certificates.source=secret",
            "certificates.caBundle=-----BEGIN CERTIFICATE-----",
            "service.port=8443",
        ],
    ),
    (
        "by-administrator",
        &["installedBy=administrator", "certificates.source=certManager", "watchNamespaces={team-a}"],
    ),
    (
        "everything",
        &[
            "fullnameOverride=porter",
            "replicas=3",
            "image.digest=sha256:0000000000000000000000000000000000000000000000000000000000000000",
            "image.pullSecrets={registry}",
            "listen.address=0.0.0.0",
            "service.type=NodePort",
            "service.annotations.one=two",
            "podAnnotations.one=two",
            "podLabels.one=two",
            "serviceAccount.annotations.one=two",
            "nodeSelector.disk=fast",
            "tolerations[0].key=gate",
            "tolerations[0].operator=Exists",
            "topologySpreadConstraints[0].topologyKey=rack",
            "topologySpreadConstraints[0].maxSkew=1",
            "topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule",
            "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key=metadata.name",
            "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].operator=In",
            "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].values={one}",
            "priorityClass.create=false",
            "priorityClass.name=system-cluster-critical",
            "podDisruptionBudget.minAvailable=50%",
            "networkPolicy.apiServerPorts={8443}",
            "networkPolicy.extraEgress[0].ports[0].port=4317",
            "drain.delaySeconds=20",
            "lease.duration=30s",
            "log.filter=info\\,gatehouse=debug",
            "log.format=text",
            "extraArgs={--worker-threads=2}",
            "extraEnv[0].name=HTTPS_PROXY",
            "extraEnv[0].value=http://proxy:3128",
            "alerts.enabled=true",
            "alerts.labels.team=gate",
            "serviceMonitor.enabled=true",
            "serviceMonitor.labels.team=gate",
        ],
    ),
    (
        "bare",
        &["priorityClass.create=false", "podDisruptionBudget.enabled=false", "networkPolicy.enabled=false"],
    ),
];

/// Folders below `deploy/` that are applied as they are.
pub fn kustomizations() -> Vec<String> {
    let overlays = fs::read_dir(deploy().join("overlays")).unwrap();
    let mut all: Vec<_> = overlays
        .map(|entry| format!("overlays/{}", entry.unwrap().file_name().into_string().unwrap()))
        .chain(["base", "administrator", "crds", "watched"].map(str::to_owned))
        .collect();
    all.sort();
    all
}

/// What `tools/build.sh --print` says of a part that is built.
pub fn tool(name: &str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    let script = |words: &[&str]| {
        let output = Command::new(root().join("tools/build.sh")).args(words).output();
        let output = output.expect("tools/build.sh runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tools/build.sh {words:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    };
    BUILT.get_or_init(|| {
        script(&["deploy"]);
    });
    script(&["--print", name]).trim().into()
}

fn run(program: &str, words: &[&str], input: &str) -> Output {
    let mut command = Command::new(tool(program).join(program));
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Nobody's settings but ours.
    for variable in ["HELM_NAMESPACE", "HELM_KUBECONTEXT", "KUBECONFIG"] {
        command.env_remove(variable);
    }
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = input.to_owned();
    // A program that ends early does not read it all.
    let writer = std::thread::spawn(move || drop(stdin.write_all(text.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// What a program prints when it works, and what it says when it does not.
pub fn outcome(program: &str, words: &[&str], input: &str) -> Result<String, String> {
    let output = run(program, words, input);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, errors) = (text(output.stdout), text(output.stderr));
    if output.status.success() { Ok(out) } else { Err(format!("{out}{errors}")) }
}

/// `helm template` with these values, as a release called `gatehouse`.
pub fn template(values: &[&str]) -> Result<String, String> {
    let chart = chart();
    let mut words = vec!["template", "gatehouse", chart.to_str().unwrap(), "--namespace", NAMESPACE];
    // What helm takes for the cluster's version is what it was built with.
    words.extend(["--kube-version", "1.34.0"]);
    words.extend(values.iter().flat_map(|value| ["--set", value]));
    outcome("helm", &words, "")
}

pub fn helm(values: &[&str]) -> Vec<Value> {
    objects(&template(values).unwrap_or_else(|error| panic!("{values:?}: {error}")))
}

/// The objects of a variant by its name.
pub fn variant(name: &str) -> &'static [Value] {
    rendered(&format!("chart {name}"))
}

/// The objects that come from there.
pub fn rendered(source: &str) -> &'static [Value] {
    let found = everything().iter().find(|(one, _)| one == source);
    &found.unwrap_or_else(|| panic!("nothing is rendered from {source}")).1
}

pub fn build(folder: &str) -> String {
    let path = deploy().join(folder);
    let built = outcome("kustomize", &["build", path.to_str().unwrap()], "");
    built.unwrap_or_else(|error| panic!("kustomize build deploy/{folder}: {error}"))
}

pub fn kustomize(folder: &str) -> Vec<Value> {
    objects(&build(folder))
}

/// Everything that is rendered, by where it comes from.
pub fn everything() -> &'static [(String, Vec<Value>)] {
    static RENDERED: OnceLock<Vec<(String, Vec<Value>)>> = OnceLock::new();
    RENDERED.get_or_init(|| {
        let charts = VARIANTS.iter().map(|(name, values)| (format!("chart {name}"), helm(values)));
        let folders = kustomizations().into_iter().map(|folder| (folder.clone(), kustomize(&folder)));
        charts.chain(folders).collect()
    })
}

pub fn objects(text: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).expect("YAML");
    documents.into_iter().filter(|one| !one.is_null()).collect()
}

pub fn kind(object: &Value) -> &str {
    object["kind"].as_str().expect("a kind")
}

pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("a name")
}

pub fn of_kind<'a>(objects: &'a [Value], wanted: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| kind(object) == wanted).collect()
}

pub fn deployment(objects: &[Value]) -> &Value {
    of_kind(objects, "Deployment").first().expect("a Deployment")
}

/// Objects by kind, namespace and name.
pub fn table(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let key = |object: &Value| {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        format!("{} {namespace}/{}", kind(object), name(object))
    };
    let count = objects.len();
    let table: BTreeMap<_, _> = objects.into_iter().map(|object| (key(&object), object)).collect();
    assert_eq!(table.len(), count, "an object is there twice");
    table
}
