//! The way down, given up and gone on with.

use super::rules::{down, planned};
use super::sequences::is_settled;
use super::world::World;
use crate::api::condition::State;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::observation::{Audit, Cause, Fact, Ordinal, PodPhase, Version};

const STEPS: [(Version, Version); 2] =
    [(Version::new(7, 3), Version::new(6, 16)), (Version::new(6, 16), Version::new(5, 33))];

/// On its way from one version to a lower one, before anything has been done.
fn bound(from: Version, to: Version) -> World {
    let mut world = World::settled(3, from);
    world.desired.allows_downgrade = true;
    world.desired.template.version = to;
    world
}

fn backups(world: &World) -> usize {
    world.log.iter().filter(|action| matches!(action, Action::StartBackup { .. })).count()
}

#[test]
fn a_downgrade_whose_first_pod_does_not_come_up_is_healed_by_the_version_of_before() {
    for (from, to) in STEPS {
        let mut world = bound(from, to);
        world.desired.backs_up_before_upgrade = true;
        world.bad_versions.insert(to);
        let plan = world.run();
        let degraded = plan.summary.findings.iter().find(|one| one.about == ConditionType::Degraded).unwrap();
        assert_eq!((degraded.state, degraded.reason), (State::True, Reason::UpgradeStalled), "{to}");
        assert_eq!(world.live_voters(), 2);
        world.desired.template.version = from;
        let plan = world.run();
        assert!(is_settled(&plan), "{to}: {plan:#?}");
        assert_eq!((plan.summary.version, plan.summary.cluster_version), (Some(from), Some(from.minor)));
        assert_eq!((world.live_voters(), world.etcd.downgrade, backups(&world)), (3, None, 0));
    }
}

#[test]
fn a_downgrade_whose_second_pod_does_not_come_up_is_healed_by_the_version_of_before() {
    for (from, to) in STEPS {
        let mut world = bound(from, to);
        let serves = |world: &World| {
            let pods = world.pods.values();
            pods.filter(|one| one.pod.template.version == to && one.pod.phase == PodPhase::Up).count()
        };
        while serves(&world) < 1 {
            world.rounds(1);
        }
        world.bad_versions.insert(to);
        world.run();
        assert_eq!((world.live_voters(), serves(&world)), (2, 1), "{to}");
        world.desired.template.version = from;
        let plan = world.run();
        assert!(is_settled(&plan), "{to}: {plan:#?}");
        assert_eq!((plan.summary.version, world.live_voters()), (Some(from), 3));
    }
}

#[test]
fn no_member_is_downgraded_before_a_silent_member_has_shown_that_its_data_can_be_read() {
    for (from, to) in STEPS {
        let mut world = bound(from, to);
        while world.etcd.downgrade.is_none() {
            world.rounds(1);
        }
        world.turn();
        let seen = world.observe();
        assert_eq!(seen.cluster_version, Fact::Known(to.minor));
        let plan = planned(&world.desired, &seen);
        assert!(matches!(plan.actions.as_slice(), [Action::ApplyStatefulSet { .. }]), "{:?}", plan.actions);
        for phase in [PodPhase::Starting, PodPhase::Failing(Cause::Other)] {
            let mut seen = seen.clone();
            down(&mut seen, 1, phase);
            assert_eq!(planned(&world.desired, &seen).actions, [], "{to}");
        }
    }
}

#[test]
fn a_version_that_is_lower_than_agreed_on_is_prepared_for_though_pods_are_made_of_it_already() {
    for (from, to) in STEPS {
        let mut world = bound(from, to);
        world.set.as_mut().unwrap().template.version = to;
        let plan = planned(&world.desired, &world.observe());
        assert!(matches!(plan.actions.as_slice(), [Action::DowngradeEnable { .. }]), "{:?}", plan.actions);
        assert!(is_settled(&world.run()));
    }
}

#[test]
fn data_that_differ_are_compared_again_though_a_change_waits_for_it() {
    let mut world = World::settled(3, Version::new(6, 16));
    world.desired.template.revision += 1;
    for _ in 0..5 {
        let mut seen = world.observe();
        seen.audit = Fact::Known(Audit::Different { revision: 9, minority: [Ordinal(2)].into() });
        let plan = crate::kinds::etcdcluster::plan::plan(&world.desired, &seen);
        if plan.actions.is_empty() {
            assert!(plan.record.operation.is_some() && plan.is_at_rest(), "{plan:#?}");
            return;
        }
        plan.actions.iter().for_each(|action| world.apply(action));
    }
    panic!("it does not wait");
}
