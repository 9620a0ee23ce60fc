//! A lost quorum, and how it is brought back: whole stories.

use std::collections::BTreeMap;

use super::rules::{V3_6, planned};
use super::sequences::{is_settled, says};
use super::world::World;
use crate::api::condition::State;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::observation::{
    Age, Cause, ConfigEntry, Fact, Operation, OperationKind, Ordinal, Phase, PodPhase, Purpose,
    RecoveryPhase, RecoveryRequest, Target, Version,
};
use crate::kinds::etcdcluster::plan::{BlockedReason, Plan, has_lost_data, plan};

pub fn request(token: &str, survivor: Option<u32>) -> RecoveryRequest {
    RecoveryRequest { token: token.to_owned(), survivor: survivor.map(Ordinal) }
}

/// A cluster of three of which two members do not come up. What they have on their volumes is there.
pub fn with_two_down() -> World {
    let mut world = World::settled(3, V3_6);
    for ordinal in [1, 2] {
        break_down(&mut world, ordinal);
    }
    world
}

pub fn break_down(world: &mut World, ordinal: u32) {
    world.pods.get_mut(&Ordinal(ordinal)).unwrap().pod.phase = PodPhase::Failing(Cause::Other);
}

pub fn phase(world: &World) -> Option<RecoveryPhase> {
    world.record.recovery.as_ref().map(|recovery| recovery.phase)
}

/// Passes until the recovery is in that phase.
pub fn run_to(world: &mut World, wanted: RecoveryPhase) {
    for _ in 0..50 {
        if phase(world) == Some(wanted) {
            return;
        }
        world.rounds(1);
    }
    panic!("it never came to {wanted:?}: {:#?}", world.record);
}

/// Volumes that were kept beyond their claims, and those whose claims went for that.
pub fn retained_and_deleted(world: &World, since: usize) -> (Vec<u32>, Vec<u32>) {
    let (mut retained, mut deleted) = (Vec::new(), Vec::new());
    for action in &world.log[since..] {
        match action {
            Action::RetainVolume { ordinal, .. } => retained.push(ordinal.0),
            Action::DeleteVolume { ordinal, keeps_data: true, .. } => {
                assert!(retained.contains(&ordinal.0), "{ordinal:?} before it was kept");
                deleted.push(ordinal.0);
            }
            _ => {}
        }
    }
    (retained, deleted)
}

/// The entries that were written since.
pub fn written(world: &World, since: usize) -> Vec<(Ordinal, ConfigEntry)> {
    let entries = world.log[since..].iter().flat_map(|action| match action {
        Action::WriteConfig { entries, .. } => entries.clone(),
        _ => BTreeMap::new(),
    });
    entries.collect()
}

pub fn entry(world: &World, ordinal: u32) -> ConfigEntry {
    world.config.as_ref().unwrap().entries[&Ordinal(ordinal)].clone()
}

pub fn deletes_pod(plan: &Plan, wanted: u32) -> bool {
    matches!(plan.actions.as_slice(), [Action::DeletePod { ordinal, .. }] if ordinal.0 == wanted)
}

#[test]
fn a_single_member_that_lost_its_volume_is_never_formed_again() {
    let mut world = World::settled(1, V3_6);
    let before = world.log.len();
    world.wipe(0);
    let plan = world.run();
    assert_eq!(world.log.len(), before);
    assert_eq!(says(&plan, ConditionType::QuorumLost), (State::True, Reason::QuorumLost));
    assert_eq!(says(&plan, ConditionType::Available), (State::False, Reason::QuorumLost));
}

#[test]
fn data_are_called_lost_where_the_volume_is_gone_and_not_where_a_member_is_merely_down() {
    let mut world = with_two_down();
    world.wipe(1);
    let seen = world.observe();
    let lost: Vec<_> = (0..3).map(|ordinal| has_lost_data(&seen, Ordinal(ordinal))).collect();
    assert_eq!(lost, [false, true, false]);
}

#[test]
fn a_lost_quorum_is_reported_and_nothing_is_wiped_by_itself() {
    let mut world = World::settled(3, V3_6);
    let before = world.log.len();
    world.wipe(1);
    world.wipe(2);
    let plan = world.run();
    assert_eq!(world.log.len(), before);
    assert_eq!(says(&plan, ConditionType::QuorumLost), (State::True, Reason::QuorumLost));
}

