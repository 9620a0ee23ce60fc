//! What clients are answered while members fail, come and go: nothing that is not kept.

use kit::history::check::{Fault, check};
use kit::history::record::{Answer, Event};
use kit::history::writer::{Report, Writer};
use testbed::EtcdVersion;

use crate::bed::test_name;
use crate::support::Cluster;

const ALL: [usize; 3] = [0, 1, 2];
/// Writes that have to go through before the next thing happens.
const SOME: u64 = 100;

async fn finish(cluster: &Cluster, writer: Writer, voters: &[usize]) -> Report {
    let report = writer.finish(&cluster.clients(voters.iter().copied())).await;
    println!("{}: {report}", test_name());
    println!("{}", report.figure(&test_name()));
    report
}

pub async fn a_killed_leader_costs_no_acknowledged_write(version: EtcdVersion) {
    let mut cluster = Cluster::of(version, 3).await;
    let writer = Writer::start("writer", cluster.hasty_clients(ALL)).await;
    for _ in 0..2 {
        writer.goes_on(SOME).await;
        let leader = cluster.leader(&ALL).await;
        cluster.bed.kill(leader);
        writer.goes_on(SOME).await;
        cluster.restart(leader);
        cluster.serves(leader).await;
    }
    writer.goes_on(SOME).await;
    let report = finish(&cluster, writer, &ALL).await;
    report.expect_kept(500);
    report.expect_no_outage();
    the_same_with_a_planted_fault_is_found(&report);
}

/// What is found in made-up histories is found in a real one.
fn the_same_with_a_planted_fault_is_found(report: &Report) {
    let found = |events: &[Event], last| {
        check(&report.calls, events, last).into_iter().map(|violation| violation.fault).collect::<Vec<_>>()
    };
    let acknowledged: Vec<_> = report
        .calls
        .iter()
        .filter_map(|call| match call.answer {
            Answer::Done(revision) if call.action.value().is_some() => Some(revision),
            _ => None,
        })
        .collect();
    let revision = acknowledged[acknowledged.len() / 2];
    let lost: Vec<_> = report.events.iter().filter(|event| event.revision != revision).copied().collect();
    assert!(found(&lost, report.last).contains(&Fault::Lost));
    let mut doubled = report.events.clone();
    let event = *doubled.iter().find(|event| event.revision == revision).unwrap();
    doubled.push(Event { revision: report.last + 1, ..event });
    assert!(found(&doubled, report.last + 1).contains(&Fault::Doubled));
    let mut calls = report.calls.clone();
    calls.sort_by_key(|call| call.start);
    let late = calls.iter().rposition(|call| matches!(call.answer, Answer::Read(..))).unwrap();
    calls[late].answer = Answer::Read(report.events[0].revision - 1, None); // true, but long ago
    let faults = check(&calls, &report.events, report.last);
    assert!(faults.iter().any(|violation| violation.fault == Fault::Stale), "{faults:?}");
}

pub async fn a_frozen_leader_costs_no_acknowledged_write(version: EtcdVersion) {
    let cluster = Cluster::of(version, 3).await;
    let writer = Writer::start("writer", cluster.hasty_clients(ALL)).await;
    writer.goes_on(SOME).await;
    let leader = cluster.leader(&ALL).await;
    cluster.bed.freeze(leader).unwrap();
    let others: Vec<_> = ALL.into_iter().filter(|member| *member != leader).collect();
    assert_ne!(cluster.leader(&others).await, leader);
    writer.goes_on(SOME).await;
    cluster.bed.thaw(leader).unwrap();
    cluster.leader(&ALL).await;
    writer.goes_on(SOME).await;
    let report = finish(&cluster, writer, &ALL).await;
    report.expect_kept(300);
    report.expect_no_outage();
}

pub async fn growing_and_shrinking_costs_no_acknowledged_write(version: EtcdVersion) {
    let mut cluster = Cluster::of(version, 1).await;
    let writer = Writer::start("writer", cluster.hasty_clients([0])).await;
    cluster.grow(0, 1, &[0, 1]).await;
    writer.speak_with(cluster.hasty_clients([0, 1]));
    cluster.grow(0, 2, &ALL).await;
    writer.speak_with(cluster.hasty_clients(ALL));
    writer.goes_on(SOME).await;

    for members in [&ALL[..], &ALL[..2]] {
        let (&victim, others) = members.split_last().unwrap();
        writer.speak_with(cluster.hasty_clients(others.iter().copied()));
        if cluster.leader(members).await == victim {
            cluster.hand_over(members, others[0]).await;
        }
        let (client, id) = (cluster.client(others[0]), cluster.status(victim).await.header.member_id);
        cluster.once_healthy(async || client.remove(id).await).await;
        cluster.bed.kill(victim);
        writer.goes_on(SOME).await;
    }
    let report = finish(&cluster, writer, &[0]).await;
    report.expect_kept(300);
    report.expect_no_outage();
}

pub async fn all_members_killed_at_once_come_back_with_all(version: EtcdVersion) {
    let mut cluster = Cluster::of(version, 3).await;
    let writer = Writer::start("writer", cluster.hasty_clients(ALL)).await;
    writer.goes_on(SOME).await;
    for member in ALL {
        cluster.bed.kill(member);
    }
    for member in ALL {
        cluster.restart(member);
    }
    for member in ALL {
        cluster.serves(member).await;
    }
    writer.goes_on(SOME).await;
    finish(&cluster, writer, &ALL).await.expect_kept(200);
}
