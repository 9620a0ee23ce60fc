//! How far members have got, and those that do not answer here and may vote all the same.

use std::collections::BTreeMap;

use super::recoveries::{request, with_two_down};
use super::rules::{V3_6, down, finding, planned, pod, rested, status};
use super::sequences::is_settled;
use super::world::World;
use crate::api::condition::State;
use crate::kinds::etcdcluster::actions::{Action, Precondition};
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::observation::{
    Age, Cause, Desired, Fact, Found, Observation, Ordinal, Pod, PodPhase, Refusals, RefusedWrite, Template,
};
use crate::kinds::etcdcluster::plan::{BlockedReason, CAUGHT_UP, Plan};

/// Three members of a busy cluster, of which one that does not lead lacks much of the log.
fn lagging() -> (Desired, Observation, u32) {
    let (desired, mut seen) = rested(3);
    let leads = |seen: &Observation, ordinal: u32| {
        seen.status(Ordinal(ordinal)).is_known_and(|status| status.leader == Some(status.member_id))
    };
    let follower = (0..3).find(|ordinal| !leads(&seen, *ordinal)).unwrap();
    for ordinal in 0..3 {
        let status = status(&mut seen, ordinal);
        (status.raft_index, status.raft_applied_index) = (10_000_000, 10_000_000);
    }
    status(&mut seen, follower).raft_applied_index = 10_000_000 - CAUGHT_UP - 1;
    (desired, seen, follower)
}

#[test]
fn nothing_is_changed_while_a_member_has_to_catch_up() {
    let (desired, mut seen, follower) = lagging();
    let mut rolled = desired.clone();
    rolled.template.revision += 1;
    if let Fact::Known(set) = &mut seen.stateful_set {
        set.template = rolled.template;
    }
    let grown = Desired { replicas: 5, ..desired.clone() };
    let shrunk = Desired { replicas: 1, ..desired };
    let (grown, shrunk) =
        (Desired { template: rolled.template, ..grown }, Desired { template: rolled.template, ..shrunk });
    for desired in [&rolled, &grown, &shrunk] {
        let plan = planned(desired, &seen);
        assert_eq!(plan.actions, []);
        assert_eq!(plan.summary.blocked, Some(BlockedReason::CatchingUp(Ordinal(follower))));
    }
    status(&mut seen, follower).raft_applied_index += 1;
    for desired in [&rolled, &grown, &shrunk] {
        assert_ne!(planned(desired, &seen).actions, []);
    }
}

#[test]
fn no_member_is_spared_by_another_one_that_has_to_catch_up() {
    let (desired, mut seen, follower) = lagging();
    let leads = seen.answers().find(|(_, status)| status.leader == Some(status.member_id)).unwrap().0;
    let lost = (0..3).find(|ordinal| *ordinal != follower && Ordinal(*ordinal) != leads).unwrap();
    down(&mut seen, lost, PodPhase::Failing(Cause::DataLost));
    assert_eq!(planned(&desired, &seen).actions, []);
    status(&mut seen, follower).raft_applied_index = 10_000_000;
    assert!(matches!(planned(&desired, &seen).actions.as_slice(), [Action::MemberRemove { .. }]));
}

#[test]
fn a_learner_of_a_long_log_is_promoted_once_little_is_left_and_not_at_nine_tenths() {
    let mut world = World::settled(1, V3_6);
    world.desired.replicas = 2;
    while !world.etcd.members.iter().any(|member| member.is_learner && member.is_started) {
        world.rounds(1);
    }
    world.rounds(1);
    let mut seen = world.observe();
    for ordinal in 0..2 {
        let status = status(&mut seen, ordinal);
        (status.raft_index, status.raft_applied_index) = (100_000_000, 100_000_000);
    }
    let is_learner = seen.membership.is_known_and(|list| list.learners().count() == 1);
    assert!(is_learner, "it votes already: {:?}", seen.membership);
    status(&mut seen, 1).raft_applied_index = 95_000_000;
    let promotes = |seen: &Observation| {
        let plan = planned(&world.desired, seen);
        plan.actions
            .iter()
            .any(|action| matches!(action, Action::MemberPromote { .. } | Action::ApplyBudget { .. }))
    };
    assert!(!promotes(&seen));
    status(&mut seen, 1).raft_applied_index = 100_000_000 - CAUGHT_UP;
    assert!(promotes(&seen));
}

