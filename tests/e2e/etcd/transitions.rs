//! Chains of edits, drawn from a seed, of a real cluster that is written to all the while.
//!
//! At no moment is anything wrong that was not asked for, whatever comes up is not touched any more, what does not come
//! up is healed by the spec before it, and in the end the cluster is like one that was made with the last spec.
//!
//! `E2E_SEED` names the first chain, and `E2E_CHAINS` how many there are; they go side by side.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kit::audit::Line;
use kit::chains::chain::{Chain, Edit, Pace, chain, patch};
use kit::chains::compare::differences;
use kit::random::{Random, seed};
use serde_json::Value;

use super::cluster::{Etcd, NAME, condition};
use super::gone_with_its_object;
use super::reference_cluster::{self, LABELS};
use crate::cluster::{Bed, Namespace};
use crate::release::Way;
use crate::watched::{Watched, version};

/// Edits of a chain.
const LENGTH: usize = 6;

/// The first chain unless another one is asked for, and how many there are.
const SEED: u64 = 1;
const CHAINS: u64 = 2;

/// Longer than it takes to replace a pod: what is reported for so long does not come up.
const RESTART: Duration = Duration::from_secs(30);

/// Within this each cluster at rest is looked at, and numbers in its status that have moved are written once more.
const LAST_LOOK: Duration = Duration::from_secs(45);

/// How long nothing at all is written after that.
const REST: Duration = Duration::from_mins(2);

