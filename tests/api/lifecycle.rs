//! What becomes of the installation when gatehouse dies, comes back, comes twice, or when others change what it
//! wrote. Tests take turns on a control plane.
//!
//! That nothing is written is shown by a change that gatehouse has to put right: once each replica has read what it
//! guards after that change, an unchanged version means that it was not written. The guard does not look at the Secret.

mod authority;
mod mounted;
mod replicas;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{MutexGuard, OnceLock};
use std::time::Instant;

use kit::bed::{Bed, Namespace};
use kit::objects::{Ask, of};
use kit::ports::free_port;
use kit::program::Gate;
use kit::wait::eventually;
use serde_json::{Value, json};

use crate::Test;
use crate::databasemigration::waiting;
use crate::installed::{self, CONFIGURATIONS, ETCDCLUSTERS, GUARDED, MUTATING, TDSETS, VALIDATING, WRITTEN};
use crate::put_back::reverted;

pub const TESTS: &[Test] = &kit::tests![
    a_restart_changes_nothing,
    while_the_gate_is_down_writes_are_refused,
    objects_from_before_the_gate_are_served_in_both_versions,
    what_others_change_is_put_back_once,
    authority::a_lost_authority_is_replaced_without_a_failed_call,
    authority::a_new_key_waits_for_its_bundle_to_be_in_force,
    replicas::two_replicas_agree_and_rest,
    replicas::replicas_with_other_settings_do_not_undo_each_other,
    replicas::an_address_that_does_not_answer_is_given_up_for_one_that_does,
    mounted::mounts_that_change_at_different_times_fail_no_call,
    an_older_release_leaves_what_a_newer_one_wrote,
];

/// A control plane that is this test's for now.
struct Life<'a> {
    bed: &'a Bed,
    namespace: Namespace<'a>,
    _turn: MutexGuard<'a, ()>,
}

impl<'a> Life<'a> {
    /// One with what gates of other tests have left, if any ran before.
    fn begin(bed: &'a Bed) -> Self {
        let turn = bed.turn();
        Self { bed, namespace: bed.namespace(), _turn: turn }
    }

    /// One in which nothing is installed.
    fn begin_empty(bed: &'a Bed) -> Self {
        let life = Self::begin(bed);
        installed::clear(bed);
        life
    }

    /// One with a gate, at the same address as in other tests, so that definitions do not change from test to test.
    fn with_gate(bed: &'a Bed) -> (Self, Gate) {
        static PORT: OnceLock<u16> = OnceLock::new();
        // Definitions that an earlier test has left with objects of an older version would be migrated meanwhile, which
        // writes to them.
        let life = Self::begin_empty(bed);
        let gate = life.again(*PORT.get_or_init(|| free_port().expect("a port")));
        life.until_guarded();
        (life, gate)
    }

    fn until_guarded(&self) {
        installed::until_guarded(self.bed, &self.namespace.name);
    }

    fn ask(&self, ask: Ask) -> Result<Value, String> {
        self.bed.objects.one(ask).map_err(|refusal| refusal.message)
    }

    fn at(&self, path: &str) -> Value {
        self.bed.objects.at(path)
    }

    #[track_caller]
    fn patch(&self, path: &str, change: Value) -> Value {
        self.bed.objects.must(Ask::patch(path, change))
    }

    fn create(&self, object: &Value) -> Result<Value, String> {
        self.ask(Ask::create(object, &self.namespace.name))
    }

    /// A collection in the namespace of this test.
    fn of(&self, version: &str, plural: &str) -> String {
        of(version, &self.namespace.name, plural)
    }

    /// The resource version of each of these objects.
    fn versions(&self, paths: &[&str]) -> BTreeMap<String, String> {
        let version = |path: &&str| {
            let object = self.at(path);
            let version = object["metadata"]["resourceVersion"].as_str().expect("a version");
            ((*path).to_owned(), version.to_owned())
        };
        paths.iter().map(version).collect()
    }

    /// What has happened to an object since that version, up to the state that it is in now.
    fn changes_since(&self, path: &str, version: &str) -> Vec<Value> {
        let (collection, name) = path.rsplit_once('/').expect("a path");
        let last = self.at(path)["metadata"]["resourceVersion"].clone();
        let place = format!("{collection}?fieldSelector=metadata.name%3D{name}");
        let changes = self
            .bed
            .objects
            .events_until(&place, version, |event| event["object"]["metadata"]["resourceVersion"] == last);
        changes.into_iter().map(|event| event["object"].clone()).collect()
    }

