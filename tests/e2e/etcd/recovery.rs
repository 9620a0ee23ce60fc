//! A quorum that is lost for good, and brought back from the member that is left because a person asks for it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use kit::call::Call;
use kit::wait::eventually;
use serde_json::{Value, json};

use super::cluster::{Etcd, NAME, condition};
use super::{NEWEST, gone_with_its_object, wipe};
use crate::cluster::{BUSYBOX, Bed, Namespace};
use crate::release::Way;

const ANNOTATION: &str = "gatehouse.dev/recover-quorum";

/// The label of PersistentVolumes that outlive their claims.
const RETAINED: &str = "gatehouse.dev/retained";

pub fn etcd_is_brought_back_from_the_member_that_is_left(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-recovery");
    let etcd = Etcd::new(&namespace, "Automatic", NEWEST, 3);
    etcd.until_settled(3);
    etcd.write();
    (0..5).for_each(|_| etcd.goes_on(100));
    let report = etcd.expect_kept(300);
    // All voters have all that was acknowledged; the history up to here is what has to be there again.
    let hash = etcd.hash(report.last);

    let claims = uids(&namespace, "persistentvolumeclaims");
    let begun = Instant::now();
    wipe(&namespace, &[1, 2]);
    let lost = etcd.until_quorum_lost();
    crate::figure(format!(
        "{}: etcd: a lost quorum is in the status after {:.1?}",
        way.name(),
        begun.elapsed()
    ));
    assert_eq!(uids(&namespace, "persistentvolumeclaims"), claims, "nothing is wiped by itself: {lost}");
    assert_eq!(etcd.remembered(), 3, "no member is removed");

    let said = annotate(&namespace, "yes").fails();
    assert!(said.contains("must be auto or the name of a member such as main-0"), "{said}");
    annotate(&namespace, "auto").ok();
    brought_back(way, &etcd);
    assert_eq!(etcd.hash(report.last), hash, "all that was acknowledged is there, on all voters");
    copied(&namespace, &etcd.object().expect("it is there")["status"]["recovery"]);
    set_aside(bed, &namespace, &claims);
    etcd.write();
    etcd.goes_on(200);
    etcd.expect_kept(200);
    acts_once(&etcd, &namespace);
    a_person_deletes_the_copy(&etcd, &namespace);
    gone_with_its_object(bed, &namespace);
}

/// The phases of a recovery that a test waits for, one after the other.
pub const PHASES: [&str; 4] = ["Fencing", "Forcing", "Clearing", "Done"];

/// Waits until the recovery has come to a phase, or further.
#[track_caller]
pub fn until_phase(etcd: &Etcd<'_>, phase: &str) {
    let place = |name: &Value| PHASES.iter().position(|phase| *name == **phase);
    etcd.until(|_| {
        let recovery = etcd.object()?["status"]["recovery"].clone();
        let is_there = place(&recovery["phase"]) >= place(&json!(phase));
        if is_there { Ok(()) } else { Err(recovery.to_string()) }
    });
}

/// Waits until the request has been carried out, and measures how long each part took.
fn brought_back(way: Way, etcd: &Etcd<'_>) {
    let begun = Instant::now();
    for phase in PHASES {
        until_phase(etcd, phase);
        crate::figure(format!("{}: etcd: recovery: {phase} after {:.1?}", way.name(), begun.elapsed()));
    }
    let object = etcd.until_settled(3);
    crate::figure(format!("{}: etcd: recovered: three members after {:.1?}", way.name(), begun.elapsed()));
    let recovery = &object["status"]["recovery"];
    assert_eq!(
        (&recovery["request"], &recovery["survivor"]),
        (&json!("auto"), &json!("main-0")),
        "{recovery}"
    );
    assert_eq!(condition(&object, "QuorumLost")["status"], "False");
}

/// The survivor's data lie beside them as they were, and it is no longer told to make a cluster of them.
fn copied(namespace: &Namespace<'_>, recovery: &Value) {
    let config = namespace.get("configmap/main-config").expect("it is there");
    let flags = config["data"]["main-0.yaml"].as_str().expect("its flags");
    assert!(flags.contains("force-new-cluster: false"), "{flags}");
    let index = recovery["raftIndex"].as_u64().expect("it says up to where");
    let copy = copies(namespace).join(format!("{index}/member"));
    assert!(fs::metadata(copy.join("snap/db")).expect("a database").len() > 0);
    assert!(fs::read_dir(copy.join("wal")).expect("a log").count() > 0);
}

