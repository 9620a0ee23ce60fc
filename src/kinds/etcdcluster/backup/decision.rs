//! Chooses the member to back up, and the older backups to delete. Pure.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::manifest::Manifest;
use crate::kinds::etcdcluster::etcd::{Alarm, AlarmKind, Status};

/// Entries of the log by which a member may be behind the furthest and still be as good: each is asked at another
/// moment.
const LAG: u64 = 100;

/// Which backups are kept: those that one of the two asks for, and all where neither is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// So many of the newest that the schedule asked for, and as many of the others.
    pub keep_last: Option<usize>,
    /// All that are no older.
    pub max_age: Option<Duration>,
}

/// Members that a snapshot can be asked of, the best first: voters that follow a leader; followers before the leader,
/// which has enough to do; those that have applied most of the log.
#[must_use]
pub fn order(answers: &[Status]) -> Vec<usize> {
    let able = |status: &Status| !status.is_learner && status.leader != 0;
    let furthest = answers.iter().filter(|one| able(one)).map(|one| one.raft_applied_index).max();
    let furthest = furthest.unwrap_or(0);
    let rank = |status: &Status| {
        let lags = status.raft_applied_index.saturating_add(LAG) < furthest;
        (lags, status.is_leader(), Reverse(status.raft_applied_index))
    };
    let mut able: Vec<_> = answers.iter().enumerate().filter(|(_, status)| able(status)).collect();
    able.sort_by_key(|(_, status)| rank(status));
    able.into_iter().map(|(place, _)| place).collect()
}

/// How far the time in the name of a Job that runs may be from now: it may have waited, or be tried again.
const SCHEDULED: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Whether the CronJob of that name made a Job of that name, which runs `now`, for its schedule: its controller appends
/// the minutes since 1970 (kubernetes, `pkg/controller/cronjob`, `getJobName`). A date or seconds that a person appends
/// are of other times.
#[must_use]
pub fn is_of_schedule(job: &str, cron_job: &str, now: Timestamp) -> bool {
    let number = job.strip_prefix(cron_job).and_then(|rest| rest.strip_prefix('-'));
    let minutes = number.and_then(|text| text.parse::<i64>().ok());
    let time = minutes.and_then(|minutes| Timestamp::from_second(minutes.checked_mul(60)?).ok());
    time.is_some_and(|time| now.duration_since(time).abs() <= SCHEDULED)
}

/// Whether the data of any member may be wrong, by the alarms that are armed. An alarm names each member whose data
/// differ from the leader's, and the leader's own may be the wrong ones: no member is known to be right.
#[must_use]
pub fn are_suspect(alarms: &[Alarm]) -> bool {
    alarms.iter().any(|alarm| alarm.kind() == AlarmKind::Corrupt)
}

