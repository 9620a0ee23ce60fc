use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::kinds::etcdcluster::api::flags::{self, Standing};
use crate::kinds::etcdcluster::observation::{Purpose, Template, Version};
use crate::kinds::etcdcluster::resources::tests::{cluster, plain};
use crate::kinds::etcdcluster::spec::Spec;

fn entry(purpose: Purpose, version: Version, revision: u64) -> ConfigEntry {
    ConfigEntry {
        purpose,
        member: Some(MemberId(0x8e9e)),
        volume: Uid("v-0".to_owned()),
        template: Template { version, revision },
        pod: None,
        raft_index: None,
        skips_check: false,
    }
}

fn flags_of(cluster: &Spec, entry: &ConfigEntry, known: &[u32]) -> String {
    let known: Vec<_> = known.iter().copied().map(Ordinal).collect();
    let data = data(cluster, &[(Ordinal(1), entry.clone())].into(), &known);
    assert_eq!(data.keys().collect::<Vec<_>>(), ["c-1.json", "c-1.yaml"]);
    data["c-1.yaml"].clone()
}

fn read(text: &str) -> Map<String, Value> {
    etcd::read(text).unwrap()
}

#[test]
fn a_member_that_joins_gets_everything() {
    let flags = flags_of(&plain(), &entry(Purpose::Join, Version::new(6, 16), 1), &[0, 1, 2]);
    assert_eq!(
        flags,
        r#"advertise-client-urls: "http://c-1.c.shop.svc:2379"
data-dir: "/var/lib/etcd/data"
feature-gates: "InitialCorruptCheck=true,CompactHashCheck=true"
force-new-cluster: false
initial-advertise-peer-urls: "http://c-1.c.shop.svc:2380"
initial-cluster: "c-0=http://c-0.c.shop.svc:2380,c-1=http://c-1.c.shop.svc:2380,c-2=http://c-2.c.shop.svc:2380"
initial-cluster-state: "existing"
initial-cluster-token: "c-u-1"
listen-client-urls: "http://0.0.0.0:2379"
listen-metrics-urls: "http://0.0.0.0:2381"
listen-peer-urls: "http://0.0.0.0:2380"
name: "c-1"
strict-reconfig-check: true
"#
    );
}

#[test]
fn only_a_seed_is_new_and_it_is_alone() {
    for (purpose, state, forces) in [
        (Purpose::Seed, "new", false),
        (Purpose::Join, "existing", false),
        (Purpose::Run, "existing", false),
        (Purpose::Force, "existing", true),
        (Purpose::Retired, "existing", false),
        (Purpose::SetAside, "existing", false),
    ] {
        let flags = read(&flags_of(&plain(), &entry(purpose, Version::new(6, 16), 1), &[]));
        assert_eq!(flags["initial-cluster-state"], state, "{purpose:?}");
        assert_eq!(flags["force-new-cluster"], forces, "{purpose:?}");
        assert_eq!(flags["initial-cluster"], "c-1=http://c-1.c.shop.svc:2380", "{purpose:?}");
    }
    let seed = read(&flags_of(&plain(), &entry(Purpose::Seed, Version::new(6, 16), 1), &[0, 1]));
    assert_eq!(seed["initial-cluster"], "c-1=http://c-1.c.shop.svc:2380");
}

