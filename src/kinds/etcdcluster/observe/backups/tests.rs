use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::altered::backup_schedule;
use super::super::services::Applied;
use super::*;
use crate::controllers::manifest::Manifest;
use crate::kinds::etcdcluster::backup::manifest::{Manifest as Told, Owner as Whose, Success};
use crate::kinds::etcdcluster::observation::Found;
use crate::kinds::etcdcluster::resources::backup;
use crate::kinds::etcdcluster::resources::tests::{GUARD, cluster};
use crate::kinds::etcdcluster::spec::Spec;

const UID: &str = "u-1";

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A Job of the cluster `c`, as it ended.
fn job(name: &str, owner: (&str, &str, &str), status: &Value) -> Job {
    let (kind, owner, uid) = owner;
    let reference = json!({"apiVersion": "v1", "kind": kind, "name": owner, "uid": uid, "controller": true});
    let metadata = json!({"name": name, "ownerReferences": [reference]});
    serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
}

const CLUSTER: (&str, &str, &str) = ("EtcdCluster", "c", UID);
const CRON_JOB: (&str, &str, &str) = ("CronJob", "c-backup", "u-2");

/// Uids of those whose Jobs count.
const OWNERS: [&str; 2] = ["u-2", UID];

fn complete(at: i64) -> Value {
    let condition = json!({"type": "Complete", "status": "True", "lastTransitionTime": second(at + 1)});
    json!({"completionTime": second(at), "conditions": [condition]})
}

fn failed(at: i64) -> Value {
    json!({"conditions": [{
        "type": "Failed", "status": "True", "lastTransitionTime": second(at),
        "reason": "DeadlineExceeded", "message": "Job was active longer than specified deadline",
    }]})
}

fn pod(job: &str, at: i64, message: &str) -> Pod {
    let ended = json!({"exitCode": 1, "finishedAt": second(at), "message": message});
    let containers =
        [container("a-mesh", &json!({"running": {}})), container("backup", &json!({"terminated": ended}))];
    serde_json::from_value(json!({
        "metadata": {"name": format!("{job}-{at}"), "labels": {JOB: job}},
        "status": {"containerStatuses": containers},
    }))
    .unwrap()
}

fn container(name: &str, state: &Value) -> Value {
    json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state})
}

fn success(revision: i64) -> String {
    let manifest = Told {
        name: format!("r{revision}.db"),
        time: second(1),
        cluster: Whose { namespace: "shop".into(), name: "c".into(), uid: UID.into() },
        cluster_id: "c1".into(),
        endpoint: "http://c-0".into(),
        version: "3.6.16".into(),
        revision,
        sha256: "ab".into(),
        size: 512,
        number: 3,
        on_demand: false,
    };
    Report::Succeeded(Box::new(Success { manifest, removed: 0, not_removed: None })).line()
}

fn awaited_of(job: Job) -> Fact<Backup> {
    awaited(&Fact::Known(job), UID)
}

#[test]
fn an_upgrade_waits_for_its_job() {
    assert_eq!(awaited(&Fact::Absent, UID), Fact::Absent);
    assert_eq!(awaited(&Fact::Unknown, UID), Fact::Unknown);
    assert_eq!(awaited_of(job("b", CLUSTER, &json!({}))), Fact::Known(Backup::Running));
    assert_eq!(awaited_of(job("b", CLUSTER, &failed(5))), Fact::Known(Backup::Failed));
    assert_eq!(awaited_of(job("b", CLUSTER, &complete(5))), Fact::Known(Backup::Recent));
}

#[test]
fn a_job_that_is_another_ones_or_on_its_way_out_is_no_backup_and_none_is_begun() {
    for owner in [("EtcdCluster", "c", "before"), ("Deployment", "x", "y")] {
        assert_eq!(awaited_of(job("b", owner, &complete(5))), Fact::Known(Backup::Foreign));
    }
    let mut leaving = job("b", CLUSTER, &complete(5));
    leaving.metadata.deletion_timestamp = Some(Time(second(9)));
    assert_eq!(awaited_of(leaving), Fact::Known(Backup::Failed));
}

