//! Which of several replicas works, and what becomes of the work when that one dies, leaves, or hears nothing from the
//! API server; and what is left when all of them are gone. Each test has a control plane of its own.

use std::process::Command;
use std::time::{Duration, Instant};

use gatehouse::rights::{self, Names, Place};
use gatehouse::runtime::clock;
use jiff::Timestamp;
use serde_json::{Value, json};
use testbed::Options;

use crate::Alone;
use crate::direct::{Call, Direct, Outcome, http_get, of};
use crate::support::{Bed, Gate, NAMESPACE, PATIENCE, eventually, root};
use front::Front;

mod front;

pub const TESTS: &[Alone] = &[
    ("one_replica_works_and_all_serve", one_replica_works_and_all_serve),
    (
        "when_the_leader_is_killed_another_goes_on_and_does_nothing_twice",
        when_the_leader_is_killed_another_goes_on_and_does_nothing_twice,
    ),
    ("a_gate_that_is_killed_takes_its_operator_along", a_gate_that_is_killed_takes_its_operator_along),
    ("a_leader_that_drains_hands_over_at_once", a_leader_that_drains_hands_over_at_once),
    (
        "without_an_api_server_nobody_leads_and_then_somebody_does",
        without_an_api_server_nobody_leads_and_then_somebody_does,
    ),
    ("the_configurations_go_with_their_owner", the_configurations_go_with_their_owner),
    ("with_rights_in_one_namespace_that_one_is_worked", with_rights_in_one_namespace_that_one_is_worked),
];

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/gatehouse-system/leases/gatehouse";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const CONFIGURATIONS: [&str; 2] = [
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/gatehouse",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/gatehouse",
];
const TDSETS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tdsets.gatehouse.dev";
const CLUSTER_ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/gatehouse";

/// How long the lease of a replica that vanished is left alone where a test waits for that.
const TERM: Duration = Duration::from_secs(3);
/// What a busy machine may add to any of these times.
const MARGIN: Duration = Duration::from_secs(4);

/// A control plane, its administrator, and several replicas behind one address.
struct House {
    direct: Direct,
    bed: Bed,
    front: Front,
}

impl House {
    fn begin(controller_manager: bool) -> Self {
        let options = Options { controller_manager, ..Options::from_env().expect("sound options") };
        let bed = Bed::without_gate(&options).unwrap_or_else(|error| panic!("{error}"));
        Self { direct: Direct::new(bed.cluster.kubeconfig()), bed, front: Front::new() }
    }

    /// One more replica.
    fn replica(&self, options: &[&str]) -> Gate {
        self.replica_as("gatehouse", options)
    }

    /// One more, as that ServiceAccount.
    fn replica_as(&self, account: &str, options: &[&str]) -> Gate {
        let cluster = &self.bed.cluster;
        let kubeconfig = cluster.kubeconfig_for_service_account(NAMESPACE, account).expect("a kubeconfig");
        let url = format!("https://127.0.0.1:{}", self.front.port);
        let words =
            ["serve", "--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0", "--webhook-url", &url];
        let gate = Gate::spawn(cluster.folder(), Some(&kubeconfig), &[&words, options].concat());
        let gate = gate.unwrap_or_else(|error| panic!("{error}"));
        self.front.add(gate.address);
        gate
    }

    /// A leader and followers, in this order.
    fn replicas(&self, count: usize, options: &[&str]) -> Vec<Gate> {
        let mut replicas = vec![self.replica(options)];
        replicas[0].wait_for("leading").unwrap_or_else(|error| panic!("{error}"));
        for _ in 1..count {
            let mut follower = self.replica(options);
            follower.wait_for("following").unwrap_or_else(|error| panic!("{error}"));
            replicas.push(follower);
        }
        replicas
    }

    fn call(&self, method: &'static str, path: &str, body: Value) -> Outcome {
        self.direct.one(Call { method, path: path.to_owned(), body })
    }

