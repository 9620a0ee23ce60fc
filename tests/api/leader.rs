//! Which of several replicas works, and what becomes of the work when that one dies, leaves, or hears nothing from the
//! API server. What is left when all of them are gone is in [`removal`].
//!
//! Tests take turns on a control plane. The Lease determines when the leader changes: a term is over when its last
//! renewal is as old as the Lease lasts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use gatehouse::runtime::clock;
use jiff::{SignedDuration, Timestamp};
use kit::bed::{Bed, Namespace};
use kit::objects::{Ask, http_get};
use kit::process;
use kit::program::{Gate, Log};
use kit::wait::{eventually, patient};
use serde_json::{Value, json};

use crate::Test;
use crate::front::Front;
use crate::installed::{LEASE, until_guarded};
use lease::Lease;

mod lease;
mod parts;
mod removal;
mod rights;

pub use removal::TESTS as REMOVALS;

pub const TESTS: &[Test] = &kit::tests![
    one_replica_works_and_all_serve,
    when_the_leader_is_killed_another_goes_on_and_does_nothing_twice,
    parts::a_panic_in_a_controller_is_not_felt_at_the_gate,
    parts::each_part_runs_alone_with_its_own_rights,
    a_leader_that_drains_hands_over_at_once,
    rights::a_leader_that_cannot_install_works_by_what_its_release_has_installed,
    without_an_api_server_no_replica_leads_and_then_one_does,
];

/// Of replicas whose Lease is not to expire, also where a busy machine renews it late: it lasts so many seconds. Their
/// looks at it are 16 seconds apart.
pub const LASTING: &[&str] = &["--lease-duration", "120s"];
const LASTS: u64 = 120;

/// How long a Lease lasts that is to expire: a busy machine renews it in time, while the holder lives.
fn term() -> SignedDuration {
    SignedDuration::try_from(patient(Duration::from_secs(30))).expect("a duration")
}

/// A control plane that is this test's for now, and several replicas behind one address.
struct House<'a> {
    bed: &'a Bed,
    namespace: Namespace<'a>,
    front: Arc<Front>,
    _turn: MutexGuard<'a, ()>,
}

impl<'a> House<'a> {
    /// One without an earlier leader. What replicas of other tests have installed is there, if any ran before.
    fn begin(bed: &'a Bed) -> Self {
        let turn = bed.turn();
        bed.objects.if_there(Ask::delete(LEASE));
        let front = front_of(bed);
        front.clear();
        Self { bed, namespace: bed.namespace(), front, _turn: turn }
    }

    /// One more replica.
    fn replica(&self, options: &[&str]) -> Gate {
        self.replica_as("gatehouse", options)
    }

    /// One more, as that ServiceAccount.
    fn replica_as(&self, account: &str, options: &[&str]) -> Gate {
        self.replica_of(&self.command(account, options))
    }

    /// How one is started.
    fn command(&self, account: &str, options: &[&str]) -> Command {
        let url = format!("https://127.0.0.1:{}", self.front.port);
        let mut command = self.bed.serve(account, &[&["--webhook-url", &url], options].concat());
        command.env("GATEHOUSE_CLOCK", self.clock());
        command
    }

    fn replica_of(&self, command: &Command) -> Gate {
        let gate = self.bed.start_gate(command).unwrap_or_else(|error| panic!("{error}"));
        self.front.add(gate.address);
        gate
    }

    /// A leader and a follower for each of these options, in this order; the API server asks them about objects.
    fn replicas(&self, options: &[&[&str]]) -> Vec<Gate> {
        let mut replicas: Vec<Gate> = Vec::new();
        for options in options {
            let replica = self.replica(options);
            replica.logs(if replicas.is_empty() { "leading" } else { "following" });
            replica.logs("installed");
            replicas.push(replica);
        }
        until_guarded(self.bed, &self.namespace.name);
        replicas
    }

    /// The same for so many whose Lease lasts for that time.
    fn replicas_for(&self, term: SignedDuration, count: usize) -> Vec<Gate> {
        let lasts = format!("{}s", term.as_secs());
        let options = ["--lease-duration", lasts.as_str()];
        self.replicas(&vec![&options[..]; count])
    }

    /// What it is off by is in this file: nothing, where it is not there.
    fn clock(&self) -> PathBuf {
        self.bed.cluster.folder().join(format!("clock-of-{}", self.namespace.name))
    }