    /// Waits until each of these gates has looked, from beginning to end, at all that it guards since this was asked:
    /// what is written before wakes it no more. The versions of the labels that wake them.
    fn until_looked_at(&self, gates: &[&Gate]) -> [Value; 2] {
        // Of two looks that end, one after the other, the second begins after the first change.
        [json!("wanted"), Value::Null].map(|look| {
            let mut logs: Vec<_> = gates.iter().map(|gate| gate.log().from_now()).collect();
            let change = json!({"metadata": {"labels": {"look": look}}});
            let version = self.patch(VALIDATING, change)["metadata"]["resourceVersion"].clone();
            for lines in &mut logs {
                let is_look = |line: &Value| line["message"] == "looked at the installation";
                eventually(|| if lines().iter().any(is_look) { Ok(()) } else { Err("it has not looked") });
            }
            version
        })
    }

    /// What is guarded has not been written since these versions, and each of these gates has looked at all of it since
    /// then: they put right what is changed here. The versions after that.
    #[track_caller]
    fn are_left_alone(&self, since: &BTreeMap<String, String>, gates: &[&Gate]) -> BTreeMap<String, String> {
        let policy = "/webhooks/0/failurePolicy";
        let mut hooks = self.at(VALIDATING);
        *hooks.pointer_mut(policy).expect("a policy") = "Ignore".into();
        self.bed.objects.must(Ask::put(VALIDATING, hooks));
        until("it is put right", || self.at(VALIDATING).pointer(policy) == Some(&"Fail".into()));
        let own = self.until_looked_at(gates);
        let others = GUARDED.iter().copied().filter(|path| *path != VALIDATING).collect::<Vec<_>>();
        let is_other = |path: &String| others.iter().any(|other| *other == path);
        let kept: BTreeMap<_, _> = since.clone().into_iter().filter(|(path, _)| is_other(path)).collect();
        assert_eq!(self.versions(&others), kept, "these were not written");
        let mut changes = self.changes_since(VALIDATING, &since[VALIDATING]);
        changes.retain(|object| !own.contains(&object["metadata"]["resourceVersion"]));
        let policies: Vec<_> = changes.iter().map(|object| object.pointer(policy).cloned()).collect();
        let put_right = policies.iter().filter(|policy| **policy == Some("Fail".into())).count();
        assert_eq!(policies[0], Some("Ignore".into()), "the first change is ours: {changes:?}");
        assert!((1..=gates.len()).contains(&put_right), "each replica writes once at most: {changes:?}");
        assert_eq!(policies.len(), 1 + put_right, "{changes:?}");
        self.versions(&WRITTEN)
    }

