//! A control plane that has our definitions, a gate that converts, and no webhook configuration. There is one of each
//! version, which ends with this process.

use std::fs;
use std::path::Path;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use gatehouse::certs::certificate::{Bundle, Certificate};
use gatehouse::install::{Address, Plan, definitions};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kit::bed::Bed;
use kit::harness;
use kit::objects::{Ask, http_get, of};
use kit::program::{Gate, Program};
use kit::wait::eventually;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;
use testbed::{KubernetesVersion, Options};

use crate::beds::ours;

/// The control plane, and what converts in it.
pub struct Bare {
    pub bed: Bed,
    plan: Plan,
    pub converter: Gate,
    turns: RwLock<()>,
}

/// The one of the version that `bed` has.
pub fn beside(bed: &Bed) -> &'static Bare {
    static OLDER: OnceLock<Bare> = OnceLock::new();
    static NEWEST: OnceLock<Bare> = OnceLock::new();
    let version = bed.objects.at("/version");
    let part = |name: &str| version[name].as_str().expect("a number").to_owned();
    let version = format!("{}.{}", part("major"), part("minor"));
    // Managed clusters say such as `36+`.
    let version = version.trim_end_matches('+').parse().unwrap_or_else(|error| {
        panic!("these tests need a control plane of their own of the version that the cluster has: {error}")
    });
    let bare = match version {
        KubernetesVersion::V1_34 => &OLDER,
        KubernetesVersion::V1_37 => &NEWEST,
    };
    let bare = bare.get_or_init(|| Bare::start(version));
    bare.bed.is_used();
    bare
}

impl Bare {
    fn start(version: KubernetesVersion) -> Self {
        let options = Options::from_env().unwrap_or_else(|error| panic!("{error}"));
        let options = Options { version, ..ours(options, false) };
        let bed = Bed::start(&options, kit::gatehouse!()).unwrap_or_else(|error| panic!("{error}"));
        let (converter, bundle) = converter(bed.cluster.folder());
        let address = Address::Url { host: "127.0.0.1".to_owned(), port: converter.address.port() };
        let plan = Plan { bundle: Some(bundle), ..Plan::at(address) };
        let bare = Self { bed, plan, converter, turns: RwLock::default() };
        bare.define(&bare.definitions());
        bare
    }

    /// Waits until no test changes what is installed, and keeps it so.
    pub fn turn_of_many(&self) -> RwLockReadGuard<'_, ()> {
        let turn = self.turns.read().unwrap_or_else(PoisonError::into_inner);
        harness::begin_limit();
        turn
    }

    /// Waits until no other test uses it.
    pub fn turn_of_one(&self) -> RwLockWriteGuard<'_, ()> {
        let turn = self.turns.write().unwrap_or_else(PoisonError::into_inner);
        harness::begin_limit();
        turn
    }

    /// The definitions as they are installed.
    pub fn definitions(&self) -> Vec<CustomResourceDefinition> {
        definitions::all(&self.plan)
    }

    /// Takes the definitions away, and all objects with them.
    pub fn undefine(&self) {
        for definition in self.definitions() {
            let name = definition.metadata.name.expect("a name");
            let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
            self.bed.objects.must(Ask::delete(path));
            self.bed.objects.until_gone(&format!("customresourcedefinition/{name}"), "");
        }
    }

    /// Writes definitions, and waits until they are served.
    pub fn define(&self, definitions: &[CustomResourceDefinition]) {
        for definition in definitions {
            let mut object = json!(definition);
            object["apiVersion"] = "apiextensions.k8s.io/v1".into();
            object["kind"] = "CustomResourceDefinition".into();
            self.bed.objects.must(Ask::apply(&object, "", ""));
        }
        for definition in definitions {
            self.bed.until_established(definition.metadata.name.as_deref().expect("a name"));
            for version in &definition.spec.versions {
                let path = of(&version.name, "default", &definition.spec.names.plural);
                eventually(|| self.bed.objects.read(&path));
            }
        }
    }
}

/// A gate that needs no cluster, and what its clients have to trust.
fn converter(folder: &Path) -> (Gate, Bundle) {
    let mut parameters = CertificateParams::new(Vec::new()).expect("parameters");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = parameters.self_signed(&key).expect("an authority");
    let issuer = Issuer::new(parameters, key);
    let leaf_key = KeyPair::generate().expect("a key");
    let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
    let leaf = leaf.signed_by(&leaf_key, &issuer).expect("a leaf");
    let file = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).expect("a file");
        path.to_string_lossy().into_owned()
    };
    let (key, chain) = (file("tls.key", leaf_key.serialize_pem()), file("tls.crt", leaf.pem()));
    let words = ["serve", "--webhook-only", "--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0"];
    let words = [&words[..], &["--tls-cert", &chain, "--tls-key", &key]].concat();
    let gate = Gate::of(&Program::gatehouse(kit::gatehouse!(), &words), &folder.join("converter.log"));
    let gate = gate.unwrap_or_else(|error| panic!("{error}"));
    eventually(|| {
        let page = http_get(gate.health, "/readyz");
        if page.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(page) }
    });
    let bundle = Bundle::of(Certificate::read_all(authority.pem().as_bytes())).expect("an authority");
    (gate, bundle)
}
