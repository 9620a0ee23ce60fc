//! An operator that dies, or does not hear an answer, once at each point of what it does for TDSets, and is started again
//! each time. It has to end where another one ends that nothing befalls, which works the same objects in another
//! namespace; and it may not write more of them.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use gatehouse::cli::operate::message::{Said, Told};
use serde_json::{Value, json};
use testbed::Options;

use super::autoscalers::autoscaler;
use super::{TDSETS, for_workload, foreign, notes, owners_of_count, span, tdset};
use crate::Alone;
use crate::support::{Bed, Gate, Namespace, eventually};

pub const TESTS: &[Alone] = &[
    ("an_operator_that_dies_at_each_point_ends_where_another_does", || {
        live_with("kill", &["before", "after"]);
    }),
    ("an_operator_that_loses_each_answer_ends_where_another_does", || live_with("lose", &["after"])),
];

/// What the life below has it do.
const STEPS: [&str; 11] = [
    "make-deployment",
    "make-service",
    "write-count",
    "apply-deployment",
    "apply-service",
    "delete-service",
    "write-scale",
    "write-finalizers",
    "write-bounds",
    "write-status",
    "publish-event",
];

/// How often that is lived at most, until each point has been met.
const LIVES: usize = 3;

/// An operator of one namespace that is started again whenever it ends, until it is dropped.
struct Mortal {
    shared: Arc<Shared>,
    keeper: Option<JoinHandle<()>>,
}

struct Shared {
    namespace: String,
    kubeconfig: PathBuf,
    points: PathBuf,
    fate: String,
    running: Mutex<Option<Child>>,
    ends: AtomicBool,
}

impl Mortal {
    fn start(kubeconfig: &Path, folder: &Path, namespace: &str, fate: &str) -> Self {
        let shared = Arc::new(Shared {
            namespace: namespace.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            points: folder.join("points"),
            fate: fate.to_owned(),
            running: Mutex::default(),
            ends: AtomicBool::new(false),
        });
        let kept = Arc::clone(&shared);
        let keeper = std::thread::spawn(move || {
            let mut lives = 0..;
            while !kept.ends.load(Ordering::Relaxed) {
                kept.live(lives.next().expect("a number"));
            }
        });
        Self { shared, keeper: Some(keeper) }
    }

    /// The points that it came to and that acted.
    fn met(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.shared.points).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        self.shared.kill();
        let ended = self.keeper.take().map(JoinHandle::join);
        assert!(matches!(ended, Some(Ok(()))) || std::thread::panicking(), "it was kept running");
    }
}

impl Shared {
    fn kill(&self) {
        if let Some(running) = &mut *self.running.lock().unwrap() {
            running.kill().expect("it is ours");
        }
    }

    /// The life of one process. Each has a lease of its own: it has nobody to wait for.
    fn live(&self, life: usize) {
        let log = fs::File::options().create(true).append(true).open(self.points.with_extension("log"));
        let mut process = Command::new(env!("CARGO_BIN_EXE_gatehouse"))
            .args(["operate", "--namespace", &self.namespace, "--watch-namespaces", &self.namespace])
            .args(["--lease", &format!("mortal-{life}")])
            .env("KUBECONFIG", &self.kubeconfig)
            .env("GATEHOUSE_FAIL_POINTS", format!("{}:{}", self.fate, self.points.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log.expect("a log"))
            .spawn()
            .expect("it starts");
        let (mut told, said) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        *self.running.lock().unwrap() = Some(process);
        // Nobody could kill it before that.
        if self.ends.load(Ordering::Relaxed) {
            self.kill();
        }
        for line in BufReader::new(said).lines().map_while(Result::ok) {
            if let Ok(Said::Won(number)) = serde_json::from_str(&line) {
                let answer = serde_json::to_string(&Told::Installed(number)).expect("JSON");
                let _gone = writeln!(told, "{answer}");
            }
        }
        let ended = self.running.lock().unwrap().take().map(|mut process| process.wait());
        assert!(matches!(ended, Some(Ok(_))), "it has ended");
    }
}

/// The namespace of an operator that nothing befalls, and that of one that something does.
struct Both<'a>([Namespace<'a>; 2]);

