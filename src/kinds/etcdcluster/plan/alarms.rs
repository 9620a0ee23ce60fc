//! Alarms: corrupt data, and a full database. Pure.
//!
//! Guarantees: a member is replaced for corrupt data only where an alarm is armed, a comparison of all voters has found
//! an agreeing majority without it since, and the others can spare it; an alarm about space is disarmed only where every
//! database is clearly below its quota; of the history no more is dropped than it takes; where nothing is left to reclaim
//! nothing is tried again and again.

use super::cluster_state::ClusterState;
use super::decision::Decision;
use super::{housekeeping, replace};
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::observation::{Alarm, AlarmKind, Audit, MemberStatus, OperationKind, Ordinal};

/// Revisions that compaction keeps: the first number as long as that makes room, and the next ones only where it does not.
const KEPT_REVISIONS: [u64; 4] = [1000, 100, 10, 0];

/// Share of the quota, in percent, below which every database has to be before the alarm is disarmed.
const CLEARLY_BELOW: u128 = 90;

/// Share of a database file, in percent, that has to be free for defragmenting to be worth it.
const WORTH_IT: u128 = 10;

/// Replaces a corrupt member, and disarms the alarm of one that is gone or whose data are as the others'. An alarm is a
/// suspicion: etcd's leader takes its own data for right, and names each member that differs from it
/// (`corruptionChecker.PeriodicCheck` of etcd's `server/etcdserver/corrupt.go`). Whose data are wrong is what our own
/// comparison of all voters says, and of them only those whose data an agreeing majority does not have. No member
/// is replaced otherwise: a person chooses.
pub fn corrupt(cluster: &ClusterState) -> Option<Decision> {
    let (membership, cluster_id) = (cluster.membership()?, cluster.cluster_id()?);
    let alarms = of_kind(cluster, AlarmKind::Corrupt);
    let disarm = |alarm: &Alarm| Decision::act(cluster, [Action::AlarmDisarm { cluster_id, alarm: *alarm }]);
    let is_learners = |alarm: &Alarm| membership.find(alarm.member).is_some_and(|member| member.is_learner);
    if let Some(gone) =
        alarms.iter().find(|alarm| alarm.member.0 != 0 && membership.find(alarm.member).is_none())
    {
        return disarm(gone);
    }
    let first = alarms.first()?;
    let wrong: Vec<_> = match cluster.seen.audit.known() {
        // A learner is not compared, and has no vote to lose.
        Some(Audit::Equal) if !alarms.iter().any(|alarm| is_learners(alarm)) => return disarm(first),
        Some(Audit::Different { minority, .. }) => {
            minority.iter().filter_map(|ordinal| membership.at(*ordinal)).collect()
        }
        Some(Audit::Equal) | None => Vec::new(),
    };
    let learners = alarms.iter().filter(|alarm| is_learners(alarm));
    let learners = learners.filter_map(|alarm| membership.find(alarm.member));
    let mut wrong: Vec<_> =
        learners.chain(wrong).filter_map(|member| Some((member.ordinal?, member))).collect();
    let leader = cluster.leader();
    wrong.sort_by_key(|(ordinal, _)| Some(*ordinal) == leader);
    let (ordinal, member) = *wrong.first().filter(|(ordinal, _)| cluster.may_replace(*ordinal))?;
    cluster
        .can_spare(member)
        .then(|| replace::remove(cluster, OperationKind::Replace, ordinal, member))
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
    if let Some(revision) = compactable(cluster, &answers) {
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

/// The revision up to which older ones can go: the first step where that is enough to be worth it, and each further one
/// only while so much is in use that giving back free space would not make room.
fn compactable(cluster: &ClusterState, answers: &[(Ordinal, &MemberStatus)]) -> Option<u64> {
    let keyspace = cluster.seen.keyspace.known()?;
    let is_full = answers.iter().any(|(_, status)| !is_clearly_below(status.db_size_in_use, status.quota));
    KEPT_REVISIONS.into_iter().enumerate().find_map(|(step, kept)| {
        let revision = keyspace.revision.checked_sub(kept)?;
        let dropped = revision.saturating_sub(keyspace.compact_revision);
        let is_worth_it = step == 0 && dropped >= kept;
        (is_worth_it || is_full && dropped > 0).then_some(revision)
    })
}

fn is_below_quota(status: &MemberStatus) -> bool {
    is_clearly_below(status.db_size, status.quota)
}

fn is_clearly_below(bytes: u64, quota: u64) -> bool {
    u128::from(bytes) * 100 < u128::from(quota) * CLEARLY_BELOW
}
