//! The configuration files that the operator renders, read by etcd itself.

use std::fs;
use std::process::{Child, Command, Stdio};

use gatehouse::kinds::etcdcluster::api::flags::{self, Standing};
use gatehouse::kinds::etcdcluster::api::v1::EtcdCluster;
use gatehouse::kinds::etcdcluster::observation::{ConfigEntry, Ordinal, Purpose, Template, Uid};
use gatehouse::kinds::etcdcluster::resources::{config, etcd, stateful_set};
use gatehouse::kinds::etcdcluster::spec::Spec;
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::EtcdVersion;

use crate::bed::Bed;

/// What the log of a seed is called in its room.
const LOG: &str = "seed.log";

/// A value for every flag that users may set.
const FLAGS: &[(&str, &str)] = &[
    ("auth-token", "simple"),
    ("auth-token-ttl", "600"),
    ("backend-batch-interval", "50ms"),
    ("backend-batch-limit", "5000"),
    ("backend-bbolt-freelist-type", "map"),
    ("bcrypt-cost", "5"),
    ("bootstrap-defrag-threshold-megabytes", "1"),
    ("cipher-suites", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
    ("compact-hash-check-time", "2m"),
    ("compaction-batch-limit", "500"),
    ("compaction-sleep-interval", "20ms"),
    ("corrupt-check-time", "3m"),
    ("cors", "*"),
    ("distributed-tracing-address", "localhost:4317"),
    ("distributed-tracing-instance-id", "one"),
    ("distributed-tracing-sampling-rate", "3"),
    ("distributed-tracing-service-name", "etcd"),
    ("downgrade-check-time", "7s"),
    ("enable-distributed-tracing", "false"),
    ("enable-grpc-gateway", "false"),
    ("enable-lease-checkpoint", "true"),
    ("enable-lease-checkpoint-persist", "true"),
    ("enable-pprof", "true"),
    ("feature-gates", "LeaseCheckpoint=true"),
    ("grpc-keepalive-interval", "1h30m"),
    ("grpc-keepalive-min-time", "6s"),
    ("grpc-keepalive-timeout", "21s"),
    ("host-whitelist", "*"),
    ("log-format", "json"),
    ("log-level", "info"),
    ("logger", "zap"),
    ("max-concurrent-streams", "1000"),
    ("max-request-bytes", "1000000"),
    ("max-snapshots", "4"),
    ("max-txn-ops", "77"),
    ("max-wals", "6"),
    ("memory-mlock", "false"),
    ("metrics", "extensive"),
    ("pre-vote", "true"),
    ("raft-read-timeout", "9s"),
    ("raft-write-timeout", "9s"),
    ("snapshot-catchup-entries", "4000"),
    ("stop-grpc-service-on-defrag", "true"),
    ("tls-max-version", "TLS1.3"),
    ("tls-min-version", "TLS1.2"),
    ("txn-mode-write-with-shared-buffer", "false"),
    ("warning-apply-duration", "150ms"),
    ("warning-unary-request-duration", "350ms"),
    ("watch-progress-notify-interval", "9m"),
];

/// The minor of a version.
pub fn minor(version: EtcdVersion) -> u64 {
    version.minor().rsplit_once('.').unwrap().1.parse().unwrap()
}

/// A cluster of one member with these options.
pub fn cluster(version: EtcdVersion, options: &Value) -> Spec {
    let object = json!({
        "apiVersion": "gatehouse.dev/v1",
        "kind": "EtcdCluster",
        "metadata": {"name": "c", "namespace": "shop", "uid": "u-1"},
        "spec": {"replicas": 1, "version": version.release(), "tls": {"mode": "Disabled"}, "options": options},
    });
    let object: EtcdCluster = serde_json::from_value(object).unwrap();
    Spec::resolve(&object, &[])
}

/// A seed that runs by what is rendered for it, but for where it listens and keeps its data.
pub struct Seed {
    process: Child,
    _folder: TempDir,
    /// Where it tells of its health.
    metrics: String,
    /// For its address and its log.
    room: Bed,
}

impl Seed {
    pub fn start(version: EtcdVersion, cluster: &Spec) -> Self {
        // Installed by another test of this process already, it stays.
        let _installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let template: Template = cluster.desired(None).template;
        let entry = ConfigEntry {
            purpose: Purpose::Seed,
            member: None,
            volume: Uid("v".to_owned()),
            template,
            pod: Some(Uid("p".to_owned())),
            raft_index: None,
            skips_check: false,
        };
        let data = config::data(cluster, &[(Ordinal(0), entry)].into(), &[]);
        let (room, folder) = (Bed::new(false), TempDir::new().unwrap());
        let url = room.client_url(0);
        let address = url.trim_start_matches("http://").split(':').next().unwrap().to_owned();
        let path = |name: &str| folder.path().join(name);
        let text =
            data["c-0.yaml"].replace("0.0.0.0", &address).replace(etcd::DATA, path("data").to_str().unwrap());
        fs::write(path("etcd.yaml"), &text).unwrap();
        let process = Command::new(version.tool("etcd").unwrap())
            .arg(format!("--config-file={}", path("etcd.yaml").display()))
            .args(etcd::arguments(cluster))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(room.folder().join(LOG)).unwrap())
            .spawn()
            .unwrap();
        Self { process, _folder: folder, metrics: format!("http://{address}:2381"), room }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.room.folder().join(LOG)).unwrap()
    }

    /// Waits until it answers that.
    pub async fn answers(&mut self, path: &str) {
        let url = format!("{}{path}", self.metrics);
        let (process, room) = (&mut self.process, &self.room);
        room.eventually("answer to a probe", async || {
            let ended = process.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "it has ended\n{}",
                fs::read_to_string(room.folder().join(LOG)).unwrap()
            );
            reqwest::get(&url).await.ok().filter(|answer| answer.status().is_success()).map(|_| ())
        })
        .await;
    }

    /// Waits until it has ended with an error, as it has to by what it was given.
    pub async fn fails(&mut self, given: impl std::fmt::Debug) {
        let url = format!("{}/health?serializable=true", self.metrics);
        let (process, room) = (&mut self.process, &self.room);
        let what = format!("end of a member that was given {given:?}");
        let status = room
            .eventually(&what, async || {
                let ended = process.try_wait().unwrap();
                let serves = reqwest::get(&url).await.is_ok_and(|answer| answer.status().is_success());
                assert!(ended.is_some() || !serves, "{given:?}: it serves");
                ended
            })
            .await;
        assert!(!status.success(), "{given:?}: {status}");
    }

    /// The fields of the log's line of its start.
    fn started_by(&self) -> Value {
        let log = self.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.into_iter().find(|line| line["msg"] == "starting an etcd server").unwrap()
    }
}

