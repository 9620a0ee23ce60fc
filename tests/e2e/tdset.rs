//! TDSets whose Pods run.

use std::time::Duration;

use gatehouse::runtime::clock;
use jiff::Timestamp;
use serde_json::json;

use crate::Test;
use crate::cluster::{BUSYBOX, Bed, Namespace};
use crate::kubectl::eventually;
use crate::life::shop;
use crate::objects::condition;
use crate::release::Way;

pub const TESTS: &[Test] = &[
    ("pods_come_and_go_with_the_window", pods_come_and_go_with_the_window),
    ("a_changed_image_rolls_out", a_changed_image_rolls_out),
    ("workloads_of_others_follow", workloads_of_others_follow),
];

/// An image whose one program waits.
const PAUSE: &str = "registry.k8s.io/pause:3.10.1";

/// The Pods of a TDSet that are ready.
fn ready(namespace: &Namespace<'_>, name: &str) -> usize {
    let pods = namespace.list("pods", &format!("app.kubernetes.io/instance={name}"));
    let living = pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    living.filter(|pod| condition(pod, "Ready")["status"] == "True").count()
}

#[track_caller]
fn until_ready(namespace: &Namespace<'_>, name: &str, count: usize) {
    eventually(|| match ready(namespace, name) {
        found if found == count => Ok(()),
        found => Err(format!("{found} Pods of {name} are ready, and not {count}")),
    });
}

fn pods_come_and_go_with_the_window(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("hours");
    let second = |from_now: u64| {
        let moment = clock::now() + Duration::from_secs(from_now);
        Timestamp::from_second(moment.as_second()).expect("a time").to_string()
    };
    // From one Pod to three, and then to none.
    let mut object = shop("shop");
    let (rush, night) =
        (json!({"start": second(15), "end": second(35)}), json!({"start": second(35), "end": second(3600)}));
    object["spec"]["exceptions"] = json!([
        {"name": "rush", "between": rush, "replicas": 3},
        {"name": "night", "between": night, "replicas": 0},
    ]);
    namespace.apply(&object);
    for count in [1, 3, 0] {
        until_ready(&namespace, "shop", count);
        let said = || Ok(namespace.get("tdset/shop")?["status"]["scheduledReplicas"].clone());
        eventually(|| {
            said().and_then(|said| if said == count { Ok(()) } else { Err(format!("it says {said}")) })
        });
    }
    eventually(|| {
        match namespace.list("events", "").iter().filter(|event| event["reason"] == "Scaled").count() {
            2 => Ok(()),
            count => Err(format!("{count} events tell of two transitions")),
        }
    });
}

fn a_changed_image_rolls_out(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("image");
    let answering = shop("shop");
    let mut silent = answering.clone();
    silent["spec"]["target"]["create"] = json!({"image": PAUSE, "port": 8000, "servicePort": 80});
    namespace.apply(&silent);
    until_ready(&namespace, "shop", 1);
    namespace.apply(&answering);
    namespace.kubectl(&["rollout", "status", "deployment/shop", "--timeout=2m"]).ok();
    until_ready(&namespace, "shop", 1);
    eventually(|| {
        let mut pods = namespace.list("pods", "");
        pods.retain(|pod| pod["status"]["phase"] == "Running");
        let found: Vec<_> = pods.iter().map(|pod| &pod["spec"]["containers"][0]["image"]).collect();
        if found == [BUSYBOX] { Ok(()) } else { Err(format!("Pods run {found:?}")) }
    });
    let words =
        ["exec", "deployment/shop", "--", "/bin/busybox", "wget", "-q", "-O-", "http://shop/hostname"];
    let answer = eventually(|| namespace.kubectl(&words).run());
    assert!(answer.starts_with("shop-"), "its Service answers: {answer}");
}

/// Workloads that somebody else made, and an autoscaler. No node takes their Pods.
fn workloads_of_others_follow(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("others");
    let labels = json!({"app": "theirs"});
    let pod = json!({"nodeSelector": {"nowhere": "yes"}, "containers": [{"name": "main", "image": BUSYBOX}]});
    let workload = |kind: &str, name: &str| {
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod}}})
    };
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "bounded"});
    for object in [
        workload("Deployment", "theirs"),
        workload("Deployment", "bounded"),
        workload("StatefulSet", "theirs"),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dates"}, "data": {"all": "2001-01-01"}}),
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "bounded"},
            "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3}}),
    ] {
        namespace.apply(&object);
    }
    let dates = json!({"configMapKeyRef": {"name": "dates", "key": "all"}});
    for (name, kind, workload, replicas, fields) in [
        ("theirs", "Deployment", "theirs", 0, json!({})),
        ("counted", "StatefulSet", "theirs", 0, json!({"manualScale": "KeepUntilNextTransition"})),
        ("bounded", "Deployment", "bounded", 2, json!({"autoscaler": {"hpaRef": "bounded"}})),
    ] {
        let reference =
            json!({"apiVersion": "apps/v1", "kind": kind, "name": workload, "replicasOnDeletion": 1});
        let mut object = json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": name},
            "spec": {"timeZone": "Etc/UTC", "replicas": replicas, "target": {"ref": reference},
                "exceptions": [{"name": "dates", "datesFrom": dates, "replicas": 3}]}});
        for (field, value) in fields.as_object().expect("an object") {
            object["spec"][field] = value.clone();
        }
        namespace.apply(&object);
    }
    for (object, field, value) in [
        ("deployment/theirs", "{.spec.replicas}", "0"),
        ("statefulset/theirs", "{.spec.replicas}", "0"),
        ("hpa/bounded", "{.spec.minReplicas}", "2"),
    ] {
        let condition = format!("--for=jsonpath={field}={value}");
        namespace.kubectl(&["wait", &condition, object, "--timeout=60s"]).ok();
    }
    namespace.kubectl(&["delete", "tdset", "theirs", "counted", "bounded", "--timeout=60s"]).ok();
    namespace
        .kubectl(&["wait", "--for=jsonpath={.spec.replicas}=1", "deployment/theirs", "--timeout=60s"])
        .ok();
}
