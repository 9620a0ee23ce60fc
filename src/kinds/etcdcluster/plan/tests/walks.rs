//! Random walks: edits, lost pods, lost volumes and kills in any order. Once they stop, the spec is reached, or said to
//! be refused.

use random_objects::Random;

use super::world::World;
use crate::kinds::etcdcluster::observation::{Member, Ordinal, Version};
use crate::kinds::etcdcluster::plan::{Plan, Refusal, Step};
use crate::properties;

/// Walks that are taken. A failure names its seed.
const WALKS: u32 = 100;

/// Steps of a walk.
const STEPS: usize = 60;

fn drawn_ordinal(dice: &mut Random) -> Ordinal {
    Ordinal(u32::try_from(dice.roll(7)).unwrap())
}

/// What happens to a world from outside, as far as a cluster must survive it.
fn disturb(world: &mut World, dice: &mut Random) {
    match dice.roll(8) {
        0 => world.desired.replicas = u32::try_from(dice.roll(5)).unwrap() + 1,
        1 => world.desired.template.revision = dice.roll(3),
        2 => world.desired.template.version = Version::new(6, 14 + dice.roll(3)),
        3 if !world.desired.is_in_memory => {
            world.pods.remove(&drawn_ordinal(dice));
        }
        4 => world.kill = Some((world.log.len(), dice.roll(2) == 0)),
        3 | 5 => {
            let ordinal = drawn_ordinal(dice);
            let is_voter = |member: &&_| is_voter_at(member, ordinal);
            let voters = world.etcd.members.iter().filter(is_voter).count();
            let spare = voters == 0 || world.live_voters() > world.voters() / 2 + 1;
            if world.record.cluster_id.is_some() && spare {
                world.pods.remove(&ordinal);
                world.volumes.remove(&ordinal);
            }
        }
        _ => {}
    }
}

fn is_voter_at(member: &Member, ordinal: Ordinal) -> bool {
    member.ordinal == Some(ordinal) && !member.is_learner
}

/// A walk, and where it ends once nothing more happens.
fn walk(mut world: World, seed: u64) -> (World, Plan) {
    println!("seed {seed}");
    let mut dice = Random(seed);
    world.run();
    for _ in 0..STEPS {
        disturb(&mut world, &mut dice);
        for _ in 0..dice.roll(3) {
            world.pass();
        }
        if dice.roll(3) > 0 {
            world.turn();
        }
    }
    world.kill = None;
    let plan = world.run();
    assert_eq!(world.ordinals(), (0..world.desired.replicas).collect::<Vec<_>>(), "seed {seed}");
    assert_eq!(world.pods.len(), world.volumes.len());
    (world, plan)
}

#[test]
fn whatever_happens_the_spec_is_reached_once_it_stops() {
    for seed in properties::seeds(WALKS) {
        let (_, plan) = walk(World::new(3, Version::new(6, 14)), seed);
        assert!(plan.summary.is_reached, "seed {seed}: {plan:#?}");
    }
}

#[test]
fn whatever_happens_in_memory_a_majority_keeps_the_data() {
    for seed in properties::seeds(WALKS) {
        let mut world = World::new(3, Version::new(6, 14));
        world.desired.is_in_memory = true;
        let (world, plan) = walk(world, seed);
        let is_refused = world.voters() < 3 && plan.summary.step == Step::Refused(Refusal::DropsData);
        assert!(plan.summary.is_reached || is_refused, "seed {seed}: {plan:#?}");
        assert_eq!(world.live_voters(), world.voters());
    }
}
