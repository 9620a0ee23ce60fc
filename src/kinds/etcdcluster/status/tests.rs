mod data;
mod ready;
pub(in crate::kinds) mod situations;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::*;
use crate::api::condition::State;
use crate::api::field::{FieldError, Path, Reason as Fault};
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::api::v1::{BackupStatus, BackupSuccess};
use crate::kinds::etcdcluster::observation::{
    Age, Alarm, AlarmKind, Audit, Budget, Cause, Certificates, ClusterId, Config, ConfigEntry, Fact, Found,
    GrowthHindrance, Handle, Hindered, Member, MemberId, MemberStatus as Answer, Membership, Operation,
    OperationKind, Ordinal, Owner, Phase, Pod, PodPhase, Purpose, Recovery, RecoveryPhase, Refusals,
    ResourceVersion, Role, RootPassword, StatefulSet, Target, Template, Uid, Unreadable, Version, Volume,
};
use crate::kinds::etcdcluster::plan::{Finding, plan};
use crate::kinds::etcdcluster::resources::tests::{cluster, plain};
use crate::kinds::etcdcluster::spec::Spec;

const NO_BACKUPS: &Backups =
    &Backups { success: None, failure: None, destination: None, is_elsewhere: false, since: None };

const CLUSTER: ClusterId = ClusterId(0xc1);

pub fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn handle(name: &str, ordinal: u32) -> Handle {
    Handle { uid: Uid(format!("{name}-{ordinal}")), resource_version: ResourceVersion("1".to_owned()) }
}

pub fn id(ordinal: u32) -> MemberId {
    MemberId(0xa0 + u64::from(ordinal))
}

pub fn answer(ordinal: u32) -> Answer {
    Answer {
        cluster_id: CLUSTER,
        member_id: id(ordinal),
        version: Version::new(6, 16),
        leader: Some(id(1)),
        is_learner: false,
        has_errors: false,
        raft_index: 100,
        raft_applied_index: 100,
        db_size: 4096,
        db_size_in_use: 2048,
        quota: 1 << 31,
        storage_version: Fact::Known(6),
        downgrade_target: Fact::Absent,
        has_saved_snapshot: Fact::Known(true),
        defragmented: Age::Fresh,
        falls_behind: false,
        corrupt: BTreeSet::new(),
    }
}

fn pod(ordinal: u32, template: Template, phase: PodPhase) -> Pod {
    Pod {
        handle: handle("pod", ordinal),
        owner: Owner::Ours,
        template,
        phase,
        is_deleting: false,
        startup_age: Age::PastDeadline,
        role: Some(Role::Voter),
        own_print: None,
    }
}

fn budget() -> Budget {
    Budget { handle: handle("budget", 0), owner: Owner::Ours, min_available: 2, is_current: true }
}

fn volume(ordinal: u32) -> Volume {
    Volume {
        handle: handle("volume", ordinal),
        owner: Owner::Ours,
        size: 10 << 30,
        capacity: None,
        hindrance: None,
        is_expandable: Fact::Known(true),
        is_deleting: false,
        is_retained: Fact::Unknown,
        is_set_aside: false,
    }
}

/// A cluster of three that serves.
#[expect(clippy::too_many_lines, reason = "one field of what is read a line")]
pub fn seen(of: &Spec) -> Observation {
    let template = of.desired(None).template;
    let all = || (0..3).map(Ordinal);
    let told = |ordinal: Ordinal| ConfigEntry {
        purpose: Purpose::Run,
        member: Some(id(ordinal.0)),
        volume: handle("volume", ordinal.0).uid,
        template,
        pod: None,
        raft_index: None,
        skips_check: false,
    };
    let member = |ordinal: Ordinal| Member {
        id: id(ordinal.0),
        ordinal: Some(ordinal),
        is_learner: false,
        is_started: true,
    };
    let membership = Membership { cluster_id: CLUSTER, members: all().map(member).collect() };
    let entries = all().map(|ordinal| (ordinal, told(ordinal))).collect();
    let pods = all().map(|ordinal| (ordinal, pod(ordinal.0, template, PodPhase::Up)));
    let set = StatefulSet {
        handle: handle("set", 0),
        owner: Owner::Ours,
        replicas: 3,
        template,
        has_our_guard: true,
        labels_voters: true,
        is_altered: false,
    };
    Observation {
        record: Record { cluster_id: Some(CLUSTER), operation: None, recovery: None },
        remembered: BTreeMap::new(),
        operation_age: Age::Fresh,
        health_age: Age::PastDeadline,
        quorum_loss_age: Age::PastDeadline,
        replacement_age: Age::PastDeadline,
        comparison_age: Age::Fresh,
        services: Fact::Known(Found::Current),
        certificates: Certificates::Disabled,
        certificate_secrets: None,
        stateful_set: Fact::Known(set),
        config: Fact::Known(Config {
            handle: handle("config", 0),
            owner: Owner::Ours,
            entries,
            is_altered: false,
        }),
        budget: Fact::Known(budget()),
        pods: Fact::Known(pods.collect()),
        volumes: Fact::Known(all().map(|ordinal| (ordinal, volume(ordinal.0))).collect()),
        statuses: all().map(|ordinal| (ordinal, Fact::Known(answer(ordinal.0)))).collect(),
        membership: Fact::Known(membership.clone()),
        last_membership: Fact::Known(membership),
        alarms: Fact::Known(Vec::new()),
        keyspace: Fact::Unknown,
        cluster_version: Fact::Known(6),
        auth: Fact::Known(false),
        root_password: Fact::Absent,
        audit: Fact::Unknown,
        backup_schedule: Fact::Known(Found::Current),
        backup: Fact::Absent,
        has_finalizer: true,
        refused: None,
        hindered: Hindered::default(),
        refusals: Refusals::default(),
    }
}

