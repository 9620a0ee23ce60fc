//! The flags of etcd: which minor has which, which of them belong to the operator, and which values etcd starts with.
//!
//! Source: `server/etcdmain/help.go` of etcd 3.5.33, 3.6.14 and 3.7.1.

mod pairs;
mod values;

pub use pairs::conflicts;
pub use values::{fault, number};

/// Whether a flag that a user asks for is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It may be set.
    Free,
    /// The operator sets it, or relies on how it stands.
    Owned,
    /// It has a field of its own, below `spec.options`.
    Field(&'static str),
    /// Etcd of that minor does not have it; other minors do.
    Elsewhere,
    /// No etcd that is supported has it.
    Unknown,
}

/// Whether `flag`, which has no leading dashes, is accepted on etcd 3.`minor`.
#[must_use]
pub fn standing(flag: &str, minor: u64) -> Standing {
    if let Some((_, field)) = FIELDS.iter().find(|(name, _)| *name == flag) {
        return Standing::Field(field);
    }
    if OWNED.contains(&flag) {
        return Standing::Owned;
    }
    let home = HOMES.iter().find(|home| home.flags.contains(&flag));
    match home {
        Some(home) if (home.first..=home.last).contains(&minor) => Standing::Free,
        Some(_) => Standing::Elsewhere,
        None => Standing::Unknown,
    }
}

/// The flags that may be set on etcd 3.`minor`.
pub fn free(minor: u64) -> impl Iterator<Item = &'static str> {
    let homes = HOMES.iter().filter(move |home| (home.first..=home.last).contains(&minor));
    homes.flat_map(|home| home.flags.iter().copied())
}

/// How the value of a flag is written into a configuration file of etcd, which has types where a command line has text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As text.
    Text,
    /// As a whole number.
    Number,
    /// As true or false.
    Switch,
    /// As a whole number of nanoseconds.
    Nanoseconds,
    /// As a list of texts.
    List,
    /// Not at all: the command line alone has it.
    Argument,
}

/// How the value of `flag` is written into a configuration file.
///
/// Source: the fields of `Config` in `server/embed/config.go` of etcd 3.5.33, 3.6.16 and 3.7.3.
#[must_use]
pub fn form(flag: &str) -> Form {
    let bare = flag.strip_prefix("experimental-").unwrap_or(flag);
    let forms = [
        (Form::Number, NUMBERS),
        (Form::Switch, SWITCHES),
        (Form::Nanoseconds, DURATIONS),
        (Form::List, LISTS),
        (Form::Argument, ARGUMENTS),
    ];
    forms.into_iter().find(|(_, flags)| flags.contains(&bare)).map_or(Form::Text, |(form, _)| form)
}

/// What `flag` is called in a configuration file.
#[must_use]
pub fn key(flag: &str) -> &str {
    match flag {
        // The file of 3.6 spells it so; etcd-io/etcd#15033.
        "experimental-snapshot-catchup-entries" => "experimental-snapshot-catch-up-entries",
        other => other,
    }
}

/// Flags that count something, without the word `experimental`.
const NUMBERS: &[&str] = &[
    "auth-token-ttl",
    "backend-batch-limit",
    "bcrypt-cost",
    "bootstrap-defrag-threshold-megabytes",
    "compaction-batch-limit",
    "distributed-tracing-sampling-rate",
    "max-concurrent-streams",
    "max-request-bytes",
    "max-snapshots",
    "max-txn-ops",
    "max-wals",
    "snapshot-catchup-entries",
];

/// Flags that are on or off.
const SWITCHES: &[&str] = &[
    "enable-distributed-tracing",
    "enable-grpc-gateway",
    "enable-lease-checkpoint",
    "enable-lease-checkpoint-persist",
    "enable-pprof",
    "initial-corrupt-check",
    "memory-mlock",
    "pre-vote",
    "stop-grpc-service-on-defrag",
    "txn-mode-write-with-shared-buffer",
];

/// Flags that are a time.
const DURATIONS: &[&str] = &[
    "backend-batch-interval",
    "compact-hash-check-time",
    "compaction-sleep-interval",
    "corrupt-check-time",
    "downgrade-check-time",
    "grpc-keepalive-interval",
    "grpc-keepalive-min-time",
    "grpc-keepalive-timeout",
    "warning-apply-duration",
    "warning-unary-request-duration",
    "watch-progress-notify-interval",
];

