use serde_json::{Value, json};

use super::*;

/// A sound object with `patch` laid over its spec; a null removes.
fn cluster(patch: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "gatehouse.dev/v1",
        "kind": "EtcdCluster",
        "metadata": { "name": "my-cluster" },
        "spec": { "replicas": 3, "version": "3.6.16", "storage": { "size": "10Gi" }, "tls": { "mode": "Automatic" },
            "pod": { "resources": { "requests": { "cpu": "1", "memory": "4Gi" } } } }
    });
    merge(&mut object["spec"], patch);
    object
}

fn merge(base: &mut Value, patch: &Value) {
    match (base, patch) {
        (Value::Object(fields), Value::Object(changes)) => {
            for (name, change) in changes {
                if change.is_null() {
                    fields.shift_remove(name);
                } else {
                    merge(fields.entry(name).or_insert(Value::Null), change);
                }
            }
        }
        (base, change) => *base = change.clone(),
    }
}

fn seen(mut object: Value, status: &Value) -> Value {
    object["status"] = status.clone();
    object
}

/// The paths of all faults, in order.
fn refused(verdict: &Verdict) -> Vec<String> {
    verdict.faults.iter().map(|fault| fault.path.to_string()).collect()
}

fn warned(verdict: &Verdict) -> bool {
    !verdict.warnings.is_empty()
}

/// Judges each patch as a new object: what is refused, and whether a warning is given.
fn judge_each(table: &[(Value, &[&str], bool)]) {
    for (patch, paths, warns) in table {
        let verdict = validate(&cluster(patch), None);
        assert_eq!(refused(&verdict), *paths, "{patch}: {:?}", verdict.faults);
        assert_eq!(warned(&verdict), *warns, "{patch}: {:?}", verdict.warnings);
    }
}

const FINE: &[&str] = &[];

/// All that mode Secrets needs.
fn secrets() -> Value {
    json!({ "serverRef": { "name": "a" }, "peerRef": { "name": "b" }, "clientRef": { "name": "c" } })
}

#[test]
fn a_sound_object_is_accepted_without_a_word() {
    judge_each(&[(json!({}), FINE, false)]);
}

#[test]
fn replicas_are_zero_to_seven_and_odd() {
    let path: &[&str] = &["spec.replicas"];
    let memory = json!({ "medium": "Memory" });
    judge_each(&[
        (json!({ "replicas": 0 }), FINE, false),
        (json!({ "replicas": 1 }), FINE, false),
        (json!({ "replicas": 2 }), FINE, true),
        (json!({ "replicas": 5 }), FINE, false),
        (json!({ "replicas": 7 }), FINE, true),
        (json!({ "replicas": 8 }), path, false),
        (json!({ "replicas": -1 }), path, false),
        (json!({ "replicas": 0, "storage": memory }), path, false),
        (json!({ "replicas": 1, "storage": memory }), FINE, true),
        (json!({ "replicas": 3, "storage": memory }), FINE, false),
    ]);
}

#[test]
fn versions_are_supported_ones_without_a_leading_v() {
    let path: &[&str] = &["spec.version"];
    judge_each(&[
        (json!({ "version": "3.7.3" }), FINE, false),
        (json!({ "version": "3.6.0" }), FINE, false),
        (json!({ "version": "3.6.99" }), FINE, true),
        (json!({ "version": "3.5.33" }), FINE, true),
        (json!({ "version": "3.5.9" }), FINE, true),
        (json!({ "version": "v3.6.16" }), path, false),
        (json!({ "version": "3.6" }), path, false),
        (json!({ "version": "3.4.30" }), path, false),
        (json!({ "version": "3.8.0" }), path, false),
        (json!({ "version": "4.0.0" }), path, false),
        (json!({ "version": "latest" }), path, false),
        (json!({ "version": "3.6.16-rc.0" }), path, false),
    ]);
}

