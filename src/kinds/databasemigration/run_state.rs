//! The state of a run, by its Job and pods. Pure.
//!
//! Guarantees: the report of a run is distinguished from a run without a report; a script in doubt stays in doubt, also
//! where its run was ended because it was late; a run whose container has not started says why, as far as that can be seen
//! without rights on Events and Secrets.

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
pub fn end(job: &Job) -> Option<&JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|one| matches!(one.type_.as_str(), "Complete" | "Failed") && one.status == "True")
}

/// How the run of a Job is, as of `now`.
pub fn of(job: &Job, pods: &[Pod], now: Timestamp) -> RunState {
    let Some(condition) = end(job) else { return RunState::Active(waiting(job, pods, now)) };
    let said = pods.iter().rev().find_map(said);
    let is_late = condition.reason.as_deref() == Some("DeadlineExceeded");
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
            let gone = || "its pod is gone, and what it had to say".to_owned();
            Ending::Silent(pods.iter().find_map(silence).unwrap_or_else(gone))
        }
    })
}

fn container(pod: &Pod) -> Option<&ContainerStatus> {
    let all = pod.status.as_ref()?.container_statuses.as_ref()?;
    all.iter().find(|status| status.name == CONTAINER)
}

fn state(pod: &Pod) -> Option<&ContainerState> {
    container(pod)?.state.as_ref()
}

/// Why the container of a run has not started.
fn waiting(job: &Job, pods: &[Pod], now: Timestamp) -> Option<String> {
    let since = |created: Option<Timestamp>| created.map(|created| now.duration_since(created));
    let is_slow = |age: Option<SignedDuration>| age.is_some_and(|age| age >= PATIENCE);
    let name = job.name_any();
    let Some(pod) = pods.first() else {
        // Of a pod that was there and is gone, the Job knows.
        let had_one = job.status.as_ref().is_some_and(|status| {
            [status.active, status.failed, status.succeeded].into_iter().flatten().any(|count| count > 0)
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
        serde_json::from_value(json!({"metadata": metadata, "status": {"conditions": conditions}})).unwrap()
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
    }

    #[test]
    fn the_report_of_a_run_is_distinguished_from_silence() {
        let terminated = |message: &str| {
            pod(&json!({"terminated": {"exitCode": 2, "reason": "Error", "message": message}}))
        };
        let mut result = RunResult::of("r", Outcome::Failed);
        let said = |result: &RunResult| ended("BackoffLimitExceeded", &[terminated(&result.line())]);
        assert_eq!(said(&result), Ending::Said(Box::new(result.clone())));
        let log = terminated("starting\nerror: the user name is empty\n");
        let Ending::Silent(why) = ended("BackoffLimitExceeded", &[log]) else { panic!() };
        assert!(why.contains("exit code 2: error: the user name is empty"), "{why}");
        assert_eq!(ended("DeadlineExceeded", &[]), Ending::Late(None));
        result.last_error = Some(LastError {
            id: None,
            statement: None,
            sql_state: None,
            class: Class::Interrupted,
            message: "the run was asked to end".to_owned(),
        });
        assert_eq!(
            ended("DeadlineExceeded", &[terminated(&result.line())]),
            Ending::Late(Some(Box::new(result.clone()))),
            "it was asked to end because it was late"
        );
        // The server ended a statement that may have been carried out in part.
        result.outcome = Outcome::InDoubt;
        result.in_doubt = Some(InDoubt { id: "002".to_owned(), statement: 1 });
        assert_eq!(
            ended("DeadlineExceeded", &[terminated(&result.line())]),
            Ending::Said(Box::new(result.clone())),
            "it is still not known how the script ended"
        );
    }
}
