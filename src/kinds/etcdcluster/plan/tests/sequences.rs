//! Whole stories, run to their end in the small world.

mod deletions;

use super::world::{World, desired};
use crate::api::condition::State;
use crate::kinds::etcdcluster::actions::Action;
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::api::versions;
use crate::kinds::etcdcluster::observation::{Age, Desired, MemberStatus, Record, Version};
use crate::kinds::etcdcluster::plan::{Plan, Refusal, Step, plan};

const V3_6: Version = Version::new(6, 16);

pub fn says(plan: &Plan, about: ConditionType) -> (State, Reason) {
    let finding = plan.summary.findings.iter().find(|finding| finding.about == about).unwrap();
    (finding.state, finding.reason)
}

pub fn is_settled(plan: &Plan) -> bool {
    plan.summary.is_reached && plan.actions.is_empty() && plan.record.operation.is_none()
}

#[test]
fn a_cluster_grows_from_one_to_five_and_shrinks_back_to_one() {
    let mut world = World::settled(1, V3_6);
    for replicas in [3, 5, 3, 1] {
        world.desired.replicas = replicas;
        let plan = world.run();
        assert!(is_settled(&plan), "{plan:#?}");
        assert_eq!(world.ordinals(), (0..replicas).collect::<Vec<_>>());
        assert_eq!(world.pods.len(), world.volumes.len(), "no orphan");
        assert_eq!(world.volumes.len(), usize::try_from(replicas).unwrap());
    }
    let up = (1..5).flat_map(|ordinal| [format!("add {ordinal}"), format!("promote {ordinal}")]);
    let down = (1..5).rev().map(|ordinal| format!("remove {ordinal}"));
    assert_eq!(world.membership_changes(), up.chain(down).collect::<Vec<_>>());
}

#[test]
fn facts_that_are_written_and_read_again_give_the_same_plan() {
    let mut world = World::new(3, V3_6);
    for _ in 0..100 {
        let told = serde_json::to_string(&(&world.desired, world.observe())).unwrap();
        let (desired, seen) = serde_json::from_str(&told).unwrap();
        assert_eq!(plan(&desired, &seen), world.pass());
        world.turn();
    }
    assert_eq!(world.voters(), 3);
}

#[test]
fn a_stopped_cluster_comes_back_with_the_same_members() {
    let mut world = World::settled(3, V3_6);
    let (ids, changes) = (world.ids(), world.membership_changes());
    world.desired.replicas = 0;
    let plan = world.run();
    assert_eq!((world.pods.len(), world.volumes.len()), (0, 3));
    assert_eq!(says(&plan, ConditionType::Available), (State::False, Reason::Stopped));
    world.desired.replicas = 3;
    assert!(is_settled(&world.run()));
    assert_eq!((world.ids(), world.membership_changes()), (ids, changes));
}

#[test]
fn a_stopped_cluster_can_come_back_with_another_size() {
    for (replicas, expected) in [(1, vec![0]), (5, vec![0, 1, 2, 3, 4])] {
        let mut world = World::settled(3, V3_6);
        world.desired.replicas = 0;
        world.run();
        world.desired.replicas = replicas;
        world.run();
        assert_eq!(world.ordinals(), expected);
    }
}

#[test]
fn an_upgrade_goes_one_minor_at_a_time_with_the_leader_last() {
    let mut world = World::settled(3, Version::new(5, 9));
    for version in [Version::new(5, 33), V3_6, Version::new(7, 3)] {
        let before = world.log.len();
        let leader =
            world.etcd.members.iter().find(|member| Some(member.id) == world.etcd.leader).unwrap().ordinal;
        world.desired.template.version = version;
        let plan = world.run();
        assert!(is_settled(&plan), "{plan:#?}");
        assert_eq!(plan.summary.version, Some(version));
        let deleted: Vec<_> = world.log[before..]
            .iter()
            .filter_map(|action| match action {
                Action::DeletePod { ordinal, .. } => Some(*ordinal),
                _ => None,
            })
            .collect();
        assert_eq!(deleted.len(), 3);
        assert_eq!(deleted.last().copied(), leader);
        assert!(world.log[before..].iter().any(|action| matches!(action, Action::MoveLeader { .. })));
    }
    assert_eq!(world.membership_changes().len(), 4);
}

