//! An EtcdCluster that no controller works: its clients do not need one.

use std::time::Duration;

use kit::operator::Fate;
use kit::random::is_night;
use kit::wait::patient;
use serde_json::{Value, json};

use super::cluster::{Etcd, condition};
use super::fault_scenario::operated;
use super::{NEWEST, gone_with_its_object, is_ready};
use crate::Test;
use crate::cluster::{Bed, Namespace};
use crate::installation::works;
use crate::release::{NAMESPACE, Way};

/// The longest time without an acknowledged change where nothing else takes the cores, as at night: a client gives its
/// pod up after two seconds, and members hold an election after at most two election timeouts of a second.
const LONGEST: Duration = Duration::from_secs(5);

/// Without gatehouse, which is there again afterwards.
pub const WITHOUT_GATEHOUSE: &[Test] = &kit::tests![etcd_without_gatehouse_is_reached_by_its_service];

/// With an operator of its own, which ends, while those that are deployed stand aside.
pub const WITHOUT_AN_OPERATOR: &[Test] = &kit::tests![etcd_without_an_operator_is_reached_by_its_service];

pub fn etcd_that_is_paused_is_reached_by_its_service(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-paused");
    let etcd = Etcd::new(&namespace, "Disabled", NEWEST, 3);
    etcd.until_settled(3);
    etcd.change(&json!({"paused": true}));
    etcd.until(|_| {
        let paused = condition(&etcd.object()?, "Paused");
        if paused["status"] == "True" { Ok(()) } else { Err(paused.to_string()) }
    });
    is_reached(&etcd, &namespace, way, "paused");
    etcd.change(&json!({"paused": false}));
    etcd.until_settled(3);
    gone_with_its_object(bed, &namespace);
}

fn etcd_without_gatehouse_is_reached_by_its_service(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-alone");
    let etcd = Etcd::new(&namespace, "Disabled", NEWEST, 3);
    etcd.until_settled(3);
    bed.stop();
    is_reached(&etcd, &namespace, way, "without gatehouse");
    bed.kubectl(&["scale", "deployment/gatehouse", "--replicas=2", "-n", NAMESPACE]).ok();
    bed.until_whole();
    works(&namespace, "shop");
    etcd.until_settled(3);
    gone_with_its_object(bed, &namespace);
}

fn etcd_without_an_operator_is_reached_by_its_service(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-unworked");
    let _aside = bed.stand_aside();
    let etcd = Etcd::new(&namespace, "Disabled", NEWEST, 3);
    operated(bed, way, &namespace, Fate::Lives, |_| etcd.until_settled(3));
    is_reached(&etcd, &namespace, way, "without an operator");
    operated(bed, way, &namespace, Fate::Lives, |_| {
        etcd.until_settled(3);
        gone_with_its_object(bed, &namespace);
    });
}

/// Every pod is deleted, one after the other, while a client that knows the Service alone writes: it sees no outage.
fn is_reached(etcd: &Etcd<'_>, namespace: &Namespace<'_>, way: Way, what: &str) {
    etcd.write_by_the_service();
    etcd.goes_on(100);
    for ordinal in 0..3 {
        is_replaced(etcd, namespace, &format!("main-{ordinal}"));
        etcd.goes_on(100);
    }
    let report = etcd.expect_kept(400);
    report.expect_no_outage();
    assert!(!is_night() || report.longest_gap < patient(LONGEST), "clients saw an outage: {report}");
    crate::figure(format!("{}: etcd: {what}, by its Service: {report}", way.name()));
}

/// Deletes a pod, and waits until another one serves in its place, for clients of the Service as well.
fn is_replaced(etcd: &Etcd<'_>, namespace: &Namespace<'_>, name: &str) {
    let pod = || namespace.get(&format!("pod/{name}"));
    let uid = |pod: &Value| pod["metadata"]["uid"].clone();
    let before = uid(&pod().expect("it is there"));
    namespace.kubectl(&["delete", "pod", name, "--wait=false"]).ok();
    etcd.until(|_| match pod()? {
        now if uid(&now) != before && is_ready(&now) => Ok(()),
        now => Err(format!("{name}: {}", now["status"])),
    });
    etcd.until(|_| {
        let slices = namespace.list("endpointslices", "kubernetes.io/service-name=main-client");
        let endpoints = slices.iter().flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
        let now = uid(&pod()?);
        let is_served = |one: &Value| one["targetRef"]["uid"] == now && one["conditions"]["ready"] == true;
        if endpoints.clone().any(is_served) { Ok(()) } else { Err(format!("{name} is not in {slices:?}")) }
    });
}