    /// Creates a TDSet in a namespace, through the gate where there is one.
    #[track_caller]
    fn tdset(&self, namespace: &str, name: &str, fields: &Value) {
        let mut object = json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": name},
            "spec": {"replicas": 1, "target": {"create": {"image": "registry.k8s.io/pause:3.10", "port": 8080}}}});
        for (key, value) in fields.as_object().expect("fields") {
            object["spec"][key] = value.clone();
        }
        let created = self.call("POST", &of("v1", namespace, "tdsets"), object);
        created.unwrap_or_else(|refusal| panic!("{}", refusal.message));
    }

    #[track_caller]
    fn until_replicas(&self, name: &str, count: u32) -> Value {
        let path = format!("{DEPLOYMENTS}/{name}");
        until(PATIENCE, &format!("{name} has {count} replicas"), || {
            self.call("GET", &path, Value::Null).ok().filter(|found| found["spec"]["replicas"] == count)
        })
    }

    #[track_caller]
    fn until_gone(&self, path: &str) {
        until(PATIENCE, &format!("{path} is gone"), || {
            self.call("GET", path, Value::Null).is_err_and(|refusal| refusal.code == 404).then_some(())
        });
    }

    /// Who holds the lease, and how often it went from one to another.
    fn holder(&self) -> (String, u64) {
        let spec = self.direct.get(LEASE)["spec"].clone();
        let holder = spec["holderIdentity"].as_str().expect("a holder").to_owned();
        (holder, spec["leaseTransitions"].as_u64().expect("a count"))
    }
}

