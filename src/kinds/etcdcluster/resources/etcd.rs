//! The configuration file of one member's etcd.
//!
//! Guarantees: what is set is known to etcd of that minor; each value has the type that etcd reads there.
//! Source: `server/embed/config.go` of etcd 3.5.33, 3.6.16 and 3.7.3. A key that a patch does not know it passes by.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Map, Value, json};

use super::secrets;
use crate::api::duration::{self, Duration};
use crate::kinds::etcdcluster::api::flags::{self, Form, Standing};
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{ConfigEntry, Minor, Ordinal, Purpose};
use crate::kinds::etcdcluster::spec::{CompactionMode, Options, Spec};

/// The folder with etcd's data, on the volume of the member.
pub const DATA: &str = "/var/lib/etcd/data";

/// Feature that compares a member's data with those of all others before it serves. Each of them reads all of its data
/// for that, and applies nothing meanwhile, so that it is off where there are many, unless the spec says otherwise.
/// Since 3.6 it is a gate.
const INITIAL_CHECK: &str = "InitialCorruptCheck";

/// The same before 3.6.
const INITIAL_CHECK_BEFORE_GATES: &str = "experimental-initial-corrupt-check";

/// Feature that compares the data of members whenever revisions are compacted.
const COMPACT_CHECK: &str = "CompactHashCheck";

/// The first minor with gates.
const FIRST_WITH_GATES: Minor = 6;

/// Entries of the log that a member keeps in memory for one that was away.
const CATCH_UP: &str = "snapshot-catchup-entries";

/// Its name before 3.6, which 3.6 takes as well.
const CATCH_UP_BEFORE: &str = "experimental-snapshot-catch-up-entries";

/// So many entries a member with room for much data keeps, unless the spec says otherwise: ten seconds of 2,000 changes a
/// second, in which a pod is made again. Etcd keeps 5,000 of them since 3.6, and before that up to 105,000. Who comes back
/// later is sent the whole database, which the leader reads beside what it writes.
const KEPT_ENTRIES: u64 = 20_000;

/// The quota above which a member has room for much data: the one that etcd has by itself.
const MUCH_DATA: u64 = 2 << 30;

/// Keys that say who the member is and how it starts; all others are options.
const IDENTITY: [&str; 9] = [
    "name",
    "data-dir",
    "initial-advertise-peer-urls",
    "advertise-client-urls",
    "initial-cluster",
    "initial-cluster-state",
    "initial-cluster-token",
    "force-new-cluster",
    "strict-reconfig-check",
];

/// One member.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Where it is.
    pub ordinal: Ordinal,
    /// The entry of its pod.
    pub entry: &'a ConfigEntry,
    /// The ordinals of the members that it is to know of.
    pub initial_cluster: &'a [Ordinal],
}

/// The configuration file of a member, with the options of the spec or with those that it `kept`.
#[must_use]
pub fn configuration(spec: &Spec, member: &Member, kept: Option<Map<String, Value>>) -> String {
    let mut all = identity(spec, member);
    let options = kept.unwrap_or_else(|| options(spec, member.entry));
    all.extend(options.into_iter().filter(|(key, _)| !IDENTITY.contains(&key.as_str())));
    written(&all)
}

/// The same, read back.
#[must_use]
pub fn read(text: &str) -> Option<Map<String, Value>> {
    serde_saphyr::from_str(text).ok()
}

/// Flags of the spec that the command line alone can say.
#[must_use]
pub fn arguments(spec: &Spec) -> Vec<String> {
    let extra = spec.options.extra.iter().flatten();
    let arguments = extra.filter(|(flag, _)| flags::form(flag) == Form::Argument);
    arguments.map(|(flag, value)| format!("--{flag}={value}")).collect()
}

fn identity(spec: &Spec, member: &Member) -> Map<String, Value> {
    let name = spec.name();
    let ordinal = member.ordinal;
    let seeds = member.entry.purpose == Purpose::Seed;
    let others = member.initial_cluster.iter().copied().filter(|other| *other != ordinal);
    // Etcd does not start without itself in the list, and a seed is alone.
    let mut known: Vec<_> = others.filter(|_| !seeds).chain([ordinal]).collect();
    known.sort_unstable();
    let listed = known
        .into_iter()
        .map(|ordinal| format!("{}={}", names::member(name, ordinal), spec.peer_url(ordinal)));
    let uid = spec.uid();
    let forces = member.entry.purpose == Purpose::Force;
    object(json!({
        "name": names::member(name, ordinal),
        "data-dir": DATA,
        "initial-advertise-peer-urls": spec.peer_url(ordinal),
        "advertise-client-urls": spec.client_url(ordinal),
        "initial-cluster": listed.collect::<Vec<_>>().join(","),
        "initial-cluster-state": if seeds { "new" } else { "existing" },
        // With the uid: a cluster that is recreated under the same names never meets members of the one before.
        "initial-cluster-token": format!("{name}-{uid}"),
        "force-new-cluster": forces,
        "strict-reconfig-check": true,
    }))
}