#[test]
fn sizes_are_whole_bytes_with_room_for_the_quota() {
    let size: &[&str] = &["spec.storage.size"];
    let quota: &[&str] = &["spec.options.quotaBackendBytes"];
    let both = |size: &str, quota: &str| json!({ "storage": { "size": size }, "options": { "quotaBackendBytes": quota } });
    judge_each(&[
        (json!({ "storage": { "size": 10_737_418_240_i64 } }), FINE, false),
        (json!({ "storage": { "size": "1Gi" } }), FINE, true),
        (both("128M", "32Mi"), FINE, false),
        (both("122Mi", "32Mi"), size, false),
        (json!({ "storage": { "size": "0" } }), size, false),
        (json!({ "storage": { "size": "-1Gi" } }), size, false),
        (json!({ "storage": { "size": "1500m" } }), size, false),
        (json!({ "storage": { "size": "10gi" } }), size, false),
        (json!({ "storage": { "size": "ten" } }), size, false),
        (json!({ "storage": { "size": 0 } }), size, false),
        (both("10Gi", "5Gi"), FINE, false),
        (both("10Gi", "6Gi"), FINE, true),
        (both("20Gi", "9Gi"), FINE, true),
        (both("1Gi", "1024Mi"), FINE, true),
        (both("1Gi", "2Gi"), quota, false),
        (both("10Gi", "lots"), quota, false),
        (json!({ "storage": { "storageClassName": "fast" } }), FINE, false),
        (json!({ "storage": { "storageClassName": "Fast!" } }), &["spec.storage.storageClassName"], false),
        (json!({ "storage": { "medium": "Memory", "reclaimPolicy": "Delete" } }), FINE, true),
    ]);
}

#[test]
fn secrets_go_with_their_mode_and_are_complete() {
    let secrets = secrets();
    judge_each(&[
        (json!({ "tls": { "mode": "Disabled" } }), FINE, false),
        (json!({ "tls": { "mode": "Secrets", "secrets": secrets } }), FINE, false),
        (json!({ "tls": { "mode": "Secrets" } }), &["spec.tls.secrets"], false),
        (json!({ "tls": { "mode": "Automatic", "secrets": secrets } }), &["spec.tls.secrets"], false),
        (json!({ "tls": { "mode": null, "secrets": secrets } }), &["spec.tls.secrets"], false),
        (
            json!({ "tls": { "mode": "Secrets", "secrets": { "serverRef": { "name": "a" }, "clientCARef": { "name": "X!" } } } }),
            &["spec.tls.secrets.peerRef", "spec.tls.secrets.clientRef", "spec.tls.secrets.clientCARef.name"],
            false,
        ),
    ]);
}

#[test]
fn names_beside_those_of_the_services_are_names() {
    judge_each(&[
        (json!({ "tls": { "extraNames": ["etcd.example.com", "*.example.com", "::1"] } }), FINE, false),
        (
            json!({ "tls": { "extraNames": ["a", "https://b", "*.", "192.0.2.300", "192.0.2"] } }),
            &[
                "spec.tls.extraNames[1]",
                "spec.tls.extraNames[2]",
                "spec.tls.extraNames[3]",
                "spec.tls.extraNames[4]",
            ],
            false,
        ),
        (json!({ "tls": { "mode": "Disabled", "extraNames": [] } }), FINE, false),
        (json!({ "tls": { "mode": "Disabled", "extraNames": ["a"] } }), &["spec.tls.extraNames"], false),
    ]);
}

#[test]
fn authentication_needs_certificates() {
    judge_each(&[
        (json!({ "auth": { "enabled": true, "rootSecretRef": { "name": "root" } } }), FINE, false),
        (
            json!({ "auth": { "enabled": true }, "tls": { "mode": "Disabled" } }),
            &["spec.auth.enabled"],
            false,
        ),
        (json!({ "auth": { "rootSecretRef": { "name": "root" } } }), FINE, true),
        (
            json!({ "auth": { "enabled": true, "rootSecretRef": { "name": "Root" } } }),
            &["spec.auth.rootSecretRef.name"],
            false,
        ),
    ]);
}

