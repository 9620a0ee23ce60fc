//! The ConfigMap is deleted, or loses what is in it: what it said is rebuilt from etcd, or else from the status and the
//! claims.

use std::collections::BTreeMap;

use super::recoveries::{request, retained_and_deleted, run_to, with_two_down};
use super::rules::{planned, rested, status};
use super::sequences::{is_settled, says};
use super::world::World;
use crate::api::condition::State;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::observation::{
    ConfigEntry, Desired, Fact, Observation, Ordinal, PodPhase, Purpose, RecoveryPhase, Version,
};

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

/// What is lost of the ConfigMap: itself, all that is in it, the entry of the first or of the last member.
const LOSSES: [fn(&mut World); 4] = [
    |world| world.config = None,
    |world| entries(world).clear(),
    |world| drop(entries(world).pop_first()),
    |world| drop(entries(world).pop_last()),
];

fn entries(world: &mut World) -> &mut BTreeMap<Ordinal, ConfigEntry> {
    let handle = world.handle();
    let config = world.config.as_mut().unwrap();
    config.handle = handle;
    &mut config.entries
}

#[test]
fn a_stopped_cluster_starts_without_its_config_map_as_the_members_that_it_was() {
    for replicas in [1, 3] {
        for lose in LOSSES {
            let mut world = World::settled(replicas, V3_6);
            let before = members(&world);
            world.desired.replicas = 0;
            world.run();
            lose(&mut world);
            let plan = world.run();
            assert_eq!(plan.summary.members.len(), usize::try_from(replicas).unwrap(), "{plan:#?}");
            world.desired.replicas = replicas;
            settles_as(&before, &mut world);
        }
    }
}

#[test]
fn pods_that_all_restart_come_back_without_their_config_map() {
    for lose in LOSSES {
        let mut world = World::settled(3, V3_6);
        let before = members(&world);
        lose(&mut world);
        for process in world.pods.values_mut() {
            process.pod.phase = PodPhase::Waiting;
        }
        world.etcd.leader = None;
        settles_as(&before, &mut world);
    }
}

#[test]
fn a_config_map_that_is_lost_at_rest_is_written_again() {
    for lose in LOSSES {
        let mut world = World::settled(3, V3_6);
        let (before, config) = (members(&world), world.config.clone().unwrap());
        lose(&mut world);
        settles_as(&before, &mut world);
        assert_eq!(world.config.as_ref().unwrap().entries, config.entries);
    }
}

#[test]
fn a_lost_quorum_without_its_config_map_is_counted_by_the_members_that_the_status_lists() {
    for lose in LOSSES {
        let mut world = World::settled(3, V3_6);
        lose(&mut world);
        for ordinal in [1, 2] {
            world.wipe(ordinal);
        }
        let plan = world.run();
        assert_eq!(says(&plan, ConditionType::QuorumLost), (State::True, Reason::QuorumLost));
        assert_eq!(plan.summary.members.len(), 3, "{plan:#?}");
        assert!(world.config.as_ref().unwrap().entries.contains_key(&Ordinal(0)));
    }
}

/// A recovery from member 0, while two others do not come up whose data are there.
fn recovering() -> World {
    let mut world = with_two_down();
    world.desired.recovery = Some(request("now", None));
    world
}

#[test]
fn a_config_map_that_is_deleted_in_a_recovery_is_rebuilt_in_each_of_its_phases() {
    let phases =
        [RecoveryPhase::Fencing, RecoveryPhase::Forcing, RecoveryPhase::Clearing, RecoveryPhase::Done];
    for (phase, rounds) in phases.into_iter().flat_map(|phase| (0..4).map(move |rounds| (phase, rounds))) {
        for lose in LOSSES {
            let mut world = recovering();
            let before = world.log.len();
            run_to(&mut world, phase);
            world.rounds(rounds);
            lose(&mut world);
            let plan = world.run();
            assert!(is_settled(&plan), "{phase:?} and {rounds}: {plan:#?}");
            assert_eq!(world.ordinals(), [0, 1, 2]);
            assert!(world.pods.values().all(|process| process.pod.phase == PodPhase::Up));
            // The data of both others outlive their claims.
            let (mut retained, mut deleted) = retained_and_deleted(&world, before);
            retained.sort_unstable();
            deleted.sort_unstable();
            assert_eq!((retained, deleted), (vec![1, 2], vec![1, 2]), "{phase:?} and {rounds}");
        }
    }
}

