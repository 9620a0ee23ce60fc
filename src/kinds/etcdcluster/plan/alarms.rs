//! Alarms: corrupt data, and a full database. Pure.
//!
//! Guarantees: a corrupt member is replaced only where the others are a majority and its alarm names it; an alarm about
//! space is disarmed only where every database is clearly below its quota; where nothing is left to reclaim nothing is
//! tried again and again.

use super::decision::Decision;
use super::view::View;
use super::{housekeeping, replace};
use crate::kinds::etcdcluster::effect::Effect;
use crate::kinds::etcdcluster::observation::{Alarm, AlarmKind, MemberStatus, OperationKind, Ordinal};

/// Revisions that compaction keeps.
const KEPT_REVISIONS: u64 = 1000;

/// Share of the quota, in percent, below which every database has to be before the alarm is disarmed.
const CLEARLY_BELOW: u128 = 90;

/// Share of a database file, in percent, that has to be free for defragmenting to be worth it.
const WORTH_IT: u128 = 10;

/// Replaces a corrupt member, and disarms the alarm of one that is gone.
pub fn corrupt(view: &View) -> Option<Decision> {
    let membership = view.membership()?;
    let alarms = of_kind(view, AlarmKind::Corrupt);
    // No member of that id: nobody could tell whose data are wrong. A person chooses.
    let gone = alarms.iter().find(|alarm| alarm.member.0 != 0 && membership.find(alarm.member).is_none());
    if let (Some(alarm), Some(cluster_id)) = (gone, view.cluster_id()) {
        return Decision::act(view, [Effect::AlarmDisarm { cluster_id, alarm: **alarm }]);
    }
    if !view.seen.replacement_age.is_past() {
        return None;
    }
    let named = alarms.iter().find_map(|alarm| membership.find(alarm.member))?;
    let ordinal = named.ordinal?;
    view.can_spare(named).then(|| replace::remove(view, OperationKind::Replace, ordinal, named)).flatten()
}

/// Makes room in a full database: old revisions go, members give free space back, the alarm is disarmed.
pub fn no_space(view: &View) -> Option<Decision> {
    let alarms = of_kind(view, AlarmKind::NoSpace);
    let alarm = **alarms.first()?;
    let cluster_id = view.cluster_id()?;
    let members: Vec<_> = view.voters();
    let answers: Vec<_> =
        members.iter().filter_map(|(ordinal, _)| Some((*ordinal, view.status(*ordinal)?))).collect();
    if answers.len() < view.member_count() || answers.iter().any(|(ordinal, _)| !view.is_healthy(*ordinal)) {
        return None;
    }
    if let Some(revision) = compactable(view) {
        return Decision::act(view, [Effect::Compact { cluster_id, revision }]);
    }
    let full = |(ordinal, status): &(Ordinal, &MemberStatus)| {
        let worth = housekeeping::reclaimable_percent(status) >= WORTH_IT;
        (!is_below_quota(status) && worth && status.defragmented.is_past()).then_some(*ordinal)
    };
    let candidates: Vec<_> = answers.iter().filter_map(full).collect();
    if let Some(effect) = housekeeping::defragment(view, &candidates) {
        return Decision::act(view, [effect]);
    }
    let room = answers.iter().all(|(_, status)| is_below_quota(status));
    room.then(|| Decision::act(view, [Effect::AlarmDisarm { cluster_id, alarm }])).flatten()
}

fn of_kind<'a>(view: &View<'a>, kind: AlarmKind) -> Vec<&'a Alarm> {
    view.seen.alarms.known().into_iter().flatten().filter(|alarm| alarm.kind == kind).collect()
}

/// The revision up to which older ones can go, where that is enough to be worth it.
fn compactable(view: &View) -> Option<u64> {
    let keyspace = view.seen.keyspace.known()?;
    let revision = keyspace.revision.checked_sub(KEPT_REVISIONS)?;
    (revision.saturating_sub(keyspace.compact_revision) >= KEPT_REVISIONS).then_some(revision)
}

fn is_below_quota(status: &MemberStatus) -> bool {
    u128::from(status.db_size) * 100 < u128::from(status.quota) * CLEARLY_BELOW
}
