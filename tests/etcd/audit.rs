//! Comparing what voters hold.

use std::fs;

use gatehouse::kinds::etcdcluster::consistency::{Silent, Voter, compare, compare_with};
use gatehouse::kinds::etcdcluster::etcd::Client;
use gatehouse::kinds::etcdcluster::last_words;
use gatehouse::kinds::etcdcluster::observation::{
    Audit, ClusterId, Fact, MemberId, Ordinal, OwnPrint, Reach,
};
use kit::etcd::Calls as _;
use testbed::EtcdVersion;

use crate::support::Cluster;

/// What is written, and what a member's file is made to have in its place.
const VALUES: [&[u8]; 2] = [b"what all of them acknowledged", b"what one of them made of that"];

/// Compares these members, each at the ordinal of its place.
async fn compared(cluster: &Cluster, members: &[usize]) -> Fact<Audit> {
    compared_within(cluster, members, Reach::All).await
}

async fn compared_within(cluster: &Cluster, members: &[usize], reach: Reach) -> Fact<Audit> {
    let clients: Vec<Client> = cluster.clients(members.iter().copied());
    let mut voters = Vec::new();
    let mut cluster_id = 0;
    for (member, client) in members.iter().zip(&clients) {
        let header = client.status().await.unwrap().header;
        cluster_id = header.cluster_id;
        let ordinal = Ordinal(u32::try_from(*member).unwrap());
        voters.push(Voter { ordinal, member: MemberId(header.member_id), client });
    }
    compare(ClusterId(cluster_id), &voters, reach).await
}

/// Compares until that tells something: a member may not have heard of the last compaction yet.
async fn told(cluster: &Cluster, members: &[usize]) -> Fact<Audit> {
    let look = async || Some(compared(cluster, members).await).filter(|found| !found.is_unknown());
    cluster.eventually("verdict", look).await
}

pub async fn voters_that_hold_the_same_are_found_equal_at_any_revision(version: EtcdVersion) {
    let cluster = Cluster::of(version, 3).await;
    let mut revision = 0;
    for value in 0..20_u8 {
        let member = usize::from(value) % 3;
        revision = cluster.client(member).put(b"key", &[value]).await.unwrap().header.revision;
    }
    assert_eq!(told(&cluster, &[0, 1, 2]).await, Fact::Known(Audit::Equal));
    cluster.client(0).compact(revision - 5, true).await.unwrap();
    assert_eq!(told(&cluster, &[0, 1, 2]).await, Fact::Known(Audit::Equal));
    assert_eq!(compared(&cluster, &[1]).await, Fact::Absent);

    let (client, other) = (cluster.client(0), cluster.client(1));
    let ids = [cluster.status(0).await.header, cluster.status(1).await.header];
    let voter = |client, id| Voter { ordinal: Ordinal(0), member: MemberId(id), client };
    let swapped = [voter(&client, ids[1].member_id), voter(&other, ids[0].member_id)];
    assert_eq!(compare(ClusterId(ids[0].cluster_id), &swapped, Reach::All).await, Fact::Unknown);
    let strangers = [voter(&client, ids[0].member_id), voter(&other, ids[1].member_id)];
    assert_eq!(compare(ClusterId(7), &strangers, Reach::All).await, Fact::Unknown);
}

pub async fn a_member_whose_file_was_altered_is_named_by_the_others(version: EtcdVersion) {
    let mut cluster = Cluster::of(version, 3).await;
    let [value, altered] = VALUES;
    cluster.client(0).put(b"key", value).await.unwrap();
    assert_eq!(told(&cluster, &[0, 1, 2]).await, Fact::Known(Audit::Equal));

    alter(&mut cluster, value, altered);
    cluster.restart(2);
    cluster.serves(2).await;
    // It serves what it holds, and no member has noticed.
    let found = told(&cluster, &[0, 1, 2]).await;
    let Fact::Known(Audit::Different { minority, revision }) = &found else { panic!("{found:?}") };
    assert_eq!(*minority, [Ordinal(2)].into());
    assert_eq!(i64::try_from(*revision).unwrap(), cluster.status(0).await.header.revision);
    // Of two, none can be shown to be right.
    let found = told(&cluster, &[0, 2]).await;
    assert!(
        matches!(&found, Fact::Known(Audit::Different { minority, .. }) if minority.is_empty()),
        "{found:?}"
    );
    assert_eq!(told(&cluster, &[0, 1]).await, Fact::Known(Audit::Equal));
    the_leader_is_left_out(&cluster).await;

    // Writes since then change nothing about it.
    for member in 0..3 {
        cluster.write(&cluster.client(member), b"other", value).await;
    }
    let found = told(&cluster, &[0, 1, 2]).await;
    let Fact::Known(Audit::Different { minority, .. }) = &found else { panic!("{found:?}") };
    assert_eq!(*minority, [Ordinal(2)].into());
}

/// Stops the last member, and has its file hold another value.
fn alter(cluster: &mut Cluster, value: &[u8], altered: &[u8]) {
    cluster.bed.stop(2).unwrap();
    let file = cluster.bed.data(2).join("member/snap/db");
    let mut held = fs::read(&file).unwrap();
    let places: Vec<_> = (0..held.len() - value.len()).filter(|at| held[*at..].starts_with(value)).collect();
    assert!(!places.is_empty(), "the value is not in {}", file.display());
    for at in places {
        held[at..at + value.len()].copy_from_slice(altered);
    }
    fs::write(&file, held).unwrap();
}