/// It answers neither us nor its kubelet, and votes.
#[test]
fn a_pod_that_does_not_answer_is_restarted_only_where_the_others_serve() {
    let (mut desired, mut seen) = rested(3);
    desired.template.revision += 1;
    if let Fact::Known(set) = &mut seen.stateful_set {
        set.template = desired.template;
    }
    if let Fact::Known(config) = &mut seen.config {
        config.entries.values_mut().for_each(|entry| entry.template = desired.template);
    }
    let leads = seen.answers().find(|(_, status)| status.leader == Some(status.member_id)).unwrap().0;
    let others: Vec<_> = (0..3).filter(|ordinal| Ordinal(*ordinal) != leads).collect();
    down(&mut seen, others[0], PodPhase::Up);
    let plan = planned(&desired, &seen);
    let [Action::DeletePod { ordinal, precondition, .. }] = plan.actions.as_slice() else {
        panic!("{plan:#?}")
    };
    assert_eq!(ordinal.0, others[0]);
    assert!(matches!(precondition, Some(Precondition::OthersServe { .. })), "{precondition:?}");
    // The node of another one is gone: the silent one may be what the quorum hangs on.
    down(&mut seen, others[1], PodPhase::Pending(Some(Cause::Unschedulable)));
    pod(&mut seen, others[1]).template = desired.template;
    assert_eq!(planned(&desired, &seen).actions, []);
    // A container that fails runs no etcd.
    down(&mut seen, others[0], PodPhase::Failing(Cause::Flags));
    assert!(matches!(planned(&desired, &seen).actions.as_slice(), [Action::DeletePod { .. }]));
}

/// They have too little of the processor to answer us or their kubelets, and vote: each that goes counts.
#[test]
fn pods_that_do_not_answer_and_may_vote_are_healed_one_after_the_other() {
    let (mut desired, mut seen) = rested(3);
    let before = desired.template;
    desired.template.revision += 1;
    let target = desired.template;
    if let Fact::Known(set) = &mut seen.stateful_set {
        set.template = target;
    }
    if let Fact::Known(config) = &mut seen.config {
        config.entries.values_mut().for_each(|entry| entry.template = target);
    }
    for ordinal in 0..3 {
        down(&mut seen, ordinal, PodPhase::Up);
    }
    (seen.membership, seen.last_membership, seen.alarms) = (Fact::Unknown, Fact::Unknown, Fact::Unknown);
    let deleted = |seen: &Observation| match planned(&desired, seen).actions.as_slice() {
        [] => None,
        [Action::DeletePod { ordinal, precondition: Some(Precondition::QuorumLost), .. }] => Some(ordinal.0),
        others => panic!("{others:#?}"),
    };
    assert_eq!(deleted(&seen), Some(0));
    pod(&mut seen, 0).is_deleting = true;
    assert_eq!(deleted(&seen), None);
    let first = pod(&mut seen, 0).clone();
    let Fact::Known(pods) = &mut seen.pods else { panic!("pods") };
    pods.remove(&Ordinal(0));
    assert_eq!(deleted(&seen), None);
    let Fact::Known(pods) = &mut seen.pods else { panic!("pods") };
    pods.insert(Ordinal(0), Pod { is_deleting: false, template: target, ..first });
    for comes in [
        PodPhase::Pending(None),
        PodPhase::Pending(Some(Cause::Unschedulable)),
        PodPhase::Waiting,
        PodPhase::Starting,
        PodPhase::Failing(Cause::Killed),
    ] {
        pod(&mut seen, 0).phase = comes;
        assert_eq!(deleted(&seen), None, "{comes:?}");
    }
    // One that has just been killed, and starts as it was.
    let killed = Pod {
        phase: PodPhase::Starting,
        startup_age: Age::Fresh,
        template: before,
        ..pod(&mut seen, 0).clone()
    };
    *pod(&mut seen, 0) = killed;
    assert_eq!(deleted(&seen), None);
    pod(&mut seen, 0).startup_age = Age::PastDeadline;
    assert_eq!(deleted(&seen), Some(0));
    pod(&mut seen, 0).template = target;
    assert_eq!(deleted(&seen), None);
    // One whose container fails runs no etcd.
    (pod(&mut seen, 2).phase, pod(&mut seen, 2).template) = (PodPhase::Failing(Cause::Flags), before);
    assert_eq!(deleted(&seen), Some(2));
    pod(&mut seen, 2).phase = PodPhase::Up;
    // Neither comes one up whose data are gone, whatever it is made from.
    for phase in [PodPhase::Up, PodPhase::Failing(Cause::DataLost)] {
        pod(&mut seen, 0).phase = phase;
        assert_eq!(deleted(&seen), Some(1), "{phase:?}");
    }
}

