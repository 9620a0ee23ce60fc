//! The Job controller and the kubelet, which take their time: what the API server has of a run lags behind the run.
//!
//! Believed of the Job controller, from Kubernetes 1.31 on: it deletes the pods of a late Job first. Then it writes
//! `FailureTarget` and gives the pods up, so that they may be gone at any time. `Failed` and `Complete` come when no pod is
//! left that has not terminated. A pod that has terminated stays. Believed of the kubelet: a container that is asked to go
//! has some time to end, and a pod that was deleted and given up is gone as soon as its containers have terminated, with or
//! without anybody having read their state.

use gatehouse::kinds::databasemigration::observation::RunState;
use gatehouse::kinds::databasemigration::run_state;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{Course, Ended, Job, World};
use crate::look::now;

/// Seconds that a run may take.
const DEADLINE: i64 = 1800;

/// What is believed of what is around the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Surroundings {
    /// What the API server has of a run lags behind it.
    pub takes_time: bool,
    /// Each pod has another container, which does not end by itself.
    pub has_sidecar: bool,
}

/// What the API server has of a Job and its pod.
#[expect(
    clippy::struct_excessive_bools,
    reason = "what is known and what is not, none of which rules out another"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shown {
    has_sidecar: bool,
    /// The pod is there.
    has_pod: bool,
    /// The pod was deleted.
    is_deleted: bool,
    /// The Job has no time left.
    is_late: bool,
    /// The kubelet has said that the container has terminated.
    is_reported: bool,
    /// The Job controller has said how the Job will end.
    is_decided: bool,
    /// The Job has ended.
    pub is_ended: bool,
}

impl Surroundings {
    /// A Job that was just created, with its pod.
    pub fn shown(self) -> Option<Shown> {
        self.takes_time.then_some(Shown {
            has_sidecar: self.has_sidecar,
            has_pod: true,
            is_deleted: false,
            is_late: false,
            is_reported: false,
            is_decided: false,
            is_ended: false,
        })
    }
}

impl Shown {
    /// Whether the pod is one that the Job controller counts as ended.
    fn has_terminated(self) -> bool {
        self.is_reported && (!self.has_sidecar || self.is_deleted)
    }

    /// The state of the run, as production makes it out.
    pub fn state(self, ended: Option<Ended>) -> RunState {
        let job = serde_json::from_value(self.job(ended)).expect("a Job");
        let pods = self.has_pod.then(|| serde_json::from_value(self.pod(ended)).expect("a pod"));
        run_state::of(&job, pods.as_slice(), now())
    }

    fn job(self, ended: Option<Ended>) -> Value {
        let is_done = matches!(ended, Some(Ended::Said(said)) if said.result().code() == 0) && !self.is_late;
        let reason = if self.is_late { "DeadlineExceeded" } else { "BackoffLimitExceeded" };
        let said =
            |kind: &str| json!({"type": kind, "status": "True", "reason": if is_done { "" } else { reason }});
        let decided = if is_done { "SuccessCriteriaMet" } else { "FailureTarget" };
        let last = if is_done { "Complete" } else { "Failed" };
        let conditions = [self.is_decided.then(|| said(decided)), self.is_ended.then(|| said(last))];
        let ago = if self.is_late { DEADLINE } else { 0 };
        json!({
            "metadata": {"name": "shop-1", "creationTimestamp": now()},
            "spec": {"activeDeadlineSeconds": DEADLINE, "template": {}},
            "status": {"startTime": now() - SignedDuration::from_secs(ago), "active": 1,
                "conditions": conditions.into_iter().flatten().collect::<Vec<Value>>()},
        })
    }

    fn pod(self, ended: Option<Ended>) -> Value {
        let state = match ended.filter(|_| self.is_reported) {
            None => json!({"running": {}}),
            Some(Ended::Said(said)) => {
                json!({"terminated": {"exitCode": said.result().code(), "message": said.get().to_string()}})
            }
            Some(_) => json!({"terminated": {"exitCode": 137, "reason": "Error"}}),
        };
        let status = |name: &str, state: Value| json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        let mut containers = vec![status("migrate", state)];
        if self.has_sidecar && !self.has_terminated() {
            containers.push(status("proxy", json!({"running": {}})));
        }
        json!({
            "metadata": {"name": "shop-1-x", "creationTimestamp": now(),
                "deletionTimestamp": self.is_deleted.then(now)},
            "status": {"containerStatuses": containers},
        })
    }
}

impl Job {
    /// Whether its container may go so: only who is asked to end is interrupted.
    pub fn may_go(&self, course: Course) -> bool {
        let is_asked_to_end = self.shown.is_some_and(|shown| shown.is_deleted);
        match course {
            Course::Interrupted(_) => is_asked_to_end,
            Course::Late => self.shown.is_none(),
            _ => true,
        }
    }

    /// Whether the Job has ended.
    pub fn is_finished(&self) -> bool {
        self.shown.map_or_else(|| self.ended.is_some(), |shown| shown.is_ended)
    }

    /// The Job as far as the API server has it: how its container has ended is in its pod alone.
    pub fn shown_alone(&self) -> Self {
        let is_known = self.shown.is_none_or(|shown| shown.has_pod && shown.is_reported || shown.is_decided);
        Self { ended: self.ended.filter(|_| is_known), ..self.clone() }
    }
}

impl World {
    /// The newest Job that has not ended, as the API server has it.
    fn newest(&mut self) -> Option<(&mut Shown, bool)> {
        let job = self.jobs.iter_mut().rev().find(|job| job.shown.is_some_and(|shown| !shown.is_ended))?;
        Some((job.shown.as_mut()?, job.ended.is_some()))
    }

    /// Whether of a run nothing but its sidecar is left.
    pub(super) fn has_sidecar_alone(&mut self) -> bool {
        self.newest().is_some_and(|(shown, has_ended)| shown.has_sidecar && has_ended && !shown.is_deleted)
    }

    /// The pod is deleted: its container is asked to end.
    pub(super) fn delete_pod(&mut self, is_late: bool) -> bool {
        let Some((shown, _)) = self.newest() else { return false };
        if shown.is_deleted || !shown.has_pod || shown.is_decided {
            return false;
        }
        (shown.is_deleted, shown.is_late) = (true, is_late);
        true
    }

    /// The kubelet says that the container has terminated.
    pub(super) fn report(&mut self) -> bool {
        let Some((shown, has_ended)) = self.newest() else { return false };
        has_ended && shown.has_pod && !std::mem::replace(&mut shown.is_reported, true)
    }

    /// A pod that was deleted is gone, and with it how its container has ended.
    pub(super) fn collect(&mut self) -> bool {
        let told = self.told();
        let Some((shown, has_ended)) = self.newest() else { return false };
        // The Job controller holds a pod until it has decided.
        if !has_ended || !shown.has_pod || !shown.is_deleted || !shown.is_decided {
            return false;
        }
        shown.has_pod = false;
        if self.jobs.last().is_some_and(|job| job.number > told) {
            self.settled = None;
        }
        true
    }

    /// The Job controller says how the Job will end, or that it has.
    pub(super) fn control(&mut self) -> bool {
        let Some((shown, _)) = self.newest() else { return false };
        if !shown.is_decided {
            shown.is_decided = shown.is_late || shown.has_terminated();
            return shown.is_decided;
        }
        shown.is_ended = !shown.has_pod || shown.has_terminated();
        shown.is_ended
    }
}
