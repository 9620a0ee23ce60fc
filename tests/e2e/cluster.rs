//! The cluster that the tests run in, and what is deployed in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use kit::audit::Line;
use kit::call::Call;
use kit::objects::{Ask, Objects, Outcome, path_of};
use kit::process;
use kit::wait::{PATIENCE, eventually, timeout};
use serde_json::{Value, json};
use testbed::{ControlPlane, Options};

use crate::release::{NAMESPACE, Way};
use crate::{root, tools};

/// An image with busybox, which the cluster has without a registry.
pub const BUSYBOX: &str = "docker.io/library/busybox:1.35";

/// What `tools/build.sh images` makes, and the Pods of tests run.
const IMAGES: [&str; 5] = ["busybox", "etcd-3.5.9", "etcd-3.5.33", "etcd-3.6.16", "etcd-3.7.3"];

/// A cluster with a node.
pub struct Bed {
    pub cluster: ControlPlane,
    objects: Objects,
    deployed: Mutex<Option<Way>>,
    /// Held while it is deployed: tests that run side by side may all have to.
    deploying: Mutex<()>,
    /// Lines of the audit log that are about an installation before this one.
    earlier: Mutex<usize>,
    /// How many tests need that no replica works.
    aside: Mutex<usize>,
}

impl Bed {
    pub fn new(cluster: ControlPlane) -> Self {
        Self {
            objects: Objects::new(cluster.kubeconfig()),
            cluster,
            deployed: Mutex::default(),
            deploying: Mutex::default(),
            earlier: Mutex::new(0),
            aside: Mutex::default(),
        }
    }

    /// kubectl with these words, as the administrator.
    pub fn kubectl(&self, words: &[&str]) -> Call {
        let mut command = self.cluster.kubectl();
        command.args(words);
        Call::new(command)
    }

    /// An object, where it is there.
    pub fn get(&self, object: &str, namespace: &str) -> Result<Value, String> {
        self.objects.get(object, namespace)
    }

    /// Merges that into the object of a resource and a name.
    #[track_caller]
    pub fn change(&self, (resource, name): (&str, &str), namespace: &str, change: Value) {
        self.objects.must(Ask::patch(format!("{}/{name}", path_of(resource, namespace)), change));
    }

    /// The Pods of a namespace, where the API server lists them.
    pub fn try_pods(&self, namespace: &str) -> Result<Vec<Value>, String> {
        self.objects.list("pods", namespace, "")
    }

    /// All objects of these resources and namespace.
    #[track_caller]
    pub fn list(&self, resources: &str, namespace: &str) -> Vec<Value> {
        eventually(|| self.objects.list(resources, namespace, ""))
    }

    /// Ends all replicas, and returns when they are gone.
    pub fn stop(&self) {
        self.kubectl(&["scale", "deployment/gatehouse", "--replicas=0", "-n", NAMESPACE]).ok();
        self.until_ended();
    }

    /// Waits until all replicas have been told to end, and are gone. They are killed: a drain takes as long as an API
    /// server keeps idle connections, 90 seconds, and a kubelet that waits for one hears of no shorter grace period.
    #[track_caller]
    pub fn until_ended(&self) {
        eventually(|| match self.pods() {
            none if none.is_empty() => Ok(()),
            left => Err(format!("{left:?} have not been told to end")),
        });
        for pod in self.list("pods", NAMESPACE) {
            let uid = pod["metadata"]["uid"].as_str().expect("a uid");
            process::of_pod(uid, &["gatehouse", "serve"]).into_iter().for_each(process::kill);
        }
        self.until_gone("pods", NAMESPACE);
    }

    /// Waits until there are no objects of these resources in that namespace.
    #[track_caller]
    pub fn until_gone(&self, resources: &str, namespace: &str) {
        eventually(|| match self.list(resources, namespace).len() {
            0 => Ok(()),
            left => Err(format!("{left} {resources} are left in {namespace}")),
        });
    }

