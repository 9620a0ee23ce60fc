//! The life of an installation: from nothing to the first object, through restarts, crashes and a removal.
//!
//! Each test leaves gatehouse deployed and whole.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use gatehouse::rbac::AuditTrace;
use jiff::Timestamp;
use kit::audit::Line;
use kit::objects::condition;
use kit::wait::{PATIENCE, eventually, timeout};
use serde_json::{Value, json};

use crate::cluster::{BUSYBOX, Bed, Namespace};
use crate::release::{NAMESPACE, Way};
use crate::rights::{self, Right};
use crate::traffic::{Traffic, is_of_a_gone_gate};
use crate::watched::Watched;
use crate::{Test, examples};

pub const TESTS: &[Test] = &kit::tests![
    its_first_object_is_worked,
    examples::every_example_is_applied_and_worked,
    a_rolling_restart_fails_no_call,
    a_killed_leader_is_replaced_and_nothing_is_done_twice,
    it_asks_for_nothing_that_it_may_not,
    objects_outlive_an_uninstallation,
];

/// What does not hang on how gatehouse was deployed: once is enough.
pub const IN_DEPTH: &[Test] = &kit::tests![
    a_leader_that_is_stopped_hands_over_at_once,
    while_every_replica_is_down_other_work_goes_on,
    what_it_finds_broken_holds_up_nothing,
];

/// After all others of the chart. That both ways grant the same is what `tests/deploy` finds.
pub const LAST: Test = ("every_right_is_used", every_right_is_used);

/// How long a lease lasts in the shipped configuration.
const LEASE: Duration = Duration::from_secs(15);

/// A TDSet with a Pod that answers on port 8000.
pub fn shop(name: &str) -> Value {
    json!({
        "apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": name},
        "spec": {
            "timeZone": "Etc/UTC", "defaultReplicas": 1,
            "windows": [{"name": "always", "from": "00:00", "to": "24:00", "replicas": 1}],
            "target": {"create": {
                "image": BUSYBOX, "command": ["/bin/busybox", "httpd"],
                "args": ["-f", "-p", "8000", "-h", "/etc"], "port": 8000, "servicePort": 80,
            }},
        },
    })
}

/// A TDSet that wants no Pods.
pub fn idle(name: &str) -> Value {
    let mut object = shop(name);
    object["spec"]["defaultReplicas"] = json!(0);
    object["spec"]["windows"][0]["replicas"] = json!(0);
    object
}

fn its_first_object_is_worked(bed: &Bed, way: Way) {
    bed.clear();
    let begun = Instant::now();
    bed.deploy(way);
    let deployed = begun.elapsed();
    let namespace = bed.namespace("first");
    namespace.apply(&shop("shop"));
    eventually(|| {
        let available = condition(&namespace.get("deployment/shop")?, "Available");
        if available["status"] == "True" { Ok(()) } else { Err(format!("{available}")) }
    });
    let worked = begun.elapsed();
    crate::figure(format!(
        "{}: ready after {deployed:.1?}, first Pod of a TDSet after {worked:.1?}",
        way.name()
    ));
    // Its Service has a name, and answers. Debian's busybox crashes with a limit of time, `wget -T`.
    let url = "http://shop.first.svc.cluster.local/hostname";
    let words = ["exec", "deployment/shop", "--", "/bin/busybox", "wget", "-q", "-O-", url];
    let answer = eventually(|| namespace.kubectl(&words).run());
    assert!(answer.starts_with("shop-"), "the Pod answers with its name: {answer}");
}

fn a_rolling_restart_fails_no_call(bed: &Bed, way: Way) {
    bed.deployed(way);
    bed.until_whole();
    let namespace = bed.namespace("restart");
    let traffic = Traffic::start(bed.cluster.kubeconfig(), &namespace.name);
    traffic.until_more(100);
    let old = bed.pods();
    bed.kubectl(&["rollout", "restart", "deployment/gatehouse", "-n", NAMESPACE]).ok();
    bed.until_whole();
    for pod in &old {
        let gone = ["wait", "--for=delete", &format!("pod/{pod}"), "-n", NAMESPACE, &timeout(PATIENCE)];
        bed.kubectl(&gone).ok();
    }
    traffic.until_more(100);
    let tally = traffic.finish();
    crate::figure(format!("{}: rolling restart: {tally}", way.name()));
    tally.assert_flawless();
    assert!(bed.pods().iter().all(|pod| !old.contains(pod)), "all Pods are new");
}