impl Both<'_> {
    fn create(&self, manifest: &str) {
        for namespace in &self.0 {
            namespace.kubectl(&["create"]).input(manifest).ok();
        }
    }

    fn kubectl(&self, words: &[&str]) {
        for namespace in &self.0 {
            namespace.kubectl(words).ok();
        }
    }

    fn change(&self, name: &str, spec: &Value) {
        self.kubectl(&["patch", TDSETS, name, "--type=merge", "-p", &json!({"spec": spec}).to_string()]);
    }

    #[track_caller]
    fn until(&self, object: &str, field: &str, value: &str) {
        for namespace in &self.0 {
            namespace.until(object, field, value);
        }
    }

    /// Both come to say the same of a TDSet, and that they have seen it as it is.
    #[track_caller]
    fn until_same(&self, name: &str) {
        eventually(|| {
            let [one, other] = self.0.each_ref().map(|namespace| told(&namespace.get(TDSETS, name)));
            let is_of_now = |told: &Value| told["observedGeneration"] == told["generation"];
            if one == other && is_of_now(&one) { Ok(()) } else { Err(format!("{one}\n{other}")) }
        });
    }

    /// Both have made the same of an object, in as many changes of its spec.
    #[track_caller]
    fn are_same(&self, resource: &str, name: &str) {
        let [one, other] = self.0.each_ref().map(|namespace| made(&namespace.get(resource, name)));
        assert_eq!(one, other, "{resource} {name}");
    }
}

/// What a TDSet says of itself, without times.
fn told(object: &Value) -> Value {
    let status = &object["status"];
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let conditions: Vec<_> = conditions
        .iter()
        .map(|one| json!([one["type"], one["status"], one["reason"], one["message"]]))
        .collect();
    let last = &status["lastTransition"];
    json!({
        "generation": object["metadata"]["generation"], "observedGeneration": status["observedGeneration"],
        "finalizers": object["metadata"]["finalizers"], "activeWindow": status["activeWindow"],
        "scheduledReplicas": status["scheduledReplicas"], "replicas": status["replicas"],
        "lastTransition": [last["from"], last["to"]], "next": status["nextTransition"], "conditions": conditions,
    })
}

/// What an object is, without what differs from one namespace to another.
fn made(object: &Value) -> Value {
    let (metadata, mut spec) = (&object["metadata"], object["spec"].clone());
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|field, _| !["clusterIP", "clusterIPs"].contains(&field.as_str()));
    }
    let owners = metadata["ownerReferences"].as_array().cloned().unwrap_or_default();
    let owners: Vec<_> = owners.iter().map(|owner| json!([owner["kind"], owner["name"]])).collect();
    json!({
        "generation": metadata["generation"], "labels": metadata["labels"], "spec": spec,
        "owners": owners, "count": owners_of_count(object),
    })
}

/// Lets something befall the operator at all points of a life.
fn live_with(fate: &str, moments: &[&str]) {
    let options = Options { controller_manager: true, ..Options::from_env().expect("sound options") };
    let bed = Bed::without_gate(&options).unwrap_or_else(|error| panic!("{error}"));
    let both = Both([bed.namespace(), bed.namespace()]);
    let watched = ["--watch-namespaces", &both.0[0].name];
    let gate = Gate::install_with(&bed.cluster, &watched).unwrap_or_else(|error| panic!("{error}"));
    bed.set_gate(Some(gate));
    let mortal = Mortal::start(bed.cluster.kubeconfig(), bed.cluster.folder(), &both.0[1].name, fate);
    let points: Vec<_> = STEPS
        .iter()
        .flat_map(|step| moments.iter().map(move |moment| format!("tdset.{step}.{moment}")))
        .collect();
    // A death for one TDSet while a request for another is under way spares the point after that request, and the next
    // life finds it done.
    for _ in 0..LIVES {
        live(&both);
        let met = mortal.met();
        println!("{fate}: {} times", met.len());
        let missed: Vec<_> = points.iter().filter(|point| !met.contains(point)).collect();
        if missed.is_empty() {
            return;
        }
        println!("not yet at {missed:?}");
        both.kubectl(&["delete", "deployment/web", "deployment/bound", "hpa/bound"]);
        both.kubectl(&["delete", "events", "--all"]);
    }
    panic!("not at all of {points:?} in {LIVES} lives");
}