#[test]
fn schedules_are_those_of_a_cron_job() {
    let with = |schedule: &str| {
        json!({ "backup": { "schedule": schedule, "timeZone": "Europe/Berlin",
                "destination": { "persistentVolumeClaim": { "claimName": "b" } } } })
    };
    let path: &[&str] = &["spec.backup.schedule"];
    judge_each(&[
        (with("0 2 * * *"), FINE, false),
        (with("@hourly"), FINE, false),
        (with("*/5 * * * *"), FINE, false),
        (with("* * * * *"), FINE, true),
        (with("0 25 * * *"), path, false),
        (with("0 0 30 2 *"), path, false),
        (with("@every 1s"), path, false),
        (with("TZ=UTC 0 2 * * *"), path, false),
        (with("0 0 2 * * *"), path, false),
    ]);
}

#[test]
fn zones_are_spelled_as_the_database_spells_them() {
    let with = |zone: &str| {
        json!({ "backup": { "schedule": "@daily", "timeZone": zone,
                "destination": { "persistentVolumeClaim": { "claimName": "b" } } } })
    };
    let path: &[&str] = &["spec.backup.timeZone"];
    judge_each(&[
        (with("Etc/UTC"), FINE, false),
        (with("America/New_York"), FINE, false),
        (with("america/new_york"), path, false),
        (with("Berlin"), path, false),
        (with("Local"), path, false),
        (with(""), path, false),
        (with("UTC+2"), path, false),
        (json!({ "backup": { "timeZone": "Etc/UTC" } }), FINE, true),
    ]);
}

#[test]
fn backups_go_to_a_volume_and_below_their_folder() {
    let with = |destination: Value| json!({ "backup": { "schedule": "@daily", "destination": destination } });
    let at = |path: &str| format!("spec.backup.destination{path}");
    let claim = |path: &str| with(json!({ "persistentVolumeClaim": { "claimName": "b", "path": path } }));
    let claim_of = |name: &str| with(json!({ "persistentVolumeClaim": { "claimName": name } }));
    for (patch, paths) in [
        (claim("etcd/mine"), vec![]),
        (claim("a..b/c"), vec![]),
        (claim("/etc"), vec![at(".persistentVolumeClaim.path")]),
        (claim("a/../../b"), vec![at(".persistentVolumeClaim.path")]),
        (
            with(json!({ "persistentVolumeClaim": { "claimName": "B!" } })),
            vec![at(".persistentVolumeClaim.claimName")],
        ),
        // The claims of its own members, and names that merely look alike.
        (claim_of("data-my-cluster-0"), vec![at(".persistentVolumeClaim.claimName")]),
        (claim_of("data-my-cluster-12"), vec![at(".persistentVolumeClaim.claimName")]),
        (claim_of("data-my-cluster-a"), vec![]),
        (claim_of("data-my-cluster-01"), vec![]),
        (claim_of("data-other-0"), vec![]),
        (with(json!({})), vec![at(".persistentVolumeClaim")]),
        (json!({ "backup": { "schedule": "@daily" } }), vec![at("")]),
        (json!({ "backup": { "beforeUpgrade": true } }), vec![at("")]),
        (json!({ "backup": { "suspend": true } }), vec![]),
    ] {
        let verdict = validate(&cluster(&patch), None);
        assert_eq!(refused(&verdict), paths, "{patch}: {:?}", verdict.faults);
        assert!(!warned(&verdict), "{patch}: {:?}", verdict.warnings);
    }
}

