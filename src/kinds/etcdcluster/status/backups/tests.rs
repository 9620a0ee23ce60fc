use serde_json::{Value, json};

use super::*;
use crate::kinds::etcdcluster::api::v1::BackupFailure;
use crate::kinds::etcdcluster::observation::{Alarm, AlarmKind, Audit, MemberId, Ordinal};
use crate::kinds::etcdcluster::resources::tests::cluster;
use crate::kinds::etcdcluster::status::tests::{second, seen, status as said_of};

const DAY: i64 = 86_400;

fn success(at: i64) -> BackupSuccess {
    BackupSuccess {
        time: Some(Time(second(at))),
        name: Some("r7.db".to_owned()),
        revision: Some(7),
        ..BackupSuccess::default()
    }
}

fn failure(at: i64) -> BackupFailure {
    BackupFailure { time: Some(Time(second(at))), message: Some("Job j: no member answers".to_owned()) }
}

fn asked(backup: &Value) -> Spec {
    let mut backup = backup.clone();
    if backup.get("destination").is_none() {
        backup["destination"] = json!({"persistentVolumeClaim": {"claimName": "b"}});
    }
    cluster(&json!({"replicas": 3, "backup": backup}))
}

/// State and reason of what is said on the tenth day at noon.
fn said(cluster: &Spec, status: &BackupStatus, since: i64) -> (State, &'static str) {
    let seen = seen(cluster);
    let told = Backups { since: Some(second(since)), ..Backups::default() };
    let said = statement(cluster, &seen, Some(status), &told, second(10 * DAY + DAY / 2));
    (said.state, said.reason)
}

#[test]
fn what_was_recorded_stays_until_there_is_a_later_one() {
    let before = BackupStatus { last_success: Some(success(20)), last_failure: Some(failure(10)) };
    let told = |success, failure| Backups { success, failure, ..Backups::default() };
    assert_eq!(remembered(Some(&before), &told(None, None)), Some(before.clone()));
    assert_eq!(remembered(Some(&before), &told(Some(success(19)), Some(failure(9)))), Some(before.clone()));
    let after = remembered(Some(&before), &told(Some(success(21)), Some(failure(11)))).unwrap();
    assert_eq!((after.last_success, after.last_failure), (Some(success(21)), Some(failure(11))));
    assert_eq!(remembered(None, &Backups::default()), None);
    let elsewhere = |success| Backups { is_elsewhere: true, ..told(success, None) };
    assert_eq!(remembered(Some(&before), &elsewhere(None)), None, "another destination is asked for");
    let there = remembered(Some(&before), &elsewhere(Some(success(19)))).unwrap();
    assert_eq!((there.last_success, there.last_failure), (Some(success(19)), None));
}

#[test]
fn the_last_backup_decides_and_two_that_were_missed() {
    let daily = asked(&json!({"schedule": "0 0 * * *"}));
    let status = |success, failure| BackupStatus { last_success: success, last_failure: failure };
    for (last_success, last_failure, expected) in [
        (Some(success(10 * DAY + 5)), None, (State::True, "BackupVerified")),
        (Some(success(9 * DAY + 5)), None, (State::True, "BackupVerified")),
        (Some(success(9 * DAY - 5)), None, (State::False, "BackupOverdue")),
        (Some(success(10 * DAY + 5)), Some(failure(10 * DAY + 4)), (State::True, "BackupVerified")),
        (Some(success(10 * DAY + 5)), Some(failure(10 * DAY + 6)), (State::False, "BackupFailed")),
        (None, Some(failure(10 * DAY + 6)), (State::False, "BackupFailed")),
    ] {
        let status = status(last_success, last_failure);
        assert_eq!(said(&daily, &status, 8 * DAY), expected, "{status:?}");
    }
    let none = status(None, None);
    assert_eq!(said(&daily, &none, 9 * DAY + 1), (State::Unknown, "NoBackupYet"));
    assert_eq!(said(&daily, &none, 8 * DAY), (State::False, "BackupOverdue"));
    // Until then it was suspended, say.
    let old = status(Some(success(2 * DAY)), None);
    assert_eq!(said(&daily, &old, 9 * DAY + 1), (State::True, "BackupVerified"));
}

#[test]
fn a_backup_is_not_overdue_while_its_job_may_still_run() {
    let daily = asked(&json!({"schedule": "0 0 * * *"}));
    let of = |hour: i64| {
        let status = BackupStatus { last_success: Some(success(9 * DAY - 5)), last_failure: None };
        let now = second(10 * DAY + hour * 3600);
        statement(&daily, &seen(&daily), Some(&status), &Backups::default(), now).reason
    };
    assert_eq!((of(0), of(2)), ("BackupVerified", "BackupOverdue"));
}

#[test]
fn what_keeps_backups_from_being_taken_is_said() {
    let none = BackupStatus::default();
    let daily = |more: Value| {
        let mut backup = json!({"schedule": "@daily"});
        backup.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        asked(&backup)
    };
    let suspended = daily(json!({"suspend": true}));
    assert_eq!(said(&suspended, &none, 0), (State::False, "BackupSuspended"));
    let destination = json!({"persistentVolumeClaim": {"claimName": "b"}});
    let backup = json!({"schedule": "@daily", "destination": destination});
    let stopped = cluster(&json!({"replicas": 0, "backup": backup}));
    assert_eq!(said(&stopped, &none, 0), (State::False, "BackupSuspended"));
    let daily = daily(json!({}));
    let mut seen = seen(&daily);
    seen.backup_schedule = Fact::Known(Found::Foreign);
    let taken = statement(&daily, &seen, None, &Backups::default(), second(1));
    assert_eq!((taken.reason, taken.message.contains("CronJob c-backup exists")), ("NameTaken", true));
}

