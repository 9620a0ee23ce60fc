//! Values of flags that etcd does not start with side by side. Pure.
//!
//! Source: `Config.Validate` and `SetFeatureGatesFromExperimentalFlags` in `server/embed/config.go` of etcd 3.5.33, 3.6.16
//! and 3.7.3.

use std::collections::BTreeMap;

use super::values::{gates, number, truth};
use super::{Standing, standing};

/// The word before flags that were new.
const NEW: &str = "experimental-";

/// The most samples in a million spans.
const MOST_SAMPLES: i128 = 1_000_000;

/// Gates that were flags before 3.6, which 3.6 takes as well.
const GATES_BEFORE: [(&str, &str); 4] = [
    ("experimental-enable-lease-checkpoint", "LeaseCheckpoint"),
    ("experimental-enable-lease-checkpoint-persist", "LeaseCheckpointPersist"),
    ("experimental-stop-grpc-service-on-defrag", "StopGRPCServiceOnDefrag"),
    ("experimental-txn-mode-write-with-shared-buffer", "TxnModeWriteWithSharedBuffer"),
];

/// Flags of etcd 3.`minor` whose value another one of `given` rules out, each with what is allowed.
#[must_use]
pub fn conflicts(given: &BTreeMap<String, String>, minor: u64) -> Vec<(&str, String)> {
    let free = given.iter().filter(|(flag, _)| standing(flag, minor) == Standing::Free);
    let free: BTreeMap<&str, &str> = free.map(|(flag, value)| (flag.as_str(), value.as_str())).collect();
    let all = [renamed(&free), gated(&free), versions(&free), leases(&free), samples(&free)];
    all.into_iter().flatten().collect()
}

type Given<'a> = BTreeMap<&'a str, &'a str>;

/// A flag under its earlier name, beside its name of now.
fn renamed<'a>(given: &Given<'a>) -> Vec<(&'a str, String)> {
    let old = given.keys().filter_map(|flag| Some((*flag, flag.strip_prefix(NEW)?)));
    let twice = old.filter(|(_, new)| given.contains_key(new));
    twice
        .map(|(old, new)| (old, format!("is the earlier name of {new}, which is set too: set {new} alone")))
        .collect()
}

/// A flag that is a gate now, beside that gate.
fn gated<'a>(given: &Given<'a>) -> Vec<(&'a str, String)> {
    let named = given.get("feature-gates").copied().unwrap_or_default();
    let flags = GATES_BEFORE.into_iter().filter_map(|(flag, gate)| {
        let (flag, _) = given.get_key_value(flag).filter(|_| named.contains(gate))?;
        Some((*flag, format!("is the gate {gate}, which feature-gates sets too: set it there alone")))
    });
    flags.collect()
}

/// A least version of TLS above the most, or one whose cipher suites Go chooses by itself.
fn versions<'a>(given: &Given<'a>) -> Vec<(&'a str, String)> {
    let Some((least, "TLS1.3")) = given.get_key_value("tls-min-version").map(|(key, value)| (*key, *value))
    else {
        return Vec::new();
    };
    let mut faults = Vec::new();
    if given.get("tls-max-version") == Some(&"TLS1.2") {
        faults.push((least, "must not be above tls-max-version (TLS1.2)".to_owned()));
    }
    if let Some((ciphers, _)) = given.get_key_value("cipher-suites") {
        let why = "cannot be set where tls-min-version is TLS1.3: its cipher suites are not configurable";
        faults.push((*ciphers, why.to_owned()));
    }
    faults
}

/// Checkpoints of leases that persist, without checkpoints.
fn leases<'a>(given: &Given<'a>) -> Vec<(&'a str, String)> {
    let gates = given.get("feature-gates").and_then(|value| gates(value)).unwrap_or_default();
    // What comes last holds.
    let gate =
        |name: &str| gates.iter().rev().find(|(gate, _)| *gate == name).and_then(|(_, state)| truth(state));
    let flag = |name: &str| given.get(name).and_then(|value| value.parse::<bool>().ok());
    let is_on = |flag_name: &str, name: &str| {
        flag(flag_name).or_else(|| gate(name)).or_else(|| gate("AllAlpha")).unwrap_or(false)
    };
    let [(makes_flag, makes), (keeps_flag, keeps), ..] = GATES_BEFORE;
    if !is_on(keeps_flag, keeps) || is_on(makes_flag, makes) {
        return Vec::new();
    }
    let named = given.get_key_value(keeps_flag).or_else(|| given.get_key_value("feature-gates"));
    let why = |flag: &str| {
        let needed = if flag == keeps_flag { makes_flag } else { makes };
        format!("sets LeaseCheckpointPersist, which needs {needed}")
    };
    named.map(|(flag, _)| (*flag, why(flag))).into_iter().collect()
}

/// A share of spans that is none, where spans are sent.
fn samples<'a>(given: &Given<'a>) -> Vec<(&'a str, String)> {
    let faults = ["", NEW].into_iter().filter_map(|prefix| {
        let is_on = given.get(format!("{prefix}enable-distributed-tracing").as_str()) == Some(&"true");
        let (flag, value) =
            given.get_key_value(format!("{prefix}distributed-tracing-sampling-rate").as_str())?;
        let is_share = number(flag, value).is_none_or(|rate| (0..=MOST_SAMPLES).contains(&rate));
        (is_on && !is_share).then(|| (*flag, format!("must be a whole number from 0 to {MOST_SAMPLES}")))
    });
    faults.collect()
}
