//! Who is in the cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use gatehouse::kinds::etcdcluster::etcd::{Outcome, Refusal};
use kit::etcd::Calls as _;
use testbed::EtcdVersion;

use crate::support::{Cluster, is_unreachable, refused};

pub async fn a_member_knows_itself(version: EtcdVersion) {
    let cluster = Cluster::of(version, 1).await;
    let members = cluster.client(0).members().await.unwrap();
    let [member] = &members.members[..] else { panic!("{members:?}") };
    assert_eq!(member.name, "etcd-0");
    assert_eq!(member.peer_urls, [cluster.bed.peer_url(0)]);
    assert_eq!(member.client_urls, [cluster.bed.client_url(0)]);
    assert!(!member.is_learner);
    assert_eq!(member.id, members.header.member_id);
    assert_ne!(members.header.cluster_id, 0);
}

pub async fn a_learner_is_added_refused_promotion_and_promoted(version: EtcdVersion) {
    let mut cluster = Cluster::of(version, 1).await;
    let (client, peer_url) = (cluster.client(0), cluster.bed.peer_url(1));
    let added = client.add_learner(&peer_url).await.unwrap();
    assert!(added.member.is_learner && added.member.name.is_empty());
    assert_eq!(added.member.peer_urls, [peer_url.as_str()]);
    assert_eq!(added.members.len(), 2);

    let id = added.member.id;
    let early = client.promote(id).await.unwrap_err();
    assert_eq!(early.refusal(), Some(Refusal::LearnerNotReady), "{early}");
    assert_eq!(early.outcome(), Outcome::None);

    cluster.join(1, &[0, 1]);
    cluster.promoted(0, id).await;
    cluster.serves(1).await;
    let members = cluster.client(1).members().await.unwrap().members;
    assert!(members.iter().all(|member| !member.is_learner && !member.name.is_empty()), "{members:?}");
    assert_eq!(refused(client.promote(id).await), Refusal::MemberNotLearner);
}

pub async fn what_is_there_already_is_refused_by_name(version: EtcdVersion) {
    let cluster = Cluster::of(version, 1).await;
    let client = cluster.client(0);
    assert_eq!(refused(client.add_learner(&cluster.bed.peer_url(0)).await), Refusal::PeerUrlExists);
    assert_eq!(refused(client.add_learner("nowhere").await), Refusal::BadPeerUrls);
    assert_eq!(refused(client.remove(4711).await), Refusal::MemberNotFound);
    assert_eq!(refused(client.promote(4711).await), Refusal::MemberNotFound);
    assert_eq!(
        refused(client.update_peer_urls(4711, vec!["http://a:1".to_owned()]).await),
        Refusal::MemberNotFound
    );

    let added = client.add_learner(&cluster.bed.peer_url(1)).await.unwrap();
    // etcd makes an identity of the URL and the second, and looks for that first.
    cluster
        .eventually("another second", async || {
            match refused(client.add_learner(&cluster.bed.peer_url(1)).await) {
                Refusal::PeerUrlExists => Some(()),
                refusal => {
                    assert_eq!(refusal, Refusal::MemberExists);
                    None
                }
            }
        })
        .await;
    assert_eq!(refused(client.add_learner(&cluster.bed.peer_url(2)).await), Refusal::TooManyLearners);
    let elsewhere = cluster.bed.peer_url(2);
    let members = client.update_peer_urls(added.member.id, vec![elsewhere.clone()]).await.unwrap().members;
    assert!(members.iter().any(|member| member.peer_urls == [elsewhere.as_str()]), "{members:?}");
}

pub async fn a_member_is_removed_once(version: EtcdVersion) {
    let mut cluster = Cluster::of(version, 3).await;
    let leader = cluster.leader(&[0, 1, 2]).await;
    let victim = (leader + 1) % 3;
    let (client, id) = (cluster.client(leader), cluster.status(victim).await.header.member_id);
    let left = cluster.once_healthy(async || client.remove(id).await).await.members;
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|member| member.id != id));
    assert_eq!(refused(client.remove(id).await), Refusal::MemberNotFound); // etcd's "ID removed" comes as this
    cluster.bed.kill(victim);
    assert!(is_unreachable(&cluster.client(victim).status().await.unwrap_err()));
}