impl Drop for Seed {
    fn drop(&mut self) {
        // Nothing is left to be done where it has ended already.
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

pub async fn a_member_runs_by_what_is_rendered_and_answers_its_probes(version: EtcdVersion) {
    let cluster = cluster(
        version,
        &json!({
            "quotaBackendBytes": "4Gi",
            "autoCompaction": {"mode": "Periodic", "retention": "90m"},
            "snapshotCount": 1234,
            "heartbeatInterval": "150ms",
            "electionTimeout": "1500ms",
        }),
    );
    let mut seed = Seed::start(version, &cluster);
    let template = cluster.desired(None).template;
    let set = stateful_set::manifest(&cluster, &template, 1, "guard", false).object;
    let etcd = &set["spec"]["template"]["spec"]["containers"][0];
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        seed.answers(etcd[probe]["httpGet"]["path"].as_str().unwrap()).await;
    }
    let started = seed.started_by();
    for (field, value) in [
        ("name", json!("c-0")),
        ("initial-advertise-peer-urls", json!(["http://c-0.c.shop.svc:2380"])),
        ("advertise-client-urls", json!(["http://c-0.c.shop.svc:2379"])),
        ("initial-cluster", json!("c-0=http://c-0.c.shop.svc:2380")),
        ("initial-cluster-state", json!("new")),
        ("initial-cluster-token", json!("c-u-1")),
        ("force-new-cluster", json!(false)),
        ("heartbeat-interval", json!("150ms")),
        ("election-timeout", json!("1.5s")),
        ("snapshot-count", json!(1234)),
        ("quota-backend-bytes", json!(4_u64 << 30)),
        ("snapshot-catchup-entries", json!(if minor(version) > 5 { 20_000 } else { 5_000 })),
        ("auto-compaction-mode", json!("periodic")),
        ("auto-compaction-retention", json!("1h30m0s")),
        ("pre-vote", json!(true)),
        // Since 3.6 it is a gate, of which this field knows nothing.
        ("initial-corrupt-check", json!(minor(version) == 5)),
    ] {
        assert_eq!(started[field], value, "{field}\n{started:#}");
    }
}

pub async fn every_flag_that_is_free_is_written_as_etcd_reads_it(version: EtcdVersion) {
    let minor = minor(version);
    // Some do not go with their own former names.
    for prefix in ["", "experimental-"] {
        let named = FLAGS.iter().map(|(flag, value)| (format!("{prefix}{flag}"), *value));
        let free = named.filter(|(flag, _)| flags::standing(flag, minor) == Standing::Free);
        let extra: serde_json::Map<_, _> = free.map(|(flag, value)| (flag, json!(value))).collect();
        if extra.is_empty() {
            continue;
        }
        let mut seed = Seed::start(version, &cluster(version, &json!({"extra": extra})));
        seed.answers("/health?serializable=true").await;
        let started = seed.started_by();
        let wanted = match prefix {
            "" => ("max-request-bytes", json!(1_000_000)),
            _ => ("corrupt-check-time-interval", json!("3m0s")),
        };
        assert_eq!(started.get(wanted.0), Some(&wanted.1), "{started:#}");
    }
}