fn a_killed_leader_is_replaced_and_nothing_is_done_twice(bed: &Bed, way: Way) {
    bed.deployed(way);
    bed.until_whole();
    let before = bed.until_led();
    let namespace = bed.namespace("takeover");
    let earlier = bed.requests().len();
    let traffic = Traffic::start(bed.cluster.kubeconfig(), &namespace.name);
    traffic.until_more(100);

    let names: Vec<_> = (0..20).map(|number| format!("work-{number}")).collect();
    let (early, late) = names.split_at(10);
    for name in early {
        namespace.apply(&idle(name));
    }
    let begun = Instant::now();
    bed.kill(&before.pod);
    let killed = bed.lease();
    // Until the Service has forgotten the gate that was killed with it, a call may be sent there and is refused.
    for name in late {
        eventually(|| {
            let applied = namespace.try_apply(&idle(name));
            assert!(applied.as_ref().err().is_none_or(|why| is_of_a_gone_gate(why)), "{applied:?}");
            applied
        });
    }
    let another = |now| if now == before { Err(format!("{now:?}")) } else { Ok(now) };
    let after = eventually(|| bed.leader().and_then(another));
    let taken = begun.elapsed();
    waited_for_the_end_of_the_term(&killed, &bed.lease(), &before.identity);
    for name in &names {
        eventually(|| namespace.get(&format!("deployment/{name}")));
    }
    bed.until_whole();
    let tally = traffic.finish();
    crate::figure(format!("{}: kill -9 of the leader: the next one after {taken:.1?}; {tally}", way.name()));
    assert_ne!(before.identity, after.identity);
    // Its gate was killed as well: what it was asked meanwhile failed, and nothing else did.
    tally.assert_only_broken_off();
    let traffic = Traffic::start(bed.cluster.kubeconfig(), &namespace.name);
    traffic.until_more(100);
    traffic.finish().assert_flawless();
    made_once(&bed.requests().split_off(earlier), &namespace, &names, &before.pod);
}

/// A lease that its killed holder did not release was taken when the term was over, and by one replica.
fn waited_for_the_end_of_the_term(killed: &Value, taken: &Value, holder: &str) {
    let time = |lease: &Value, field: &str| -> Timestamp {
        lease["spec"][field].as_str().and_then(|text| text.parse().ok()).expect("a time")
    };
    let transitions = |lease: &Value| lease["spec"]["leaseTransitions"].as_i64().expect("a count");
    assert_eq!(killed["spec"]["holderIdentity"], holder, "it had no time to release it");
    let end = time(killed, "renewTime") + LEASE;
    assert!(time(taken, "acquireTime") >= end, "taken before {end}: {}", taken["spec"]);
    assert_eq!(transitions(taken), transitions(killed) + 1, "one replica took it: {}", taken["spec"]);
}

/// Each object of these names was made by one request, and not touched by another one that changed it. `killed` may
/// have had one in flight: it is carried out, and the log has no answer to it.
fn made_once(log: &[Line], namespace: &Namespace<'_>, names: &[String], killed: &str) {
    for name in names {
        let deployment = namespace.get(&format!("deployment/{name}")).expect("it is there");
        assert_eq!(deployment["metadata"]["generation"], 1, "{name} was changed after it was made");
        let of_it = |line: &&Line| line.is_about(&namespace.name, name);
        let written: Vec<_> =
            log.iter().filter(of_it).filter(|line| line.what() == "patch deployments").collect();
        let made = written.iter().filter(|line| line.code() == 201).count();
        let cut = written.iter().filter(|line| line.pod() == killed && line.code() >= 500).count();
        assert!(made == 1 || (made == 0 && cut == 1), "{name} was made by one request: {written:#?}");
    }
}

fn a_leader_that_is_stopped_hands_over_at_once(bed: &Bed, way: Way) {
    bed.deployed(way);
    bed.until_whole();
    let before = bed.until_led();
    let namespace = bed.namespace("handover");
    let earlier = bed.requests().len();
    let traffic = Traffic::start(bed.cluster.kubeconfig(), &namespace.name);
    traffic.until_more(50);
    let lease = Watched::start(bed, "lease/gatehouse", NAMESPACE);
    let begun = Instant::now();
    bed.kubectl(&["delete", "pod", &before.pod, "-n", NAMESPACE, "--wait=false"]).ok();
    // It is released, and not left to expire: between one holder and the next there is none.
    let is_another = |holder: &String| !holder.is_empty() && *holder != before.identity;
    let states = lease.until(|states| holders(states).iter().any(is_another));
    let taken = begun.elapsed();
    let held = holders(&states);
    let is_handed_over = matches!(&held[..], [first, none, next, ..]
        if *first == before.identity && none.is_empty() && is_another(next));
    assert!(is_handed_over, "{} has released it, and then another took it: {held:?}", before.identity);
    namespace.apply(&idle("after"));
    eventually(|| namespace.get("deployment/after"));
    bed.until_whole();
    traffic.until_more(50);
    let tally = traffic.finish();
    crate::figure(format!("{}: the leader told to end: the next one after {taken:.1?}", way.name()));
    tally.assert_flawless();
    one_at_a_time(&bed.requests().split_off(earlier), &before.pod);
}

