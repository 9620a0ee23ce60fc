//! Chooses the member to back up, and the older backups to delete. Pure.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::manifest::Manifest;
use crate::kinds::etcdcluster::etcd::{Alarm, AlarmKind, Status};

/// Bytes a second that have to come of a snapshot, on the whole. While it comes, the member's database can use none of the
/// pages again that become free, and grows.
const SLOWEST: u64 = 1 << 20;

/// How long a snapshot may take besides, whatever its size.
const BESIDES: Duration = Duration::from_mins(1);

/// How long the snapshot of a database of so many bytes may take to come, and to be written.
#[must_use]
pub fn longest(size: i64) -> Duration {
    BESIDES + Duration::from_secs(u64::try_from(size).unwrap_or(0) / SLOWEST)
}

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

/// How long after it was due a Job may run: it may start an hour late, and takes an hour at most. Besides, clocks differ.
const LATEST: SignedDuration = SignedDuration::from_hours(3);

/// How much earlier than it was due a Job may seem to run, for clocks differ.
const EARLIEST: SignedDuration = SignedDuration::from_mins(5);

/// Minutes since 1970 of the years 2020 to 2100. A date or seconds that a person appends to a name are other numbers.
const MINUTES: RangeInclusive<i64> = 26_297_280..=68_374_080;

/// When a Job of that name was due by the schedule of the CronJob of that name, whose controller appends the minutes since
/// 1970, by its own clock (kubernetes, `pkg/controller/cronjob`, `getJobName`); none where the schedule did not make it.
fn due(job: &str, cron_job: &str) -> Option<Timestamp> {
    let minutes = job.strip_prefix(cron_job)?.strip_prefix('-')?.parse::<i64>().ok()?;
    let minutes = MINUTES.contains(&minutes).then_some(minutes)?;
    Timestamp::from_second(minutes.checked_mul(60)?).ok()
}

/// Whether the CronJob of that name made a Job of that name for its schedule.
#[must_use]
pub fn is_of_schedule(job: &str, cron_job: &str) -> bool {
    due(job, cron_job).is_some()
}

/// What is known of the clock of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The schedule's Job was due at about the time that it shows; or a person runs this, and no Job.
    Confirmed,
    /// A Job that the schedule did not make runs: nothing tells whether it is right, and by it nothing is too old.
    Unconfirmed,
    /// The schedule's Job was due at another time: nothing is deleted by it.
    Wrong {
        /// When.
        due: Timestamp,
    },
}

impl Clock {
    /// What the name of the Job that runs says of a clock that shows `now`.
    #[must_use]
    pub fn of(job: Option<&str>, cron_job: &str, now: Timestamp) -> Self {
        let Some(job) = job else { return Self::Confirmed };
        match due(job, cron_job) {
            None => Self::Unconfirmed,
            Some(due) => {
                let late = now.duration_since(due);
                if late >= -EARLIEST && late <= LATEST { Self::Confirmed } else { Self::Wrong { due } }
            }
        }
    }
}

/// Whether the data of any member may be wrong, by the alarms that are armed. An alarm names each member whose data
/// differ from the leader's, and the leader's own may be the wrong ones: no member is known to be right.
#[must_use]
pub fn are_suspect(alarms: &[Alarm]) -> bool {
    alarms.iter().any(|alarm| alarm.kind() == AlarmKind::Corrupt)
}

/// The number of the next backup.
#[must_use]
pub fn next_number(backups: &[Manifest]) -> u64 {
    backups.iter().map(|one| one.number).max().unwrap_or(0).saturating_add(1)
}

