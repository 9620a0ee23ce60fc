//! The ConfigMap is deleted: what it said is rebuilt from etcd, or else from the status and the claims.

use super::sequences::{is_settled, says};
use super::world::World;
use crate::api::condition::State;
use crate::kinds::etcdcluster::api::status::{condition, reason};
use crate::kinds::etcdcluster::observation::{Ordinal, PodPhase, Version};

const V3_6: Version = Version::new(6, 16);

/// The identities of the members, and every change of who is one.
type Members = (Vec<u64>, Vec<String>);

fn members(world: &World) -> Members {
    (world.ids(), world.membership_changes())
}

/// The members come to rest as those that they were, and none was added or removed on the way.
fn settles_as(before: &Members, world: &mut World) {
    let plan = world.run();
    assert!(is_settled(&plan), "{plan:#?}");
    assert_eq!(members(world), *before);
}

#[test]
fn a_stopped_cluster_starts_without_its_config_map_as_the_members_that_it_was() {
    for replicas in [1, 3] {
        let mut world = World::settled(replicas, V3_6);
        let before = members(&world);
        world.desired.replicas = 0;
        world.run();
        world.config = None;
        let plan = world.run();
        assert_eq!(plan.summary.members.len(), usize::try_from(replicas).unwrap(), "{plan:#?}");
        world.desired.replicas = replicas;
        settles_as(&before, &mut world);
    }
}

#[test]
fn pods_that_all_restart_come_back_without_their_config_map() {
    let mut world = World::settled(3, V3_6);
    let before = members(&world);
    world.config = None;
    for process in world.pods.values_mut() {
        process.pod.phase = PodPhase::Waiting;
    }
    world.etcd.leader = None;
    settles_as(&before, &mut world);
}

#[test]
fn a_config_map_that_is_deleted_at_rest_is_written_again() {
    let mut world = World::settled(3, V3_6);
    let (before, config) = (members(&world), world.config.take().unwrap());
    settles_as(&before, &mut world);
    assert_eq!(world.config.as_ref().unwrap().entries, config.entries);
}

#[test]
fn a_lost_quorum_without_its_config_map_is_counted_by_the_members_that_the_status_lists() {
    let mut world = World::settled(3, V3_6);
    world.config = None;
    for ordinal in [1, 2] {
        world.wipe(ordinal);
    }
    let plan = world.run();
    assert_eq!(says(&plan, condition::QUORUM_LOST), (State::True, reason::QUORUM_LOST));
    assert_eq!(plan.summary.members.len(), 3, "{plan:#?}");
    assert!(world.config.as_ref().unwrap().entries.contains_key(&Ordinal(0)));
}