/// The address of a pod that is gone may be another member's by now, whose certificate fits every name of the cluster.
#[test]
fn an_answer_of_another_member_neither_makes_a_quorum_nor_a_survivor() {
    let mut world = with_two_down();
    for survivor in [None, Some(1)] {
        world.desired.recovery = Some(request("now", survivor));
        let mut seen = world.observe();
        seen.statuses.insert(Ordinal(1), seen.statuses[&Ordinal(0)].clone());
        let plan = planned(&world.desired, &seen);
        assert_eq!(says(&plan, ConditionType::QuorumLost), (State::True, Reason::QuorumLost), "{survivor:?}");
        let chosen = plan.record.recovery.and_then(|recovery| recovery.survivor);
        let expected = if survivor.is_none() { Some(Ordinal(0)) } else { None };
        assert_eq!(chosen, expected, "{survivor:?}");
    }
}

#[test]
fn a_request_brings_a_lost_quorum_back_from_the_survivor_once() {
    let mut world = World::settled(3, V3_6);
    world.wipe(0);
    world.wipe(2);
    world.desired.recovery = Some(request("now", None));
    let plan = world.run();
    assert!(is_settled(&plan), "{plan:#?}");
    assert_eq!((world.ordinals(), world.live_voters()), (vec![0, 1, 2], 3));
    let recovery = world.record.recovery.clone().unwrap();
    assert_eq!((recovery.survivor, recovery.phase), (Some(Ordinal(1)), RecoveryPhase::Done));
    let mut forced = written(&world, 0);
    forced.retain(|(_, entry)| entry.purpose == Purpose::Force && entry.pod.is_some());
    assert_eq!(forced.len(), 1);
    world.wipe(0);
    world.wipe(2);
    let before = world.log.len();
    let plan = world.run();
    assert_eq!(world.log.len(), before, "the request was consumed");
    assert_eq!(says(&plan, ConditionType::QuorumLost), (State::True, Reason::QuorumLost));
}

#[test]
fn a_survivor_that_restarts_by_itself_at_the_wrong_time_is_restarted_all_the_same() {
    for rounds in 0..40 {
        let mut world = World::settled(3, V3_6);
        world.wipe(0);
        world.wipe(2);
        world.desired.recovery = Some(request("now", None));
        world.rounds(rounds);
        world.pods.remove(&Ordinal(1));
        let plan = world.run();
        assert!(is_settled(&plan), "after {rounds}: {plan:#?}");
        assert_eq!((world.ordinals(), world.live_voters()), (vec![0, 1, 2], 3));
        let is_clearing = |action: &Action| match action {
            Action::WriteRecord { record, .. } => {
                record.recovery.as_ref().is_some_and(|one| one.phase == RecoveryPhase::Clearing)
            }
            _ => false,
        };
        let cleared = world.log.iter().position(is_clearing).unwrap();
        let late = written(&world, cleared).iter().any(|(_, entry)| entry.purpose == Purpose::Force);
        assert!(!late, "after {rounds}: told to make a cluster of the data once one was made");
    }
}

#[test]
fn a_request_while_there_is_a_quorum_is_consumed_and_does_nothing() {
    let mut world = World::settled(3, V3_6);
    world.desired.recovery = Some(request("now", None));
    let before = world.log.len();
    assert!(is_settled(&world.run()));
    assert_eq!(world.record.recovery.as_ref().unwrap().phase, RecoveryPhase::Cancelled);
    assert!(world.log[before..].iter().all(|action| matches!(action, Action::WriteRecord { .. })));
    let (kind, target, phase) = (OperationKind::ScaleOut, Target::Member(Ordinal(3)), Phase::Joining);
    let mut seen = world.observe();
    seen.record.operation = Some(Operation { kind, target, phase });
    world.desired.recovery = Some(request("once more", None));
    let plan = plan(&world.desired, &seen);
    assert_eq!(plan.record.operation, seen.record.operation, "what is under way goes on");
    assert_eq!(plan.record.recovery.unwrap().token, "once more");
}

