//! A recovery and what comes between: other requests, pods that come late, other releases.

use super::recoveries::{
    break_down, deletes_pod, entry, phase, request, retained_and_deleted, run_to, with_two_down, written,
};
use super::rules::{V3_6, planned, status};
use super::sequences::is_settled;
use super::world::World;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::observation::{
    Age, Alarm, AlarmKind, Audit, Cause, Certificates, Desired, Fact, Keyspace, MemberId, Observation,
    Ordinal, PodPhase, Purpose, RecoveryPhase, Uid,
};
use crate::kinds::etcdcluster::plan::Plan;

#[test]
fn a_member_whose_data_may_be_wrong_survives_only_by_its_name() {
    let chosen = |world: &World, seen: &Observation| {
        planned(&world.desired, seen).record.recovery.and_then(|recovery| recovery.survivor)
    };
    let differs = |minority: &[u32]| {
        let minority = minority.iter().copied().map(Ordinal).collect();
        Fact::Known(Audit::Different { revision: 9, minority })
    };
    // Of five, two answer.
    let mut world = World::settled(5, V3_6);
    for ordinal in [2, 3, 4] {
        break_down(&mut world, ordinal);
    }
    world.desired.recovery = Some(request("now", None));
    let seen = world.observe();
    assert_eq!(chosen(&world, &seen), Some(Ordinal(0)));
    for (audit, survivor) in [
        (differs(&[1]), Some(Ordinal(0))),
        (differs(&[0]), Some(Ordinal(1))),
        (differs(&[0, 1]), None),
        (differs(&[]), None),
        (Fact::Known(Audit::Equal), Some(Ordinal(0))),
    ] {
        let seen = Observation { audit: audit.clone(), ..seen.clone() };
        assert_eq!(chosen(&world, &seen), survivor, "{audit:?}");
    }
    // Any member that answers has the alarms, whomever they name.
    let named = status(&mut world.observe(), 0).member_id;
    for (audit, member, survivor) in [
        (Fact::Unknown, named, None),
        (Fact::Known(Audit::Equal), MemberId(0), None),
        (differs(&[3]), named, Some(Ordinal(1))),
        (differs(&[0]), MemberId(0), Some(Ordinal(1))),
    ] {
        let mut seen = Observation { audit: audit.clone(), ..seen.clone() };
        status(&mut seen, 1).corrupt = [member].into();
        assert_eq!(chosen(&world, &seen), survivor, "{audit:?}: {member:?}");
    }
    world.desired.recovery = Some(request("now", Some(0)));
    let seen = Observation { audit: differs(&[0, 1]), ..seen };
    assert_eq!(chosen(&world, &seen), Some(Ordinal(0)), "a person has chosen");
}

#[test]
fn what_was_set_aside_is_kept_whatever_is_asked_for_meanwhile() {
    for wanted in [RecoveryPhase::Forcing, RecoveryPhase::Clearing, RecoveryPhase::Done] {
        for next in [None, Some(1)] {
            let mut world = with_two_down();
            let before = world.log.len();
            let volumes = [1, 2].map(|at| world.volumes[&Ordinal(at)].0.handle.uid.clone());
            world.desired.recovery = Some(request("now", None));
            run_to(&mut world, wanted);
            while entry(&world, 0).pod.is_none() && wanted == RecoveryPhase::Forcing {
                world.rounds(1);
            }
            let asked = world.log.len();
            world.desired.recovery = Some(request("another", next));
            assert!(is_settled(&world.run()));
            assert_eq!((world.ordinals(), phase(&world)), (vec![0, 1, 2], Some(RecoveryPhase::Cancelled)));
            assert_eq!(retained_and_deleted(&world, before), (vec![1, 2], vec![1, 2]));
            for action in &world.log[before..] {
                if let Action::DeleteVolume { volume, keeps_data: false, .. } = action {
                    assert!(!volumes.contains(&volume.uid), "{wanted:?} {next:?}: {action:?}");
                }
            }
            let first =
                written(&world, asked).into_iter().find(|(ordinal, _)| *ordinal == Ordinal(1)).unwrap();
            assert_eq!(first.1.purpose, Purpose::Join, "it is not started on what was set aside");
        }
    }
}

#[test]
fn a_request_can_be_taken_back_until_a_pod_is_named_that_makes_a_cluster_of_the_data() {
    let mut world = with_two_down();
    let (ids, members) = (world.ids(), world.membership_changes());
    world.desired.recovery = Some(request("now", None));
    run_to(&mut world, RecoveryPhase::Forcing);
    while entry(&world, 0).purpose != Purpose::Force {
        world.rounds(1);
    }
    let mut late = world.clone();
    world.desired.recovery = None;
    assert!(is_settled(&world.run()));
    assert_eq!((phase(&world), world.ids()), (Some(RecoveryPhase::Cancelled), ids));
    assert_eq!((world.live_voters(), world.membership_changes()), (3, members));

    while entry(&late, 0).pod.is_none() {
        late.rounds(1);
    }
    late.desired.recovery = None;
    assert!(is_settled(&late.run()));
    assert_eq!((phase(&late), late.ordinals()), (Some(RecoveryPhase::Done), vec![0, 1, 2]));
}

