//! The values of flags, judged by the gate and by etcd of each minor.
//!
//! A value that the gate takes is one that etcd starts with, and a value that it refuses is one that etcd does not start
//! with. Where the gate refuses more than etcd does, that is no value of these tables: jwt, whose key no member has,
//! times below zero, and the level `warning`, which some patches of a minor start with and others do not.

use std::collections::BTreeMap;

use futures::future::join_all;
use gatehouse::kinds::etcdcluster::api::flags::{self, Standing};
use serde_json::json;
use testbed::EtcdVersion;

use crate::configuration::{Seed, cluster, minor};

/// Processes of etcd side by side.
const SIDE_BY_SIDE: usize = 4;

/// Values of flags, some of which etcd takes.
const VALUES: &[(&str, &[&str])] = &[
    ("auth-token", &["simple", "", "Simple", "jwt", "jwt,sign-method=RS256"]),
    ("auth-token-ttl", &["600", "1", "0", "5m", "-1"]),
    ("backend-batch-interval", &["100ms", "0", "100", "-", "1.5s"]),
    ("backend-batch-limit", &["5000", "0", "-1", "10k", "9223372036854775808"]),
    ("backend-bbolt-freelist-type", &["map", "array", ""]),
    ("bcrypt-cost", &["4", "10", "31", "32", "ten"]),
    ("bootstrap-defrag-threshold-megabytes", &["0", "100", "100Mi"]),
    (
        "cipher-suites",
        &[
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_RC4_128_SHA,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
            "",
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_RSA_WITH_RC4_128_SHA",
            "ECDHE-RSA-AES128-GCM-SHA256",
        ],
    ),
    ("compact-hash-check-time", &["1m", "0", "0s", "60"]),
    ("compaction-batch-limit", &["1000", "0", "-1", "1_000"]),
    ("compaction-sleep-interval", &["10ms", "0", "10"]),
    ("corrupt-check-time", &["0", "12h", "1d"]),
    (
        "cors",
        &[
            "*",
            "",
            "http://a.example:80",
            "https://a.example:443,http://[::1]:80",
            "https://a.example",
            "a.example",
            "*,http://a.example:80",
            "http://a.example:80/path",
            "ftp://a.example:21",
        ],
    ),
    ("distributed-tracing-address", &["localhost:4317", ""]),
    ("distributed-tracing-instance-id", &["one", ""]),
    ("distributed-tracing-sampling-rate", &["0", "-1", "1000001", "0.5"]),
    ("distributed-tracing-service-name", &["etcd", ""]),
    ("downgrade-check-time", &["5s", "5"]),
    ("enable-distributed-tracing", &["false", "no"]),
    ("enable-grpc-gateway", &["true", "false", "1", "True", ""]),
    ("enable-lease-checkpoint", &["false", "on"]),
    ("enable-lease-checkpoint-persist", &["false", "off"]),
    ("enable-pprof", &["false", "yes"]),
    (
        "feature-gates",
        &[
            "",
            "LeaseCheckpoint=true",
            "LeaseCheckpoint=T, SetMemberLocalAddr=0,",
            "AllAlpha=false",
            "LeaseCheckpoint",
            "LeaseCheckpoint=yes",
            "leasecheckpoint=true",
            "NoSuchGate=true",
            "FastLeaseKeepAlive=true",
            "PriorityRequest=false",
        ],
    ),
    ("grpc-keepalive-interval", &["2h", "0", "1h30m", "5", "5 s"]),
    ("grpc-keepalive-min-time", &["5s", "0s", "5sec"]),
    ("grpc-keepalive-timeout", &["20s", "20"]),
    ("host-whitelist", &["*", "", "a,b"]),
    ("initial-corrupt-check", &["true", "false", "t"]),
    ("log-format", &["json", "console", "", "text", "JSON"]),
    ("log-level", &["info", "Warn", "DEBUG", "", "trace", "none"]),
    ("logger", &["zap", "", "capnslog", "klog"]),
    ("max-concurrent-streams", &["1000", "4294967295", "4294967296", "-1", ""]),
    (
        "max-request-bytes",
        &["1572864", "+1572864", "1500000", "50MB", "1.5Mi", "1e6", "0x180000", "-1", "18446744073709551616"],
    ),
    ("max-snapshots", &["0", "5", "five"]),
    ("max-txn-ops", &["128", "0", "1024 ", "1024.0"]),
    ("max-wals", &["0", "5", "-5"]),
    ("memory-mlock", &["false", "disabled"]),
    ("metrics", &["basic", "extensive", "all"]),
    ("pre-vote", &["true", "yes"]),
    ("raft-read-timeout", &["5s", "0", "5"]),
    ("raft-write-timeout", &["5s", "1m30s", "fast"]),
    ("snapshot-catchup-entries", &["5000", "0", "5k"]),
    ("stop-grpc-service-on-defrag", &["true", "1"]),
    ("tls-max-version", &["", "TLS1.3", "TLS1.2", "TLS1.1", "1.3"]),
    ("tls-min-version", &["", "TLS1.2", "TLS1.3", "TLS1.0", "tls1.2"]),
    ("txn-mode-write-with-shared-buffer", &["true", "0"]),
    ("warning-apply-duration", &["100ms", "100"]),
    ("warning-unary-request-duration", &["300ms", "0", "300"]),
    ("watch-progress-notify-interval", &["10m", "10"]),
];