/// Waits no longer than that until there is something to be had.
#[track_caller]
fn until<T>(patience: Duration, what: &str, look: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < patience, "not within {patience:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

fn metric(gate: &Gate, name: &str) -> Option<u64> {
    let page = http_get(gate.health, "/metrics");
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
    line.and_then(|value| value.trim().parse().ok())
}

fn leads(gate: &Gate) -> bool {
    metric(gate, "gatehouse_leader") == Some(1)
}

fn is_ready(gate: &Gate) -> bool {
    http_get(gate.health, "/readyz").starts_with("HTTP/1.1 200")
}

/// Passes that a replica has made.
fn passes(gate: &Gate) -> usize {
    let page = http_get(gate.health, "/metrics");
    page.lines().filter(|line| line.starts_with("controller_runtime_reconcile_total{")).count()
}

fn identity(gate: &mut Gate) -> String {
    let line = gate.wait_for("leading").unwrap_or_else(|error| panic!("{error}"));
    line["identity"].as_str().expect("an identity").to_owned()
}

fn one_replica_works_and_all_serve() {
    let house = House::begin(false);
    let mut replicas = house.replicas(3, &[]);
    assert_eq!(house.holder(), (identity(&mut replicas[0]), 0));
    house.tdset("default", "shop", &json!({}));
    house.until_replicas("shop", 1);
    for replica in &replicas {
        until(PATIENCE, "it is ready", || is_ready(replica).then_some(()));
    }
    assert_eq!(replicas.iter().map(leads).collect::<Vec<_>>(), [true, false, false]);
    assert!(passes(&replicas[0]) > 0);
    assert_eq!(replicas[1..].iter().map(passes).sum::<usize>(), 0, "followers work nothing");
    let page = http_get(replicas[1].health, "/readyz");
    let (leader, _) = house.holder();
    assert!(page.contains(&format!("[~]leader not ready, not required: {leader} leads")), "{page}");
    assert!(page.contains("[+]definitions ok"), "{page}");

    // A lease says the truth to people.
    let spec = house.direct.get(LEASE)["spec"].clone();
    assert_eq!(spec["leaseDurationSeconds"], 15);
    let time = |field: &str| spec[field].as_str().expect("a time").parse::<Timestamp>().expect("a time");
    assert!(time("acquireTime") <= time("renewTime"));
    let renewed = until(PATIENCE, "it is renewed", || {
        let next = house.direct.get(LEASE)["spec"].clone();
        (next["renewTime"] != spec["renewTime"]).then_some(next)
    });
    assert_eq!(renewed["acquireTime"], spec["acquireTime"]);
}

fn when_the_leader_is_killed_another_goes_on_and_does_nothing_twice() {
    let house = House::begin(false);
    let mut replicas = house.replicas(3, &["--lease-duration", "3s"]);
    house.tdset("default", "still", &json!({}));
    house.until_replicas("still", 1);
    // Its time comes while nobody leads.
    let due = clock::now() + Duration::from_secs(4);
    let end = due + Duration::from_hours(1);
    let second = |time: Timestamp| Timestamp::from_second(time.as_second()).expect("a time").to_string();
    let span = json!({"start": second(due), "end": second(end)});
    house.tdset("default", "due", &json!({"exceptions": [{"name": "rush", "between": span, "replicas": 4}]}));
    let before = house.until_replicas("due", 1);
    let (leader, transitions) = house.holder();
    until(PATIENCE, "it is almost due", || (clock::now() + Duration::from_millis(1500) > due).then_some(()));

    let still = house.until_replicas("still", 1);

    replicas[0].kill_operator();
    let killed = Instant::now();
    let (_, count) = until(TERM + MARGIN, "another leads", || {
        assert!(is_ready(&replicas[0]), "its gate serves on");
        Some(house.holder()).filter(|(holder, _)| *holder != leader)
    });
    assert!(killed.elapsed() > TERM / 2, "a lease is not taken from one that may live");
    assert_eq!(count, transitions + 1);
    until(MARGIN, "it is known who leads", || {
        (replicas.iter().filter(|one| leads(one)).count() == 1).then_some(())
    });
    let ended = replicas[0].wait_for("task ended, will restart it").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(ended["error"], "the operator's process ended: signal: 9 (SIGKILL)");
    until(PATIENCE, "it has an operator again", || {
        (metric(&replicas[0], "gatehouse_operator_starts_total") == Some(2)).then_some(())
    });

    let after = house.until_replicas("due", 4);
    let generation = |object: &Value| object["metadata"]["generation"].as_u64().expect("a generation");
    assert_eq!(generation(&after), generation(&before) + 1, "written once");
    let events = until(PATIENCE, "it is told of", || {
        let list = house.direct.get("/apis/events.k8s.io/v1/namespaces/default/events");
        let scaled = |event: &&Value| event["reason"] == "Scaled" && event["regarding"]["name"] == "due";
        let count = list["items"].as_array().expect("a list").iter().filter(scaled).count();
        (count > 0).then_some(count)
    });
    assert_eq!(events, 1);
    let untouched = house.direct.get(&format!("{DEPLOYMENTS}/still"));
    assert_eq!(untouched["metadata"]["resourceVersion"], still["metadata"]["resourceVersion"]);
    assert!(replicas.iter().filter(|one| leads(one)).count() == 1);
}

fn a_gate_that_is_killed_takes_its_operator_along() {
    let house = House::begin(false);
    let mut replicas = house.replicas(2, &[]);
    house.tdset("default", "shop", &json!({}));
    house.until_replicas("shop", 1);
    let (leader, _) = house.holder();
    let operator = replicas[0].operator().expect("it runs");

    replicas.remove(0).kill();
    let killed = Instant::now();
    // Well within the term of 15 seconds: the operator has released the lease before it ended.
    until(MARGIN, "the other leads", || leads(&replicas[0]).then_some(()));
    assert!(killed.elapsed() < Duration::from_secs(10));
    assert_ne!(house.holder().0, leader);
    until(MARGIN, "the operator has ended", || (!has_process(operator)).then_some(()));
    let change = json!({"spec": {"replicas": 2}});
    house.call("PATCH", &(of("v1", "default", "tdsets") + "/shop"), change).expect("set");
    house.until_replicas("shop", 2);
}

fn has_process(id: u32) -> bool {
    // One that has ended is there until somebody asks how.
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

fn a_leader_that_drains_hands_over_at_once() {
    let house = House::begin(false);
    let drain = ["--drain-delay", "8s", "--drain-deadline", "1s"];
    let mut replicas = house.replicas(2, &drain);
    house.tdset("default", "shop", &json!({}));
    house.until_replicas("shop", 1);
    let leader = identity(&mut replicas[0]);

    replicas[0].terminate();
    let asked = Instant::now();
    until(Duration::from_secs(3) + MARGIN, "the other leads", || leads(&replicas[1]).then_some(()));
    let took = asked.elapsed();
    let (successor, transitions) = house.holder();
    assert_ne!((&successor, transitions), (&leader, 0));
    assert_eq!(successor, identity(&mut replicas[1]));
    assert!(!leads(&replicas[0]) && !is_ready(&replicas[0]));
    // It serves on: the connection is taken, and its numbers are there.
    assert_eq!(metric(&replicas[0], "gatehouse_draining"), Some(1), "it drains, after {took:?}");
    replicas[0].wait_for("released the lease").unwrap_or_else(|error| panic!("{error}"));
    house
        .call("PATCH", &(of("v1", "default", "tdsets") + "/shop"), json!({"spec": {"replicas": 3}}))
        .expect("set");
    house.until_replicas("shop", 3);
    assert!(replicas.remove(0).ended_well(), "it ends well");

    // The last one leaves no holder.
    let last = replicas.remove(0);
    assert!(last.stop());
    assert_eq!(house.holder().0, "");
}

fn without_an_api_server_nobody_leads_and_then_somebody_does() {
    let house = House::begin(false);
    let mut replicas = house.replicas(2, &["--lease-duration", "3s"]);
    house.tdset("default", "shop", &json!({}));
    house.until_replicas("shop", 1);

    let frozen = Frozen::freeze(&house);
    let since = Instant::now();
    until(TERM + MARGIN, "the leader gives up", || (!leads(&replicas[0])).then_some(()));
    assert!(since.elapsed() < TERM + MARGIN);
    let lost = replicas[0].wait_for("lost the lease, the work is cancelled").unwrap();
    assert_eq!(lost["reason"], "it could not be renewed in time");
    // Longer than the lease lasts, nobody leads.
    let silence = Instant::now();
    until(TERM + MARGIN, "the lease has expired", || {
        assert_eq!(replicas.iter().filter(|one| leads(one)).count(), 0);
        (silence.elapsed() > TERM).then_some(())
    });
    assert!(replicas.iter().all(is_ready), "all serve");
    drop(frozen);

    until(TERM + MARGIN, "somebody leads", || replicas.iter().any(leads).then_some(()));
    house
        .call("PATCH", &(of("v1", "default", "tdsets") + "/shop"), json!({"spec": {"replicas": 2}}))
        .expect("set");
    house.until_replicas("shop", 2);
    assert_eq!(replicas.iter().filter(|one| leads(one)).count(), 1);
}

/// An API server that holds its connections and answers nothing, until this is dropped.
struct Frozen(u32);

impl Frozen {
    fn freeze(house: &House) -> Self {
        let processes = house.bed.cluster.processes();
        let found = processes.iter().find(|one| one.label == "kube-apiserver").expect("it runs");
        let frozen = Self(found.id.pid());
        frozen.signal("-STOP");
        frozen
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.0.to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.signal("-CONT");
    }
}

fn owners(house: &House) -> Option<Vec<Value>> {
    let found = CONFIGURATIONS.iter().map(|path| house.call("GET", path, Value::Null).ok());
    let owners = |object: Value| object["metadata"]["ownerReferences"].clone();
    found.map(|object| object.map(owners)).collect()
}

fn owned_by(house: &House) -> Value {
    let uid = house.direct.get(CLUSTER_ROLE)["metadata"]["uid"].clone();
    json!([{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "gatehouse", "uid": uid}])
}

fn the_configurations_go_with_their_owner() {
    let house = House::begin(true);
    let mut replicas = house.replicas(1, &["--cluster-role", "gatehouse", "--drain-delay", "0s"]);
    replicas[0].wait_for("installed").unwrap_or_else(|error| panic!("{error}"));
    let owner = owned_by(&house);
    assert_eq!(owners(&house), Some(vec![owner.clone(), owner.clone()]));
    house.bed.kubectl(&["create", "namespace", "shop"]).ok();
    for namespace in ["default", "shop"] {
        house.tdset(namespace, "kept", &json!({}));
        let old = json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet", "metadata": {"name": "old"},
            "spec": {"container": {"image": "shop", "port": 80}, "defaultReplica": 2,
                "schedulingConfig": [{"startTime": 8, "endTime": 18, "replica": 6}]}});
        house.call("POST", &of("v1alpha1", namespace, "tdsets"), old).expect("created");
    }

    // Made anew, it is another one: what belonged to the first goes, and comes back.
    let mut role = house.direct.get(CLUSTER_ROLE);
    role["metadata"] = json!({"name": "gatehouse"});
    house.call("DELETE", CLUSTER_ROLE, Value::Null).expect("deleted");
    house.call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role).expect("made anew");
    let second = owned_by(&house);
    assert_ne!(second, owner);
    until(PATIENCE, "the second owns them", || {
        (owners(&house)? == [second.clone(), second.clone()]).then_some(())
    });

    uninstall(&house, replicas.remove(0));
    objects_outlive_the_gate(&house);

    // Installed again, all that is left is taken up.
    house.bed.kubectl(&["apply", "-f", &root().join("deploy/base/rbac.yaml").to_string_lossy()]).ok();
    let mut replicas = house.replicas(1, &["--cluster-role", "gatehouse"]);
    replicas[0].wait_for("installed").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        house.direct.get(&(of("v1alpha1", "default", "tdsets") + "/new"))["spec"]["defaultReplica"],
        1
    );
    house
        .call("PATCH", &(of("v1", "default", "tdsets") + "/new"), json!({"spec": {"replicas": 3}}))
        .expect("judged");
    house.until_replicas("new", 3);

    // Without a gate, the definitions can be deleted as well, and all objects with them.
    uninstall(&house, replicas.remove(0));
    house.call("DELETE", TDSETS, Value::Null).expect("deleted");
    house.until_gone(TDSETS);
}