#[test]
fn options_have_the_types_that_etcd_reads() {
    let cluster = cluster(&json!({
        "version": "3.6.16",
        "tls": {"mode": "Disabled"},
        "options": {
            "quotaBackendBytes": "2Gi",
            "autoCompaction": {"mode": "Revision", "retention": 1000},
            "snapshotCount": 5000,
            "heartbeatInterval": "200ms",
            "electionTimeout": "2s",
            "extra": {
                "max-txn-ops": "1024",
                "pre-vote": "false",
                "grpc-keepalive-interval": "1m30s",
                "cipher-suites": "A,B",
                "log-level": "warn",
                "corrupt-check-time": "0",
                "feature-gates": "InitialCorruptCheck=false,LeaseCheckpoint=true",
                "experimental-snapshot-catchup-entries": "9",
                "raft-read-timeout": "10s",
                "auth-token-ttl": "many",
                "data-dir": "/elsewhere",
                "listen-metrics-urls": "http://127.0.0.1:1",
            },
        },
    }));
    let flags = read(&flags_of(&cluster, &entry(Purpose::Run, Version::new(6, 16), 1), &[1]));
    for (key, value) in [
        ("quota-backend-bytes", json!(2_147_483_648_u64)),
        ("auto-compaction-mode", json!("revision")),
        ("auto-compaction-retention", json!("1000")),
        ("snapshot-count", json!(5000)),
        ("heartbeat-interval", json!(200)),
        ("election-timeout", json!(2000)),
        ("max-txn-ops", json!(1024)),
        ("pre-vote", json!(false)),
        ("grpc-keepalive-interval", json!(90_000_000_000_u64)),
        ("cipher-suites", json!(["A", "B"])),
        ("log-level", json!("warn")),
        ("corrupt-check-time", json!(0)),
        ("experimental-snapshot-catch-up-entries", json!(9)),
        ("auth-token-ttl", json!("many")),
        ("data-dir", json!("/var/lib/etcd/data")),
        ("listen-metrics-urls", json!("http://0.0.0.0:2381")),
    ] {
        assert_eq!(flags[key], value, "{key}");
    }
    assert_eq!(
        flags["feature-gates"],
        "InitialCorruptCheck=false,LeaseCheckpoint=true,CompactHashCheck=true"
    );
    assert!(!flags.contains_key("raft-read-timeout"));
    assert_eq!(etcd::arguments(&cluster), ["--raft-read-timeout=10s"]);
}

#[test]
fn a_minor_gets_no_flag_that_it_does_not_have() {
    for minor in [5, 6, 7] {
        let spec = json!({
            "tls": {"mode": "Disabled"},
            "options": {"extra": {
                "feature-gates": "LeaseCheckpoint=true",
                "experimental-corrupt-check-time": "1m",
                "max-wals": "3",
            }},
        });
        let flags = flags_of(&cluster(&spec), &entry(Purpose::Run, Version::new(minor, 0), 1), &[1]);
        for flag in read(&flags).keys() {
            let standing = flags::standing(flag, minor);
            assert!(!matches!(standing, Standing::Elsewhere | Standing::Unknown), "{flag} on 3.{minor}");
        }
        assert_eq!(flags.contains("feature-gates"), minor > 5, "3.{minor}");
        assert_eq!(flags.contains("experimental-initial-corrupt-check: true"), minor == 5, "3.{minor}");
        assert_eq!(flags.contains("experimental-corrupt-check-time: 60000000000"), minor < 7, "3.{minor}");
    }
}

#[test]
fn a_member_with_room_for_much_data_keeps_more_of_the_log_for_those_that_are_away() {
    let kept = |minor, quota: &str, extra: Value| {
        let options = json!({"quotaBackendBytes": quota, "extra": extra});
        let spec = json!({"tls": {"mode": "Disabled"}, "options": options});
        let flags = read(&flags_of(&cluster(&spec), &entry(Purpose::Run, Version::new(minor, 0), 1), &[1]));
        flags.get("snapshot-catchup-entries").cloned()
    };
    for (minor, quota, expected) in [
        (5, "8Gi", None),
        (6, "2Gi", None),
        (6, "2049Mi", Some(json!(20_000))),
        (7, "2Gi", None),
        (7, "8Gi", Some(json!(20_000))),
    ] {
        assert_eq!(kept(minor, quota, json!({})), expected, "3.{minor} and {quota}");
    }
    let [now, before] =
        ["", "experimental-"].map(|prefix| json!({format!("{prefix}snapshot-catchup-entries"): "9"}));
    assert_eq!(kept(7, "8Gi", now.clone()), Some(json!(9)), "the spec says otherwise");
    assert_eq!(kept(6, "8Gi", now), Some(json!(9)), "the spec says otherwise");
    assert_eq!(kept(6, "8Gi", before), None, "3.6 goes by the other name that the spec has");
}

