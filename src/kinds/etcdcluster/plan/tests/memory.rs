//! Data in memory end with their pod: what that leads to, and what it forbids.

use super::rules::{down, planned};
use super::sequences::{is_settled, says};
use super::world::World;
use crate::api::condition::State;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::observation::{
    Cause, Fact, Ordinal, PodPhase, RecoveryRequest, Template, Version,
};
use crate::kinds::etcdcluster::plan::Plan;

const V3_6: Version = Version::new(6, 16);

/// What a newer patch and a changed template ask for.
const CHANGES: [Template; 2] =
    [Template { version: Version::new(6, 17), revision: 1 }, Template { version: V3_6, revision: 2 }];

fn settled(replicas: u32) -> World {
    let mut world = World::new(replicas, V3_6);
    world.desired.is_in_memory = true;
    world.run();
    world
}

fn is_refused(plan: &Plan) -> bool {
    says(plan, ConditionType::SpecValid) == (State::False, Reason::WouldLoseData)
}

#[test]
fn members_in_memory_come_back_as_new_ones_one_at_a_time() {
    let mut world = settled(3);
    let before = world.ids();
    world.pods.remove(&Ordinal(2));
    world.turn();
    let plan = world.run();
    assert!(is_settled(&plan), "{plan:#?}");
    assert_eq!((world.ordinals(), world.live_voters()), (vec![0, 1, 2], 3));
    assert_eq!(world.ids().iter().filter(|id| before.contains(id)).count(), 2);
    world.desired.template.version = Version::new(6, 17);
    let plan = world.run();
    assert!(is_settled(&plan), "{plan:#?}");
    assert_eq!((world.ordinals(), plan.summary.version), (vec![0, 1, 2], Some(Version::new(6, 17))));
}

#[test]
fn a_cluster_in_memory_is_not_stopped() {
    let mut world = settled(3);
    world.desired.replicas = 0;
    let plan = world.run();
    assert_eq!(world.live_voters(), 3);
    assert_eq!(says(&plan, ConditionType::SpecValid), (State::False, Reason::SpecInvalid));
}

#[test]
fn members_too_few_to_make_up_for_one_are_not_recreated() {
    for replicas in [1, 2] {
        for template in CHANGES {
            let mut world = settled(replicas);
            let (before, found) = (world.log.len(), world.desired.template);
            world.desired.template = template;
            let plan = world.run();
            assert_eq!(world.log.len(), before, "{:#?}", &world.log[before..]);
            assert_eq!(world.live_voters(), world.voters());
            assert!(is_refused(&plan) && !plan.summary.is_reached, "{plan:#?}");
            world.desired.template = found;
            assert!(is_settled(&world.run()));
        }
    }
}

#[test]
fn a_single_member_is_recreated_once_others_have_its_data() {
    for template in CHANGES {
        let mut world = settled(1);
        (world.desired.template, world.desired.replicas) = (template, 3);
        let first = world.pass();
        assert_eq!(says(&first, ConditionType::SpecValid), (State::True, Reason::Valid));
        let plan = world.run();
        assert!(is_settled(&plan), "{plan:#?}");
        let grown = world
            .log
            .iter()
            .rposition(|action| matches!(action, Action::MemberPromote { ordinal: Ordinal(2), .. }));
        let remade = world
            .log
            .iter()
            .rposition(|action| matches!(action, Action::DeletePod { ordinal: Ordinal(0), .. }));
        assert!(grown.is_some() && remade.is_some());
        assert!(world.pods.values().all(|process| process.pod.template == template));
        world.desired.replicas = 1;
        assert!(is_settled(&world.run()));
    }
}

#[test]
fn a_roll_that_is_overtaken_by_shrinking_takes_no_majority_with_it() {
    for template in CHANGES {
        for after in 0..40 {
            for replicas in [1, 2] {
                let mut world = settled(3);
                world.desired.template = template;
                world.rounds(after);
                world.desired.replicas = replicas;
                let plan = world.run();
                assert!(is_settled(&plan) || is_refused(&plan), "after {after}: {plan:#?}");
                let voters = usize::try_from(replicas).unwrap();
                assert_eq!((world.voters(), world.live_voters()), (voters, voters));
            }
        }
    }
}

#[test]
fn a_pod_that_fails_keeps_its_data_while_another_member_cannot_be_asked() {
    let world = settled(3);
    let (mut desired, mut seen) = (world.desired.clone(), world.observe());
    desired.template = CHANGES[1];
    if let Fact::Known(set) = &mut seen.stateful_set {
        set.template = desired.template;
    }
    down(&mut seen, 1, PodPhase::Failing(Cause::Flags));
    assert!(matches!(planned(&desired, &seen).actions.as_slice(), [Action::WriteConfig { .. }]));
    seen.statuses.insert(Ordinal(2), Fact::Unknown);
    assert_eq!(planned(&desired, &seen).actions, []);
    desired.is_in_memory = false;
    assert!(matches!(planned(&desired, &seen).actions.as_slice(), [Action::WriteConfig { .. }]));
}

#[test]
fn a_survivor_is_not_restarted() {
    let mut world = settled(3);
    world.pods.remove(&Ordinal(0));
    world.pods.remove(&Ordinal(2));
    world.turn();
    let before = world.log.len();
    world.desired.recovery = Some(RecoveryRequest { token: "now".to_owned(), survivor: None });
    let plan = world.run();
    assert_eq!(world.log.len(), before, "{:#?}", &world.log[before..]);
    assert_eq!(says(&plan, ConditionType::QuorumLost), (State::True, Reason::QuorumLost));
    assert!(is_refused(&plan));
    assert_eq!(world.live_voters(), 1, "its data are there to be copied");
}
