//! A control plane with the shipped rights in it, and gatehouse at its gate, running as its ServiceAccount.
//!
//! Guarantees: a test has namespaces of its own, and the objects of our kinds in them are deleted when it has passed,
//! so that no operator reconciles them to the end of the run; the logs of a failed test are kept below `target/api/`.
//! Assumes: the thread of a test has its name, as [`crate::harness`] gives it.
//! Never: reads or waits by kubectl.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use gatehouse::kinds::KINDS;
use serde_json::{Value, json};
use testbed::{ControlPlane, Options};

use crate::call::Call;
use crate::objects::{Ask, Objects, of};
use crate::program::{Gate, Program};
use crate::{deploy, harness, root};

pub use crate::deploy::NAMESPACE;

/// Where the API server finds an installed gate, and how long that drains.
const INSTALLED: [&str; 6] =
    ["--webhook-url", "https://127.0.0.1:0", "--drain-delay", "100ms", "--drain-deadline", "1s"];

/// Of a gate that lives as long as its control plane: nothing waits for its Lease, and a machine that is too busy to renew
/// it in seconds does not end a term.
pub const LEADING: &[&str] = &["--lease-duration", "5m"];

/// The beds of this process, and the tests that have used each.
static USED: Mutex<BTreeMap<PathBuf, Use>> = Mutex::new(BTreeMap::new());

struct Use {
    cluster: Weak<ControlPlane>,
    tests: BTreeSet<String>,
}

/// A control plane, and what stands at its gate.
#[derive(Debug)]
pub struct Bed {
    /// The control plane.
    pub cluster: Arc<ControlPlane>,
    /// Its administrator.
    pub objects: Objects,
    /// Where gatehouse is.
    pub program: PathBuf,
    gate: Mutex<Option<Gate>>,
    turn: Mutex<()>,
    logs: AtomicU32,
}

