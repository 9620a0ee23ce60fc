//! Much at once: a spec that changes all the time, and many clusters.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use kit::process;
use kit::wait::{PATIENCE, timeout, within};
use serde_json::{Value, json};

use super::cluster::{Etcd, condition};
use super::{NEWEST, gone_with_its_object};
use crate::cluster::{Bed, Namespace};
use crate::release::{NAMESPACE, Way};

/// A class of volumes of which there is one.
const CLASS: &str = "only-one";

/// Another count each second, for a minute, and then 3. None is refused, whatever is under way.
pub fn etcd_is_asked_for_another_count_every_second(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-hurry");
    let etcd = Etcd::new(&namespace, "Disabled", NEWEST, 3);
    etcd.until_settled(3);
    etcd.write();
    etcd.may_have(5);
    for second in 0..60 {
        // Each of 1 to 5, and never the same twice.
        etcd.change(&json!({"replicas": 1 + second * 2 % 5}));
        etcd.follow_for(Duration::from_secs(1)); // never two learners, never too many
    }
    let begun = Instant::now();
    etcd.change(&json!({"replicas": 3}));
    etcd.until_settled(3);
    etcd.goes_on(100);
    crate::figure(format!(
        "{}: etcd: 3 members after a minute of other wishes: {:.1?}",
        way.name(),
        begun.elapsed()
    ));
    let report = etcd.expect_kept(300);
    report.expect_no_outage();
    crate::figure(format!("{}: etcd: asked for another count every second: {report}", way.name()));
    gone_with_its_object(bed, &namespace);
}

/// The volume of the second member never comes, until it is no longer asked for.
pub fn etcd_is_asked_for_fewer_while_a_claim_is_pending(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-pending");
    for object in only_volume(bed) {
        namespace.apply(&object);
    }
    let storage = json!({"storage": {"size": "1Gi", "reclaimPolicy": "Delete", "storageClassName": CLASS}});
    let etcd = Etcd::asking(&namespace, "Disabled", NEWEST, 1, &storage);
    etcd.until_settled(1);
    let before = etcd.seen();
    etcd.write();
    etcd.may_have(3);
    etcd.change(&json!({"replicas": 3}));
    etcd.until(|_| {
        let (claim, pod) = (namespace.get("pvc/data-main-1")?, namespace.get("pod/main-1")?);
        let phases = [&claim["status"]["phase"], &pod["status"]["phase"]];
        if phases == ["Pending"; 2] { Ok(()) } else { Err(format!("{phases:?}")) }
    });
    etcd.goes_on(100);
    etcd.change(&json!({"replicas": 1}));
    etcd.until_settled(1);
    for object in ["pod/main-1", "pvc/data-main-1"] {
        namespace.until_gone(object);
    }
    etcd.goes_on(100);
    assert_eq!(etcd.seen(), before, "no member was added");
    let report = etcd.expect_kept(200);
    report.expect_no_outage();
    gone_with_its_object(bed, &namespace);
    bed.kubectl(&["delete", "persistentvolume,storageclass", CLASS]).ok();
}

/// A volume of that class, in a folder of the node, and the class, which makes no other.
fn only_volume(bed: &Bed) -> [Value; 2] {
    let folder = bed.cluster.folder().join(CLASS);
    fs::create_dir_all(&folder).expect("a folder");
    // etcd is not root.
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).expect("anybody may write there");
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": CLASS},
        "provisioner": "kubernetes.io/no-provisioner"});
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": CLASS},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": CLASS,
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": folder}}});
    [class, volume]
}

/// Clusters that one operator works.
const MANY: usize = 100;
/// How many of them are changed, for figures.
const CHANGED: usize = 20;
/// How long the operator is watched at rest.
const REST: Duration = Duration::from_mins(1);

pub fn a_cluster_that_hangs_holds_up_no_other(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-many");
    let begun = Instant::now();
    let clusters: Vec<_> = (0..MANY).map(|number| small(&format!("one-{number}"))).collect();
    namespace
        .kubectl(&["apply"])
        .input(json!({"apiVersion": "v1", "kind": "List", "items": clusters}).to_string())
        .ok();
    within(Duration::from_mins(20), || settled(bed, &namespace));
    crate::figure(format!("{}: {MANY} clusters after {:.1?}", way.name(), begun.elapsed()));
    figures(bed, way, "at rest");
    let calm = changes(&namespace, true);
    let processes = namespace.members("one-0-0");
    for process in &processes {
        process::freeze(*process);
    }
    within(Duration::from_mins(3), || {
        let lost = condition(&namespace.get("etcdcluster/one-0")?, "QuorumLost");
        if lost["status"] == "True" { Ok(()) } else { Err(format!("{lost}")) }
    });
    figures(bed, way, "one of them hangs");
    let hung = changes(&namespace, false);
    processes.into_iter().for_each(process::thaw);
    for (what, taken) in [("all answer", calm), ("one hangs", hung)] {
        let (median, longest) = (taken[taken.len() / 2], taken[taken.len() - 1]);
        crate::figure(format!(
            "{}: a change is acted on after {median:.1?}, {longest:.1?} at most: {what}",
            way.name()
        ));
    }
    namespace.kubectl(&["delete", "etcdclusters", "--all", &timeout(PATIENCE * 2)]).ok();
}

/// A cluster of one member that leaves nothing behind. etcd allocates two files of its log beforehand, 64 MB each.
fn small(name: &str) -> Value {
    json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": name},
        "spec": {"replicas": 1, "version": NEWEST, "tls": {"mode": "Disabled"},
            "storage": {"medium": "Memory", "size": "160Mi"}, "options": {"quotaBackendBytes": "32Mi"}}})
}

fn settled(bed: &Bed, namespace: &Namespace<'_>) -> Result<(), String> {
    let clusters = bed.list("etcdclusters", &namespace.name);
    let is_settled = |cluster: &&Value| condition(cluster, "Progressing")["reason"] == "UpToDate";
    match clusters.iter().filter(is_settled).count() {
        MANY => Ok(()),
        count => Err(format!("{count} of {MANY} are settled")),
    }
}

/// How long it took until the status followed each of some changes, the shortest first.
fn changes(namespace: &Namespace<'_>, pause: bool) -> Vec<Duration> {
    let patch = format!("--patch={}", json!({"spec": {"paused": pause}}));
    let wanted = if pause { "True" } else { "False" };
    let mut taken: Vec<_> = (1..=CHANGED)
        .map(|number| {
            let name = format!("one-{number}");
            let begun = Instant::now();
            namespace.kubectl(&["patch", "etcdcluster", &name, "--type=merge", &patch]).ok();
            within(Duration::from_mins(2), || {
                let paused = condition(&namespace.get(&format!("etcdcluster/{name}"))?, "Paused");
                if paused["status"] == wanted { Ok(()) } else { Err(format!("{paused}")) }
            });
            begun.elapsed()
        })
        .collect();
    taken.sort_unstable();
    taken
}

/// Measures what the leader's process takes while nothing is asked for.
fn figures(bed: &Bed, way: Way, when: &str) {
    let leader = bed.until_led();
    let process = bed.processes(NAMESPACE, &leader.pod, &["gatehouse"])[0];
    let before = process::usage(process);
    std::thread::park_timeout(REST); // the measurement's own length
    let after = process::usage(process);
    let share = after.cpu.saturating_sub(before.cpu).as_secs_f64() / REST.as_secs_f64() * 100.0;
    let megabytes = after.resident >> 20;
    crate::figure(format!(
        "{}: the leader of {MANY} clusters, {when}: {megabytes} MiB, {share:.1} % of a core",
        way.name()
    ));
}
