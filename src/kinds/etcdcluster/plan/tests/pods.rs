//! Pods that are not made, do not come to run, or end one after the other; and what is said where no member serves.

use std::collections::BTreeMap;

use super::rules::{V3_6, down, finding, planned, pod, rested};
use super::world::World;
use crate::api::condition::State;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::observation::{
    Age, Cause, Certificates, Desired, Fact, Found, Member, MemberId, Observation, Ordinal, PodPhase,
    RootPassword, Unreadable,
};
use crate::kinds::etcdcluster::plan::{BlockedReason, Plan};

fn problems(plan: &Plan) -> Vec<(Reason, Option<u32>)> {
    let problems = plan.summary.problems.iter();
    problems.map(|problem| (problem.reason, problem.ordinal.map(|ordinal| ordinal.0))).collect()
}

/// A cluster whose first member is being made, with a StatefulSet and no more.
fn begun() -> (Desired, Observation) {
    let mut world = World::new(3, V3_6);
    while world.set.is_none() {
        world.pass();
    }
    (world.desired.clone(), world.observe())
}

/// The same with a pod in a phase.
fn with_pod(phase: PodPhase) -> (Desired, Observation) {
    let mut world = World::new(3, V3_6);
    while world.pods.is_empty() {
        world.rounds(1);
    }
    let (desired, mut seen) = (world.desired.clone(), world.observe());
    seen.config = Fact::Absent;
    pod(&mut seen, 0).phase = phase;
    (desired, seen)
}

#[test]
fn a_first_pod_that_is_not_made_is_said_at_once_and_the_cluster_is_not_called_healthy() {
    let (desired, mut seen) = begun();
    let plan = planned(&desired, &seen);
    assert_eq!(finding(&plan, ConditionType::Degraded), (State::False, Reason::Bootstrapping));
    seen.hindered.slow = [Ordinal(0)].into();
    let plan = planned(&desired, &seen);
    assert_eq!(problems(&plan), [(Reason::PodNotRunning, Some(0))]);
    for about in [ConditionType::Degraded, ConditionType::Ready] {
        assert_eq!(finding(&plan, about).1, Reason::PodNotRunning, "{about:?}");
    }
    assert_eq!(finding(&plan, ConditionType::Progressing), (State::True, Reason::Bootstrapping));
}

#[test]
fn a_pod_that_does_not_run_is_said_of_members_learners_and_those_to_come() {
    let (desired, mut seen) = rested(3);
    // The node is gone, and a quota keeps the next pod from being made.
    down(&mut seen, 1, PodPhase::Pending(Some(Cause::Unschedulable)));
    seen.hindered.slow = [Ordinal(1)].into();
    let mut both = seen.clone();
    down(&mut both, 2, PodPhase::Failing(Cause::Other));
    assert_eq!(problems(&planned(&desired, &seen)), [(Reason::PodNotRunning, Some(1))]);
    let expected = [(Reason::PodNotRunning, Some(1)), (Reason::MemberDown, Some(2))];
    both.quorum_loss_age = Age::Fresh;
    assert_eq!(problems(&planned(&desired, &both)), expected);
    // A learner is not excused by being new.
    let Fact::Known(list) = &mut seen.membership else { panic!("a list") };
    list.members
        .iter_mut()
        .filter(|member| member.ordinal == Some(Ordinal(1)))
        .for_each(|member| member.is_learner = true);
    assert_eq!(problems(&planned(&desired, &seen)), [(Reason::PodNotRunning, Some(1))]);
    // One that is to be added is no member yet.
    let (desired, mut seen) = rested(3);
    seen.hindered.slow = [Ordinal(3)].into();
    let plan = planned(&Desired { replicas: 4, ..desired.clone() }, &seen);
    assert_eq!(problems(&plan), [(Reason::PodNotRunning, Some(3))]);
    // A member that answers has a pod, whatever was remembered.
    seen.hindered.slow = [Ordinal(0)].into();
    assert_eq!(problems(&planned(&desired, &seen)), []);
}

#[test]
fn a_cluster_without_members_that_serve_is_called_what_it_is() {
    let (desired, mut seen) = rested(3);
    seen.statuses.clear();
    (seen.membership, seen.pods, seen.config) = (Fact::Unknown, Fact::Known(BTreeMap::new()), Fact::Absent);
    let stopped = Desired { replicas: 0, ..desired.clone() };
    assert_eq!(finding(&planned(&stopped, &seen), ConditionType::Degraded), (State::False, Reason::Stopped));
    // Which members there are is unknown.
    let plan = planned(&desired, &seen);
    assert_ne!(finding(&plan, ConditionType::Degraded).1, Reason::Healthy);
    let new = World::new(3, V3_6);
    let plan = planned(&new.desired, &new.observe());
    assert_eq!(finding(&plan, ConditionType::Degraded), (State::False, Reason::Bootstrapping));
}

