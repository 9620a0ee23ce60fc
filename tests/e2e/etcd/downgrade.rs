//! A lower minor for members that serve, by etcd's own downgrade, and from there to the newest.

use std::time::{Duration, Instant};

use serde_json::json;

use super::cluster::{Etcd, NAME};
use super::{crash, gone_with_its_object};
use crate::cluster::Bed;
use crate::release::Way;

/// For three members, one after the other, each of which has to serve for a while before the next one.
const LONG: Duration = Duration::from_mins(8);

pub fn etcd_is_brought_one_minor_down(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-downgrade");
    let etcd = Etcd::new(&namespace, "Disabled", "3.6.16", 3).within(LONG);
    etcd.until_settled(3);
    etcd.write();
    let patch = json!({"spec": {"version": "3.5.33"}}).to_string();
    let said = namespace.kubectl(&["patch", "etcdcluster", NAME, "--type=merge", "--patch", &patch]).fails();
    assert!(said.contains("gatehouse.dev/allow-downgrade"), "{said}");
    namespace.kubectl(&["annotate", "etcdcluster", NAME, "gatehouse.dev/allow-downgrade=true"]).ok();
    // Down, and the same way up again. What 3.5 has logged, 3.7 cannot read: each member has to save a snapshot before.
    for (version, agreed) in [("3.5.33", "3.5"), ("3.6.16", "3.6"), ("3.7.3", "3.7")] {
        let begun = Instant::now();
        etcd.change(&json!({"version": version}));
        until_agreed(&etcd, version, agreed);
        crate::figure(format!("{}: etcd: down and up: {version} after {:.1?}", way.name(), begun.elapsed()));
    }
    // It reads its log once more.
    crash(&etcd, &namespace, "main-0");
    etcd.goes_on(100);
    let report = etcd.expect_kept(300);
    report.expect_no_outage();
    crate::figure(format!("{}: etcd: down and up: {report}", way.name()));
    gone_with_its_object(bed, &namespace);
}

/// Waits until three members run a version, have agreed on its minor, and serve.
#[track_caller]
pub fn until_agreed(etcd: &Etcd<'_>, version: &str, agreed: &str) {
    etcd.until(|_| {
        let status = &etcd.object()?["status"];
        let runs = (status["version"].as_str(), status["clusterVersion"].as_str());
        if runs == (Some(version), Some(agreed)) { Ok(()) } else { Err(format!("{runs:?} run")) }
    });
    etcd.until_settled(3);
    etcd.goes_on(100);
}
