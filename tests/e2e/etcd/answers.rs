//! An operator whose requests to the API server are answered otherwise: refused, done without an answer, or answered
//! with what was so before.

use std::collections::BTreeSet;
use std::time::Instant;

use kit::operator::{Fate, Operator};
use kit::wait::PATIENCE;
use serde_json::json;

use super::cluster::{Etcd, NAME};
use super::fault_scenario::{Trial, operated};
use super::reference_cluster::Twin;
use super::{NEWEST, gone_with_its_object, gone_within};
use crate::cluster::{Bed, Namespace};
use crate::release::Way;

/// What is read for a cluster from its first object to its last, and does not change, or is not read again.
const READS: [&str; 4] = ["get storageclasses", "list etcdclusters", "list jobs", "list statefulsets"];

/// What is read and changes.
const CHANGING: [&str; 8] = [
    "get configmaps",
    "get etcdclusters",
    "get poddisruptionbudgets",
    "get secrets",
    "get services",
    "get statefulsets",
    "list persistentvolumeclaims",
    "list pods",
];

/// What is written.
const WRITES: [&str; 13] = [
    "apply poddisruptionbudgets",
    "apply services",
    "apply statefulsets",
    "create configmaps",
    "create events",
    "create secrets",
    "delete persistentvolumeclaims",
    "delete pods",
    "patch configmaps",
    "patch etcdclusters",
    "patch etcdclusters/status",
    "patch persistentvolumeclaims",
    "patch pods",
];

/// What becomes of a request: [`gatehouse::runtime::fail_point`].
const OF_ALL: [&str; 4] = ["throttled", "trouble", "forbidden", "lost"];

/// The life of a small cluster: each kind of request is answered otherwise in one way, and reads and watches are
/// behind.
pub fn etcd_outlives_an_operator_that_is_answered_otherwise(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-answers");
    operated(bed, way, &namespace, Fate::IsAnsweredOtherwiseOnce, |operator| {
        let begun = Instant::now();
        let etcd = Etcd::new(&namespace, "Automatic", NEWEST, 1);
        etcd.until_settled(1);
        etcd.write();
        falls_behind(&etcd, &namespace, operator);
        let trial = Trial { bed, way, namespace: &namespace, operator, etcd: &etcd };
        let report = trial.lives();
        let (taken, met) = (begun.elapsed(), operator.met());
        let (way, count) = (way.name(), met.len());
        crate::figure(format!(
            "{way}: etcd: a life in {taken:.1?}: answered otherwise {count} times: {report}"
        ));
        let kinds: BTreeSet<_> =
            met.iter().filter(|point| fate(point) != "stale").map(|point| kind(point)).collect();
        let missed: Vec<_> = all().filter(|kind| !kinds.contains(kind)).collect();
        assert!(missed.is_empty(), "never one of {missed:?}: {met:?}");
        let fates: BTreeSet<_> = met.iter().map(|point| fate(point)).collect();
        let wanted =
            BTreeSet::from(["conflict", "forbidden", "lost", "skipped", "stale", "throttled", "trouble"]);
        assert_eq!(fates, wanted, "{met:?}");
    });
}

/// The object is changed until one of its reads was answered with what was so before, and one of two events of it was
/// skipped: that takes reads that differ, and events that follow each other.
fn falls_behind(etcd: &Etcd<'_>, namespace: &Namespace<'_>, operator: &Operator) {
    let mut changes = 0;
    etcd.until(|_| {
        changes += 1;
        let change = format!("changed={changes}");
        namespace.kubectl(&["annotate", "--overwrite", "etcdcluster", NAME, &change]).ok();
        let met = operator.met();
        let is_met = |point: &str| met.iter().any(|one| one == point);
        let is_behind = is_met("get etcdclusters.stale") && is_met("watch etcdclusters.skipped");
        if is_behind { Ok(()) } else { Err(format!("after {changes} changes: {met:?}")) }
    });
}

/// The same in every way, once more at each change; and what is made in the end is what is made of an equal cluster
/// whose operator is answered with what is so.
pub fn etcd_outlives_an_operator_that_is_answered_in_every_other_way(bed: &Bed, way: Way) {
    bed.deployed(way);
    let (namespace, calm) = (bed.namespace("etcd-answered"), bed.namespace("etcd-calm"));
    operated(bed, way, &calm, Fate::Lives, |_| {
        operated(bed, way, &namespace, Fate::IsAnsweredOtherwise, |operator| {
            let etcd = Etcd::new(&namespace, "Automatic", NEWEST, 1);
            let undisturbed = Etcd::new(&calm, "Automatic", NEWEST, 1);
            let twin = Twin { one: (&namespace, &etcd), other: (&calm, &undisturbed) };
            let trial = Trial { bed, way, namespace: &namespace, operator, etcd: &etcd };
            is_made_alike(&trial, &twin);
        });
    });
}

fn is_made_alike(trial: &Trial<'_>, twin: &Twin<'_>) {
    let Trial { bed, way, namespace, operator, etcd } = trial;
    let (calm, undisturbed) = twin.other;
    let begun = Instant::now();
    twin.until_settled(1);
    etcd.write();
    let change = |what: &str, change: &serde_json::Value, replicas: usize| {
        trial.run(Fate::IsAnsweredOtherwise, what, &[], || {
            for etcd in [undisturbed, etcd] {
                etcd.may_have(replicas);
                etcd.change(change);
            }
            twin.until_settled(replicas);
            etcd.goes_on(100);
        });
        twin.is_alike(what);
    };
    change("grown", &json!({"replicas": 2}), 2);
    change("upgraded", &json!({"version": "3.7.3"}), 2);
    change("shrunk", &json!({"replicas": 1, "storage": {"size": "2Gi"}}), 1);
    assert_eq!(etcd.seen().len(), 2, "no member is added twice");
    let report = etcd.expect_kept(300);
    operator.meets(Fate::IsAnsweredOtherwise);
    gone_within(PATIENCE * 2, bed, namespace); // what is refused is tried again after a minute at most
    gone_with_its_object(bed, calm);
    let (taken, met) = (begun.elapsed(), operator.ever_met());
    crate::figure(format!(
        "{}: etcd: a life in {taken:.1?}: answered in every other way: {report}",
        way.name()
    ));
    let of =
        |kind: &str, fates: &[&str]| fates.iter().map(|fate| format!("{kind}.{fate}")).collect::<Vec<_>>();
    let wanted = all()
        .flat_map(|kind| of(kind, &OF_ALL))
        .chain(WRITES.iter().flat_map(|kind| of(kind, &["conflict"])))
        .chain(CHANGING.iter().flat_map(|kind| of(kind, &["stale"])));
    let missed: Vec<_> = wanted.filter(|point| !met.contains(point)).collect();
    assert!(missed.is_empty(), "never at {missed:?}: {met:?}");
    // And of what is not named above, each that comes about at all in each way.
    let kinds: BTreeSet<_> =
        met.iter().filter(|point| fate(point) != "skipped").map(|point| kind(point)).collect();
    let missed: Vec<_> =
        kinds.iter().flat_map(|kind| of(kind, &OF_ALL)).filter(|point| !met.contains(point)).collect();
    assert!(missed.is_empty(), "never at {missed:?}: {met:?}");
}

/// All kinds of requests that are made for a cluster.
fn all() -> impl Iterator<Item = &'static str> {
    READS.into_iter().chain(CHANGING).chain(WRITES)
}

fn kind(point: &str) -> &str {
    point.split_once('.').map_or(point, |(kind, _)| kind)
}

fn fate(point: &str) -> &str {
    point.split_once('.').map_or("", |(_, fate)| fate)
}
