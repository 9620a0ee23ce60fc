//! The values of flags that etcd starts with. Pure.
//!
//! Guarantees: a value that passes is written into the configuration file with the type that etcd reads; each fault says
//! what is allowed.
//! Source: `server/embed/config.go`, `config_logging.go` and `server/features` of etcd 3.5.33, 3.6.16 and 3.7.3. The
//! suite `tests/etcd` compares every rule with etcd of each minor.

use super::{Form, form};
use crate::api::duration::{self, DurationError};

/// Flags that may be below zero: etcd takes that for no limit.
const SIGNED: [&str; 3] =
    ["backend-batch-limit", "compaction-batch-limit", "distributed-tracing-sampling-rate"];

/// Times that etcd starts with only if they are longer than nothing.
const NEVER_ZERO: [&str; 1] = ["compact-hash-check-time"];

/// Levels of etcd's log.
const LEVELS: [&str; 7] = ["debug", "info", "warn", "error", "dpanic", "panic", "fatal"];

/// Versions of TLS.
const TLS_VERSIONS: [&str; 2] = ["TLS1.2", "TLS1.3"];

/// Gates of 3.6 and 3.7.
const GATES: [&str; 9] = [
    "AllAlpha",
    "AllBeta",
    "CompactHashCheck",
    "InitialCorruptCheck",
    "LeaseCheckpoint",
    "LeaseCheckpointPersist",
    "SetMemberLocalAddr",
    "StopGRPCServiceOnDefrag",
    "TxnModeWriteWithSharedBuffer",
];

/// Gates of 3.7 alone.
const GATES_SINCE_7: [&str; 2] = ["FastLeaseKeepAlive", "PriorityRequest"];

/// Cipher suites by the names that Go has for them (`crypto/tls`, `CipherSuites` and `InsecureCipherSuites`), and the two
/// that etcd adds.
const CIPHERS: &[&str] = &[
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

/// Why etcd 3.`minor` does not start with this value of `flag`, as what is allowed; none if it starts.
#[must_use]
pub fn fault(flag: &str, value: &str, minor: u64) -> Option<String> {
    match form(flag) {
        Form::Number => number(flag, value).is_none().then(|| number_words(flag)),
        Form::Switch => {
            let is_read = value.parse::<bool>().is_ok();
            (!is_read).then(|| "must be true or false".to_owned())
        }
        Form::Nanoseconds | Form::Argument => time_fault(flag, value),
        Form::List => names_fault(value.split(','), CIPHERS),
        Form::Text => text_fault(flag, value, minor),
    }
}

/// The value of a flag that counts something; none if etcd does not read it.
#[must_use]
pub fn number(flag: &str, value: &str) -> Option<i128> {
    let (least, most) = range(flag);
    value.parse::<i128>().ok().filter(|number| (least..=most).contains(number))
}

/// The name of a flag without the word `experimental`.
fn bare(flag: &str) -> &str {
    flag.strip_prefix("experimental-").unwrap_or(flag)
}

/// What the type of the flag in etcd's configuration holds.
fn range(flag: &str) -> (i128, i128) {
    if SIGNED.contains(&bare(flag)) {
        (i64::MIN.into(), i64::MAX.into())
    } else if flag == "max-concurrent-streams" {
        (0, u32::MAX.into())
    } else {
        (0, u64::MAX.into())
    }
}

fn number_words(flag: &str) -> String {
    let (least, most) = range(flag);
    format!("must be a whole number from {least} to {most}, without a unit")
}

fn time_fault(flag: &str, value: &str) -> Option<String> {
    match duration::parse(value) {
        Ok(time) if time.is_zero() && NEVER_ZERO.contains(&bare(flag)) => {
            Some("must be longer than nothing, such as 1m".to_owned())
        }
        Ok(_) => None,
        Err(DurationError::Negative) => Some("must not be negative".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}

fn names_fault<'a>(mut given: impl Iterator<Item = &'a str>, known: &[&str]) -> Option<String> {
    let unknown = given.find(|name| !known.contains(name))?;
    Some(format!("names {unknown:?}: must be a list with commas of {}", known.join(", ")))
}

fn text_fault(flag: &str, value: &str, minor: u64) -> Option<String> {
    let one_of = |allowed: &[&str]| {
        let is_allowed = value.is_empty() || allowed.contains(&value);
        (!is_allowed).then(|| format!("must be {}", allowed.join(" or ")))
    };
    match flag {
        "auth-token" => {
            let why = "must be simple: jwt needs a key in a file, and a member has no file of yours";
            (!["", "simple"].contains(&value)).then(|| why.to_owned())
        }
        "logger" => (value != "zap").then(|| "must be zap".to_owned()),
        "log-format" => one_of(&["json", "console"]),
        "log-level" => {
            let level = value.to_ascii_lowercase();
            let is_known = level.is_empty() || LEVELS.contains(&level.as_str());
            (!is_known).then(|| format!("must be one of {}", LEVELS.join(", ")))
        }
        "tls-min-version" | "tls-max-version" => one_of(&TLS_VERSIONS),
        "cors" => (!value.is_empty() && value != "*" && !value.split(',').all(is_origin)).then(|| {
            "must be * or a list with commas of http or https URLs, each with its port and without a path, such as \
             https://shop.example:443"
                .to_owned()
        }),
        "feature-gates" => gates_fault(value, minor),
        _ => None,
    }
}

/// Whether a text is the URL of an origin as etcd reads it: with a port, and without a path.
fn is_origin(text: &str) -> bool {
    let text = text.trim();
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let Some((host, port)) = rest.and_then(|rest| rest.rsplit_once(':')) else { return false };
    let is_address = host.starts_with('[') && host.ends_with(']');
    let is_host = |letter: char| letter.is_ascii_alphanumeric() || "-._*".contains(letter);
    port.parse::<u16>().is_ok() && !host.is_empty() && (is_address || host.chars().all(is_host))
}

/// The gates in a list, each with its value; none where one has no value.
pub fn gates(value: &str) -> Option<Vec<(&str, &str)>> {
    let parts = value.split(',').filter(|part| !part.is_empty());
    parts.map(|part| part.split_once('=').map(|(name, state)| (name.trim(), state.trim()))).collect()
}

/// What Go reads as a truth.
pub fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

fn gates_fault(value: &str, minor: u64) -> Option<String> {
    let since_7 = GATES_SINCE_7.iter().filter(|_| minor >= 7);
    let known: Vec<_> = GATES.iter().chain(since_7).copied().collect();
    let Some(gates) = gates(value) else {
        return Some("must be a list with commas of NAME=true or NAME=false".to_owned());
    };
    if let Some((name, _)) = gates.iter().find(|(_, state)| truth(state).is_none()) {
        return Some(format!("sets {name:?} to neither true nor false"));
    }
    let (name, _) = gates.iter().find(|(name, _)| !known.contains(name))?;
    Some(format!("names {name:?}: the gates of etcd 3.{minor} are {}", known.join(", ")))
}
