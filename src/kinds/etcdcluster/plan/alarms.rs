//! Alarms: corrupt data, and a full database. Pure.
//!
//! Guarantees: a corrupt member is replaced only where the others are a majority and its alarm names it; an alarm about
//! space is disarmed only where every database is clearly below its quota; where nothing is left to reclaim nothing is
//! tried again and again.

use super::cluster_state::ClusterState;
use super::decision::Decision;
use super::{housekeeping, replace};
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::observation::{Alarm, AlarmKind, MemberStatus, OperationKind, Ordinal};

/// Revisions that compaction keeps.
const KEPT_REVISIONS: u64 = 1000;

/// Share of the quota, in percent, below which every database has to be before the alarm is disarmed.
const CLEARLY_BELOW: u128 = 90;

/// Share of a database file, in percent, that has to be free for defragmenting to be worth it.
const WORTH_IT: u128 = 10;

/// Replaces a corrupt member, and disarms the alarm of one that is gone.
pub fn corrupt(cluster: &ClusterState) -> Option<Decision> {
    let membership = cluster.membership()?;
    let alarms = of_kind(cluster, AlarmKind::Corrupt);
    // No member of that id: nobody could tell whose data are wrong. A person chooses.
    let gone = alarms.iter().find(|alarm| alarm.member.0 != 0 && membership.find(alarm.member).is_none());
    if let (Some(alarm), Some(cluster_id)) = (gone, cluster.cluster_id()) {
        return Decision::act(cluster, [Action::AlarmDisarm { cluster_id, alarm: **alarm }]);
    }
    if !cluster.seen.replacement_age.is_past() {
        return None;
    }
    let named = alarms.iter().find_map(|alarm| membership.find(alarm.member))?;
    let ordinal = named.ordinal?;
    cluster
        .can_spare(named)
        .then(|| replace::remove(cluster, OperationKind::Replace, ordinal, named))
        .flatten()
}

/// Makes room in a full database: old revisions go, members give free space back, the alarm is disarmed.
pub fn no_space(cluster: &ClusterState) -> Option<Decision> {
    let alarms = of_kind(cluster, AlarmKind::NoSpace);
    let alarm = **alarms.first()?;
    let cluster_id = cluster.cluster_id()?;
    let members: Vec<_> = cluster.voters();
    let answers: Vec<_> =
        members.iter().filter_map(|(ordinal, _)| Some((*ordinal, cluster.status(*ordinal)?))).collect();
    if answers.len() < cluster.member_count()
        || answers.iter().any(|(ordinal, _)| !cluster.is_healthy(*ordinal))
    {
        return None;
    }
    if let Some(revision) = compactable(cluster) {
        return Decision::act(cluster, [Action::Compact { cluster_id, revision }]);
    }
    let full = |(ordinal, status): &(Ordinal, &MemberStatus)| {
        let worth = housekeeping::reclaimable_percent(status) >= WORTH_IT;
        (!is_below_quota(status) && worth && status.defragmented.is_past()).then_some(*ordinal)
    };
    let candidates: Vec<_> = answers.iter().filter_map(full).collect();
    if let Some(action) = housekeeping::defragment(cluster, &candidates) {
        return Decision::act(cluster, [action]);
    }
    let room = answers.iter().all(|(_, status)| is_below_quota(status));
    room.then(|| Decision::act(cluster, [Action::AlarmDisarm { cluster_id, alarm }])).flatten()
}

fn of_kind<'a>(cluster: &ClusterState<'a>, kind: AlarmKind) -> Vec<&'a Alarm> {
    cluster.seen.alarms.known().into_iter().flatten().filter(|alarm| alarm.kind == kind).collect()
}

/// The revision up to which older ones can go, where that is enough to be worth it.
fn compactable(cluster: &ClusterState) -> Option<u64> {
    let keyspace = cluster.seen.keyspace.known()?;
    let revision = keyspace.revision.checked_sub(KEPT_REVISIONS)?;
    (revision.saturating_sub(keyspace.compact_revision) >= KEPT_REVISIONS).then_some(revision)
}

fn is_below_quota(status: &MemberStatus) -> bool {
    u128::from(status.db_size) * 100 < u128::from(status.quota) * CLEARLY_BELOW
}
