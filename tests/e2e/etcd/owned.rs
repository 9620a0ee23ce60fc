//! What gatehouse has made for a cluster is deleted under it: each comes back, and no member and no data go.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

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
