//! The phase of a pod, and why it makes no progress. Pure.
//!
//! Guarantees: a pod is called waiting only while its guard runs, and pending only before that: in both etcd does not
//! run, and has not been let start. What is unclear is starting.
//! Never: takes a word for a loss of data that another client could have put there. Of a log only what etcd says when
//! it gives up is read, since other lines quote what clients send.

use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, Pod, PodStatus};

use crate::kinds::etcdcluster::etcd::log::Line;
use crate::kinds::etcdcluster::observation::{Cause, PodPhase};
use crate::kinds::etcdcluster::{last_words as words, names};

/// Waiting reasons that mean that an image cannot be had.
const IMAGE: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
];

/// Waiting reasons that mean that a container cannot be made of what the pod says.
const CONTAINER: [&str; 4] =
    ["CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError"];

/// Why the kubelet waits before it starts a container once more.
const BACK_OFF: &str = "CrashLoopBackOff";

/// Exit codes of a process that was killed, or stopped.
const KILLED: [i32; 2] = [137, 143];

/// What the guard begins its last words with.
const OF_GUARD: [(&str, Cause); 3] =
    [("DataLost: ", Cause::DataLost), ("DataForeign: ", Cause::DataForeign), ("NoRoom: ", Cause::NoRoom)];

/// What etcd says when it gives up over its data: of its log, of its snapshots, and bbolt of its file.
const OF_DATA: [&str; 10] = [
    "crc mismatch",
    "cannot be repaired",
    "snap: snapshot file doesn't exist",
    "failed to find database snapshot file",
    "invalid database",
    "is out of range [lastIndex(",
    "already freed",
    "multiple references",
    "invalid page type",
    "invalid freelist page",
];

/// What etcd logs once another member has told it that it was removed. It ends by itself then, often without an error:
/// then the kubelet keeps no words of it.
const OF_REMOVAL: &str = "server error: the member has been permanently removed from the cluster";

/// What etcd says when it gives up over its flags.
const OF_FLAGS: [&str; 4] =
    ["error verifying flags", "unknown flag", "flag provided but not defined", "failed to verify flags"];

/// How far a pod has come.
pub fn of(pod: &Pod) -> PodPhase {
    let Some(status) = &pod.status else { return PodPhase::Pending(None) };
    if matches!(status.phase.as_deref(), Some("Failed" | "Succeeded")) {
        return PodPhase::Terminal(end(status));
    }
    let Some(guard) = find(status.init_container_statuses.as_deref(), names::GUARD) else {
        return PodPhase::Pending(unscheduled(status));
    };
    match stage(guard) {
        Stage::Running => PodPhase::Waiting,
        Stage::Unborn(cause) => PodPhase::Pending(cause.or_else(|| unscheduled(status))),
        Stage::Failing(cause) => PodPhase::Failing(cause),
        Stage::Ended => etcd(find(status.container_statuses.as_deref(), names::ETCD)),
    }
}

/// How far a pod has come whose guard has let etcd start.
fn etcd(container: Option<&ContainerStatus>) -> PodPhase {
    let Some(container) = container else { return PodPhase::Starting };
    match stage(container) {
        Stage::Running if container.started == Some(true) => PodPhase::Up,
        // Its guard is through: it starts as soon as it can, so it is not pending.
        Stage::Unborn(Some(cause)) | Stage::Failing(cause) => PodPhase::Failing(cause),
        Stage::Running | Stage::Ended | Stage::Unborn(None) => PodPhase::Starting,
    }
}

/// Where a container is.
enum Stage {
    /// It has not run, and why it does not.
    Unborn(Option<Cause>),
    Running,
    Failing(Cause),
    /// It has ended well.
    Ended,
}

fn stage(container: &ContainerStatus) -> Stage {
    let last = || terminated(container.last_state.as_ref());
    match &container.state {
        Some(ContainerState { running: Some(_), .. }) => Stage::Running,
        Some(ContainerState { terminated: Some(ended), .. }) if ended.exit_code == 0 => Stage::Ended,
        Some(ContainerState { terminated: Some(ended), .. }) => Stage::Failing(cause(ended)),
        Some(ContainerState { waiting: Some(waiting), .. }) => {
            let reason = waiting.reason.as_deref().unwrap_or_default();
            if reason == BACK_OFF {
                return Stage::Failing(last().map_or(Cause::Other, cause));
            }
            let hindered = if IMAGE.contains(&reason) {
                Some(Cause::Image)
            } else {
                CONTAINER.contains(&reason).then_some(Cause::Other)
            };
            Stage::Unborn(hindered)
        }
        Some(_) | None => Stage::Unborn(None),
    }
}

fn find<'a>(containers: Option<&'a [ContainerStatus]>, name: &str) -> Option<&'a ContainerStatus> {
    containers?.iter().find(|container| container.name == name)
}

fn terminated(state: Option<&ContainerState>) -> Option<&ContainerStateTerminated> {
    state?.terminated.as_ref()
}