impl Bed {
    /// Starts a control plane with the shipped rights in it, for gatehouse as `program`; nothing is at its gate.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(options: &Options, program: &Path) -> Result<Self, String> {
        let cluster = Arc::new(ControlPlane::start(options).map_err(|error| error.to_string())?);
        let known = Use { cluster: Arc::downgrade(&cluster), tests: BTreeSet::new() };
        locked(&USED).insert(cluster.folder().to_owned(), known);
        let bed = Self {
            objects: Objects::new(cluster.kubeconfig()),
            cluster,
            program: program.to_owned(),
            gate: Mutex::default(),
            turn: Mutex::default(),
            logs: AtomicU32::new(0),
        };
        bed.is_used();
        bed.grant();
        Ok(bed)
    }

    /// The same with gatehouse at its gate, which has these options besides. It leads until it ends.
    ///
    /// # Errors
    /// One of them cannot be started.
    pub fn with_gate(options: &Options, program: &Path, words: &[&str]) -> Result<Self, String> {
        let bed = Self::start(options, program)?;
        let gate = bed.install(&[LEADING, words].concat())?;
        bed.set_gate(Some(gate));
        Ok(bed)
    }

    /// Puts the shipped namespace, account, rights and policies there.
    pub fn grant(&self) {
        for file in ["base/namespace.yaml", "base/rbac.yaml", "policies/policies.yaml"] {
            let text = fs::read_to_string(deploy::deploy().join(file)).expect("a manifest");
            for object in deploy::objects(&text) {
                self.objects.must(Ask::apply(&object, "", ""));
            }
        }
    }

    /// Notes that the test of this thread uses it: its logs are kept where that fails.
    pub fn is_used(&self) {
        if let Some(known) = locked(&USED).get_mut(self.cluster.folder()) {
            known.tests.insert(this_test());
        }
    }

    /// How a gatehouse is started that serves here as this ServiceAccount of its namespace.
    pub fn serve(&self, account: &str, words: &[&str]) -> Command {
        self.serve_at(account, "127.0.0.1:0", words)
    }

    /// The same at that address.
    pub fn serve_at(&self, account: &str, address: &str, words: &[&str]) -> Command {
        self.is_used();
        let serve = ["serve", "--listen", address, "--health-listen", "127.0.0.1:0"];
        let mut command = Program::gatehouse(&self.program, &[&serve[..], words].concat());
        command.env("KUBECONFIG", self.kubeconfig_of(account));
        command
    }

    /// Starts a gate as that says, and waits until it serves.
    ///
    /// # Errors
    /// It cannot be started, or ends before.
    pub fn start_gate(&self, command: &Command) -> Result<Gate, String> {
        let number = self.logs.fetch_add(1, Ordering::Relaxed);
        Gate::of(command, &self.cluster.folder().join(format!("gatehouse-{number}.log")))
    }

    /// Starts a gate with these options, which the API server reaches where it listens, and waits until the cluster
    /// points at it.
    ///
    /// # Errors
    /// It cannot be started, or ends before.
    pub fn install(&self, words: &[&str]) -> Result<Gate, String> {
        let gate = self.start_gate(&self.serve("gatehouse", &[&INSTALLED[..], words].concat()))?;
        gate.wait_for("installed")?;
        Ok(gate)
    }

    /// Replaces the gate; the one before is killed.
    pub fn set_gate(&self, gate: Option<Gate>) {
        *locked(&self.gate) = gate;
    }

    /// Asks of the gate that runs.
    pub fn gate<T>(&self, ask: impl FnOnce(&Gate) -> T) -> T {
        ask(locked(&self.gate).as_ref().expect("a gate runs"))
    }

    /// Waits until no other test has it to itself; those that change what all share take turns.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        self.is_used();
        let turn = locked(&self.turn);
        harness::begin_limit();
        turn
    }

    /// kubectl with these words, as the administrator.
    pub fn kubectl(&self, words: &[&str]) -> Call {
        let mut command = self.cluster.kubectl();
        command.args(words);
        Call::new(command)
    }

    /// A kubeconfig with a token of a ServiceAccount of gatehouse's namespace.
    pub fn kubeconfig_of(&self, account: &str) -> PathBuf {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token");
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let token = self.objects.must(Ask::post(path, request));
        let token = token["status"]["token"].as_str().expect("a token");
        self.cluster.kubeconfig_with_token(token).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A namespace for one test.
    pub fn namespace(&self) -> Namespace<'_> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        self.is_used();
        let name = format!("test-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.objects.must(Ask::create(&namespace, ""));
        Namespace { bed: self, name }
    }

    /// Waits until the API server serves a definition.
    #[track_caller]
    pub fn until_established(&self, definition: &str) {
        self.objects.until(&format!("customresourcedefinition/{definition}"), "", |definition| {
            let established = crate::objects::condition(definition, "Established");
            if established["status"] == "True" { Ok(()) } else { Err(definition["status"].to_string()) }
        });
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // It could not be looked at later.
        if std::thread::panicking() {
            keep(&self.cluster, &this_test());
        }
    }
}

/// How many control planes this process has started.
#[must_use]
pub fn started() -> usize {
    locked(&USED).len()
}

/// Keeps the logs of all control planes that a test has used; where they are.
#[must_use]
pub fn keep_logs(test: &str) -> String {
    let used: Vec<_> = {
        let all = locked(&USED);
        let used = all.values().filter(|one| one.tests.contains(test));
        used.filter_map(|one| one.cluster.upgrade()).collect()
    };
    let mut words = vec![format!("the logs are in {}", kept(test).display())];
    for cluster in used {
        keep(&cluster, test);
        let processes = cluster.processes();
        let ended = processes.iter().filter(|process| !process.id.runs());
        words.extend(ended.map(|one| format!("{} has ended: {}", one.label, end_of(one.id.pid()))));
    }
    words.join("; ")
}

/// How a process has ended that was not waited for: the last field of its status, proc(5).
fn end_of(id: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let status = stat.split_whitespace().last().and_then(|field| field.parse().ok());
    status.map_or_else(|| "in an unknown way".to_owned(), |status| ExitStatus::from_raw(status).to_string())
}

