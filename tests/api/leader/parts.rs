//! The gate and the controllers: neither is felt by the other, and each runs alone.

use std::fs;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use kit::bed::{Bed, NAMESPACE};
use kit::deploy::{helm, kind};
use kit::objects::{Ask, Refusal, http_get, of};
use kit::program::Program;
use kit::wait::eventually;
use serde_json::{Value, json};

use super::{House, LASTING, identity, is_ready, metric, tdset, until_ready};
use crate::installed::{self, until_guarded};
use crate::tdset::crashing_operator::STEPS;

/// Where a controller panics, once at each.
const PANICS: [&str; 2] = ["tdset.make-deployment.before", "tdset.write-status.after"];

/// Sends reviews one after the other until it is dropped: creations that store nothing.
struct Reviews<'a> {
    ends: &'a AtomicBool,
    answered: &'a AtomicUsize,
}

impl Reviews<'_> {
    /// Waits until so many more have been answered.
    #[track_caller]
    fn until_more(&self, count: usize) {
        let wanted = self.answered.load(Ordering::Relaxed) + count;
        eventually(|| match self.answered.load(Ordering::Relaxed) {
            answered if answered < wanted => Err(format!("{answered} of {wanted} reviews are answered")),
            _ => Ok(()),
        });
    }
}

impl Drop for Reviews<'_> {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

/// Does something while reviews are sent, each of which has to be answered as the rules say.
fn under_reviews(house: &House, act: impl FnOnce(&Reviews)) {
    let (ends, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let path = of("v1", &house.namespace.name, "tdsets") + "?dryRun=All";
    let judged = |object: Value| house.bed.objects.one(Ask::post(&*path, object));
    let call = || -> Vec<Result<Value, Refusal>> {
        let mut unexpected = Vec::new();
        while !ends.load(Ordering::Relaxed) {
            let allowed = judged(tdset("asked", &json!({})));
            let denied = judged(tdset("asked", &json!({"timeZone": "Nowhere/Else"})));
            unexpected.extend([allowed].into_iter().filter(Result::is_err));
            let is_denied = matches!(&denied, Err(refusal) if refusal.message.contains("spec.timeZone"));
            unexpected.extend([denied].into_iter().filter(|_| !is_denied));
            answered.fetch_add(2, Ordering::Relaxed);
        }
        unexpected
    };
    thread::scope(|scope| {
        let sent = scope.spawn(call);
        act(&Reviews { ends: &ends, answered: &answered });
        let unexpected = sent.join().expect("reviews are sent");
        assert!(unexpected.is_empty(), "{} of {answered:?}: {:?}", unexpected.len(), unexpected.first());
    });
}

pub fn a_panic_in_a_controller_is_not_felt_at_the_gate(bed: &Bed) {
    let house = House::begin(bed);
    let points = bed.cluster.folder().join(format!("points-of-{}", house.namespace.name));
    let all =
        STEPS.iter().flat_map(|step| ["before", "after"].map(|moment| format!("tdset.{step}.{moment}")));
    let passed: Vec<_> = all.filter(|point| !PANICS.contains(&point.as_str())).collect();
    fs::write(&points, passed.join("\n") + "\n").expect("a file");
    // Objects that another test has left would panic as well, in the same life.
    let options =
        ["--watch-namespaces", &house.namespace.name, "--drain-delay", "100ms", "--drain-deadline", "1s"];
    let mut command = house.command("gatehouse", &[LASTING, &options].concat());
    command.env("GATEHOUSE_FAIL_POINTS", format!("panic:{}", points.display()));
    let replica = house.replica_of(&command);
    replica.logs("leading");
    until_guarded(bed, &house.namespace.name);
    assert_eq!(metric(&replica, "gatehouse_controllers_starts_total"), Some(1));
    let first = house.lease();

    under_reviews(&house, |reviews| {
        reviews.until_more(10);
        house.tdset("shop", &json!({}));
        house.until_replicas("shop", 1);
        eventually(|| match metric(&replica, "gatehouse_controllers_starts_total") {
            Some(3) => Ok(()),
            other => Err(format!("controllers started: {other:?}")),
        });
        // They work again: an object that is made after that, and another change of the one before.
        house.namespace.until("tdset/shop", "{.status.scheduledReplicas}", "1");
        house.tdset("later", &json!({"defaultReplicas": 2}));
        house.until_replicas("later", 2);
        house.works("shop", 3);
        reviews.until_more(10);
    });

    let panicked = replica.logs("a panic");
    assert_eq!(panicked["said"], "a fail point was reached");
    let ended = replica.logs("task ended, will restart it");
    assert_eq!(
        (ended["task"].as_str(), ended["error"].as_str()),
        (Some("controllers"), Some("the leader's work ended unexpectedly: the work panicked"))
    );
    let met = fs::read_to_string(&points).expect("a file");
    assert_eq!(met.lines().skip(passed.len()).collect::<Vec<_>>(), PANICS);
    let last = house.lease();
    assert_ne!(last.holder, first.holder, "each life stands for itself");
    // It was released each time: a candidate that only waits for its end waits for its whole duration.
    assert_eq!(last.transitions, first.transitions + 2);
    assert!(is_ready(&replica));
    assert_eq!(metric(&replica, "gatehouse_leader"), Some(1));
    assert_eq!(metric(&replica, "gatehouse_panics_total"), Some(0), "no review panicked");
    // It ends as ever.
    assert!(replica.into_program().stop(), "it ends well");
    assert_eq!(house.lease().holder, "");
}

/// Where gates elect one of them to install.
const LEASE_OF_GATES: &str = "/apis/coordination.k8s.io/v1/namespaces/gatehouse-system/leases/apart-gate";

/// Where those with controllers elect one of them to work.
const LEASE_OF_CONTROLLERS: &str = "/apis/coordination.k8s.io/v1/namespaces/gatehouse-system/leases/apart";

/// Grants what the chart does for two Deployments, and waits until the API server knows of it.
fn grant(bed: &Bed, elsewhere: &str) {
    let kinds = ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];
    let objects = helm(&["split=true", "fullnameOverride=apart"]);
    for object in objects.iter().filter(|object| kinds.contains(&kind(object))) {
        bed.objects.must(Ask::apply(object, "", ""));
    }
    for (account, asked) in [
        ("apart", lease("apart-gate")),
        ("apart", secret("get", "apart-ca")),
        ("apart", configurations()),
        ("apart-controllers", lease("apart")),
        ("apart-controllers", of_members(elsewhere)),
    ] {
        until_may(bed, account, &asked);
    }
}

