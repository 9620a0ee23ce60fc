//! The state of a run, by its Job and pods. Pure.
//!
//! Guarantees: the report of a run counts as soon as its container has terminated, whatever else its pod runs and whatever
//! its Job says by then. A run without a report is one of which nothing is known. A script in doubt stays in doubt, also
//! when its run was late. A run that does not run says why, as far as that can be seen without rights on Events and Secrets.
//!
//! Assumes: since Kubernetes 1.31 the Job controller deletes the pods of a late Job, and gives them up, before the Job is
//! `Failed`. So the pod and its report may be gone by then.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod};
use kube::ResourceExt as _;

use super::names::CONTAINER;
use super::observation::{Ending, RunState};
use super::result::{Class, Outcome, RunResult};

/// How long the creation of a pod and its container may take before the delay is reported.
const PATIENCE: SignedDuration = SignedDuration::from_secs(30);

/// The condition of a Job that has ended.
#[must_use]
pub fn end(job: &Job) -> Option<&JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|one| matches!(one.type_.as_str(), "Complete" | "Failed") && one.status == "True")
}

/// How the run of a Job is, as of `now`.
#[must_use]
pub fn of(job: &Job, pods: &[Pod], now: Timestamp) -> RunState {
    if end(job).is_none() && !is_over(pods) {
        return RunState::Active(waiting(job, pods, now));
    }
    let mut pods: Vec<_> = pods.iter().collect();
    pods.sort_by_key(|pod| pod.creation_timestamp().map(|time| time.0));
    let said = pods.iter().rev().find_map(|pod| said(pod));
    let is_late = is_late(job, now);
    // Of a script in doubt the lateness says nothing: a person still has to look how it ended.
    let was_interrupted = |result: &RunResult| {
        let is_interruption =
            result.last_error.as_ref().is_some_and(|error| error.class == Class::Interrupted);
        result.outcome == Outcome::Failed && is_interruption
    };
    RunState::Ended(match said {
        Some(result) if is_late && was_interrupted(&result) => Ending::Late(Some(Box::new(result))),
        Some(result) => Ending::Said(Box::new(result)),
        None if is_late => Ending::Late(None),
        None => {
            let gone = || "its pod is gone, and its report with it".to_owned();
            Ending::Silent(pods.iter().rev().find_map(|pod| silence(pod)).unwrap_or_else(gone))
        }
    })
}

/// Whether the container of each pod has terminated: it is not started again. Other containers are no part of the run.
fn is_over(pods: &[Pod]) -> bool {
    let has_terminated = |pod: &Pod| state(pod).is_some_and(|state| state.terminated.is_some());
    !pods.is_empty() && pods.iter().all(has_terminated)
}

/// Whether the Job has no time left. Its controller deletes the pods first, and says so afterwards.
fn is_late(job: &Job, now: Timestamp) -> bool {
    let Some(status) = &job.status else { return false };
    let is_said = status.conditions.iter().flatten().any(|one| {
        matches!(one.type_.as_str(), "FailureTarget" | "Failed")
            && one.status == "True"
            && one.reason.as_deref() == Some("DeadlineExceeded")
    });
    let length = job.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
    let ran = status.start_time.as_ref().map(|start| now.duration_since(start.0));
    let is_over = ran.zip(length).is_some_and(|(ran, length)| ran >= SignedDuration::from_secs(length));
    is_said || end(job).is_none() && is_over
}

fn container(pod: &Pod) -> Option<&ContainerStatus> {
    let all = pod.status.as_ref()?.container_statuses.as_ref()?;
    all.iter().find(|status| status.name == CONTAINER)
}

fn state(pod: &Pod) -> Option<&ContainerState> {
    container(pod)?.state.as_ref()
}

