//! What gatehouse has made for a cluster is deleted under it: each comes back, and no member and no data go.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cluster::Etcd;
use super::{NEWEST, gone_with_its_object};
use crate::cluster::{Bed, Namespace};
use crate::release::Way;

/// What is deleted, and whether what it owns goes with it.
const OWNED: [(&str, &str); 10] = [
    ("configmap/main-config", "background"),
    ("service/main", "background"),
    ("service/main-client", "background"),
    ("poddisruptionbudget/main", "background"),
    ("statefulset/main", "orphan"),
    ("statefulset/main", "background"),
    ("secret/main-server-tls", "background"),
    ("secret/main-peer-tls", "background"),
    ("secret/main-client-tls", "background"),
    // Another authority follows, for which every member starts twice.
    ("secret/main-ca", "background"),
];

/// What is deleted while the cluster is stopped.
const OF_A_STOPPED_ONE: [&str; 4] =
    ["configmap/main-config", "statefulset/main", "secret/main-server-tls", "secret/main-ca"];

/// How long that may take.
const PATIENCE: Duration = Duration::from_mins(10);

pub fn etcd_keeps_its_members_whatever_of_its_objects_is_deleted(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-owned");
    let etcd = Etcd::new(&namespace, "Automatic", NEWEST, 3).within(PATIENCE);
    etcd.until_settled(3);
    etcd.write();
    etcd.goes_on(100);
    let report = etcd.expect_kept(100);
    let (members, hash) = (members(&etcd), etcd.hash(report.last));
    let are_kept = |what: &str| {
        assert_eq!(self::members(&etcd), members, "{what}");
        assert_eq!(etcd.hash(report.last), hash, "{what}");
    };
    for (object, cascade) in OWNED {
        let begun = Instant::now();
        etcd.write();
        is_deleted(&etcd, &namespace, object, cascade);
        etcd.until_settled(3);
        etcd.goes_on(100);
        let told = etcd.expect_kept(100);
        crate::figure(format!(
            "{}: etcd: {object} is back after {:.1?}, {cascade}: {told}",
            way.name(),
            begun.elapsed()
        ));
        are_kept(object);
    }
    for object in OF_A_STOPPED_ONE {
        etcd.scale(0);
        namespace.kubectl(&["delete", object]).ok();
        etcd.scale(3);
        are_kept(&format!("{object}, while it was stopped"));
    }
    gone_with_its_object(bed, &namespace);
}

/// Another client changes what only a cluster of members has: each is reverted, and the members stay as they are.
pub fn what_others_change_is_reverted(etcd: &Etcd<'_>, namespace: &Namespace<'_>, way: Way) {
    const CONFIG: &str = "configmap/main-config";
    const ENTRY: &str = "/data/main-1.json";
    let before = members(etcd);
    let found = namespace.get(CONFIG).unwrap_or_else(|why| panic!("{why}"));
    let entry = found.pointer(ENTRY).and_then(Value::as_str).expect("an entry");
    let with = |field: &str, value: &str| {
        let mut entry: Value = serde_json::from_str(entry).expect("JSON");
        entry[field] = json!(value);
        json!({"data": {"main-1.json": entry.to_string()}})
    };
    let selector = json!({"spec": {"selector": {"matchLabels": {"x": "y"}}}});
    for (object, patch, place) in [
        ("poddisruptionbudget/main", selector, "/spec/selector"),
        (CONFIG, with("member", "1"), ENTRY),
        (CONFIG, with("volume", "another"), ENTRY),
    ] {
        is_reverted(etcd, namespace, (object, &patch, place), way);
    }
    etcd.until_settled(3);
    assert_eq!(members(etcd), before);
}

/// Has another client make a change, and waits until the object has at that place what it had before.
fn is_reverted(
    etcd: &Etcd<'_>,
    namespace: &Namespace<'_>,
    (object, patch, place): (&str, &Value, &str),
    way: Way,
) {
    let value = |found: &Value| found.pointer(place).cloned().unwrap_or_default();
    let before = value(&namespace.get(object).unwrap_or_else(|why| panic!("{why}")));
    let begun = Instant::now();
    let patch = format!("--patch={patch}");
    let words = ["patch", object, "--type=merge", "--field-manager=edits", "-o=json", &patch];
    let after: Value = serde_json::from_str(&namespace.kubectl(&words).ok()).expect("JSON");
    assert_ne!(value(&after), before, "{place} of {object}");
    etcd.until(|_| {
        let found = value(&namespace.get(object)?);
        if found == before { Ok(()) } else { Err(format!("{place} of {object} is {found}")) }
    });
    crate::figure(format!(
        "{}: etcd: reverted: edits, {object}, {place} after {:.2?}",
        way.name(),
        begun.elapsed()
    ));
}

/// Deletes an object, and waits until there is another one.
fn is_deleted(etcd: &Etcd<'_>, namespace: &Namespace<'_>, object: &str, cascade: &str) {
    let uid = || namespace.get(object).map(|object| object["metadata"]["uid"].clone());
    let before = uid().unwrap_or_else(|why| panic!("{object}: {why}"));
    namespace.kubectl(&["delete", object, &format!("--cascade={cascade}"), "--wait=false"]).ok();
    etcd.until(|_| match uid()? {
        now if now == before => Err(format!("{object} is the one that was deleted")),
        _ => Ok(()),
    });
}

/// The identities of the members by their names.
fn members(etcd: &Etcd<'_>) -> BTreeMap<String, u64> {
    let members = etcd.listed();
    members.into_iter().map(|member| (member.name, member.id)).collect()
}
