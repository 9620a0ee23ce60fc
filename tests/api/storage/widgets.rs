//! A definition of a group of its own, with two versions that differ in `apiVersion` alone, and its objects as etcd has
//! them.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kit::bed::{Bed, Namespace};
use kit::objects::Ask;
use kit::wait::eventually;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What the object is called by which a test finds out how objects are stored.
pub const PROBE: &str = "probe";

/// How a command ended, and what it printed.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub output: String,
    pub errors: String,
}

/// `gatehouse storage` with these words, as it is started.
pub fn command(kubeconfig: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(kit::gatehouse!());
    command.arg("storage").args(words).env("KUBECONFIG", kubeconfig);
    command
}

/// Runs it as the administrator.
pub fn run(bed: &Bed, words: &[&str]) -> Ran {
    run_as(bed.cluster.kubeconfig(), words)
}

/// Runs it as another user.
pub fn run_as(kubeconfig: &Path, words: &[&str]) -> Ran {
    let ran = command(kubeconfig, words).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it writes UTF-8");
    Ran {
        code: ran.status.code().expect("it ends by itself"),
        output: text(ran.stdout),
        errors: text(ran.stderr),
    }
}

/// What etcd itself holds below `group/plural`: the name of each object, and its version.
pub fn stored_in(bed: &Bed, resource: &str) -> Vec<(String, String)> {
    let mut command = bed.cluster.etcdctl().expect("an etcd of our own");
    let prefix = format!("/registry/{resource}/");
    let read = command.args(["get", "--prefix", &prefix, "-w", "json"]).output().expect("etcdctl runs");
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let read: Value = serde_json::from_slice(&read.stdout).expect("JSON");
    let values = read["kvs"].as_array().cloned().unwrap_or_default();
    let object = |kv: Value| {
        let bytes = STANDARD.decode(kv["value"].as_str().expect("a value")).expect("base64");
        let object: Value = serde_json::from_slice(&bytes).expect("an object");
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let version = text(&object["apiVersion"]);
        let version = version.rsplit('/').next().unwrap_or_default().to_owned();
        (text(&object["metadata"]["name"]), version)
    };
    values.into_iter().map(object).collect()
}

/// What `storage status` says holds a version of a definition back.
pub fn held_back(bed: &Bed, definition: &str, version: &str) -> Value {
    let ran = run(bed, &["status", definition, "-o", "json"]);
    let told: Value = serde_json::from_str(&ran.output).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let others = told["definitions"][0]["otherVersions"].as_array().cloned().unwrap_or_default();
    let found = others.into_iter().find(|other| other["version"] == version);
    found.map_or_else(|| json!([]), |mut other| other["heldBackBy"].take())
}

/// The definition of a test, in a group of its own.
pub struct Widgets<'a> {
    pub bed: &'a Bed,
    pub group: String,
    /// Of the definition.
    pub name: String,
    namespaces: Vec<Namespace<'a>>,
    has_status: bool,
    probes: AtomicU32,
}

impl<'a> Widgets<'a> {
    /// A definition that stores its objects as v1alpha1.
    pub fn stored_as_v1alpha1(bed: &'a Bed, test: &str, has_status: bool) -> Self {
        let group = format!("{test}.example.dev");
        let namespaces = vec![bed.namespace(), bed.namespace(), bed.namespace()];
        let name = format!("widgets.{group}");
        let widgets = Self { bed, group, name, namespaces, has_status, probes: AtomicU32::new(0) };
        widgets.define();
        widgets
    }

    fn define(&self) {
        self.apply(&[("v1alpha1", true, true), ("v1", true, false)]);
        self.bed.until_established(&self.name);
        self.until_stored_as("v1alpha1");
    }

    /// Makes another definition of that name, which has been taken away, and has it store v1.
    pub fn make_again(&self) {
        self.define();
        self.store_as_v1();
    }

    /// Applies the definition with these versions, each with whether it is served and stored.
    pub fn apply(&self, versions: &[(&str, bool, bool)]) {
        self.apply_with_shade("", versions);
    }