#[test]
fn a_member_with_much_data_compares_them_at_its_start_where_the_spec_says_so() {
    const BEFORE_GATES: &str = "experimental-initial-corrupt-check";
    const GATE: &str = "InitialCorruptCheck";
    let started = |minor, (flag, value): (&str, &str), skips_check| {
        let spec = json!({"tls": {"mode": "Disabled"}, "options": {"extra": {flag: value}}});
        let told = ConfigEntry { skips_check, ..entry(Purpose::Run, Version::new(minor, 0), 1) };
        let flags = read(&flags_of(&cluster(&spec), &told, &[1]));
        let gates = flags.get("feature-gates").and_then(Value::as_str).unwrap_or_default().to_owned();
        let before = flags.get(BEFORE_GATES).cloned();
        let compacts = flags.get("experimental-compact-hash-check-enabled") == Some(&json!(true))
            || gates.ends_with("CompactHashCheck=true");
        assert!(compacts, "3.{minor} compares when it compacts: {flags:?}");
        before.or_else(|| {
            let said = gates.split(',').filter_map(|gate| gate.strip_prefix(GATE)?.strip_prefix('='));
            said.map(|value| json!(value == "true")).next()
        })
    };
    let silent = ("max-txn-ops", "9");
    for minor in [5, 6, 7] {
        for skips_check in [false, true] {
            assert_eq!(started(minor, silent, skips_check), Some(json!(!skips_check)), "3.{minor}");
            for value in ["true", "false"] {
                let gates = format!("LeaseCheckpoint=true,{GATE}={value}");
                let asked = if minor == 5 { (BEFORE_GATES, value) } else { ("feature-gates", &*gates) };
                let expected = Some(json!(value == "true"));
                assert_eq!(started(minor, asked, skips_check), expected, "3.{minor} {skips_check}");
            }
        }
    }
}

#[test]
fn certificates_are_shown_and_asked_for_on_both_sides() {
    let automatic = cluster(&json!({"tls": {"mode": "Automatic"}}));
    let flags = flags_of(&automatic, &entry(Purpose::Run, Version::new(6, 16), 1), &[1]);
    assert!(flags.contains("listen-peer-urls: \"https://0.0.0.0:2380\"\n"), "{flags}");
    assert!(flags.contains("listen-metrics-urls: \"http://0.0.0.0:2381\"\n"), "{flags}");
    for (side, certificate) in [("client", "server"), ("peer", "peer")] {
        let section = format!(
            r#"{side}-transport-security:
  cert-file: "/etc/gatehouse/tls/{certificate}/tls.crt"
  client-cert-auth: true
  key-file: "/etc/gatehouse/tls/{certificate}/tls.key"
  trusted-ca-file: "/etc/gatehouse/tls/{certificate}/ca.crt"
"#
        );
        assert!(flags.contains(&section), "no {section} in {flags}");
    }
    let named = |name: &str| json!({"name": name});
    let given = cluster(&json!({"tls": {"mode": "Secrets", "secrets": {
        "serverRef": named("s"), "peerRef": named("p"), "clientRef": named("o"),
        "clientCARef": named("x"), "peerCARef": named("y"),
    }}}));
    let flags = read(&flags_of(&given, &entry(Purpose::Run, Version::new(6, 16), 1), &[1]));
    let authority = |section: &str| flags[section]["trusted-ca-file"].clone();
    assert_eq!(authority("client-transport-security"), "/etc/gatehouse/tls/client-ca/ca.crt");
    assert_eq!(authority("peer-transport-security"), "/etc/gatehouse/tls/peer-ca/ca.crt");
}

#[test]
fn a_template_that_the_spec_has_left_behind_keeps_its_options() {
    let before = cluster(&json!({"options": {"extra": {"max-txn-ops": "7"}}, "tls": {"mode": "Disabled"}}));
    let after = cluster(&json!({"options": {"extra": {"max-txn-ops": "8"}}, "tls": {"mode": "Disabled"}}));
    let (old, new) = (before.revision(None), after.revision(None));
    let version = Version::new(6, 16);
    let joins = entry(Purpose::Join, version, old);
    let live = ConfigMap {
        data: Some(data(&before, &[(Ordinal(1), joins.clone())].into(), &[Ordinal(0), Ordinal(1)])),
        ..ConfigMap::default()
    };
    let over = |entry: ConfigEntry| {
        let data = data_over(&after, &[(Ordinal(1), entry)].into(), &[Ordinal(1), Ordinal(2)], &live, new);
        read(&data["c-1.yaml"])
    };
    let forced = over(joins.turned(Purpose::Force));
    assert_eq!(forced["max-txn-ops"], 7);
    assert_eq!(forced["force-new-cluster"], true);
    assert_eq!(forced["initial-cluster"], "c-1=http://c-1.c.shop.svc:2380,c-2=http://c-2.c.shop.svc:2380");
    let joins_beside = data_over(&after, &[(Ordinal(2), joins.clone())].into(), &[Ordinal(2)], &live, new);
    assert_eq!(read(&joins_beside["c-2.yaml"])["max-txn-ops"], 7, "it starts as the other one runs");
    assert_eq!(over(entry(Purpose::Run, version, new))["max-txn-ops"], 8);
    assert_eq!(over(entry(Purpose::Run, Version::new(6, 11), old))["max-txn-ops"], 8);
}

