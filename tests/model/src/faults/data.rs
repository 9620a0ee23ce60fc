//! An operator that cares for data and databases carelessly.

use gatehouse::kinds::etcdcluster::actions::Action as Effect;
use gatehouse::kinds::etcdcluster::observation::{
    AlarmKind, Audit, Desired, Fact, MemberId, MemberStatus, Observation, Ordinal,
};
use gatehouse::kinds::etcdcluster::plan::Plan;

use super::{Fault, leader_of};

/// Takes what an alarm says for what a comparison has found.
pub fn believes_the_alarm(seen: &mut Observation) {
    let alarms = seen.alarms.known().into_iter().flatten();
    let mut named = alarms.filter(|alarm| alarm.kind == AlarmKind::Corrupt).map(|alarm| alarm.member);
    let list = seen.membership.known();
    if let Some(ordinal) = named.find_map(|member| list?.find(member)?.ordinal) {
        seen.audit = Fact::Known(Audit::Different { revision: 1, minority: [ordinal].into() });
    }
}

/// Takes what a member says of its own data for what a comparison has found.
pub fn believes_the_member(seen: &mut Observation) {
    let named = seen.own_prints().next();
    if let Some((ordinal, _)) = named {
        seen.audit = Fact::Known(Audit::Different { revision: 1, minority: [ordinal].into() });
    }
}

/// Takes members to have agreed on the minor that is asked for, and their data to be of it.
pub fn lowers_unasked(desired: &Desired, seen: &mut Observation) {
    let wanted = desired.template.version.minor;
    for status in seen.statuses.values_mut() {
        if let Fact::Known(MemberStatus { storage_version: Fact::Known(storage), .. }) = status {
            *storage = wanted.min(*storage);
        }
    }
    if let Fact::Known(agreed) = &mut seen.cluster_version {
        *agreed = wanted.min(*agreed);
    }
}

/// What it makes of the plan while a database is full.
pub fn plan(fault: Fault, seen: &Observation, plan: &mut Plan) {
    let alarms = seen.alarms.known().into_iter().flatten();
    let Some(alarm) = alarms.copied().find(|alarm| alarm.kind == AlarmKind::NoSpace) else { return };
    let Some(cluster_id) = seen.record.cluster_id else { return };
    let loose = seen.answers().filter(|(_, status)| status.db_size_in_use < status.db_size);
    let loose: Vec<(Ordinal, MemberId)> =
        loose.map(|(ordinal, status)| (ordinal, status.member_id)).collect();
    let defragment = |(ordinal, member): &(Ordinal, MemberId)| Effect::Defragment {
        cluster_id,
        member: *member,
        ordinal: *ordinal,
    };
    let leader = leader_of(seen);
    plan.actions = match fault {
        Fault::DisarmsAtOnce => vec![Effect::AlarmDisarm { cluster_id, alarm }],
        _ if loose.is_empty() => return,
        Fault::DefragmentsAllAtOnce => loose.iter().map(defragment).collect(),
        Fault::DefragmentsTheLeaderFirst => {
            let leaders = loose.iter().find(|(ordinal, _)| Some(*ordinal) == leader);
            leaders.or_else(|| loose.first()).map(defragment).into_iter().collect()
        }
        _ => {
            let followers = loose.iter().find(|(ordinal, _)| Some(*ordinal) != leader);
            followers.or_else(|| loose.first()).map(defragment).into_iter().collect()
        }
    };
}