#[test]
fn what_this_release_cannot_do_is_refused_whatever_it_holds() {
    let to = |destination: Value| json!({ "backup": { "schedule": "@daily", "destination": destination } });
    let store = json!({ "bucket": "a", "secretRef": { "name": "b" } });
    let claim = json!({ "persistentVolumeClaim": { "claimName": "b" }, "gcs": store });
    for (patch, path) in [
        (to(json!({ "s3": store })), "spec.backup.destination.s3"),
        (to(json!({ "gcs": {} })), "spec.backup.destination.gcs"),
        (to(json!({ "azure": { "account": 5 } })), "spec.backup.destination.azure"),
        (to(claim), "spec.backup.destination.gcs"),
        (json!({ "restore": {} }), "spec.restore"),
        (json!({ "restore": { "from": { "name": "latest" } } }), "spec.restore"),
    ] {
        let verdict = validate(&cluster(&patch), None);
        let faults: Vec<_> = verdict.faults.iter().map(ToString::to_string).collect();
        assert_eq!(faults, [format!("{path}: Forbidden: not supported by this release")], "{patch}");
    }
}

/// With 0 a pod is gone while its process still writes; etcd needs seven seconds to hand its leadership over.
#[test]
fn a_member_has_the_time_to_stop() {
    let with = |seconds: i64| json!({ "pod": { "terminationGracePeriodSeconds": seconds } });
    let path: &[&str] = &["spec.pod.terminationGracePeriodSeconds"];
    judge_each(&[
        (with(10), FINE, false),
        (with(3600), FINE, false),
        (with(9), path, false),
        (with(0), path, false),
        (with(-1), path, false),
        (with(3601), path, false),
    ]);
    let verdict = validate(&cluster(&with(0)), None);
    assert!(verdict.faults[0].detail.contains("from 10 to 3600"), "{verdict:?}");
}

#[test]
fn retention_keeps_something() {
    let with = |retention: Value| json!({ "backup": { "retention": retention } });
    judge_each(&[
        (with(json!({ "keepLast": 7, "maxAge": "720h" })), FINE, false),
        (with(json!({ "keepLast": 1 })), FINE, true),
        (with(json!({ "keepLast": 0 })), &["spec.backup.retention.keepLast"], false),
        (with(json!({ "maxAge": "30d" })), &["spec.backup.retention.maxAge"], false),
        (with(json!({ "maxAge": "0s" })), &["spec.backup.retention.maxAge"], false),
        (with(json!({ "maxAge": "-1h" })), &["spec.backup.retention.maxAge"], false),
    ]);
}

#[test]
fn compaction_counts_time_or_revisions() {
    let with = |compaction: Value| json!({ "options": { "autoCompaction": compaction } });
    let path: &[&str] = &["spec.options.autoCompaction.retention"];
    judge_each(&[
        (with(json!({ "retention": "1h" })), FINE, false),
        (with(json!({ "mode": "Periodic", "retention": "0" })), path, false),
        (with(json!({ "mode": "Periodic", "retention": 1 })), path, false),
        (with(json!({ "mode": "Revision", "retention": 1000 })), FINE, false),
        (with(json!({ "mode": "Revision", "retention": "1000" })), FINE, false),
        (with(json!({ "mode": "Revision", "retention": "1h" })), path, false),
        (with(json!({ "mode": "Revision", "retention": 0 })), path, false),
        (with(json!({ "mode": "Periodic" })), path, false),
    ]);
}

#[test]
fn an_election_takes_five_heartbeats() {
    let with =
        |beat: &str, wait: &str| json!({ "options": { "heartbeatInterval": beat, "electionTimeout": wait } });
    let (beat, wait): (&[&str], &[&str]) =
        (&["spec.options.heartbeatInterval"], &["spec.options.electionTimeout"]);
    judge_each(&[
        (with("100ms", "500ms"), FINE, false),
        (with("100ms", "499ms"), wait, false),
        (with("100ms", "51s"), wait, false),
        (with("0s", "1s"), beat, false),
        (with("1.5ms", "1s"), beat, false),
        (with("fast", "1s"), beat, false),
        (json!({ "options": { "heartbeatInterval": "201ms" } }), wait, false),
        (json!({ "options": { "electionTimeout": "400ms" } }), wait, false),
        (json!({ "options": { "snapshotCount": 99 } }), &["spec.options.snapshotCount"], false),
        (json!({ "options": { "snapshotCount": 100 } }), FINE, false),
    ]);
}

