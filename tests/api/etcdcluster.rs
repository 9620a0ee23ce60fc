//! What the operator shows of EtcdClusters. No pod starts here, so that none has members: those are met on a real node.

use kit::bed::Bed;
use kit::objects::http_get;
use kit::wait::eventually;
use serde_json::json;

use crate::Test;

pub const TESTS: &[Test] = &[("a_cluster_that_is_gone_has_no_series", a_cluster_that_is_gone_has_no_series)];

fn a_cluster_that_is_gone_has_no_series(bed: &Bed) {
    let namespace = bed.namespace();
    let of_it = format!("{{namespace=\"{}\",name=\"seen\"", namespace.name);
    let shown = || {
        let page = bed.gate(|gate| http_get(gate.health, "/metrics"));
        let lines = page.lines().filter_map(|line| line.strip_prefix("gatehouse_etcdcluster_"));
        lines.filter(|line| line.contains(&of_it)).map(str::to_owned).collect::<Vec<_>>()
    };
    let manifest = json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "seen"},
        "spec": {"replicas": 5}});
    namespace.create(&manifest);
    let asked_for = format!("desired_replicas{of_it}}} 5");
    let made = format!("effects_total{of_it},effect=\"apply-services\",outcome=\"done\"}} 1");
    let lasts = format!("certificate_expiry_timestamp_seconds{of_it},secret=\"seen-ca\"}} ");
    eventually(|| {
        let shown = shown();
        let has = |wanted: &String| shown.iter().any(|line| line.starts_with(wanted));
        if [&asked_for, &made, &lasts].into_iter().all(has) { Ok(()) } else { Err(format!("{shown:#?}")) }
    });
    namespace.delete("etcdcluster/seen");
    eventually(|| {
        let shown = shown();
        if shown.is_empty() { Ok(()) } else { Err(format!("{shown:#?}")) }
    });
}