    /// Has the clock of all replicas jump.
    fn jump(&self, by: SignedDuration) {
        let next = self.clock().with_extension("next");
        std::fs::write(&next, by.to_string()).expect("a file");
        std::fs::rename(next, self.clock()).expect("a file");
    }

    /// Creates a TDSet, through the gate where there is one.
    #[track_caller]
    fn tdset(&self, name: &str, fields: &Value) {
        self.namespace.create(&tdset(name, fields));
    }

    #[track_caller]
    fn until_replicas(&self, name: &str, count: u32) -> Value {
        self.bed.objects.until(&format!("deployment/{name}"), &self.namespace.name, |found| {
            if found["spec"]["replicas"] == count {
                Ok(found.clone())
            } else {
                Err(found["spec"].to_string())
            }
        })
    }

    /// Changes the count of a TDSet, and waits until that is carried out.
    #[track_caller]
    fn works(&self, name: &str, count: u32) {
        self.namespace.change(&format!("tdset/{name}"), &json!({"spec": {"defaultReplicas": count}}));
        self.until_replicas(name, count);
    }

    fn lease(&self) -> Lease {
        Lease::of(&self.spec_of_lease())
    }

    fn spec_of_lease(&self) -> Value {
        self.bed.objects.at(LEASE)["spec"].clone()
    }
}

/// The address that is installed in a control plane: it stays the same, so that definitions do not change from test to
/// test.
fn front_of(bed: &Bed) -> Arc<Front> {
    static FRONTS: Mutex<BTreeMap<PathBuf, Arc<Front>>> = Mutex::new(BTreeMap::new());
    let mut fronts = FRONTS.lock().unwrap();
    Arc::clone(fronts.entry(bed.cluster.folder().to_owned()).or_insert_with(|| Arc::new(Front::new())))
}

fn tdset(name: &str, fields: &Value) -> Value {
    let mut object = json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": name},
        "spec": {"defaultReplicas": 1, "target": {"create": {"image": "registry.k8s.io/pause:3.10", "port": 8080}}}});
    for (key, value) in fields.as_object().expect("fields") {
        object["spec"][key] = value.clone();
    }
    object
}

fn metric(gate: &Gate, name: &str) -> Option<u64> {
    let page = http_get(gate.health, "/metrics");
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
    line.and_then(|value| value.trim().parse().ok())
}

fn leads(gate: &Gate) -> bool {
    metric(gate, "gatehouse_leader") == Some(1)
}

/// Waits until one leads and no other; which of them.
#[track_caller]
fn until_one_leads(replicas: &[Gate]) -> usize {
    eventually(|| match replicas.iter().map(leads).collect::<Vec<_>>() {
        all if all.iter().filter(|leads| **leads).count() == 1 => {
            all.iter().position(|leads| *leads).ok_or("")
        }
        _ => Err("not one leads"),
    })
}

fn is_ready(gate: &Gate) -> bool {
    http_get(gate.health, "/readyz").starts_with("HTTP/1.1 200")
}

#[track_caller]
fn until_ready(gate: &Gate) {
    eventually(|| {
        let page = http_get(gate.health, "/readyz");
        if page.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(page) }
    });
}

/// Passes that a replica has made.
fn passes(gate: &Gate) -> usize {
    let page = http_get(gate.health, "/metrics");
    page.lines().filter(|line| line.starts_with("controller_runtime_reconcile_total{")).count()
}

/// Who a replica is, once it leads: each of its lives has an identity of its own.
fn identity(gate: &Gate) -> String {
    gate.logs("leading");
    led_as(gate).expect("it leads")
}

/// Who a replica was when it led last, if it ever did.
fn led_as(gate: &Gate) -> Option<String> {
    let lines = gate.log().from_the_start()();
    let last = lines.iter().rfind(|line| line["message"] == "leading")?;
    Some(last["identity"].as_str().expect("an identity").to_owned())
}

