//! The operator killed before and after each action of a whole story: the next start brings it to the same end.

use super::world::World;
use crate::kinds::etcdcluster::observation::{RecoveryRequest, Version};

const V3_6: Version = Version::new(6, 16);

/// What a story ends with: who votes where, with how many pods and volumes, and on which version.
fn end(world: &World) -> (Vec<u32>, usize, usize, usize, Vec<Version>) {
    let versions = world.pods.values().map(|process| process.pod.template.version).collect();
    (world.ordinals(), world.live_voters(), world.pods.len(), world.volumes.len(), versions)
}

/// Tells a story once undisturbed, and then with a kill at each of its actions, and with everybody else slow.
fn survives(begin: impl Fn() -> World, story: impl Fn(&mut World)) {
    let mut calm = begin();
    let first = calm.log.len();
    story(&mut calm);
    let last = calm.log.len();
    assert!(last > first, "a story without actions");
    for pace in [1, 3] {
        for at in first..last {
            for before in [true, false] {
                let mut world = begin();
                world.pace = pace;
                world.kill = Some((at, before));
                story(&mut world);
                assert_eq!(end(&world), end(&calm), "killed at {at} of {first}..{last}");
            }
        }
    }
}

#[test]
fn bootstrap_and_growth_survive_a_kill_at_each_effect() {
    survives(
        || World::new(3, V3_6),
        |world| {
            world.run();
        },
    );
}

#[test]
fn shrinking_survives_a_kill_at_each_effect() {
    survives(
        || World::settled(5, V3_6),
        |world| {
            world.desired.replicas = 1;
            world.run();
        },
    );
}

#[test]
fn a_replacement_survives_a_kill_at_each_effect() {
    for ordinal in 0..3 {
        survives(
            || World::settled(3, V3_6),
            |world| {
                world.wipe(ordinal);
                world.run();
            },
        );
    }
}

#[test]
fn an_upgrade_survives_a_kill_at_each_effect() {
    for (from, to) in [(Version::new(5, 33), V3_6), (V3_6, Version::new(7, 3)), (V3_6, Version::new(5, 33))] {
        survives(
            || World::settled(3, from),
            |world| {
                (world.desired.template.version, world.desired.allows_downgrade) = (to, true);
                world.run();
            },
        );
    }
}

#[test]
fn stopping_and_starting_survives_a_kill_at_each_effect() {
    survives(
        || World::settled(3, V3_6),
        |world| {
            world.desired.replicas = 0;
            world.run();
            world.desired.replicas = 3;
            world.run();
        },
    );
}

#[test]
fn a_recovery_survives_a_kill_at_each_effect() {
    survives(
        || World::settled(3, V3_6),
        |world| {
            world.wipe(1);
            world.wipe(2);
            world.desired.recovery = Some(RecoveryRequest { token: "now".to_owned(), survivor: None });
            world.run();
        },
    );
}