/// The backups that nothing asks to keep, oldest first. `newest` is the one that was just verified.
///
/// They are in the order in which they were taken, whatever the clocks of nodes showed then; those of earlier releases,
/// which have no numbers, in the order of their times. By revision the newest could be the first to go: after a recovery
/// from a lost quorum revisions go on from an earlier one.
#[must_use]
pub fn superseded<'a>(
    backups: &'a [Manifest],
    newest: &Manifest,
    retention: Retention,
    (now, clock): (Timestamp, Clock),
) -> Vec<&'a Manifest> {
    let mut others: Vec<_> = backups.iter().filter(|one| one.name != newest.name).collect();
    others.sort_by_key(|one| Reverse((one.number, one.time, one.revision)));
    let Retention { keep_last, max_age } = retention;
    if (keep_last.is_none() && max_age.is_none()) || matches!(clock, Clock::Wrong { .. }) {
        return Vec::new();
    }
    let counted = |on_demand: bool| {
        let with_newest = usize::from(newest.on_demand == on_demand);
        let of_kind = others.iter().filter(move |one| one.on_demand == on_demand);
        of_kind.take(keep_last.unwrap_or(0).saturating_sub(with_newest)).map(|one| &one.name)
    };
    let counted: BTreeSet<_> = counted(true).chain(counted(false)).collect();
    let mut before = None;
    let mut is_young = |one: &Manifest| {
        let taken = taken_since(one, &mut before, now);
        let age = Duration::try_from(now.duration_since(taken)).unwrap_or_default();
        max_age.is_some_and(|longest| age <= longest || clock == Clock::Unconfirmed)
    };
    let superseded = others.into_iter().rev().filter(|one| !is_young(one) && !counted.contains(&one.name));
    superseded.collect()
}

