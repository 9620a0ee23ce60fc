//! Objects as the API server has them, read by one client: a test looks several times a second, and each kubectl would
//! take more of the machine than all else that the test does.

use std::path::Path;

use hyper::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::runtime::Runtime;

/// Where the API server has what lies in namespaces.
const NAMESPACED: [(&str, &[&str]); 8] = [
    ("api/v1", &["configmap", "event", "persistentvolumeclaim", "pod", "secret", "service"]),
    ("apis/apps/v1", &["deployment", "statefulset"]),
    ("apis/autoscaling/v2", &["horizontalpodautoscaler"]),
    ("apis/batch/v1", &["cronjob", "job"]),
    ("apis/coordination.k8s.io/v1", &["lease"]),
    ("apis/gatehouse.dev/v1", &["etcdcluster", "tdset"]),
    ("apis/policy/v1", &["poddisruptionbudget"]),
    ("apis/rbac.authorization.k8s.io/v1", &["role"]),
];

/// And what does not.
const CLUSTER_WIDE: [(&str, &[&str]); 3] = [
    ("api/v1", &["persistentvolume"]),
    (
        "apis/admissionregistration.k8s.io/v1",
        &["mutatingwebhookconfiguration", "validatingwebhookconfiguration"],
    ),
    ("apis/rbac.authorization.k8s.io/v1", &["clusterrole"]),
];

/// The administrator, who reads.
pub struct Objects {
    runtime: Runtime,
    client: Client,
}

impl Objects {
    pub fn new(kubeconfig: &Path) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let client = runtime.block_on(async {
            let config = config(kubeconfig).await;
            Client::try_from(config).expect("a client")
        });
        Self { runtime, client }
    }

    /// An object, such as `pod/main-0`, where it is there.
    pub fn get(&self, object: &str, namespace: &str) -> Result<Value, String> {
        let (kind, name) = object.split_once('/').expect("a kind and a name");
        self.read(&format!("{}/{name}", path(kind, namespace)))
    }

    /// The objects of a kind, such as `pods`, that have these labels; all, where none is named.
    pub fn list(&self, resource: &str, namespace: &str, labels: &str) -> Result<Vec<Value>, String> {
        let kind = resource.strip_suffix('s').expect("a plural");
        let mut list = self.read(&format!("{}?labelSelector={labels}", path(kind, namespace)))?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            other => Err(format!("no list of {resource}: {other}")),
        }
    }

    /// What the API server says of a path; why not, where it says that there is nothing or says nothing.
    fn read(&self, path: &str) -> Result<Value, String> {
        let request = Request::get(path).body(Vec::new()).expect("a request");
        let answer = self.runtime.block_on(self.client.request(request));
        answer.map_err(|error| format!("GET {path}: {error}"))
    }
}

/// Where the API server has the objects of a kind.
fn path(kind: &str, namespace: &str) -> String {
    let among = |places: &[(&'static str, &[&str])]| {
        places.iter().find(|(_, kinds)| kinds.contains(&kind)).map(|(group, _)| *group)
    };
    if let Some(group) = among(&NAMESPACED) {
        return format!("/{group}/namespaces/{namespace}/{kind}s");
    }
    let group = among(&CLUSTER_WIDE).unwrap_or_else(|| panic!("{kind} is no kind that tests read"));
    format!("/{group}/{kind}s")
}

/// A condition of an object.
pub fn condition(object: &Value, about: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == about).unwrap_or_default()
}

/// The administrator of the cluster of a kubeconfig.
pub async fn config(kubeconfig: &Path) -> Config {
    // The second client of a process finds it installed.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let read = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    config.expect("a sound kubeconfig")
}
