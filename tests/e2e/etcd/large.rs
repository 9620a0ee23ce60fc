//! A database of 2 GiB, and clients that ask for more than 2,000 changes a second, while its members come, go and restart.
//!
//! Alone: `make e2e FILTER='--include-ignored etcd_of_two_gibibytes'`. It needs 12 GB of disk. On a machine with few
//! cores members and clients together make fewer changes than are asked for: how many they make is printed, at rest and
//! beside all that happens.

use std::time::{Duration, SystemTime};

use kit::history::writer::{Gap, Pace, Report};
use kit::wait::patient;
use serde_json::{Value, json};

use super::cluster::{Etcd, condition};
use super::logs::{self, Line, followed};
use super::{NEWEST, gone_within, wipe};
use crate::cluster::{Bed, Namespace};
use crate::release::Way;

/// What is in use of the database before anything happens.
const IN_USE: i64 = 2 << 30;

/// How large each key is: a log that still has all of them in memory takes no more than a member's database.
const VALUE: usize = 64 << 10;

/// So many clients make more than 2,000 changes a second where a machine of two cores has nothing else to do.
const PACE: Pace = Pace { clients: 128, pause: Duration::from_millis(20) };

/// How long each thing that happens may take.
const PATIENCE: Duration = Duration::from_mins(10);

/// A gap that is printed, with what was logged then.
const NOTABLE: Duration = Duration::from_millis(500);

/// The longest gap that there may be, elections aside.
const LONGEST: Duration = Duration::from_secs(2);

/// The same of one election, which there may be once: etcd waits for up to two election timeouts before it begins.
const ELECTION: Duration = Duration::from_secs(5);

/// More than the log keeps for who lags behind: who comes after it is sent the whole database.
const BEYOND_THE_LOG: u64 = 30_000;

/// What a member is started with that keeps as many entries as gatehouse has it keep where the quota is large.
const KEEPS: &str = "snapshot-catchup-entries: 20000";

/// What the leader logs when it begins to send its database to another member.
const SENDS: &str = "sending merged snapshot";

/// What happens while clients write.
type Step = fn(&Etcd<'_>, &Namespace<'_>);

const GROWN: &str = "grown to three";
const REPLACED: &str = "a member replaced";

const STEPS: [(&str, Step); 4] = [
    ("at rest", |etcd, _| etcd.goes_on(BEYOND_THE_LOG)),
    (GROWN, |etcd, _| etcd.scale(3)),
    ("restarted for another template", restarted),
    (REPLACED, replaced),
];

pub fn etcd_of_two_gibibytes_is_grown_rolled_and_a_member_replaced(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("etcd-large");
    let more = json!({
        "storage": {"size": "10Gi", "reclaimPolicy": "Delete"},
        "options": {"quotaBackendBytes": "6Gi", "heartbeatInterval": "100ms", "electionTimeout": "1s"},
    });
    let etcd = Etcd::asking(&namespace, "Disabled", NEWEST, 1, &more).written_at(PACE).within(PATIENCE);
    etcd.until_settled(1);
    etcd.load(VALUE, IN_USE);
    let (reports, lines) = followed(bed, &namespace.name, || {
        STEPS.map(|(what, step)| {
            etcd.write();
            step(&etcd, &namespace);
            etcd.goes_on(1000);
            (what, etcd.expect_kept(1000))
        })
    });
    let mut long = Vec::new();
    for (what, report) in &reports {
        let sent = sent(&lines, report);
        tell(
            way,
            what,
            &format!("{:.0} changes a second; a database sent {sent} times; {report}", rate(report)),
        );
        assert!(sent > 0 || ![GROWN, REPLACED].contains(what), "{what}: a member came by the log alone");
        for gap in told(report) {
            let said = said(&lines, report, gap);
            let (length, from) = (gap.length(), gap.from);
            tell(way, what, &format!("no change for {length:.2?}, {from:.1?} after the begin: {said}"));
            if gap.length() > patient(LONGEST) {
                long.push((*what, gap, said));
            }
        }
    }
    let is_election = |(_, gap, said): &&(&str, Gap, String)| {
        let words = ["elected leader", "became leader", "lost leader", "changed leader"];
        gap.length() <= patient(ELECTION) && words.iter().any(|words| said.contains(words))
    };
    let elections = long.iter().filter(is_election).count();
    assert!(elections <= 1 && elections == long.len(), "gaps in which no change was acknowledged: {long:#?}");
    gone_within(PATIENCE, bed, &namespace);
}

