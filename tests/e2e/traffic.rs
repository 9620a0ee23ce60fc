//! Users who create, change, list and delete in both versions, without a pause and without a second try.
//!
//! Every call goes through the gate: creation and change are defaulted and validated, and one of the two versions is
//! converted. A call that fails is a call that a user of the cluster saw failing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use kit::objects;
use kit::wait::patient;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Users at a time.
const USERS: usize = 4;
/// Longer than any call may take, drain and election included: one that hangs is one that failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// What came of all calls.
#[derive(Debug, Default)]
pub struct Tally {
    /// How many there were of each kind.
    pub calls: BTreeMap<&'static str, usize>,
    /// What failed, and how.
    pub failures: Vec<String>,
    /// How long the longest call took, and which it was.
    pub longest: (Duration, &'static str),
}

impl Tally {
    fn add(&mut self, other: Self) {
        for (call, count) in other.calls {
            *self.calls.entry(call).or_default() += count;
        }
        self.failures.extend(other.failures);
        self.longest = self.longest.max(other.longest);
    }

    /// All calls.
    pub fn total(&self) -> usize {
        self.calls.values().sum()
    }

    /// Whatever failed did so since a gate was gone: it broke off, or could not be reached.
    #[track_caller]
    pub fn assert_only_broken_off(&self) {
        let is_other = |failure: &&String| !is_of_a_gone_gate(failure);
        let others: Vec<_> = self.failures.iter().filter(is_other).collect();
        assert!(others.is_empty(), "{} of {} failed otherwise: {others:#?}", others.len(), self.total());
    }

    /// No call failed, and all kinds of calls were made.
    #[track_caller]
    pub fn assert_flawless(&self) {
        let examples: Vec<_> = self.failures.iter().take(5).collect();
        assert!(
            self.failures.is_empty(),
            "{} of {} failed: {examples:#?}",
            self.failures.len(),
            self.total()
        );
        assert_eq!(self.calls.len(), 6, "calls of every kind were made: {:?}", self.calls);
    }
}

/// Whether a call failed because a gate was gone: it broke off, or could not be reached.
pub fn is_of_a_gone_gate(failure: &str) -> bool {
    let words = ["broken pipe", "connection refused", "connection reset", "EOF", "no route to host"];
    words.iter().any(|word| failure.contains(word))
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (longest, call) = self.longest;
        let (failed, total) = (self.failures.len(), self.total());
        write!(formatter, "{failed} of {total} calls failed, the longest took {longest:.1?} ({call})")
    }
}

/// Users that call until they are stopped.
pub struct Traffic {
    runtime: Runtime,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    users: Vec<JoinHandle<Tally>>,
}

impl Traffic {
    /// Starts it, in a namespace that exists.
    pub fn start(kubeconfig: &Path, namespace: &str) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let users = (0..USERS).map(|number| {
            // A connection of its own for each, so that no multiplexing hides one that breaks.
            let client = runtime.block_on(client(kubeconfig));
            let user = User {
                v1: api(&client, namespace, "v1"),
                v1alpha1: api(&client, namespace, "v1alpha1"),
                number,
                done: Arc::clone(&done),
                tally: Tally::default(),
            };
            runtime.spawn(user.call_until(Arc::clone(&stop)))
        });
        let users = users.collect();
        Self { runtime, stop, done, users }
    }

    /// Waits until so many more calls have come back.
    pub fn until_more(&self, calls: usize) {
        let (wanted, begun) = (self.done.load(Ordering::Relaxed) + calls, Instant::now());
        while self.done.load(Ordering::Relaxed) < wanted {
            assert!(begun.elapsed() < patient(PATIENCE) * 2, "the calls stopped coming back");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// Stops it; what came of it.
    pub fn finish(self) -> Tally {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Tally::default();
        for tally in self.runtime.block_on(join_all(self.users)) {
            all.add(tally.expect("a user does not panic"));
        }
        all
    }
}

/// The administrator, who does not try again what failed.
async fn client(kubeconfig: &Path) -> Client {
    let mut config = objects::config(kubeconfig).await;
    config.default_retry = false;
    Client::try_from(config).expect("a client")
}

fn api(client: &Client, namespace: &str, version: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("gatehouse.dev", version, "TDSet");
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk_with_plural(&kind, "tdsets"))
}

struct User {
    v1: Api<DynamicObject>,
    v1alpha1: Api<DynamicObject>,
    number: usize,
    done: Arc<AtomicUsize>,
    tally: Tally,
}

impl User {
    async fn call_until(mut self, stop: Arc<AtomicBool>) -> Tally {
        let mut round = 0;
        while !stop.load(Ordering::Relaxed) {
            self.go_around(&format!("user-{}-{round}", self.number)).await;
            round += 1;
        }
        self.tally
    }

    /// The life of one object. It has none if its creation fails.
    async fn go_around(&mut self, name: &str) {
        let (v1, v1alpha1) = (self.v1.clone(), self.v1alpha1.clone());
        let create = PostParams::default();
        let object = object(name);
        if !self.count("create as v1", v1.create(&create, &object)).await {
            return;
        }
        let change = Patch::Merge(json!({"spec": {"defaultReplica": 1}}));
        let params = PatchParams::default();
        self.count("change as v1alpha1", v1alpha1.patch(name, &params, &change)).await;
        self.count("list as v1", v1.list(&ListParams::default())).await;
        self.count("list as v1alpha1", v1alpha1.list(&ListParams::default())).await;
        let change = Patch::Merge(json!({"spec": {"defaultReplicas": 0}}));
        self.count("change as v1", v1.patch(name, &params, &change)).await;
        self.count("delete as v1alpha1", v1alpha1.delete(name, &DeleteParams::default())).await;
    }

    /// Makes a call and counts it; whether it succeeded.
    async fn count<T>(&mut self, what: &'static str, call: impl Future<Output = kube::Result<T>>) -> bool {
        let begun = Instant::now();
        let failure = match tokio::time::timeout(patient(PATIENCE), call).await {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer within {:?}", patient(PATIENCE))),
        };
        self.tally.longest = self.tally.longest.max((begun.elapsed(), what));
        let is_done = failure.is_none();
        self.tally.failures.extend(failure.map(|why| format!("{what}: {why}")));
        *self.tally.calls.entry(what).or_default() += 1;
        self.done.fetch_add(1, Ordering::Relaxed);
        is_done
    }
}

/// A TDSet without Pods: the node has other work.
fn object(name: &str) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": name},
        "spec": {
            "timeZone": "Etc/UTC", "defaultReplicas": 0,
            "windows": [{"name": "never", "from": "01:00", "to": "02:00", "days": ["Mon"], "replicas": 0}],
            "target": {"create": {"image": "busybox", "port": 8000}},
        },
    }))
    .expect("an object")
}