#[test]
fn a_recovery_waits_for_members_that_still_start_unless_one_is_named() {
    let mut world = with_two_down();
    let waits = [
        (PodPhase::Starting, true),
        (PodPhase::Pending(None), true),
        (PodPhase::Pending(Some(Cause::Image)), true),
        (PodPhase::Pending(Some(Cause::Unschedulable)), false),
        (PodPhase::Failing(Cause::Other), false),
    ];
    for (phase, waits) in waits {
        let process = world.pods.get_mut(&Ordinal(1)).unwrap();
        (process.pod.phase, process.pod.startup_age) = (phase, Age::PastDeadline);
        for (survivor, waits) in [(None, waits), (Some(0), false)] {
            world.desired.recovery = Some(request("now", survivor));
            let begins = planned(&world.desired, &world.observe()).record.recovery.is_some();
            assert_eq!(begins, !waits, "{phase:?} and {survivor:?}");
        }
    }
}

/// A cluster without voters has not lost its quorum.
#[test]
fn a_quorum_without_voters_is_not_called_lost() {
    let (desired, mut seen) = rested(1);
    (seen.membership, seen.last_membership) = (Fact::Unknown, Fact::Unknown);
    seen.statuses.insert(Ordinal(0), Fact::Unknown);
    let lost = |seen: &Observation| {
        let plan = planned(&desired, seen);
        plan.summary.problems.iter().any(|problem| problem.reason == Reason::QuorumLost)
    };
    assert!(lost(&seen));
    (seen.config, seen.remembered) = (Fact::Unknown, BTreeMap::new());
    assert!(!lost(&seen));
}

#[test]
fn volumes_grow_while_members_are_down_and_a_refusal_holds_nothing_up() {
    let (mut desired, mut seen) = rested(3);
    desired.volume_size *= 2;
    for ordinal in 0..3 {
        down(&mut seen, ordinal, PodPhase::Failing(Cause::Other));
    }
    (seen.membership, seen.alarms) = (Fact::Unknown, Fact::Unknown);
    assert!(matches!(planned(&desired, &seen).actions.as_slice(), [Action::ResizeVolume { .. }]));
    let (_, mut seen) = rested(3);
    seen.refusals.volume = Some(Ordinal(0));
    let plan = planned(&Desired { replicas: 5, ..desired.clone() }, &seen);
    assert!(
        matches!(plan.actions.as_slice(), [Action::ApplyBudget { .. }, Action::ResizeVolume { .. }]),
        "{:#?}",
        plan.actions
    );
    let plan = planned(&desired, &seen);
    assert!(matches!(plan.actions.as_slice(), [Action::ResizeVolume { .. }]));
    assert!(plan.is_at_rest() && !plan.summary.is_reached, "{plan:#?}");
}