#[test]
fn a_step_to_3_7_waits_until_every_member_has_saved_a_snapshot() {
    let mut world = World::settled(3, V3_6);
    world.desired.template.version = Version::new(7, 3);
    world.run();
    let appended =
        world.log.iter().position(|action| matches!(action, Action::AppendEntries { .. })).unwrap();
    let deleted = world.log.iter().position(|action| matches!(action, Action::DeletePod { .. })).unwrap();
    assert!(appended < deleted);
}

#[test]
fn a_downgrade_of_one_minor_goes_through_etcd() {
    let mut world = World::settled(3, V3_6);
    world.desired.template.version = Version::new(5, 33);
    let plan = world.run();
    assert_eq!(plan.summary.step, Step::Refused(Refusal::Version(versions::Refusal::DowngradeNotAllowed)));
    assert_eq!((plan.summary.version, world.etcd.downgrade), (Some(V3_6), None));
    world.desired.allows_downgrade = true;
    let plan = world.run();
    assert!(is_settled(&plan), "{plan:#?}");
    assert_eq!(plan.summary.version, Some(Version::new(5, 33)));
    let enabled = world.log.iter().filter(|action| matches!(action, Action::DowngradeEnable { .. })).count();
    assert_eq!(enabled, 1);
}

#[test]
fn a_downgrade_that_is_turned_round_on_the_way_is_taken_back() {
    for turn_after in 0..25 {
        let mut world = World::settled(3, V3_6);
        world.desired.allows_downgrade = true;
        world.desired.template.version = Version::new(5, 33);
        world.rounds(turn_after);
        world.desired.template.version = V3_6;
        let plan = world.run();
        assert!(is_settled(&plan), "after {turn_after}: {plan:#?}");
        assert_eq!((plan.summary.version, plan.summary.cluster_version), (Some(V3_6), Some(6)));
    }
}

#[test]
fn what_the_gate_would_refuse_the_plan_refuses_too() {
    for (from, to) in [
        (Version::new(5, 33), Version::new(7, 3)),
        (Version::new(5, 9), V3_6),
        (Version::new(6, 10), Version::new(7, 3)),
        (Version::new(7, 3), Version::new(5, 33)),
        (V3_6, Version::new(5, 31)),
        (V3_6, Version::new(8, 0)),
    ] {
        let mut world = World::settled(3, from);
        world.desired.allows_downgrade = true;
        let before = world.log.len();
        world.desired.template.version = to;
        let plan = world.run();
        assert_eq!(world.log.len(), before, "{from} to {to}");
        assert_eq!(says(&plan, ConditionType::SpecValid), (State::False, Reason::SpecInvalid));
        assert!(!plan.summary.is_reached);
    }
}

#[test]
fn an_image_that_does_not_start_affects_one_pod_and_the_old_version_heals_it() {
    for (from, bad) in [(V3_6, Version::new(6, 99)), (Version::new(5, 33), V3_6)] {
        let mut world = World::settled(3, from);
        world.bad_versions.insert(bad);
        world.desired.template.version = bad;
        let plan = world.run();
        assert_eq!(says(&plan, ConditionType::Degraded), (State::True, Reason::UpgradeStalled));
        assert_eq!(world.live_voters(), 2);
        world.desired.template.version = from;
        let plan = world.run();
        assert!(is_settled(&plan), "{plan:#?}");
        assert_eq!(world.live_voters(), 3);
        assert_eq!(world.membership_changes().len(), 4);
    }
}

