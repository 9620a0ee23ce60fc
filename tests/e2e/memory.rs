//! What the image takes of the memory that its container has.

use kit::process;
use serde_json::json;

use crate::Test;
use crate::cluster::Bed;
use crate::release::{NAMESPACE, Way};

pub const TESTS: &[Test] = &[(
    "large_objects_take_no_more_memory_than_is_promised",
    large_objects_take_no_more_memory_than_is_promised,
)];

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
