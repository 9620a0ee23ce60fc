//! How far a member has got that stood still while the others went on.

use futures::future::join_all;
use gatehouse::kinds::etcdcluster::plan::{CAUGHT_UP, has_caught_up};
use kit::etcd::Calls as _;
use testbed::EtcdVersion;

use crate::support::Cluster;

const ALL: [usize; 3] = [0, 1, 2];

/// Writes at a time.
const SIDE_BY_SIDE: u64 = 200;

/// Writes that a member lacks: more than one that has caught up may.
const MISSED: u64 = 2 * CAUGHT_UP;

pub async fn a_member_that_stood_still_lags_until_it_has_applied_what_it_missed(version: EtcdVersion) {
    let cluster = Cluster::of(version, 3).await;
    let leader = cluster.leader(&ALL).await;
    let follower = (leader + 1) % ALL.len();
    let statuses = async || (cluster.status(follower).await, cluster.status(leader).await);
    let (status, of_leader) = statuses().await;
    assert!(has_caught_up(status.raft_applied_index, of_leader.raft_index), "{status:?}, {of_leader:?}");

    cluster.bed.freeze(follower).unwrap();
    let client = cluster.client(leader);
    for _ in 0..MISSED / SIDE_BY_SIDE {
        let puts = (0..SIDE_BY_SIDE).map(|_| client.put(b"key", b"value"));
        for put in join_all(puts).await {
            put.unwrap();
        }
    }
    // It is asked before it goes on: its first answer is of what it had.
    let (status, ()) = tokio::join!(cluster.status(follower), async {
        cluster.bed.thaw(follower).unwrap();
    });
    let of_leader = cluster.status(leader).await;
    assert!(!has_caught_up(status.raft_applied_index, of_leader.raft_index), "{status:?}, {of_leader:?}");

    // Members of 3.6 and 3.7 are sent the whole database: the leader keeps fewer entries than these. What they then say
    // that they have applied is old, until they apply the next entry. No client writes: each look of the operator
    // appends one, as it asks for the alarms.
    cluster
        .eventually("member that has caught up", async || {
            client.alarms().await.unwrap();
            let (status, of_leader) = statuses().await;
            has_caught_up(status.raft_applied_index, of_leader.raft_index).then_some(())
        })
        .await;
}
