//! One rule a test, on a cluster at rest of which one thing is changed.

mod access;
mod storage;

use super::world::{CLUSTER, World};
use crate::api::condition::State;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::observation::{
    Age, Audit, Backup, Cause, Certificates, ClusterId, Desired, Fact, Found, Handle, Member, MemberStatus,
    Observation, Ordinal, Owner, Pod, PodPhase, Record, RefusedWrite, ResourceVersion, Role, RootPassword,
    Uid, Unreadable, Version, Volume,
};
use crate::kinds::etcdcluster::plan::{Plan, plan};

pub const V3_6: Version = Version::new(6, 16);

/// What is planned once what is intended has been recorded.
pub fn planned(desired: &Desired, seen: &Observation) -> Plan {
    let mut seen = seen.clone();
    for _ in 0..5 {
        let plan = plan(desired, &seen);
        match plan.actions.as_slice() {
            [Action::WriteRecord { record, .. }] => seen.record = record.clone(),
            _ => return plan,
        }
    }
    panic!("the record does not come to rest");
}

pub fn finding(plan: &Plan, about: ConditionType) -> (State, Reason) {
    let finding = plan.summary.findings.iter().find(|finding| finding.about == about).unwrap();
    (finding.state, finding.reason)
}

pub fn rested(replicas: u32) -> (Desired, Observation) {
    let world = World::settled(replicas, V3_6);
    (world.desired.clone(), world.observe())
}

pub fn status(seen: &mut Observation, ordinal: u32) -> &mut MemberStatus {
    match seen.statuses.get_mut(&Ordinal(ordinal)) {
        Some(Fact::Known(status)) => status,
        other => panic!("{other:?}"),
    }
}

pub fn pod(seen: &mut Observation, ordinal: u32) -> &mut Pod {
    let Fact::Known(pods) = &mut seen.pods else { panic!("pods") };
    pods.get_mut(&Ordinal(ordinal)).unwrap()
}

fn volume(seen: &mut Observation, ordinal: u32) -> &mut Volume {
    let Fact::Known(volumes) = &mut seen.volumes else { panic!("volumes") };
    volumes.get_mut(&Ordinal(ordinal)).unwrap()
}

fn members(seen: &mut Observation) -> &mut Vec<Member> {
    let Fact::Known(membership) = &mut seen.membership else { panic!("members") };
    &mut membership.members
}

/// The member at an ordinal is down, and its pod says why.
pub fn down(seen: &mut Observation, ordinal: u32, phase: PodPhase) {
    seen.statuses.insert(Ordinal(ordinal), Fact::Unknown);
    let pod = pod(seen, ordinal);
    (pod.phase, pod.startup_age) = (phase, Age::PastDeadline);
}

fn irreversible(plan: &Plan) -> Vec<&Action> {
    plan.actions.iter().filter(|action| action.is_irreversible()).collect()
}

/// Growth, shrinking and an upgrade of three members.
fn changes(desired: &Desired) -> [Desired; 3] {
    let [mut grown, mut shrunk, mut upgraded] = std::array::from_fn(|_| desired.clone());
    (grown.replicas, shrunk.replicas) = (5, 1);
    upgraded.template.version = Version::new(6, 17);
    [grown, shrunk, upgraded]
}

#[test]
fn what_is_unknown_is_not_absent() {
    let (desired, seen) = rested(3);
    let unknowns: [fn(&mut Observation); 4] = [
        |seen| seen.membership = Fact::Unknown,
        |seen| seen.pods = Fact::Unknown,
        |seen| seen.alarms = Fact::Unknown,
        |seen| seen.budget = Fact::Unknown,
    ];
    for desired in changes(&desired) {
        for (number, forget) in unknowns.iter().enumerate() {
            let mut seen = seen.clone();
            forget(&mut seen);
            let plan = planned(&desired, &seen);
            assert!(irreversible(&plan).is_empty(), "{number}: {:#?}", plan.actions);
        }
    }
}

#[test]
fn nothing_known_at_all_is_an_answer_too() {
    let (desired, mut seen) = rested(3);
    seen.services = Fact::Unknown;
    seen.stateful_set = Fact::Unknown;
    seen.config = Fact::Unknown;
    seen.budget = Fact::Unknown;
    seen.pods = Fact::Unknown;
    seen.volumes = Fact::Unknown;
    seen.membership = Fact::Unknown;
    seen.last_membership = Fact::Unknown;
    seen.alarms = Fact::Unknown;
    seen.statuses.clear();
    for desired in changes(&desired) {
        assert_eq!(planned(&desired, &seen).actions, []);
    }
    seen.record = Record::default();
    let plan = planned(&desired, &seen);
    assert_eq!(plan.actions, []);
}

#[test]
fn no_change_begins_before_the_health_interval_is_over() {
    let (desired, mut seen) = rested(3);
    seen.health_age = Age::Fresh;
    for desired in changes(&desired) {
        assert_eq!(planned(&desired, &seen).actions, []);
    }
}