/// All that the spec says, and what the operator relies on.
fn options(spec: &Spec, entry: &ConfigEntry) -> Map<String, Value> {
    let minor = entry.template.version.minor;
    let scheme = spec.scheme();
    // To Go, this address is that of IPv6 as well.
    let listen = |scheme, port| format!("{scheme}://0.0.0.0:{port}");
    let mut all = object(json!({
        "listen-peer-urls": listen(scheme, names::PEER_PORT),
        "listen-client-urls": listen(scheme, names::CLIENT_PORT),
        "listen-metrics-urls": listen("http", names::METRICS_PORT),
    }));
    if let Some(secrets) = spec.secrets() {
        let section = |shown: &str, authority: &str| {
            json!({
                "cert-file": format!("{shown}/tls.crt"),
                "key-file": format!("{shown}/tls.key"),
                "client-cert-auth": true,
                "trusted-ca-file": format!("{authority}/ca.crt"),
            })
        };
        let (client, peer) = (secrets.client_authority_path(), secrets.peer_authority_path());
        all.insert("client-transport-security".to_owned(), section(secrets::SERVER, client));
        all.insert("peer-transport-security".to_owned(), section(secrets::PEER, peer));
    }
    all.extend(fields(&spec.options));
    all.extend(extra(spec.options.extra.clone().unwrap_or_default(), minor));
    check(&mut all, minor, !entry.skips_check);
    catch_up(&mut all, minor);
    all
}

/// Has members keep more of the log for those that are away, where the database may be so large that sending it is felt.
/// Before 3.6 they keep it until the next snapshot, and the option is one for etcd's tests.
fn catch_up(all: &mut Map<String, Value>, minor: Minor) {
    let quota = all.get("quota-backend-bytes").and_then(Value::as_u64).unwrap_or(0);
    if minor >= FIRST_WITH_GATES && quota > MUCH_DATA && !all.contains_key(CATCH_UP_BEFORE) {
        all.entry(CATCH_UP).or_insert(KEPT_ENTRIES.into());
    }
}

/// Options with a field of their own.
fn fields(options: &Options) -> Map<String, Value> {
    let mut all = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            all.insert(key.to_owned(), value);
        }
    };
    let milliseconds = |given: &Option<Duration>| {
        let time = given.as_ref().and_then(|given| given.get().ok());
        time.and_then(|time| u64::try_from(time.as_millis()).ok()).map(Value::from)
    };
    let quota = options.quota_backend_bytes.as_ref().and_then(|quota| quota.bytes().ok());
    set("quota-backend-bytes", quota.map(Value::from));
    if let Some(compaction) = &options.auto_compaction {
        let mode = compaction.mode.map(|mode| match mode {
            CompactionMode::Periodic => "periodic",
            CompactionMode::Revision => "revision",
        });
        set("auto-compaction-mode", mode.map(Value::from));
        set("auto-compaction-retention", compaction.retention.as_ref().map(text).map(Value::from));
    }
    set("snapshot-count", options.snapshot_count.map(Value::from));
    set("heartbeat-interval", milliseconds(&options.heartbeat_interval));
    set("election-timeout", milliseconds(&options.election_timeout));
    all
}

/// A number or a text as text, which is what etcd takes.
fn text(given: &IntOrString) -> String {
    match given {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => text.clone(),
    }
}

/// Flags that the spec names, as a file has them. One that the gate refuses is not among them, for it may be ours.
fn extra(given: BTreeMap<String, String>, minor: Minor) -> Map<String, Value> {
    let free = given.into_iter().filter(|(flag, _)| flags::standing(flag, minor) == Standing::Free);
    let written = free.filter_map(|(flag, value)| {
        let value = typed(&flag, &value)?;
        Some((flags::key(&flag).to_owned(), value))
    });
    written.collect()
}

/// The value of a flag as a file has it; none where a file cannot say it. A value that does not read is refused at the
/// gate; one that was stored before goes as it is, for etcd to refuse.
fn typed(flag: &str, value: &str) -> Option<Value> {
    let read = match flags::form(flag) {
        Form::Argument => return None,
        Form::Text => None,
        Form::Number => flags::number(flag, value).and_then(whole),
        Form::Switch => value.parse::<bool>().ok().map(Value::from),
        Form::Nanoseconds => nanoseconds(value).map(Value::from),
        Form::List => Some(value.split(',').collect()),
    };
    Some(read.unwrap_or_else(|| value.into()))
}

/// A whole number, which JSON has of both signs.
fn whole(number: i128) -> Option<Value> {
    u64::try_from(number).map(Value::from).or_else(|_| i64::try_from(number).map(Value::from)).ok()
}

fn nanoseconds(value: &str) -> Option<u64> {
    u64::try_from(duration::parse(value).ok()?.as_nanos()).ok()
}

/// Lets members compare their data while they serve, and `at_start` where the spec does not say whether they do then.
fn check(all: &mut Map<String, Value>, minor: Minor, at_start: bool) {
    if minor < FIRST_WITH_GATES {
        all.entry(INITIAL_CHECK_BEFORE_GATES).or_insert(at_start.into());
        all.insert("experimental-compact-hash-check-enabled".to_owned(), true.into());
        return;
    }
    let given = all.get("feature-gates").and_then(Value::as_str).filter(|given| !given.is_empty());
    let is_named = |given: &str| given.split(',').any(|gate| gate.trim().starts_with(INITIAL_CHECK));
    let initial = (!given.is_some_and(is_named)).then(|| format!("{INITIAL_CHECK}={at_start}"));
    // What comes last holds.
    let gates = given.map(str::to_owned).into_iter().chain(initial).chain([format!("{COMPACT_CHECK}=true")]);
    all.insert("feature-gates".to_owned(), gates.collect::<Vec<_>>().join(",").into());
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// As YAML. A scalar of JSON is one of YAML too, in all of its versions: nothing is a number, a date or a truth that
/// was not meant so.
fn written(all: &Map<String, Value>) -> String {
    let mut text = String::new();
    for (key, value) in all {
        let lines = match value {
            Value::Object(section) => {
                let inner = section.iter().map(|(key, value)| format!("  {key}: {value}\n"));
                format!("{key}:\n{}", inner.collect::<String>())
            }
            value => format!("{key}: {value}\n"),
        };
        // Writing to a string cannot fail.
        let _written = text.write_str(&lines);
    }
    text
}
