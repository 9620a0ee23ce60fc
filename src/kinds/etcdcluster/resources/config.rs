//! The ConfigMap: the entry of each member's pod, and the whole configuration of its etcd.
//!
//! Guarantees: an entry that is written reads back the same. A member keeps its options until its template changes, even if
//! the spec has other options by then; a new member with the same template gets the same options. gatehouse owns each entry
//! that it writes, even if another client wrote an equal entry before.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Map, Value, json};

use super::etcd::{self, Member};
use super::metadata;
use crate::controllers::manifest::Manifest;
use crate::kinds::etcdcluster::agent::entry::Entry;
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{ConfigEntry, MemberId, Ordinal, Uid};
use crate::kinds::etcdcluster::spec::Spec;

/// The option that names the members as they were when an entry was written.
const INITIAL_CLUSTER: &str = "initial-cluster";

/// The ConfigMap with that `data` alone, to be made where there is none.
#[must_use]
pub fn manifest(spec: &Spec, data: &BTreeMap<String, String>) -> Manifest {
    let config = ConfigMap {
        metadata: metadata(spec, names::config(spec.name())),
        data: Some(data.clone()),
        ..ConfigMap::default()
    };
    Manifest::of(&config)
}

/// The keys of `entries` alone, for members of which `initial_cluster` are the ordinals.
#[must_use]
pub fn data(
    spec: &Spec,
    entries: &BTreeMap<Ordinal, ConfigEntry>,
    initial_cluster: &[Ordinal],
) -> BTreeMap<String, String> {
    data_over(spec, entries, initial_cluster, &ConfigMap::default(), 0)
}

/// The same over a ConfigMap that is there: an entry that stays with another template than that of `revision`, which
/// the spec has now, keeps the options that it has.
#[must_use]
pub fn data_over(
    spec: &Spec,
    entries: &BTreeMap<Ordinal, ConfigEntry>,
    initial_cluster: &[Ordinal],
    live: &ConfigMap,
    revision: u64,
) -> BTreeMap<String, String> {
    let name = spec.name();
    let before = self::entries(live, name);
    let told = entries.iter().flat_map(|(ordinal, entry)| {
        let member = Member { ordinal: *ordinal, entry, initial_cluster };
        let mut alike = before.iter().filter(|(_, before)| before.template == entry.template);
        let alike = alike.clone().find(|(at, _)| *at == ordinal).or_else(|| alike.next());
        let kept = alike
            .filter(|_| entry.template.revision != revision)
            .and_then(|(at, _)| live.data.as_ref()?.get(&names::flags_key(name, *at)))
            .and_then(|text| etcd::read(text));
        let flags = etcd::configuration(spec, &member, kept);
        let (key, mut text) = (names::entry_key(name, *ordinal), entry_text(entry));
        // A value that is written as it stands changes no owner. The entry reads the same with white space behind it.
        let has_other_owner = is_owned_by_another(spec, live, (&key, &text));
        if has_other_owner && live.data.as_ref().and_then(|data| data.get(&key)) == Some(&text) {
            text.push('\n');
        }
        [(key, text), (names::flags_key(name, *ordinal), flags)]
    });
    told.collect()
}

/// The keys of the entry at an ordinal: what withdrawing it takes away.
#[must_use]
pub fn keys(cluster: &str, ordinal: Ordinal) -> [String; 2] {
    [names::entry_key(cluster, ordinal), names::flags_key(cluster, ordinal)]
}

/// The entries of a ConfigMap. A key that does not read as one is left out.
#[must_use]
pub fn entries(config: &ConfigMap, cluster: &str) -> BTreeMap<Ordinal, ConfigEntry> {
    let data = config.data.iter().flatten();
    let entries = data.filter_map(|(key, text)| {
        let ordinal = names::ordinal(cluster, key.strip_suffix(names::ENTRY)?)?;
        Some((ordinal, entry_of(text)?))
    });
    entries.collect()
}

/// The ordinals whose entries another client has written.
#[must_use]
pub fn written_by_others(spec: &Spec, live: &ConfigMap) -> BTreeSet<Ordinal> {
    let data = live.data.iter().flatten();
    let entries = data.filter_map(|(key, text)| {
        let ordinal = names::ordinal(spec.name(), key.strip_suffix(names::ENTRY)?)?;
        is_owned_by_another(spec, live, (key, text)).then_some(ordinal)
    });
    entries.collect()
}

/// Whether another client owns that key of the ConfigMap.
fn is_owned_by_another(spec: &Spec, live: &ConfigMap, (key, text): (&str, &str)) -> bool {
    let data = [(key.to_owned(), text.to_owned())].into();
    manifest(spec, &data).is_owned_by_another(live, names::MANAGER)
}

/// Whether another client has changed the options beside an entry, or has removed them. `revision`: that of the template
/// that the spec has now; of an entry with another one, only what makes the member itself is known.
#[must_use]
pub fn is_altered(spec: &Spec, live: &ConfigMap, revision: u64) -> bool {
    let mut entries = entries(live, spec.name()).into_iter();
    entries.any(|(ordinal, entry)| is_entry_altered(spec, live, (ordinal, &entry), revision))
}

fn is_entry_altered(spec: &Spec, live: &ConfigMap, entry: (Ordinal, &ConfigEntry), revision: u64) -> bool {
    let (ordinal, entry) = entry;
    let key = names::flags_key(spec.name(), ordinal);
    let Some(text) = live.data.as_ref().and_then(|data| data.get(&key)) else { return true };
    let found = etcd::read(text);
    let kept = found.clone().filter(|_| entry.template.revision != revision);
    let text = etcd::configuration(spec, &Member { ordinal, entry, initial_cluster: &[] }, kept);
    // A release that writes other options than the last one changes none of a member that runs.
    let has_other_owner = is_owned_by_another(spec, live, (&key, &text));
    let comparable = |options: Option<Map<String, Value>>| {
        options.map(|mut options| {
            options.remove(INITIAL_CLUSTER);
            options
        })
    };
    has_other_owner && comparable(found) != comparable(etcd::read(&text))
}

/// An entry as the pod reads it.
fn entry_text(entry: &ConfigEntry) -> String {
    json!(Entry {
        purpose: entry.purpose,
        member: entry.member.map(names::member_id_text),
        volume: entry.volume.0.clone(),
        template: names::template_text(&entry.template),
        pod: entry.pod.as_ref().map(|pod| pod.0.clone()),
        raft_index: entry.raft_index,
        skips_check: entry.skips_check,
    })
    .to_string()
}

/// The same, read back.
fn entry_of(text: &str) -> Option<ConfigEntry> {
    let entry: Entry = serde_json::from_str(text).ok()?;
    let member = match &entry.member {
        Some(text) => Some(MemberId(names::hexadecimal(text)?)),
        None => None,
    };
    Some(ConfigEntry {
        purpose: entry.purpose,
        member,
        volume: Uid(entry.volume),
        template: names::template_of(&entry.template)?,
        pod: entry.pod.map(Uid),
        raft_index: entry.raft_index,
        skips_check: entry.skips_check,
    })
}

#[cfg(test)]
mod tests;