/// Whether no node takes the pod.
fn unscheduled(status: &PodStatus) -> Option<Cause> {
    let mut conditions = status.conditions.iter().flatten();
    let is_refused = conditions.any(|condition| {
        condition.type_ == "PodScheduled"
            && condition.status == "False"
            && condition.reason.as_deref() == Some("Unschedulable")
    });
    is_refused.then_some(Cause::Unschedulable)
}

/// Why a pod has ended for good.
fn end(status: &PodStatus) -> Cause {
    let by_node =
        ["Evicted", "NodeShutdown", "Terminated", "NodeLost", "NodeAffinity", "Preempting", "Shutdown"];
    if status.reason.as_deref().is_some_and(|reason| by_node.contains(&reason)) {
        return Cause::Killed;
    }
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let mut causes = containers
        .filter_map(|container| terminated(container.state.as_ref()))
        .filter(|ended| ended.exit_code != 0)
        .map(cause);
    causes.next().unwrap_or(Cause::Other)
}

/// Why a container ended.
fn cause(ended: &ContainerStateTerminated) -> Cause {
    if ended.reason.as_deref() == Some("OOMKilled") || KILLED.contains(&ended.exit_code) {
        return Cause::Killed;
    }
    let message = ended.message.as_deref().unwrap_or_default();
    if let Some((_, cause)) = OF_GUARD.iter().find(|(words, _)| message.starts_with(words)) {
        return *cause;
    }
    let last_words: Vec<_> = message.lines().filter_map(last_words).collect();
    let says = |words: &[&str]| last_words.iter().any(|line| words.iter().any(|word| line.contains(word)));
    if says(&[OF_REMOVAL]) {
        Cause::Removed
    } else if says(&OF_DATA) {
        Cause::DataCorrupt
    } else if words::is_of_peers(message) {
        Cause::Inconsistent
    } else if says(&OF_FLAGS) {
        Cause::Flags
    } else {
        Cause::Other
    }
}

/// What a line of etcd's log says, where it is one by which etcd gives up.
fn last_words(line: &str) -> Option<String> {
    if line.starts_with("panic: ") {
        return Some(line.to_owned());
    }
    let line = Line::read(line)?;
    let said = format!("{}: {}", line.message, line.text("error"));
    (matches!(line.level.as_str(), "fatal" | "panic") || said == OF_REMOVAL).then_some(said)
}

/// The last container in which etcd ended because its data differ from another member's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Different {
    /// Its identity.
    pub container: String,
    /// Whether another one has taken its place, or is about to.
    pub is_previous: bool,
}

