//! Backups, and volumes that grow or belong to another owner.

use super::*;
use crate::kinds::etcdcluster::observation::GrowthHindrance;
use crate::kinds::etcdcluster::plan::BlockedReason;

#[test]
fn an_upgrade_waits_for_its_backup() {
    let (mut desired, mut seen) = rested(3);
    (desired.backs_up_before_upgrade, desired.template.version) = (true, Version::new(6, 17));
    let plan = planned(&desired, &seen);
    assert!(matches!(plan.actions.as_slice(), [Action::StartBackup { .. }]));
    for backup in [Backup::Running, Backup::Failed, Backup::Foreign] {
        seen.backup = Fact::Known(backup);
        assert_eq!(planned(&desired, &seen).actions, []);
    }
    seen.backup = Fact::Known(Backup::Recent);
    assert!(matches!(planned(&desired, &seen).actions.as_slice(), [Action::ApplyStatefulSet { .. }]));
}

#[test]
fn what_takes_backups_is_put_right_while_nothing_else_is_to_be_done() {
    let (mut desired, mut seen) = rested(3);
    for (found, is_applied) in [
        (Fact::Known(Found::Outdated), true),
        (Fact::Known(Found::Current), false),
        (Fact::Known(Found::Foreign), false),
        (Fact::Unknown, false),
    ] {
        seen.backup_schedule = found;
        let actions = planned(&desired, &seen).actions;
        assert_eq!(actions == [Action::ApplyBackupSchedule], is_applied, "{found:?}: {actions:?}");
        assert_eq!(actions.is_empty(), !is_applied);
    }
    seen.backup_schedule = Fact::Known(Found::Outdated);
    desired.replicas = 5;
    assert!(!planned(&desired, &seen).actions.contains(&Action::ApplyBackupSchedule));
    desired.replicas = 0;
    assert!(matches!(planned(&desired, &seen).actions.as_slice(), [Action::ApplyStatefulSet { .. }]));
    seen.stateful_set = Fact::Absent;
    assert_eq!(planned(&desired, &seen).actions, [Action::ApplyBackupSchedule]);
}

#[test]
fn backups_follow_the_spec_whatever_members_wait_for() {
    let waits: [fn(&mut Desired, &mut Observation); 8] = [
        |desired, seen| (desired.replicas, seen.config) = (5, Fact::Unknown),
        |desired, seen| (desired.replicas, seen.health_age) = (5, Age::Fresh),
        |desired, seen| {
            desired.replicas = 5;
            down(seen, 1, PodPhase::Pending(Some(Cause::Unschedulable)));
        },
        |desired, seen| {
            (desired.backs_up_before_upgrade, desired.template.version) = (true, Version::new(6, 17));
            seen.backup = Fact::Known(Backup::Failed);
        },
        |_, seen| seen.certificates = Certificates::Missing,
        |_, seen| seen.membership = Fact::Unknown,
        |desired, seen| {
            (desired.is_deleting, desired.is_protected, seen.has_finalizer) = (true, true, true);
        },
        |desired, seen| {
            desired.replicas = 0;
            volume(seen, 0).is_deleting = true;
        },
    ];
    for (number, wait) in waits.into_iter().enumerate() {
        let (mut desired, mut seen) = rested(3);
        wait(&mut desired, &mut seen);
        assert_eq!(planned(&desired, &seen).actions, [], "{number}");
        seen.backup_schedule = Fact::Known(Found::Outdated);
        let plan = planned(&desired, &seen);
        assert_eq!(plan.actions, [Action::ApplyBackupSchedule], "{number}");
        assert!(!plan.summary.is_reached, "{number}");
    }
}

#[test]
fn backups_are_left_as_they_are_where_a_person_has_to_look_first() {
    let holds: [fn(&mut Desired, &mut Observation); 5] = [
        |desired, _| desired.is_paused = true,
        |desired, _| desired.is_deleting = true,
        |desired, _| desired.is_valid = false,
        |_, seen| seen.services = Fact::Known(Found::Foreign),
        |_, seen| status(seen, 1).cluster_id = ClusterId(0xbad),
    ];
    for (number, hold) in holds.into_iter().enumerate() {
        let (mut desired, mut seen) = rested(3);
        seen.backup_schedule = Fact::Known(Found::Outdated);
        hold(&mut desired, &mut seen);
        assert!(!planned(&desired, &seen).actions.contains(&Action::ApplyBackupSchedule), "{number}");
    }
}