#[test]
fn an_entry_that_another_client_has_written_in_the_same_bytes_is_written_in_others() {
    let told: BTreeMap<_, _> =
        [0, 1].map(|ordinal| (Ordinal(ordinal), entry(Purpose::Run, Version::new(6, 16), 1))).into();
    let data = data(&plain(), &told, &[]);
    let fields = json!({"f:data": {"f:c-1.json": {}}});
    let managed = json!([{"manager": "edits", "operation": "Update", "fieldsV1": fields}]);
    let live = json!({"metadata": {"managedFields": managed}, "data": data});
    let mut live: ConfigMap = serde_json::from_value(live).unwrap();
    let again = |live: &ConfigMap| data_over(&plain(), &told, &[], live, 1);
    let written = again(&live);
    assert_eq!(written["c-0.json"], data["c-0.json"]);
    assert_ne!(written["c-1.json"], data["c-1.json"]);
    live.data = Some(written);
    assert_eq!(entries(&live, "c"), told);
    live.metadata.managed_fields = None;
    assert_eq!(again(&live), data);
}

#[test]
fn what_does_not_read_as_an_entry_is_none() {
    let good = data(&plain(), &[(Ordinal(1), entry(Purpose::Run, Version::new(6, 16), 1))].into(), &[]);
    let text = &good["c-1.json"];
    assert_eq!(
        text,
        r#"{"member":"8e9e","purpose":"Run","template":"3.6.16-0000000000000001","volume":"v-0"}"#
    );
    for (key, text) in [
        ("c-1.yaml", text.clone()),
        ("c-01.json", text.clone()),
        ("d-1.json", text.clone()),
        ("c-1.json", "{}".to_owned()),
        ("c-1.json", text.replace("8e9e", "zz")),
        ("c-1.json", text.replace("3.6.16", "3.6")),
        ("c-1.json", text.replace("Run", "Rest")),
    ] {
        let config =
            ConfigMap { data: Some([(key.to_owned(), text.clone())].into()), ..ConfigMap::default() };
        assert_eq!(entries(&config, "c"), BTreeMap::new(), "{key} {text}");
    }
}

fn any_entry() -> impl Strategy<Value = ConfigEntry> {
    let purpose = prop_oneof![
        Just(Purpose::Seed),
        Just(Purpose::Join),
        Just(Purpose::Run),
        Just(Purpose::Force),
        Just(Purpose::Retired),
        Just(Purpose::SetAside),
    ];
    let template = (any::<u64>(), any::<u64>(), any::<u64>());
    let pod = proptest::option::of(".{0,40}");
    (purpose, any::<Option<u64>>(), ".{0,40}", template, pod, any::<(Option<u64>, bool)>()).prop_map(
        |(purpose, member, volume, (minor, patch, revision), pod, (raft_index, skips_check))| ConfigEntry {
            purpose,
            member: member.map(MemberId),
            volume: Uid(volume),
            template: Template { version: Version::new(minor, patch), revision },
            pod: pod.map(Uid),
            raft_index,
            skips_check,
        },
    )
}

proptest! {
    #![proptest_config(crate::properties::config())]

    #[test]
    fn entries_read_back(told in proptest::collection::btree_map((0_u32..12).prop_map(Ordinal), any_entry(), 0..5)) {
        let data = data(&plain(), &told, &[]);
        prop_assert_eq!(data.len(), told.len() * 2);
        let config = ConfigMap { data: Some(data), ..ConfigMap::default() };
        prop_assert_eq!(entries(&config, "c"), told);
    }

    #[test]
    fn any_text_of_an_option_stays_the_text_that_it_is(text in "\\PC{0,30}|on|null|~|0x10|1e3|2001-01-01|- a|a: b|#c|'|\"") {
        let cluster = cluster(&json!({
            "tls": {"mode": "Disabled"},
            "options": {"extra": {"host-whitelist": text}},
        }));
        let flags = flags_of(&cluster, &entry(Purpose::Run, Version::new(6, 16), 1), &[1]);
        prop_assert_eq!(&read(&flags)["host-whitelist"], &json!(text));
    }
}