/// The holders of a lease one after the other, empty where it was released.
fn holders(states: &[Value]) -> Vec<String> {
    let holder = |lease: &Value| lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
    let mut holders: Vec<_> = states.iter().map(holder).collect();
    holders.dedup();
    holders
}

/// Once another Pod works, the one that led before does not.
fn one_at_a_time(log: &[Line], before: &str) {
    let (its, of_others): (Vec<_>, Vec<_>) =
        log.iter().filter(|line| line.is_work()).partition(|line| line.pod() == before);
    let last = its.iter().map(|line| line.received()).max().expect("it has worked");
    let first = of_others.iter().map(|line| line.received()).min().expect("another one has worked");
    assert!(last < first, "{before} worked until {last}, and another Pod from {first} on");
}

fn while_every_replica_is_down_other_work_goes_on(bed: &Bed, way: Way) {
    bed.deployed(way);
    bed.until_whole();
    let namespace = bed.namespace("down");
    namespace.apply(&idle("kept"));
    eventually(|| namespace.get("deployment/kept"));
    bed.stop();

    let refused = namespace.kubectl(&["apply"]).input(idle("refused").to_string()).fails();
    assert!(refused.contains("failed calling webhook"), "{refused}");
    assert!(namespace.get("tdset/kept").is_ok(), "what is stored can be read");
    // Other work of the cluster, and what gatehouse itself needs to come back.
    let image = format!("--image={BUSYBOX}");
    namespace.kubectl(&["create", "deployment", "other", &image, "--", "/bin/busybox", "sleep", "3600"]).ok();
    namespace.until("deployment/other", |found| {
        let available = condition(found, "Available");
        if available["status"] == "True" { Ok(()) } else { Err(format!("{available}")) }
    });
    for of in [&namespace.name, NAMESPACE] {
        bed.kubectl(&["create", "secret", "generic", "other", "--from-literal=a=b", "-n", of]).ok();
        bed.kubectl(&["delete", "secret", "other", "-n", of]).ok();
        let lease =
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "other"}});
        bed.kubectl(&["create", "-n", of]).input(lease.to_string()).ok();
        bed.kubectl(&["delete", "lease", "other", "-n", of]).ok();
    }
    // Deletions do not ask it.
    namespace.kubectl(&["delete", "tdset", "kept", &timeout(PATIENCE)]).ok();

    bed.kubectl(&["scale", "deployment/gatehouse", "--replicas=2", "-n", NAMESPACE]).ok();
    bed.until_whole();
    works(&namespace, "scaled");
    // All of them at once.
    bed.pods().iter().for_each(|pod| bed.kill(pod));
    works(&namespace, "crashed");
    bed.until_whole();
}

/// A new object is let in, in time, and worked.
#[track_caller]
pub fn works(namespace: &Namespace<'_>, name: &str) {
    eventually(|| namespace.kubectl(&["apply"]).input(idle(name).to_string()).run());
    eventually(|| namespace.get(&format!("deployment/{name}")));
}