#[test]
fn flags_are_those_of_the_version_and_not_the_operators() {
    let with =
        |flag: &str, version: &str| json!({ "version": version, "options": { "extra": { flag: "1" } } });
    for (flag, version, accepted) in [
        ("max-txn-ops", "3.6.16", true),
        ("experimental-corrupt-check-time", "3.6.16", true),
        ("experimental-corrupt-check-time", "3.7.3", false),
        ("corrupt-check-time", "3.7.3", true),
        ("corrupt-check-time", "3.5.33", false),
        ("data-dir", "3.6.16", false),
        ("initial-cluster-state", "3.6.16", false),
        ("strict-reconfig-check", "3.6.16", false),
        ("quota-backend-bytes", "3.6.16", false),
        ("--max-txn-ops", "3.6.16", false),
        ("no-such-flag", "3.6.16", false),
    ] {
        let paths = if accepted { vec![] } else { vec![format!("spec.options.extra[{flag}]")] };
        assert_eq!(refused(&validate(&cluster(&with(flag, version)), None)), paths, "{flag} on {version}");
    }
}

#[test]
fn the_overlay_leaves_the_operators_own_alone() {
    let with = |pod: Value| json!({ "pod": pod });
    judge_each(&[
        (with(json!({ "env": [{ "name": "GOGC", "value": "50" }] })), FINE, false),
        (
            with(json!({ "env": [{ "name": "A" }, { "name": "ETCD_DATA_DIR", "value": "/" }] })),
            &["spec.pod.env[1].name"],
            false,
        ),
        (with(json!({ "labels": { "team": "a" }, "annotations": { "a/b": "any thing" } })), FINE, false),
        (
            with(json!({ "labels": { "app.kubernetes.io/name": "x" } })),
            &["spec.pod.labels[app.kubernetes.io/name]"],
            false,
        ),
        (
            with(json!({ "labels": { "team": "a b" }, "annotations": { "a b": "" } })),
            &["spec.pod.labels[team]", "spec.pod.annotations[a b]"],
            false,
        ),
        (with(json!({ "priorityClassName": "High" })), &["spec.pod.priorityClassName"], false),
        (with(json!({ "dnsConfig": { "nameservers": ["10.96.0.10"], "searches": ["a.b"] } })), FINE, false),
        (
            with(json!({ "dnsConfig": { "nameservers": ["dns"] } })),
            &["spec.pod.dnsConfig.nameservers[0]"],
            false,
        ),
        (json!({ "image": { "repository": "registry.example.com:5000/etcd" } }), FINE, false),
        (
            json!({ "image": { "repository": "quay.io/coreos/etcd:v3.6.16" } }),
            &["spec.image.repository"],
            false,
        ),
        (
            json!({ "image": { "repository": "quay.io/coreos/etcd@sha256:0" } }),
            &["spec.image.repository"],
            false,
        ),
        (
            json!({ "image": { "pullSecrets": [{ "name": "A" }] } }),
            &["spec.image.pullSecrets[0].name"],
            false,
        ),
    ]);
}

#[test]
fn a_name_leaves_room_for_the_names_made_of_it() {
    let named = |metadata: Value| {
        let mut object = cluster(&json!({}));
        object["metadata"] = metadata;
        refused(&validate(&object, None))
    };
    assert_eq!(named(json!({ "name": "a".repeat(45) })), FINE);
    assert_eq!(named(json!({ "generateName": "etcd-" })), FINE);
    for name in [&"a".repeat(46), "my.cluster", "1st", "My", ""] {
        assert_eq!(named(json!({ "name": name })), ["metadata.name"], "{name:?}");
    }
}

