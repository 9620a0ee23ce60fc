//! What the operator shows of EtcdClusters. No pod starts here, so that none has members: those are met on a real node.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use kit::bed::Bed;
use kit::objects::{Ask, condition, http_get};
use kit::operator::Fate;
use kit::wait::eventually;
use serde_json::{Value, json};

use crate::Test;
use crate::site::{self, Site};
use crate::storage::moving::StopsAtTheEnd;

pub const TESTS: &[Test] = &kit::tests![
    a_cluster_that_is_gone_has_no_series,
    a_write_that_is_refused_is_said_until_it_is_allowed,
    why_no_pod_runs_is_said_in_the_words_of_kubernetes,
    a_claim_that_a_quota_keeps_small_grows_once_it_may,
    an_object_that_others_write_all_the_time_is_worked,
];

/// With an operator of their own, whose rights are a test's.
pub const ON_CLOCKS: &[Test] = &kit::tests![a_right_to_read_that_is_missing_is_reported_until_it_is_given];

/// Between two writes of each of those that write an object all the time: some fifty a second together.
const BETWEEN: Duration = Duration::from_millis(40);

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
    let made = format!("actions_total{of_it},action=\"apply-services\",result=\"done\"}} 1");
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

fn a_write_that_is_refused_is_said_until_it_is_allowed(bed: &Bed) {
    let namespace = bed.namespace();
    let until = |object: &str, is_so: &dyn Fn(&Value) -> bool| {
        bed.objects.until(object, &namespace.name, |found| {
            if is_so(found) { Ok(found.clone()) } else { Err(found["status"].to_string()) }
        })
    };
    let limit = "count/statefulsets.apps";
    namespace.create(&json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {limit: "0"}}}));
    until("resourcequota/none", &|quota| quota["status"]["hard"][limit] == "0");
    namespace.create(
        &json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "held"},
        "spec": {"replicas": 1, "tls": {"mode": "Disabled"}}}),
    );
    let is_refused = |object: &Value| condition(object, "Ready")["reason"] == "ApplyFailed";
    let held = until("etcdcluster/held", &is_refused);
    let ready = condition(&held, "Ready");
    assert_eq!(ready["status"], "False");
    let message = ready["message"].as_str().expect("a message");
    assert!(message.contains("exceeded quota: none"), "{message}");
    eventually(|| {
        let events = bed.objects.list("events", &namespace.name, "")?;
        let is_told =
            |event: &&Value| event["reason"] == "ApplyFailed" && event["involvedObject"]["name"] == "held";
        if events.iter().any(|event| is_told(&event)) { Ok(()) } else { Err(format!("{events:#?}")) }
    });
    namespace.delete("resourcequota/none");
    until("statefulset/held", &|_| true);
    until("etcdcluster/held", &|object| !is_refused(object));
}

/// A quota lets no pod be made, and beside it a claim has no StorageClass.
fn why_no_pod_runs_is_said_in_the_words_of_kubernetes(bed: &Bed) {
    let [full, classless] = [bed.namespace(), bed.namespace()];
    full.create(&json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {"pods": "0"}}}));
    bed.objects.until("resourcequota/none", &full.name, |quota| {
        if quota["status"]["hard"]["pods"] == "0" { Ok(()) } else { Err(quota.to_string()) }
    });
    for namespace in [&full, &classless] {
        namespace.create(
            &json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "shop"},
            "spec": {"replicas": 3, "tls": {"mode": "Disabled"}, "storage": {"size": "1Gi", "storageClassName": ""}}}),
        );
    }
    let said = |namespace: &str, words: &[&str]| {
        bed.objects.until("etcdcluster/shop", namespace, |object| {
            let [ready, degraded] = ["Ready", "Degraded"].map(|about| condition(object, about));
            let message = degraded["message"].as_str().unwrap_or_default();
            // No member has ever served.
            assert_ne!(degraded["reason"], "Healthy", "{degraded}");
            let are_so =
                ready["reason"] == "PodNotRunning" && words.iter().all(|word| message.contains(word));
            if are_so { Ok(()) } else { Err(object["status"].to_string()) }
        });
        eventually(|| {
            let events = bed.objects.list("events", namespace, "")?;
            let mut told = events.iter().filter(|event| event["reason"] == "PodNotRunning");
            if told.any(|event| event["involvedObject"]["name"] == "shop") {
                Ok(())
            } else {
                Err(format!("{events:#?}"))
            }
        });
    };
    said(
        &full.name,
        &["shop-0 has no running pod: no pod is made: pods \"shop-0\" is forbidden", "exceeded quota: none"],
    );
    said(&classless.name, &["claim data-shop-0 has no volume: FailedBinding: ", "no storage class is set"]);
    full.delete("resourcequota/none");
    bed.objects.until("etcdcluster/shop", &full.name, |object| {
        let message = condition(object, "Degraded")["message"].to_string();
        if message.contains("exceeded quota") { Err(message) } else { Ok(()) }
    });
}