/// Flags side by side, some of which etcd does not take together.
const PAIRS: &[&[(&str, &str)]] = &[
    &[("corrupt-check-time", "1m"), ("experimental-corrupt-check-time", "1m")],
    &[("snapshot-catchup-entries", "5000"), ("experimental-snapshot-catchup-entries", "5000")],
    &[("feature-gates", "LeaseCheckpoint=true"), ("experimental-enable-lease-checkpoint", "true")],
    &[("feature-gates", "LeaseCheckpoint=true"), ("experimental-stop-grpc-service-on-defrag", "true")],
    &[("feature-gates", "LeaseCheckpointPersist=true"), ("experimental-enable-lease-checkpoint", "true")],
    &[("feature-gates", "LeaseCheckpointPersist=true")],
    &[("feature-gates", "LeaseCheckpointPersist=true,LeaseCheckpoint=true")],
    &[("feature-gates", "AllAlpha=true")],
    &[("experimental-enable-lease-checkpoint-persist", "true")],
    &[
        ("experimental-enable-lease-checkpoint-persist", "true"),
        ("experimental-enable-lease-checkpoint", "true"),
    ],
    &[("tls-min-version", "TLS1.3"), ("tls-max-version", "TLS1.2")],
    &[("tls-min-version", "TLS1.3"), ("tls-max-version", "TLS1.3")],
    &[("tls-min-version", "TLS1.3"), ("cipher-suites", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")],
    &[("tls-min-version", "TLS1.2"), ("cipher-suites", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")],
    &[("enable-distributed-tracing", "true"), ("distributed-tracing-sampling-rate", "1000001")],
    &[("enable-distributed-tracing", "true"), ("distributed-tracing-sampling-rate", "1000000")],
    &[
        ("experimental-enable-distributed-tracing", "true"),
        ("experimental-distributed-tracing-sampling-rate", "-1"),
    ],
];

type Extra = BTreeMap<String, String>;

fn seed(version: EtcdVersion, extra: &Extra) -> Seed {
    Seed::start(version, &cluster(version, &json!({"extra": extra})))
}

fn is_taken(extra: &Extra, minor: u64) -> bool {
    extra.iter().all(|(flag, value)| flags::fault(flag, value, minor).is_none())
        && flags::conflicts(extra, minor).is_empty()
}

/// Starts one process for each, which has to end.
async fn are_refused_by_etcd(version: EtcdVersion, refused: &[Extra]) {
    for some in refused.chunks(SIDE_BY_SIDE) {
        let mut seeds: Vec<_> = some.iter().map(|extra| seed(version, extra)).collect();
        let ends = seeds.iter_mut().zip(some).map(|(seed, extra)| seed.fails(extra));
        join_all(ends).await;
    }
}

/// Each flag of `taken` with its next value, as few processes as there are values of one flag.
fn batches(mut taken: BTreeMap<String, Vec<String>>, minor: u64) -> Vec<Extra> {
    let mut batches = Vec::new();
    while taken.values().any(|values| !values.is_empty()) {
        let mut batch = Extra::new();
        for (flag, values) in &mut taken {
            let Some(value) = values.pop() else { continue };
            batch.insert(flag.clone(), value.clone());
            if !is_taken(&batch, minor) {
                batch.remove(flag);
                values.push(value);
            }
        }
        batches.push(batch);
    }
    batches
}

pub async fn values_that_the_gate_takes_are_those_that_etcd_starts_with(version: EtcdVersion) {
    let minor = minor(version);
    for prefix in ["", "experimental-"] {
        let named = VALUES.iter().map(|(flag, values)| (format!("{prefix}{flag}"), *values));
        let free = named.filter(|(flag, _)| flags::standing(flag, minor) == Standing::Free);
        let (mut taken, mut refused) = (BTreeMap::new(), Vec::new());
        for (flag, values) in free {
            for value in values {
                let alone = Extra::from([(flag.clone(), (*value).to_owned())]);
                if is_taken(&alone, minor) {
                    taken.entry(flag.clone()).or_insert_with(Vec::new).push((*value).to_owned());
                } else {
                    refused.push(alone);
                }
            }
        }
        assert!(taken.is_empty() == refused.is_empty(), "{prefix}: {taken:?} and {refused:?}");
        are_refused_by_etcd(version, &refused).await;
        for batch in batches(taken, minor) {
            seed(version, &batch).answers("/health?serializable=true").await;
        }
    }
}

pub async fn flags_that_the_gate_takes_together_are_those_that_etcd_starts_with(version: EtcdVersion) {
    let minor = minor(version);
    let all = PAIRS.iter().map(|pairs| -> Extra {
        pairs.iter().map(|(flag, value)| ((*flag).to_owned(), (*value).to_owned())).collect()
    });
    let free = all.filter(|extra| extra.keys().all(|flag| flags::standing(flag, minor) == Standing::Free));
    let (taken, refused): (Vec<_>, Vec<_>) = free.partition(|extra| is_taken(extra, minor));
    assert!(!taken.is_empty() && !refused.is_empty(), "{taken:?} and {refused:?}");
    are_refused_by_etcd(version, &refused).await;
    for extra in taken {
        seed(version, &extra).answers("/health?serializable=true").await;
    }
}

/// Every flag that may be set has values here.
pub fn every_flag_has_values() {
    let named: Vec<_> = VALUES.iter().map(|(flag, _)| *flag).collect();
    let lacks = |flag: &str| {
        let bare = flag.strip_prefix("experimental-").unwrap_or(flag);
        !named.contains(&bare)
    };
    let free: Vec<_> = [5, 6, 7].into_iter().flat_map(flags::free).filter(|flag| lacks(flag)).collect();
    assert!(free.is_empty(), "{free:?}");
}