#[test]
fn what_is_immutable_stays() {
    let change = |from: Value, to: Value| refused(&validate(&cluster(&to), Some(&cluster(&from))));
    let secrets = secrets();
    for (from, to, path) in [
        (json!({}), json!({ "storage": { "medium": "Memory" } }), "spec.storage.medium"),
        (json!({}), json!({ "storage": { "storageClassName": "fast" } }), "spec.storage.storageClassName"),
        (json!({ "storage": { "storageClassName": "fast" } }), json!({}), "spec.storage.storageClassName"),
        (json!({}), json!({ "tls": { "mode": "Disabled" } }), "spec.tls.mode"),
        (json!({}), json!({ "tls": { "mode": "Secrets", "secrets": secrets } }), "spec.tls.mode"),
        (json!({}), json!({ "auth": { "enabled": true } }), "spec.auth.enabled"),
        (json!({}), json!({ "storage": { "size": "9Gi" } }), "spec.storage.size"),
    ] {
        assert_eq!(change(from.clone(), to), [path]);
        assert_eq!(change(from.clone(), from), FINE);
    }
    assert_eq!(change(json!({}), json!({ "storage": { "size": "20Gi" } })), FINE);
    assert_eq!(change(json!({}), json!({ "storage": { "size": "10240Mi" } })), FINE);
    assert_eq!(change(json!({}), json!({ "auth": { "enabled": false } })), FINE, "absent means false");
    assert_eq!(change(json!({ "tls": null }), json!({})), FINE, "absent means Automatic");
}

/// From the stored version, with what was seen, to another: is that accepted, and is there a warning?
fn upgrade(from: &str, status: &Value, to: &str) -> (bool, bool) {
    let old = seen(cluster(&json!({ "version": from })), status);
    let verdict = validate(&cluster(&json!({ "version": to })), Some(&old));
    (verdict.accepted(), warned(&verdict))
}

#[test]
fn versions_move_up_one_minor_at_a_time_as_measured_by_what_runs() {
    let none = json!({});
    let runs = |version: &str, agreed: &str| json!({ "version": version, "clusterVersion": agreed });
    for (from, status, to, accepted, warns) in [
        ("3.6.11", none.clone(), "3.6.16", true, false),
        ("3.6.11", none.clone(), "3.7.3", true, false),
        ("3.6.10", none.clone(), "3.7.3", false, false),
        ("3.5.32", none.clone(), "3.6.16", true, false),
        ("3.5.31", none.clone(), "3.6.16", false, false),
        ("3.5.33", none.clone(), "3.7.3", false, false),
        ("3.7.3", none.clone(), "3.6.16", false, false),
        ("3.6.16", none, "3.6.15", true, true),
        // Two quick edits: the second is measured by what runs, not by what was asked for.
        ("3.6.16", runs("3.5.33", "3.5.0"), "3.7.3", false, false),
        ("3.6.16", runs("3.6.16", "3.6.0"), "3.7.3", true, false),
        // Back to what runs, before the first member has moved; not once the members have agreed on more.
        ("3.7.3", runs("3.6.16", "3.6.0"), "3.6.16", true, false),
        ("3.7.3", runs("3.6.16", "3.7.0"), "3.6.16", false, false),
    ] {
        assert_eq!(upgrade(from, &status, to), (accepted, warns), "{from} to {to} with {status}");
    }
}

#[test]
fn an_upgrade_under_way_can_only_be_rolled_back() {
    let status = |agreed: &str| json!({ "version": "3.6.16", "clusterVersion": agreed, "operation": { "type": "Upgrade", "target": "3.7.3" } });
    assert_eq!(upgrade("3.7.3", &status("3.6"), "3.6.16"), (true, false));
    assert!(!upgrade("3.7.3", &status("3.7"), "3.6.16").0);
    assert!(!upgrade("3.7.3", &status("3.6"), "3.7.2").0);
    assert!(!upgrade("3.7.3", &status("3.6"), "3.6.15").0);
}