/// What the kubelet keeps of the log of a container that has ended: so many bytes, of so many lines.
fn termination_message(log: &str) -> &str {
    let lines: Vec<_> = log.split_inclusive('\n').collect();
    let bytes: usize = lines.iter().rev().take(80).map(|line| line.len()).sum();
    let mut from = log.len() - bytes.min(2048).min(log.len());
    while !log.is_char_boundary(from) {
        from += 1;
    }
    &log[from..]
}

pub async fn a_member_that_does_not_start_over_its_data_is_named_by_the_others(version: EtcdVersion) {
    let flags: &[&str] = match version {
        // Before its first raft snapshot, etcd 3.5 does not know its peers when it compares, and finds no difference.
        EtcdVersion::V3_5 => &["--experimental-initial-corrupt-check=true", "--snapshot-count=1"],
        EtcdVersion::V3_6 | EtcdVersion::V3_7 => &["--feature-gates=InitialCorruptCheck=true"],
    };
    let mut cluster = Cluster::with(version, 3, flags).await;
    let [value, altered] = VALUES;
    cluster.client(0).put(b"key", value).await.unwrap();
    assert_eq!(told(&cluster, &[0, 1, 2]).await, Fact::Known(Audit::Equal));
    let member = cluster.status(2).await.header.member_id;
    let named = cluster.status(2).await.header.revision;
    alter(&mut cluster, value, altered);
    // The others go on, and the member knows nothing of that.
    cluster.write(&cluster.client(0), b"other", value).await;
    cluster.restart(2);
    let log = || fs::read_to_string(cluster.bed.data(2).with_extension("log")).unwrap();
    let ended = async || Some(log()).filter(|log| last_words::is_of_peers(log));
    let log = cluster.eventually("end of the member", ended).await;
    assert!(last_words::is_of_peers(termination_message(&log)), "what the kubelet keeps says why");
    let lines: Vec<_> = log.lines().collect();
    let last = lines[lines.len().saturating_sub(200)..].join("\n");
    let print = last_words::print(&last).expect("a hash in the end of the log");
    assert_eq!((print.member, print.revision), (MemberId(member), u64::try_from(named).unwrap()));

    let silent = Silent { ordinal: Ordinal(2), print };
    let found = compared_with(&cluster, &[0, 1], silent).await;
    assert_eq!(
        found,
        Fact::Known(Audit::Different { revision: print.revision, minority: [Ordinal(2)].into() })
    );
    // One of the others alone is no majority of three.
    let found = compared_with(&cluster, &[0], silent).await;
    let is_unnamed = matches!(&found, Fact::Known(Audit::Different { minority, .. }) if minority.is_empty());
    assert!(is_unnamed, "{found:?}");
    // The hash that the others have at that revision.
    let sound = cluster.client(0).hash_keys(named).await.unwrap().hash;
    let sound = Silent { print: OwnPrint { hash: sound, ..print }, ..silent };
    assert_eq!(compared_with(&cluster, &[0, 1], sound).await, Fact::Known(Audit::Equal));
    // A revision that the others do not have yet, and one that they have dropped.
    let later = Silent { print: OwnPrint { revision: print.revision + 1_000_000, ..print }, ..silent };
    assert_eq!(compared_with(&cluster, &[0, 1], later).await, Fact::Unknown);
    let last = cluster.status(0).await.header.revision;
    cluster.client(0).compact(last, true).await.unwrap();
    assert_eq!(compared_with(&cluster, &[0, 1], silent).await, Fact::Unknown);
}

/// Compares these members of three with one that does not start.
async fn compared_with(cluster: &Cluster, members: &[usize], silent: Silent) -> Fact<Audit> {
    let clients: Vec<Client> = cluster.clients(members.iter().copied());
    let mut voters = Vec::new();
    let mut cluster_id = 0;
    for (member, client) in members.iter().zip(&clients) {
        let header = client.status().await.unwrap().header;
        cluster_id = header.cluster_id;
        let ordinal = Ordinal(u32::try_from(*member).unwrap());
        voters.push(Voter { ordinal, member: MemberId(header.member_id), client });
    }
    compare_with(ClusterId(cluster_id), &voters, silent, 3).await
}

/// Followers that differ are found by themselves; that they agree says nothing of a leader that was not asked.
async fn the_leader_is_left_out(cluster: &Cluster) {
    for leader in [0, 2] {
        let followers = async || {
            cluster.hand_over(&[0, 1, 2], leader).await;
            let term = cluster.term(&[0, 1, 2]).await?;
            let leads = cluster.status(leader).await.is_leader();
            let found = compared_within(cluster, &[0, 1, 2], Reach::Followers).await;
            let is_of_one_term = leads && cluster.term(&[0, 1, 2]).await? == term;
            Some(found).filter(|found| is_of_one_term && !found.is_unknown())
        };
        let found = cluster.eventually("verdict of the followers", followers).await;
        let is_told = matches!(&found, Fact::Known(Audit::Different { minority, .. }) if minority.is_empty());
        assert_eq!(is_told, leader != 2, "member {leader} leads: {found:?}");
        assert_eq!(found.is_absent(), leader == 2, "member {leader} leads: {found:?}");
    }
}
