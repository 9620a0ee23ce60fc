//! A cluster of a minor of etcd that this release no longer supports: its object was stored by an earlier one.

use kit::bed::Bed;
use kit::objects::{Ask, condition};
use kit::wait::eventually;
use serde_json::{Value, json};

use super::ratchet::{until_refused, without_gate};
use super::{bare, etcdcluster};

/// A version that a user may have been running, and one that this release supports.
const DROPPED: &str = "3.4.30";
const SUPPORTED: &str = "3.5.33";

/// Its status and an event say so, and what its members and their clients need is kept for them.
pub fn a_cluster_of_a_minor_that_is_no_longer_supported_is_told_and_served(bed: &Bed) {
    let bare = bare::beside(bed);
    let _turn = bare.turn_of_one();
    let (namespace, objects) = (bare.bed.namespace(), &bare.bed.objects);
    namespace.create(&json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "old"},
        "spec": {"replicas": 1, "version": DROPPED, "storage": {"size": "1Gi"}, "tls": {"mode": "Automatic"}}}));
    let path = namespace.path("etcdcluster/old");
    objects.must(Ask::patch(format!("{path}/status"), json!({"status": {"clusterID": "1"}})));

    let gate = bare.bed.install(&[]).unwrap_or_else(|error| panic!("{error}"));
    until_refused(objects, &etcdcluster::NEW, "spec: {version: 3.4.1}");
    let until = |is_so: &dyn Fn(&Value) -> bool| {
        objects.until("etcdcluster/old", &namespace.name, |object| {
            if is_so(object) { Ok(object.clone()) } else { Err(object["status"].to_string()) }
        })
    };
    let is_refused = |object: &Value| {
        let said = condition(object, "SpecValid");
        let message = said["message"].as_str().unwrap_or_default();
        said["status"] == "False" && said["reason"] == "SpecInvalid" && message.contains(DROPPED)
    };
    let told = until(&is_refused);
    assert_eq!(told["status"]["clusterID"], "1", "it stays recorded");
    eventually(|| {
        let events = objects.list("events", &namespace.name, "")?;
        let is_told =
            |event: &Value| event["reason"] == "SpecInvalid" && event["involvedObject"]["name"] == "old";
        if events.iter().any(is_told) { Ok(()) } else { Err(format!("{events:#?}")) }
    });
    let kept = [
        "secret/old-ca",
        "secret/old-server-tls",
        "secret/old-peer-tls",
        "service/old",
        "service/old-client",
    ];
    for object in kept {
        objects.until(object, &namespace.name, |_| Ok(()));
    }
    for object in ["secret/old-server-tls", "service/old-client"] {
        let uid = objects.at(&namespace.path(object))["metadata"]["uid"].clone();
        namespace.delete(object);
        objects.until(object, &namespace.name, |now| {
            if now["metadata"]["uid"] == uid { Err("it is the deleted one".to_owned()) } else { Ok(()) }
        });
    }
    assert!(is_refused(&objects.at(&path)));

    namespace.change("etcdcluster/old", &json!({"spec": {"version": SUPPORTED}}));
    until(&|object| condition(object, "SpecValid")["status"] == "True");
    objects.must(Ask::delete(&*path));
    objects.until_gone("etcdcluster/old", &namespace.name);
    gate.into_program().kill();
    without_gate(bare);
}
