//! What the image takes of the memory that its container has.

use std::collections::BTreeMap;

use kit::process;
use kit::wait::eventually;
use serde_json::{Value, json};

use crate::Test;
use crate::cluster::Bed;
use crate::release::{NAMESPACE, Way};

pub const TESTS: &[Test] =
    &kit::tests![a_replica_at_rest_takes_little_memory, large_objects_take_no_more_memory_than_is_promised];

/// As the kubelet counts it, for limits and evictions: without the pages of files that are not in use (`workingSetBytes`).
fn a_replica_at_rest_takes_little_memory(bed: &Bed, way: Way) {
    /// A tenth of what the container may have. The aim is 25 MB; the machine may keep pages of the program as well.
    const PROMISED: u64 = 50 << 20;
    bed.deployed(way);
    bed.until_whole();
    bed.until_led();
    let mut before = counted(bed);
    // The kubelet counts every ten seconds or so. What starting took is given back in about as long.
    let at_rest = eventually(|| {
        let now = counted(bed);
        let is_new = now.len() == 2
            && now.iter().all(|(pod, (time, _))| before.get(pod).is_none_or(|(then, _)| then != time));
        if !is_new {
            return Err(format!("counted last: {before:?}"));
        }
        let falls = |(pod, (_, bytes)): (&String, &(String, u64))| {
            before.get(pod).is_none_or(|(_, then)| bytes + (1 << 20) < *then)
        };
        let is_at_rest = !now.iter().any(falls);
        before = now;
        if is_at_rest { Ok(before.clone()) } else { Err(format!("it falls still: {before:?}")) }
    });
    let mut bytes: Vec<_> = at_rest.values().map(|(_, bytes)| *bytes).collect();
    bytes.sort_unstable();
    let mib: Vec<_> = bytes.iter().map(|bytes| bytes >> 20).collect();
    crate::figure(format!("{}: replicas at rest take {mib:?} MiB, as the kubelet counts it", way.name()));
    assert!(bytes.iter().all(|bytes| *bytes < PROMISED), "{mib:?} MiB at rest");
}

/// When the kubelet counted last, and how many bytes, for each replica.
fn counted(bed: &Bed) -> BTreeMap<String, (String, u64)> {
    let node = bed.list("nodes", "")[0]["metadata"]["name"].as_str().expect("a name").to_owned();
    let summary = bed.kubectl(&["get", "--raw", &format!("/api/v1/nodes/{node}/proxy/stats/summary")]).ok();
    let summary: Value = serde_json::from_str(&summary).expect("the kubelet answers in JSON");
    let pods = summary["pods"].as_array().expect("a list").iter();
    let ours = pods.filter(|pod| pod["podRef"]["namespace"] == NAMESPACE);
    let container = |pod: &Value| {
        let memory = &pod["containers"][0]["memory"];
        Some((memory["time"].as_str()?.to_owned(), memory["workingSetBytes"].as_u64()?))
    };
    ours.filter_map(|pod| Some((pod["podRef"]["name"].as_str()?.to_owned(), container(pod)?))).collect()
}

fn large_objects_take_no_more_memory_than_is_promised(bed: &Bed, way: Way) {
    /// Half of what the container may have before the kernel ends it.
    const PROMISED: u64 = 250 << 20;
    bed.deployed(way);
    bed.until_whole();
    let namespace = bed.namespace("large");
    let value = "x".repeat(50_000);
    let variables: Vec<_> =
        (0..50).map(|index| json!({"name": format!("V{index}"), "value": value})).collect();
    let object = json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "large"},
        "spec": {"replicas": 3, "version": "3.6.16", "pod": {"env": variables}}});
    for outcome in namespace.judged(&object, 50) {
        // All of it is read, judged and converted before that is known.
        let refusal = outcome.expect_err("v1alpha1 could not show it");
        assert!(refusal.message.contains("256 KiB"), "{}", refusal.message);
    }
    let pods = bed.pods();
    let gates = pods.iter().flat_map(|pod| bed.processes(NAMESPACE, pod, &["gatehouse", "serve"]));
    let peaks: Vec<_> = gates.map(process::peak).collect();
    let mib: Vec<_> = peaks.iter().map(|bytes| bytes >> 20).collect();
    crate::figure(format!("{}: 50 objects of 2.5 MB: the gates took {mib:?} MiB at most", way.name()));
    assert!(peaks.iter().all(|peak| *peak < PROMISED), "{mib:?} MiB at most");
}