/// The last of three does not answer.
fn without_the_last(of: &Spec, phase: PodPhase) -> Observation {
    let mut seen = seen(of);
    seen.statuses.insert(Ordinal(2), Fact::Unknown);
    if let Fact::Known(pods) = &mut seen.pods
        && let Some(pod) = pods.get_mut(&Ordinal(2))
    {
        pod.phase = phase;
    }
    seen
}

fn after(previous: &EtcdClusterStatus, now: i64) -> StatusInputs<'_> {
    StatusInputs {
        previous,
        certificates: None,
        backups: NO_BACKUPS,
        hindrances: const { &BTreeMap::new() },
        now: second(now),
    }
}

pub fn status(cluster: &Spec, previous: &EtcdClusterStatus, seen: &Observation) -> EtcdClusterStatus {
    of(cluster, after(previous, 1), seen, &plan(&cluster.desired(None), seen))
}

fn said(status: &EtcdClusterStatus) -> BTreeMap<String, String> {
    let conditions = status.conditions.iter().flatten();
    let said =
        conditions.map(|one| (one.type_.clone(), format!("{} {}: {}", one.status, one.reason, one.message)));
    said.collect()
}

#[test]
fn a_cluster_that_serves_says_so() {
    let cluster = plain();
    let status = status(&cluster, &EtcdClusterStatus::default(), &seen(&cluster));
    let mut shown = serde_json::to_value(&status).unwrap();
    shown.as_object_mut().unwrap().remove("conditions");
    let member = |number: u32, leads: bool| {
        json!({
            "name": format!("c-{number}"), "id": format!("a{number}"), "role": "Voter", "version": "3.6.16",
            "healthy": true, "leader": leads, "dbSize": 4096, "dbSizeInUse": 2048, "raftIndex": 100,
        })
    };
    assert_eq!(
        shown,
        json!({
            "observedGeneration": 7,
            "clusterID": "c1",
            "version": "3.6.16",
            "clusterVersion": "3.6",
            "leader": "c-1",
            "replicas": 3,
            "readyReplicas": 3,
            "selector": names::selector_text(cluster.name()),
            "members": [member(0, false), member(1, true), member(2, false)],
            "endpoints": [
                "http://c-0.c.shop.svc:2379", "http://c-1.c.shop.svc:2379", "http://c-2.c.shop.svc:2379",
            ],
        })
    );
    let types: Vec<_> = status.conditions.iter().flatten().map(|one| one.type_.as_str()).collect();
    assert_eq!(types, ConditionType::ALL.iter().map(|about| about.as_str()).collect::<Vec<_>>());
    assert_eq!(
        said(&status),
        [
            ("Ready", "True MembersReady: 3 of 3 members serve"),
            ("Available", "True QuorumServes: 3 of 3 members serve"),
            ("Progressing", "False UpToDate: no change is under way"),
            ("Degraded", "False Healthy: all members serve and no alarm is armed"),
            ("QuorumLost", "False QuorumPresent: a majority of the voters answers"),
            ("BackupReady", "True NoBackups: no scheduled backups are asked for"),
            ("CertificatesReady", "True TLSDisabled: members and clients speak plain HTTP"),
            ("SpecValid", "True Valid: the rules of the gate hold"),
            ("Paused", "False NotPaused: reconciliation is not paused"),
        ]
        .map(|(about, said)| (about.to_owned(), said.to_owned()))
        .into()
    );
}

#[test]
fn why_root_has_not_its_password_is_reported_with_its_secret_and_without_the_password() {
    let mut cluster = plain();
    (cluster.authenticates, cluster.root_secret) = (true, Some("c-root".to_owned()));
    let mut seen = seen(&cluster);
    seen.certificates = Certificates::Valid;
    let off = |why: &str| {
        format!(
            "False RootPasswordUnset: secret c-root {why}: until it has a password for root, no client is let in"
        )
    };
    let unset = |why| Fact::Known(RootPassword::Unreadable(why));
    for (is_on, found, expected) in [
        (false, unset(Unreadable::Missing), off("is missing")),
        (false, unset(Unreadable::NoPassword), off("has no key password")),
        (
            true,
            unset(Unreadable::Empty),
            "False RootPasswordUnset: secret c-root has an empty password: until it has a password for root, root keeps \
             the password that it has"
                .to_owned(),
        ),
        (
            true,
            Fact::Known(RootPassword::Barred),
            "False RootPasswordUnset: root cannot be given the password in secret c-root: it was made as a user that \
             never has one"
                .to_owned(),
        ),
        (
            true,
            Fact::Known(RootPassword::Outdated { secret: handle("secret", 0) }),
            "False RootPasswordOutdated: root is about to be given the password in secret c-root".to_owned(),
        ),
        (
            true,
            Fact::Unknown,
            "Unknown Unreachable: whether root has the password in secret c-root could not be found out".to_owned(),
        ),
        (
            true,
            Fact::Known(RootPassword::Current),
            "True CertificatesValid: every certificate is there and valid".to_owned(),
        ),
    ] {
        (seen.auth, seen.root_password) = (Fact::Known(is_on), found);
        let status = status(&cluster, &EtcdClusterStatus::default(), &seen);
        assert_eq!(said(&status)["CertificatesReady"], expected);
    }
}

