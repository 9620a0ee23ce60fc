//! How far a member has got that heard nothing while the others went on.

use futures::future::join_all;
use gatehouse::kinds::etcdcluster::plan::{CAUGHT_UP, has_caught_up};
use testbed::EtcdVersion;

use crate::support::Cluster;

const ALL: [usize; 3] = [0, 1, 2];

/// Writes at a time.
const SIDE_BY_SIDE: u64 = 200;

/// Writes that a member lacks: more than one that has caught up may.
const MISSED: u64 = 2 * CAUGHT_UP;

pub async fn a_member_that_is_cut_off_lags_until_it_has_applied_what_it_missed(version: EtcdVersion) {
    let (cluster, links) = Cluster::linked(version, 3).await;
    let leader = cluster.leader(&ALL).await;
    let follower = (leader + 1) % ALL.len();
    let statuses = async || (cluster.status(follower).await, cluster.status(leader).await);
    let (status, of_leader) = statuses().await;
    assert!(has_caught_up(status.raft_applied_index, of_leader.raft_index), "{status:?}, {of_leader:?}");

    links.cut(follower, status.header.member_id);
    let client = cluster.client(leader);
    for _ in 0..MISSED / SIDE_BY_SIDE {
        join_all((0..SIDE_BY_SIDE).map(|_| cluster.write(&client, b"key", b"value"))).await;
    }
    let (status, of_leader) = statuses().await;
    assert!(!has_caught_up(status.raft_applied_index, of_leader.raft_index), "{status:?}, {of_leader:?}");
    links.mend();

    // Members of 3.6 and 3.7 are sent the whole database: the leader keeps fewer entries than these. What they then say
    // that they have applied is old, until they apply the next entry. No client writes: each look of the operator
    // appends one, as it asks for the alarms.
    cluster
        .eventually("member that has caught up", async || {
            client.alarms().await.ok()?;
            let (status, of_leader) = statuses().await;
            has_caught_up(status.raft_applied_index, of_leader.raft_index).then_some(())
        })
        .await;
}
