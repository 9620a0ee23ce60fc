//! Learners: one rule a test.

use super::rules::{V3_6, down, finding, planned, status};
use super::world::World;
use crate::api::condition::State;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::observation::{
    Age, Cause, Desired, Fact, Observation, Ordinal, PodPhase, Purpose, Uid,
};

/// A cluster of one in which a member was added that has no entry yet.
fn with_added() -> World {
    let mut world = World::settled(1, V3_6);
    world.desired.replicas = 3;
    while world.pods.len() < 2 {
        world.rounds(1);
    }
    world.add(Ordinal(1));
    world.pass();
    world
}

#[test]
fn a_member_that_never_started_is_adopted() {
    let world = with_added();
    let plan = planned(&world.desired, &world.observe());
    let [Action::WriteConfig { entries, initial_cluster, .. }] = plan.actions.as_slice() else {
        panic!("{:#?}", plan.actions)
    };
    assert_eq!(entries[&Ordinal(1)].purpose, Purpose::Join);
    assert_eq!(initial_cluster, &[Ordinal(0), Ordinal(1)]);
}

/// Its entry names the members that etcd is started with, which a list alone has.
#[test]
fn a_pod_that_is_to_join_gets_its_entry_only_with_a_list_of_members() {
    let world = with_added();
    let mut seen = world.observe();
    let plan = planned(&world.desired, &seen);
    let [Action::WriteConfig { entries, .. }] = plan.actions.as_slice() else {
        panic!("{:#?}", plan.actions)
    };
    let Fact::Known(config) = &mut seen.config else { panic!("a ConfigMap") };
    config.entries.extend(entries.clone());
    let Fact::Known(pods) = &mut seen.pods else { panic!("pods") };
    let pod = pods.get_mut(&Ordinal(1)).unwrap();
    (pod.handle.uid, pod.phase) = (Uid("another".to_owned()), PodPhase::Waiting);
    let writes = |seen: &Observation| {
        let plan = planned(&world.desired, seen);
        plan.actions.into_iter().find_map(|action| match action {
            Action::WriteConfig { entries, initial_cluster, .. } if entries.contains_key(&Ordinal(1)) => {
                Some(initial_cluster)
            }
            _ => None,
        })
    };
    assert_eq!(writes(&seen), Some(vec![Ordinal(0), Ordinal(1)]));
    seen.membership = Fact::Unknown;
    assert_eq!(writes(&seen), None);
}

/// A cluster of one whose learner at ordinal 1 has been told that its data must be there.
fn with_learner() -> (Desired, Observation) {
    let mut world = World::settled(1, V3_6);
    world.desired.replicas = 3;
    loop {
        world.rounds(1);
        let (seen, desired) = (world.observe(), world.desired.clone());
        let plan = planned(&desired, &seen);
        if plan.actions.iter().any(|action| matches!(action, Action::MemberPromote { .. })) {
            return (desired, seen);
        }
    }
}

#[test]
fn a_learner_is_promoted_only_when_it_has_caught_up() {
    let (desired, mut seen) = with_learner();
    (status(&mut seen, 0).raft_applied_index, status(&mut seen, 1).raft_applied_index) = (1000, 900);
    assert!(matches!(planned(&desired, &seen).actions.as_slice(), [Action::MemberPromote { .. }]));
    status(&mut seen, 1).raft_applied_index = 899;
    let plan = planned(&desired, &seen);
    assert_eq!(plan.actions, []);
    assert_eq!(finding(&plan, ConditionType::Progressing), (State::True, Reason::WaitingForLearner));
    seen.operation_age = Age::PastDeadline;
    assert_eq!(
        finding(&planned(&desired, &seen), ConditionType::Degraded),
        (State::True, Reason::LearnerStuck)
    );
}

#[test]
fn a_learner_that_falls_behind_is_not_promoted() {
    let (desired, mut seen) = with_learner();
    status(&mut seen, 1).falls_behind = true;
    let plan = planned(&desired, &seen);
    assert_eq!(plan.actions, []);
    assert_eq!(finding(&plan, ConditionType::Progressing), (State::True, Reason::WaitingForLearner));
}

#[test]
fn a_learner_is_removed_for_its_data_or_when_it_is_no_longer_wanted_and_for_nothing_else() {
    let (desired, seen) = with_learner();
    for (phase, removed) in [
        (PodPhase::Pending(Some(Cause::Unschedulable)), false),
        (PodPhase::Pending(Some(Cause::Image)), false),
        (PodPhase::Failing(Cause::DataCorrupt), true),
    ] {
        let mut seen = seen.clone();
        down(&mut seen, 1, phase);
        let plan = planned(&desired, &seen);
        let removes = matches!(plan.actions.as_slice(), [Action::MemberRemove { ordinal: Ordinal(1), .. }]);
        assert_eq!(removes, removed, "{phase:?}");
        assert!(removes || plan.actions.is_empty());
    }
    let plan = planned(&Desired { replicas: 1, ..desired }, &seen);
    assert!(matches!(plan.actions.as_slice(), [Action::MemberRemove { ordinal: Ordinal(1), .. }]));
}