/// An uninstall takes the rights first: nothing is put back, though the gate still runs.
fn uninstall(house: &House, mut gate: Gate) {
    house.call("DELETE", CLUSTER_ROLE, Value::Null).expect("deleted");
    for path in CONFIGURATIONS {
        house.until_gone(path);
    }
    gate.wait_for("failed to correct the installation").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(owners(house), None);
    gate.kill();
}

/// The definitions point at a gate that is gone, and their objects are there as they are stored.
fn objects_outlive_the_gate(house: &House) {
    let kept = of("v1", "default", "tdsets") + "/kept";
    assert_eq!(house.direct.get(&kept)["spec"]["replicas"], 1);
    house.call("PATCH", &kept, json!({"spec": {"replicas": 2}})).expect("written");
    house.tdset("default", "new", &json!({}));
    let old = house.call("GET", &(of("v1alpha1", "default", "tdsets") + "/kept"), Value::Null);
    let refusal = old.expect_err("nobody converts");
    assert!(
        refusal.message.contains("conversion webhook for gatehouse.dev/v1, Kind=TDSet failed"),
        "{refusal:?}"
    );
    // So are those that were written in the old version, by people whose fields nobody can convert now.
    let older = of("v1", "default", "tdsets") + "/old";
    let written = house.call("PATCH", &older, json!({"spec": {"replicas": 3}})).expect("written");
    assert_eq!((&written["spec"]["replicas"], &written["metadata"]["generation"]), (&json!(3), &json!(2)));
    assert_eq!(written["metadata"].get("managedFields"), None, "who wrote what is forgotten");
    let foreground = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground"});
    house.call("DELETE", &older, foreground).expect("deleted");
    house.until_gone(&older);
    house.call("DELETE", &kept, Value::Null).expect("deleted");
    house.until_gone(&kept);
    house.call("DELETE", "/api/v1/namespaces/shop", Value::Null).expect("deleted");
    house.until_gone("/api/v1/namespaces/shop");
}