    /// What the objects that hold a bundle have the API server trust.
    fn bundles(&self) -> Vec<String> {
        let hook = "/webhooks/0/clientConfig/caBundle";
        let conversion = "/spec/conversion/webhook/clientConfig/caBundle";
        let pointer = |path| if CONFIGURATIONS.contains(path) { hook } else { conversion };
        GUARDED
            .iter()
            .map(|path| match self.ask(Ask::get(*path)) {
                Ok(object) => {
                    object.pointer(pointer(path)).and_then(Value::as_str).unwrap_or_default().to_owned()
                }
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
            let list = self.at(&self.of(version, "etcdclusters"));
            let items = list["items"].as_array().expect("a list");
            assert!(items.iter().all(|item| item["apiVersion"] == format!("gatehouse.dev/{version}")));
            assert!(items.len() >= 2);
        }
    }

    /// A gate that listens at `port` (0: at any), and installs itself under `public` (0: under its own).
    fn spawn(&self, port: u16, public: u16) -> Gate {
        self.spawn_with(&[], None, port, public)
    }

    /// The same with options, and by a clock that the test sets.
    fn spawn_with(&self, options: &[&str], clock: Option<&Path>, port: u16, public: u16) -> Gate {
        let (listen, url) = (format!("127.0.0.1:{port}"), format!("https://127.0.0.1:{public}"));
        let words = ["--webhook-url", &url, "--drain-delay", "100ms", "--drain-deadline", "1s"];
        let mut command = self.bed.serve_at("gatehouse", &listen, &[&words[..], options].concat());
        match clock {
            Some(clock) => command.env("GATEHOUSE_CLOCK", clock),
            None => command.env_remove("GATEHOUSE_CLOCK"),
        };
        self.bed.start_gate(&command).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same gate again, after its end.
    fn again(&self, port: u16) -> Gate {
        let gate = self.spawn(port, port);
        gate.logs("installed");
        gate
    }
}

fn cluster(version: &str, name: &str) -> Value {
    let spec = match version {
        "v1" => {
            json!({"replicas": 3, "version": "3.6.16", "storage": {"size": "10Gi", "storageClassName": "fast"}})
        }
        _ => json!({"size": 3, "version": "3.6.16"}),
    };
    json!({"apiVersion": format!("gatehouse.dev/{version}"), "kind": "EtcdCluster", "metadata": {"name": name},
        "spec": spec})
}

/// Asks until it is so.
#[track_caller]
fn until(what: &str, mut so: impl FnMut() -> bool) {
    eventually(|| if so() { Ok(()) } else { Err(format!("it never comes to pass that {what}")) });
}

fn a_restart_changes_nothing(bed: &Bed) {
    let (life, gate) = Life::with_gate(bed);
    let port = gate.address.port();
    life.use_both_versions("kept");
    let before = life.versions(&WRITTEN);

    gate.into_program().kill();
    let gate = life.again(port);
    assert_eq!(life.versions(&WRITTEN), before, "after a crash");
    assert!(gate.into_program().stop(), "it ends well");
    let gate = life.again(port);
    assert_eq!(life.versions(&WRITTEN), before, "after an end");
    life.use_both_versions("new");
    life.are_left_alone(&before, &[&gate]);
}

fn while_the_gate_is_down_writes_are_refused(bed: &Bed) {
    let (life, gate) = Life::with_gate(bed);
    let port = gate.address.port();
    life.use_both_versions("kept");
    let [closed, open] = ["Fail", "Ignore"].map(|policy| {
        let namespace = bed.namespace();
        // Nothing makes it here, and no pod is let in without.
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        namespace.create(&account);
        waiting::let_pods_ask(&namespace, policy);
        namespace
    });
    gate.into_program().kill();
    let refused = life.create(&cluster("v1", "lost")).expect_err("nothing validates it");
    assert!(refused.contains("failed calling webhook \"mutate.gatehouse.dev\""), "{refused}");
    let path = life.of("v1", "etcdclusters") + "/kept-v1";
    // What needs no conversion needs no gate, status included: the operator goes on.
    life.at(&path);
    life.patch(&format!("{path}/status"), json!({"status": {"replicas": 3}}));
    let refused = life.ask(Ask::get(path.replace("/v1/", "/v1alpha1/"))).expect_err("no conversion");
    assert!(refused.contains("conversion webhook for gatehouse.dev/v1"), "{refused}");
    // Other kinds, and the namespace, do not care.
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}});
    life.create(&map).expect("not ours to judge");

    // Pods that ask for something depend on the gate as their namespace says, and others never do.
    let asking = waiting::pod("asking", "1");
    let refused = waiting::create(&closed, &asking, "").expect_err("it would not wait");
    let name = "failed calling webhook \"wait-for-migration-fail.gatehouse.dev\"";
    assert!(refused.message.contains(name), "{}", refused.message);
    let unasking = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "unasking"},
        "spec": asking["spec"]});
    waiting::create(&closed, &unasking, "").expect("it asks for nothing");
    let made = waiting::create(&open, &asking, "").expect("it does not wait");
    assert_eq!(waiting::init_containers(&made), ["prepare"]);

    // Deletions are not judged.
    life.ask(Ask::delete(&*path)).expect("no webhook is called");

    let _gate = life.again(port);
    life.use_both_versions("new");
}

fn objects_from_before_the_gate_are_served_in_both_versions(bed: &Bed) {
    let life = Life::begin_empty(bed);
    installed::apply_definitions(bed, &life.namespace.name, "v1alpha1");
    let old = json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet", "metadata": {"name": "oldest"},
        "spec": {"container": {"image": "shop", "port": 80}, "defaultReplica": 2,
            "schedulingConfig": [{"startTime": 8, "endTime": 18, "replica": 6}]}});
    life.create(&old).expect("stored as it is written");
    life.create(&cluster("v1alpha1", "old")).expect("stored as it is written");
    installed::apply_definitions(bed, &life.namespace.name, "v1");
    let stored = |name: &str, spec: Value| json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": name}, "spec": spec});
    // Valid for the definition, and not for the gate.
    life.create(&stored("sound", json!({"replicas": 5}))).expect("sound");
    life.create(&stored("ailing", json!({"version": "3.4.1"}))).expect("nothing refuses it yet");

    let _gate = bed.install(&[]).unwrap_or_else(|error| panic!("{error}"));
    life.until_guarded();
    let get = |version: &str, plural: &str, name: &str| {
        life.at(&format!("{}/{name}", life.of(version, plural)))["spec"].clone()
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
            let label = json!({"metadata": {"labels": {"seen-in": version}}});
            life.patch(&format!("{}/{name}", life.of(version, plural)), label);
        }
    }
}