/// Flags that are a list, with commas on the command line.
const LISTS: &[&str] = &["cipher-suites"];

/// Flags that a configuration file cannot say.
const ARGUMENTS: &[&str] = &["raft-read-timeout", "raft-write-timeout"];

/// Flags and the minors that have them.
struct Home {
    first: u64,
    last: u64,
    flags: &'static [&'static str],
}

const HOMES: &[Home] = &[
    Home { first: 5, last: 7, flags: EVERYWHERE },
    Home { first: 6, last: 7, flags: SINCE_6 },
    Home { first: 5, last: 6, flags: UNTIL_6 },
    Home { first: 5, last: 5, flags: ONLY_5 },
    Home { first: 6, last: 6, flags: ONLY_6 },
];

/// Flags with a field of their own, and that field below `spec.options`.
const FIELDS: &[(&str, &str)] = &[
    ("auto-compaction-mode", "autoCompaction.mode"),
    ("auto-compaction-retention", "autoCompaction.retention"),
    ("election-timeout", "electionTimeout"),
    ("heartbeat-interval", "heartbeatInterval"),
    ("quota-backend-bytes", "quotaBackendBytes"),
    ("snapshot-count", "snapshotCount"),
];

/// Flags that the operator sets, or on whose absence it relies.
const OWNED: &[&str] = &[
    "advertise-client-urls",
    "auto-tls",
    "cert-file",
    "client-cert-allowed-hostname",
    "client-cert-auth",
    "client-cert-file",
    "client-crl-file",
    "client-key-file",
    "config-file",
    "data-dir",
    "discovery",
    "discovery-cacert",
    "discovery-cert",
    "discovery-dial-timeout",
    "discovery-endpoints",
    "discovery-fallback",
    "discovery-insecure-skip-tls-verify",
    "discovery-insecure-transport",
    "discovery-keepalive-time",
    "discovery-keepalive-timeout",
    "discovery-key",
    "discovery-password",
    "discovery-proxy",
    "discovery-request-timeout",
    "discovery-srv",
    "discovery-srv-name",
    "discovery-token",
    "discovery-user",
    "enable-log-rotation",
    "enable-v2",
    "experimental-compact-hash-check-enabled",
    "experimental-enable-v2v3",
    "experimental-peer-skip-client-san-verification",
    "force-new-cluster",
    "help",
    "initial-advertise-peer-urls",
    "initial-cluster",
    "initial-cluster-state",
    "initial-cluster-token",
    "initial-election-tick-advance",
    "key-file",
    "listen-client-http-urls",
    "listen-client-urls",
    "listen-metrics-urls",
    "listen-peer-urls",
    "log-outputs",
    "log-rotation-config-json",
    "max-learners",
    "name",
    "peer-auto-tls",
    "peer-cert-allowed-cn",
    "peer-cert-allowed-hostname",
    "peer-cert-file",
    "peer-client-cert-auth",
    "peer-client-cert-file",
    "peer-client-key-file",
    "peer-crl-file",
    "peer-key-file",
    "peer-skip-client-san-verification",
    "peer-trusted-ca-file",
    "proxy",
    "proxy-dial-timeout",
    "proxy-failure-wait",
    "proxy-read-timeout",
    "proxy-refresh-interval",
    "proxy-write-timeout",
    "self-signed-cert-validity",
    "socket-reuse-address",
    "socket-reuse-port",
    "strict-reconfig-check",
    "trusted-ca-file",
    "unsafe-no-fsync",
    "v2-deprecation",
    "version",
    "wal-dir",
];

/// Flags of 3.5, 3.6 and 3.7.
const EVERYWHERE: &[&str] = &[
    "auth-token",
    "auth-token-ttl",
    "backend-batch-interval",
    "backend-batch-limit",
    "backend-bbolt-freelist-type",
    "bcrypt-cost",
    "cipher-suites",
    "cors",
    "enable-grpc-gateway",
    "enable-pprof",
    "grpc-keepalive-interval",
    "grpc-keepalive-min-time",
    "grpc-keepalive-timeout",
    "host-whitelist",
    "log-level",
    "logger",
    "max-concurrent-streams",
    "max-request-bytes",
    "max-snapshots",
    "max-txn-ops",
    "max-wals",
    "metrics",
    "pre-vote",
    "raft-read-timeout",
    "raft-write-timeout",
    "tls-max-version",
    "tls-min-version",
];