    /// The same where one version alone has a field `spec.shade`.
    pub fn apply_with_shade(&self, shaded: &str, versions: &[(&str, bool, bool)]) {
        let schema = |version: &str| {
            let mut fields = json!({"size": {"type": "integer"}, "colour": {"type": "string"}});
            if version == shaded {
                fields["shade"] = json!({"type": "string"});
            }
            json!({"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": fields},
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}})
        };
        let subresources = if self.has_status { json!({"status": {}}) } else { json!({}) };
        let version = |(name, served, storage): &(&str, bool, bool)| {
            json!({"name": name, "served": served, "storage": storage, "schema": schema(name),
                "subresources": subresources})
        };
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name}, "spec": {
                "group": self.group, "scope": "Namespaced",
                "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
                "versions": versions.iter().map(version).collect::<Vec<_>>()}});
        self.bed.objects.must(Ask::apply(&definition, "", ""));
    }

    /// Has objects be stored as v1 from now on.
    pub fn store_as_v1(&self) {
        self.apply(&[("v1alpha1", true, false), ("v1", true, true)]);
        self.until_stored_as("v1");
        assert_eq!(self.stored_versions(), json!(["v1alpha1", "v1"]));
    }

    /// Waits until the API server writes objects in that version.
    pub fn until_stored_as(&self, version: &str) {
        eventually(|| {
            let number = self.probes.fetch_add(1, Ordering::Relaxed);
            let object = self.object(version, PROBE, number);
            let applied = Ask::apply(&object, self.namespace(), "");
            self.bed.objects.one(applied).map_err(|refusal| refusal.message)?;
            let stored = self.all_in_etcd();
            let found = stored.iter().find(|(name, _)| name == PROBE).map(|(_, version)| version.as_str());
            if found == Some(version) { Ok(()) } else { Err(format!("stored as {found:?}")) }
        });
    }

    /// Waits until the API server does not serve that version.
    pub fn until_unserved(&self, version: &str) {
        let path = format!("/apis/{}/{version}/widgets", self.group);
        eventually(|| match self.bed.objects.one(Ask::get(&*path)) {
            Err(refusal) if refusal.code == 404 => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }

    /// The namespace of objects that are not spread.
    pub fn namespace(&self) -> &str {
        &self.namespaces[0].name
    }

    /// An object.
    pub fn object(&self, version: &str, name: &str, size: u32) -> Value {
        json!({"apiVersion": format!("{}/{version}", self.group), "kind": "Widget",
            "metadata": {"name": name}, "spec": {"size": size}})
    }

    /// The namespace of the object of that number, and its name.
    pub fn place(&self, number: usize) -> (&str, String) {
        (&self.namespaces[number % self.namespaces.len()].name, format!("widget-{number:03}"))
    }

    /// The number of an object by its name.
    pub fn number_of(name: &str) -> usize {
        let number = name.strip_prefix("widget-").and_then(|number| number.parse().ok());
        number.unwrap_or_else(|| panic!("{name} has no number"))
    }

    /// Where the object of that number is.
    pub fn path_of(&self, version: &str, number: usize) -> String {
        let (namespace, name) = self.place(number);
        format!("/apis/{}/{version}/namespaces/{namespace}/widgets/{name}", self.group)
    }

    /// Where an object is that is not spread.
    pub fn path(&self, version: &str, name: &str) -> String {
        format!("/apis/{}/{version}/namespaces/{}/widgets/{name}", self.group, self.namespace())
    }

    /// Makes so many objects as v1alpha1, spread over namespaces.
    pub fn make(&self, count: usize) {
        let asks = (0..count).map(|number| {
            let (namespace, name) = self.place(number);
            Ask::create(&self.object("v1alpha1", &name, 1), namespace)
        });
        for outcome in self.bed.objects.all(asks.collect()) {
            outcome.unwrap_or_else(|refusal| panic!("{}", refusal.message));
        }
        assert_eq!(self.in_etcd("v1alpha1").len(), count, "they are stored as that");
    }

    /// Where the definition is.
    pub fn path_of_definition(&self) -> String {
        format!("{DEFINITIONS}/{}", self.name)
    }

    /// The definition as it is.
    pub fn definition(&self) -> Value {
        self.bed.objects.at(&self.path_of_definition())
    }

    /// The versions that objects may be stored in.
    pub fn stored_versions(&self) -> Value {
        self.definition()["status"]["storedVersions"].clone()
    }

    /// Has the definition say that no object is stored in another version than v1, as a person may.
    pub fn reduce_by_hand(&self) {
        let status = format!("{}/status", self.path_of_definition());
        self.bed.objects.must(Ask::patch(status, json!({"status": {"storedVersions": ["v1"]}})));
    }

    /// What `storage status` says holds a version back.
    pub fn held_back(&self, version: &str) -> Value {
        held_back(self.bed, &self.name, version)
    }

    /// The names of the objects that etcd holds in a version, without the one by which the test found out.
    pub fn in_etcd(&self, version: &str) -> Vec<String> {
        let all = self.all_in_etcd().into_iter().filter(|(name, stored)| stored == version && name != PROBE);
        all.map(|(name, _)| name).collect()
    }

    fn all_in_etcd(&self) -> Vec<(String, String)> {
        stored_in(self.bed, &format!("{}/widgets", self.group))
    }

    /// Has no object of that name be written; what lifts that.
    pub fn refuse(&self, name: &str) -> impl FnOnce() {
        refuse(self.bed, (&self.group, "v1", "widgets"), name)
    }
}

/// A policy that is taken away at the latest when its test ends.
struct Refusal<'a> {
    bed: &'a Bed,
    places: [String; 2],
}