/// Whether etcd ended so in a pod in which it has not come up since. The kubelet keeps too little of the log for its hash
/// to be in it.
pub fn different(pod: &Pod) -> Option<Different> {
    let etcd = find(pod.status.as_ref()?.container_statuses.as_deref(), names::ETCD)?;
    let now = terminated(etcd.state.as_ref());
    let ended = now.or_else(|| terminated(etcd.last_state.as_ref()))?;
    let is_different = words::is_of_peers(ended.message.as_deref().unwrap_or_default());
    let is_up = etcd.started == Some(true);
    (is_different && !is_up).then(|| Different {
        container: ended.container_id.clone().unwrap_or_default(),
        is_previous: now.is_none(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn phase(status: &Value) -> PodPhase {
        of(&serde_json::from_value(json!({ "status": status })).unwrap())
    }

    fn container(name: &str, state: &Value) -> Value {
        json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state})
    }

    fn guarded(state: &Value) -> PodPhase {
        phase(&json!({"phase": "Pending", "initContainerStatuses": [container("guard", state)]}))
    }

    fn served(mut etcd: Value, last: &Value) -> PodPhase {
        etcd["lastState"] = last.clone();
        let guard = container("guard", &json!({"terminated": {"exitCode": 0}}));
        phase(&json!({"phase": "Running", "initContainerStatuses": [guard], "containerStatuses": [etcd]}))
    }

    #[test]
    fn a_pod_waits_only_while_its_guard_runs() {
        assert_eq!(phase(&json!({"phase": "Pending"})), PodPhase::Pending(None));
        assert_eq!(guarded(&json!({"waiting": {"reason": "PodInitializing"}})), PodPhase::Pending(None));
        assert_eq!(guarded(&json!({"running": {}})), PodPhase::Waiting);
        assert_eq!(guarded(&json!({"terminated": {"exitCode": 0}})), PodPhase::Starting);
    }

    #[test]
    fn once_its_guard_is_through_a_pod_is_never_pending() {
        let waiting = |reason: &str| container("etcd", &json!({"waiting": {"reason": reason}}));
        assert_eq!(served(waiting("PodInitializing"), &json!({})), PodPhase::Starting);
        assert_eq!(served(waiting("ImagePullBackOff"), &json!({})), PodPhase::Failing(Cause::Image));
        let ended = json!({"terminated": {"exitCode": 0}});
        assert_eq!(served(container("etcd", &ended), &json!({})), PodPhase::Starting);
    }

    #[test]
    fn etcd_is_up_once_its_startup_probe_says_so() {
        let mut running = container("etcd", &json!({"running": {}}));
        assert_eq!(served(running.clone(), &json!({})), PodPhase::Starting);
        running["started"] = true.into();
        assert_eq!(served(running, &json!({})), PodPhase::Up);
    }

    #[test]
    fn what_hinders_a_pod_is_reported() {
        let unschedulable =
            json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
        assert_eq!(phase(&unschedulable), PodPhase::Pending(Some(Cause::Unschedulable)));
        let no_image = guarded(&json!({"waiting": {"reason": "ErrImagePull"}}));
        assert_eq!(no_image, PodPhase::Pending(Some(Cause::Image)));
        let evicted = phase(&json!({"phase": "Failed", "reason": "Evicted"}));
        assert_eq!(evicted, PodPhase::Terminal(Cause::Killed));
    }

    #[test]
    fn the_cause_of_a_failure_is_in_its_last_words() {
        let failing = |message: &str, code: i32| {
            let last = json!({"terminated": {"exitCode": code, "message": message}});
            served(container("etcd", &json!({"waiting": {"reason": "CrashLoopBackOff"}})), &last)
        };
        for (message, code, cause) in [
            ("DataLost: the volume is empty", 1, Cause::DataLost),
            ("DataForeign: the data are of member 1", 1, Cause::DataForeign),
            ("NoRoom: there is no room", 1, Cause::NoRoom),
            (
                r#"{"level":"fatal","msg":"failed to read WAL","error":"walpb: crc mismatch"}"#,
                1,
                Cause::DataCorrupt,
            ),
            ("panic: invalid database", 2, Cause::DataCorrupt),
            (
                "panic: tocommit(9) is out of range [lastIndex(4)]. Was the raft log corrupted, truncated, or lost?",
                2,
                Cause::DataCorrupt,
            ),
            ("panic: page 12 already freed", 2, Cause::DataCorrupt),
            (
                r#"{"level":"fatal","msg":"discovery failed","error":"1f found data inconsistency with peers"}"#,
                1,
                Cause::Inconsistent,
            ),
            (r#"{"level":"fatal","msg":"error verifying flags"}"#, 1, Cause::Flags),
            (
                r#"{"level":"warn","msg":"server error","error":"the member has been permanently removed from the cluster"}"#,
                1,
                Cause::Removed,
            ),
            // By `log-format: console`.
            (
                "2026-11-25T15:49:31.120Z\tfatal\tetcdserver/storage.go:95\tfailed to read WAL\t{\"error\": \"walpb: crc mismatch\"}",
                1,
                Cause::DataCorrupt,
            ),
            ("2026-11-25T15:49:31.120Z\tfatal\tetcdmain/etcd.go:53\terror verifying flags", 1, Cause::Flags),
            ("", 137, Cause::Killed),
            ("", 1, Cause::Other),
        ] {
            assert_eq!(failing(message, code), PodPhase::Failing(cause), "{message}");
        }
    }

    #[test]
    fn that_etcd_ended_over_its_data_is_known_until_it_comes_up() {
        let message =
            r#"{"level":"fatal","msg":"discovery failed","error":"1f found data inconsistency with peers"}"#;
        let ended = |message: &str| json!({"terminated": {"exitCode": 1, "containerID": "containerd://7", "message": message}});
        let found = |state: &Value, last: &Value, started: bool| {
            let mut etcd = container("etcd", state);
            (etcd["lastState"], etcd["started"]) = (last.clone(), started.into());
            let status = json!({"phase": "Running", "containerStatuses": [etcd]});
            different(&serde_json::from_value(json!({ "status": status })).unwrap())
        };
        let of = |is_previous| Some(Different { container: "containerd://7".to_owned(), is_previous });
        let waiting = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        let running = json!({"running": {}});
        assert_eq!(found(&ended(message), &json!({}), false), of(false));
        assert_eq!(found(&waiting, &ended(message), false), of(true));
        assert_eq!(found(&running, &ended(message), false), of(true), "it has just been started again");
        assert_eq!(found(&running, &ended(message), true), None, "it serves");
        assert_eq!(found(&running, &json!({}), false), None);
        assert_eq!(found(&waiting, &ended("panic: invalid database"), false), None);
    }

    #[test]
    fn what_a_client_sends_is_never_taken_for_a_loss_of_data() {
        for line in [
            r#"{"level":"warn","msg":"apply request took too long","request":"key:\"crc mismatch\""}"#,
            "2026-11-25T15:49:31.120Z\twarn\ttxn/util.go:93\tapply request took too long\t{\"request\": \"\\tfatal\\tcrc mismatch\"}",
        ] {
            let last = json!({"terminated": {"exitCode": 1, "message": line}});
            let failed = container("etcd", &json!({"waiting": {"reason": "CrashLoopBackOff"}}));
            assert_eq!(served(failed, &last), PodPhase::Failing(Cause::Other), "{line}");
        }
    }
}
