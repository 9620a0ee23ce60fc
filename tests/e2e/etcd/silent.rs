//! A member that votes and does not answer gatehouse.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::cluster::Etcd;
use super::{NEWEST, gone_with_its_object, recovery};
use crate::cluster::{Bed, Namespace};
use crate::release::{NAMESPACE, Way};

/// Longer than gatehouse waits until it calls a quorum lost, and than pods may take to become ready.
const LONG: Duration = Duration::from_mins(4);

/// Of three members one has no node to run on, and another one gatehouse does not hear: the quorum is that one and the
/// third. Another template is asked for, and no pod is ended that votes.
pub fn etcd_keeps_a_member_that_does_not_answer(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-silent");
    let etcd = Etcd::new(&namespace, "Disabled", NEWEST, 3);
    etcd.until_settled(3);
    etcd.write();
    let pods = || recovery::uids(&namespace, "pods");
    let before = pods();
    {
        let _cordoned = Cordoned::all(bed);
        let _silent = Silent::to_gatehouse(bed, &namespace, "main-1");
        namespace.kubectl(&["delete", "pod", "main-2", "--wait=false"]).ok();
        etcd.until(|_| match namespace.get("pod/main-2")? {
            pod if pod["metadata"]["uid"] != before["main-2"] && pod["status"]["phase"] == "Pending" => {
                Ok(())
            }
            pod => Err(format!("main-2: {}", pod["status"])),
        });
        etcd.change(&json!({"pod": {"annotations": {"colour": "blue"}}}));
        etcd.follow_for(LONG);
        let now = pods();
        for name in ["main-0", "main-1"] {
            assert_eq!(now[name], before[name], "{name} votes");
        }
        etcd.goes_on(100);
    }
    etcd.until_settled(3);
    let now = pods();
    assert!(before.iter().all(|(name, uid)| now[name] != *uid), "each is made again: {before:?}, {now:?}");
    let report = etcd.expect_kept(300);
    report.expect_no_outage();
    crate::figure(format!("{}: etcd: a member that does not answer: {report}", way.name()));
    gone_with_its_object(bed, &namespace);
}

/// No node takes another pod, until this is dropped.
struct Cordoned<'a> {
    bed: &'a Bed,
    nodes: Vec<String>,
}

impl<'a> Cordoned<'a> {
    fn all(bed: &'a Bed) -> Self {
        let name = |node: &Value| node["metadata"]["name"].as_str().expect("a name").to_owned();
        let nodes: Vec<_> = bed.list("nodes", "").iter().map(name).collect();
        for node in &nodes {
            bed.kubectl(&["cordon", node]).ok();
        }
        Self { bed, nodes }
    }
}

impl Drop for Cordoned<'_> {
    fn drop(&mut self) {
        for node in &self.nodes {
            if let Err(why) = self.bed.kubectl(&["uncordon", node]).run() {
                eprintln!("{node} is cordoned: {why}");
            }
        }
    }
}

/// What gatehouse sends to a pod is dropped there, until this is dropped; what others send is not.
struct Silent {
    /// A process of the pod.
    process: u32,
    from: Vec<String>,
}

impl Silent {
    fn to_gatehouse(bed: &Bed, namespace: &Namespace<'_>, pod: &str) -> Self {
        let address = |pod: &Value| pod["status"]["podIP"].as_str().map(str::to_owned);
        let from = bed.list("pods", NAMESPACE).iter().filter_map(address).collect();
        let silent = Self { process: namespace.members(pod)[0], from };
        silent.rule("--insert").expect("it is dropped");
        silent
    }

    /// Inserts or deletes the rules.
    fn rule(&self, what: &str) -> Result<(), String> {
        self.from.iter().try_for_each(|from| {
            let mut command = Command::new("nsenter");
            command.args(["--target", &self.process.to_string(), "--net", "--", "iptables", what, "INPUT"]);
            command.args(["--source", from, "--jump", "DROP"]);
            let status = command.status().map_err(|error| error.to_string())?;
            if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
        })
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        if let Err(why) = self.rule("--delete") {
            eprintln!("gatehouse is not heard: {why}");
        }
    }
}