#[test]
fn pods_that_end_one_after_the_other_cost_no_write_each() {
    let writes = |plan: &Plan| plan.actions.iter().any(|action| matches!(action, Action::WriteConfig { .. }));
    let ended = PodPhase::Terminal(Cause::Killed);
    for (phase, is_rejected, expected) in [
        (PodPhase::Pending(None), false, true),
        (ended, false, false),
        (PodPhase::Pending(None), true, false),
        (PodPhase::Pending(Some(Cause::Unschedulable)), true, false),
        (ended, true, false),
        (PodPhase::Waiting, true, true),
    ] {
        let (desired, mut seen) = with_pod(phase);
        if is_rejected {
            seen.hindered.rejected = [Ordinal(0)].into();
        }
        let plan = planned(&desired, &seen);
        assert_eq!(writes(&plan), expected, "{phase:?} {is_rejected}: {:?}", plan.actions);
        if is_rejected {
            assert_eq!(finding(&plan, ConditionType::Degraded), (State::True, Reason::PodNotRunning));
        }
    }
}

#[test]
fn services_that_are_refused_hold_up_no_other_object_of_the_first_member() {
    let (desired, mut seen) = begun();
    (seen.services, seen.refusals.services) = (Fact::Known(Found::Outdated), true);
    seen.stateful_set = Fact::Absent;
    let actions = planned(&desired, &seen).actions;
    assert!(
        matches!(actions.as_slice(), [Action::ApplyStatefulSet { found: None, .. }, Action::ApplyServices]),
        "{actions:?}"
    );
    let (desired, mut seen) = with_pod(PodPhase::Waiting);
    (seen.services, seen.refusals.services) = (Fact::Known(Found::Outdated), true);
    let actions = planned(&desired, &seen).actions;
    assert!(matches!(actions.as_slice(), [Action::WriteConfig { .. }, Action::ApplyServices]), "{actions:?}");
}

/// Another template is asked for before the first member serves, and the API server refuses it.
#[test]
fn a_template_that_is_refused_holds_up_no_other_object_of_the_first_member() {
    let (mut desired, mut seen) = with_pod(PodPhase::Waiting);
    desired.template.revision += 1;
    assert!(matches!(planned(&desired, &seen).actions.as_slice(), [Action::ApplyStatefulSet { .. }]));
    seen.refusals.template = Some(desired.template);
    let actions = planned(&desired, &seen).actions;
    assert!(
        matches!(actions.as_slice(), [Action::WriteConfig { .. }, Action::ApplyStatefulSet { .. }]),
        "{actions:?}"
    );
}

#[test]
fn what_no_change_gets_past_until_a_person_acts_is_not_ready() {
    let (mut desired, seen) = rested(3);
    assert_eq!(finding(&planned(&desired, &seen), ConditionType::Ready), (State::True, Reason::MembersReady));
    for (certificates, why) in
        [(Certificates::Missing, Reason::SecretUnreadable), (Certificates::Unfit, Reason::CertificateInvalid)]
    {
        let seen = Observation { certificates, ..seen.clone() };
        let plan = planned(&desired, &seen);
        assert_eq!(finding(&plan, ConditionType::Ready), (State::False, why));
        assert_eq!(finding(&plan, ConditionType::Available), (State::True, Reason::QuorumServes));
    }
    let expiring = Observation { certificates: Certificates::Expiring, ..seen.clone() };
    assert_eq!(finding(&planned(&desired, &expiring), ConditionType::Ready).0, State::True);
    // Another client has added a member that is none of ours.
    let mut foreign = seen.clone();
    let Fact::Known(list) = &mut foreign.membership else { panic!("a list") };
    list.members.push(Member { id: MemberId(99), ordinal: None, is_learner: true, is_started: true });
    let plan = planned(&desired, &foreign);
    assert_eq!(plan.summary.blocked, Some(BlockedReason::ForeignMember));
    assert_eq!(finding(&plan, ConditionType::Ready), (State::False, Reason::ChangePending));
    // Root cannot be given the password that is asked for.
    desired.authenticates = true;
    let mut locked = seen;
    locked.auth = Fact::Known(true);
    for found in [RootPassword::Unreadable(Unreadable::Missing), RootPassword::Barred] {
        locked.root_password = Fact::Known(found);
        assert_eq!(
            finding(&planned(&desired, &locked), ConditionType::Ready),
            (State::False, Reason::RootPasswordUnset)
        );
    }
    locked.root_password = Fact::Known(RootPassword::Current);
    assert_eq!(finding(&planned(&desired, &locked), ConditionType::Ready).0, State::True);
}