    /// A namespace with nothing in it: what was there under that name goes first.
    pub fn namespace(&self, name: &str) -> Namespace<'_> {
        self.kubectl(&["delete", "namespace", name, "--ignore-not-found", &timeout(PATIENCE)]).ok();
        self.kubectl(&["create", "namespace", name]).ok();
        Namespace { bed: self, name: name.to_owned() }
    }

    /// A cluster without gatehouse.
    pub fn clear(&self) {
        let deployed = self.deployed.lock().unwrap().take();
        if let Some(way) = deployed {
            self.stop();
            way.remove(self);
        }
    }

    /// Deploys gatehouse into a cluster that has none.
    pub fn deploy(&self, way: Way) {
        self.clear();
        *self.earlier.lock().unwrap() = Line::read(&self.audit_log()).len();
        way.deploy(self);
        *self.deployed.lock().unwrap() = Some(way);
    }

    /// Deploys gatehouse that way unless it is.
    pub fn deployed(&self, way: Way) {
        let _one_at_a_time = self.deploying.lock().unwrap();
        let is_there = *self.deployed.lock().unwrap() == Some(way);
        if !is_there {
            self.deploy(way);
        }
    }

    /// Takes gatehouse away.
    pub fn remove(&self) {
        let way = self.deployed.lock().unwrap().take();
        way.expect("it is deployed").remove(self);
    }

    /// The names of the Pods of the gate that are not to end.
    pub fn pods(&self) -> Vec<String> {
        let pods = self.list("pods", NAMESPACE);
        let living = pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        living.map(|pod| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Waits until both replicas are ready.
    #[track_caller]
    pub fn until_whole(&self) {
        let status = self.kubectl(&[
            "rollout",
            "status",
            "deployment/gatehouse",
            "-n",
            NAMESPACE,
            &timeout(PATIENCE * 2),
        ]);
        status.ok();
    }

    /// The lease that the replicas elect one of them by.
    #[track_caller]
    pub fn lease(&self) -> Value {
        self.get("lease/gatehouse", NAMESPACE).expect("it is there")
    }

    /// Who holds the lease: the identity, and the Pod that it begins with.
    pub fn leader(&self) -> Result<Leader, String> {
        let lease = self.get("lease/gatehouse", NAMESPACE)?;
        let identity = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
        let pods = self.pods();
        let pod = pods.into_iter().find(|pod| identity.starts_with(pod.as_str()));
        let pod = pod.ok_or_else(|| format!("the lease is held by {identity:?}, which is no Pod"))?;
        Ok(Leader { identity, pod })
    }

    /// Waits until a replica leads.
    #[track_caller]
    pub fn until_led(&self) -> Leader {
        eventually(|| self.leader())
    }

    /// Leaves the logs of everything below `target/e2e/`; where they are.
    pub fn keep_logs(&self, name: &str) -> String {
        let folder = root().join("target/e2e").join(name.replace("::", "-"));
        let kept = self.cluster.collect_logs(&folder).map_err(|error| error.to_string());
        match kept.and_then(|()| {
            copy(&self.operators(), &folder.join("operators")).map_err(|error| error.to_string())
        }) {
            Ok(()) => format!("the logs of everything are in {}", folder.display()),
            Err(error) => format!("the logs could not be kept: {error}"),
        }
    }

    /// Where operators that run beside the cluster have a folder each, of the name of the namespace that they work.
    pub fn operators(&self) -> PathBuf {
        self.cluster.folder().join("operators")
    }

    /// What gatehouse has asked of the API server since it was deployed, oldest first.
    pub fn requests(&self) -> Vec<Line> {
        Line::read(&self.audit_log()).split_off(*self.earlier.lock().unwrap())
    }

    /// Kills gatehouse in that Pod, as a crash would.
    pub fn kill(&self, pod: &str) {
        self.processes(NAMESPACE, pod, &["gatehouse"]).iter().for_each(|process| process::kill(*process));
    }

    /// The processes of a Pod whose command line begins with these words, once there are any: one that was killed comes
    /// again.
    #[track_caller]
    pub fn processes(&self, namespace: &str, pod: &str, words: &[&str]) -> Vec<u32> {
        eventually(|| {
            let found = self.get(&format!("pod/{pod}"), namespace)?;
            let processes = process::of_pod(found["metadata"]["uid"].as_str().expect("a uid"), words);
            if processes.is_empty() {
                Err(format!("no {words:?} of {pod} on this machine"))
            } else {
                Ok(processes)
            }
        })
    }

    /// Has all replicas follow a holder of their Lease who does nothing, until no test needs that any more: none of
    /// them works, and the gates go on.
    pub fn stand_aside(&self) -> Aside<'_> {
        let mut tests = self.aside.lock().unwrap_or_else(PoisonError::into_inner);
        if *tests == 0 {
            self.until_whole();
            self.until_led();
            self.hold_lease("a-test", 24 * 3600);
            self.pods().iter().for_each(|pod| self.until_follows(pod));
        }
        *tests += 1;
        Aside(self)
    }

    fn hold_lease(&self, holder: &str, seconds: u32) {
        let path = format!("{}/gatehouse", path_of("leases", NAMESPACE));
        let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": seconds});
        self.objects.must(Ask::patch(path, json!({ "spec": spec })));
    }

    /// Waits until nothing of a replica's work runs any more.
    fn until_follows(&self, pod: &str) {
        // By number: an API server panics over a port by its name (apimachinery `pkg/util/proxy/upgradeaware.go`).
        let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}:8080/proxy/metrics");
        eventually(|| {
            let page = self.kubectl(&["get", "--raw", &path]).run()?;
            if page.contains("\ngatehouse_leader 0\n") { Ok(()) } else { Err(format!("{pod} leads")) }
        });
    }

    /// The API server's audit log.
    pub fn audit_log(&self) -> PathBuf {
        self.cluster.audit_log().expect("a cluster with a node writes one").to_owned()
    }
}

