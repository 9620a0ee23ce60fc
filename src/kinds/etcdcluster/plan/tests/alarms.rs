//! Alarms, budgets and files: one rule a test.

use std::collections::BTreeSet;

use super::rules::{down, finding, planned, rested, status};
use crate::api::condition::State;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::observation::{
    Age, Alarm, AlarmKind, Audit, Cause, Certificates, Desired, Fact, Keyspace, MemberId, MemberStatus,
    Observation, Ordinal, PodPhase,
};
use crate::kinds::etcdcluster::plan::BlockedReason;
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

/// The comparison of all voters: the data of these differ from those that the others agree on.
fn differ(seen: &mut Observation, ordinals: &[u32]) {
    let minority = ordinals.iter().copied().map(Ordinal).collect();
    seen.audit = Fact::Known(Audit::Different { revision: 9, minority });
}

#[test]
fn a_corrupt_member_is_replaced_where_the_others_are_a_majority() {
    let (desired, mut seen) = rested(3);
    let follower = (0..3).find(|ordinal| *ordinal != leader(&seen)).unwrap();
    let member = id(&seen, follower);
    alarm(&mut seen, AlarmKind::Corrupt, member);
    assert_eq!(planned(&desired, &seen).actions, [], "an alarm alone is a suspicion");
    differ(&mut seen, &[follower]);
    let plan = planned(&desired, &seen);
    assert!(
        matches!(plan.actions.as_slice(), [Action::MemberRemove { member: removed, .. }] if *removed == member)
    );
    assert_eq!(finding(&plan, ConditionType::Degraded), (State::True, Reason::Corrupt));
    let other = (0..3).find(|ordinal| *ordinal != follower).unwrap();
    down(&mut seen, other, PodPhase::Failing(Cause::Other));
    assert_eq!(planned(&desired, &seen).actions, []);
}

#[test]
fn no_member_is_replaced_or_removed_where_the_next_ones_certificates_would_not_be_accepted() {
    let (desired, seen) = rested(3);
    let mut lost = seen.clone();
    down(&mut lost, 1, PodPhase::Failing(Cause::DataLost));
    let mut corrupt = seen.clone();
    let follower = (leader(&corrupt) + 1) % 3;
    let member = id(&corrupt, follower);
    alarm(&mut corrupt, AlarmKind::Corrupt, member);
    differ(&mut corrupt, &[follower]);
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
    let leads = leader(&seen);
    let member = id(&seen, leads);
    alarm(&mut seen, AlarmKind::Corrupt, member);
    differ(&mut seen, &[leads]);
    let plan = planned(&desired, &seen);
    assert!(
        matches!(plan.actions.as_slice(), [Action::MoveLeader { from, to, .. }] if *from == member && *to != member)
    );
}

#[test]
fn no_member_is_replaced_where_it_is_unknown_which_is_corrupt() {
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
            assert_eq!(finding(&plan, ConditionType::Degraded), (State::True, Reason::Corrupt));
            assert!(plan.is_at_rest(), "they are compared once more");
        }
    }
    seen.audit = Fact::Known(Audit::Equal);
    let plan = planned(&Desired { replicas: 5, ..desired.clone() }, &seen);
    assert_ne!(plan.actions, []);
    assert_eq!(finding(&plan, ConditionType::Degraded), (State::False, Reason::Healthy));
}

#[test]
fn no_member_is_asked_for_its_data_during_a_change_or_where_facts_are_unknown() {
    let (desired, seen) = rested(3);
    let unrests: [fn(&mut Observation); 4] = [
        |seen| down(seen, 0, PodPhase::Starting),
        |seen| seen.membership = Fact::Unknown,
        |seen| seen.health_age = Age::Fresh,
        |seen| seen.alarms = Fact::Unknown,
    ];
    for (number, unrest) in unrests.iter().enumerate() {
        let mut seen = seen.clone();
        unrest(&mut seen);
        assert!(!planned(&desired, &seen).is_at_rest(), "{number}");
    }
    assert!(!planned(&Desired { replicas: 5, ..desired }, &seen).is_at_rest());
}

/// etcd's leader takes its own data for right, and names each member that differs from it.
#[test]
fn a_corrupt_leader_does_not_have_its_followers_replaced() {
    let (desired, mut seen) = rested(3);
    let leads = leader(&seen);
    let followers: Vec<_> = (0..3).filter(|ordinal| *ordinal != leads).collect();
    let named = id(&seen, followers[0]);
    alarm(&mut seen, AlarmKind::Corrupt, named);
    let plan = planned(&desired, &seen);
    assert_eq!(plan.actions, []);
    assert!(plan.is_at_rest(), "the data are compared");
    differ(&mut seen, &[leads]);
    let corrupt = id(&seen, leads);
    let plan = planned(&desired, &seen);
    let [Action::MoveLeader { from, to, .. }] = plan.actions.as_slice() else { panic!("{plan:#?}") };
    assert_eq!((*from, *to == corrupt), (corrupt, false), "the one that is named may lead");
    let successor = *to;
    for ordinal in 0..3 {
        status(&mut seen, ordinal).leader = Some(successor);
    }
    let plan = planned(&desired, &seen);
    assert!(
        matches!(plan.actions.as_slice(), [Action::MemberRemove { member, .. }] if *member == corrupt),
        "{plan:#?}"
    );
}

