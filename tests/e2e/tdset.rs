//! TDSets whose Pods run.

use std::time::Duration;

use gatehouse::runtime::clock;
use jiff::{SignedDuration, Timestamp};
use kit::objects::condition;
use kit::wait::{PATIENCE, eventually, patient, timeout};
use serde_json::{Value, json};

use crate::Test;
use crate::cluster::{BUSYBOX, Bed, Namespace};
use crate::installation::shop;
use crate::release::Way;

pub const TESTS: &[Test] = &kit::tests![
    pods_come_and_go_with_the_window,
    a_workload_sleeps_beside_its_autoscaler,
    a_changed_image_rolls_out,
    workloads_of_others_follow,
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

/// In how many seconds a boundary is, at the first attempt and where the machine was too slow for that.
const SOON: [i64; 3] = [8, 32, 128];

fn pods_come_and_go_with_the_window(bed: &Bed, way: Way) {
    bed.deployed(way);
    let is_in_time = |seconds: &i64| crosses_two_boundaries(bed, *seconds);
    assert!(
        SOON.iter().any(is_in_time),
        "each time a boundary had passed before the schedule with it was seen"
    );
}

/// From one Pod to three, and then to none. False where a boundary had passed before the operator knew of it.
fn crosses_two_boundaries(bed: &Bed, seconds: i64) -> bool {
    let namespace = bed.namespace(&format!("hours-{seconds}"));
    let object = shop("shop");
    namespace.apply(&object);
    until_scheduled(&namespace, 1);
    let is_in_time = crosses(&namespace, object, seconds, &[("rush", 3), ("night", 0)], |count, _| {
        until_scheduled(&namespace, count);
    });
    if is_in_time {
        eventually(|| {
            let events = namespace.list("events", "");
            match events.iter().filter(|event| event["reason"] == "ReplicasScheduled").count() {
                2 => Ok(()),
                count => Err(format!("{count} events for two transitions")),
            }
        });
    }
    is_in_time
}

/// Crosses boundaries of the TDSet `object`, one after the other: each is set when what was before it is there, and
/// `until` waits for what it asks for, and has when that was. False where one had passed before the operator knew of it:
/// then it was none.
fn crosses(
    namespace: &Namespace<'_>,
    mut object: Value,
    seconds: i64,
    boundaries: &[(&str, usize)],
    until: impl Fn(usize, Timestamp),
) -> bool {
    let mut exceptions = Vec::<Value>::new();
    let tdset = format!("tdset/{}", object["metadata"]["name"].as_str().expect("a name"));
    for (name, replicas) in boundaries {
        let begin = clock::now() + SignedDuration::from_secs(seconds);
        let begin = Timestamp::from_second(begin.as_second()).expect("a time");
        let hour = [begin, begin + SignedDuration::from_hours(1)].map(|time| time.to_string());
        if let Some(last) = exceptions.last_mut() {
            last["between"]["end"] = json!(hour[0]);
        }
        let between = json!({"start": hour[0], "end": hour[1]});
        exceptions.push(json!({"name": name, "between": between, "replicas": replicas}));
        object["spec"]["exceptions"] = json!(exceptions);
        namespace.apply(&object);
        let generation = namespace.get(&tdset).expect("it is there")["metadata"]["generation"].clone();
        namespace.until(&tdset, |found| {
            let seen = &found["status"]["observedGeneration"];
            if *seen == generation {
                Ok(())
            } else {
                Err(format!("generation {seen} of {generation} is seen"))
            }
        });
        if clock::now() >= begin {
            return false;
        }
        until(*replicas, begin);
        println!("{name}: {replicas} Pods {:#} after it began", clock::now().duration_since(begin));
    }
    true
}

/// In which a workload that slept is back.
const FIRST_MINUTE: Duration = Duration::from_mins(1);

/// When the last Pod of a TDSet became ready, as the API server has it; none where it has no Pod.
fn last_ready(namespace: &Namespace<'_>, name: &str) -> Option<Timestamp> {
    let pods = namespace.list("pods", &format!("app.kubernetes.io/instance={name}"));
    let living = pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    let times = living.map(|pod| condition(pod, "Ready")["lastTransitionTime"].clone());
    times.map(|time| time.as_str().and_then(|time| time.parse().ok()).expect("a time")).max()
}

/// A workload with an autoscaler has no Pods at night, and has them again before the first minute of the day is over.
fn a_workload_sleeps_beside_its_autoscaler(bed: &Bed, way: Way) {
    bed.deployed(way);
    let is_in_time = |seconds: &i64| sleeps_and_wakes(bed, *seconds);
    assert!(
        SOON.iter().any(is_in_time),
        "each time a boundary had passed before the schedule with it was seen"
    );
}

fn sleeps_and_wakes(bed: &Bed, seconds: i64) -> bool {
    let namespace = bed.namespace(&format!("sleeps-{seconds}"));
    let labels = json!({"app.kubernetes.io/instance": "web"});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    namespace.apply(&json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": PAUSE}]}}}}));
    namespace.apply(&json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 4}}));
    let object = json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": "web"},
        "spec": {"timeZone": "Etc/UTC", "defaultReplicas": 2, "target": {"ref": target},
            "autoscaler": {"kind": "HorizontalPodAutoscaler", "name": "web"}}});
    namespace.apply(&object);
    until_ready(&namespace, "web", 2);
    let until = |count: usize, begin: Timestamp| {
        until_ready(&namespace, "web", count);
        namespace.until("tdset/web", |web| {
            let ready = condition(web, "Ready");
            let is_so = ready["reason"] == "AsScheduled" && web["status"]["scheduledReplicas"] == count;
            if is_so { Ok(()) } else { Err(web["status"].to_string()) }
        });
        if let Some(last) = last_ready(&namespace, "web") {
            let after = last.duration_since(begin);
            println!("figure: all Pods of a workload that slept were ready {after:#} after its window began");
            assert!(
                after <= patient(FIRST_MINUTE).try_into().expect("minutes"),
                "the last Pod was ready {after:#} after the window began"
            );
        }
    };
    let is_in_time = crosses(&namespace, object, seconds, &[("night", 0), ("day", 2)], until);
    if is_in_time {
        let bounds = namespace.get("hpa/web").expect("it is there")["spec"].clone();
        assert_eq!((&bounds["minReplicas"], &bounds["maxReplicas"]), (&json!(2), &json!(4)));
    }
    is_in_time
}