#[test]
fn backups_of_data_that_may_be_wrong_are_not_called_good() {
    let daily = asked(&json!({"schedule": "@daily"}));
    let verified = BackupStatus { last_success: Some(success(20)), last_failure: None };
    let of = |change: fn(&mut Observation)| {
        let mut seen = seen(&daily);
        change(&mut seen);
        let said = statement(&daily, &seen, Some(&verified), &Backups::default(), second(30));
        (said.state, said.reason)
    };
    let suspect = (State::False, "DataSuspect");
    assert_eq!(of(|seen| seen.audit = Fact::Known(Audit::Equal)), (State::True, "BackupVerified"));
    let different = |seen: &mut Observation| {
        seen.audit = Fact::Known(Audit::Different { revision: 9, minority: [Ordinal(1)].into() });
    };
    assert_eq!(of(different), suspect);
    let alarm = |seen: &mut Observation| {
        seen.alarms = Fact::Known(vec![Alarm { member: MemberId(1), kind: AlarmKind::Corrupt }]);
    };
    assert_eq!(of(alarm), suspect);
    let stored = |seen: &mut Observation| {
        seen.alarms = Fact::Unknown;
        if let Some(Fact::Known(told)) = seen.statuses.get_mut(&Ordinal(0)) {
            told.corrupt = [MemberId(1)].into();
        }
    };
    assert_eq!(of(stored), suspect, "the alarms could not be read");
    let mut outdated = seen(&daily);
    different(&mut outdated);
    outdated.backup_schedule = Fact::Known(Found::Outdated);
    let said = statement(&daily, &outdated, Some(&verified), &Backups::default(), second(30));
    assert!(said.message.contains("scheduled backups are to be suspended"), "{}", said.message);
}

#[test]
fn a_destination_that_is_not_there_is_reported_whatever_was_taken_before() {
    let of = |backup: &Value, why, status: &BackupStatus| {
        let told = Backups { destination: Some(why), ..Backups::default() };
        let asked = asked(backup);
        statement(&asked, &seen(&asked), Some(status), &told, second(30))
    };
    let verified = BackupStatus { last_success: Some(success(20)), last_failure: None };
    let failed = BackupStatus { last_success: None, last_failure: Some(failure(20)) };
    for (why, status, message) in [
        (
            Unavailable::Missing,
            &verified,
            "PersistentVolumeClaim b, which backups go to, does not exist; the last verified one is of 1970-01-01T00:00:20Z",
        ),
        (
            Unavailable::Terminating,
            &failed,
            "PersistentVolumeClaim b, which backups go to, is being deleted; none has been verified yet",
        ),
        (
            Unavailable::Lost,
            &BackupStatus::default(),
            "PersistentVolumeClaim b, which backups go to, has lost its PersistentVolume; none has been verified yet",
        ),
    ] {
        for backup in [json!({"schedule": "@daily"}), json!({})] {
            let said = of(&backup, why, status);
            assert_eq!((said.state, said.reason), (State::False, "BackupDestinationUnavailable"));
            assert_eq!(said.message, message);
        }
    }
    let suspended = of(&json!({"schedule": "@daily", "suspend": true}), Unavailable::Missing, &verified);
    assert_eq!(suspended.reason, "BackupSuspended");
}

#[test]
fn without_a_schedule_nothing_is_overdue_and_what_was_taken_is_said() {
    let asked = asked(&json!({}));
    let of = |last_success, last_failure| said(&asked, &BackupStatus { last_success, last_failure }, 0);
    assert_eq!(of(None, None), (State::True, "NoBackups"));
    assert_eq!(of(Some(success(1)), None), (State::True, "BackupVerified"));
    assert_eq!(of(Some(success(1)), Some(failure(2))), (State::False, "BackupFailed"));
}

#[test]
fn each_backup_is_reported_once() {
    let cluster = asked(&json!({"schedule": "@daily"}));
    let before = said_of(&cluster, &EtcdClusterStatus::default(), &seen(&cluster));
    let backup = Some(BackupStatus { last_success: Some(success(20)), last_failure: Some(failure(10)) });
    let after = EtcdClusterStatus { backup, ..before.clone() };
    let told: Vec<_> = news(&before, &after).into_iter().map(|note| (note.warning, note.reason)).collect();
    assert_eq!(told, [(false, "BackupVerified"), (true, "BackupFailed")]);
    assert_eq!(news(&after, &after), []);
}

#[test]
fn an_upgrade_says_which_job_it_waits_for() {
    let mut seen = seen(&asked(&json!({})));
    let mut words = |backup| {
        seen.backup = backup;
        before_upgrade("c", Version::new(7, 3), &seen)
    };
    assert_eq!(words(Fact::Absent), "a verified backup comes first");
    assert_eq!(
        words(Fact::Known(Backup::Running)),
        "a verified backup comes first: Job c-backup-3-7-3 takes it"
    );
    assert!(words(Fact::Known(Backup::Failed)).contains("c-backup-3-7-3 has failed"));
}