/// To read a Lease of gatehouse's.
pub fn lease(name: &str) -> Value {
    json!({"namespace": NAMESPACE, "group": "coordination.k8s.io", "resource": "leases", "verb": "get", "name": name})
}

fn secret(verb: &str, name: &str) -> Value {
    json!({"namespace": NAMESPACE, "resource": "secrets", "verb": verb, "name": name})
}

/// To read the Secret of an etcd cluster.
fn of_members(namespace: &str) -> Value {
    json!({"namespace": namespace, "resource": "secrets", "verb": "get", "name": "shop-server"})
}

/// To install webhooks.
fn configurations() -> Value {
    json!({"group": "admissionregistration.k8s.io", "verb": "patch",
        "resource": "mutatingwebhookconfigurations", "name": "gatehouse"})
}

/// Waits until the API server lets that account do that: it learns of rights a moment after they are written.
#[track_caller]
pub fn until_may(bed: &Bed, account: &str, asked: &Value) {
    eventually(|| if may(bed, account, asked) { Ok(()) } else { Err(format!("{account} may not: {asked}")) });
}

/// Whether that account may do that.
pub fn may(bed: &Bed, account: &str, asked: &Value) -> bool {
    let user = format!("system:serviceaccount:{NAMESPACE}:{account}");
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": asked}});
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    bed.objects.must(Ask::post(path, review))["status"]["allowed"] == true
}

