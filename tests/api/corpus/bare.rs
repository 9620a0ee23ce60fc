//! A control plane that has our definitions, somebody who converts, and no webhook configuration.

use std::fs;
use std::net::SocketAddr;
use std::time::Instant;

use gatehouse::certs::certificate::{Bundle, Certificate};
use gatehouse::install::{Address, Plan, definitions};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use testbed::{ControlPlane, Options};

use crate::direct::Direct;
use crate::support::{Bed, Gate, PATIENCE, until_established};

/// The control plane, and what converts in it. Dropped, both end.
pub struct Bare {
    pub direct: Direct,
    plan: Plan,
    _converter: Gate,
    pub cluster: ControlPlane,
}

impl Bare {
    /// Starts one of the version that `bed` has, with the definitions in it.
    pub fn start(bed: &Bed) -> Self {
        let bare = Self::without_definitions(bed);
        bare.define(&definitions::all(&bare.plan));
        bare
    }

    /// The same without the definitions.
    pub fn without_definitions(bed: &Bed) -> Self {
        let version = Direct::new(bed.cluster.kubeconfig()).get("/version");
        let part = |name: &str| version[name].as_str().expect("a number").to_owned();
        let version = format!("{}.{}", part("major"), part("minor")).parse().expect("one of the testbed's");
        let options = Options { version, controller_manager: false, ..Options::default() };
        let cluster = ControlPlane::start(&options).unwrap_or_else(|error| panic!("{error}"));
        let (converter, bundle) = converter(&cluster);
        let address = Address::Url { host: "127.0.0.1".to_owned(), port: converter.address.port() };
        let plan = Plan { bundle: Some(bundle), ..Plan::at(address) };
        let direct = Direct::new(cluster.kubeconfig());
        Self { direct, plan, _converter: converter, cluster }
    }

    /// The definitions as they are installed.
    pub fn definitions(&self) -> Vec<CustomResourceDefinition> {
        definitions::all(&self.plan)
    }

    /// Writes definitions, and waits until they are served as they are written.
    pub fn define(&self, definitions: &[CustomResourceDefinition]) {
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": definitions});
        let file = self.cluster.folder().join("definitions.json");
        fs::write(&file, list.to_string()).expect("a file");
        let mut command = self.cluster.kubectl();
        command.args(["apply", "--server-side", "--force-conflicts", "-f"]).arg(file);
        let output = command.output().expect("kubectl runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for definition in definitions {
            until_established(&self.cluster, definition.metadata.name.as_deref().expect("a name"));
        }
    }
}

/// A gate that needs no cluster, and what its clients have to trust.
fn converter(cluster: &ControlPlane) -> (Gate, Bundle) {
    let mut parameters = CertificateParams::new(Vec::new()).expect("parameters");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = parameters.self_signed(&key).expect("an authority");
    let issuer = Issuer::new(parameters, key);
    let leaf_key = KeyPair::generate().expect("a key");
    let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
    let leaf = leaf.signed_by(&leaf_key, &issuer).expect("a leaf");
    let file = |name: &str, text: String| {
        let path = cluster.folder().join(name);
        fs::write(&path, text).expect("a file");
        path.to_string_lossy().into_owned()
    };
    let (key, chain) = (file("tls.key", leaf_key.serialize_pem()), file("tls.crt", leaf.pem()));
    let words = ["serve", "--webhook-only", "--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0"];
    let words = [&words[..], &["--tls-cert", &chain, "--tls-key", &key]].concat();
    let gate = Gate::spawn(cluster.folder(), None, &words).unwrap_or_else(|error| panic!("{error}"));
    until_ready(gate.health);
    let bundle = Bundle::of(Certificate::read_all(authority.pem().as_bytes())).expect("an authority");
    (gate, bundle)
}

/// Waits until a gate says that it is ready.
pub fn until_ready(health: SocketAddr) {
    let begun = Instant::now();
    while !crate::direct::http_get(health, "/readyz").starts_with("HTTP/1.1 200") {
        assert!(begun.elapsed() < PATIENCE, "the gate does not get ready");
        std::thread::yield_now();
    }
}