fn what_it_finds_broken_holds_up_nothing(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("broken");
    bed.stop();

    // An authority that cannot be read, and an object that was stored under other definitions.
    let emptied =
        ["patch", "secret", "gatehouse-ca", "-n", NAMESPACE, "--type=merge", r#"--patch={"data":null}"#];
    bed.kubectl(&emptied).ok();
    let hooks = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
    bed.kubectl(&["delete", hooks, "gatehouse"]).ok();
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let loosened: Vec<_> = [0, 1]
        .map(|version| format!("/spec/versions/{version}/schema/openAPIV3Schema"))
        .map(|path| json!({"op": "replace", "path": path, "value": anything}))
        .into();
    let patch = format!("--patch={}", json!(loosened));
    bed.kubectl(&["patch", "crd", "tdsets.gatehouse.dev", "--type=json", &patch]).ok();
    let mut odd = idle("odd");
    odd["spec"]["defaultReplicas"] = json!("many");
    eventually(|| namespace.kubectl(&["create"]).input(odd.to_string()).run());

    bed.kubectl(&["scale", "deployment/gatehouse", "--replicas=2", "-n", NAMESPACE]).ok();
    bed.until_whole();
    works(&namespace, "even");
    let said = eventually(|| {
        let odd = namespace.get("tdset/odd")?;
        let ready = odd["status"]["conditions"][0].clone();
        if ready["status"] == "False" { Ok(ready) } else { Err(format!("it says {ready}")) }
    });
    assert_eq!(said["message"], "spec.defaultReplicas: Invalid value: must be of type integer", "{said}");
    namespace.kubectl(&["delete", "tdset", "odd"]).ok();
}

fn it_asks_for_nothing_that_it_may_not(bed: &Bed, way: Way) {
    bed.deployed(way);
    let log = bed.requests();
    let refused: Vec<_> = log.iter().filter(|line| line.lacked_the_right()).map(Line::what).collect();
    assert!(!log.is_empty(), "its requests are in the log");
    assert!(refused.is_empty(), "asked for, and not granted: {refused:?}");
}

fn objects_outlive_an_uninstallation(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("kept");
    let cluster = json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "EtcdCluster", "metadata": {"name": "kept"},
        "spec": {"size": 3, "version": "3.6.16"}});
    namespace.apply(&cluster);
    namespace.apply(&idle("kept"));
    let uid = |object: &str| namespace.get(object).map(|found| found["metadata"]["uid"].clone());
    let before = eventually(|| {
        ["etcdcluster/kept", "tdset/kept", "deployment/kept"]
            .into_iter()
            .map(uid)
            .collect::<Result<Vec<_>, _>>()
    });
    let leaving = bed.namespace("leaving");
    leaving.apply(&idle("leaving"));
    leaving.apply(&cluster);

    let begun = Instant::now();
    bed.remove();
    crate::figure(format!(
        "{}: uninstalled, namespace and all, without the drain, after {:.1?}",
        way.name(),
        begun.elapsed()
    ));
    for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        eventually(|| {
            let is_left = bed.list(kind, "").iter().any(|hooks| hooks["metadata"]["name"] == "gatehouse");
            if is_left { Err(format!("the {kind} are left")) } else { Ok(()) }
        });
    }
    // Objects are read, changed and deleted without it, by themselves and with their namespace.
    namespace.kubectl(&["annotate", "tdset/kept", "seen=yes"]).ok();
    bed.kubectl(&["delete", "namespace", "leaving", &timeout(PATIENCE)]).ok();

    bed.deploy(way);
    let after: Result<Vec<_>, _> =
        ["etcdcluster/kept", "tdset/kept", "deployment/kept"].into_iter().map(uid).collect();
    assert_eq!(after, Ok(before), "the same objects as before");
    namespace.kubectl(&["get", "etcdclusters.v1alpha1.gatehouse.dev", "kept"]).ok();
    namespace.kubectl(&["delete", "deployment", "kept"]).ok();
    eventually(|| namespace.get("deployment/kept"));
}

fn every_right_is_used(bed: &Bed, way: Way) {
    bed.deployed(way);
    let roles = [
        bed.get("clusterrole/gatehouse", NAMESPACE).expect("a ClusterRole"),
        bed.get("role/gatehouse", NAMESPACE).expect("a Role"),
    ];
    let needed = Right::needed();
    let granted: BTreeSet<_> = needed.iter().map(|(right, _)| right.clone()).collect();
    assert_eq!(Right::of_roles(&roles), granted, "granted, and needed");

    let log = Line::read(&bed.audit_log());
    let is_unused = |(right, trace): &&(Right, AuditTrace)| {
        !matches!(trace, AuditTrace::Nowhere | AuditTrace::Rare)
            && !log.iter().any(|line| right.is_used_by(line, *trace))
    };
    let unused: Vec<_> = needed.iter().filter(is_unused).map(|(right, _)| right.to_string()).collect();
    assert!(unused.is_empty(), "granted, and not used: {unused:#?}");
    let hidden = needed.iter().filter(|(_, trace)| *trace == AuditTrace::Nowhere);
    rights::each_is_missed(bed, &granted, hidden.map(|(right, _)| right));
    crate::figure(format!("{}: {} rights, used by {} requests", way.name(), granted.len(), log.len()));
}