/// The rights that working in a namespace needs, and none in the cluster.
fn narrow_rights(house: &House, namespace: &str) {
    let kubectl = |words: &str| house.bed.kubectl(&words.split(' ').collect::<Vec<_>>()).ok();
    kubectl(&format!("create serviceaccount narrow -n {NAMESPACE}"));
    kubectl(&format!(
        "create rolebinding own -n {NAMESPACE} --role=gatehouse --serviceaccount={NAMESPACE}:narrow"
    ));
    let work =
        rights::parts(&Names::DEFAULT).into_iter().filter(|part| part.place == Place::WatchedNamespaces);
    let rules: Vec<_> = work
        .flat_map(|part| part.rules)
        .map(|rule| json!({"apiGroups": [rule.group], "resources": rule.resources, "verbs": rule.verbs}))
        .collect();
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "work", "namespace": namespace}, "rules": rules});
    house.bed.kubectl(&["create"]).input(role.to_string()).ok();
    let subject = format!("--serviceaccount={NAMESPACE}:narrow");
    kubectl(&format!("create rolebinding work -n {namespace} --role=work {subject}"));
}

fn with_rights_in_one_namespace_that_one_is_worked() {
    let house = House::begin(false);
    for namespace in ["shop", "depot"] {
        house.bed.kubectl(&["create", "namespace", namespace]).ok();
    }
    narrow_rights(&house, "shop");
    let mut narrow = house.replica_as(
        "narrow",
        &["--install", "false", "--watch-namespaces", "shop", "--lease-duration", "3s"],
    );
    eventually(|| {
        let page = http_get(narrow.health, "/readyz");
        let waits = "[-]definitions not ready: etcdclusters.v1alpha1.gatehouse.dev is not served yet";
        if page.contains(waits) && page.starts_with("HTTP/1.1 5") { Ok(()) } else { Err(page) }
    });
    let definitions = root().join("deploy/crds");
    house.bed.kubectl(&["apply", "--server-side", "-k", &definitions.to_string_lossy()]).ok();
    until(PATIENCE, "it is ready", || is_ready(&narrow).then_some(()));
    narrow.wait_for("leading").unwrap_or_else(|error| panic!("{error}"));

    for namespace in ["depot", "shop"] {
        house.tdset(namespace, "apart", &json!({}));
    }
    let made = |namespace: &str| {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/apart");
        house.call("GET", &path, Value::Null).ok()
    };
    let tdset = |namespace: &str| house.direct.get(&(of("v1", namespace, "tdsets") + "/apart"));
    until(PATIENCE, "the one in its namespace is worked", || made("shop"));
    until(PATIENCE, "and told of", || tdset("shop")["status"]["scheduledReplicas"].as_u64());
    assert_eq!((made("depot"), tdset("depot").get("status")), (None, None), "and no other is touched");
    assert!(owners(&house).is_none(), "nothing cluster-wide is written");
    let log = std::fs::read_to_string(&narrow.log).expect("a log");
    assert!(!log.contains("is forbidden"), "{log}");

    // Ready is who can be called, whatever becomes of the installation.
    let mut hopeful = house.replica_as("narrow", &["--watch-namespaces", "shop", "--lease-duration", "3s"]);
    until(PATIENCE, "it is ready", || is_ready(&hopeful).then_some(()));
    let failed = hopeful.wait_for("task ended, will restart it").unwrap();
    assert!(
        failed["error"].as_str().is_some_and(|error| error.contains("customresourcedefinitions")),
        "{failed}"
    );
    house.bed.kubectl(&["delete", "-k", &definitions.to_string_lossy()]).ok();
    assert!(is_ready(&hopeful) && is_ready(&narrow), "and it stays so");
}