#[test]
fn no_change_begins_while_a_member_is_down() {
    let (desired, mut seen) = rested(3);
    down(&mut seen, 1, PodPhase::Pending(Some(Cause::Unschedulable)));
    for desired in &changes(&desired)[..1] {
        assert_eq!(planned(desired, &seen).actions, []);
    }
}

#[test]
fn what_is_intended_is_recorded_before_it_is_done() {
    let (desired, seen) = rested(3);
    for desired in changes(&desired) {
        let plan = plan(&desired, &seen);
        assert!(matches!(plan.actions.as_slice(), [Action::WriteRecord { .. }]), "{:#?}", plan.actions);
        assert!(plan.record.operation.is_some());
    }
}

#[test]
fn another_cluster_behind_an_endpoint_stops_everything() {
    let (desired, mut seen) = rested(3);
    status(&mut seen, 1).cluster_id = ClusterId(0xbad);
    for desired in changes(&desired) {
        let plan = planned(&desired, &seen);
        assert_eq!(plan.actions, []);
        assert_eq!(finding(&plan, ConditionType::Degraded), (State::True, Reason::ClusterIDMismatch));
    }
}

#[test]
fn an_object_of_another_owner_is_never_adopted() {
    let (desired, seen) = rested(3);
    let takes: [fn(&mut Observation); 3] = [
        |seen| seen.services = Fact::Known(Found::Foreign),
        |seen| pod(seen, 1).owner = Owner::Foreign,
        |seen| {
            if let Fact::Known(set) = &mut seen.stateful_set {
                set.owner = Owner::Foreign;
            }
        },
    ];
    for take in takes {
        let mut seen = seen.clone();
        take(&mut seen);
        for desired in changes(&desired) {
            let plan = planned(&desired, &seen);
            assert_eq!(plan.actions, []);
            assert_eq!(finding(&plan, ConditionType::Degraded), (State::True, Reason::NameTaken));
        }
    }
}

#[test]
fn an_invalid_spec_leaves_members_alone_and_their_pods_still_start() {
    let (desired, mut seen) = rested(3);
    let desired = Desired { is_valid: false, replicas: 7, ..desired };
    let plan = planned(&desired, &seen);
    assert_eq!(plan.actions, []);
    assert_eq!(finding(&plan, ConditionType::SpecValid), (State::False, Reason::SpecInvalid));
    down(&mut seen, 2, PodPhase::Terminal(Cause::Killed));
    let plan = planned(&desired, &seen);
    assert!(matches!(plan.actions.as_slice(), [Action::DeletePod { ordinal: Ordinal(2), .. }]));
}

#[test]
fn only_a_fault_of_the_data_justifies_a_replacement() {
    let causes = [
        (Cause::Unschedulable, false),
        (Cause::Image, false),
        (Cause::Killed, false),
        (Cause::Flags, false),
        (Cause::Other, false),
        (Cause::DataLost, true),
        (Cause::DataForeign, true),
        (Cause::DataCorrupt, true),
        (Cause::Removed, true),
    ];
    for (cause, replaced) in causes {
        let (desired, mut seen) = rested(3);
        down(&mut seen, 1, PodPhase::Failing(cause));
        let plan = planned(&desired, &seen);
        let removes = matches!(plan.actions.as_slice(), [Action::MemberRemove { ordinal: Ordinal(1), .. }]);
        assert_eq!(removes, replaced, "{cause:?}: {:#?}", plan.actions);
        assert!(removes || plan.actions.is_empty());
        seen.replacement_age = Age::Fresh;
        assert_eq!(planned(&desired, &seen).actions, [], "too many in a row");
        // Its removal was announced, and counts.
        seen.record = plan.record.clone();
        assert_eq!(planned(&desired, &seen).actions, plan.actions, "{cause:?}");
    }
}

#[test]
fn a_member_that_answers_is_not_replaced_whatever_its_volume() {
    let (desired, mut seen) = rested(3);
    volume(&mut seen, 1).handle.uid = Uid("another".to_owned());
    assert_eq!(planned(&desired, &seen).actions, []);
}

#[test]
fn a_member_that_the_others_cannot_spare_is_not_removed() {
    let (desired, mut seen) = rested(3);
    down(&mut seen, 0, PodPhase::Failing(Cause::Other));
    down(&mut seen, 1, PodPhase::Failing(Cause::DataLost));
    assert_eq!(planned(&desired, &seen).actions, []);
}

#[test]
fn the_sick_leaves_before_the_sound_when_a_cluster_shrinks() {
    let (mut desired, mut seen) = rested(5);
    desired.replicas = 4;
    down(&mut seen, 1, PodPhase::Pending(Some(Cause::Unschedulable)));
    let plan = planned(&desired, &seen);
    assert!(matches!(plan.actions.as_slice(), [Action::MemberRemove { ordinal: Ordinal(1), .. }]));
}

