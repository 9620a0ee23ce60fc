//! Data that differ on one member, as after a disk has lost a bit.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use kit::wait::eventually;
use serde_json::{Value, json};

use super::cluster::Etcd;
use super::{NEWEST, gone_with_its_object, recovery};
use crate::cluster::{Bed, Namespace};
use crate::release::Way;

/// What a key holds, and nothing else in the file of a database.
const WHOLE: &str = "a-value-that-is-found-once-0";

/// The leader takes its own data for right, and raises an alarm about others. Its file is changed while it runs: its
/// next hash is of what the file holds by then, and no election names another leader, as a stop would have it.
pub fn etcd_loses_no_good_member_to_a_corrupt_leader(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-corrupt");
    let options = json!({"options": {"extra": {"corrupt-check-time": "5s"}}});
    let etcd = Etcd::asking(&namespace, "Disabled", NEWEST, 3, &options);
    etcd.until_settled(3);
    etcd.put("kept", WHOLE);
    let replaced = (0..3).find_map(|_| is_replaced_while_it_leads(&etcd, &namespace));
    let Before { leader, ids, claims } =
        replaced.expect("each time another member led before there was an alarm");
    let (ids_now, claims_now) = (self::ids(&etcd), recovery::uids(&namespace, "persistentvolumeclaims"));
    for (name, id) in ids.iter().filter(|(name, _)| **name != leader) {
        let claim = format!("data-{name}");
        assert_eq!((&ids_now[name], &claims_now[&claim]), (id, &claims[&claim]), "{name} had good data");
    }
    etcd.hash(0);
    assert_eq!(etcd.read("kept").as_deref(), Some(WHOLE));
    etcd.put("after", "yes");
    gone_with_its_object(bed, &namespace);
}

/// A follower's file loses a bit, and its pod is deleted: etcd compares its data before it serves, and ends. The others
/// agree without it, so that it is replaced.
pub fn etcd_replaces_a_member_that_does_not_start_over_its_data(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-different");
    let etcd = Etcd::new(&namespace, "Disabled", NEWEST, 3);
    etcd.until_settled(3);
    etcd.put("kept", WHOLE);
    let (ids, claims) = (ids(&etcd), recovery::uids(&namespace, "persistentvolumeclaims"));
    let leads = etcd.leader();
    let (follower, id) = ids.iter().find(|(_, id)| **id != leads).expect("a follower");
    change_a_bit(&namespace, follower);
    namespace.kubectl(&["delete", "pod", follower]).ok();
    etcd.until(|members| {
        let members = members.ok_or("no voter is ready")?.members;
        let is_there = members.iter().any(|member| member.id == *id);
        if is_there { Err(format!("{follower} is not replaced")) } else { Ok(()) }
    });
    etcd.until_settled(3);
    let (ids_now, claims_now) = (self::ids(&etcd), recovery::uids(&namespace, "persistentvolumeclaims"));
    for (name, id) in ids.iter().filter(|(name, _)| *name != follower) {
        let claim = format!("data-{name}");
        assert_eq!((&ids_now[name], &claims_now[&claim]), (id, &claims[&claim]), "{name} had good data");
    }
    etcd.hash(0);
    assert_eq!(etcd.read("kept").as_deref(), Some(WHOLE));
    gone_with_its_object(bed, &namespace);
}

/// What there was before the leader lost a bit.
struct Before {
    leader: String,
    ids: BTreeMap<String, u64>,
    claims: BTreeMap<String, Value>,
}

/// Has the leader lose a bit, and waits until it is replaced. None where another one led before there was an alarm: that
/// named the right one.
fn is_replaced_while_it_leads(etcd: &Etcd<'_>, namespace: &Namespace<'_>) -> Option<Before> {
    let (ids, claims) = (ids(etcd), recovery::uids(namespace, "persistentvolumeclaims"));
    let id = etcd.leader();
    let leader = ids.iter().find(|(_, of)| **of == id).expect("a member").0.clone();
    change_a_bit(namespace, &leader);
    let mut named = BTreeSet::new();
    etcd.until(|members| {
        named.append(&mut etcd.named_corrupt());
        let members = members.ok_or("no voter is ready")?.members;
        if members.iter().all(|member| member.id != id) {
            Ok(())
        } else {
            Err(format!("{leader} is not replaced"))
        }
    });
    etcd.until_settled(3);
    let is_wrong = |one: &u64| *one != id && ids.values().any(|of| of == one);
    named.iter().any(is_wrong).then_some(Before { leader, ids, claims })
}

/// The ids of members by their names.
fn ids(etcd: &Etcd<'_>) -> BTreeMap<String, u64> {
    let members = etcd.listed();
    members.into_iter().map(|member| (member.name, member.id)).collect()
}

/// Makes another value of [`WHOLE`] in the database of a member, wherever the file has it.
fn change_a_bit(namespace: &Namespace<'_>, member: &str) {
    let process = namespace.members(member)[0];
    let path = PathBuf::from(format!("/proc/{process}/root/var/lib/etcd/data/member/snap/db"));
    let file = OpenOptions::new().read(true).write(true).open(&path).expect("a database");
    // etcd writes its file some time after it has answered.
    let places = eventually(|| {
        let data = std::fs::read(&path).map_err(|error| error.to_string())?;
        let is_value = |window: &[u8]| window == WHOLE.as_bytes();
        let places: Vec<_> = data
            .windows(WHOLE.len())
            .enumerate()
            .filter(|(_, found)| is_value(found))
            .map(|(at, _)| at)
            .collect();
        if places.is_empty() { Err("the value is not in the file".to_owned()) } else { Ok(places) }
    });
    let last = WHOLE.len() - 1;
    for place in places {
        file.write_all_at(b"1", (place + last) as u64).expect("it is written");
    }
}
