//! How members run: backups, options, flags and the overlay of their pods.

use std::collections::BTreeMap;

use super::*;
use crate::api::field::Rendered as _;

#[test]
fn schedules_are_those_of_a_cron_job() {
    let with = |schedule: &str| {
        json!({ "backup": { "schedule": schedule, "timeZone": "Europe/Berlin",
                "destination": { "persistentVolumeClaim": { "claimName": "b" } } } })
    };
    let path: &[&str] = &["spec.backup.schedule"];
    validate_each(&[
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
    validate_each(&[
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
        let validation = validate(&cluster(&patch), None);
        assert_eq!(refused(&validation), paths, "{patch}: {:?}", validation.errors);
        assert!(!warned(&validation), "{patch}: {:?}", validation.warnings);
    }
}

/// With 0 a pod is gone while its process still writes; etcd needs seven seconds to hand its leadership over.
#[test]
fn a_member_has_the_time_to_stop() {
    let with = |seconds: i64| json!({ "pod": { "terminationGracePeriodSeconds": seconds } });
    let path: &[&str] = &["spec.pod.terminationGracePeriodSeconds"];
    validate_each(&[
        (with(10), FINE, false),
        (with(3600), FINE, false),
        (with(9), path, false),
        (with(0), path, false),
        (with(-1), path, false),
        (with(3601), path, false),
    ]);
    let validation = validate(&cluster(&with(0)), None);
    assert!(validation.errors[0].detail.contains("from 10 to 3600"), "{validation:?}");
}

#[test]
fn retention_keeps_something() {
    let with = |retention: Value| json!({ "backup": { "retention": retention } });
    validate_each(&[
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
    validate_each(&[
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
    validate_each(&[
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
    let with = |flag: &str, version: &str| {
        let value = if flag.ends_with("check") { "true" } else { "1m" };
        let value = if flag.ends_with("ops") { "1" } else { value };
        json!({ "version": version, "options": { "extra": { flag: value } } })
    };
    for (flag, version, accepted) in [
        ("max-txn-ops", "3.6.16", true),
        ("experimental-corrupt-check-time", "3.6.16", true),
        ("experimental-corrupt-check-time", "3.7.3", false),
        ("experimental-initial-corrupt-check", "3.5.33", true),
        ("experimental-initial-corrupt-check", "3.6.16", false),
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

/// Etcd of each minor is the judge in `tests/etcd/flag_values.rs`.
#[test]
fn every_value_that_etcd_does_not_start_with_is_refused_in_one_answer() {
    let faulty = [
        ("auth-token", "jwt,pub-key=/a,priv-key=/b,sign-method=RS256"),
        ("cors", "https://shop.example"),
        ("enable-pprof", "yes"),
        ("feature-gates", "LeaseCheckpointPersist"),
        ("grpc-keepalive-interval", "5"),
        ("log-level", "trace"),
        ("max-request-bytes", "50MB"),
        ("raft-read-timeout", "soon"),
        ("tls-min-version", "1.2"),
    ];
    let extra: BTreeMap<_, _> = faulty.into();
    let given = cluster(&json!({ "version": "3.6.16", "options": { "extra": extra } }));
    let validation = validate(&given, None);
    let paths: Vec<_> = faulty.iter().map(|(flag, _)| format!("spec.options.extra[{flag}]")).collect();
    assert_eq!(refused(&validation), paths);
    for (fault, (flag, value)) in validation.errors.iter().zip(faulty) {
        assert_eq!(fault.value.as_deref(), Some(value.rendered().as_str()), "{flag}");
        assert!(
            fault.detail.starts_with("must") || fault.detail.contains("needs"),
            "{flag}: {}",
            fault.detail
        );
    }
}

#[test]
fn flags_beside_a_version_that_does_not_read_are_refused_if_no_minor_takes_them() {
    for version in [json!(null), json!("latest"), json!("3.6"), json!("v3.6.16")] {
        let with = |flag: &str, value: &str| {
            let given = json!({ "version": version, "options": { "extra": { flag: value } } });
            let paths = refused(&validate(&cluster(&given), None));
            paths.into_iter().any(|path| path.starts_with("spec.options.extra"))
        };
        for (flag, value) in [
            ("max-request-bytes", "1000000"),
            ("experimental-corrupt-check-time", "1m"),
            ("experimental-initial-corrupt-check", "true"),
            ("feature-gates", "FastLeaseKeepAlive=true"),
        ] {
            assert!(!with(flag, value), "{version}: {flag}={value}");
        }
        for (flag, value) in [
            ("max-request-bytes", "50MB"),
            ("experimental-corrupt-check-time", "60"),
            ("feature-gates", "NoSuchGate=true"),
            ("data-dir", "/tmp"),
            ("snapshot-count", "1"),
            ("no-such-flag", "1"),
        ] {
            assert!(with(flag, value), "{version}: {flag}={value}");
        }
    }
}

#[test]
fn flags_that_rule_each_other_out_are_refused() {
    let with = |version: &str, extra: Value| {
        let given = json!({ "version": version, "options": { "extra": extra } });
        refused(&validate(&cluster(&given), None))
    };
    let twice = json!({ "corrupt-check-time": "1m", "experimental-corrupt-check-time": "1m" });
    assert_eq!(with("3.6.16", twice), ["spec.options.extra[experimental-corrupt-check-time]"]);
    let versions = json!({ "tls-min-version": "TLS1.3", "tls-max-version": "TLS1.2" });
    assert_eq!(with("3.7.3", versions), ["spec.options.extra[tls-min-version]"]);
    let leases = json!({ "experimental-enable-lease-checkpoint-persist": "true" });
    assert_eq!(with("3.5.33", leases), ["spec.options.extra[experimental-enable-lease-checkpoint-persist]"]);
}

#[test]
fn the_overlay_leaves_the_operators_own_alone() {
    let with = |pod: Value| json!({ "pod": pod });
    validate_each(&[
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
        (with(json!({ "dnsPolicy": "ClusterFirst" })), FINE, false),
        (with(json!({ "dnsPolicy": "Default" })), &["spec.pod.dnsPolicy"], false),
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