#[test]
fn what_is_set_aside_outlives_its_claims() {
    let mut world = with_two_down();
    let before = world.log.len();
    world.desired.recovery = Some(request("now", None));
    let plan = world.run();
    assert!(is_settled(&plan), "{plan:#?}");
    assert_eq!((world.ordinals(), world.live_voters()), (vec![0, 1, 2], 3));
    assert_eq!(retained_and_deleted(&world, before), (vec![1, 2], vec![1, 2]));
}

#[test]
fn the_claim_of_a_volume_that_could_not_be_read_stays_and_no_change_begins() {
    let mut world = with_two_down();
    world.desired.recovery = Some(request("now", None));
    run_to(&mut world, RecoveryPhase::Done);
    let blind = |world: &World| {
        let mut seen = world.observe();
        let Fact::Known(volumes) = &mut seen.volumes else { panic!("volumes") };
        for volume in volumes.values_mut() {
            volume.is_retained = Fact::Unknown;
        }
        planned(&world.desired, &seen)
    };
    let mut plan = blind(&world);
    let labels = |plan: &Plan| plan.actions.iter().all(|action| matches!(action, Action::LabelPod { .. }));
    while !plan.actions.is_empty() && labels(&plan) {
        world.pass();
        plan = blind(&world);
    }
    assert!(matches!(plan.actions.as_slice(), [Action::RetainVolume { .. }]), "{:#?}", plan.actions);
    assert_eq!(plan.summary.blocked, Some(BlockedReason::Unkept(Ordinal(1))));
}

#[test]
fn a_member_that_is_named_is_waited_for_and_no_other_is_taken() {
    let mut world = with_two_down();
    let before = world.log.len();
    world.desired.recovery = Some(request("c-2", Some(2)));
    let plan = world.run();
    assert_eq!((world.log.len(), &world.record.recovery), (before, &None));
    assert_eq!(says(&plan, ConditionType::QuorumLost), (State::True, Reason::QuorumLost));
    break_down(&mut world, 0);
    world.pods.get_mut(&Ordinal(2)).unwrap().pod.phase = PodPhase::Up;
    assert!(is_settled(&world.run()));
    assert_eq!(world.record.recovery.as_ref().unwrap().survivor, Some(Ordinal(2)));
    assert_eq!(world.ordinals(), [0, 1, 2]);
}

#[test]
fn a_quorum_that_comes_back_while_others_are_stopped_ends_the_recovery() {
    let mut world = with_two_down();
    let members = world.membership_changes();
    world.desired.recovery = Some(request("now", None));
    world.pass();
    assert_eq!(phase(&world), Some(RecoveryPhase::Fencing));
    world.pods.get_mut(&Ordinal(1)).unwrap().pod.phase = PodPhase::Up;
    break_down(&mut world, 2);
    world.turn();
    assert!(world.has_quorum());
    world.pass();
    assert_eq!(phase(&world), Some(RecoveryPhase::Cancelled));
    world.pods.remove(&Ordinal(2));
    assert!(is_settled(&world.run()));
    assert_eq!((world.live_voters(), world.membership_changes()), (3, members));
}

#[test]
fn a_request_that_is_taken_back_before_the_survivor_goes_on_alone_brings_the_others_back() {
    for next in [None, Some(request("c-1", Some(1)))] {
        let mut world = with_two_down();
        let (ids, members) = (world.ids(), world.membership_changes());
        world.desired.recovery = Some(request("now", None));
        run_to(&mut world, RecoveryPhase::Fencing);
        world.rounds(2);
        world.desired.recovery = next;
        // Whatever kept them down is over.
        world.pods.retain(|ordinal, _| *ordinal == Ordinal(0));
        assert!(is_settled(&world.run()));
        assert_eq!(phase(&world), Some(RecoveryPhase::Cancelled));
        assert_eq!((world.ids(), world.membership_changes()), (ids, members));
    }
}

#[test]
fn a_member_that_comes_back_too_late_is_stopped_before_the_survivor_is_forced() {
    for wanted in [RecoveryPhase::Forcing, RecoveryPhase::Clearing] {
        let mut world = with_two_down();
        world.desired.recovery = Some(request("now", None));
        run_to(&mut world, wanted);
        break_down(&mut world, 1);
        let plan = planned(&world.desired, &world.observe());
        assert!(deletes_pod(&plan, 1), "{wanted:?}: {:#?}", plan.actions);
        assert!(is_settled(&world.run()));
    }
}

