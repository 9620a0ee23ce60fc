//! What becomes of the installation when gatehouse dies, comes back, comes twice, or when others change what it
//! wrote. Each test has a control plane of its own.

use std::collections::BTreeMap;
use std::time::Instant;

use gatehouse::kinds::KINDS;
use serde_json::{Value, json};
use testbed::{ControlPlane, Options};

use crate::Alone;
use crate::direct::{Call, Direct, of};
use crate::support::{Bed, Gate, NAMESPACE, PATIENCE, until_established};

pub const TESTS: &[Alone] = &[
    ("a_restart_changes_nothing", a_restart_changes_nothing),
    ("while_the_gate_is_down_writes_are_refused", while_the_gate_is_down_writes_are_refused),
    (
        "objects_from_before_the_gate_are_served_in_both_versions",
        objects_from_before_the_gate_are_served_in_both_versions,
    ),
    ("what_others_change_is_put_back_once", what_others_change_is_put_back_once),
    (
        "a_lost_authority_is_replaced_without_a_failed_call",
        a_lost_authority_is_replaced_without_a_failed_call,
    ),
    ("two_replicas_agree_and_rest", two_replicas_agree_and_rest),
];

const SECRET: &str = "/api/v1/namespaces/gatehouse-system/secrets/gatehouse-ca";
const ETCDCLUSTERS: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/etcdclusters.gatehouse.dev";
const TDSETS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tdsets.gatehouse.dev";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/gatehouse";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/gatehouse";
/// All that gatehouse writes when it installs itself.
const WRITTEN: [&str; 5] = [SECRET, ETCDCLUSTERS, TDSETS, MUTATING, VALIDATING];

/// How long nothing may happen until it counts as rest, in seconds: the guard groups changes for a quarter of one.
const REST: u32 = 3;

/// A control plane, its administrator, and whoever stands at its gate.
struct Life {
    direct: Direct,
    bed: Bed,
}

impl Life {
    fn begin() -> Self {
        let options = Options { controller_manager: false, ..Options::from_env().expect("sound options") };
        let bed = Bed::without_gate(&options).unwrap_or_else(|error| panic!("{error}"));
        Self { direct: Direct::new(bed.cluster.kubeconfig()), bed }
    }

    fn with_gate() -> (Self, Gate) {
        let life = Self::begin();
        let gate = Gate::install(&life.bed.cluster).unwrap_or_else(|error| panic!("{error}"));
        life.until_guarded();
        (life, gate)
    }

    fn call(&self, method: &'static str, path: &str, body: Value) -> Result<Value, String> {
        let call = Call { method, path: path.to_owned(), body };
        self.direct.one(call).map_err(|refusal| refusal.message)
    }

    fn create(&self, object: &Value) -> Result<Value, String> {
        self.call("POST", &collection(object), object.clone())
    }

    /// Waits until the API server asks the gate about new objects.
    fn until_guarded(&self) {
        until("the gate is asked", || {
            let path = collection(&cluster("v1", "asked")) + "?dryRun=All";
            let unsupported = json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster",
                "metadata": {"name": "asked"}, "spec": {"version": "3.4.1"}});
            self.call("POST", &path, unsupported).is_err_and(|message| message.contains("spec.version"))
        });
    }

    /// The resource version of each of these objects.
    fn versions(&self, paths: &[&str]) -> BTreeMap<String, String> {
        let version = |path: &&str| {
            let object = self.direct.get(path);
            let version = object["metadata"]["resourceVersion"].as_str().expect("a version");
            ((*path).to_owned(), version.to_owned())
        };
        paths.iter().map(version).collect()
    }

    /// What happens to these objects from those versions on, until nothing has happened for a while.
    fn events_since(&self, versions: &BTreeMap<String, String>) -> Vec<String> {
        let watches = versions.iter().map(|(path, version)| {
            let (collection, name) = path.rsplit_once('/').expect("a path");
            format!(
                "{collection}?watch=true&timeoutSeconds={REST}&resourceVersion={version}\
                 &fieldSelector=metadata.name%3D{name}"
            )
        });
        self.direct
            .texts(watches.collect())
            .iter()
            .flat_map(|text| text.lines())
            .map(ToOwned::to_owned)
            .collect()
    }

    /// What the four objects that hold a bundle have the API server trust.
    fn bundles(&self) -> Vec<String> {
        let hook = "/webhooks/0/clientConfig/caBundle";
        let conversion = "/spec/conversion/webhook/clientConfig/caBundle";
        [(ETCDCLUSTERS, conversion), (TDSETS, conversion), (MUTATING, hook), (VALIDATING, hook)]
            .into_iter()
            .map(|(path, pointer)| match self.call("GET", path, Value::Null) {
                Ok(object) => object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned(),
                Err(_gone) => String::new(),
            })
            .collect()
    }

    /// Writes and reads in both versions, as users do.
    fn use_both_versions(&self, name: &str) {
        for version in ["v1", "v1alpha1"] {
            let object = cluster(version, &format!("{name}-{version}"));
            self.create(&object).unwrap_or_else(|message| panic!("{message}"));
        }
        for version in ["v1", "v1alpha1"] {
            let list = self.direct.get(&of(version, "default", "etcdclusters"));
            let items = list["items"].as_array().expect("a list");
            assert!(items.iter().all(|item| item["apiVersion"] == format!("gatehouse.dev/{version}")));
            assert!(items.len() >= 2);
        }
    }
}