#[test]
fn a_lower_minor_has_to_be_allowed_and_to_be_the_next_one() {
    let runs = |version: &str| json!({ "version": version, "clusterVersion": &version[..3] });
    let judged = |from: &str, status: &Value, to: &str, allow: &str| {
        let old = seen(cluster(&json!({ "version": from })), status);
        let mut new = cluster(&json!({ "version": to }));
        new["metadata"]["annotations"] = json!({ ALLOW_DOWNGRADE: allow });
        let verdict = validate(&new, Some(&old));
        verdict.faults.first().map(Fault::message)
    };
    for (from, to) in [("3.6.16", "3.5.33"), ("3.6.16", "3.5.32"), ("3.7.3", "3.6.11")] {
        assert_eq!(judged(from, &runs(from), to, "true"), None, "{from} to {to}");
        assert_eq!(judged(from, &json!({}), to, "true"), None, "{from} to {to}");
        let said = judged(from, &runs(from), to, "yes").unwrap();
        assert!(said.contains("gatehouse.dev/allow-downgrade: \"true\""), "{said}");
    }
    for (from, to, words) in [
        ("3.7.3", "3.5.33", "one minor down at most"),
        ("3.6.16", "3.5.31", "must be 3.5.32 or later"),
        ("3.7.3", "3.6.10", "must be 3.6.11 or later"),
    ] {
        let said = judged(from, &runs(from), to, "true").unwrap();
        assert!(said.contains(words), "{said}");
    }
    // On its way down it may be given up, and begun again.
    let under_way = json!({ "version": "3.5.33", "clusterVersion": "3.5", "operation": { "type": "Upgrade" },
        "members": [{ "name": "a-0", "version": "3.6.16" }, { "name": "a-1", "version": "3.5.33" }] });
    assert_eq!(judged("3.5.33", &under_way, "3.6.16", "true"), None);
    assert_eq!(judged("3.6.16", &under_way, "3.5.33", "false"), None);
    let said = judged("3.5.33", &under_way, "3.6.15", "true").unwrap();
    assert!(said.contains("on their way"), "{said}");
}