/// So many Pods are ready, and the status has that count.
#[track_caller]
fn until_scheduled(namespace: &Namespace<'_>, count: usize) {
    until_ready(namespace, "shop", count);
    namespace.until("tdset/shop", |shop| {
        let scheduled = &shop["status"]["scheduledReplicas"];
        if *scheduled == count { Ok(()) } else { Err(format!("its status has {scheduled}")) }
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
    namespace.kubectl(&["rollout", "status", "deployment/shop", &timeout(PATIENCE)]).ok();
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

/// Workloads of others, and an autoscaler. No node takes their Pods.
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
        ("counted", "StatefulSet", "theirs", 0, json!({"manualScalePolicy": "KeepUntilNextTransition"})),
        ("bounded", "Deployment", "bounded", 2, json!({"autoscaler": {"name": "bounded"}})),
    ] {
        let mut reference = json!({"apiVersion": "apps/v1", "kind": kind, "name": workload});
        if fields["autoscaler"].is_null() {
            reference["replicasOnDeletion"] = json!(1);
        }
        let mut object = json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": name},
            "spec": {"timeZone": "Etc/UTC", "defaultReplicas": replicas, "target": {"ref": reference},
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
        namespace.kubectl(&["wait", &condition, object, &timeout(PATIENCE)]).ok();
    }
    namespace.kubectl(&["delete", "tdset", "theirs", "counted", "bounded", &timeout(PATIENCE)]).ok();
    namespace
        .kubectl(&["wait", "--for=jsonpath={.spec.replicas}=1", "deployment/theirs", &timeout(PATIENCE)])
        .ok();
}
