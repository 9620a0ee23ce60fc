//! To which members clients are led, and that this needs no operator.

use super::rules::{V3_6, finding, planned, pod, rested, status};
use super::world::World;
use crate::api::condition::State;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::observation::{Age, Cause, Fact, Ordinal, PodPhase, Record, Role, Version};
use crate::kinds::etcdcluster::plan::plan;

/// The ordinals of the pods that Service and PodDisruptionBudget select.
fn served(world: &World) -> Vec<u32> {
    let pods = world.pods.iter().filter(|(_, process)| process.pod.role == Some(Role::Voter));
    pods.map(|(ordinal, _)| ordinal.0).collect()
}

#[test]
fn pods_that_come_back_are_found_without_an_operator() {
    let mut world = World::settled(3, V3_6);
    for ordinal in 0..3 {
        world.pods.remove(&Ordinal(ordinal));
        world.turn();
        assert_eq!((served(&world), world.live_voters()), (vec![0, 1, 2], 3));
    }
}

#[test]
fn pods_of_an_earlier_release_get_their_label_while_work_rests_and_when_it_goes_on() {
    let mut world = World::settled(3, V3_6);
    world.set.as_mut().unwrap().labels_voters = false;
    world.desired.is_paused = true;
    world.pods.remove(&Ordinal(0));
    world.turn();
    assert_eq!(served(&world), [1, 2]);
    world.run();
    assert_eq!(served(&world), [0, 1, 2]);
    let pods: Vec<_> = world.pods.values().map(|process| process.pod.handle.uid.clone()).collect();
    world.desired.is_paused = false;
    let plan = world.run();
    assert!(plan.summary.is_reached && world.set.as_ref().unwrap().labels_voters);
    let after: Vec<_> = world.pods.values().map(|process| process.pod.handle.uid.clone()).collect();
    assert_eq!(after, pods, "no pod is restarted for it");
}

/// A release that no longer supports the minor that a cluster runs takes its spec for invalid.
#[test]
fn members_of_a_spec_that_is_not_valid_are_labelled_and_go_on() {
    for version in [V3_6, Version::new(4, 30)] {
        let mut world = World::settled(3, version);
        world.set.as_mut().unwrap().labels_voters = false;
        world.desired.is_valid = false;
        world.pods.remove(&Ordinal(0));
        world.turn();
        assert_eq!(served(&world), [1, 2]);
        let before = world.log.len();
        world.rounds(2);
        assert_eq!(served(&world), [0, 1, 2]);
        let plan = world.run();
        assert_eq!(finding(&plan, ConditionType::SpecValid), (State::False, Reason::SpecInvalid));
        let asked = world.desired.template;
        let is_label = |action: &Action| match action {
            Action::ApplyStatefulSet { from, replicas, template, .. } => {
                from == replicas && *template == asked
            }
            action => matches!(action, Action::LabelPod { .. }),
        };
        assert!(world.log[before..].iter().all(is_label), "{version}: {:?}", &world.log[before..]);
        assert_eq!(world.live_voters(), 3, "{version}");
    }
}

#[test]
fn no_client_is_led_to_the_first_member_before_its_cluster_is_recorded_nor_to_a_learner() {
    let mut world = World::new(3, V3_6);
    for _ in 0..200 {
        world.pass();
        let members = &world.etcd.members;
        let is_voter = |ordinal: &u32| {
            members.iter().any(|member| member.ordinal == Some(Ordinal(*ordinal)) && !member.is_learner)
        };
        let running = world.pods.iter().filter(|(_, process)| process.pod.phase == PodPhase::Up);
        let running: Vec<_> = running.map(|(ordinal, _)| ordinal.0).collect();
        let led: Vec<_> = served(&world).into_iter().filter(|ordinal| running.contains(ordinal)).collect();
        assert!(world.record.cluster_id.is_some() || led.is_empty(), "{led:?}");
        assert!(led.iter().all(is_voter), "{led:?} of {members:?}");
        world.turn();
    }
    assert_eq!(served(&world), [0, 1, 2]);
}

#[test]
fn a_voter_that_follows_no_leader_beside_others_that_do_leaves_the_service() {
    let (desired, mut seen) = rested(3);
    status(&mut seen, 2).leader = None;
    seen.health_age = Age::Fresh;
    assert_eq!(planned(&desired, &seen).actions, [], "that may be an election");
    seen.health_age = Age::PastDeadline;
    let plan = planned(&desired, &seen);
    assert!(
        matches!(plan.actions.as_slice(), [Action::LabelPod { ordinal: Ordinal(2), role: None, .. }]),
        "{plan:#?}"
    );
    pod(&mut seen, 2).role = None;
    assert_eq!(planned(&desired, &seen).actions, []);
    let leader = status(&mut seen, 0).leader;
    status(&mut seen, 2).leader = leader;
    seen.health_age = Age::Fresh;
    let plan = planned(&desired, &seen);
    let labels = |action: &Action| matches!(action, Action::LabelPod { role: Some(Role::Voter), .. });
    assert!(plan.actions.iter().all(labels) && plan.actions.len() == 1, "{plan:#?}");
}

/// With one member, and the status gone, only what pods are made from says that there was a cluster.
#[test]
fn a_cluster_of_one_member_whose_status_is_gone_is_not_begun_again() {
    let mut world = World::settled(1, V3_6);
    world.record = Record::default();
    world.pods.get_mut(&Ordinal(0)).unwrap().pod.phase = PodPhase::Failing(Cause::DataCorrupt);
    let mut seen = world.observe();
    seen.membership = Fact::Unknown;
    let plan = plan(&world.desired, &seen);
    assert!(!plan.actions.iter().any(Action::is_irreversible), "{plan:#?}");
}