#[test]
fn what_has_cost_one_or_two_voters_their_quorum_is_healed_by_the_version_of_before() {
    for replicas in [1, 2] {
        let mut world = World::settled(replicas, V3_6);
        let ids = world.ids();
        let bad = Version::new(6, 99);
        world.bad_versions.insert(bad);
        world.desired.template.version = bad;
        let plan = world.run();
        assert_eq!(says(&plan, ConditionType::QuorumLost), (State::True, Reason::QuorumLost));
        world.desired.template.version = V3_6;
        let plan = world.run();
        assert!(is_settled(&plan), "{replicas}: {plan:#?}");
        assert_eq!((world.ids(), world.live_voters()), (ids, usize::try_from(replicas).unwrap()));
    }
}

#[test]
fn a_changed_template_restarts_each_member_once() {
    let mut world = World::settled(3, V3_6);
    let before = world.log.len();
    world.desired.template.revision += 1;
    assert!(is_settled(&world.run()));
    let deleted =
        world.log[before..].iter().filter(|action| matches!(action, Action::DeletePod { .. })).count();
    assert_eq!(deleted, 3);
}

#[test]
fn a_voter_that_lost_its_volume_is_replaced_whichever_it_is() {
    for replicas in [3, 5] {
        for ordinal in 0..replicas {
            let mut world = World::settled(replicas, V3_6);
            let before = world.membership_changes().len();
            world.wipe(ordinal);
            let plan = world.run();
            assert!(is_settled(&plan), "{plan:#?}");
            assert_eq!(
                world.membership_changes()[before..],
                [format!("remove {ordinal}"), format!("add {ordinal}"), format!("promote {ordinal}")]
            );
            assert_eq!(world.ordinals(), (0..replicas).collect::<Vec<_>>());
        }
    }
}

#[test]
fn two_of_five_that_lost_their_volumes_are_both_replaced() {
    let mut world = World::settled(5, V3_6);
    world.wipe(0);
    world.wipe(3);
    assert!(is_settled(&world.run()));
    assert_eq!((world.ordinals(), world.live_voters()), (vec![0, 1, 2, 3, 4], 5));
}

#[test]
fn a_volume_lost_during_an_upgrade_is_replaced_before_the_upgrade_goes_on() {
    let mut world = World::settled(3, Version::new(5, 33));
    world.desired.template.version = V3_6;
    while world.pods.values().all(|process| process.pod.template.version != V3_6) {
        world.pass();
        world.turn();
    }
    world.rounds(2);
    world.wipe(0);
    let plan = world.run();
    assert!(is_settled(&plan), "{plan:#?}");
    assert_eq!(plan.summary.version, Some(V3_6));
}

#[test]
fn pods_that_are_all_gone_come_back_without_any_change_of_members() {
    let mut world = World::settled(3, V3_6);
    let (ids, before) = (world.ids(), world.log.len());
    world.pods.clear();
    assert!(is_settled(&world.run()));
    assert_eq!(world.ids(), ids);
    let touched = world.log[before..].iter().any(|action| {
        action.is_irreversible() || !matches!(action, Action::LabelPod { .. } | Action::WriteRecord { .. })
    });
    assert!(!touched, "{:#?}", &world.log[before..]);
}

#[test]
fn a_lost_answer_of_a_member_add_is_adopted_and_not_repeated() {
    let mut world = World::settled(1, V3_6);
    world.desired.replicas = 3;
    while !world.log.iter().any(|action| matches!(action, Action::MemberAdd { .. })) {
        world.kill = Some((world.log.len(), false));
        world.pass();
        world.turn();
    }
    world.kill = None;
    world.run();
    let added = world.membership_changes().into_iter().filter(|change| change == "add 1").count();
    assert_eq!((added, world.voters()), (1, 3));
}