#[test]
fn the_last_success_and_the_last_failure_are_reported_with_what_their_pods_said() {
    let jobs = [
        job("one", CRON_JOB, &complete(10)),
        job("two", CRON_JOB, &complete(20)),
        job("three", CLUSTER, &failed(15)),
        job("four", CRON_JOB, &json!({"active": 1})),
        job("stray", ("Deployment", "x", "y"), &complete(99)),
        job("before", ("CronJob", "c-backup", "u-0"), &complete(98)),
    ];
    let failure = Report::Failed { message: "no member answers".to_owned() }.line();
    let pods = [
        pod("one", 10, &success(1)),
        pod("two", 20, &success(2)),
        pod("three", 13, "panicked"),
        pod("three", 14, &failure),
    ];
    let (success, failure) = told(&jobs, &pods, &OWNERS);
    let success = success.unwrap();
    assert_eq!((success.time, success.name.as_deref()), (Some(Time(second(20))), Some("r2.db")));
    assert_eq!((success.revision, success.size, success.hash.as_deref()), (Some(2), Some(512), Some("ab")));
    let failure = failure.unwrap();
    assert_eq!(failure.time, Some(Time(second(15))));
    assert_eq!(failure.message.as_deref(), Some("Job three: no member answers"));
}

#[test]
fn a_job_without_pods_tells_what_is_known_of_itself() {
    let jobs = [job("one", CRON_JOB, &complete(10)), job("two", CRON_JOB, &failed(20))];
    let (success, failure) = told(&jobs, &[], &OWNERS);
    assert_eq!(success, Some(BackupSuccess { time: Some(Time(second(10))), ..BackupSuccess::default() }));
    let why = "Job two: DeadlineExceeded: Job was active longer than specified deadline";
    assert_eq!(failure.unwrap().message.as_deref(), Some(why));
}

#[test]
fn a_job_that_ended_later_than_what_is_said_is_news() {
    let at = |second| BackupStatus {
        last_success: Some(BackupSuccess { time: Some(Time(second)), ..BackupSuccess::default() }),
        last_failure: None,
    };
    let done = job("one", CRON_JOB, &complete(10));
    assert!(is_news(&done, None) && is_news(&done, Some(&at(second(9)))));
    assert!(!is_news(&done, Some(&at(second(10)))));
    assert!(is_news(&job("two", CRON_JOB, &failed(5)), Some(&at(second(10)))));
    assert!(!is_news(&job("three", CRON_JOB, &json!({})), None));
}

fn asked(claim: &str) -> Spec {
    cluster(&json!({"backup": {"destination": {"persistentVolumeClaim": {"claimName": claim}}}}))
}

fn wanted(image: &str) -> Manifest {
    let spec = asked("b");
    let status = json!({"clusterID": "c1", "endpoints": ["http://c-0:2379"]});
    let status = serde_json::from_value(status).unwrap();
    backup::cron_job(&spec, Some(&status), false, image).unwrap()
}

fn made(manifest: &Manifest) -> CronJob {
    serde_json::from_value(manifest.object.clone()).unwrap()
}

#[test]
fn what_was_taken_to_another_destination_is_not_credited() {
    let ours = made(&wanted(GUARD));
    let job = |cron_job: &CronJob| Job {
        spec: cron_job.spec.as_ref().unwrap().job_template.spec.clone(),
        ..Job::default()
    };
    let (same, other) = (asked("b"), asked("other"));
    let [same, other] = [&same, &other].map(|spec| spec.backup_destination().unwrap());
    let moved = Destination { path: "elsewhere".to_owned(), ..same.clone() };
    assert!(goes_to(&job(&ours), same) && !goes_to(&job(&ours), other) && !goes_to(&job(&ours), &moved));
    assert!(!goes_to(&Job::default(), same));
    let mut foreign = ours.clone();
    foreign.metadata.owner_references = None;
    let of = |found: &Fact<CronJob>, asked: &Destination| is_elsewhere(found, asked, UID);
    let known = Fact::Known(ours);
    assert!(!of(&known, same) && of(&known, other) && of(&known, &moved));
    assert!(of(&Fact::Absent, same), "where it had backups go is not known");
    assert!(!of(&Fact::Unknown, other) && !of(&Fact::Known(foreign), other));
}