/// Changes a second.
fn rate(report: &Report) -> f64 {
    let acknowledged = u32::try_from(report.acknowledged()).unwrap_or(u32::MAX);
    f64::from(acknowledged) / report.lasted.as_secs_f64()
}

fn tell(way: Way, what: &str, words: &str) {
    crate::figure(format!("{}: etcd of 2 GiB: {what}: {words}", way.name()));
}

/// The gaps that are printed: the longest one, whatever it is, and all others that are notable.
fn told(report: &Report) -> Vec<Gap> {
    let least = NOTABLE.min(report.longest_gap);
    report.gaps(Duration::ZERO).into_iter().filter(|gap| gap.length() >= least).collect()
}

/// How often a leader sent its database to another member.
fn sent(lines: &[Line], report: &Report) -> usize {
    let meanwhile = report.begun..=report.begun + report.lasted;
    lines.iter().filter(|line| meanwhile.contains(&line.at) && line.text.contains(SENDS)).count()
}

/// What was logged during a gap, and a moment before it.
fn said(lines: &[Line], report: &Report, gap: Gap) -> String {
    let at = |time: Duration| -> SystemTime { report.begun + time };
    logs::said(lines, at(gap.from) - NOTABLE, at(gap.to))
}

/// Members start without the comparison of all data and keep much of the log, and the status says whose data are not
/// compared, before the first of them is restarted; none is restarted for that.
fn restarted(etcd: &Etcd<'_>, namespace: &Namespace<'_>) {
    let uids = || super::recovery::uids(namespace, "pods");
    let before = uids();
    etcd.until(|_| {
        let config = namespace.get("configmap/main-config")?;
        let starts = |ordinal: u32| &config["data"][format!("main-{ordinal}.yaml")];
        let is_unchecked =
            |flags: &Value| flags.as_str().is_some_and(|flags| flags.contains("InitialCorruptCheck=false"));
        let degraded = condition(&etcd.object()?, "Degraded");
        let is_said =
            degraded["message"].as_str().is_some_and(|message| message.contains("are not compared"));
        let is_kept = |flags: &Value| flags.as_str().is_some_and(|flags| flags.contains(KEEPS));
        let is_so = is_said && (0..3).map(starts).all(|flags| is_unchecked(flags) && is_kept(flags));
        if is_so { Ok(()) } else { Err(format!("{degraded}, {}", starts(0))) }
    });
    assert_eq!(uids(), before, "no member is restarted for the size of its data");
    etcd.change(&json!({"pod": {"annotations": {"colour": "blue"}}}));
    etcd.until_settled(3);
    let now = uids();
    assert!(before.iter().all(|(name, uid)| now[name] != *uid), "each is made again: {before:?}, {now:?}");
}

/// What is on the volume of a follower is gone.
fn replaced(etcd: &Etcd<'_>, namespace: &Namespace<'_>) {
    let leader = etcd.leader();
    let members = etcd.listed();
    let follower = members.iter().find(|member| member.id != leader).expect("a follower");
    let ordinal = follower.name.rsplit('-').next().and_then(|ordinal| ordinal.parse().ok());
    wipe(namespace, &[ordinal.expect("an ordinal")]);
    etcd.until(|members| {
        let members = members.ok_or("no quorum")?.members;
        let now = members.iter().find(|member| member.name == follower.name);
        let is_another = now.is_some_and(|member| member.id != follower.id && !member.is_learner);
        if is_another { Ok(()) } else { Err(format!("{members:?}")) }
    });
    etcd.until_settled(3);
}
