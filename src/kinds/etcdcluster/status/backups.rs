//! The status of backups: the last ones, whether they follow the spec, and their events. Pure.
//!
//! Guarantees: what was recorded of a backup stays when the Job that took it is gone, until there is a later one, or
//! another destination is asked for.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::condition::{State, Statement};
use crate::api::cron::Schedule;
use crate::api::time_zone;
use crate::controllers::api_write::Note;
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::api::v1::{BackupStatus, BackupSuccess, EtcdClusterStatus};
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{
    Backup, Backups, Fact, Found, Observation, Unavailable, Version,
};
use crate::kinds::etcdcluster::spec::{self, Spec};

/// How long a backup that is due may take until it counts as missed: as long as its Job.
const GRACE: SignedDuration = SignedDuration::from_hours(1);

/// What the status remembers of backups.
pub fn remembered(previous: Option<&BackupStatus>, told: &Backups) -> Option<BackupStatus> {
    let before = previous.filter(|_| !told.is_elsewhere).cloned().unwrap_or_default();
    let status = BackupStatus {
        last_success: later(before.last_success, told.success.clone(), |one| one.time.as_ref()),
        last_failure: later(before.last_failure, told.failure.clone(), |one| one.time.as_ref()),
    };
    (status != BackupStatus::default()).then_some(status)
}

fn later<T>(before: Option<T>, now: Option<T>, time: impl Fn(&T) -> Option<&Time>) -> Option<T> {
    let of = |one: &Option<T>| one.as_ref().and_then(|one| Some(time(one)?.0));
    if of(&now) > of(&before) { now } else { before }
}

/// Whether backups are taken as the spec asks.
pub fn statement(
    spec: &Spec,
    seen: &Observation,
    status: Option<&BackupStatus>,
    told: &Backups,
    now: Timestamp,
) -> Statement {
    let (state, reason, message) = said(spec, seen, status, told, now);
    ConditionType::BackupReady.is(state, reason, message)
}

fn said(
    spec: &Spec,
    seen: &Observation,
    status: Option<&BackupStatus>,
    told: &Backups,
    now: Timestamp,
) -> (State, Reason, String) {
    let none = || (State::True, Reason::NoBackups, "no scheduled backups are asked for".to_owned());
    let asked = spec.backup.as_ref().and_then(|backup| Some((backup, backup.destination.as_ref()?)));
    let Some((backup, destination)) = asked else { return none() };
    if seen.backup_schedule == Fact::Known(Found::Foreign) {
        let name = names::backup(spec.name());
        let message = format!("CronJob {name} exists and is not controlled by this object");
        return (State::False, Reason::NameTaken, message);
    }
    if seen.suspects_data() {
        let is_applied = seen.backup_schedule == Fact::Known(Found::Current);
        let verb = if is_applied { "are" } else { "are to be" };
        let message = format!(
            "the data of members differ, or may, as Degraded says: scheduled backups {verb} suspended, and all older \
             ones kept, until they have been found to be the same"
        );
        return (State::False, Reason::DataSuspect, message);
    }
    if let Some(why) = rests(spec, backup) {
        return (State::False, Reason::BackupSuspended, why.to_owned());
    }
    let success = status.and_then(|status| status.last_success.as_ref());
    let failure = status.and_then(|status| status.last_failure.as_ref());
    let succeeded = success.and_then(|success| Some(success.time.as_ref()?.0));
    if let Some(why) = told.destination {
        let message = format!(
            "PersistentVolumeClaim {}, which backups go to, {}; {}",
            destination.claim,
            unavailable(why),
            last(succeeded)
        );
        return (State::False, Reason::BackupDestinationUnavailable, message);
    }
    if let Some(failure) = failure.filter(|one| one.time.as_ref().map(|time| time.0) > succeeded) {
        let why = failure.message.as_deref().unwrap_or("no reason was reported");
        let message = format!("the last backup failed: {why}; {}", last(succeeded));
        return (State::False, Reason::BackupFailed, message);
    }
    if is_overdue(backup, succeeded.max(told.since), now) {
        let message =
            format!("the last two backups that were due have not been verified; {}", last(succeeded));
        return (State::False, Reason::BackupOverdue, message);
    }
    match success {
        Some(success) => (State::True, Reason::BackupVerified, verified(success)),
        None if backup.schedule.is_none() => none(),
        None => (State::Unknown, Reason::NoBackupYet, "no backup has been verified yet".to_owned()),
    }
}