/// Since when there is a backup, at the earliest: not since before the one `before` it, which stands for it where its own
/// time is still to come, by a clock that was ahead.
fn taken_since(one: &Manifest, before: &mut Option<Timestamp>, now: Timestamp) -> Timestamp {
    if one.time <= now {
        *before = Some(before.map_or(one.time, |before| before.max(one.time)));
    }
    before.unwrap_or(now)
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
    fn a_snapshot_may_take_longer_the_larger_it_is() {
        assert_eq!([0, -1, 1 << 19].map(longest), [Duration::from_mins(1); 3]);
        assert_eq!(longest(1 << 30), Duration::from_secs(60 + 1024));
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
            number: 0,
        }
    }

    /// Hours of the backups that go; there is one of each hour up to the tenth, and that is the newest.
    fn gone(keep_last: Option<usize>, hours: Option<u64>) -> Vec<i64> {
        let backups: Vec<_> = (1..=10).map(|at| hour(at, at)).collect();
        let max_age = hours.map(|hours| Duration::from_secs(hours * 3600));
        let now = Timestamp::from_second(10 * 3600).unwrap();
        let now = (now, Clock::Confirmed);
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
        let late = (late, Clock::Confirmed);
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
            superseded(&backups, newest, retention, (now, Clock::Unconfirmed))
                .into_iter()
                .map(|one| one.revision)
                .collect()
        };
        assert_eq!(gone(&asked(9)), [4, 5, 6]);
        assert_eq!(gone(&asked(10)), [4, 5, 6, 7], "it is one of three itself");
        assert_eq!(gone(&hour(10, 10)), [1, 4, 5, 6]);
    }

    /// Five backups, of each hour from the tenth on, but for what else is said of the hours; the last one is the newest.
    /// Numbers of those that go by the clock that shows an hour.
    fn gone_of_five(hours: [i64; 5], retention: Retention, (now, clock): (i64, Clock)) -> Vec<u64> {
        let numbered = |(number, at)| Manifest { number, ..hour(at, 1) };
        let backups: Vec<_> = (1..).zip(hours).map(numbered).collect();
        let now = (Timestamp::from_second(now * 3600).unwrap(), clock);
        let gone = superseded(&backups, &backups[4], retention, now);
        gone.into_iter().map(|one| one.number).collect()
    }

    #[test]
    fn backups_go_in_the_order_in_which_they_were_taken_whatever_clocks_showed() {
        let two = Retention { keep_last: Some(2), max_age: None };
        for hours in [[10, 11, 12, 13, 14], [10, 11, 12, 1, 14], [10, 9999, 12, 13, 14], [10, 11, 12, 13, 1]]
        {
            assert_eq!(gone_of_five(hours, two, (14, Clock::Confirmed)), [1, 2, 3], "{hours:?}");
        }
        assert_eq!(next_number(&[hour(3, 3)]), 1);
        assert_eq!(next_number(&[Manifest { number: 7, ..hour(3, 3) }, hour(4, 4)]), 8);
    }

    #[test]
    fn a_backup_whose_clock_was_behind_or_ahead_is_as_old_as_its_place_says() {
        let three_hours = Retention { keep_last: None, max_age: Some(Duration::from_hours(3)) };
        let gone = |hours| gone_of_five(hours, three_hours, (14, Clock::Confirmed));
        assert_eq!(gone([10, 11, 12, 13, 14]), [1]);
        assert_eq!(gone([10, 11, 12, 1, 14]), [1]);
        assert_eq!(gone([9, 9999, 12, 13, 14]), [1, 2]);
        assert_eq!(gone([9999, 11, 12, 13, 14]), [] as [u64; 0]);
    }

    #[test]
    fn by_a_clock_that_is_wrong_or_that_nothing_confirms_none_is_too_old() {
        let hours = [10, 11, 12, 13, 9999];
        let by_age = Retention { keep_last: None, max_age: Some(Duration::from_hours(3)) };
        assert_eq!(gone_of_five(hours, by_age, (9999, Clock::Unconfirmed)), [] as [u64; 0]);
        let by_number = Retention { keep_last: Some(2), max_age: None };
        assert_eq!(gone_of_five(hours, by_number, (9999, Clock::Unconfirmed)), [1, 2, 3]);
        let wrong = Clock::Wrong { due: Timestamp::from_second(14 * 3600).unwrap() };
        let both = Retention { keep_last: Some(1), ..by_age };
        assert_eq!(gone_of_five(hours, both, (9999, wrong)), [] as [u64; 0]);
    }

    #[test]
    fn a_clock_is_held_against_the_time_at_which_the_job_was_due() {
        let due: Timestamp = "2026-07-20T09:00:00Z".parse().unwrap();
        let job = format!("shop-backup-{}", due.as_second() / 60);
        let of = |job: Option<&str>, now: &str| Clock::of(job, "shop-backup", now.parse().unwrap());
        for now in ["2026-07-20T08:56:00Z", "2026-07-20T09:00:30Z", "2026-07-20T11:59:00Z"] {
            assert_eq!(of(Some(&job), now), Clock::Confirmed, "{now}");
        }
        for now in
            ["2026-07-20T08:54:00Z", "2026-07-20T12:01:00Z", "2027-07-20T09:00:00Z", "1970-01-01T00:00:00Z"]
        {
            assert_eq!(of(Some(&job), now), Clock::Wrong { due }, "{now}");
        }
        for job in ["shop-backup-now", "shop-backup-3-7-3", "shop-backup-20260720", "shop-backup-1784540000"]
        {
            assert_eq!(of(Some(job), "2026-07-20T09:00:00Z"), Clock::Unconfirmed, "{job}");
        }
        assert_eq!(of(None, "1970-01-01T00:00:00Z"), Clock::Confirmed, "no Job runs it");
    }

    #[test]
    fn a_job_of_the_schedule_is_known_by_the_minutes_in_its_name() {
        assert!(is_of_schedule("shop-backup-29742120", "shop-backup"));
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
            assert!(!is_of_schedule(other, "shop-backup"), "{other}");
        }
    }

    #[test]
    fn after_a_recovery_the_new_backups_stay_although_their_revisions_are_lower() {
        let backups = [hour(1, 900), hour(2, 1000), hour(3, 500), hour(4, 510)];
        let retention = Retention { keep_last: Some(2), max_age: None };
        let now = (Timestamp::from_second(9 * 3600).unwrap(), Clock::Confirmed);
        let gone = superseded(&backups, &hour(4, 510), retention, now);
        assert_eq!(gone.into_iter().map(|one| one.revision).collect::<Vec<_>>(), [900, 1000]);
    }
}