fn live(both: &Both) {
    // It is made, with a Service, and its Service is changed, and goes.
    let create = json!({"image": "registry.k8s.io/pause:3.10", "port": 8080, "servicePort": 80});
    both.create(&tdset("shop", &json!({"replicas": 2, "target": {"create": create}})));
    both.until("service/shop", "{.spec.ports[0].port}", "80");
    both.until("deployment/shop", "{.spec.replicas}", "2");
    both.until_same("shop");
    both.are_same("service", "shop");
    both.change("shop", &json!({"target": {"create": {"servicePort": 81}}}));
    both.until("service/shop", "{.spec.ports[0].port}", "81");
    both.change("shop", &json!({"target": {"create": {"servicePort": null}}}));
    both.0.iter().for_each(|namespace| namespace.until_gone("service/shop"));

    // A boundary passes, somebody scales, and the image is changed.
    both.change("shop", &json!({"exceptions": [span("rush", 5, 7200, 4)]}));
    both.until("tdset/shop", "{.status.lastTransition.to.replicas}", "4");
    both.until("deployment/shop", "{.spec.replicas}", "4");
    both.kubectl(&["scale", "deployment/shop", "--replicas=9"]);
    both.until("deployment/shop", "{.spec.replicas}", "4");
    both.change("shop", &json!({"target": {"create": {"image": "registry.k8s.io/pause:3.9"}}}));
    both.until("deployment/shop", "{.spec.template.spec.containers[0].image}", "registry.k8s.io/pause:3.9");
    both.until_same("shop");
    both.are_same("deployment", "shop");
    for namespace in &both.0 {
        let scaled = notes(namespace, "shop", "Scaled");
        assert!((1..=3).contains(&scaled.len()), "one transition: {scaled:?}");
        assert!(scaled.iter().all(|note| note.starts_with("replicas 2 → 4: exception rush")), "{scaled:?}");
    }

    // A workload that somebody made, one with an autoscaler, and what is left of them.
    for namespace in &both.0 {
        foreign(namespace, "web", 5);
        foreign(namespace, "bound", 1);
        autoscaler(namespace, "bound", "bound", 1, 9);
    }
    let left = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "replicasOnDeletion": 6});
    both.create(&for_workload("hours", "apps/v1", "Deployment", "web", &json!({"target": {"ref": left}})));
    let bounded = json!({"autoscaler": {"hpaRef": "bound"}});
    both.create(&for_workload("bounds", "apps/v1", "Deployment", "bound", &bounded));
    both.until("deployment/web", "{.spec.replicas}", "2");
    both.until("hpa/bound", "{.spec.minReplicas}", "2");
    // The autoscaler's controller looks every 15 s.
    both.until("deployment/bound", "{.spec.replicas}", "2");
    both.kubectl(&["scale", "deployment/web", "--replicas=8"]);
    both.until("deployment/web", "{.spec.replicas}", "2");
    both.until_same("hours");
    both.are_same("deployment", "web");
    both.are_same("deployment", "bound");
    both.kubectl(&["delete", TDSETS, "shop", "hours", "bounds", "--timeout=60s"]);
    for namespace in &both.0 {
        namespace.until_gone("deployment/shop");
    }
    both.until("deployment/web", "{.spec.replicas}", "6");
    both.are_same("deployment", "web");
}