#[test]
fn an_alarm_that_the_comparison_does_not_confirm_is_disarmed() {
    for named in [0, 1] {
        let (desired, mut seen) = rested(3);
        let member = if named == 0 { MemberId(0) } else { id(&seen, 1) };
        alarm(&mut seen, AlarmKind::Corrupt, member);
        seen.audit = Fact::Known(Audit::Equal);
        assert!(matches!(planned(&desired, &seen).actions.as_slice(), [Action::AlarmDisarm { .. }]));
    }
}

#[test]
fn no_member_is_replaced_where_no_majority_agrees_on_the_data() {
    let (desired, mut seen) = rested(3);
    let member = id(&seen, 1);
    alarm(&mut seen, AlarmKind::Corrupt, member);
    differ(&mut seen, &[]);
    let plan = planned(&desired, &seen);
    assert_eq!(plan.actions, []);
    assert_eq!(finding(&plan, ConditionType::Degraded), (State::True, Reason::Corrupt));
}

#[test]
fn data_are_compared_before_pods_are_restarted() {
    let (mut desired, mut seen) = rested(3);
    desired.template.revision += 1;
    seen.comparison_age = Age::PastDeadline;
    let apply = planned(&desired, &seen);
    assert!(matches!(apply.actions.as_slice(), [Action::ApplyStatefulSet { .. }]), "that restarts no member");
    seen.record = apply.record;
    if let Fact::Known(set) = &mut seen.stateful_set {
        set.template = desired.template;
    }
    let plan = planned(&desired, &seen);
    assert_eq!((plan.actions.as_slice(), plan.summary.blocked), (&[][..], Some(BlockedReason::Uncompared)));
    assert!(plan.is_at_rest(), "that they are compared is what is waited for");
    assert!(!plan.summary.is_reached);
    let mut failing = seen.clone();
    down(&mut failing, 1, PodPhase::Failing(Cause::Flags));
    let way_back = planned(&desired, &failing);
    assert_ne!(way_back.actions, [], "the way back waits for nothing");
    let back = Observation { record: way_back.record, ..seen.clone() };
    let blocked = planned(&desired, &back).summary.blocked;
    assert_eq!(
        blocked,
        Some(BlockedReason::Uncompared),
        "one that was down says nothing of the others' data"
    );
    seen.comparison_age = Age::Fresh;
    let plan = planned(&desired, &seen);
    assert!(matches!(plan.actions.as_slice(), [Action::WriteConfig { .. }]), "{plan:#?}");
    // Once it has begun it is not interrupted.
    seen.record = plan.record;
    seen.comparison_age = Age::PastDeadline;
    assert!(matches!(planned(&desired, &seen).actions.as_slice(), [Action::WriteConfig { .. }]));
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
    seen.keyspace = Fact::Known(Keyspace { revision: 5500, compact_revision: 5500 });
    let plan = planned(&desired, &seen);
    assert_eq!(plan.actions, [], "nothing to reclaim: a larger quota is needed");
    assert_eq!(finding(&plan, ConditionType::Degraded), (State::True, Reason::DatabaseQuotaExceeded));
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

/// Few writes of large values to few keys: no thousand revisions are ever there to be dropped.
#[test]
fn a_full_database_of_few_revisions_gives_up_its_history_step_by_step() {
    let (desired, mut seen) = rested(1);
    let member = id(&seen, 0);
    alarm(&mut seen, AlarmKind::NoSpace, member);
    let is_to = |status: &mut MemberStatus, size, in_use| {
        (status.quota, status.db_size, status.db_size_in_use) = (64 << 20, size, in_use);
    };
    is_to(status(&mut seen, 0), 64 << 20, 62 << 20);
    let mut kept = Vec::new();
    for compact_revision in [0, 210, 300, 310] {
        seen.keyspace = Fact::Known(Keyspace { revision: 310, compact_revision });
        match planned(&desired, &seen).actions.as_slice() {
            [Action::Compact { revision, .. }] => kept.push(310 - revision),
            [] => {}
            other => panic!("{other:#?}"),
        }
    }
    assert_eq!(kept, [100, 10, 0]);
    // As soon as there is room, nothing more of the history goes.
    is_to(status(&mut seen, 0), 64 << 20, 21 << 20);
    seen.keyspace = Fact::Known(Keyspace { revision: 310, compact_revision: 210 });
    assert!(matches!(planned(&desired, &seen).actions.as_slice(), [Action::Defragment { .. }]));
    is_to(status(&mut seen, 0), 21 << 20, 21 << 20);
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
        (status.db_size, status.db_size_in_use) = (200 << 20, 112 << 20);
    }
    assert_eq!(planned(&desired, &seen).actions, []);
    let last = leader(&seen);
    for ordinal in 0..3 {
        let status = status(&mut seen, ordinal);
        (status.db_size, status.db_size_in_use) = (20_000, 1);
    }
    assert_eq!(planned(&desired, &seen).actions, [], "in a small file there is nothing to win");
    for ordinal in 0..3 {
        let status = status(&mut seen, ordinal);
        (status.db_size, status.db_size_in_use) = (200 << 20, 110 << 20);
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