fn one_replica_works_and_all_serve(bed: &Bed) {
    let house = House::begin(bed);
    let replicas = house.replicas(&[LASTING; 3]);
    let lease = house.lease();
    assert_eq!((lease.holder, lease.transitions), (identity(&replicas[0]), 0));
    house.tdset("shop", &json!({}));
    house.until_replicas("shop", 1);
    replicas.iter().for_each(until_ready);
    assert_eq!(replicas.iter().map(leads).collect::<Vec<_>>(), [true, false, false]);
    // The Deployment is written before the reconciliation ends.
    eventually(|| if passes(&replicas[0]) > 0 { Ok(()) } else { Err("no reconciliation has ended") });
    assert_eq!(replicas[1..].iter().map(passes).sum::<usize>(), 0, "followers work nothing");
    let page = http_get(replicas[1].health, "/readyz");
    let leader = house.lease().holder;
    assert!(page.contains(&format!("[~]leader not ready, not required: {leader} leads")), "{page}");
    assert!(page.contains("[+]definitions ok"), "{page}");

    // A lease says the truth to people.
    let spec = house.spec_of_lease();
    assert_eq!(spec["leaseDurationSeconds"], LASTS);
    let time = |field: &str| spec[field].as_str().expect("a time").parse::<Timestamp>().expect("a time");
    assert!(time("acquireTime") <= time("renewTime"));
    let renewed = bed.objects.until("lease/gatehouse", "gatehouse-system", |next| {
        let next = next["spec"].clone();
        if next["renewTime"] == spec["renewTime"] { Err(next.to_string()) } else { Ok(next) }
    });
    assert_eq!(renewed["acquireTime"], spec["acquireTime"]);
}

/// The notes of events that tell of new counts of a TDSet.
fn scaled(house: &House, name: &str) -> Vec<String> {
    let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", house.namespace.name);
    let list = house.bed.objects.at(&path);
    let events = list["items"].as_array().expect("a list").iter();
    let scaled =
        events.filter(|event| event["reason"] == "ReplicasScheduled" && event["regarding"]["name"] == *name);
    scaled.map(|event| event["note"].as_str().expect("a note").to_owned()).collect()
}

#[track_caller]
fn until_scaled(house: &House, name: &str, times: usize) {
    let notes = eventually(|| {
        let notes = scaled(house, name);
        if notes.len() >= times { Ok(notes) } else { Err(format!("{notes:?}")) }
    });
    assert_eq!(notes.len(), times, "one event for each: {notes:?}");
}

fn generation(object: &Value) -> u64 {
    object["metadata"]["generation"].as_u64().expect("a generation")
}

fn when_the_leader_is_killed_another_goes_on_and_does_nothing_twice(bed: &Bed) {
    let (term, jump) = (term(), SignedDuration::from_hours(2));
    let house = House::begin(bed);
    let mut replicas = house.replicas_for(term, 3);
    house.tdset("still", &json!({}));
    house.namespace.until("tdset/still", "{.status.scheduledReplicas}", "1");
    let still = house.namespace.get("deployment", "still");
    let due = Timestamp::from_second((clock::now() + jump / 2).as_second()).expect("a time");
    let rush = |replicas: u32| {
        let span = json!({"start": due.to_string(), "end": (due + jump).to_string()});
        json!({"exceptions": [{"name": "rush", "between": span, "replicas": replicas}]})
    };
    house.tdset("due", &rush(4));
    let before = house.until_replicas("due", 1);
    house.namespace.until("tdset/due", "{.status.nextTransition.window}", "exception/rush");

    let leader = house.lease();
    let leading = replicas.iter().position(|one| led_as(one).as_ref() == Some(&leader.holder));
    let leading = leading.expect("one of them leads");
    replicas.remove(leading).into_program().kill();
    // The time comes while there is no leader.
    house.jump(jump);
    let last = house.lease();
    let next = bed.objects.until("lease/gatehouse", "gatehouse-system", |lease| {
        assert!(replicas.iter().all(is_ready), "the others serve on");
        let next = Lease::of(&lease["spec"]);
        if next.holder == leader.holder { Err(next.holder) } else { Ok(next) }
    });
    assert_eq!(next.transitions, leader.transitions + 1);
    assert!(next.acquired > due, "it had come before another led");
    assert!(next.acquired - jump >= last.renewed + term, "a lease is not taken from one that may live");
    let successor = until_one_leads(&replicas);

    let after = house.until_replicas("due", 4);
    assert_eq!(generation(&after), generation(&before) + 1, "written once");
    until_scaled(&house, "due", 1);
    // What comes after all of that: another count, told of as well.
    house.namespace.change("tdset/due", &json!({"spec": rush(5)}));
    let later = house.until_replicas("due", 5);
    assert_eq!(generation(&later), generation(&before) + 2, "written once each");
    until_scaled(&house, "due", 2);
    until_looked_at(&replicas[successor], &house.namespace.name, "still");
    let untouched = house.namespace.get("deployment", "still");
    assert_eq!(untouched["metadata"]["resourceVersion"], still["metadata"]["resourceVersion"]);
    assert_eq!(until_one_leads(&replicas), successor);
}

