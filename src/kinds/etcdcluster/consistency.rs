//! Compares the data of a cluster's voters.
//!
//! Guarantees: only reports of voters of one list, about the same keys, are compared; a member that does not answer, or
//! has dropped other revisions meanwhile, leaves the outcome unknown; voters are asked one after the other, for one
//! that hashes its keys commits nothing meanwhile, and soon answers nothing (`store.hashByRev` of etcd's
//! `server/storage/mvcc/kvstore.go` holds the lock that its commits wait for). Without need the leader is not asked
//! where that takes long, for then no write is acknowledged.
//! Never: changes anything.

pub mod decision;

use std::time::Duration;

use tracing::debug;

use super::observation::{Audit, ClusterId, Fact, MemberId, Ordinal, Reach};
use super::observe::Snapshot;
use crate::kinds::etcdcluster::etcd::{Client, Error};
use decision::Print;

/// How long the voters of one cluster may take together.
const LIMIT: Duration = Duration::from_mins(1);

/// A voter that is asked.
#[derive(Clone, Debug)]
pub struct Voter<'a> {
    /// Where it is.
    pub ordinal: Ordinal,
    /// Who has to answer.
    pub member: MemberId,
    /// How it is reached.
    pub client: &'a Client,
}

/// Compares the voters of the list that a reconciliation saw.
pub async fn look(sight: &Snapshot) -> Fact<Audit> {
    let Fact::Known(membership) = &sight.observation.membership else { return Fact::Unknown };
    // What was found to differ holds all changes up until it has been compared again, whatever that takes.
    let is_suspect = sight.observation.suspects_data();
    let reach = if is_suspect { Reach::All } else { sight.observation.reach() };
    // What was found while there were fewer data is not said any more.
    if reach == Reach::None {
        return Fact::Absent;
    }
    let voters: Option<Vec<_>> = membership
        .voters()
        .map(|member| {
            let ordinal = member.ordinal?;
            Some(Voter { ordinal, member: member.id, client: sight.reach.client(ordinal)? })
        })
        .collect();
    let Some(voters) = voters else { return Fact::Unknown };
    compare(membership.cluster_id, &voters, reach).await
}

/// Compares voters.
pub async fn compare(cluster_id: ClusterId, voters: &[Voter<'_>], reach: Reach) -> Fact<Audit> {
    if voters.len() < 2 {
        return Fact::Absent;
    }
    match tokio::time::timeout(LIMIT, prints(cluster_id, voters, reach)).await {
        Ok(Ok(Some((revision, prints)))) => decision::verdict_within(reach, revision, &prints),
        Ok(Ok(None)) => Fact::Unknown,
        Ok(Err(error)) => {
            debug!(%error, "the members' data could not be compared");
            Fact::Unknown
        }
        Err(_) => {
            debug!("the members took too long to compare their data");
            Fact::Unknown
        }
    }
}

/// What each that is asked reported of its keys up to the revision that all of them have; none where another one
/// answered.
async fn prints(
    cluster_id: ClusterId,
    voters: &[Voter<'_>],
    reach: Reach,
) -> Result<Option<(u64, Vec<Print>)>, Error> {
    let (mut lowest, mut asked) = (i64::MAX, Vec::new());
    for voter in voters {
        let status = voter.client.status().await?;
        let header = status.header;
        if (header.cluster_id, header.member_id) != (cluster_id.0, voter.member.0) {
            return Ok(None);
        }
        lowest = lowest.min(header.revision);
        if reach == Reach::All || status.leader != voter.member.0 {
            asked.push(voter);
        }
    }
    let mut prints = Vec::new();
    for Voter { ordinal, member, client } in asked {
        let hash = client.hash_keys(lowest).await?;
        // 3.5 does not say up to where it went.
        let is_asked = [0, lowest].contains(&hash.hash_revision);
        let header = hash.header;
        if !is_asked || (header.cluster_id, header.member_id) != (cluster_id.0, member.0) {
            return Ok(None);
        }
        prints.push(Print { ordinal: *ordinal, hash: hash.hash, compact_revision: hash.compact_revision });
    }
    Ok(u64::try_from(lowest).ok().map(|revision| (revision, prints)))
}