fn what_others_change_is_put_back_once(bed: &Bed) {
    let (life, gate) = Life::with_gate(bed);
    let parts = || {
        let objects = WRITTEN.iter().map(|path| life.at(path));
        objects.map(|object| (object["spec"].clone(), object["webhooks"].clone())).collect::<Vec<_>>()
    };
    let before = parts();
    // All at once, as a careless `kubectl apply` of plain manifests would do it.
    let stripped = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    let unknown = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": null}}}}});
    let mut validating = life.at(VALIDATING);
    validating["webhooks"][0]["clientConfig"]["caBundle"] = Value::Null;
    validating["webhooks"][0]["failurePolicy"] = "Ignore".into();
    // Nor does an apply of ours remove what it does not have.
    let never = json!({"name": "never", "expression": "false"});
    validating["webhooks"][0]["matchConditions"].as_array_mut().unwrap().push(never);
    let begun = Instant::now();
    let outcomes = bed.objects.all(vec![
        Ask::patch(ETCDCLUSTERS, stripped),
        Ask::patch(TDSETS, unknown),
        Ask::delete(MUTATING),
        Ask::put(VALIDATING, validating),
    ]);
    for outcome in outcomes {
        outcome.unwrap_or_else(|refusal| panic!("{}", refusal.message));
    }
    until("all is put back", || {
        let is_there = life.ask(Ask::get(MUTATING)).is_ok();
        is_there && parts() == before
    });
    reverted("webhook conditions, conversions and a deleted configuration", begun);
    life.until_guarded();
    life.use_both_versions("after");
    life.are_left_alone(&life.versions(&WRITTEN), &[&gate]);

    // What is not ours stays: a label that a user has added is no drift.
    life.patch(VALIDATING, json!({"metadata": {"labels": {"team": "platform"}}}));
    life.are_left_alone(&life.versions(&WRITTEN), &[&gate]);
    assert_eq!(life.at(VALIDATING)["metadata"]["labels"]["team"], "platform");
}

fn an_older_release_leaves_what_a_newer_one_wrote(bed: &Bed) {
    let (life, gate) = Life::with_gate(bed);
    let port = gate.address.port();
    gate.into_program().kill();
    let newer = json!({"metadata": {"annotations": {"gatehouse.dev/installed-by": "99.0.0"}}});
    for path in GUARDED.iter() {
        life.patch(path, newer.clone());
    }
    let added = json!({"spec": {"names": {"categories": ["gatehouse", "newer"]}}});
    life.patch(ETCDCLUSTERS, added);
    bed.objects.until("crd/etcdclusters.gatehouse.dev", "", |definition| {
        let accepted = &definition["status"]["acceptedNames"]["categories"];
        if *accepted == json!(["gatehouse", "newer"]) { Ok(()) } else { Err(accepted.to_string()) }
    });
    let before = life.versions(&GUARDED);

    let gate = life.again(port);
    life.until_guarded();
    assert_eq!(life.versions(&GUARDED), before, "nothing is written over");
    let left =
        gate.logs("left alone, since a newer release wrote it: after a rollback, start with --replace-newer");
    assert_eq!(
        left["object"], "customresourcedefinitions/databasemigrations.gatehouse.dev",
        "the first of all"
    );
    gate.into_program().kill();

    // Asked for, as after a rollback, it is.
    let gate = life.spawn_with(&["--replace-newer"], None, port, port);
    gate.logs("installed");
    for path in GUARDED.iter() {
        let release = life.at(path)["metadata"]["annotations"]["gatehouse.dev/installed-by"].clone();
        assert_eq!(release, env!("CARGO_PKG_VERSION"), "{path}");
    }
    assert_eq!(life.at(ETCDCLUSTERS)["spec"]["names"]["categories"], json!(["gatehouse"]));
}
