use serde_json::{Value, json};

use super::*;
use crate::kinds::etcdcluster::resources::tests::{GUARD, TEMPLATE, cluster, plain};

fn built(of: &Spec) -> Value {
    serde_json::to_value(template(of, &TEMPLATE, GUARD)).unwrap()
}

fn probe(period: i32, timeout: i32, failures: i32) -> Value {
    json!({
        "httpGet": {"path": "/health?serializable=true&exclude=NOSPACE&exclude=CORRUPT", "port": "metrics"},
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
    })
}

fn hardened() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "privileged": false,
        "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]},
    })
}

#[test]
fn the_guard_comes_first() {
    let pod = built(&plain());
    assert_eq!(
        pod["spec"]["initContainers"],
        json!([{
            "name": "guard",
            "image": "gatehouse.dev/gatehouse:0.1.0",
            "imagePullPolicy": "IfNotPresent",
            "command": ["/gatehouse", "etcd", "guard"],
            "args": [
                "--member=$(POD_NAME)",
                "--cluster=u-1",
                "--template=3.6.16-00000000000000ab",
                "--config=/etc/gatehouse/config",
                "--data=/var/lib/etcd",
                "--work=/gatehouse-run",
            ],
            "env": [
                {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
            ],
            "securityContext": hardened(),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [
                {"name": "data", "mountPath": "/var/lib/etcd"},
                {"name": "config", "mountPath": "/etc/gatehouse/config", "readOnly": true},
                {"name": "gatehouse", "mountPath": "/gatehouse-run"},
            ],
        }])
    );
}

#[test]
fn etcd_is_started_by_a_copy_of_the_guard() {
    let pod = built(&plain());
    assert_eq!(
        pod["spec"]["containers"],
        json!([{
            "name": "etcd",
            "image": "quay.io/coreos/etcd:v3.6.16",
            "imagePullPolicy": "IfNotPresent",
            "command": [
                "/gatehouse-run/gatehouse", "etcd", "run", "--work", "/gatehouse-run", "--data", "/var/lib/etcd",
                "--", "/usr/local/bin/etcd", "--config-file=/gatehouse-run/etcd.yaml",
            ],
            "ports": [
                {"name": "client", "containerPort": 2379, "protocol": "TCP"},
                {"name": "peer", "containerPort": 2380, "protocol": "TCP"},
                {"name": "metrics", "containerPort": 2381, "protocol": "TCP"},
            ],
            "startupProbe": probe(2, 5, 900),
            "livenessProbe": probe(10, 10, 60),
            "readinessProbe": probe(5, 5, 3),
            "securityContext": hardened(),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [
                {"name": "data", "mountPath": "/var/lib/etcd"},
                {"name": "gatehouse", "mountPath": "/gatehouse-run", "readOnly": true},
            ],
        }])
    );
}

#[test]
fn a_pod_runs_with_the_least_rights_and_apart_from_the_others() {
    let pod = built(&plain());
    let mut spec = pod["spec"].clone();
    let fields = spec.as_object_mut().unwrap();
    fields.retain(|name, _| !["initContainers", "containers"].contains(&name.as_str()));
    let labels = json!({
        "app.kubernetes.io/component": "member",
        "app.kubernetes.io/instance": "c",
        "app.kubernetes.io/managed-by": "gatehouse",
        "app.kubernetes.io/name": "etcd",
    });
    assert_eq!(
        spec,
        json!({
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
                "weight": 100,
                "podAffinityTerm": {
                    "labelSelector": {"matchLabels": labels},
                    "topologyKey": "kubernetes.io/hostname",
                },
            }]}},
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": 65532,
                "runAsGroup": 65532,
                "fsGroup": 65532,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 30,
            "volumes": [
                {"name": "config", "configMap": {"name": "c-config", "optional": true}},
                {"name": "gatehouse", "emptyDir": {}},
            ],
        })
    );
    assert_eq!(
        pod["metadata"],
        json!({"labels": labels, "annotations": {"gatehouse.dev/template": "3.6.16-00000000000000ab"}})
    );
}

fn overlay() -> Value {
    json!({
        "labels": {"team": "a", "app.kubernetes.io/name": "mine"},
        "annotations": {"note": "b", "gatehouse.dev/template": "mine"},
        "resources": {"requests": {"cpu": "1"}},
        "env": [{"name": "GOGC", "value": "50"}],
        "affinity": {},
        "tolerations": [{"key": "t", "operator": "Exists"}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
            {
                "maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"x": "y"}},
            },
        ],
        "nodeSelector": {"disk": "fast"},
        "priorityClassName": "high",
        "serviceAccountName": "robot",
        "schedulerName": "other",
        "runtimeClassName": "sandbox",
        "terminationGracePeriodSeconds": 60,
        "dnsPolicy": "None",
        "dnsConfig": {
            "nameservers": ["10.0.0.10"],
            "searches": ["example.com"],
            "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
        },
        "securityContext": {"fsGroup": 7},
        "containerSecurityContext": {"runAsUser": 8},
    })
}

