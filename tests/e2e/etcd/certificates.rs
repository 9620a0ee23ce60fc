//! Another authority for members that serve.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::Value;

use super::cluster::Etcd;
use super::{NEWEST, gone_with_its_object};
use crate::cluster::Bed;
use crate::release::Way;

/// The uid of each Pod in which etcd runs, by name.
fn running(etcd: &Etcd<'_>) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let pods = etcd.pods();
    let runs =
        pods.iter().filter(|pod| pod["status"]["containerStatuses"][0]["state"]["running"].is_object());
    runs.map(|pod| (text(&pod["metadata"]["name"]), text(&pod["metadata"]["uid"]))).collect()
}

/// Waits until each member has another Pod than in `before`, one at a time.
fn until_all_restarted(etcd: &Etcd<'_>, before: &BTreeMap<String, String>) {
    etcd.until(|_| {
        let now = running(etcd);
        assert!(now.len() >= 2, "two members are restarted at a time: {now:?}");
        let old = before.iter().filter(|(name, uid)| now.get(*name).is_none_or(|now| now == *uid)).count();
        if old == 0 { Ok(()) } else { Err(format!("{old} members are to be restarted: {now:?}")) }
    });
}

pub fn etcd_follows_another_authority(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-authority");
    let etcd = Etcd::new(&namespace, "Automatic", NEWEST, 3);
    etcd.until_settled(3);
    etcd.write();
    let pods = running(&etcd);
    let authority = || namespace.get("secret/main-ca");
    let before = authority().expect("it is there");

    let begun = Instant::now();
    namespace.kubectl(&["delete", "secret", "main-ca"]).ok();
    let after = etcd.until(|_| {
        let now = authority()?;
        if now["metadata"]["uid"] == before["metadata"]["uid"] {
            Err("it is the old one".into())
        } else {
            Ok(now)
        }
    });
    assert_ne!(after["data"]["ca.crt"], before["data"]["ca.crt"]);
    until_all_restarted(&etcd, &pods);
    crate::figure(format!("{}: etcd: all trust another authority after {:.1?}", way.name(), begun.elapsed()));
    let restarted = running(&etcd);

    // A kubelet may take two minutes to show a Pod what its Secret has by now.
    etcd.until(|_| etcd.pods().iter().try_for_each(|pod| etcd.asked(pod, &after)));
    crate::figure(format!("{}: etcd: all show its certificates after {:.1?}", way.name(), begun.elapsed()));
    etcd.until_settled(3);
    etcd.goes_on(100);
    assert_eq!(running(&etcd), restarted, "a new certificate restarts no member");
    for pod in &etcd.pods() {
        let told = etcd.asked(pod, &before).expect_err("the earlier certificates are gone");
        assert!(told.contains("invalid peer certificate"), "{told}");
    }
    let report = etcd.expect_kept(300);
    report.expect_no_outage();
    crate::figure(format!("{}: etcd: another authority: {report}", way.name()));
    gone_with_its_object(bed, &namespace);
}