/// Why no container of a run runs.
fn waiting(job: &Job, pods: &[Pod], now: Timestamp) -> Option<String> {
    if job.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true)) {
        return Some(format!(
            "its Job is suspended, and gatehouse does not suspend Jobs: set spec.suspend of Job {} to false",
            job.name_any()
        ));
    }
    let since = |created: Option<Timestamp>| created.map(|created| now.duration_since(created));
    let is_slow = |age: Option<SignedDuration>| age.is_some_and(|age| age >= PATIENCE);
    let name = job.name_any();
    let Some(pod) = pods.first() else {
        // Of a pod that was there and is gone, the Job knows.
        let had_one = job.status.as_ref().is_some_and(|status| {
            let counts = [status.active, status.failed, status.succeeded, status.terminating];
            let is_decided = |one: &JobCondition| {
                matches!(one.type_.as_str(), "FailureTarget" | "SuccessCriteriaMet") && one.status == "True"
            };
            counts.into_iter().flatten().any(|count| count > 0)
                || status.conditions.iter().flatten().any(is_decided)
        });
        let is_late = is_slow(since(job.creation_timestamp().map(|time| time.0)));
        return (is_late && !had_one).then(|| {
            format!(
                "no pod was made in {} s, as where a quota, a policy or a missing ServiceAccount refuses it: see kubectl \
                 describe job {name}",
                PATIENCE.as_secs()
            )
        });
    };
    let has_started =
        |pod: &Pod| state(pod).is_some_and(|state| state.running.is_some() || state.terminated.is_some());
    if pods.iter().any(|pod| has_started(pod) || pod.metadata.deletion_timestamp.is_some()) {
        return None;
    }
    let status = pod.status.as_ref()?;
    let unscheduled =
        status.conditions.iter().flatten().find(|one| one.type_ == "PodScheduled" && one.status == "False");
    if let Some(unscheduled) = unscheduled {
        return unscheduled.message.clone().or_else(|| unscheduled.reason.clone());
    }
    let waiting = state(pod).and_then(|state| state.waiting.as_ref());
    let reason = waiting.and_then(|waiting| waiting.reason.clone()).unwrap_or_default();
    if !matches!(reason.as_str(), "" | "ContainerCreating" | "PodInitializing") {
        let message = waiting.and_then(|waiting| waiting.message.clone());
        return Some(message.map_or_else(|| reason.clone(), |message| format!("{reason}: {message}")));
    }
    is_slow(since(pod.creation_timestamp().map(|time| time.0))).then(|| {
        format!(
            "its container is not made after {} s, as where what it mounts is missing ({}): see kubectl describe pod {}",
            PATIENCE.as_secs(),
            mounted(pod),
            pod.name_any()
        )
    })
}

/// The Secrets and the claim that a pod mounts, which the operator does not read.
fn mounted(pod: &Pod) -> String {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let mut names = BTreeSet::new();
    for volume in volumes {
        for source in volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten()) {
            if let Some(secret) = &source.secret {
                let keys = secret.items.iter().flatten().map(|item| item.key.as_str()).collect::<Vec<_>>();
                names.insert(format!("Secret {} with the keys {}", secret.name, keys.join(", ")));
            }
        }
        if let Some(claim) = &volume.persistent_volume_claim {
            names.insert(format!("PersistentVolumeClaim {}", claim.claim_name));
        }
    }
    if names.is_empty() {
        "a ConfigMap of this object".to_owned()
    } else {
        names.into_iter().collect::<Vec<_>>().join("; ")
    }
}

/// The container's report at its end.
fn said(pod: &Pod) -> Option<RunResult> {
    let message = state(pod)?.terminated.as_ref()?.message.as_deref()?;
    serde_json::from_str(message.trim()).ok()
}