/// The gate's account reaches no Secret but that of its authority, and that of the controllers installs nothing.
fn neither_may_do_what_is_the_others(bed: &Bed, elsewhere: &str) {
    assert!(may(bed, "apart", &secret("get", "apart-ca")));
    for asked in [secret("get", "another"), secret("list", ""), of_members(elsewhere)] {
        assert!(!may(bed, "apart", &asked), "{asked}");
    }
    assert!(
        may(bed, "apart-controllers", &of_members(elsewhere)),
        "they make the certificates of etcd clusters"
    );
    assert!(may(bed, "apart", &configurations()));
    assert!(!may(bed, "apart-controllers", &configurations()));
}

/// Controllers without a gate, and with a taken port for reviews, which they do not serve.
fn start_controllers(bed: &Bed, names: &[&str]) -> (Program, TcpListener) {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let listen = taken.local_addr().expect("an address").to_string();
    let options = [names, &["--only", "controllers"]].concat();
    let command = bed.serve_at("apart-controllers", &listen, &options);
    let controllers = Program::start(&command, &bed.cluster.folder().join("controllers.log"));
    (controllers.expect("it starts"), taken)
}

pub fn each_part_runs_alone_with_its_own_rights(bed: &Bed) {
    let house = House::begin(bed);
    installed::clear(bed);
    grant(bed, &house.namespace.name);
    for path in [LEASE_OF_GATES, LEASE_OF_CONTROLLERS] {
        bed.objects.if_there(Ask::delete(path));
    }
    let names = [LASTING, &["--lease", "apart", "--ca-secret", "apart-ca"]].concat();
    let (namespace, name) = (&house.namespace, house.namespace.name.as_str());

    // The gate installs and judges, and works nothing.
    let only = ["--only", "gate", "--cluster-role", "apart", "--drain-delay", "0s", "--drain-deadline", "1s"];
    let gate = house.replica_as("apart", &[&names[..], &only].concat());
    gate.logs("installed");
    until_ready(&gate);
    until_guarded(bed, name);
    let installer = identity(&gate);
    assert_eq!(bed.objects.at(LEASE_OF_GATES)["spec"]["holderIdentity"], *installer);
    house.tdset("shop", &json!({}));
    let page = http_get(gate.health, "/readyz");
    assert!(page.contains("[+]installer ok") && !page.contains("tdset"), "{page}");
    for metric_of_controllers in ["gatehouse_leader", "gatehouse_controllers_starts_total"] {
        assert_eq!(metric(&gate, metric_of_controllers), None, "it has no controllers");
    }
    assert!(bed.objects.one(Ask::get(LEASE_OF_CONTROLLERS)).is_err(), "it has no candidate");
    let unobserved = json!({"observedGeneration": -1});
    assert_eq!(namespace.get("tdset", "shop")["status"], unobserved, "no controller works it");

    // The controllers work what was let in before, and take no port but that of their health.
    let (controllers, _taken) = start_controllers(bed, &names);
    let serving = controllers.logs("serving");
    assert_eq!(serving.get("address"), None, "{serving}");
    let health = serving["health"].as_str().and_then(|text| text.parse().ok()).expect("an address");
    house.until_replicas("shop", 1);
    namespace.until("tdset/shop", "{.status.scheduledReplicas}", "1");
    assert!(http_get(health, "/livez").starts_with("HTTP/1.1 200"));
    let page = http_get(health, "/readyz");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("[+]tdset ok"), "{page}");
    let page = http_get(health, "/metrics");
    assert!(page.contains("\ngatehouse_leader 1\n") && !page.contains("webhook"), "{page}");

    neither_may_do_what_is_the_others(bed, name);
    for log in [gate.log(), controllers.log()] {
        let log = log.text();
        assert!(!log.contains("is forbidden"), "{log}");
    }

    // Without controllers the gate serves, and without a gate the controllers work.
    assert!(controllers.stop(), "it ends well");
    assert_eq!(bed.objects.at(LEASE_OF_CONTROLLERS)["spec"]["holderIdentity"], "");
    until_guarded(bed, name);
    assert!(gate.into_program().stop(), "it ends well");
    assert_eq!(bed.objects.at(LEASE_OF_GATES)["spec"]["holderIdentity"], "");
}