/// Copies a folder with all that is in it, where it is there.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (entry, from) = entry.map(|entry| (to.join(entry.file_name()), entry.path()))?;
        if from.is_dir() { copy(&from, &entry) } else { fs::copy(&from, &entry).map(drop) }?;
    }
    Ok(())
}

/// A cluster of our own, or the one that `KUBECONFIG` names, with the images that the tests need.
pub fn start() -> Result<Bed, String> {
    let options = Options { node: true, ..Options::from_env().map_err(|error| error.to_string())? };
    let cluster = ControlPlane::start(&options).map_err(|error| error.to_string())?;
    if !cluster.is_existing() {
        let images = tools::folder("images");
        let others = IMAGES.map(|name| images.join(format!("{name}.tar")));
        for image in others.into_iter().chain([tools::image()]) {
            cluster.load_image(&image).map_err(|error| error.to_string())?;
        }
    }
    Ok(Bed::new(cluster))
}

/// No replica works, for this test and perhaps for others. When no test needs that any more, they elect one of them.
pub struct Aside<'a>(&'a Bed);

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        let mut tests = self.0.aside.lock().unwrap_or_else(PoisonError::into_inner);
        *tests -= 1;
        if *tests == 0 && !std::thread::panicking() {
            self.0.hold_lease("", 1);
            self.0.until_led();
        }
    }
}

/// Who leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    pub identity: String,
    pub pod: String,
}

/// A namespace of one test's own. It goes with the test, unless there is a failure to look into.
pub struct Namespace<'a> {
    bed: &'a Bed,
    pub name: String,
}

impl Drop for Namespace<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let words = ["delete", "namespace", &self.name, "--ignore-not-found", "--wait=false"];
            let _told = self.bed.kubectl(&words).run();
        }
    }
}

impl Namespace<'_> {
    /// kubectl in this namespace.
    pub fn kubectl(&self, words: &[&str]) -> Call {
        let mut all = vec!["--namespace", &self.name];
        all.extend(words);
        self.bed.kubectl(&all)
    }

    /// Applies an object.
    #[track_caller]
    pub fn apply(&self, object: &Value) {
        self.try_apply(object).unwrap_or_else(|why| panic!("{why}"));
    }

    /// Merges that into the object of a resource and a name.
    #[track_caller]
    pub fn change(&self, (resource, name): (&str, &str), change: Value) {
        self.bed.change((resource, name), &self.name, change);
    }

    /// The same; why it was refused, where it was.
    pub fn try_apply(&self, object: &Value) -> Result<String, String> {
        self.kubectl(&["apply"]).input(object.to_string()).run()
    }

    /// An object, where it is there.
    pub fn get(&self, object: &str) -> Result<Value, String> {
        self.bed.get(object, &self.name)
    }

    /// Has the API server judge that many such objects, several at a time, and keep none; what came of them.
    pub fn judged(&self, object: &Value, count: usize) -> Vec<Outcome> {
        let mut ask = Ask::create(object, &self.name);
        ask.path.push_str("?dryRun=All");
        self.bed.objects.all(vec![ask; count])
    }

    /// Waits until an object is as it is looked for.
    #[track_caller]
    pub fn until<T>(&self, object: &str, is_so: impl Fn(&Value) -> Result<T, String>) -> T {
        self.bed.objects.until(object, &self.name, is_so)
    }

    /// Waits until an object is not there.
    #[track_caller]
    pub fn until_gone(&self, object: &str) {
        self.bed.objects.until_gone(object, &self.name);
    }

    /// The objects of a kind that have these labels.
    #[track_caller]
    pub fn list(&self, resources: &str, labels: &str) -> Vec<Value> {
        eventually(|| self.bed.objects.list(resources, &self.name, labels))
    }

    /// The processes of etcd in a Pod.
    pub fn members(&self, pod: &str) -> Vec<u32> {
        self.bed.processes(&self.name, pod, &["etcd"])
    }
}