/// Flags of 3.6 and 3.7.
const SINCE_6: &[&str] = &[
    "bootstrap-defrag-threshold-megabytes",
    "compact-hash-check-time",
    "compaction-batch-limit",
    "compaction-sleep-interval",
    "corrupt-check-time",
    "distributed-tracing-address",
    "distributed-tracing-instance-id",
    "distributed-tracing-sampling-rate",
    "distributed-tracing-service-name",
    "downgrade-check-time",
    "enable-distributed-tracing",
    "feature-gates",
    "log-format",
    "memory-mlock",
    "snapshot-catchup-entries",
    "warning-apply-duration",
    "warning-unary-request-duration",
    "watch-progress-notify-interval",
];

/// Flags of 3.5 and 3.6, gone in 3.7.
const UNTIL_6: &[&str] = &[
    "experimental-bootstrap-defrag-threshold-megabytes",
    "experimental-compact-hash-check-time",
    "experimental-compaction-batch-limit",
    "experimental-compaction-sleep-interval",
    "experimental-corrupt-check-time",
    "experimental-distributed-tracing-address",
    "experimental-distributed-tracing-instance-id",
    "experimental-distributed-tracing-sampling-rate",
    "experimental-distributed-tracing-service-name",
    "experimental-downgrade-check-time",
    "experimental-enable-distributed-tracing",
    "experimental-enable-lease-checkpoint",
    "experimental-enable-lease-checkpoint-persist",
    "experimental-memory-mlock",
    "experimental-stop-grpc-service-on-defrag",
    "experimental-txn-mode-write-with-shared-buffer",
    "experimental-warning-apply-duration",
    "experimental-watch-progress-notify-interval",
];

/// Flags of 3.5 that are feature gates in 3.6.
const ONLY_5: &[&str] = &["experimental-initial-corrupt-check"];

/// Flags of 3.6 alone.
const ONLY_6: &[&str] =
    &["experimental-snapshot-catchup-entries", "experimental-warning-unary-request-duration"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flag_stands_in_one_place() {
        let lists = [OWNED, EVERYWHERE, SINCE_6, UNTIL_6, ONLY_5, ONLY_6];
        let mut all: Vec<&str> = lists.concat();
        all.extend(FIELDS.iter().map(|(name, _)| *name));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn a_flag_is_judged_by_the_minor() {
        for (flag, minor, expected) in [
            ("max-txn-ops", 5, Standing::Free),
            ("feature-gates", 5, Standing::Elsewhere),
            ("feature-gates", 6, Standing::Free),
            ("experimental-corrupt-check-time", 6, Standing::Free),
            ("experimental-corrupt-check-time", 7, Standing::Elsewhere),
            ("experimental-initial-corrupt-check", 5, Standing::Free),
            ("experimental-initial-corrupt-check", 6, Standing::Elsewhere),
            ("snapshot-count", 7, Standing::Field("snapshotCount")),
            ("data-dir", 6, Standing::Owned),
            ("initial-cluster-token", 6, Standing::Owned),
            ("force-new-cluster", 6, Standing::Owned),
            ("max-txn-opps", 6, Standing::Unknown),
        ] {
            assert_eq!(standing(flag, minor), expected, "{flag} on 3.{minor}");
        }
    }
    #[test]
    fn every_form_is_of_a_flag_that_may_be_set() {
        let free = [EVERYWHERE, SINCE_6, UNTIL_6, ONLY_5, ONLY_6].concat();
        let formed = [NUMBERS, SWITCHES, DURATIONS, LISTS, ARGUMENTS].concat();
        for flag in &formed {
            let experimental = format!("experimental-{flag}");
            assert!(free.contains(flag) || free.contains(&&*experimental), "{flag}");
        }
        let count = formed.len();
        let distinct: std::collections::BTreeSet<_> = formed.into_iter().collect();
        assert_eq!(distinct.len(), count);
    }
}