fn cluster(version: &str, name: &str) -> Value {
    let spec = match version {
        "v1" => json!({"replicas": 3, "version": "3.6.16", "storage": {"size": "10Gi", "className": "fast"}}),
        _ => json!({"size": 3, "version": "3.6.16"}),
    };
    json!({"apiVersion": format!("gatehouse.dev/{version}"), "kind": "EtcdCluster", "metadata": {"name": name},
        "spec": spec})
}

fn collection(object: &Value) -> String {
    let version = object["apiVersion"].as_str().and_then(|text| text.strip_prefix("gatehouse.dev/"));
    let plural = if object["kind"] == "TDSet" { "tdsets" } else { "etcdclusters" };
    of(version.expect("ours"), "default", plural)
}

/// Asks again until it is so.
#[track_caller]
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < PATIENCE, "it never comes to pass that {what}");
        std::thread::yield_now();
    }
}

/// A gate that listens at `port` (0: at any), installs itself under `public` (0: under its own), and has done so.
fn spawn(cluster: &ControlPlane, port: u16, public: u16) -> Gate {
    let kubeconfig = cluster.kubeconfig_for_service_account(NAMESPACE, "gatehouse").expect("a kubeconfig");
    let (listen, url) = (format!("127.0.0.1:{port}"), format!("https://127.0.0.1:{public}"));
    let words = ["serve", "--listen", &listen, "--health-listen", "127.0.0.1:0", "--webhook-url", &url];
    let words = [&words[..], &["--drain-delay", "100ms", "--drain-deadline", "1s"]].concat();
    Gate::spawn(cluster.folder(), Some(&kubeconfig), &words).unwrap_or_else(|error| panic!("{error}"))
}

/// The same gate again, after its end.
fn again(life: &Life, port: u16) -> Gate {
    let mut gate = spawn(&life.bed.cluster, port, port);
    gate.wait_for("installed").unwrap_or_else(|error| panic!("{error}"));
    gate
}

fn a_restart_changes_nothing() {
    let (life, gate) = Life::with_gate();
    let port = gate.address.port();
    life.use_both_versions("kept");
    let before = life.versions(&WRITTEN);

    gate.kill();
    let gate = again(&life, port);
    assert_eq!(life.versions(&WRITTEN), before, "after a crash");
    assert!(gate.stop(), "it ends well");
    let _gate = again(&life, port);
    assert_eq!(life.versions(&WRITTEN), before, "after an end");
    life.use_both_versions("new");
    let no_events: [String; 0] = [];
    assert_eq!(life.events_since(&before), no_events, "later");
}

fn while_the_gate_is_down_writes_are_refused() {
    let (life, gate) = Life::with_gate();
    let port = gate.address.port();
    life.use_both_versions("kept");
    gate.kill();
    let refused = life.create(&cluster("v1", "lost")).expect_err("nobody judges it");
    assert!(refused.contains("failed calling webhook \"mutate.gatehouse.dev\""), "{refused}");
    let path = of("v1", "default", "etcdclusters") + "/kept-v1";
    let refused = life.call("DELETE", &path, Value::Null).expect_err("nobody judges it");
    assert!(refused.contains("failed calling webhook \"validate.gatehouse.dev\""), "{refused}");
    // What needs no conversion needs no gate, status included: whoever works the objects goes on.
    life.direct.get(&path);
    let status = json!({"status": {"replicas": 3}});
    life.call("PATCH", &format!("{path}/status"), status).expect("a status is nobody's to judge");
    let refused =
        life.call("GET", &path.replace("/v1/", "/v1alpha1/"), Value::Null).expect_err("no conversion");
    assert!(refused.contains("conversion webhook for gatehouse.dev/v1"), "{refused}");
    // Other kinds, and the namespace, do not care.
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}});
    life.call("POST", "/api/v1/namespaces/default/configmaps", map).expect("not ours to judge");

    let _gate = again(&life, port);
    life.use_both_versions("new");
    life.call("DELETE", &path, Value::Null).expect("judged again");
}