#[test]
fn a_learner_that_lost_its_volume_is_removed_and_another_one_added() {
    for after in 0..40 {
        let mut world = World::settled(1, V3_6);
        world.desired.replicas = 3;
        world.rounds(after);
        let learner = world.etcd.members.iter().find(|member| member.is_learner);
        if let Some(ordinal) = learner.and_then(|member| member.ordinal) {
            world.wipe(ordinal.0);
        }
        let plan = world.run();
        assert!(is_settled(&plan), "after {after}: {plan:#?}");
        assert_eq!((world.ordinals(), world.live_voters()), (vec![0, 1, 2], 3));
    }
}

#[test]
fn a_size_turned_round_on_the_way_ends_where_it_was_set_last() {
    for turn_after in 0..30 {
        for (from, over, to) in [(1, 3, 1), (3, 1, 3), (3, 5, 3), (3, 2, 3), (5, 1, 7)] {
            let mut world = World::settled(from, V3_6);
            world.desired.replicas = over;
            world.rounds(turn_after);
            world.desired.replicas = to;
            let plan = world.run();
            assert!(is_settled(&plan), "{from}, {over}, {to} after {turn_after}: {plan:#?}");
            assert_eq!(world.ordinals(), (0..to).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_seed_that_lost_its_volume_before_it_was_recorded_begins_again() {
    let mut world = World::new(3, V3_6);
    while world.config.is_none() {
        world.pass();
        world.turn();
    }
    world.pods.clear();
    world.volumes.clear();
    world.etcd.clusters_formed = 0;
    assert!(is_settled(&world.run()));
    assert_eq!(world.voters(), 3);
}

#[test]
fn a_seed_that_serves_and_never_leads_begins_again_and_no_other_does() {
    let mut world = World::new(1, V3_6);
    while world.observe().statuses.is_empty() {
        world.pass();
        world.turn();
    }
    let mut seen = world.observe();
    let mut lead = |leader| {
        for status in seen.statuses.values_mut() {
            *status = status.clone().map(|status| MemberStatus { leader, ..status });
        }
        seen.operation_age = Age::Fresh;
        let early = plan(&world.desired, &seen);
        seen.operation_age = Age::PastDeadline;
        (early.actions, plan(&world.desired, &seen).actions)
    };
    let (early, late) = lead(None);
    assert_eq!(early, []);
    assert!(matches!(late.as_slice(), [Action::DeleteVolume { membership: None, .. }]), "{late:?}");
    let (early, late) = lead(world.etcd.leader);
    assert_eq!(early, late, "one that leads is recorded");
    world.volumes.values_mut().for_each(|(volume, _)| volume.is_deleting = true);
    let mut seen = world.observe();
    seen.operation_age = Age::PastDeadline;
    for status in seen.statuses.values_mut() {
        *status = status.clone().map(|status| MemberStatus { leader: None, ..status });
    }
    let actions = plan(&world.desired, &seen).actions;
    assert!(matches!(actions.as_slice(), [Action::DeletePod { .. }]), "{actions:?}");
}

#[test]
fn a_record_that_was_lost_is_read_again_and_no_member_is_disturbed() {
    for (replicas, are_gone) in [(1, false), (3, false), (3, true)] {
        let mut world = World::settled(replicas, V3_6);
        let (ids, before) = (world.ids(), world.log.len());
        world.record = Record::default();
        if are_gone {
            world.pods.clear();
        }
        assert!(is_settled(&world.run()));
        assert_eq!((world.ids(), world.live_voters()), (ids, usize::try_from(replicas).unwrap()));
        let touched = world.log[before..].iter().any(Action::is_irreversible);
        assert!(!touched, "{:#?}", &world.log[before..]);
    }
}

#[test]
fn a_paused_cluster_is_left_alone_and_its_status_stays_fresh() {
    let mut world = World::settled(3, V3_6);
    let before = world.log.len();
    world.desired = Desired { is_paused: true, ..desired(5, V3_6) };
    world.wipe(2);
    let plan = world.run();
    assert_eq!(world.log.len(), before);
    assert_eq!(says(&plan, ConditionType::Paused).0, State::True);
    assert_eq!(plan.summary.ready_replicas, 2);
}