#[test]
fn a_claim_that_is_refused_to_grow_does_not_keep_others_small() {
    let (mut desired, mut seen) = rested(3);
    desired.volume_size *= 2;
    for (refused, next) in [(None, 0), (Some(0), 1), (Some(1), 2), (Some(2), 0)] {
        seen.refusals.volume = refused.map(Ordinal);
        let plan = planned(&desired, &seen);
        let [Action::ResizeVolume { ordinal, .. }] = plan.actions.as_slice() else { panic!("{plan:#?}") };
        assert_eq!(ordinal.0, next, "{refused:?}");
    }
}

#[test]
fn a_service_that_is_refused_holds_nothing_up() {
    let (desired, mut seen) = rested(3);
    seen.services = Fact::Known(Found::Outdated);
    assert_eq!(planned(&desired, &seen).actions, [Action::ApplyServices]);
    seen.refusals.services = true;
    let plan = planned(&Desired { replicas: 5, ..desired }, &seen);
    assert!(
        matches!(plan.actions.as_slice(), [Action::ApplyBudget { .. }, Action::ApplyServices]),
        "{:#?}",
        plan.actions
    );
}

#[test]
fn a_label_that_is_refused_holds_nothing_up_and_keeps_none_from_another_pod() {
    let (desired, mut seen) = rested(3);
    for ordinal in [0, 2] {
        pod(&mut seen, ordinal).role = None;
    }
    let labelled = |plan: &Plan| -> Vec<_> {
        let of = |action: &Action| match action {
            Action::LabelPod { ordinal, .. } => Some(ordinal.0),
            _ => None,
        };
        plan.actions.iter().filter_map(of).collect()
    };
    assert_eq!(labelled(&planned(&desired, &seen)), [0, 2]);
    for (refused, next) in [(0, 2), (2, 0)] {
        seen.refusals.label = Some(Ordinal(refused));
        let plan = planned(&Desired { replicas: 5, ..desired.clone() }, &seen);
        assert!(matches!(plan.actions.first(), Some(Action::ApplyBudget { .. })), "{plan:#?}");
        assert_eq!(labelled(&plan), [next], "{plan:#?}");
    }
    assert!(
        planned(&desired, &seen).is_at_rest(),
        "it is tried for ever, and keeps no comparison from being made"
    );
}

#[test]
fn of_several_writes_that_are_refused_each_is_tried_again_and_the_rest_goes_on() {
    let (desired, mut seen) = rested(3);
    let desired = Desired { volume_size: desired.volume_size * 2, ..desired };
    pod(&mut seen, 1).role = None;
    seen.services = Fact::Known(Found::Outdated);
    seen.refusals =
        Refusals { label: Some(Ordinal(1)), services: true, volume: Some(Ordinal(2)), ..Refusals::default() };
    let mut tried = Vec::new();
    for _ in 0..6 {
        let plan = planned(&desired, &seen);
        let [again] = plan.actions.as_slice() else { panic!("{plan:#?}") };
        tried.push(again.name());
        seen.refused = Some(RefusedWrite { action: again.name().to_owned(), why: "a policy".to_owned() });
        let grown = planned(&Desired { replicas: 5, ..desired.clone() }, &seen);
        assert!(matches!(grown.actions.first(), Some(Action::ApplyBudget { .. })), "{grown:#?}");
    }
    let round = ["label-pod", "apply-services", "resize-volume"];
    assert_eq!(tried, [round, round].concat());

    let paused = Desired { is_paused: true, ..desired };
    for last in round {
        seen.refused = Some(RefusedWrite { action: last.to_owned(), why: "a policy".to_owned() });
        let plan = planned(&paused, &seen);
        let [Action::LabelPod { .. }] = plan.actions.as_slice() else { panic!("{last}: {plan:#?}") };
    }
}

