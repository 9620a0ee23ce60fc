//! The results of backups, from their Jobs and the reports of their pods. Pure.
//!
//! Guarantees: a Job's own word is what counts: one that is complete has verified its backup. What its pod says is
//! reported beside it. A Job that another object than this EtcdCluster or its CronJob has made is not looked at, by
//! their uids: one of their names may be of a cluster that was there before.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, Job, JobCondition};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::kubernetes::owner;
use crate::kinds::etcdcluster::api::v1::{BackupFailure, BackupStatus, BackupSuccess};
use crate::kinds::etcdcluster::backup::manifest::Report;
use crate::kinds::etcdcluster::names::MANAGER;
use crate::kinds::etcdcluster::observation::{Backup, Fact, Owner, Unavailable};
use crate::kinds::etcdcluster::resources::backup::{self, BACKUP};
use crate::kinds::etcdcluster::spec::Destination;

/// The label of a Job's pods with the Job's name.
const JOB: &str = "batch.kubernetes.io/job-name";

/// The backup that an upgrade waits for, by the Job that takes it.
pub fn awaited(job: &Fact<Job>, cluster: &str) -> Fact<Backup> {
    job.as_ref().map(|job| match ended(job) {
        _ if owner(&job.metadata, cluster) != Owner::Ours => Backup::Foreign,
        _ if job.metadata.deletion_timestamp.is_some() => Backup::Failed,
        Some((true, _)) => Backup::Recent,
        Some((false, _)) => Backup::Failed,
        None => Backup::Running,
    })
}

/// Why nothing can be written to the claim that backups go to. One that is pending may be bound once a pod uses it.
pub fn unavailable(claim: &Fact<PersistentVolumeClaim>) -> Option<Unavailable> {
    match claim {
        Fact::Unknown => None,
        Fact::Absent => Some(Unavailable::Missing),
        Fact::Known(claim) if claim.metadata.deletion_timestamp.is_some() => Some(Unavailable::Terminating),
        Fact::Known(claim) => {
            let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
            (phase == Some("Lost")).then_some(Unavailable::Lost)
        }
    }
}

/// Whether a Job's backup is where backups are asked for now.
pub fn goes_to(job: &Job, asked: &Destination) -> bool {
    job.spec.as_ref().and_then(|spec| backup::destination(&spec.template)).as_ref() == Some(asked)
}

/// Whether what was recorded of backups is of another destination than the one that is asked for now, or may be: what takes
/// them still has it, or is not there. It is changed only after that was forgotten.
pub fn is_elsewhere(found: &Fact<CronJob>, asked: &Destination, cluster: &str) -> bool {
    match found {
        Fact::Unknown => false,
        Fact::Absent => true,
        Fact::Known(found) => {
            let job = found.spec.as_ref().and_then(|spec| spec.job_template.spec.as_ref());
            let goes_to = job.and_then(|job| backup::destination(&job.template));
            owner(&found.metadata, cluster) == Owner::Ours && goes_to.as_ref() != Some(asked)
        }
    }
}

/// Since when an object is as we have it: since we wrote to it last.
pub fn written(metadata: &ObjectMeta) -> Option<Timestamp> {
    let entries = metadata.managed_fields.iter().flatten();
    let ours =
        entries.filter(|entry| entry.manager.as_deref() == Some(MANAGER) && entry.subresource.is_none());
    let last = ours.filter_map(|entry| entry.time.as_ref()).map(|time| time.0).max();
    last.or_else(|| metadata.creation_timestamp.as_ref().map(|time| time.0))
}

/// Whether a Job has ended since the last report, so that its pods have a new one.
pub fn is_news(job: &Job, said: Option<&BackupStatus>) -> bool {
    let success = said.and_then(|said| said.last_success.as_ref()?.time.as_ref());
    let failure = said.and_then(|said| said.last_failure.as_ref()?.time.as_ref());
    ended(job).is_some_and(|(succeeded, time)| {
        let last = if succeeded { success } else { failure };
        last.is_none_or(|last| time > last.0)
    })
}

/// What the Jobs of those owners, and their pods, tell.
pub fn told(jobs: &[Job], pods: &[Pod], owners: &[&str]) -> (Option<BackupSuccess>, Option<BackupFailure>) {
    let is_ours = |job: &&Job| {
        let mut of = job.metadata.owner_references.iter().flatten();
        of.any(|owner| owners.contains(&owner.uid.as_str()))
    };
    let ours = jobs.iter().filter(is_ours);
    let ended: Vec<_> = ours.filter_map(|job| Some((job, ended(job)?))).collect();
    let last = |wanted: bool| {
        let those = ended.iter().filter(|(_, (succeeded, _))| *succeeded == wanted);
        those.max_by_key(|(_, (_, time))| *time).map(|(job, (_, time))| (*job, Time(*time)))
    };
    let success = last(true).map(|(job, time)| {
        let time = Some(time);
        match report(job, pods) {
            Some(Report::Succeeded(told)) => BackupSuccess {
                time,
                name: Some(told.manifest.name),
                revision: Some(told.manifest.revision),
                hash: Some(told.manifest.sha256),
                size: i64::try_from(told.manifest.size).ok(),
            },
            _ => BackupSuccess { time, ..BackupSuccess::default() },
        }
    });
    let failure = last(false).map(|(job, time)| {
        let name = job.metadata.name.as_deref().unwrap_or_default();
        let why = match report(job, pods) {
            Some(Report::Failed { message }) => message,
            _ => failed(job).map_or_else(String::new, |condition| {
                let words = [condition.reason.as_deref(), condition.message.as_deref()];
                words.into_iter().flatten().collect::<Vec<_>>().join(": ")
            }),
        };
        BackupFailure { time: Some(time), message: Some(format!("Job {name}: {why}")) }
    });
    (success, failure)
}

/// Whether a Job has succeeded, and when it ended; none while it has not.
fn ended(job: &Job) -> Option<(bool, Timestamp)> {
    let status = job.status.as_ref()?;
    let complete = condition(job, "Complete");
    let is_complete = complete.is_some();
    let condition = complete.or_else(|| failed(job))?;
    let completed = status.completion_time.as_ref().filter(|_| is_complete);
    let time = completed.or(condition.last_transition_time.as_ref())?;
    Some((is_complete, time.0))
}

fn failed(job: &Job) -> Option<&JobCondition> {
    condition(job, "Failed")
}

fn condition<'a>(job: &'a Job, about: &str) -> Option<&'a JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|one| one.type_ == about && one.status == "True")
}

/// The report of the last pod of a Job.
fn report(job: &Job, pods: &[Pod]) -> Option<Report> {
    let name = job.metadata.name.as_ref()?;
    let of_job = |pod: &&Pod| pod.metadata.labels.as_ref().and_then(|labels| labels.get(JOB)) == Some(name);
    let said = pods.iter().filter(of_job).filter_map(|pod| {
        let mut containers = pod.status.as_ref()?.container_statuses.iter().flatten();
        let container = containers.find(|container| container.name == BACKUP)?;
        let ended = container.state.as_ref()?.terminated.as_ref()?;
        Some((ended.finished_at.as_ref().map(|time| time.0), ended.message.as_deref()?))
    });
    let (_, message) = said.max_by_key(|(time, _)| *time)?;
    Some(Report::read(message).unwrap_or_else(|| Report::Failed { message: message.trim().to_owned() }))
}

#[cfg(test)]
mod tests;
