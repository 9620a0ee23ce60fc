//! Alarms, budgets and files: one rule a test.

use std::collections::BTreeSet;

use super::rules::{down, finding, planned, rested, status};
use crate::api::condition::State;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::api::status::{condition, reason};
use crate::kinds::etcdcluster::observation::{
    Age, Alarm, AlarmKind, Audit, Cause, Certificates, Desired, Fact, Keyspace, MemberId, Observation,
    Ordinal, PodPhase,
};
use crate::kinds::etcdcluster::plan::housekeeping::min_available;

fn id(seen: &Observation, ordinal: u32) -> MemberId {
    seen.membership.known().unwrap().at(Ordinal(ordinal)).unwrap().id
}

fn leader(seen: &Observation) -> u32 {
    let leader = seen.answers().find(|(_, status)| status.leader == Some(status.member_id)).unwrap();
    leader.0.0
}

fn alarm(seen: &mut Observation, kind: AlarmKind, member: MemberId) {
    seen.alarms = Fact::Known(vec![Alarm { member, kind }]);
}

#[test]
fn a_corrupt_member_is_replaced_where_the_others_are_a_majority() {
    let (desired, mut seen) = rested(3);
    let follower = (0..3).find(|ordinal| *ordinal != leader(&seen)).unwrap();
    let member = id(&seen, follower);
    alarm(&mut seen, AlarmKind::Corrupt, member);
    let plan = planned(&desired, &seen);
    assert!(
        matches!(plan.actions.as_slice(), [Action::MemberRemove { member: removed, .. }] if *removed == member)
    );
    assert_eq!(finding(&plan, condition::DEGRADED), (State::True, reason::CORRUPT));
    let other = (0..3).find(|ordinal| *ordinal != follower).unwrap();
    down(&mut seen, other, PodPhase::Failing(Cause::Other));
    assert_eq!(planned(&desired, &seen).actions, []);
}

#[test]
fn nobody_is_replaced_or_removed_where_the_next_ones_certificates_would_not_be_taken() {
    let (desired, seen) = rested(3);
    let mut lost = seen.clone();
    down(&mut lost, 1, PodPhase::Failing(Cause::DataLost));
    let mut corrupt = seen.clone();
    let member = id(&corrupt, (leader(&corrupt) + 1) % 3);
    alarm(&mut corrupt, AlarmKind::Corrupt, member);
    let mut sick = seen.clone();
    down(&mut sick, 1, PodPhase::Failing(Cause::Other));
    let fewer = Desired { replicas: 2, ..desired.clone() };
    for (desired, seen) in [(&desired, lost), (&desired, corrupt), (&fewer, sick)] {
        assert!(matches!(planned(desired, &seen).actions.as_slice(), [Action::MemberRemove { .. }]));
        for certificates in [Certificates::Missing, Certificates::Unfit] {
            assert_eq!(planned(desired, &Observation { certificates, ..seen.clone() }).actions, []);
        }
    }
}

#[test]
fn a_corrupt_leader_hands_over_first() {
    let (desired, mut seen) = rested(3);
    let member = id(&seen, leader(&seen));
    alarm(&mut seen, AlarmKind::Corrupt, member);
    let plan = planned(&desired, &seen);
    assert!(
        matches!(plan.actions.as_slice(), [Action::MoveLeader { from, to, .. }] if *from == member && *to != member)
    );
}

#[test]
fn nobody_is_replaced_where_nobody_can_tell_who_is_corrupt() {
    let (desired, mut seen) = rested(3);
    alarm(&mut seen, AlarmKind::Corrupt, MemberId(0));
    let desired = Desired { replicas: 5, ..desired };
    assert_eq!(planned(&desired, &seen).actions, []);
}

#[test]
fn data_that_were_found_to_differ_are_said_and_hold_changes_up_and_nothing_else() {
    let (desired, mut seen) = rested(3);
    assert!(planned(&desired, &seen).is_at_rest());
    for minority in [BTreeSet::new(), BTreeSet::from([Ordinal(2)])] {
        seen.audit = Fact::Known(Audit::Different { revision: 9, minority });
        for replicas in [1, 3, 5] {
            let plan = planned(&Desired { replicas, ..desired.clone() }, &seen);
            assert_eq!(plan.actions, []);
            assert_eq!(finding(&plan, condition::DEGRADED), (State::True, reason::CORRUPT));
            assert!(plan.is_at_rest(), "they are compared once more");
        }
    }
    seen.audit = Fact::Known(Audit::Equal);
    let plan = planned(&Desired { replicas: 5, ..desired.clone() }, &seen);
    assert_ne!(plan.actions, []);
    assert_eq!(finding(&plan, condition::DEGRADED), (State::False, reason::HEALTHY));
}

#[test]
fn nobody_is_asked_for_its_data_while_something_moves_or_is_not_known() {
    let (desired, seen) = rested(3);
    let unrests: [fn(&mut Observation); 4] = [
        |seen| down(seen, 0, PodPhase::Starting),
        |seen| seen.membership = Fact::Unknown,
        |seen| seen.health_age = Age::Fresh,
        |seen| seen.alarms = Fact::Known(vec![Alarm { member: MemberId(0), kind: AlarmKind::Corrupt }]),
    ];
    for (number, unrest) in unrests.iter().enumerate() {
        let mut seen = seen.clone();
        unrest(&mut seen);
        assert!(!planned(&desired, &seen).is_at_rest(), "{number}");
    }
    assert!(!planned(&Desired { replicas: 5, ..desired }, &seen).is_at_rest());
}