impl Drop for Refusal<'_> {
    fn drop(&mut self) {
        self.bed.objects.discard(self.places.to_vec());
    }
}

/// Has no object of that name be written, of a group, a version to ask by, and what its objects are called in paths; what
/// lifts that.
pub fn refuse<'a>(
    bed: &'a Bed,
    (group, version, plural): (&str, &str, &str),
    name: &str,
) -> impl FnOnce() + use<'a> {
    const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
    let collections = ["validatingadmissionpolicybindings", "validatingadmissionpolicies"];
    let collections = collections.map(|resource| format!("{ADMISSION}/{resource}"));
    // A short name: a condition has room for the first words of a refusal alone, which begins with it.
    let policy = group.to_owned();
    let about = |kind: &str, spec: Value| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": policy}, "spec": spec})
    };
    let rules = json!([{"apiGroups": [group], "apiVersions": ["*"], "operations": ["UPDATE"],
        "resources": [plural, format!("{plural}/status")]}]);
    let objects = &bed.objects;
    let places = collections.each_ref().map(|collection| format!("{collection}/{policy}"));
    let refusal = Refusal { bed, places };
    objects.must(Ask::post(
        &*collections[1],
        about(
            "ValidatingAdmissionPolicy",
            json!({"failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": format!("object.metadata.name != '{name}'"),
                "message": "not this one"}]}),
        ),
    ));
    objects.must(Ask::post(
        &*collections[0],
        about(
            "ValidatingAdmissionPolicyBinding",
            json!({"policyName": policy, "validationActions": ["Deny"]}),
        ),
    ));
    let list = format!("/apis/{group}/{version}/{plural}?fieldSelector=metadata.name%3D{name}");
    let found = objects.at(&list)["items"][0]["metadata"]["namespace"].clone();
    let namespace = found.as_str().expect("there is one").to_owned();
    let path = format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}/{name}?dryRun=All");
    let until = move |wanted: bool| {
        eventually(|| {
            let outcome = bed.objects.one(Ask::patch(&*path, json!({})));
            let is_refused = outcome.is_err_and(|refusal| refusal.message.contains("not this one"));
            if is_refused == wanted { Ok(()) } else { Err("not yet") }
        });
    };
    until(true);
    move || {
        drop(refusal);
        until(false);
    }
}

impl Drop for Widgets<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.bed.objects.discard(vec![format!("{DEFINITIONS}/{}", self.name)]);
        }
    }
}