/// The folder with the copies, as the survivor's etcd sees it.
fn copies(namespace: &Namespace<'_>) -> PathBuf {
    let process = namespace.members("main-0")[0];
    PathBuf::from(format!("/proc/{process}/root/var/lib/etcd/before-recovery"))
}

/// As the documentation has it.
fn a_person_deletes_the_copy(etcd: &Etcd<'_>, namespace: &Namespace<'_>) {
    let image = format!("--image={BUSYBOX}");
    let words = ["debug", "main-0", &image, "--target=etcd", "--profile=restricted", "--", "rm", "-r"];
    let folder = "/proc/1/root/var/lib/etcd/before-recovery";
    namespace.kubectl(&[&words[..], &[folder]].concat()).ok();
    etcd.until(|_| if copies(namespace).exists() { Err("the copy is there".to_owned()) } else { Ok(()) });
}

/// What the others had was kept, and they have volumes of their own.
pub fn set_aside(bed: &Bed, namespace: &Namespace<'_>, before: &BTreeMap<String, Value>) {
    let now = uids(namespace, "persistentvolumeclaims");
    let stays = before.keys().map(|name| (name.as_str(), before[name] == now[name])).collect::<Vec<_>>();
    assert_eq!(stays, [("data-main-0", true), ("data-main-1", false), ("data-main-2", false)]);
    let mut kept = retained(bed, &namespace.name);
    kept.sort_by_key(|volume| volume["spec"]["claimRef"]["name"].to_string());
    assert_eq!(kept.len(), 2, "{kept:?}");
    for (volume, claim) in kept.iter().zip(["data-main-1", "data-main-2"]) {
        assert_eq!(volume["spec"]["claimRef"]["uid"], before[claim], "{volume}");
        assert_eq!(volume["spec"]["persistentVolumeReclaimPolicy"], "Retain", "{volume}");
        let name = volume["metadata"]["name"].as_str().expect("a name");
        // As a person who does not need it any more.
        let policy = json!({"spec": {"persistentVolumeReclaimPolicy": "Delete"}}).to_string();
        bed.kubectl(&["patch", "persistentvolume", name, "--patch", &policy]).ok();
    }
    eventually(|| match retained(bed, &namespace.name).len() {
        0 => Ok(()),
        left => Err(format!("{left} PersistentVolumes are left")),
    });
}

/// The same request again, and another one while there is a quorum: nothing comes of either.
fn acts_once(etcd: &Etcd<'_>, namespace: &Namespace<'_>) {
    let pods = uids(namespace, "pods");
    namespace.kubectl(&["annotate", "etcdcluster", NAME, &format!("{ANNOTATION}-")]).ok();
    annotate(namespace, "auto").ok();
    annotate(namespace, "main-1/again").ok();
    etcd.until(|_| {
        let recovery = etcd.object()?["status"]["recovery"].clone();
        let is_cancelled = recovery["request"] == "main-1/again" && recovery["phase"] == "Cancelled";
        if is_cancelled { Ok(()) } else { Err(recovery.to_string()) }
    });
    etcd.until_settled(3);
    assert_eq!(uids(namespace, "pods"), pods, "no Pod was replaced");
}

pub fn annotate(namespace: &Namespace<'_>, request: &str) -> Call {
    let annotation = format!("{ANNOTATION}={request}");
    namespace.kubectl(&["annotate", "--overwrite", "etcdcluster", NAME, &annotation])
}

/// The uids of the objects of the cluster, by name.
pub fn uids(namespace: &Namespace<'_>, resource: &str) -> BTreeMap<String, Value> {
    let items = namespace.list(resource, &format!("app.kubernetes.io/instance={NAME}"));
    let named = |item: &Value| {
        let metadata = &item["metadata"];
        (metadata["name"].as_str().expect("a name").to_owned(), metadata["uid"].clone())
    };
    items.iter().map(named).collect()
}

/// The PersistentVolumes that outlive claims of that namespace.
fn retained(bed: &Bed, namespace: &str) -> Vec<Value> {
    let is_kept = |volume: &Value| {
        volume["metadata"]["labels"][RETAINED].is_string()
            && volume["spec"]["claimRef"]["namespace"] == namespace
    };
    bed.list("persistentvolumes", "").into_iter().filter(is_kept).collect()
}