/// Why scheduled backups rest.
fn rests(spec: &Spec, backup: &spec::Backup) -> Option<&'static str> {
    backup.schedule.as_ref()?;
    if backup.is_suspended {
        return Some("scheduled backups are suspended: spec.backup.suspend is true");
    }
    (spec.replicas == 0).then_some("scheduled backups are suspended while the cluster is stopped")
}

const fn unavailable(why: Unavailable) -> &'static str {
    match why {
        Unavailable::Missing => "does not exist",
        Unavailable::Terminating => "is being deleted",
        Unavailable::Lost => "has lost its PersistentVolume",
    }
}

/// Whether two backups in a row have been missed since the last one, and since they are asked for as they are now: what
/// was suspended has missed none.
fn is_overdue(backup: &spec::Backup, since: Option<Timestamp>, now: Timestamp) -> bool {
    let schedule = backup.schedule.as_deref().and_then(|text| Schedule::parse(text).ok());
    let zone = time_zone::find(&backup.time_zone).ok();
    let (Some(schedule), Some(zone), Some(since)) = (schedule, zone, since) else { return false };
    let Ok(until) = now.checked_sub(GRACE) else { return false };
    schedule.past(&zone, until, 2).get(1).is_some_and(|before_last| since < *before_last)
}

fn last(succeeded: Option<Timestamp>) -> String {
    match succeeded {
        Some(time) => format!("the last verified one is of {}", time.strftime("%Y-%m-%dT%H:%M:%SZ")),
        None => "none has been verified yet".to_owned(),
    }
}

fn verified(success: &BackupSuccess) -> String {
    let name = success.name.as_deref().unwrap_or("the last backup");
    let revision =
        success.revision.map(|revision| format!(" and holds revision {revision}")).unwrap_or_default();
    let time = success.time.as_ref().map(|time| format!(" at {}", time.0.strftime("%Y-%m-%dT%H:%M:%SZ")));
    format!("{name} was verified{}{revision}", time.unwrap_or_default())
}

/// What an upgrade waits for that has a backup taken first.
pub fn before_upgrade(cluster: &str, version: Version, seen: &Observation) -> String {
    let job = names::backup_before(cluster, version);
    let state = match seen.backup {
        Fact::Known(Backup::Running) => format!(": Job {job} takes it"),
        Fact::Known(Backup::Failed) => {
            format!(": Job {job} has failed, and is recreated in half an hour, or when it is deleted")
        }
        Fact::Known(Backup::Foreign) => {
            format!(
                ": Job {job} exists and is not controlled by this object: none is taken until it is deleted"
            )
        }
        Fact::Known(Backup::Recent) | Fact::Absent => String::new(),
        Fact::Unknown => ": whether there is one could not be found out".to_owned(),
    };
    format!("a verified backup comes first{state}")
}

/// The events of what `status` says of backups and `previous` did not.
pub fn news(previous: &EtcdClusterStatus, status: &EtcdClusterStatus) -> Vec<Note> {
    let of = |status: &EtcdClusterStatus| status.backup.clone().unwrap_or_default();
    let (before, now) = (of(previous), of(status));
    let note =
        |warning, reason: Reason, text| Note { warning, reason: reason.as_str(), action: "Backup", text };
    let success = now.last_success.filter(|now| before.last_success.as_ref() != Some(now));
    let failure = now.last_failure.filter(|now| before.last_failure.as_ref() != Some(now));
    let success = success.map(|success| note(false, Reason::BackupVerified, verified(&success)));
    let failure = failure.map(|failure| {
        note(true, Reason::BackupFailed, failure.message.unwrap_or_else(|| "a backup failed".to_owned()))
    });
    success.into_iter().chain(failure).collect()
}

#[cfg(test)]
mod tests;