#[test]
fn members_are_not_removed_while_that_would_hurt() {
    let scale = |from: i32, status: Value, to: i32| {
        let old = seen(cluster(&json!({ "replicas": from })), &status);
        let verdict = validate(&cluster(&json!({ "replicas": to })), Some(&old));
        (verdict.accepted(), warned(&verdict))
    };
    let doing = |operation: &str| json!({ "operation": { "type": operation } });
    let lost = json!({ "conditions": [{ "type": "QuorumLost", "status": "True", "reason": "QuorumLost",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] });
    let failed =
        json!({ "members": [{ "name": "a-0", "healthy": false }, { "name": "a-1", "healthy": true }] });
    for (from, status, to, expected) in [
        (3, json!({}), 5, (true, false)),
        (1, json!({}), 5, (true, true)),
        (3, json!({}), 1, (true, false)),
        (5, doing("ScaleOut"), 3, (true, true)),
        (3, doing("ScaleOut"), 5, (true, false)),
        (3, doing("ScaleIn"), 5, (true, true)),
        (5, doing("ScaleIn"), 3, (true, false)),
        (3, doing("Recover"), 1, (false, false)),
        (3, doing("SomethingNewer"), 1, (true, false)),
        (3, lost.clone(), 1, (false, false)),
        (3, lost.clone(), 5, (true, false)),
        (3, lost, 0, (true, false)),
        (5, failed.clone(), 3, (true, true)),
        (3, failed, 3, (true, false)),
    ] {
        assert_eq!(scale(from, status.clone(), to), expected, "{from} to {to} with {status}");
    }
}

#[test]
fn a_request_to_recover_is_judged_when_it_is_made() {
    let asked = |mut object: Value, text: &str| {
        object["metadata"]["annotations"] = json!({ "gatehouse.dev/recover-quorum": text });
        object
    };
    let lost = json!({ "conditions": [{ "type": "QuorumLost", "status": "True", "reason": "QuorumLost",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] });
    let (sound, memory) = (json!({}), json!({ "storage": { "medium": "Memory" } }));
    let path = ["metadata.annotations[gatehouse.dev/recover-quorum]"];
    for (spec, status, text, faults, warns) in [
        (&sound, &lost, "auto", &[][..], false),
        (&sound, &lost, "my-cluster-1/again", &[], false),
        (&sound, &json!({}), "auto", &[], true),
        (&sound, &lost, "yes", &path, false),
        (&sound, &lost, "your-cluster-1", &path, false),
        (&memory, &lost, "auto", &path, false),
    ] {
        let old = seen(cluster(spec), status);
        let new = asked(cluster(spec), text);
        let verdict = validate(&new, Some(&old));
        assert_eq!(refused(&verdict), faults, "{text}");
        assert_eq!(warned(&verdict), warns, "{text}: {verdict:?}");
        let again = validate(&new, Some(&asked(old, text)));
        assert!(again.accepted() && !warned(&again), "it stays as it is: {again:?}");
    }
    assert_eq!(refused(&validate(&asked(cluster(&sound), "yes"), None)), path);
}

#[test]
fn version_and_replicas_in_one_edit_get_a_word_about_their_order() {
    let old = cluster(&json!({}));
    let verdict = validate(&cluster(&json!({ "version": "3.7.3", "replicas": 5 })), Some(&old));
    assert!(verdict.accepted() && verdict.warnings.len() == 1, "{verdict:?}");
}

#[test]
fn scaling_has_the_same_bounds() {
    assert!(validate_scale(5, 3).accepted());
    assert!(validate_scale(0, 3).accepted());
    assert_eq!(refused(&validate_scale(8, 3)), ["spec.replicas"]);
    assert_eq!(refused(&validate_scale(-1, 3)), ["spec.replicas"]);
    assert!(warned(&validate_scale(4, 3)));
    assert!(warned(&validate_scale(1, 5)));
}

#[test]
fn members_without_a_request_for_memory_get_a_word_once() {
    let with = |resources: Value| cluster(&json!({ "pod": { "resources": resources } }));
    let bare = with(Value::Null);
    let verdict = validate(&bare, None);
    assert!(verdict.accepted(), "{verdict:?}");
    assert!(
        verdict.warnings.iter().any(|one| one.as_str().starts_with("spec.pod.resources:")),
        "{verdict:?}"
    );
    for (new, old, warns) in [
        (with(json!({ "requests": { "memory": null } })), None, true),
        (with(json!({ "requests": null, "limits": { "memory": "4Gi" } })), None, false),
        (with(json!({})), None, false),
        (bare.clone(), Some(&bare), false),
        (bare.clone(), Some(&with(json!({}))), true),
    ] {
        assert_eq!(warned(&validate(&new, old)), warns, "{new}");
    }
}

#[test]
fn every_fault_is_told_at_once() {
    let verdict = validate(
        &cluster(&json!({
            "replicas": 9, "version": "v3.6.16", "storage": { "size": "10GB" },
            "backup": { "schedule": "0 25 * * *", "timeZone": "berlin" }
        })),
        None,
    );
    assert_eq!(
        refused(&verdict),
        [
            "spec.replicas",
            "spec.version",
            "spec.storage.size",
            "spec.backup.schedule",
            "spec.backup.timeZone",
            "spec.backup.destination"
        ]
    );
}

#[test]
fn a_spec_that_does_not_decode_is_one_fault() {
    assert_eq!(refused(&validate(&cluster(&json!({ "replicas": "three" })), None)), ["spec"]);
}
