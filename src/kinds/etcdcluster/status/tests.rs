mod ready;
mod situations;

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::api::condition::State;
use crate::api::field::{Fault, Path, Reason};
use crate::kinds::etcdcluster::api::status::{condition, reason};
use crate::kinds::etcdcluster::api::v1::{BackupStatus, BackupSuccess};
use crate::kinds::etcdcluster::observation::{
    Age, Alarm, AlarmKind, Audit, Budget, Cause, Certificates, ClusterId, Config, ConfigEntry, Fact, Found,
    GrowthHindrance, Handle, Member, MemberId, MemberStatus as Answer, Membership, Operation, OperationKind,
    Ordinal, Owner, Phase, Pod, PodPhase, Purpose, Recovery, RecoveryPhase, Refusals, ResourceVersion, Role,
    RootPassword, StatefulSet, Target, Template, Uid, Unreadable, Version, Volume,
};
use crate::kinds::etcdcluster::plan::{Finding, plan};
use crate::kinds::etcdcluster::resources::tests::{cluster, plain};
use crate::kinds::etcdcluster::spec::Spec;

const NO_BACKUPS: &Backups = &Backups { success: None, failure: None, destination: None, since: None };

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
    };
    let volume = |ordinal: Ordinal| volume(ordinal.0);
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
        config: Fact::Known(Config { handle: handle("config", 0), owner: Owner::Ours, entries }),
        budget: Fact::Known(budget()),
        pods: Fact::Known(pods.collect()),
        volumes: Fact::Known(all().map(|ordinal| (ordinal, volume(ordinal))).collect()),
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
    StatusInputs { previous, certificates: None, backups: NO_BACKUPS, now: second(now) }
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
    shown.as_object_mut().unwrap().shift_remove("conditions");
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
    assert_eq!(types, condition::ALL);
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
fn why_root_has_not_its_password_is_told_with_its_secret_and_without_the_password() {
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
fn a_member_that_does_not_answer_stays_with_what_it_told_last() {
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
fn a_member_of_another_identity_has_told_nothing() {
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

#[test]
fn a_lost_quorum_is_named_and_how_it_comes_back() {
    let cluster = plain();
    let mut seen = without_the_last(&cluster, PodPhase::Up);
    seen.statuses.insert(Ordinal(1), Fact::Unknown);
    seen.membership = Fact::Unknown;
    let said = said(&status(&cluster, &EtcdClusterStatus::default(), &seen));
    assert_eq!(
        said["QuorumLost"],
        "True QuorumLost: fewer voters than a majority answer: c-1 and c-2 do not answer"
    );
    assert!(said["Degraded"].contains("no member is removed and no volume is wiped until they come back"));
    assert!(said["Available"].starts_with("False QuorumLost"));
}

#[test]
fn what_becomes_of_a_request_to_recover_is_told() {
    let asked = |text: Option<&str>, change: fn(&mut Observation)| {
        let mut cluster = plain();
        cluster.recovery = text.map(str::to_owned);
        let mut seen = without_the_last(&cluster, PodPhase::Up);
        seen.statuses.insert(Ordinal(1), Fact::Unknown);
        seen.membership = Fact::Unknown;
        change(&mut seen);
        let said = said(&status(&cluster, &EtcdClusterStatus::default(), &seen));
        (said["Degraded"].clone(), said["Progressing"].clone())
    };
    let as_it_is = |_: &mut Observation| {};
    let acted_on = |seen: &mut Observation| {
        seen.record.recovery = Some(Recovery {
            token: "auto".to_owned(),
            survivor: Some(Ordinal(0)),
            raft_index: 100,
            phase: RecoveryPhase::Done,
            pod: None,
        });
    };
    for (text, change, end) in [
        (
            None,
            as_it_is as fn(&mut Observation),
            "or a recovery is asked for by annotation gatehouse.dev/recover-quorum",
        ),
        (Some("c-2"), as_it_is, "the recovery that is asked for waits until c-2 answers as a voter"),
        (Some("auto"), acted_on, "was acted on: another text is another request"),
    ] {
        let (degraded, _) = asked(text, change);
        assert!(degraded.starts_with("True QuorumLost") && degraded.ends_with(end), "{degraded}");
    }
    let (degraded, _) = asked(Some("yes"), as_it_is);
    assert!(degraded.contains("annotation gatehouse.dev/recover-quorum must be auto or"), "{degraded}");
    let (_, progressing) = asked(Some("auto"), as_it_is);
    assert_eq!(
        progressing,
        "True Recovering: the data of c-0 are kept, up to entry 100 of the log; the other members are being stopped; \
         their volumes are kept; waiting for c-1 and c-2 to end"
    );
}

/// Two of three do not answer, and what is asked for by annotation.
fn without_a_quorum(cluster: &Spec) -> Observation {
    let mut seen = without_the_last(cluster, PodPhase::Up);
    seen.statuses.insert(Ordinal(1), Fact::Unknown);
    seen.membership = Fact::Unknown;
    seen
}

#[test]
fn nobody_is_led_to_a_recovery_of_data_in_memory() {
    let mut cluster = cluster(&json!({
        "replicas": 3, "version": "3.6.16", "tls": {"mode": "Disabled"}, "storage": {"medium": "Memory"},
    }));
    for request in [None, Some("auto"), Some("c-2")] {
        cluster.recovery = request.map(str::to_owned);
        let seen = without_a_quorum(&cluster);
        let degraded = said(&status(&cluster, &EtcdClusterStatus::default(), &seen))["Degraded"].clone();
        assert_eq!(
            degraded,
            "True QuorumLost: fewer voters than a majority answer: c-1 and c-2 do not answer; the quorum is back once a \
             majority answers: data in memory end with their pods, and no recovery can be made of them",
            "{request:?}"
        );
    }
}

#[test]
fn a_survivor_whose_claim_is_being_deleted_is_named_and_so_is_what_keeps_its_data() {
    for (request, expected) in [
        (
            Some("c-0"),
            "the recovery that is asked for does not begin from c-0, whose claim is being deleted: its data would end with \
             its pod",
        ),
        (
            Some("auto"),
            "the recovery that is asked for does not begin from c-0, whose claim is being deleted: its data would end with \
             its pod",
        ),
        (None, "or a recovery is asked for by annotation gatehouse.dev/recover-quorum"),
    ] {
        let mut cluster = plain();
        cluster.recovery = request.map(str::to_owned);
        let mut seen = without_a_quorum(&cluster);
        let Fact::Known(volumes) = &mut seen.volumes else { panic!("volumes") };
        volumes.get_mut(&Ordinal(0)).unwrap().is_deleting = true;
        let degraded = said(&status(&cluster, &EtcdClusterStatus::default(), &seen))["Degraded"].clone();
        assert!(degraded.contains(expected), "{degraded}");
        let way = "claim data-c-0 is being deleted, and its data go with the pod of c-0, which is neither restarted nor \
                   stopped; they stay where its PersistentVolume has the reclaim policy Retain";
        assert!(degraded.ends_with(way), "{degraded}");
    }
}

#[test]
fn an_earlier_spec_is_not_said_to_heal_data_that_differ() {
    let cluster = plain();
    let of = |cause| {
        let mut seen = without_the_last(&cluster, PodPhase::Failing(cause));
        seen.record.operation = Some(Operation {
            kind: OperationKind::Upgrade,
            target: Target::Version(Version::new(6, 16)),
            phase: Phase::Rolling,
        });
        said(&status(&cluster, &EtcdClusterStatus::default(), &seen))["Degraded"].clone()
    };
    let heals = "; revert the spec to recover";
    let (image, inconsistent) = (of(Cause::Image), of(Cause::Inconsistent));
    assert!(image.starts_with("True UpgradeStalled") && image.ends_with(heals), "{image}");
    assert!(inconsistent.starts_with("True UpgradeStalled"), "{inconsistent}");
    assert!(
        inconsistent.contains("it cannot tell whose are wrong") && !inconsistent.contains(heals),
        "{inconsistent}"
    );
}

#[test]
fn alarms_and_strangers_are_named() {
    let cluster = plain();
    let with = |kind, member| {
        let mut seen = seen(&cluster);
        seen.alarms = Fact::Known(vec![Alarm { member, kind }]);
        status(&cluster, &EtcdClusterStatus::default(), &seen)
    };
    let full = with(AlarmKind::NoSpace, id(1));
    assert_eq!(
        said(&full)["Degraded"],
        "True DatabaseQuotaExceeded: the database of c-1 has reached its quota, etcd takes no writes"
    );
    assert_eq!(full.members.unwrap()[1].healthy, Some(false));
    assert_eq!(
        said(&with(AlarmKind::Corrupt, MemberId(0)))["Degraded"],
        "True Corrupt: etcd suspects the data of a member: gatehouse compares all members' before it replaces one"
    );
    let mut seen = seen(&cluster);
    seen.statuses.insert(Ordinal(2), Fact::Known(Answer { cluster_id: ClusterId(0xd), ..answer(2) }));
    assert_eq!(
        said(&status(&cluster, &EtcdClusterStatus::default(), &seen))["Degraded"],
        "True ClusterIDMismatch: c-2 is not of etcd cluster c1: nothing is changed until a person has looked"
    );
}

#[test]
fn members_whose_data_differ_are_named_and_at_which_revision() {
    let cluster = plain();
    let with = |minority: &[u32]| {
        let minority = minority.iter().copied().map(Ordinal).collect();
        let mut seen = seen(&cluster);
        seen.audit = Fact::Known(Audit::Different { revision: 9, minority });
        said(&status(&cluster, &EtcdClusterStatus::default(), &seen))
    };
    let named = with(&[2]);
    assert_eq!(named["Degraded"], "True Corrupt: the data of c-2 differ from the others' at revision 9");
    assert_eq!(named["Progressing"], "False UpToDate: no change is under way: the data of members differ");
    assert_eq!(
        with(&[])["Degraded"],
        "True Corrupt: the members' data differ at revision 9, and it is not known whose are wrong"
    );
}

#[test]
fn volumes_that_cannot_grow_are_named() {
    let cluster = cluster(&json!({
        "replicas": 3, "version": "3.6.16", "tls": {"mode": "Disabled"}, "storage": {"size": "20Gi"},
    }));
    let with = |expandable: Fact<bool>| {
        let mut seen = seen(&cluster);
        let Fact::Known(volumes) = &mut seen.volumes else { panic!("volumes") };
        for volume in volumes.values_mut().take(2) {
            volume.is_expandable = expandable;
        }
        for volume in volumes.values_mut().skip(2) {
            volume.size = 20 << 30;
        }
        said(&status(&cluster, &EtcdClusterStatus::default(), &seen))["SpecValid"].clone()
    };
    assert_eq!(
        with(Fact::Known(false)),
        "True VolumeCannotGrow: data-c-0 and data-c-1 stay smaller than storage.size: \
         the StorageClass lets no volume grow"
    );
    assert_eq!(with(Fact::Known(true)), "True Valid: the rules of the gate hold");
    assert_eq!(with(Fact::Unknown), "True Valid: the rules of the gate hold");
}

#[test]
fn volumes_that_have_not_grown_yet_are_named() {
    let cluster = plain();
    let mut seen = seen(&cluster);
    let mut with = |capacity, hindrance| {
        let Fact::Known(volumes) = &mut seen.volumes else { panic!("volumes") };
        volumes.values_mut().take(2).for_each(|volume| volume.capacity = capacity);
        volumes.values_mut().take(1).for_each(|volume| volume.hindrance = hindrance);
        let is_reached = plan(&cluster.desired(None), &seen).summary.is_reached;
        let said = said(&status(&cluster, &EtcdClusterStatus::default(), &seen))["Progressing"].clone();
        (is_reached, said)
    };
    assert_eq!(with(Some(10 << 30), None), (true, "False UpToDate: no change is under way".to_owned()));
    let growing =
        "False UpToDate: no change is under way: data-c-0 and data-c-1 have not grown to storage.size yet";
    assert_eq!(with(Some(5 << 30), None), (false, growing.to_owned()));
    for (hindrance, why) in [
        (GrowthHindrance::FileSystem, "the file system grows on the node, or when the pod is started again"),
        (GrowthHindrance::Error, "what drives the volume reports an error: see its events"),
    ] {
        assert_eq!(with(Some(5 << 30), Some(hindrance)), (false, format!("{growing}; of data-c-0, {why}")));
    }
}

#[test]
fn when_a_member_is_defragmented_is_written_before_and_kept() {
    let cluster = cluster(&json!({
        "replicas": 3, "version": "3.6.16", "tls": {"mode": "Disabled"}, "storage": {"size": "10Gi"},
        "maintenance": {"defragment": {}},
    }));
    let mut seen = seen(&cluster);
    let Some(Fact::Known(told)) = seen.statuses.get_mut(&Ordinal(2)) else { panic!("a member") };
    (told.db_size, told.db_size_in_use, told.defragmented) = (1 << 30, 1 << 20, Age::PastDeadline);
    let times = |status: &EtcdClusterStatus| {
        let members = status.members.clone().unwrap_or_default().into_iter();
        members.map(|member| member.defragmented_at.map(|time| time.0)).collect::<Vec<_>>()
    };
    let before = status(&cluster, &EtcdClusterStatus::default(), &seen);
    assert_eq!(times(&before), [None, None, Some(second(1))]);
    let recent = |seen: &mut Observation, now| {
        crate::kinds::etcdcluster::resources::record::limit_rates(&before, seen, second(now));
        seen.status(Ordinal(2)).is_known_and(|told| !told.defragmented.is_past())
    };
    assert!(!recent(&mut seen.clone(), 601) && recent(&mut seen.clone(), 600));
    let full = Alarm { member: MemberId(0xa2), kind: AlarmKind::NoSpace };
    let mut full = Observation { alarms: Fact::Known(vec![full]), ..seen.clone() };
    assert!(recent(&mut full.clone(), 60) && !recent(&mut full, 61), "etcd takes no writes until then");
    assert!(recent(&mut seen, 61));
    assert_eq!(times(&status(&cluster, &before, &seen)), times(&before), "not again");
}

#[test]
fn data_that_are_lost_are_lost_since_the_quorum_was() {
    let cluster = plain();
    let mut seen = seen(&cluster);
    for ordinal in (0..3).map(Ordinal) {
        seen.statuses.insert(ordinal, Fact::Unknown);
        let Fact::Known(pods) = &mut seen.pods else { panic!("pods") };
        pods.get_mut(&ordinal).unwrap().phase = PodPhase::Failing(Cause::DataLost);
    }
    (seen.membership, seen.alarms) = (Fact::Unknown, Fact::Unknown);
    let at = |previous: &EtcdClusterStatus, now| {
        of(&cluster, after(previous, now), &seen, &plan(&cluster.desired(None), &seen))
    };
    let first = at(&EtcdClusterStatus::default(), 1);
    let later = at(&first, 5000);
    assert!(said(&first)["Degraded"].contains("since 1970-01-01T00:00:01Z"), "{}", said(&first)["Degraded"]);
    assert_eq!(said(&later)["Degraded"], said(&first)["Degraded"]);
    let none = "no backup of them is known (docs/etcdcluster/tasks.md#restore-by-hand)";
    assert!(said(&first)["Degraded"].ends_with(none), "{}", said(&first)["Degraded"]);
    let success = BackupSuccess { name: Some("r7.db".to_owned()), ..BackupSuccess::default() };
    let backup = Some(BackupStatus { last_success: Some(success), last_failure: None });
    let known = said(&at(&EtcdClusterStatus { backup, ..first }, 5000))["Degraded"].clone();
    let way = "restore backup r7.db into a new cluster by hand (docs/etcdcluster/tasks.md#restore-by-hand)";
    assert!(known.ends_with(way), "{known}");
}

#[test]
fn what_is_wrong_with_an_object_that_cannot_be_read_is_told_without_its_values() {
    let fault = |field| Fault::new(Path::spec().at(field), Reason::TypeInvalid, "is hunter2");
    let told = |faults: &[Fault]| {
        let statements = undecodable(faults).into_iter();
        statements.map(|one| (one.about, one.state, one.reason, one.message)).collect::<Vec<_>>()
    };
    let expected = |message: &str| {
        ["Ready", "SpecValid"].map(|about| (about, State::False, "SpecInvalid", message.to_owned())).to_vec()
    };
    assert_eq!(
        told(&[fault("replicas"), fault("storage")]),
        expected(
            "this release cannot read the object at spec.replicas and spec.storage: nothing is done until it is changed"
        )
    );
    assert_eq!(
        told(&[]),
        expected("this release cannot read the object: nothing is done until it is changed")
    );
}

#[test]
fn a_name_that_is_taken_is_named() {
    let cluster = plain();
    let mut seen = seen(&cluster);
    if let Fact::Known(config) = &mut seen.config {
        config.owner = Owner::Foreign;
    }
    assert_eq!(
        said(&status(&cluster, &EtcdClusterStatus::default(), &seen))["Degraded"],
        "True NameTaken: ConfigMap c-config exists and is not controlled by this object"
    );
}

#[test]
fn a_version_that_cannot_be_reached_is_refused_in_words_and_not_observed() {
    let of = |version: &str| {
        let cluster = cluster(&json!({"replicas": 3, "version": version, "tls": {"mode": "Disabled"}}));
        let mut seen = seen(&plain());
        let template = Template { version: Version::new(5, 9), ..cluster.desired(None).template };
        if let (Fact::Known(set), Fact::Known(pods)) = (&mut seen.stateful_set, &mut seen.pods) {
            set.template = template;
            for pod in pods.values_mut() {
                pod.template = template;
            }
        }
        seen.cluster_version = Fact::Known(5);
        for ordinal in 0..3 {
            let old = Answer { version: Version::new(5, 9), ..answer(ordinal) };
            seen.statuses.insert(Ordinal(ordinal), Fact::Known(old));
        }
        let status = status(&cluster, &EtcdClusterStatus::default(), &seen);
        assert_eq!(status.observed_generation, cluster.metadata.generation, "{version}");
        let said = said(&status);
        assert_eq!(said["Ready"], said["SpecValid"], "{version}");
        said["SpecValid"].clone()
    };
    assert_eq!(
        of("3.7.3"),
        "False SpecInvalid: cannot upgrade from 3.5.9 to 3.7.3: upgrade one minor version at a time"
    );
    assert_eq!(
        of("3.6.16"),
        "False SpecInvalid: cannot upgrade from 3.5.9 to 3.6.16 without losing data: upgrade to 3.5.32 first"
    );
    assert_eq!(of("3.9.0"), "False SpecInvalid: version 3.9.0 is not among 3.5.*, 3.6.* and 3.7.*");
}

#[test]
fn an_operation_says_what_it_does_and_what_it_waits_for() {
    let cluster = plain();
    let say = |kind, target, reason, phase| {
        let seen = without_the_last(&cluster, phase);
        let mut plan = plan(&cluster.desired(None), &seen);
        plan.record.operation = Some(Operation { kind, target, phase: Phase::Adding });
        plan.summary.findings =
            vec![Finding { about: condition::PROGRESSING, state: State::True, reason, ordinal: None }];
        said(&of(&cluster, after(&EtcdClusterStatus::default(), 1), &seen, &plan))["Progressing"].clone()
    };
    let third = Target::Member(Ordinal(2));
    assert_eq!(
        say(
            OperationKind::ScaleOut,
            third,
            reason::SCALING_OUT,
            PodPhase::Pending(Some(Cause::Unschedulable))
        ),
        "True ScalingOut: c-2 is being added: no node takes its pod"
    );
    assert_eq!(
        say(OperationKind::ScaleIn, third, reason::SCALING_IN, PodPhase::Up),
        "True ScalingIn: c-2 is being removed"
    );
    let version = Target::Version(Version::new(6, 17));
    assert_eq!(
        say(OperationKind::Upgrade, version, reason::UPGRADING, PodPhase::Up),
        "True Upgrading: members are being moved to 3.6.17, one at a time: c-2 does not serve"
    );
}

#[test]
fn messages_are_for_people() {
    let cluster = plain();
    let mut all = vec![status(&cluster, &EtcdClusterStatus::default(), &seen(&cluster))];
    for cause in
        [Cause::Unschedulable, Cause::Image, Cause::Killed, Cause::DataLost, Cause::Removed, Cause::Other]
    {
        let seen = without_the_last(&cluster, PodPhase::Failing(cause));
        all.push(status(&cluster, &EtcdClusterStatus::default(), &seen));
    }
    for condition in all.iter().flat_map(|status| status.conditions.iter().flatten()) {
        let message = &condition.message;
        assert!(!message.ends_with('.') && !message.is_empty(), "{message}");
        assert!(
            message.starts_with(char::is_lowercase) || message.starts_with(char::is_numeric),
            "{message}"
        );
    }
}
