//! Claims of members that are being deleted: they go with their data once their pods end.

use super::recoveries::{self, request, run_to, with_two_down};
use super::sequences::{is_settled, says};
use super::world::World;
use crate::api::condition::State;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::observation::{Age, Ordinal, PodPhase, RecoveryPhase, Version};
use crate::kinds::etcdcluster::plan::Plan;

const V3_6: Version = Version::new(6, 16);

/// A cluster at rest, and then `kubectl delete pvc --wait=false` of these members' claims.
fn with_claims_deleted(replicas: u32, ordinals: &[u32]) -> World {
    let mut world = World::settled(replicas, V3_6);
    for ordinal in ordinals {
        world.volumes.get_mut(&Ordinal(*ordinal)).unwrap().0.is_deleting = true;
    }
    world
}

fn has_data(world: &World, ordinal: u32) -> bool {
    world.volumes.get(&Ordinal(ordinal)).is_some_and(|(_, data)| data.is_some())
}

fn all_claims_stay(world: &World) {
    assert!(world.volumes.values().all(|(volume, data)| !volume.is_deleting && data.is_some()));
}

fn is_reported(plan: &Plan) {
    assert_eq!(says(plan, ConditionType::Degraded), (State::True, Reason::ClaimTerminating));
    assert_eq!(says(plan, ConditionType::Ready), (State::False, Reason::ClaimTerminating));
}

#[test]
fn the_only_member_is_neither_restarted_nor_stopped_while_its_claim_is_being_deleted() {
    let mut world = with_claims_deleted(1, &[0]);
    let pod = world.pods[&Ordinal(0)].pod.handle.clone();
    is_reported(&world.run());
    world.desired.template.revision += 1;
    is_reported(&world.run());
    world.desired.replicas = 0;
    is_reported(&world.run());
    assert_eq!(world.pods[&Ordinal(0)].pod.handle, pod);
    assert!(has_data(&world, 0));
}

#[test]
fn three_members_replace_the_one_whose_claim_is_being_deleted() {
    let mut world = with_claims_deleted(1, &[0]);
    let (first, index) = (world.ids()[0], world.etcd.index);
    world.desired.replicas = 3;
    let plan = world.run();
    assert!(is_settled(&plan), "{plan:#?}");
    assert_eq!((world.ordinals(), world.ids().contains(&first)), (vec![0, 1, 2], false));
    all_claims_stay(&world);
    assert!(world.etcd.index >= index);
}

#[test]
fn all_claims_of_three_members_are_replaced_one_after_the_other() {
    let mut world = with_claims_deleted(3, &[0, 1, 2]);
    let before = world.membership_changes().len();
    let plan = world.run();
    assert!(is_settled(&plan), "{plan:#?}");
    all_claims_stay(&world);
    let changes = &world.membership_changes()[before..];
    let of = |ordinal| ["remove", "add", "promote"].map(|does| format!("{does} {ordinal}"));
    assert_eq!(changes, [2, 1, 0].map(of).concat());
}

#[test]
fn of_two_members_none_is_removed_and_a_third_one_lets_both_be_replaced() {
    let mut world = with_claims_deleted(2, &[0, 1]);
    world.desired.template.revision += 1;
    let before = world.membership_changes().len();
    is_reported(&world.run());
    assert_eq!(world.membership_changes().len(), before);
    assert!(has_data(&world, 0) && has_data(&world, 1));
    world.desired.replicas = 3;
    let plan = world.run();
    assert!(is_settled(&plan), "{plan:#?}");
    all_claims_stay(&world);
}

#[test]
fn of_members_that_are_too_many_the_one_leaves_whose_claim_is_being_deleted() {
    for replicas in [3, 2] {
        let mut world = with_claims_deleted(replicas, &[0]);
        let before = world.membership_changes().len();
        world.desired.replicas = replicas - 1;
        let plan = world.run();
        assert!(is_settled(&plan), "{plan:#?}");
        assert_eq!(world.membership_changes()[before], "remove 0");
        all_claims_stay(&world);
    }
}

/// Its claim and its entry are lost, and the claim that came after that is deleted before it has an entry.
#[test]
fn a_member_without_data_and_entry_is_replaced_while_its_next_claim_is_being_deleted() {
    for replicas in [3, 5] {
        let last = Ordinal(replicas - 1);
        let mut world = World::settled(replicas, V3_6);
        let before = world.etcd.members.iter().find(|member| member.ordinal == Some(last)).unwrap().id.0;
        world.config.as_mut().unwrap().entries.remove(&last);
        world.wipe(last.0);
        world.volumes.get_mut(&last).unwrap().0.is_deleting = true;
        let plan = world.run();
        assert!(is_settled(&plan), "{replicas}: {plan:#?}");
        assert_eq!((world.live_voters(), world.ids().contains(&before)), (world.voters(), false));
        all_claims_stay(&world);
    }
}

#[test]
fn a_member_whose_claim_is_being_deleted_starts_again_without_the_config_map() {
    let mut world = with_claims_deleted(1, &[0]);
    world.config = None;
    world.pods.get_mut(&Ordinal(0)).unwrap().pod.phase = PodPhase::Waiting;
    world.etcd.leader = None;
    let before = world.ids();
    is_reported(&world.run());
    assert_eq!((world.live_voters(), world.ids()), (1, before));
    assert!(has_data(&world, 0));
}

/// Their disks are gone: their pods have a node, and wait for a volume that never comes. Kubernetes keeps a claim while a
/// pod with a node names it.
#[test]
fn claims_of_members_that_never_mounted_their_volumes_go_after_a_recovery() {
    let mut world = asked_to_recover(None);
    run_to(&mut world, RecoveryPhase::Clearing);
    for ordinal in [1, 2].map(Ordinal) {
        let pod = &mut world.pods.get_mut(&ordinal).unwrap().pod;
        (pod.phase, pod.startup_age) = (PodPhase::Pending(None), Age::PastDeadline);
    }
    let plan = world.run();
    assert!(is_settled(&plan), "{plan:#?}");
    assert_eq!(world.live_voters(), 3);
    all_claims_stay(&world);
}

/// A recovery from a lost quorum, of which the claim of one member is deleted; no pod that holds it ends.
fn recovers(mut world: World, going: u32, phase: Option<RecoveryPhase>) {
    world.volumes.get_mut(&Ordinal(going)).unwrap().0.is_deleting = true;
    let before = world.log.len();
    world.rounds(50);
    assert_eq!(recoveries::phase(&world), phase);
    let deletes = |action: &Action| matches!(action, Action::DeletePod { ordinal, .. } if ordinal.0 == going);
    assert!(!world.log[before..].iter().any(deletes), "{going}: {:#?}", &world.log[before..]);
    assert!(has_data(&world, going));
}

fn asked_to_recover(survivor: Option<u32>) -> World {
    let mut world = with_two_down();
    world.desired.recovery = Some(request("now", survivor));
    world
}

#[test]
fn a_recovery_does_not_begin_with_a_survivor_whose_claim_is_being_deleted() {
    for survivor in [None, Some(0)] {
        recovers(asked_to_recover(survivor), 0, None);
    }
}

#[test]
fn a_recovery_stops_no_other_member_whose_claim_is_being_deleted() {
    recovers(asked_to_recover(None), 1, Some(RecoveryPhase::Fencing));
}

#[test]
fn a_recovery_waits_once_the_claim_of_its_survivor_is_being_deleted() {
    let mut world = asked_to_recover(None);
    run_to(&mut world, RecoveryPhase::Forcing);
    recovers(world, 0, Some(RecoveryPhase::Forcing));
}