pub async fn the_leader_hands_over(version: EtcdVersion) {
    let cluster = Cluster::of(version, 3).await;
    let all = [0, 1, 2];
    let ask = async || {
        let term = cluster.term(&all).await?;
        let leader = cluster.leader(&all).await;
        let follower = (leader + 1) % 3;
        let id = cluster.status(follower).await.header.member_id;
        let told =
            [cluster.client(follower).move_leader(id).await, cluster.client(leader).move_leader(4711).await];
        (cluster.term(&all).await? == term).then_some((leader, follower, told))
    };
    let (leader, follower, told) = cluster.eventually("answers within one term", ask).await;
    assert_eq!(told.map(refused), [Refusal::NotLeader, Refusal::BadLeaderTransferee]);
    let hand_over = async || {
        cluster.hand_over(&all, follower).await;
        let leads = [cluster.status(follower).await.is_leader(), cluster.status(leader).await.is_leader()];
        (leads == [true, false]).then_some(())
    };
    cluster.eventually("hand-over to the follower", hand_over).await;
}

pub async fn a_member_that_is_cut_off_answers_of_what_it_remembers_alone(version: EtcdVersion) {
    let mut cluster = Cluster::of(version, 3).await;
    let known: BTreeSet<_> = ids(&cluster.client(0).members().await.unwrap().members);
    cluster.bed.kill(1);
    cluster.bed.kill(2);
    let client = cluster.client(0);
    cluster
        .eventually("a member without a leader", async || {
            (client.status().await.unwrap().leader == 0).then_some(())
        })
        .await;
    let error = client.members().await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    assert_eq!(ids(&client.remembered_members().await.unwrap().members), known);
    // Nothing is agreed on, and etcd says so before our patience is over, or we give up: either way it is in doubt.
    let limits = gatehouse::kinds::etcdcluster::etcd::Limits {
        change: Duration::from_secs(2),
        ..crate::support::limits()
    };
    let error = cluster.client_with(0, limits).put(b"key", b"value").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    let error = client.add_learner(&cluster.bed.peer_url(3)).await.unwrap_err();
    assert_eq!(error.refusal(), Some(Refusal::Unhealthy), "{error}");
    cluster.restart(1);
    cluster.serves(0).await;
}

/// etcd writes that an entry is agreed on to its log with the next entry, and not before. A voter that removes the
/// other one of two, and is killed before that, comes back as one of two (3.5, 3.6) and waits for the other one for
/// ever.
pub async fn a_voter_that_is_left_alone_and_has_written_since_comes_back(version: EtcdVersion) {
    let mut cluster = Cluster::of(version, 2).await;
    let id = cluster.status(1).await.header.member_id;
    let client = cluster.client(0);
    cluster.once_healthy(async || client.remove(id).await).await;
    cluster.bed.kill(1);
    cluster.leader(&[0]).await;
    client.put(b"key", b"value").await.unwrap();
    cluster.bed.kill(0);
    cluster.restart(0);
    cluster.serves(0).await;
    assert_eq!(cluster.client(0).members().await.unwrap().members.len(), 1);
}

/// A voter that no longer hears of a majority names no leader. A learner has no vote to ask for, and goes on naming
/// one.
pub async fn a_learner_names_the_leader_that_it_last_heard_of(version: EtcdVersion) {
    let mut cluster = Cluster::of(version, 2).await;
    let (client, peer_url) = (cluster.client(0), cluster.bed.peer_url(2));
    cluster.once_healthy(async || client.add_learner(&peer_url).await).await;
    cluster.join(2, &[0, 1, 2]);
    let leader = cluster.leader(&[0, 1]).await;
    let (voter, learner) = (cluster.client(leader), cluster.client(2));
    let id = voter.status().await.unwrap().leader;
    let named = async || learner.status().await.ok().filter(|status| status.leader == id);
    cluster.eventually("a learner that follows", named).await;
    cluster.bed.kill(1 - leader);
    let alone = async || voter.status().await.ok().filter(|status| status.leader == 0);
    cluster.eventually("a leader that steps down", alone).await;
    assert_eq!(learner.status().await.unwrap().leader, id);
}

fn ids(members: &[gatehouse::kinds::etcdcluster::etcd::Member]) -> BTreeSet<u64> {
    members.iter().map(|member| member.id).collect()
}