#[test]
fn the_survivor_runs_what_it_ran_although_an_upgrade_was_asked_for_that_does_not_start() {
    let mut world = World::settled(3, V3_6);
    let bad = Version::new(6, 99);
    world.bad_versions.insert(bad);
    world.desired.template.version = bad;
    world.run();
    assert_eq!(world.live_voters(), 2);
    let broken = (0..3).find(|ordinal| world.pods[&Ordinal(*ordinal)].pod.phase != PodPhase::Up).unwrap();
    let other = (0..3).find(|ordinal| *ordinal != broken).unwrap();
    for ordinal in [broken, other] {
        break_down(&mut world, ordinal);
    }
    world.desired.recovery = Some(request("now", None));
    run_to(&mut world, RecoveryPhase::Done);
    assert_eq!(world.live_voters(), 1);
    world.desired.template.version = V3_6;
    let plan = world.run();
    assert!(is_settled(&plan), "{plan:#?}");
    assert_eq!((world.ordinals(), world.live_voters()), (vec![0, 1, 2], 3));
}

#[test]
fn a_survivor_that_read_its_entry_late_is_recreated_again() {
    let mut world = with_two_down();
    world.desired.recovery = Some(request("now", None));
    run_to(&mut world, RecoveryPhase::Forcing);
    let before = world.pods[&Ordinal(0)].pod.handle.uid.clone();
    while world.pods[&Ordinal(0)].pod.handle.uid == before {
        world.rounds(1);
    }
    // The kubelet showed it the previous entry.
    world.pods.get_mut(&Ordinal(0)).unwrap().pod.phase = PodPhase::Up;
    let mut seen = world.observe();
    let plan = planned(&world.desired, &seen);
    assert!(deletes_pod(&plan, 0), "{plan:#?}");
    seen.health_age = Age::Fresh;
    assert_eq!(planned(&world.desired, &seen).actions, [], "it may still come to be alone");
    assert!(is_settled(&world.run()));
}

/// The entries of member 0 by which a pod may make a cluster of the data.
fn namings(world: &World) -> usize {
    let forces = |entry: &ConfigEntry| entry.purpose == Purpose::Force && entry.pod.is_some();
    written(world, 0).iter().filter(|(ordinal, entry)| *ordinal == Ordinal(0) && forces(entry)).count()
}

/// Until the pod of member 0 is named that is to make a cluster of the data, and has not begun.
fn run_until_named(world: &mut World) {
    world.desired.recovery = Some(request("now", None));
    run_to(world, RecoveryPhase::Forcing);
    for _ in 0..20 {
        world.pass();
        if namings(world) > 0 {
            return;
        }
        world.turn();
    }
    panic!("no pod is named: {:#?}", world.log);
}

/// It may have acknowledged writes, of which etcd drops the last ones where it makes a cluster of the data once more.
#[test]
fn no_cluster_is_made_again_of_data_whose_pod_is_gone_before_it_was_seen_to_serve() {
    let losses: [fn(&mut World); 3] = [
        |_| {},
        |world| world.config = None,
        |world| drop(world.config.as_mut().unwrap().entries.remove(&Ordinal(0))),
    ];
    for lose in losses {
        let mut world = with_two_down();
        run_until_named(&mut world);
        world.turn();
        assert_eq!(world.ids().len(), 1, "a cluster is made of the data");
        world.pods.remove(&Ordinal(0));
        world.etcd.leader = None;
        lose(&mut world);
        world.turn();
        let plan = world.run();
        assert!(is_settled(&plan), "{plan:#?}");
        assert_eq!((world.ordinals(), world.live_voters()), (vec![0, 1, 2], 3));
    }
}

#[test]
fn a_cluster_is_made_of_the_data_where_the_pod_that_was_named_is_gone_before_it_began() {
    let mut world = with_two_down();
    run_until_named(&mut world);
    world.pods.remove(&Ordinal(0));
    let plan = world.run();
    assert!(is_settled(&plan), "{plan:#?}");
    assert_eq!((world.ordinals(), world.live_voters()), (vec![0, 1, 2], 3));
    assert_eq!(phase(&world), Some(RecoveryPhase::Done));
    assert_eq!(namings(&world), 2);
}