#[test]
fn what_takes_backups_is_made_put_right_and_taken_away_and_anothers_is_left() {
    let another = wanted("another:1");
    let wanted = wanted(GUARD);
    let ours = made(&wanted);
    let mut foreign = ours.clone();
    foreign.metadata.owner_references = None;
    let outdated = made(&another);
    let schedule = |wanted: Option<&Manifest>, found: &Fact<CronJob>| {
        backup_schedule(wanted, found, UID, (&mut Applied::default(), Instant::now()))
    };
    let of = |wanted, found: &CronJob| schedule(wanted, &Fact::Known(found.clone()));
    assert_eq!(schedule(Some(&wanted), &Fact::Absent), Fact::Known(Found::Outdated));
    assert_eq!(of(Some(&wanted), &ours), Fact::Known(Found::Current));
    assert_eq!(of(Some(&wanted), &outdated), Fact::Known(Found::Outdated));
    assert_eq!(of(Some(&wanted), &foreign), Fact::Known(Found::Foreign));
    assert_eq!(schedule(None, &Fact::Absent), Fact::Known(Found::Current));
    assert_eq!(of(None, &ours), Fact::Known(Found::Outdated));
    assert_eq!(of(None, &foreign), Fact::Known(Found::Current));
    assert_eq!(schedule(None, &Fact::Unknown), Fact::Unknown);
}

#[test]
fn a_cron_job_that_another_client_changes_each_time_is_left_for_a_while() {
    let (third, another) = (wanted("third:1"), wanted("another:1"));
    let wanted = wanted(GUARD);
    let (changed, sound) = (made(&another), made(&wanted));
    let (begun, mut applied) = (Instant::now(), Applied::default());
    let mut of = |wanted: &Manifest, found: &CronJob, second| {
        let now = begun + Duration::from_secs(second);
        let state = backup_schedule(Some(wanted), &Fact::Known(found.clone()), UID, (&mut applied, now));
        if state == Fact::Known(Found::Outdated) {
            applied.count();
        }
        state
    };
    assert_eq!(of(&wanted, &sound, 0), Fact::Known(Found::Current));
    for second in 1..=3 {
        assert_eq!(of(&wanted, &changed, second), Fact::Known(Found::Outdated));
    }
    assert_eq!(of(&wanted, &changed, 4), Fact::Known(Found::Current), "it is left for a while");
    assert_eq!(of(&third, &changed, 5), Fact::Known(Found::Outdated), "something else is wanted");
    assert_eq!(of(&third, &changed, 700), Fact::Known(Found::Outdated), "it is tried again");
}

#[test]
fn what_takes_backups_is_as_it_is_since_we_wrote_to_it_last() {
    let entry = |manager: &str, subresource: Value, at| {
        let time = second(at);
        json!({"manager": manager, "operation": "Apply", "subresource": subresource, "time": time})
    };
    let of = |entries: Vec<Value>| {
        let metadata = json!({"creationTimestamp": second(1), "managedFields": entries});
        written(&serde_json::from_value(metadata).unwrap())
    };
    assert_eq!(of(vec![]), Some(second(1)));
    let entries = vec![
        entry(MANAGER, Value::Null, 5),
        entry(MANAGER, json!("status"), 6),
        entry("kubectl", Value::Null, 7),
    ];
    assert_eq!(of(entries), Some(second(5)));
    assert_eq!(written(&ObjectMeta::default()), None);
}

#[test]
fn a_claim_that_is_pending_is_not_called_unavailable() {
    let of = |claim: Value| unavailable(&Fact::Known(serde_json::from_value(claim).unwrap()));
    assert_eq!(of(json!({"metadata": {}})), None);
    for phase in ["Pending", "Bound"] {
        assert_eq!(of(json!({"metadata": {}, "status": {"phase": phase}})), None);
    }
    let going = json!({"metadata": {"deletionTimestamp": second(1)}, "status": {"phase": "Bound"}});
    assert_eq!(of(going), Some(Unavailable::Terminating));
    assert_eq!(of(json!({"metadata": {}, "status": {"phase": "Lost"}})), Some(Unavailable::Lost));
    assert_eq!(unavailable(&Fact::Absent), Some(Unavailable::Missing));
    assert_eq!(unavailable(&Fact::Unknown), None);
}