/// The backups that nothing asks to keep, oldest first. `newest` is the one that was just verified.
///
/// They are in the order of their times. By revision the newest could be the first to go: after a recovery from a lost
/// quorum revisions go on from an earlier one.
#[must_use]
pub fn superseded<'a>(
    backups: &'a [Manifest],
    newest: &Manifest,
    retention: Retention,
    now: Timestamp,
) -> Vec<&'a Manifest> {
    let mut others: Vec<_> = backups.iter().filter(|one| one.name != newest.name).collect();
    others.sort_by_key(|one| (Reverse(one.time), Reverse(one.revision)));
    let Retention { keep_last, max_age } = retention;
    if keep_last.is_none() && max_age.is_none() {
        return Vec::new();
    }
    let counted = |on_demand: bool| {
        let with_newest = usize::from(newest.on_demand == on_demand);
        let of_kind = others.iter().filter(move |one| one.on_demand == on_demand);
        of_kind.take(keep_last.unwrap_or(0).saturating_sub(with_newest)).map(|one| &one.name)
    };
    let counted: BTreeSet<_> = counted(true).chain(counted(false)).collect();
    let is_young = |one: &Manifest| {
        let age = Duration::try_from(now.duration_since(one.time)).unwrap_or_default();
        max_age.is_some_and(|longest| age <= longest)
    };
    others.into_iter().rev().filter(|one| !counted.contains(&one.name) && !is_young(one)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::manifest::{Owner, stem};
    use super::*;
    use crate::kinds::etcdcluster::etcd::Header;

    fn member(id: u64, leader: u64, applied: u64) -> Status {
        let header = Header { member_id: id, ..Header::default() };
        Status { header, leader, raft_applied_index: applied, ..Status::default() }
    }

    #[test]
    fn the_follower_that_has_got_furthest_is_asked_first_and_the_leader_before_one_that_lags() {
        let answers = [member(1, 1, 1000), member(2, 1, 990), member(3, 1, 995), member(4, 1, 5)];
        assert_eq!(order(&answers), [2, 1, 0, 3]);
    }

    #[test]
    fn a_learner_or_a_member_without_leader_is_not_asked() {
        let learner = Status { is_learner: true, ..member(1, 2, 1000) };
        assert_eq!(order(&[learner, member(2, 2, 10), member(3, 0, 2000)]), [1]);
        assert_eq!(order(&[]), [] as [usize; 0]);
    }

    #[test]
    fn an_alarm_about_any_members_data_makes_all_of_them_suspect() {
        let alarm = |member, kind: AlarmKind| Alarm { member, kind: kind.into() };
        for member in [0, 1, 2] {
            assert!(are_suspect(&[alarm(1, AlarmKind::NoSpace), alarm(member, AlarmKind::Corrupt)]));
        }
        assert!(!are_suspect(&[alarm(1, AlarmKind::NoSpace)]) && !are_suspect(&[]));
    }

    fn hour(hour: i64, revision: i64) -> Manifest {
        let time = Timestamp::from_second(hour * 3600).unwrap();
        Manifest {
            name: stem(time, revision) + ".db",
            time,
            cluster: Owner { namespace: "a".into(), name: "b".into(), uid: "c".into() },
            cluster_id: String::new(),
            endpoint: String::new(),
            version: String::new(),
            revision,
            sha256: String::new(),
            size: 0,
            on_demand: false,
        }
    }

    /// Hours of the backups that go; there is one of each hour up to the tenth, and that is the newest.
    fn gone(keep_last: Option<usize>, hours: Option<u64>) -> Vec<i64> {
        let backups: Vec<_> = (1..=10).map(|at| hour(at, at)).collect();
        let max_age = hours.map(|hours| Duration::from_secs(hours * 3600));
        let now = Timestamp::from_second(10 * 3600).unwrap();
        let gone = superseded(&backups, &hour(10, 10), Retention { keep_last, max_age }, now);
        gone.into_iter().map(|one| one.revision).collect()
    }

    #[test]
    fn a_backup_stays_that_the_number_or_the_age_asks_for() {
        assert_eq!(gone(None, None), [] as [i64; 0]);
        assert_eq!(gone(Some(7), None), [1, 2, 3]);
        assert_eq!(gone(None, Some(3)), [1, 2, 3, 4, 5, 6]);
        assert_eq!(gone(Some(7), Some(3)), [1, 2, 3]);
        assert_eq!(gone(Some(2), Some(3)), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn the_newest_stays_however_old_and_few() {
        assert_eq!(gone(Some(1), None).len(), 9);
        assert_eq!(gone(None, Some(0)).len(), 9);
        let backups = [hour(1, 1)];
        let retention = Retention { keep_last: None, max_age: Some(Duration::from_secs(1)) };
        let late = Timestamp::from_second(1_000_000).unwrap();
        assert_eq!(superseded(&backups, &hour(1, 1), retention, late), [] as [&Manifest; 0]);
    }

    #[test]
    fn backups_on_demand_push_none_of_the_schedule_out() {
        let asked = |at| Manifest { on_demand: true, ..hour(at, at) };
        let mut backups: Vec<_> = (1..=3).map(|at| hour(at, at)).collect();
        backups.extend((4..=9).map(asked));
        let now = Timestamp::from_second(10 * 3600).unwrap();
        let gone = |newest: &Manifest| -> Vec<i64> {
            let retention = Retention { keep_last: Some(3), max_age: None };
            superseded(&backups, newest, retention, now).into_iter().map(|one| one.revision).collect()
        };
        assert_eq!(gone(&asked(9)), [4, 5, 6]);
        assert_eq!(gone(&asked(10)), [4, 5, 6, 7], "it is one of three itself");
        assert_eq!(gone(&hour(10, 10)), [1, 4, 5, 6]);
    }

    #[test]
    fn a_job_of_the_schedule_is_known_by_the_minutes_in_its_name() {
        let now = "2026-07-20T09:30:00Z".parse().unwrap();
        assert!(is_of_schedule("shop-backup-29742120", "shop-backup", now));
        for other in [
            "shop-backup-3-7-3",
            "shop-backup-1",
            "shop-backup-20260720",
            "shop-backup-1784540000",
            "shop-backup-now",
            "now",
            "",
            "shop-backup",
        ] {
            assert!(!is_of_schedule(other, "shop-backup", now), "{other}");
        }
    }

    #[test]
    fn after_a_recovery_the_new_backups_stay_although_their_revisions_are_lower() {
        let backups = [hour(1, 900), hour(2, 1000), hour(3, 500), hour(4, 510)];
        let retention = Retention { keep_last: Some(2), max_age: None };
        let gone = superseded(&backups, &hour(4, 510), retention, Timestamp::from_second(9 * 3600).unwrap());
        assert_eq!(gone.into_iter().map(|one| one.revision).collect::<Vec<_>>(), [900, 1000]);
    }
}