#[test]
fn a_pod_that_was_there_when_its_member_was_set_aside_has_to_end_and_a_later_one_that_waits_does_not() {
    let mut world = with_two_down();
    world.desired.recovery = Some(request("now", Some(0)));
    world.pods.get_mut(&Ordinal(1)).unwrap().pod.phase = PodPhase::Pending(Some(Cause::Image));
    while entry(&world, 1).purpose != Purpose::SetAside {
        world.pass();
    }
    world.pods.remove(&Ordinal(2));
    world.turn();
    assert!(deletes_pod(&planned(&world.desired, &world.observe()), 1), "it may have its old entry mounted");
    let other = world.pods.get_mut(&Ordinal(1)).unwrap();
    other.pod.handle.uid = Uid("later".to_owned());
    for (phase, is_deleting) in
        [(PodPhase::Pending(None), true), (PodPhase::Waiting, true), (PodPhase::Waiting, false)]
    {
        let other = &mut world.pods.get_mut(&Ordinal(1)).unwrap().pod;
        (other.phase, other.is_deleting) = (phase, is_deleting);
        let plan = planned(&world.desired, &world.observe());
        assert_eq!(plan.record.recovery.unwrap().phase, RecoveryPhase::Forcing, "{phase:?}");
    }
}

#[test]
fn no_survivor_is_chosen_while_another_one_may_still_come() {
    let mut world = with_two_down();
    world.desired.recovery = Some(request("now", None));
    let mut seen = world.observe();
    seen.health_age = Age::Fresh;
    assert_eq!(planned(&world.desired, &seen).record.recovery, None);
    for phase in [PodPhase::Waiting, PodPhase::Starting, PodPhase::Up] {
        let mut seen = world.observe();
        let Fact::Known(pods) = &mut seen.pods else { panic!("pods") };
        let other = pods.get_mut(&Ordinal(1)).unwrap();
        (other.phase, other.startup_age) = (phase, Age::Fresh);
        assert_eq!(planned(&world.desired, &seen).record.recovery, None, "{phase:?}");
        let named = world.desired.clone();
        let named = Desired { recovery: Some(request("now", Some(0))), ..named };
        assert!(
            planned(&named, &seen).record.recovery.is_some(),
            "who is named is not compared with anybody"
        );
        let Fact::Known(pods) = &mut seen.pods else { panic!("pods") };
        pods.get_mut(&Ordinal(1)).unwrap().startup_age = Age::PastDeadline;
        // A large log takes its time to be read.
        let waits = phase == PodPhase::Starting;
        assert_eq!(planned(&world.desired, &seen).record.recovery.is_none(), waits, "{phase:?}");
    }
}

#[test]
fn what_another_release_has_begun_is_left_to_it() {
    let mut world = with_two_down();
    world.desired.recovery = Some(request("now", None));
    run_to(&mut world, RecoveryPhase::Forcing);
    world.record.recovery.as_mut().unwrap().phase = RecoveryPhase::Unreadable;
    let before = world.log.len();
    for next in [None, Some(request("another", None))] {
        world.desired.recovery = next;
        world.run();
        assert_eq!(world.log.len(), before);
    }
}

#[test]
fn no_pod_is_stopped_for_a_quorum_that_cannot_be_asked_for() {
    let mut world = with_two_down();
    world.desired.recovery = Some(request("now", None));
    let stops = |plan: &Plan| plan.actions.iter().any(|action| matches!(action, Action::DeletePod { .. }));
    while !stops(&planned(&world.desired, &world.observe())) {
        world.pass();
    }
    let mut seen = world.observe();
    seen.certificates = Certificates::Missing;
    assert!(!stops(&planned(&world.desired, &seen)));
}

#[test]
fn the_survivor_is_recreated_with_the_guard_of_this_release_and_from_what_is_known() {
    let mut world = with_two_down();
    world.desired.recovery = Some(request("now", None));
    run_to(&mut world, RecoveryPhase::Forcing);
    world.set.as_mut().unwrap().has_our_guard = false;
    let mut seen = world.observe();
    let plan = planned(&world.desired, &seen);
    assert!(
        matches!(plan.actions.as_slice(), [Action::ApplyStatefulSet { .. }, Action::WriteConfig { .. }]),
        "{plan:#?}"
    );
    seen.certificates = Certificates::Missing;
    world.desired.template.revision += 1;
    let plan = planned(&world.desired, &seen);
    assert!(matches!(plan.actions.as_slice(), [Action::WriteConfig { .. }]), "{plan:#?}");
    world.desired.template.revision -= 1;
    assert!(is_settled(&world.run()));
    assert!(world.set.unwrap().has_our_guard);
}

#[test]
fn a_full_database_is_seen_to_although_what_was_set_aside_could_not_be_kept() {
    let mut world = with_two_down();
    world.desired.recovery = Some(request("now", None));
    run_to(&mut world, RecoveryPhase::Done);
    let keeps = |plan: &Plan| matches!(plan.actions.as_slice(), [Action::RetainVolume { .. }]);
    while !keeps(&planned(&world.desired, &world.observe())) {
        world.pass();
    }
    let mut seen = world.observe();
    let member = world.etcd.members[0].id;
    seen.alarms = Fact::Known(vec![Alarm { member, kind: AlarmKind::NoSpace }]);
    seen.keyspace = Fact::Known(Keyspace { revision: 100_000, compact_revision: 1 });
    let plan = planned(&world.desired, &seen);
    assert!(matches!(plan.actions.as_slice(), [Action::Compact { .. }]), "{plan:#?}");
}