#[test]
fn leadership_goes_to_nobody_whose_data_differ() {
    let (desired, mut seen) = rested(3);
    let leader = leader(&seen);
    let member = id(&seen, leader);
    alarm(&mut seen, AlarmKind::Corrupt, member);
    let followers: Vec<_> = (0..3).filter(|ordinal| *ordinal != leader).collect();
    for (differs, takes) in [(followers[0], followers[1]), (followers[1], followers[0])] {
        let minority = BTreeSet::from([Ordinal(differs)]);
        seen.audit = Fact::Known(Audit::Different { revision: 9, minority });
        let taker = id(&seen, takes);
        let plan = planned(&desired, &seen);
        assert!(matches!(plan.actions.as_slice(), [Action::MoveLeader { to, .. }] if *to == taker));
    }
}

#[test]
fn the_alarm_of_a_member_that_is_gone_is_disarmed() {
    let (desired, mut seen) = rested(3);
    alarm(&mut seen, AlarmKind::Corrupt, MemberId(7));
    assert!(matches!(planned(&desired, &seen).actions.as_slice(), [Action::AlarmDisarm { .. }]));
}

#[test]
fn a_full_database_is_compacted_defragmented_one_at_a_time_and_disarmed() {
    let (desired, mut seen) = rested(3);
    let member = id(&seen, 1);
    alarm(&mut seen, AlarmKind::NoSpace, member);
    for ordinal in 0..3 {
        let status = status(&mut seen, ordinal);
        (status.quota, status.db_size, status.db_size_in_use) = (1000, 1000, 1000);
    }
    seen.keyspace = Fact::Known(Keyspace { revision: 5000, compact_revision: 100 });
    assert!(matches!(planned(&desired, &seen).actions.as_slice(), [Action::Compact { revision: 4000, .. }]));
    seen.keyspace = Fact::Known(Keyspace { revision: 5500, compact_revision: 4000 });
    let plan = planned(&desired, &seen);
    assert_eq!(plan.actions, [], "nothing to reclaim: a larger quota is needed");
    assert_eq!(finding(&plan, condition::DEGRADED), (State::True, reason::DATABASE_QUOTA_EXCEEDED));
    for ordinal in 0..3 {
        status(&mut seen, ordinal).db_size_in_use = 300;
    }
    let mut order = Vec::new();
    for _ in 0..3 {
        let plan = planned(&desired, &seen);
        let [Action::Defragment { ordinal, .. }] = plan.actions.as_slice() else {
            panic!("{:#?}", plan.actions)
        };
        order.push(ordinal.0);
        status(&mut seen, ordinal.0).db_size = 300;
    }
    assert_eq!(order.last().copied(), Some(leader(&seen)));
    assert!(matches!(planned(&desired, &seen).actions.as_slice(), [Action::AlarmDisarm { .. }]));
}

#[test]
fn a_defragmentation_that_frees_nothing_is_not_repeated() {
    let (desired, mut seen) = rested(1);
    let member = id(&seen, 0);
    alarm(&mut seen, AlarmKind::NoSpace, member);
    let status = status(&mut seen, 0);
    (status.quota, status.db_size, status.db_size_in_use, status.defragmented) =
        (1000, 1000, 500, Age::Fresh);
    assert_eq!(planned(&desired, &seen).actions, []);
}

#[test]
fn a_larger_quota_is_rolled_out_in_spite_of_the_alarm() {
    let (mut desired, mut seen) = rested(3);
    let member = id(&seen, 0);
    alarm(&mut seen, AlarmKind::NoSpace, member);
    for ordinal in 0..3 {
        let status = status(&mut seen, ordinal);
        (status.quota, status.db_size, status.db_size_in_use) = (1000, 1000, 1000);
    }
    desired.template.revision += 1;
    assert!(matches!(planned(&desired, &seen).actions.as_slice(), [Action::ApplyStatefulSet { .. }]));
}

#[test]
fn files_shrink_past_the_threshold_and_the_leaders_last() {
    let (mut desired, mut seen) = rested(3);
    desired.defragments_at = Some(45);
    for ordinal in 0..3 {
        let status = status(&mut seen, ordinal);
        (status.db_size, status.db_size_in_use) = (1000, 560);
    }
    assert_eq!(planned(&desired, &seen).actions, []);
    let last = leader(&seen);
    for ordinal in 0..3 {
        status(&mut seen, ordinal).db_size_in_use = 550;
    }
    let plan = planned(&desired, &seen);
    assert!(matches!(plan.actions.as_slice(), [Action::Defragment { ordinal, .. }] if ordinal.0 != last));
    desired.defragments_at = None;
    assert_eq!(planned(&desired, &seen).actions, []);
}

#[test]
fn evictions_leave_a_quorum_and_never_block_one_or_two_members_for_ever() {
    let least: Vec<_> = (0..=7).map(min_available).collect();
    assert_eq!(least, [0, 0, 1, 2, 3, 3, 4, 4]);
}