fn keep(cluster: &ControlPlane, test: &str) {
    let name = cluster.folder().file_name().unwrap_or_default();
    if let Err(error) = cluster.collect_logs(&kept(test).join(name)) {
        eprintln!("the logs of {test} could not be kept: {error}");
    }
    // Of operators that tests have started, each with a folder of its own.
    for folder in fs::read_dir(cluster.folder()).into_iter().flatten().flatten() {
        let to = kept(test).join(name).join(folder.file_name()).with_extension("log");
        // Not every folder has one.
        let _copied = fs::copy(folder.path().join("log"), to);
    }
}

fn kept(test: &str) -> PathBuf {
    root().join("target/api").join(test.replace("::", "-"))
}

fn this_test() -> String {
    std::thread::current().name().unwrap_or("a thread without a name").to_owned()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A namespace of one test's own.
#[derive(Debug)]
pub struct Namespace<'a> {
    /// Where it is.
    pub bed: &'a Bed,
    /// What it is called.
    pub name: String,
}

impl Namespace<'_> {
    /// kubectl in this namespace.
    pub fn kubectl(&self, words: &[&str]) -> Call {
        let mut all = vec!["--namespace", &self.name];
        all.extend(words);
        self.bed.kubectl(&all)
    }

    /// Makes an object.
    #[track_caller]
    pub fn create(&self, object: &Value) -> Value {
        self.bed.objects.must(Ask::create(object, &self.name))
    }

    /// Changes an object by a merge patch, or by a JSON patch where that is a list.
    #[track_caller]
    pub fn change(&self, object: &str, patch: &Value) -> Value {
        self.bed.objects.must(Ask::patch(self.path(object), patch.clone()))
    }

    /// Deletes an object.
    #[track_caller]
    pub fn delete(&self, object: &str) {
        self.bed.objects.must(Ask::delete(self.path(object)));
    }

    /// Where an object is by the name that kubectl takes: `tdset/shop`.
    #[must_use]
    pub fn path(&self, object: &str) -> String {
        let (kind, name) = object.split_once('/').expect("a kind and a name");
        format!("{}/{name}", crate::objects::path_of(kind, &self.name))
    }

    /// One object as it is served: `get("tdsets.v1.gatehouse.dev", "shop")`.
    #[track_caller]
    pub fn get(&self, resource: &str, name: &str) -> Value {
        self.bed.objects.at(&self.path(&format!("{resource}/{name}")))
    }

    /// Waits until a field has a value, both as kubectl writes them: `until("deployment/shop", "{.spec.replicas}",
    /// "5")`.
    #[track_caller]
    pub fn until(&self, object: &str, field: &str, value: &str) {
        let pointer = pointer(field);
        self.bed.objects.until(object, &self.name, |found| {
            let found = match found.pointer(&pointer) {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => String::new(),
            };
            if found == value {
                Ok(())
            } else {
                Err(format!("{field} of {object} is {found:?}, and not {value:?}"))
            }
        });
    }

    /// Waits until an object is gone.
    #[track_caller]
    pub fn until_gone(&self, object: &str) {
        self.bed.objects.until_gone(object, &self.name);
    }

    /// Waits until an object is there.
    #[track_caller]
    pub fn until_created(&self, object: &str) {
        self.bed.objects.until(object, &self.name, |_| Ok(()));
    }
}

/// `/spec/ports/0/port` for `{.spec.ports[0].port}`.
fn pointer(field: &str) -> String {
    field.trim_matches(['{', '}']).replace('[', ".").replace(']', "").replace('.', "/")
}

impl Drop for Namespace<'_> {
    fn drop(&mut self) {
        // Where no gate runs, no operator reconciles them, and the API server takes no change of them.
        if std::thread::panicking() || locked(&self.bed.gate).is_none() {
            return;
        }
        for kind in KINDS {
            let place = of("v1", &self.name, kind.names().plural);
            let Ok(list) = self.bed.objects.read(&place) else { return };
            let items = list["items"].as_array().cloned().unwrap_or_default();
            let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            self.bed
                .objects
                .discard(items.iter().map(|object| format!("{place}/{}", name(object))).collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::pointer;

    #[test]
    fn a_field_is_found_as_kubectl_writes_it() {
        assert_eq!(pointer("{.spec.replicas}"), "/spec/replicas");
        assert_eq!(
            pointer("{.spec.template.spec.containers[0].image}"),
            "/spec/template/spec/containers/0/image"
        );
    }
}