pub fn etcd_is_the_same_whatever_way_it_came(bed: &Bed, way: Way) {
    bed.deployed(way);
    let first = seed("E2E_SEED", SEED);
    let seeds = (0..kit::env_or("E2E_CHAINS", CHAINS)).map(|number| first.wrapping_add(number));
    std::thread::scope(|scope| {
        let walks: Vec<_> = seeds.map(|seed| scope.spawn(move || walk(bed, way, seed))).collect();
        let ended: Vec<_> = walks.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        // A failure of one lets the others come to their end.
        for ended in ended {
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}

fn walk(bed: &Bed, way: Way, seed: u64) {
    let mut random = Random(seed);
    let chain = chain(&mut || random.draw(), LENGTH);
    crate::figure(format!("{}: etcd: E2E_SEED={seed}: {chain}", way.name()));
    let begun = Instant::now();
    let namespace = bed.namespace(&format!("etcd-chain-{seed}"));
    let etcd = made(&namespace, &chain.first);
    let watched = Watched::start(bed, &format!("etcdcluster/{NAME}"), &namespace.name);
    let mut way_there =
        WayThere { bed, seed, namespace: &namespace, etcd: &etcd, rests_since: 0, broken: Vec::new() };
    way_there.go(&chain);
    let told = watched.until_version(version(&etcd.object().expect("it is there")));
    way_there.nothing_was_wrong(&told);
    let taken = begun.elapsed();

    let fresh = bed.namespace(&format!("etcd-fresh-{seed}"));
    let other = made(&fresh, chain.last());
    other.until_settled(members(chain.last()));
    nothing_is_written(bed, &[&namespace, &fresh]);
    let (left, right) = (reference_cluster::made(&namespace, &etcd), reference_cluster::made(&fresh, &other));
    let found = differences(&left, &right);
    assert!(found.is_empty(), "E2E_SEED={seed}: the way there shows, and what is made at once: {found:#?}");
    crate::figure(format!(
        "{}: etcd: E2E_SEED={seed}: there after {taken:.1?}, {} objects alike, {} looks at the status",
        way.name(),
        left.len(),
        told.len()
    ));
    gone_with_its_object(bed, &namespace);
    gone_with_its_object(bed, &fresh);
}

/// A cluster of that spec, whose members may be brought one minor down.
fn made<'a>(namespace: &'a Namespace<'a>, spec: &Value) -> Etcd<'a> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let (tls, version) = (text(&spec["tls"]["mode"]), text(&spec["version"]));
    let etcd = Etcd::asking(namespace, &tls, &version, members(spec), spec);
    namespace.kubectl(&["annotate", "etcdcluster", NAME, "gatehouse.dev/allow-downgrade=true"]).ok();
    etcd.may_have(3);
    etcd
}

fn members(spec: &Value) -> usize {
    spec["replicas"].as_u64().and_then(|count| usize::try_from(count).ok()).expect("a count")
}

/// Waits until numbers have been written for the last time, and then a while in which nothing is.
fn nothing_is_written(bed: &Bed, namespaces: &[&Namespace<'_>]) {
    let writes = |since: usize| {
        let log = bed.requests().split_off(since);
        let is_of_them = |line: &Line| namespaces.iter().any(|one| line.is_in(&one.name));
        log.into_iter().filter(|line| line.is_write() && is_of_them(line)).collect::<Vec<_>>()
    };
    for (time, allowed) in [(LAST_LOOK, "etcdclusters/status"), (REST, "nothing")] {
        let since = bed.requests().len();
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            std::thread::park_timeout(left); // how long nothing happens is what is asked
        }
        let told: Vec<_> = writes(since).into_iter().filter(|line| line.resource() != allowed).collect();
        assert!(told.is_empty(), "nothing is left to do, and within {time:?} it asks for {told:#?}");
    }
}

/// A cluster on its way.
struct WayThere<'a> {
    bed: &'a Bed,
    seed: u64,
    namespace: &'a Namespace<'a>,
    etcd: &'a Etcd<'a>,
    /// How many requests there had been when it was last told to rest, and did.
    rests_since: usize,
    /// From which version of the object to which what was asked for could not come up.
    broken: Vec<(u64, u64)>,
}

impl WayThere<'_> {
    fn go(&mut self, chain: &Chain) {
        self.etcd.until_settled(members(&chain.first));
        let mut before = &chain.first;
        for edit in &chain.edits {
            if !self.etcd.is_writing() {
                self.etcd.write();
            }
            let begun = Instant::now();
            self.make(before, edit);
            eprintln!("    E2E_SEED={}: {}: {:.1?}", self.seed, edit.what, begun.elapsed());
            before = &edit.spec;
        }
    }

    /// An edit, and what is waited for after it.
    fn make(&mut self, before: &Value, edit: &Edit) {
        if before["paused"] == true {
            self.nothing_was_done();
        }
        let (since, known) = (version(&self.object()), self.identities());
        self.etcd.change(&patch(before, &edit.spec));
        match edit.pace {
            Pace::Hurries(pause) => self.etcd.follow_for(pause),
            Pace::Rests => self.rests(),
            Pace::Breaks => {
                self.broken.push((since, u64::MAX));
                self.is_reported(edit);
            }
            Pace::Settles => {
                let settled = self.settles(edit);
                if let Some(window) = self.broken.last_mut().filter(|window| window.1 == u64::MAX) {
                    window.1 = version(&settled);
                    assert_eq!(self.identities(), known, "the same members on the same volumes");
                }
            }
        }
    }

    /// It is as it is asked for, and what clients were told is kept.
    fn settles(&self, edit: &Edit) -> Value {
        let count = members(&edit.spec);
        let settled = self.etcd.until_settled(count);
        if count > 0 {
            assert_eq!(settled["status"]["version"], edit.spec["version"], "it says that it is settled");
            self.etcd.goes_on(50);
            self.etcd.expect_kept(50);
        }
        settled
    }

    fn rests(&mut self) {
        self.etcd.until(|_| {
            let paused = condition(&self.object(), "Paused");
            if paused["status"] == "True" { Ok(()) } else { Err(paused.to_string()) }
        });
        self.rests_since = self.bed.requests().len();
    }

    /// While it rested nothing but its status was written.
    fn nothing_was_done(&self) {
        let log = self.bed.requests().split_off(self.rests_since);
        let done: Vec<_> = log
            .into_iter()
            .filter(|line| line.is_write() && line.is_in(&self.namespace.name))
            .filter(|line| line.resource() != "etcdclusters/status")
            .collect();
        assert!(done.is_empty(), "it is paused: {done:#?}");
    }

    /// What does not come up is reported, and takes no more than one member along.
    fn is_reported(&self, edit: &Edit) {
        let mut since = None;
        let degraded = self.etcd.until(|_| {
            let degraded = condition(&self.object(), "Degraded");
            if degraded["status"] != "True" {
                since = None;
                return Err(degraded.to_string());
            }
            let lasts = since.get_or_insert_with(Instant::now).elapsed() > RESTART;
            if lasts { Ok(degraded) } else { Err(format!("not for long: {degraded}")) }
        });
        let is_ready = |pod: &&Value| pod["status"]["containerStatuses"][0]["ready"] == true;
        let ready = self.etcd.pods().iter().filter(is_ready).count();
        assert!(ready + 1 >= members(&edit.spec), "{ready} pods are ready: {degraded}");
    }

    /// The members, and the volumes that they have.
    fn identities(&self) -> BTreeMap<String, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = self.object();
        let members = object["status"]["members"].as_array().into_iter().flatten();
        let ids = members.map(|member| (text(&member["name"]), text(&member["id"])));
        let claims = self.namespace.list("persistentvolumeclaims", LABELS);
        let uids =
            claims.iter().map(|claim| (text(&claim["metadata"]["name"]), text(&claim["metadata"]["uid"])));
        ids.chain(uids).collect()
    }

    fn object(&self) -> Value {
        self.etcd.object().expect("it is there")
    }

    /// Whatever was shown at any moment: the spec is sound, and nothing is the matter but a member that restarts, or
    /// what was asked for and cannot come up.
    fn nothing_was_wrong(&self, told: &[Value]) {
        for object in told {
            let (valid, degraded) = (condition(object, "SpecValid"), condition(object, "Degraded"));
            assert_ne!(valid["status"], "False", "E2E_SEED={}: it was let in: {valid}", self.seed);
            let at = version(object);
            let is_broken = self.broken.iter().any(|(since, until)| (*since..=*until).contains(&at));
            let reasons: &[&str] = if is_broken {
                &["MemberDown", "PodNotRunning", "UpgradeStalled", "QuorumLost"]
            } else {
                &["MemberDown"]
            };
            let is_expected =
                degraded["status"] != "True" || reasons.iter().any(|one| degraded["reason"] == **one);
            assert!(is_expected, "E2E_SEED={}: nothing broke it: {degraded}", self.seed);
        }
    }
}