/// Waits until a replica has made a pass over a TDSet since it was started.
#[track_caller]
fn until_looked_at(gate: &Gate, namespace: &str, name: &str) {
    let object = format!("{namespace}/{name}");
    let mut lines = Log::of(gate.log().path()).from_the_start();
    eventually(|| {
        let is_it = |line: &Value| {
            line["message"] == "reconciled" && line["object"] == *object && line["result"] == "done"
        };
        if lines().iter().any(is_it) { Ok(()) } else { Err(format!("no pass over {object}")) }
    });
}

fn a_leader_that_drains_hands_over_at_once(bed: &Bed) {
    let house = House::begin(bed);
    let long = [LASTING, &["--drain-delay", "1h"]].concat();
    let short = [LASTING, &["--drain-delay", "100ms", "--drain-deadline", "1s"]].concat();
    let mut replicas = house.replicas(&[&long, &short]);
    house.tdset("shop", &json!({}));
    house.until_replicas("shop", 1);
    let (leader, before) = (house.lease(), lease::version(bed));

    replicas[0].terminate();
    eventually(|| if leads(&replicas[1]) { Ok(()) } else { Err("the other does not lead") });
    let next = house.lease();
    assert_eq!((next.holder, next.transitions), (identity(&replicas[1]), leader.transitions + 1));
    let holders = lease::holders_since(bed, &before);
    let handed_over = [String::new(), identity(&replicas[1])];
    assert!(holders.ends_with(&handed_over), "it is released before another takes it: {holders:?}");
    replicas[0].logs("released the lease");
    assert!(!leads(&replicas[0]) && !is_ready(&replicas[0]));
    // It serves on: the connection is taken, and its numbers are there.
    assert_eq!(metric(&replicas[0], "gatehouse_draining"), Some(1), "it drains");
    house.works("shop", 3);
    // Only a second signal ends so long a drain.
    replicas[0].terminate();
    assert_eq!(replicas.remove(0).into_program().code(), Some(1));

    // The last one drains to its end, and leaves no holder.
    house.works("shop", 4);
    assert!(replicas.remove(0).into_program().stop(), "it ends well");
    assert_eq!(house.lease().holder, "");
}

fn without_an_api_server_no_replica_leads_and_then_one_does(bed: &Bed) {
    let term = term();
    let house = House::begin(bed);
    let replicas = house.replicas_for(term, 2);
    house.tdset("shop", &json!({}));
    house.until_replicas("shop", 1);

    let leader = &replicas[until_one_leads(&replicas)];
    let frozen = Frozen::freeze(bed);
    // Whatever it took in before that, the terms are over by then.
    let over = clock::now() + term * 3 / 2;
    eventually(|| if leads(leader) { Err("the leader has not given up") } else { Ok(()) });
    let lost = leader.logs("lost the lease, the work is cancelled");
    assert_eq!(lost["reason"], "it could not be renewed in time");
    eventually(|| {
        assert_eq!(replicas.iter().filter(|one| leads(one)).count(), 0);
        if clock::now() > over { Ok(()) } else { Err("the lease has not expired") }
    });
    assert!(replicas.iter().all(is_ready), "all serve");
    drop(frozen);

    until_one_leads(&replicas);
    house.works("shop", 2);
    until_one_leads(&replicas);
}

/// An API server that holds its connections and answers nothing, until this is dropped.
struct Frozen(u32);

impl Frozen {
    fn freeze(bed: &Bed) -> Self {
        let processes = bed.cluster.processes();
        let found = processes.iter().find(|one| one.label == "kube-apiserver").expect("it runs");
        let frozen = Self(found.id.pid());
        process::freeze(frozen.0);
        frozen
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        process::thaw(self.0);
    }
}
