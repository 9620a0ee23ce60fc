//! Objects of a cluster are deleted one by one, in each state that it may be in: they come back, and nothing is lost.

use super::recoveries::{request, retained_and_deleted, run_to, with_two_down};
use super::rules::{V3_6, planned};
use super::sequences::is_settled;
use super::world::World;
use super::world::secrets::authority as authority_secret;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::observation::{
    Authority, Cause, CertificateId, CertificateSecrets, Fact, Found, Holder, Observation, Ordinal, Owner,
    PodPhase, RecoveryPhase, Version,
};
use crate::kinds::etcdcluster::plan::Plan;

type Loss = (&'static str, fn(&mut World));

/// What is lost, by its name. The pods of a StatefulSet go with it. Of a lost authority the model knows.
const LOSSES: [Loss; 4] = [
    ("StatefulSet", |world| world.set = None),
    ("Services", |world| world.services = Found::Outdated),
    ("PodDisruptionBudget", |world| world.budget = None),
    ("Secrets", |world| {
        let leaves = Holder::ALL.into_iter().map(|holder| (holder, Fact::Absent)).collect();
        let authority = Authority { identity: 1, has_expired: false };
        world.secrets = Some(CertificateSecrets {
            authority: Fact::Known(authority_secret(1, &[1])),
            leaves,
            authorities: [(CertificateId(1), authority)].into(),
        });
    }),
];

/// The membership, every change of it, and what is written.
fn members(world: &World) -> (Vec<u64>, Vec<String>) {
    (world.ids(), world.membership_changes())
}

#[track_caller]
fn all_is_back(world: &World, plan: &Plan, what: &str) {
    assert!(is_settled(plan), "{what}: {plan:#?}");
    assert_eq!((world.set.is_some(), world.services, world.budget.is_some()), (true, Found::Current, true));
    assert!(!world.lacks_secrets(), "{what}");
    assert_eq!(world.live_voters(), world.voters(), "{what}");
}

#[test]
fn objects_that_are_deleted_at_rest_or_while_the_cluster_is_stopped_come_back() {
    for (what, lose) in LOSSES {
        for (replicas, stops) in [(1, false), (1, true), (3, false), (3, true)] {
            let mut world = World::settled(replicas, V3_6);
            let before = members(&world);
            if stops {
                world.desired.replicas = 0;
                world.run();
            }
            lose(&mut world);
            let mut plan = world.run();
            if stops {
                assert!(world.pods.is_empty());
                world.desired.replicas = replicas;
                plan = world.run();
            }
            all_is_back(&world, &plan, what);
            assert_eq!(members(&world), before, "{what}");
        }
    }
}

#[test]
fn objects_that_are_deleted_without_a_quorum_come_back() {
    for (what, lose) in LOSSES {
        let mut world = with_two_down();
        let before = members(&world);
        lose(&mut world);
        world.run();
        // Whatever kept them down is over.
        for process in world.pods.values_mut() {
            process.pod.phase = PodPhase::Waiting;
        }
        let plan = world.run();
        all_is_back(&world, &plan, what);
        assert_eq!(members(&world), before, "{what}");
    }
}

#[test]
fn objects_that_are_deleted_in_a_recovery_come_back_in_each_of_its_phases() {
    let phases =
        [RecoveryPhase::Fencing, RecoveryPhase::Forcing, RecoveryPhase::Clearing, RecoveryPhase::Done];
    for (phase, rounds) in phases.into_iter().flat_map(|phase| (0..4).map(move |rounds| (phase, rounds))) {
        for (what, lose) in LOSSES {
            let mut world = with_two_down();
            let before = world.log.len();
            world.desired.recovery = Some(request("now", None));
            run_to(&mut world, phase);
            world.rounds(rounds);
            lose(&mut world);
            let plan = world.run();
            all_is_back(&world, &plan, &format!("{what} in {phase:?} and {rounds}"));
            assert_eq!(world.ordinals(), [0, 1, 2]);
            let (mut retained, mut deleted) = retained_and_deleted(&world, before);
            retained.sort_unstable();
            deleted.sort_unstable();
            // Pods that come back with the StatefulSet may have been a majority before anybody was set aside.
            let is_kept = retained == deleted && (retained == [1, 2] || retained.is_empty());
            assert!(is_kept, "{what} in {phase:?} and {rounds}: {retained:?} and {deleted:?}");
        }
    }
}

/// An upgrade has stalled at its first pod: the others were never told of it, nor is the survivor by a StatefulSet that is
/// made again.
#[test]
fn a_survivor_runs_what_it_ran_although_the_stateful_set_is_made_again() {
    for phase in [RecoveryPhase::Fencing, RecoveryPhase::Forcing, RecoveryPhase::Clearing] {
        let mut world = World::settled(3, V3_6);
        let bad = Version::new(6, 99);
        world.bad_versions.insert(bad);
        world.desired.template.version = bad;
        world.run();
        let broken = (0..3).find(|at| world.pods[&Ordinal(*at)].pod.phase != PodPhase::Up).unwrap();
        let (survivor, other) = if broken == 0 { (1, 2) } else { (0, 3 - broken) };
        world.pods.get_mut(&Ordinal(other)).unwrap().pod.phase = PodPhase::Failing(Cause::Other);
        world.desired.recovery = Some(request("now", Some(survivor)));
        run_to(&mut world, phase);
        world.set = None;
        for _ in 0..4 {
            world.rounds(1);
            if let Some(set) = &world.set {
                assert_eq!(set.template.version, V3_6, "{phase:?}");
            }
        }
        assert!(world.set.is_some(), "{phase:?}");
    }
}

#[test]
fn what_another_client_changed_is_written_again_and_no_member_restarts() {
    let mut world = World::settled(3, V3_6);
    world.set.as_mut().unwrap().is_altered = true;
    let plan = planned(&world.desired, &world.observe());
    let Some(Action::ApplyStatefulSet { from, replicas, template, .. }) = plan.actions.first() else {
        panic!("{plan:#?}")
    };
    assert_eq!((*from, *replicas, *template), (3, 3, world.desired.template));
    assert_eq!(plan.actions.len(), 1);
    world.set.as_mut().unwrap().is_altered = false;
    world.config.as_mut().unwrap().is_altered = true;
    let plan = planned(&world.desired, &world.observe());
    let [Action::WriteConfig { entries, initial_cluster, .. }] = plan.actions.as_slice() else {
        panic!("{plan:#?}")
    };
    assert_eq!((entries.len(), initial_cluster.len()), (3, 3));
    assert_eq!(*entries, world.config.as_ref().unwrap().entries);
    world.desired.is_paused = true;
    assert!(planned(&world.desired, &world.observe()).actions.is_empty());
}

#[test]
fn a_budget_that_another_client_changed_is_written_again_while_members_are_down() {
    for down in 1..=3 {
        let mut world = World::settled(3, V3_6);
        for process in world.pods.values_mut().take(down) {
            process.pod.phase = PodPhase::Failing(Cause::Other);
        }
        for (least, owner, expected) in [
            (2, Owner::Ours, Some(2)),
            (0, Owner::Ours, Some(2)),
            (3, Owner::Ours, Some(3)),
            (0, Owner::Foreign, None),
        ] {
            let budget = world.budget.as_mut().unwrap();
            (budget.min_available, budget.owner, budget.is_current) = (least, owner, false);
            let mut seen = world.observe();
            let writes = |seen: &Observation| {
                let actions = planned(&world.desired, seen).actions;
                actions.into_iter().find_map(|action| match action {
                    Action::ApplyBudget { min_available, .. } => Some(min_available),
                    _ => None,
                })
            };
            assert_eq!(writes(&seen), expected, "{down} are down: {least} {owner:?}");
            seen.refusals.budget = true;
            assert_eq!(writes(&seen), None, "{down} are down, and it is refused");
        }
    }
}