#[test]
fn nothing_is_written_while_nothing_notable_happens() {
    let cluster = plain();
    let mut seen = seen(&cluster);
    let first = status(&cluster, &EtcdClusterStatus::default(), &seen);
    let again =
        |seen: &Observation| of(&cluster, after(&first, 9), seen, &plan(&cluster.desired(None), seen));
    assert_eq!(again(&seen), first);
    for ordinal in 1..3 {
        let moved = Answer { raft_index: 9_100, raft_applied_index: 9_100, ..answer(ordinal) };
        seen.statuses.insert(Ordinal(ordinal), Fact::Known(moved));
    }
    let mut moved = Answer { raft_index: 9_100, raft_applied_index: 9_100, ..answer(0) };
    moved.db_size += 400;
    seen.statuses.insert(Ordinal(0), Fact::Known(moved.clone()));
    assert_eq!(again(&seen), first, "numbers that move with every write");
    seen.statuses.insert(Ordinal(0), Fact::Known(Answer { db_size: 4506, ..moved.clone() }));
    assert_ne!(again(&seen), first, "a database that has grown by a tenth");
    let many = Answer { raft_index: 10_100, raft_applied_index: 10_100, ..answer(0) };
    seen.statuses.insert(Ordinal(0), Fact::Known(many));
    assert_ne!(again(&seen), first, "many entries");
}

#[test]
fn a_member_that_does_not_answer_keeps_its_last_report() {
    let cluster = plain();
    let before = status(&cluster, &EtcdClusterStatus::default(), &seen(&cluster));
    let after = status(&cluster, &before, &without_the_last(&cluster, PodPhase::Failing(Cause::Flags)));
    let last = after.members.as_ref().unwrap().last().unwrap();
    assert_eq!(
        serde_json::to_value(last).unwrap(),
        json!({
            "name": "c-2", "id": "a2", "role": "Voter", "version": "3.6.16", "healthy": false, "leader": false,
            "dbSize": 4096, "dbSizeInUse": 2048, "raftIndex": 100,
        })
    );
    assert_eq!(after.ready_replicas, Some(2));
    assert_eq!(said(&after)["Degraded"], "True MemberDown: c-2 (etcd refuses its flags) does not serve");
    assert_eq!(said(&after)["Available"], "True QuorumServes: 2 of 3 members serve");
}

#[test]
fn a_member_of_another_identity_has_reported_nothing() {
    let cluster = plain();
    let before = status(&cluster, &EtcdClusterStatus::default(), &seen(&cluster));
    let mut seen = without_the_last(&cluster, PodPhase::Starting);
    if let Fact::Known(membership) = &mut seen.membership {
        membership.members[2].id = MemberId(0xbb);
        membership.members[2].is_started = false;
    }
    let after = status(&cluster, &before, &seen);
    let last = serde_json::to_value(after.members.as_ref().unwrap().last().unwrap()).unwrap();
    assert_eq!(
        last,
        json!({"name": "c-2", "id": "bb", "role": "Unstarted", "healthy": false, "leader": false})
    );
}

#[test]
fn what_cannot_be_found_out_stays_and_is_called_unknown() {
    let cluster = plain();
    let before = status(&cluster, &EtcdClusterStatus::default(), &seen(&cluster));
    let mut dark = seen(&cluster);
    dark.quorum_loss_age = Age::Fresh;
    for status in dark.statuses.values_mut() {
        *status = Fact::Unknown;
    }
    (dark.membership, dark.last_membership) = (Fact::Unknown, Fact::Unknown);
    (dark.alarms, dark.cluster_version) = (Fact::Unknown, Fact::Unknown);
    let after = status(&cluster, &before, &dark);
    for (kept, was) in [
        (&after.version, &before.version),
        (&after.cluster_version, &before.cluster_version),
        (&after.cluster_id, &before.cluster_id),
    ] {
        assert_eq!(kept, was);
    }
    assert_eq!((after.replicas, after.ready_replicas), (Some(3), Some(0)));
    assert_eq!(after.endpoints, before.endpoints);
    assert_eq!(after.leader, None);
    assert_eq!(after.members.as_ref().unwrap().len(), 3);
    assert_eq!(
        said(&after)["Available"],
        "Unknown Unreachable: no majority has confirmed the member list: c-0, c-1 and c-2 do not answer"
    );
}