#[test]
fn no_member_runs_beside_the_survivor_once_the_config_map_is_gone() {
    for phase in [RecoveryPhase::Forcing, RecoveryPhase::Clearing] {
        for lose in LOSSES {
            let mut world = recovering();
            run_to(&mut world, phase);
            lose(&mut world);
            world.pass();
            let entries = &world.config.as_ref().unwrap().entries;
            for ordinal in [1, 2] {
                assert_eq!(entries[&Ordinal(ordinal)].purpose, Purpose::SetAside, "{phase:?}");
            }
        }
    }
}

/// Without rights on PersistentVolumes what was set aside waits for a person; and then the ConfigMap goes.
#[test]
fn claims_that_were_set_aside_are_not_deleted_as_orphans_without_the_config_map() {
    let mut world = recovering();
    run_to(&mut world, RecoveryPhase::Done);
    world.desired.replicas = 1;
    world.config = None;
    for (volume, _) in world.volumes.values_mut() {
        volume.is_retained = Fact::Unknown;
    }
    for _ in 0..20 {
        let plan = world.pass();
        assert!(
            !plan.actions.iter().any(|action| matches!(action, Action::DeleteVolume { .. })),
            "{plan:#?}"
        );
        for (volume, _) in world.volumes.values_mut() {
            volume.is_retained = Fact::Unknown;
        }
        world.turn();
    }
    for ordinal in [1, 2] {
        assert!(world.volumes[&Ordinal(ordinal)].1.is_some(), "the data of {ordinal} are gone");
    }
}

#[test]
fn a_recovery_that_is_cancelled_takes_back_what_it_wrote_on_claims() {
    let mut world = recovering();
    run_to(&mut world, RecoveryPhase::Fencing);
    while !world.volumes.values().any(|(volume, _)| volume.is_set_aside) {
        world.pass();
    }
    world.desired.recovery = None;
    for process in world.pods.values_mut() {
        process.pod.phase = PodPhase::Waiting;
    }
    let plan = world.run();
    assert!(is_settled(&plan), "{plan:#?}");
    assert_eq!(world.record.recovery.as_ref().map(|one| one.phase), Some(RecoveryPhase::Cancelled));
    assert!(!world.volumes.values().any(|(volume, _)| volume.is_set_aside));
}

/// Every member says that so much of its database is in use.
fn in_use(seen: &mut Observation, bytes: u64) {
    for ordinal in 0..3 {
        status(seen, ordinal).db_size_in_use = bytes;
    }
}

/// Carries out the only action, which writes the ConfigMap: by which entries members start without the check.
#[track_caller]
fn written(desired: &Desired, seen: &mut Observation) -> Vec<(u32, bool)> {
    let plan = planned(desired, seen);
    let [Action::WriteConfig { entries, .. }] = plan.actions.as_slice() else { panic!("{plan:#?}") };
    let Fact::Known(config) = &mut seen.config else { panic!("a ConfigMap") };
    config.entries.extend(entries.clone());
    seen.record = plan.record;
    entries.iter().map(|(ordinal, entry)| (ordinal.0, entry.skips_check)).collect()
}

#[test]
fn a_member_with_much_data_starts_without_their_comparison() {
    const LIMIT: u64 = 256 << 20;
    let (desired, mut seen) = rested(3);
    in_use(&mut seen, LIMIT);
    assert_eq!(planned(&desired, &seen).actions, []);
    status(&mut seen, 1).db_size_in_use = LIMIT + 1;
    assert_eq!(written(&desired, &mut seen), [(0, true), (1, true), (2, true)], "the largest counts");
    assert_eq!(planned(&desired, &seen).actions, []);
    in_use(&mut seen, LIMIT / 2);
    assert_eq!(planned(&desired, &seen).actions, [], "not back and forth");
    let mut silent = seen.clone();
    silent.statuses.values_mut().for_each(|status| *status = Fact::Unknown);
    assert_eq!(planned(&desired, &silent).actions, [], "nobody says how much there is");
    in_use(&mut seen, LIMIT / 2 - 1);
    assert_eq!(written(&desired, &mut seen), [(0, false), (1, false), (2, false)]);
    assert_eq!(planned(&desired, &seen).actions, []);
}

#[test]
fn each_entry_of_a_roll_is_made_for_the_size_of_the_data() {
    let (mut desired, mut seen) = rested(3);
    desired.template.revision += 1;
    let Fact::Known(set) = &mut seen.stateful_set else { panic!("a StatefulSet") };
    set.template = desired.template;
    in_use(&mut seen, 1 << 30);
    assert_eq!(written(&desired, &mut seen), [(0, true), (1, true), (2, true)], "before the first pod ends");
    let rolled = written(&desired, &mut seen);
    assert!(matches!(rolled.as_slice(), [(_, true)]), "{rolled:?}");
}