#[test]
fn a_leader_hands_over_before_it_is_removed_unless_that_fails_for_long() {
    let (mut desired, mut seen) = rested(3);
    desired.replicas = 2;
    let leader = members(&mut seen)[2].id;
    for ordinal in 0..3 {
        status(&mut seen, ordinal).leader = Some(leader);
    }
    let first = planned(&desired, &seen);
    assert!(matches!(first.actions.as_slice(), [Action::MoveLeader { from, .. }] if *from == leader));
    seen.record = first.record;
    assert_eq!(planned(&desired, &seen).actions, first.actions, "again, for a while");
    seen.operation_age = Age::PastDeadline;
    let plan = planned(&desired, &seen);
    assert!(matches!(plan.actions.as_slice(), [Action::MemberRemove { member, .. }] if *member == leader));
}

#[test]
fn the_budget_is_priced_before_the_change() {
    let (mut desired, mut seen) = rested(3);
    desired.replicas = 4;
    let plan = planned(&desired, &seen);
    assert!(matches!(plan.actions.as_slice(), [Action::ApplyBudget { min_available: 3, .. }]));
    seen.budget = Fact::Absent;
    desired.replicas = 2;
    let plan = planned(&desired, &seen);
    assert!(matches!(plan.actions.as_slice(), [Action::ApplyBudget { min_available: 2, found: None }]));
}

#[test]
fn a_cluster_that_is_to_stop_has_lost_nothing_and_has_stopped_once_its_pods_are_gone() {
    let (mut desired, mut seen) = rested(3);
    desired.replicas = 0;
    let Fact::Known(set) = &mut seen.stateful_set else { panic!("there is one") };
    set.replicas = 0;
    seen.statuses.clear();
    (seen.membership, seen.quorum_loss_age) = (Fact::Unknown, Age::PastDeadline);
    for (pods, is_reached) in
        [(seen.pods.clone(), false), (Fact::Unknown, false), (Fact::Known([].into()), true)]
    {
        seen.pods = pods;
        let plan = planned(&desired, &seen);
        assert_eq!((plan.actions.as_slice(), plan.summary.is_reached), (&[][..], is_reached));
        assert_eq!(finding(&plan, ConditionType::Degraded), (State::False, Reason::Stopped));
        assert_eq!(finding(&plan, ConditionType::QuorumLost), (State::False, Reason::Stopped));
        assert_eq!(finding(&plan, ConditionType::Available), (State::False, Reason::Stopped));
    }
    seen.stateful_set = Fact::Unknown;
    assert!(!planned(&desired, &seen).summary.is_reached, "it may be about to make some");
}

#[test]
fn a_protected_object_is_not_let_go_and_neither_is_one_whose_pods_are_unknown() {
    let (desired, mut seen) = rested(1);
    let protected = Desired { is_deleting: true, is_protected: true, ..desired.clone() };
    assert_eq!(planned(&protected, &seen).actions, []);
    let desired = Desired { is_deleting: true, ..desired };
    (seen.pods, seen.stateful_set) = (Fact::Unknown, Fact::Absent);
    assert_eq!(planned(&desired, &seen).actions, []);
}

#[test]
fn available_is_said_only_of_a_list_that_was_read_in_the_pass() {
    let (desired, mut seen) = rested(3);
    assert_eq!(
        finding(&planned(&desired, &seen), ConditionType::Available),
        (State::True, Reason::QuorumServes)
    );
    seen.membership = Fact::Unknown;
    let plan = planned(&desired, &seen);
    assert_eq!(finding(&plan, ConditionType::Available), (State::Unknown, Reason::Unreachable));
    assert_eq!(plan.summary.members.len(), 3, "members that cannot be asked stay listed");
    for ordinal in 1..3 {
        seen.statuses.insert(Ordinal(ordinal), Fact::Unknown);
    }
    assert_eq!(
        finding(&planned(&desired, &seen), ConditionType::Available),
        (State::False, Reason::QuorumLost)
    );
    seen.quorum_loss_age = Age::Fresh;
    assert_eq!(finding(&planned(&desired, &seen), ConditionType::Available).0, State::Unknown);
}

#[test]
fn a_missing_right_comes_first_and_a_quota_in_its_place() {
    let (desired, mut seen) = rested(3);
    down(&mut seen, 1, PodPhase::Failing(Cause::Other));
    seen.audit = Fact::Known(Audit::Different { revision: 9, minority: [Ordinal(1)].into() });
    let mut first = |why: &str| {
        seen.refused = Some(RefusedWrite { action: "apply-budget".to_owned(), why: why.to_owned() });
        let plan = plan(&desired, &seen);
        plan.summary.problems.iter().map(|problem| problem.reason).collect::<Vec<_>>()
    };
    let right = "pods is forbidden: User \"a\" cannot delete resource \"pods\" in API group \"\"";
    assert_eq!(first(right), [Reason::Forbidden, Reason::Corrupt, Reason::MemberDown]);
    assert_eq!(
        first("pods is forbidden: exceeded quota: q"),
        [Reason::Corrupt, Reason::ApplyFailed, Reason::MemberDown]
    );
}