#[test]
fn what_is_laid_over_the_pod_wins_but_over_what_it_is_found_by() {
    let overlay = overlay();
    let pod = built(&cluster(&json!({
        "tls": {"mode": "Disabled"},
        "image": {"repository": "registry.example/etcd", "pullPolicy": "Always", "pullSecrets": [{"name": "s"}]},
        "options": {"extra": {"raft-write-timeout": "9s"}},
        "pod": overlay,
    })));
    assert_eq!(pod["metadata"]["labels"]["team"], "a");
    assert_eq!(pod["metadata"]["labels"]["app.kubernetes.io/name"], "etcd");
    assert_eq!(pod["metadata"]["annotations"]["note"], "b");
    assert_eq!(pod["metadata"]["annotations"]["gatehouse.dev/template"], "3.6.16-00000000000000ab");
    let spec = &pod["spec"];
    for field in [
        "affinity",
        "tolerations",
        "nodeSelector",
        "priorityClassName",
        "serviceAccountName",
        "schedulerName",
        "runtimeClassName",
        "terminationGracePeriodSeconds",
        "dnsPolicy",
        "dnsConfig",
        "securityContext",
    ] {
        assert_eq!(spec[field], overlay[field], "{field}");
    }
    assert_eq!(spec["imagePullSecrets"], json!([{"name": "s"}]));
    let spread = &spec["topologySpreadConstraints"];
    assert_eq!(spread[0]["labelSelector"]["matchLabels"]["app.kubernetes.io/instance"], "c");
    assert_eq!(spread[1]["labelSelector"], json!({"matchLabels": {"x": "y"}}));
    let (guard, etcd) = (&spec["initContainers"][0], &spec["containers"][0]);
    for container in [guard, etcd] {
        assert_eq!(container["securityContext"], json!({"runAsUser": 8}));
        assert_eq!(container["resources"], overlay["resources"]);
    }
    assert_eq!(etcd["env"], overlay["env"]);
    assert_eq!(etcd["image"], "registry.example/etcd:v3.6.16");
    assert_eq!(etcd["imagePullPolicy"], "Always");
    assert_eq!(guard["imagePullPolicy"], "IfNotPresent");
    assert_eq!(etcd["command"].as_array().unwrap().last().unwrap(), "--raft-write-timeout=9s");
}

#[test]
fn certificates_are_mounted_from_the_secrets_of_the_mode() {
    let mounted = |tls: Value| {
        let pod = built(&cluster(&json!({"tls": tls})));
        let volumes = pod["spec"]["volumes"].as_array().unwrap().clone();
        let secrets = volumes.iter().filter(|volume| volume["secret"].is_object()).map(|volume| {
            (volume["name"].as_str().unwrap().to_owned(), volume["secret"]["secretName"].clone())
        });
        let secrets: Vec<_> = secrets.collect();
        let mounts = pod["spec"]["containers"][0]["volumeMounts"].as_array().unwrap().clone();
        let named = |name: &str| mounts.iter().find(|mount| mount["name"] == name).cloned().unwrap();
        secrets
            .into_iter()
            .map(|(name, secret)| {
                let mount = named(&name);
                assert_eq!(mount["readOnly"], true);
                format!("{} at {}", secret.as_str().unwrap(), mount["mountPath"].as_str().unwrap())
            })
            .collect::<Vec<_>>()
    };
    let own = ["c-server-tls at /etc/gatehouse/tls/server", "c-peer-tls at /etc/gatehouse/tls/peer"];
    assert_eq!(mounted(json!({"mode": "Automatic"})), own);
    assert_eq!(mounted(json!({})), own);
    assert_eq!(mounted(json!({"mode": "Disabled"})), [""; 0]);
    assert_eq!(
        mounted(
            json!({"mode": "Secrets", "secrets": {"serverRef": {"name": "s"}, "peerRef": {"name": "p"}, "clientRef": {"name": "o"}, "peerCARef": {"name": "x"}}})
        ),
        ["s at /etc/gatehouse/tls/server", "p at /etc/gatehouse/tls/peer", "x at /etc/gatehouse/tls/peer-ca"]
    );
}

#[test]
fn data_in_memory_are_no_larger_than_asked_for_and_end_with_their_pod() {
    let pod = built(&cluster(&json!({"storage": {"medium": "Memory", "size": "512Mi"}})));
    let volumes = pod["spec"]["volumes"].as_array().unwrap();
    let data = volumes.iter().find(|volume| volume["name"] == "data").unwrap();
    assert_eq!(data["emptyDir"], json!({"medium": "Memory", "sizeLimit": "512Mi"}));
    let arguments = pod["spec"]["initContainers"][0]["args"].as_array().unwrap();
    assert_eq!(arguments.last().unwrap(), "--volume=pod");
}