fn objects_from_before_the_gate_are_served_in_both_versions() {
    let life = Life::begin();
    let definitions = |stored: &str| {
        let definitions = KINDS.iter().map(|kind| {
            let mut definition = kind.definition().clone();
            for version in &mut definition.spec.versions {
                version.storage = version.name == stored;
            }
            definition
        });
        json!({"apiVersion": "v1", "kind": "List", "items": definitions.collect::<Vec<_>>()}).to_string()
    };
    let apply = |stored: &str| {
        life.bed.kubectl(&["apply", "--server-side"]).input(definitions(stored)).ok();
        for kind in KINDS {
            let name = kind.definition().metadata.name.as_deref().expect("a name");
            until_established(&life.bed.cluster, name);
        }
    };
    apply("v1alpha1");
    let old = json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet", "metadata": {"name": "oldest"},
        "spec": {"container": {"image": "shop", "port": 80}, "defaultReplica": 2,
            "schedulingConfig": [{"startTime": 8, "endTime": 18, "replica": 6}]}});
    until("definitions are served", || life.create(&old).is_ok());
    life.create(&cluster("v1alpha1", "old")).expect("stored as it is written");
    apply("v1");
    let stored = |name: &str, spec: Value| json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": name}, "spec": spec});
    // Valid for the definition, and not for the gate.
    life.create(&stored("sound", json!({"replicas": 5}))).expect("sound");
    life.create(&stored("ailing", json!({"version": "3.4.1"}))).expect("nobody minds yet");

    let _gate = Gate::install(&life.bed.cluster).unwrap_or_else(|error| panic!("{error}"));
    life.until_guarded();
    let get = |version: &str, plural: &str, name: &str| {
        life.direct.get(&format!("{}/{name}", of(version, "default", plural)))["spec"].clone()
    };
    assert_eq!(get("v1", "etcdclusters", "old")["replicas"], 3);
    assert_eq!(get("v1alpha1", "etcdclusters", "old"), json!({"size": 3, "version": "3.6.16"}));
    assert_eq!(get("v1alpha1", "etcdclusters", "sound"), json!({"size": 5}));
    assert_eq!(get("v1alpha1", "etcdclusters", "ailing"), json!({"version": "3.4.1"}));
    assert_eq!(get("v1alpha1", "tdsets", "oldest"), old["spec"]);
    let windows = json!([{"name": "w0", "from": "08:00", "to": "18:00", "replicas": 6}]);
    assert_eq!(get("v1", "tdsets", "oldest")["windows"], windows);
    for (plural, name) in
        [("etcdclusters", "old"), ("etcdclusters", "sound"), ("etcdclusters", "ailing"), ("tdsets", "oldest")]
    {
        for version in ["v1alpha1", "v1"] {
            let path = format!("{}/{name}", of(version, "default", plural));
            let label = json!({"metadata": {"labels": {"seen-in": version}}});
            life.call("PATCH", &path, label).unwrap_or_else(|message| panic!("{path}: {message}"));
        }
    }
}

fn what_others_change_is_put_back_once() {
    let (life, _gate) = Life::with_gate();
    let part = |path: &str| {
        let object = life.direct.get(path);
        (object["spec"].clone(), object["webhooks"].clone())
    };
    let before = WRITTEN.map(part);
    // All at once, as a careless `kubectl apply` of plain manifests would do it.
    let stripped = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    let unknown = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": null}}}}});
    let mut validating = life.direct.get(VALIDATING);
    validating["webhooks"][0]["clientConfig"]["caBundle"] = Value::Null;
    validating["webhooks"][0]["failurePolicy"] = "Ignore".into();
    let call = |method, path: &str, body| Call { method, path: path.to_owned(), body };
    let outcomes = life.direct.all(vec![
        call("PATCH", ETCDCLUSTERS, stripped),
        call("PATCH", TDSETS, unknown),
        call("DELETE", MUTATING, Value::Null),
        call("PUT", VALIDATING, validating),
    ]);
    for outcome in outcomes {
        outcome.unwrap_or_else(|refusal| panic!("{}", refusal.message));
    }
    until("all is put back", || {
        let is_there = life.call("GET", MUTATING, Value::Null).is_ok();
        is_there && WRITTEN.map(part) == before
    });
    life.until_guarded();
    life.use_both_versions("after");
    let settled = life.versions(&WRITTEN);
    let no_events: [String; 0] = [];
    assert_eq!(life.events_since(&settled), no_events, "nothing is written without need");

    // What is not ours stays: a label of somebody's own is no drift.
    life.call("PATCH", VALIDATING, json!({"metadata": {"labels": {"team": "platform"}}})).expect("a label");
    let labelled = life.versions(&WRITTEN);
    assert_eq!(life.events_since(&labelled), no_events);
    assert_eq!(life.direct.get(VALIDATING)["metadata"]["labels"]["team"], "platform");
}

