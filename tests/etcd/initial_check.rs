//! What it costs that a member compares its data with those of all others before it serves: how long it takes to start,
//! and how long no write is acknowledged meanwhile. Each other member hashes all of its keys for that, the leader too.
//!
//! Alone, and with what it prints: `cargo test --test etcd -- --ignored --test-threads 1 initial_check`. Each version
//! takes minutes, 15 GB of disk and 8 GB of memory. What has just been written lies in the memory of the machine: data that
//! have to be read from a disk take longer than this, and much longer.

use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use futures::future::join_all;
use gatehouse::kinds::etcdcluster::etcd::{Client, Limits};
use kit::etcd::{Calls as _, Put, Request, RequestKind, Txn};
use kit::history::writer::{Pace, Writer};
use testbed::{EtcdState, EtcdVersion};

use crate::bed::test_name;
use crate::support::{Cluster, limits};

const ALL: [usize; 3] = [0, 1, 2];

/// Bytes in use of the database, in MiB: as many as gatehouse has compared at a start, fewer and more.
const SIZES: [u64; 5] = [128, 256, 512, 1024, 2048];

/// How often a member is started at each size, with the comparison and without.
const ROUNDS: usize = 3;

/// The size of a value: about that of an object of Kubernetes.
const VALUE: usize = 4 << 10;

/// Keys in a request: fewer than etcd lets one have, and fewer bytes.
const KEYS: u64 = 64;

/// Requests at a time.
const SIDE_BY_SIDE: u64 = 8;

/// So few changes that a member is not sent the whole database after its start, and so many that a gap is seen.
const PACE: Pace = Pace { clients: 4, pause: Duration::from_millis(10) };

/// Writes that have to go through before the member starts, and after it serves.
const SOME: u64 = 50;

/// Of every start of a member with a database of that size.
const FLAGS: [&str; 3] = ["--quota-backend-bytes=8589934592", "--snapshot-count=200", "--log-level=info"];

/// How long a member may take to hash its data: those that were taken out of memory meanwhile are read page by page.
const HASHING: Duration = Duration::from_mins(5);

/// What etcd logs when it compares.
const COMPARES: &str = "starting initial corruption check";

/// Times of some starts, from the shortest to the longest.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn add(&mut self, time: Duration) {
        self.0.push(time);
        self.0.sort_unstable();
    }
}

impl fmt::Display for Times {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |time: Option<&Duration>| time.map_or(f64::NAN, Duration::as_secs_f64);
        let (least, most) = (seconds(self.0.first()), seconds(self.0.last()));
        write!(formatter, "{:.2} s ({least:.2} to {most:.2})", seconds(self.0.get(self.0.len() / 2)))
    }
}

/// What was measured with the comparison, or without it.
#[derive(Default)]
struct Starts {
    serves: Times,
    gaps: Times,
}

pub async fn a_member_starts_with_and_without_a_comparison_of_all_data(version: EtcdVersion) {
    let mut cluster = Cluster::with(version, 3, &FLAGS).await;
    let (mut compared, mut keys) = ([0; 3], 0);
    // The name of a test that runs alone stands in the line already.
    println!();
    for size in SIZES {
        let leader = cluster.leader(&ALL).await;
        let (member, other) = ((leader + 1) % ALL.len(), (leader + 2) % ALL.len());
        load(&cluster, leader, size << 20, &mut keys).await;
        let hashing = Instant::now();
        client(&cluster, other).hash_keys(0).await.unwrap();
        let hashing = hashing.elapsed();
        let mut starts = [Starts::default(), Starts::default()];
        for _ in 0..ROUNDS {
            for (compares, starts) in [false, true].into_iter().zip(&mut starts) {
                start(&mut cluster, member, [leader, other], compares, starts).await;
                compared[member] += usize::from(compares);
                // It compared where it was to, and only there.
                assert_eq!(count(&cluster, member, COMPARES), compared[member], "{size} MiB, {compares}");
            }
        }
        // An election, as on a machine that is busy with something else, is a gap of its own.
        let elected = if cluster.leader(&ALL).await == leader { "" } else { "; another member leads now" };
        for (starts, how) in starts.iter().zip(["without the comparison", "with it"]) {
            println!(
                "figure: {}: {size} MiB in use, {how}: a member serves after {}, longest gap in writes {}; \
                 one hash of all keys {:.2} s{elected}",
                test_name(),
                starts.serves,
                starts.gaps,
                hashing.as_secs_f64(),
            );
        }
    }
}

fn client(cluster: &Cluster, member: usize) -> Client {
    cluster.client_with(member, Limits { read: HASHING, ..limits() })
}

/// Writes more keys until so many bytes are in use.
async fn load(cluster: &Cluster, leader: usize, in_use: u64, keys: &mut u64) {
    let client = cluster.client(leader);
    while u64::try_from(client.status().await.unwrap().db_size_in_use).unwrap() < in_use {
        let transactions = (0..SIDE_BY_SIDE).map(|request| {
            let first = *keys + request * KEYS;
            let put = |key: u64| -> Request {
                let key = format!("/registry/load/{key:012}").into_bytes();
                RequestKind::Put(Put { key, value: vec![b'x'; VALUE] }).into()
            };
            let success = (first..first + KEYS).map(put).collect();
            client.transact(Txn { success, ..Txn::default() })
        });
        for transaction in join_all(transactions).await {
            transaction.unwrap();
        }
        *keys += SIDE_BY_SIDE * KEYS;
    }
    // All have applied what was written, so that a start is no more than that.
    let wanted = client.status().await.unwrap().raft_index;
    for member in ALL {
        let reached = async || (cluster.status(member).await.raft_applied_index >= wanted).then_some(());
        cluster.eventually("member that has applied all", reached).await;
    }
}

/// Starts a member again while clients write to the others, and measures.
async fn start(cluster: &mut Cluster, member: usize, others: [usize; 2], compares: bool, into: &mut Starts) {
    let gate = match cluster.version {
        EtcdVersion::V3_5 => format!("--experimental-initial-corrupt-check={compares}"),
        EtcdVersion::V3_6 | EtcdVersion::V3_7 => format!("--feature-gates=InitialCorruptCheck={compares}"),
    };
    let flags: Vec<_> = FLAGS.into_iter().chain([gate.as_str()]).collect();
    cluster.bed.stop(member).unwrap();
    // What earlier clients wrote is none of these clients' history.
    let prefix = format!("writer-{}", cluster.status(others[0]).await.header.revision);
    let writer = Writer::start_at(PACE, &prefix, others.map(|other| client(cluster, other)).to_vec()).await;
    writer.goes_on(SOME).await;
    let begun = Instant::now();
    cluster.bed.start(member, cluster.version, (EtcdState::New, &ALL), &flags).unwrap();
    cluster.serves(member).await;
    into.serves.add(begun.elapsed());
    writer.goes_on(SOME).await;
    let report = writer.finish(&ALL.map(|voter| client(cluster, voter))).await;
    report.expect_kept(usize::try_from(2 * SOME).unwrap());
    into.gaps.add(report.longest_gap);
}

/// How often a member has logged that.
fn count(cluster: &Cluster, member: usize, words: &str) -> usize {
    let log = fs::read_to_string(cluster.bed.data(member).with_extension("log")).unwrap();
    log.matches(words).count()
}