/// The claim of the first member is bound to a volume that was made for it, and may grow; its cluster is recorded by the
/// test, since no member starts here.
fn a_claim_that_a_quota_keeps_small_grows_once_it_may(bed: &Bed) {
    const CLAIM: &str = "persistentvolumeclaim/data-small-0";
    let namespace = bed.namespace();
    let class = format!("grows-{}", namespace.name);
    let grows = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": class}, "provisioner": "example.com/none", "allowVolumeExpansion": true});
    let claim_of = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace.name,
        "name": "data-small-0"});
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": class},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "persistentVolumeReclaimPolicy": "Retain", "claimRef": claim_of, "hostPath": {"path": "/none"}}});
    for object in [grows, volume] {
        bed.objects.must(Ask::create(&object, ""));
    }
    let until = |object: &str, is_so: &dyn Fn(&Value) -> bool| {
        bed.objects.until(object, &namespace.name, |found| {
            if is_so(found) { Ok(found.clone()) } else { Err(found.to_string()) }
        })
    };
    namespace.create(
        &json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "small"},
        "spec": {"replicas": 1, "tls": {"mode": "Disabled"}, "storage": {"size": "1Gi", "storageClassName": class},
            "options": {"quotaBackendBytes": "512Mi"}}}),
    );
    until(CLAIM, &|claim| claim["status"]["phase"] == "Bound");
    until("configmap/small-config", &|config| config["data"]["small-0.json"].is_string());
    namespace.change("etcdcluster/small", &json!({"spec": {"paused": true}}));
    until("etcdcluster/small", &|object| condition(object, "Paused")["status"] == "True");
    let path = namespace.path("etcdcluster/small") + "/status";
    bed.objects.must(Ask::patch(path, json!({"status": {"clusterID": "1"}})));

    let limit = "requests.storage";
    namespace.create(&json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tight"},
        "spec": {"hard": {limit: "1Gi"}}}));
    until("resourcequota/tight", &|quota| quota["status"]["used"][limit] == "1Gi");
    namespace.change("etcdcluster/small", &json!({"spec": {"paused": false, "storage": {"size": "2Gi"}}}));
    // Beside what else is in its way: its only member does not answer.
    let is_refused = |object: &Value| {
        let degraded = condition(object, "Degraded");
        let message = degraded["message"].as_str().unwrap_or_default();
        ["resize-volume", "exceeded quota: tight"].iter().all(|words| message.contains(words))
    };
    until("etcdcluster/small", &is_refused);
    let asked = |claim: &Value| claim["spec"]["resources"]["requests"]["storage"].clone();
    assert_eq!(asked(&bed.objects.at(&namespace.path(CLAIM))), "1Gi");
    namespace.delete("resourcequota/tight");
    until(CLAIM, &|claim| asked(claim) == "2Gi");
    until("etcdcluster/small", &|object| !is_refused(object));
    let of_all = [
        format!("/api/v1/persistentvolumes/{class}"),
        format!("/apis/storage.k8s.io/v1/storageclasses/{class}"),
    ];
    bed.objects.discard(of_all.into());
}

/// Labels and annotations are written all the time: what the status has to remember is written all the same, and what
/// follows from it is made.
fn an_object_that_others_write_all_the_time_is_worked(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(
        &json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "busy"},
        "spec": {"replicas": 1, "tls": {"mode": "Disabled"}, "paused": true}}),
    );
    let (path, is_over) = (namespace.path("etcdcluster/busy"), AtomicBool::new(false));
    thread::scope(|scope| {
        let stop = StopsAtTheEnd(&is_over);
        for writer in ["one", "other"] {
            let (path, is_over) = (&path, &is_over);
            scope.spawn(move || {
                let mut count = 0;
                while !is_over.load(Ordering::Relaxed) {
                    count += 1;
                    let key = format!("example.com/{writer}");
                    let value = json!({key: count.to_string()});
                    let metadata = json!({"metadata": {"annotations": value, "labels": value}});
                    bed.objects.must(Ask::patch(path, metadata));
                    thread::park_timeout(BETWEEN);
                }
            });
        }
        let is_written = |object: &Value| {
            let annotations = &object["metadata"]["annotations"];
            ["one", "other"].iter().all(|writer| annotations[format!("example.com/{writer}")].is_string())
        };
        bed.objects.until("etcdcluster/busy", &namespace.name, |object| {
            if is_written(object) { Ok(()) } else { Err(object.to_string()) }
        });
        namespace.change("etcdcluster/busy", &json!({"spec": {"paused": false}}));
        bed.objects.until("etcdcluster/busy", &namespace.name, |object| {
            let operation = &object["status"]["operation"];
            if operation["type"] == "Bootstrap" { Ok(()) } else { Err(object["status"].to_string()) }
        });
        bed.objects.until("statefulset/busy", &namespace.name, |_| Ok(()));
        drop(stop);
    });
}

/// Nothing is done on the strength of what could not be read, and the status says what is missing.
fn a_right_to_read_that_is_missing_is_reported_until_it_is_given(bed: &Bed) {
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let role = site::role(&namespace, |resource, verb| (resource, verb) != ("poddisruptionbudgets", "get"));
    let _operator = site.start(Fate::Lives);
    namespace.create(
        &json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "blind"},
        "spec": {"replicas": 1, "tls": {"mode": "Disabled"}}}),
    );
    let degraded = |is_told: bool| {
        bed.objects.until("etcdcluster/blind", &namespace.name, |object| {
            let degraded = condition(object, "Degraded");
            let is_so = degraded["reason"] == "Forbidden" && degraded["status"] == "True";
            let is_known = degraded["reason"].is_string();
            if is_known && is_so == is_told {
                Ok(degraded.clone())
            } else {
                Err(object["status"].to_string())
            }
        })
    };
    let told = degraded(true);
    let message = told["message"].as_str().expect("a message");
    assert!(message.starts_with("read poddisruptionbudgets: "), "{message}");
    assert!(message.contains("cannot get resource \"poddisruptionbudgets\""), "{message}");
    role.give_back();
    degraded(false);
}