fn a_lost_authority_is_replaced_without_a_failed_call() {
    let (life, gate) = Life::with_gate();
    let port = gate.address.port();
    let before = life.bundles();
    assert!(before.iter().all(|bundle| *bundle == before[0]), "one bundle everywhere");
    let secret = || life.call("GET", SECRET, Value::Null);
    // The guard reads the Secret when something is amiss; else it would be read within a minute.
    let look = |text: &str| {
        let label = json!({"metadata": {"labels": {"look": text}}});
        life.call("PATCH", VALIDATING, label).expect("a label");
    };

    life.call("DELETE", SECRET, Value::Null).expect("deleted");
    life.use_both_versions("without");
    look("again");
    until("there is an authority again", || secret().is_ok());
    let key = secret().expect("there")["data"]["ca.key"].clone();
    until("everybody trusts it", || {
        let bundles = life.bundles();
        life.create(&cluster("v1", "asked")).is_err() || {
            let path = of("v1", "default", "etcdclusters") + "/asked";
            life.call("DELETE", &path, Value::Null).expect("every call is answered");
            bundles[0] != before[0] && bundles.iter().all(|bundle| *bundle == bundles[0])
        }
    });
    assert_eq!(secret().expect("there")["data"]["ca-bundle.crt"], life.bundles()[0]);
    let certificates = |text: &str| -> usize {
        use base64::Engine as _;
        let pem = base64::engine::general_purpose::STANDARD.decode(text).expect("base64");
        String::from_utf8(pem).expect("PEM").matches("BEGIN CERTIFICATE").count()
    };
    assert_eq!(certificates(&life.bundles()[0]), 2, "the one before stays trusted");
    life.use_both_versions("both-trusted");

    // Somebody spoils the bundle: it is written again, with the rights that gatehouse has.
    life.call("PATCH", SECRET, json!({"data": {"ca-bundle.crt": null}})).expect("spoilt");
    look("once-more");
    until("the bundle is whole", || {
        let bundle = secret().expect("there")["data"]["ca-bundle.crt"].clone();
        bundle.as_str().is_some_and(|bundle| certificates(bundle) >= 1)
    });
    assert_eq!(secret().expect("there")["data"]["ca.key"], key, "the authority is the same");

    let settled = life.versions(&WRITTEN);
    gate.kill();
    let _gate = again(&life, port);
    life.use_both_versions("restarted");
    assert_eq!(life.versions(&WRITTEN), settled, "a new process finds all as it should be");
}

fn two_replicas_agree_and_rest() {
    let life = Life::begin();
    let mut one = spawn(&life.bed.cluster, 0, 0);
    // Behind one address, as replicas of a Deployment are behind one Service. Started at the same time.
    let mut other = spawn(&life.bed.cluster, 0, one.address.port());
    for gate in [&mut one, &mut other] {
        gate.wait_for("installed").unwrap_or_else(|error| panic!("{error}"));
    }
    life.until_guarded();
    let bundles = life.bundles();
    assert!(!bundles[0].is_empty() && bundles.iter().all(|bundle| *bundle == bundles[0]), "one authority");
    assert_eq!(life.direct.get(SECRET)["data"]["ca-bundle.crt"], bundles[0]);
    let settled = life.versions(&WRITTEN);
    let no_events: [String; 0] = [];
    assert_eq!(life.events_since(&settled), no_events, "neither undoes what the other did");

    life.call(
        "PATCH",
        TDSETS,
        json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": null}}}}}),
    )
    .expect("wiped");
    until("it is put back", || life.bundles() == bundles);
    let events = life.events_since(&settled);
    assert_eq!(events.len(), 2, "one write wipes it, and one puts it back: {events:?}");
}