/// How a container ended without a report.
fn silence(pod: &Pod) -> Option<String> {
    if let Some(terminated) = state(pod).and_then(|state| state.terminated.as_ref()) {
        let reason = terminated.reason.clone().unwrap_or_else(|| "Error".to_owned());
        // The kubelet takes the end of the log instead.
        let last = terminated.message.as_deref().and_then(|log| log.trim().lines().last());
        let last = last.map(|line| format!(": {line}")).unwrap_or_default();
        return Some(format!(
            "its container ended without a report: {reason}, exit code {}{last}",
            terminated.exit_code
        ));
    }
    let status = pod.status.as_ref()?;
    let why = status.reason.clone().or_else(|| status.message.clone())?;
    Some(format!("its pod ended without a report: {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::kinds::databasemigration::result::{InDoubt, LastError};

    const NOW: &str = "2026-11-24T12:00:40Z";

    fn job(conditions: &Value) -> Job {
        let metadata = json!({"name": "shop-1", "creationTimestamp": "2026-11-24T12:00:00Z"});
        let status = json!({"conditions": conditions, "startTime": "2026-11-24T12:00:00Z"});
        let spec = json!({"activeDeadlineSeconds": 60, "template": {}});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
    }

    fn pod(state: &Value) -> Pod {
        let items = json!([{"key": "password", "path": "password"}]);
        let volumes = json!([{"name": "credentials",
            "projected": {"sources": [{"secret": {"name": "shop-db", "items": items}}]}}]);
        let container = json!({"name": CONTAINER, "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": state});
        serde_json::from_value(json!({
            "metadata": {"name": "shop-1-x", "creationTimestamp": "2026-11-24T12:00:01Z"},
            "spec": {"containers": [], "volumes": volumes},
            "status": {"containerStatuses": [container]},
        }))
        .unwrap()
    }

    fn active(pods: &[Pod], now: &str) -> Option<String> {
        let RunState::Active(waiting) = of(&job(&json!([])), pods, now.parse().unwrap()) else { panic!() };
        waiting
    }

    fn ended(reason: &str, pods: &[Pod]) -> Ending {
        let conditions = json!([{"type": "Failed", "status": "True", "reason": reason}]);
        let RunState::Ended(ending) = of(&job(&conditions), pods, NOW.parse().unwrap()) else { panic!() };
        ending
    }

    #[test]
    fn a_container_that_does_not_start_says_why() {
        let creating = pod(&json!({"waiting": {"reason": "ContainerCreating"}}));
        assert_eq!(
            active(std::slice::from_ref(&creating), "2026-11-24T12:00:20Z"),
            None,
            "it may take a while"
        );
        let why = active(&[creating], NOW).unwrap();
        assert!(why.contains("Secret shop-db with the keys password") && why.contains("shop-1-x"), "{why}");
        let why = active(&[], NOW).unwrap();
        assert!(why.contains("no pod was made") && why.contains("describe job shop-1"), "{why}");
        let pull = json!({"waiting": {"reason": "ImagePullBackOff", "message": "not found"}});
        assert_eq!(active(&[pod(&pull)], "2026-11-24T12:00:02Z").unwrap(), "ImagePullBackOff: not found");
        assert_eq!(active(&[pod(&json!({"running": {}}))], NOW), None);
        let mut ending = pod(&json!({"waiting": {"reason": "ContainerCreating"}}));
        ending.metadata.deletion_timestamp = ending.metadata.creation_timestamp.clone();
        assert_eq!(active(&[ending], NOW), None, "it is being ended");
        let mut evicted = job(&json!([]));
        evicted.status.as_mut().unwrap().failed = Some(1);
        assert_eq!(of(&evicted, &[], NOW.parse().unwrap()), RunState::Active(None), "it had a pod");
        evicted.spec.as_mut().unwrap().suspend = Some(true);
        let RunState::Active(Some(why)) = of(&evicted, &[], NOW.parse().unwrap()) else { panic!() };
        assert!(why.contains("set spec.suspend of Job shop-1 to false"), "{why}");
    }

    fn terminated(message: &str) -> Pod {
        pod(&json!({"terminated": {"exitCode": 2, "reason": "Error", "message": message}}))
    }

    fn interrupted() -> RunResult {
        let mut result = RunResult::of("r", Outcome::Failed);
        result.last_error = Some(LastError {
            id: None,
            statement: None,
            sql_state: None,
            class: Class::Interrupted,
            message: "the run was asked to end".to_owned(),
        });
        result
    }

    #[test]
    fn a_report_counts_as_soon_as_the_container_has_terminated() {
        let done = RunResult::of("r", Outcome::Succeeded);
        let said = RunState::Ended(Ending::Said(Box::new(done.clone())));
        let at =
            |conditions: &Value, pods: &[Pod], now: &str| of(&job(conditions), pods, now.parse().unwrap());
        let reported = terminated(&done.line());
        let mut beside_a_sidecar = reported.clone();
        let sidecar = json!({"name": "proxy", "image": "", "imageID": "", "ready": true, "restartCount": 0,
            "state": {"running": {}}});
        let statuses = beside_a_sidecar.status.as_mut().unwrap().container_statuses.as_mut().unwrap();
        statuses.push(serde_json::from_value(sidecar).unwrap());
        beside_a_sidecar.status.as_mut().unwrap().phase = Some("Running".to_owned());
        for pods in [&reported, &beside_a_sidecar] {
            assert_eq!(at(&json!([]), std::slice::from_ref(pods), NOW), said);
        }
        for condition in ["FailureTarget", "SuccessCriteriaMet"] {
            let target = json!([{"type": condition, "status": "True", "reason": "DeadlineExceeded"}]);
            assert_eq!(at(&target, std::slice::from_ref(&reported), NOW), said, "{condition}");
            // The Job controller is not through yet, and the pod is gone or still at work.
            assert_eq!(at(&target, &[], NOW), RunState::Active(None), "{condition}");
            let working = pod(&json!({"running": {}}));
            assert_eq!(at(&target, &[working], NOW), RunState::Active(None), "{condition}");
        }
        // Another client took the labels off a pod, and the Job controller made a second pod for the same run.
        let working = pod(&json!({"running": {}}));
        assert_eq!(at(&json!([]), &[reported.clone(), working], NOW), RunState::Active(None));
        let mut first = terminated(&interrupted().line());
        first.metadata.creation_timestamp = serde_json::from_value(json!("2026-11-24T11:59:00Z")).unwrap();
        for pods in [[first.clone(), reported.clone()], [reported, first]] {
            assert_eq!(at(&json!([]), &pods, NOW), said, "the newest pod's report counts");
        }
        let silent = terminated("killed");
        let RunState::Ended(Ending::Silent(why)) = at(&json!([]), &[silent], NOW) else { panic!() };
        assert!(why.contains("without a report"), "{why}");
    }

    #[test]
    fn a_late_run_is_late_before_its_job_says_so() {
        let pods = [terminated(&interrupted().line())];
        let late = RunState::Ended(Ending::Late(Some(Box::new(interrupted()))));
        let at = |conditions: &Value, now: &str| of(&job(conditions), &pods, now.parse().unwrap());
        let target = json!([{"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded"}]);
        assert_eq!(at(&target, NOW), late);
        assert_eq!(at(&json!([]), "2026-11-24T12:01:00Z"), late);
        let drained = RunState::Ended(Ending::Said(Box::new(interrupted())));
        assert_eq!(at(&json!([]), NOW), drained, "its node was drained");
        let failed = json!([{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]);
        assert_eq!(at(&failed, "2026-11-24T12:02:00Z"), drained, "that was noticed after its time");
    }

    #[test]
    fn the_report_of_a_run_is_distinguished_from_silence() {
        let mut result = RunResult::of("r", Outcome::Failed);
        let said = |result: &RunResult| ended("BackoffLimitExceeded", &[terminated(&result.line())]);
        assert_eq!(said(&result), Ending::Said(Box::new(result.clone())));
        let log = terminated("starting\nerror: the user name is empty\n");
        let Ending::Silent(why) = ended("BackoffLimitExceeded", &[log]) else { panic!() };
        assert!(why.contains("exit code 2: error: the user name is empty"), "{why}");
        assert_eq!(ended("DeadlineExceeded", &[]), Ending::Late(None));
        result.last_error = interrupted().last_error;
        assert_eq!(
            ended("DeadlineExceeded", &[terminated(&result.line())]),
            Ending::Late(Some(Box::new(result.clone()))),
            "it was asked to end because it was late"
        );
        // The server ended a statement that may have been carried out in part.
        result.outcome = Outcome::InDoubt;
        result.in_doubt = Some(InDoubt { id: "002".to_owned(), statement: 1, run: None });
        assert_eq!(
            ended("DeadlineExceeded", &[terminated(&result.line())]),
            Ending::Said(Box::new(result.clone())),
            "it is still not known how the script ended"
        );
    }
}
