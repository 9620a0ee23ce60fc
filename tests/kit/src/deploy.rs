//! What lies below `deploy/`, rendered by helm and kustomize.
//!
//! Guarantees: everything is rendered once a process, by programs that `tools/build.sh deploy` has built; no user's
//! settings have an influence.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::Value;

use crate::call::Call;
use crate::root;

/// The namespace that everything is rendered for.
pub const NAMESPACE: &str = "gatehouse-system";

/// The folder of what is deployed.
#[must_use]
pub fn deploy() -> PathBuf {
    root().join("deploy")
}

/// The folder of the chart.
#[must_use]
pub fn chart() -> PathBuf {
    deploy().join("chart/gatehouse")
}

/// The image that `make image` makes: the chart of the sources names none.
pub const IMAGE: &str = "image.repository=gatehouse.dev/gatehouse";

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
            "networkPolicy.extraEgress[0].ports[0].port=4318",
            "drain.delaySeconds=20",
            "lease.duration=30s",
            "log.filter=info\\,gatehouse=debug",
            "log.format=text",
            "tracing.otlpEndpoint=http://collector.observability:4318",
            "clients.caSecretName=api-servers",
            "clients.names={kube-apiserver,front-proxy}",
            "tls.minVersion=1.3",
            "servedVersions={v1}",
            "migrateStorage=false",
            "policies.onlyV1=true",
            "extraArgs={--worker-threads=2}",
            "extraEnv[0].name=HTTPS_PROXY",
            "extraEnv[0].value=http://proxy:3128",
            "alerts.enabled=true",
            "alerts.labels.team=gate",
            "serviceMonitor.enabled=true",
            "serviceMonitor.labels.team=gate",
        ],
    ),
    ("split", &["split=true"]),
    ("split-watching", &["split=true", "watchNamespaces={team-a,team-b}"]),
    (
        "split-on-nodes",
        &[
            "split=true",
            "hostNetwork=true",
            "certificates.source=certManager",
            "clients.caSecretName=api-servers",
            "serviceMonitor.enabled=true",
            "alerts.enabled=true",
        ],
    ),
    (
        "split-by-chart",
        &["split=true", "installedBy=chart", "certificates.source=certManager", "servedVersions={v1}"],
    ),
    (
        "bare",
        &[
            "priorityClass.create=false",
            "podDisruptionBudget.enabled=false",
            "networkPolicy.enabled=false",
            "policies.deletionProtection=false",
            "policies.authorship=false",
        ],
    ),
];

/// Folders below `deploy/` that are applied as they are.
#[must_use]
pub fn kustomizations() -> Vec<String> {
    let overlays = fs::read_dir(deploy().join("overlays")).expect("overlays");
    let mut all: Vec<_> = overlays
        .map(|entry| entry.expect("an overlay").file_name().to_string_lossy().into_owned())
        .map(|name| format!("overlays/{name}"))
        .chain(["base", "administrator", "crds", "only-v1", "policies", "watched"].map(str::to_owned))
        .collect();
    all.sort();
    all
}

/// Where a part is that `tools/build.sh deploy` has built, which this has it do.
#[must_use]
pub fn tool(name: &str) -> PathBuf {
    static FOUND: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let script = |words: &[&str]| {
        let mut command = Command::new(root().join("tools/build.sh"));
        command.args(words);
        Call::new(command).ok()
    };
    if found.is_empty() {
        script(&["deploy"]);
    }
    found.entry(name.to_owned()).or_insert_with(|| script(&["--print", name]).trim().into()).clone()
}

/// What a program of `tools/build.sh deploy` prints when it works.
///
/// # Errors
/// It fails; what it prints then.
pub fn outcome(program: &str, words: &[&str], input: &str) -> Result<String, String> {
    let mut command = Command::new(tool(program).join(program));
    command.args(words);
    for variable in ["HELM_NAMESPACE", "HELM_KUBECONTEXT", "KUBECONFIG"] {
        command.env_remove(variable);
    }
    Call::new(command).reads(input).run()
}

/// `helm template` with these values, as a release called `gatehouse`.
///
/// # Errors
/// helm refuses that.
pub fn template(values: &[&str]) -> Result<String, String> {
    let chart = chart();
    let mut words = vec!["template", "gatehouse", chart.to_str().expect("UTF-8"), "--namespace", NAMESPACE];
    // What helm takes for the cluster's version is what it was built with.
    words.extend(["--kube-version", "1.34.0", "--set", IMAGE]);
    words.extend(values.iter().flat_map(|value| ["--set", value]));
    outcome("helm", &words, "")
}

/// The objects that the chart gives with these values.
#[must_use]
pub fn helm(values: &[&str]) -> Vec<Value> {
    objects(&template(values).unwrap_or_else(|error| panic!("{values:?}: {error}")))
}

/// What is rendered from one place.
#[derive(Debug)]
pub struct Rendered {
    /// `chart` with the name of a variant, or a folder below `deploy/`.
    pub source: String,
    /// As it was printed.
    pub text: String,
    /// The objects in it.
    pub objects: Vec<Value>,
}

/// Everything that is rendered.
pub fn everything() -> &'static [Rendered] {
    static RENDERED: OnceLock<Vec<Rendered>> = OnceLock::new();
    RENDERED.get_or_init(|| {
        let of_chart =
            |values: &[&str]| template(values).unwrap_or_else(|error| panic!("{values:?}: {error}"));
        let charts = VARIANTS.iter().map(|(name, values)| (format!("chart {name}"), of_chart(values)));
        let folders = kustomizations().into_iter().map(|folder| {
            let path = deploy().join(&folder);
            let built = outcome("kustomize", &["build", path.to_str().expect("UTF-8")], "");
            let text = built.unwrap_or_else(|error| panic!("kustomize build deploy/{folder}: {error}"));
            (folder, text)
        });
        let all = charts.chain(folders);
        all.map(|(source, text)| Rendered { objects: objects(&text), source, text }).collect()
    })
}

/// The objects of a variant by its name.
#[must_use]
pub fn variant(name: &str) -> &'static [Value] {
    rendered(&format!("chart {name}"))
}

/// The objects that come from there.
#[must_use]
pub fn rendered(source: &str) -> &'static [Value] {
    let found = everything().iter().find(|one| one.source == source);
    &found.unwrap_or_else(|| panic!("nothing is rendered from {source}")).objects
}

/// The objects of a text of several documents.
#[must_use]
pub fn objects(text: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).expect("YAML");
    documents.into_iter().filter(|one| !one.is_null()).collect()
}

/// The kind of an object.
#[must_use]
pub fn kind(object: &Value) -> &str {
    object["kind"].as_str().expect("a kind")
}

/// The name of an object.
#[must_use]
pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("a name")
}

/// The objects of a kind.
#[must_use]
pub fn of_kind<'a>(objects: &'a [Value], wanted: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| kind(object) == wanted).collect()
}

/// The only Deployment of these.
#[must_use]
pub fn deployment(objects: &[Value]) -> &Value {
    of_kind(objects, "Deployment").first().expect("a Deployment")
}

/// Objects by kind, namespace and name.
#[must_use]
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