#[test]
fn backups_are_suspended_while_data_are_suspect_although_the_spec_is_invalid() {
    let (mut desired, mut seen) = rested(3);
    (desired.is_valid, seen.backup_schedule) = (false, Fact::Known(Found::Outdated));
    seen.audit = Fact::Known(Audit::Different { revision: 9, minority: [Ordinal(1)].into() });
    assert_eq!(planned(&desired, &seen).actions, [Action::ApplyBackupSchedule]);
}

#[test]
fn what_takes_backups_may_be_refused_for_ever_and_the_rest_goes_on() {
    let (desired, mut seen) = rested(3);
    seen.backup_schedule = Fact::Known(Found::Outdated);
    let plan = planned(&desired, &seen);
    assert!(plan.is_at_rest() && !plan.summary.is_reached, "{plan:#?}");
    seen.backup_schedule = Fact::Unknown;
    seen.stateful_set = Fact::Absent;
    assert!(!planned(&desired, &seen).is_at_rest());
}

#[test]
fn a_volume_grows_where_its_class_lets_it() {
    for (expandable, grows) in
        [(Fact::Known(true), true), (Fact::Known(false), false), (Fact::Unknown, false)]
    {
        let (mut desired, mut seen) = rested(1);
        desired.volume_size *= 2;
        volume(&mut seen, 0).is_expandable = expandable;
        let plan = planned(&desired, &seen);
        let size = desired.volume_size;
        let resizes =
            matches!(plan.actions.as_slice(), [Action::ResizeVolume { size: to, .. }] if *to == size);
        assert_eq!(resizes, grows);
    }
}

#[test]
fn a_larger_quota_waits_for_volumes_that_have_room_for_it() {
    let (mut desired, mut seen) = rested(3);
    desired.template.revision += 1;
    let quota = 4 << 30;
    desired.quota = Some(quota);
    let rolls = |desired: &Desired, seen: &Observation| {
        let plan = planned(desired, seen);
        let applies = |action: &Action| matches!(action, Action::ApplyStatefulSet { template, .. } if *template == desired.template);
        (plan.actions.iter().any(applies), plan.summary.blocked)
    };
    assert_eq!(rolls(&desired, &seen), (true, None), "their room has not been reported");
    for ordinal in 0..3 {
        volume(&mut seen, ordinal).capacity = Some(if ordinal == 1 { quota - 1 } else { quota });
    }
    assert_eq!(rolls(&desired, &seen), (false, Some(BlockedReason::SmallerThanQuota(Ordinal(1)))));
    let plan = planned(&desired, &seen);
    assert!(plan.actions.is_empty() && plan.is_at_rest() && !plan.summary.is_reached, "{plan:#?}");
    assert_eq!(finding(&plan, ConditionType::Ready), (State::False, Reason::ChangePending));
    let grown = Desired { replicas: 5, ..desired.clone() };
    assert_ne!(planned(&grown, &seen).actions, [], "nothing else waits");

    let smaller = Desired { quota: Some(1 << 30), ..desired.clone() };
    assert_eq!(rolls(&smaller, &seen), (true, None), "no member gets more than it has");
    let mut stuck = seen.clone();
    down(&mut stuck, 2, PodPhase::Failing(Cause::Flags));
    assert!(rolls(&desired, &stuck).0, "the template may be what repairs it");
    let mut pending = seen.clone();
    let file_system = volume(&mut pending, 1);
    (file_system.size, file_system.hindrance) = (quota, Some(GrowthHindrance::FileSystem));
    assert_eq!(rolls(&desired, &pending), (true, None), "it grows before the pod starts");
    volume(&mut seen, 1).capacity = Some(quota);
    assert_eq!(rolls(&desired, &seen), (true, None));
}

#[test]
fn no_member_is_made_on_a_volume_of_another_owner_and_the_status_names_it() {
    let mut world = World::new(1, V3_6);
    while world.volumes.is_empty() {
        world.rounds(1);
    }
    world.volumes.get_mut(&Ordinal(0)).unwrap().0.owner = Owner::Foreign;
    let plan = world.run();
    assert_eq!(world.etcd.clusters_formed, 0);
    assert_eq!(finding(&plan, ConditionType::Degraded), (State::True, Reason::NameTaken));
}

#[test]
fn a_budget_of_an_earlier_release_is_put_right() {
    let (desired, mut seen) = rested(3);
    assert_eq!(planned(&desired, &seen).actions, []);
    let Fact::Known(budget) = &mut seen.budget else { panic!("budget") };
    budget.is_current = false;
    let plan = planned(&desired, &seen);
    assert!(matches!(plan.actions.as_slice(), [Action::ApplyBudget { found: Some(_), min_available: 2 }]));
}