#[test]
fn a_template_that_is_refused_holds_nothing_up() {
    let (mut desired, mut seen) = rested(3);
    desired.template.revision += 1;
    let applies = |action: &Action| matches!(action, Action::ApplyStatefulSet { template, replicas: 3, .. } if *template == desired.template);
    assert!(matches!(planned(&desired, &seen).actions.as_slice(), [one] if applies(one)));
    seen.refusals.template = Some(desired.template);
    let plan = planned(&desired, &seen);
    assert!(matches!(plan.actions.as_slice(), [one] if applies(one)), "it is tried again: {plan:#?}");
    assert!(!plan.summary.is_reached, "{plan:#?}");
    let first = |desired: &Desired, seen: &Observation| planned(desired, seen).actions;
    let grows = first(&Desired { replicas: 5, ..desired.clone() }, &seen);
    assert!(matches!(grows.as_slice(), [Action::ApplyBudget { .. }, last] if applies(last)), "{grows:#?}");
    let shrinks = first(&Desired { replicas: 2, ..desired.clone() }, &seen);
    assert!(
        matches!(shrinks.as_slice(), [Action::MemberRemove { .. } | Action::MoveLeader { .. }, ..]),
        "{shrinks:#?}"
    );
    let mut others = seen.clone();
    others.backup_schedule = Fact::Known(Found::Outdated);
    let actions = first(&desired, &others);
    assert!(
        matches!(actions.as_slice(), [Action::ApplyBackupSchedule, last] if applies(last)),
        "{actions:#?}"
    );
    others.budget = Fact::Absent;
    let actions = first(&desired, &others);
    assert!(
        matches!(actions.as_slice(), [Action::ApplyBudget { .. }, last] if applies(last)),
        "{actions:#?}"
    );
    // Another one has not been refused.
    let other =
        Desired { template: Template { revision: 9, ..desired.template }, replicas: 5, ..desired.clone() };
    assert!(matches!(first(&other, &seen).as_slice(), [Action::ApplyStatefulSet { replicas: 3, .. }]));
}

/// The template that members run goes on being what is grown by.
#[test]
fn a_cluster_grows_to_its_end_although_another_template_is_refused() {
    let mut world = World::settled(1, V3_6);
    world.refuses = Some(Template { version: V3_6, revision: 2 });
    world.desired.template.revision = 2;
    world.desired.replicas = 3;
    world.rounds(60);
    assert_eq!(world.live_voters(), 3);
    world.refuses = None;
    assert!(is_settled(&world.run()));
    assert!(world.pods.values().all(|process| process.pod.template == world.desired.template));
}

/// What was refused is applied after everything else, and no change is recorded for that before.
#[test]
fn members_are_not_called_ready_before_they_run_the_template_that_was_refused_once() {
    let (mut desired, mut seen) = rested(3);
    desired.template.revision += 1;
    if let Fact::Known(set) = &mut seen.stateful_set {
        set.template = desired.template;
    }
    seen.health_age = Age::Fresh;
    let plan = planned(&desired, &seen);
    assert_eq!(plan.actions, [], "the members have to serve for a while before");
    assert_eq!(finding(&plan, ConditionType::Ready), (State::False, Reason::ChangePending));
    assert!(!plan.summary.is_reached);
}

#[test]
fn members_that_answer_and_elect_no_leader_are_a_lost_quorum_after_its_grace() {
    let (desired, mut seen) = rested(3);
    (seen.membership, seen.alarms) = (Fact::Unknown, Fact::Unknown);
    let lost = |seen: &Observation| {
        let plan = planned(&desired, seen);
        plan.summary.problems.iter().any(|problem| problem.reason == Reason::QuorumLost)
    };
    assert!(!lost(&seen), "they follow a leader: the list was not heard");
    for ordinal in 0..3 {
        status(&mut seen, ordinal).leader = None;
    }
    assert!(lost(&seen));
    seen.quorum_loss_age = Age::Fresh;
    assert!(!lost(&seen));
}
