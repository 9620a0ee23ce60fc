//! Compares the data of a cluster's voters.
//!
//! Guarantees: only reports of voters of one list, about the same keys, are compared; a member that does not answer, or
//! has dropped other revisions meanwhile, leaves the outcome unknown; voters are asked one after the other, for one
//! that hashes its keys commits nothing meanwhile, and soon answers nothing (`store.hashByRev` of etcd's
//! `server/storage/mvcc/kvstore.go` holds the lock that its commits wait for). Without need the leader is not asked
//! where that takes long, for then no write is acknowledged.
//! Of a member that does not start because its data differ, the hash that it gave itself is compared, at the revision that
//! it names.
//! Never: changes anything.

pub mod decision;

use std::time::Duration;

use tracing::debug;

use super::observation::{Audit, ClusterId, Fact, MemberId, Ordinal, OwnPrint, Reach};
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

/// A voter that does not start, and the hash that it gave of its data.
#[derive(Clone, Copy, Debug)]
pub struct Silent {
    /// Where it is.
    pub ordinal: Ordinal,
    /// What it gave.
    pub print: OwnPrint,
}

/// Compares the voters of the list that a reconciliation saw.
pub async fn look(sight: &Snapshot) -> Fact<Audit> {
    let seen = &sight.observation;
    let Fact::Known(membership) = &seen.membership else { return Fact::Unknown };
    let is_voters = |(ordinal, print): &(Ordinal, OwnPrint)| {
        membership.voters().any(|voter| voter.ordinal == Some(*ordinal) && voter.id == print.member)
    };
    let silent: Vec<_> = seen.own_prints().filter(is_voters).collect();
    // What was found to differ holds all changes up until it has been compared again, whatever that takes.
    let is_suspect = seen.suspects_data() || !silent.is_empty();
    let reach = if is_suspect { Reach::All } else { seen.reach() };
    // What was found while there were fewer data is not said any more.
    if reach == Reach::None {
        return Fact::Absent;
    }
    let is_silent = |ordinal| silent.iter().any(|(other, _)| Some(*other) == ordinal);
    let asked = membership.voters().filter(|member| !is_silent(member.ordinal));
    let voters: Option<Vec<_>> = asked
        .map(|member| {
            let ordinal = member.ordinal?;
            Some(Voter { ordinal, member: member.id, client: sight.reach.client(ordinal)? })
        })
        .collect();
    let Some(voters) = voters else { return Fact::Unknown };
    match silent.first() {
        Some((ordinal, print)) => {
            let silent = Silent { ordinal: *ordinal, print: *print };
            compare_with(membership.cluster_id, &voters, silent, membership.voters().count()).await
        }
        None => compare(membership.cluster_id, &voters, reach).await,
    }
}

/// Compares voters.
pub async fn compare(cluster_id: ClusterId, voters: &[Voter<'_>], reach: Reach) -> Fact<Audit> {
    if voters.len() < 2 {
        return Fact::Absent;
    }
    match in_time(prints(cluster_id, voters, reach, None)).await {
        Some((revision, prints)) => decision::verdict_within(reach, revision, &prints),
        None => Fact::Unknown,
    }
}

/// Compares voters with another one that does not start, at the revision that it names, where there are so many in all.
pub async fn compare_with(
    cluster_id: ClusterId,
    voters: &[Voter<'_>],
    silent: Silent,
    count: usize,
) -> Fact<Audit> {
    let OwnPrint { revision, compact_revision, hash, .. } = silent.print;
    match in_time(prints(cluster_id, voters, Reach::All, Some(revision))).await {
        Some((revision, mut prints)) => {
            prints.push(Print { ordinal: silent.ordinal, hash, compact_revision });
            decision::verdict_of(count, revision, &prints)
        }
        None => Fact::Unknown,
    }
}

/// What was reported, where that did not take too long.
async fn in_time(
    asked: impl Future<Output = Result<Option<(u64, Vec<Print>)>, Error>>,
) -> Option<(u64, Vec<Print>)> {
    match tokio::time::timeout(LIMIT, asked).await {
        Ok(Ok(prints)) => prints,
        Ok(Err(error)) => {
            debug!(%error, "the members' data could not be compared");
            None
        }
        Err(_) => {
            debug!("the members took too long to compare their data");
            None
        }
    }
}

/// What each that is asked reported of its keys up to a revision, or up to the last one that all of them have; none where
/// another one answered, or lacks that revision.
async fn prints(
    cluster_id: ClusterId,
    voters: &[Voter<'_>],
    reach: Reach,
    revision: Option<u64>,
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
    let wanted = revision.and_then(|revision| i64::try_from(revision).ok()).unwrap_or(lowest);
    if wanted > lowest {
        return Ok(None);
    }
    let mut prints = Vec::new();
    for Voter { ordinal, member, client } in asked {
        let hash = client.hash_keys(wanted).await?;
        // 3.5 does not say up to where it went.
        let is_asked = [0, wanted].contains(&hash.hash_revision);
        let header = hash.header;
        if !is_asked || (header.cluster_id, header.member_id) != (cluster_id.0, member.0) {
            return Ok(None);
        }
        prints.push(Print { ordinal: *ordinal, hash: hash.hash, compact_revision: hash.compact_revision });
    }
    Ok(u64::try_from(wanted).ok().map(|revision| (revision, prints)))
}
