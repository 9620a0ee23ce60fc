//! The status of an EtcdCluster. Pure: the same facts give the same status.
//!
//! Guarantees: every path gives a status, also when etcd does not answer; what was known and cannot be found out any
//! more stays as it was, beside a condition that says so; between two reconciliations that see the same nothing is
//! written.

mod backups;
mod conditions;
mod events;
mod messages;

pub use conditions::{in_own_namespace, undecodable};
pub use events::{Reported, of as events};

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::actions::Action;
use super::names;
use super::observation::{Backups, Observation, Ordinal, Record};
use super::plan::{MemberSummary, Plan};
use super::resources::record;
use super::spec::Spec;
use crate::kinds::etcdcluster::api::status::Role as RoleWord;
use crate::kinds::etcdcluster::api::v1::{EtcdClusterStatus, MemberStatus};
use crate::kinds::etcdcluster::observation::Role;

/// How far a number that moves all the time has to move to be worth a write: one part of so many.
const NOTABLE_PART: u64 = 10;

/// How many entries of the log are worth a write.
const NOTABLE_ENTRIES: u64 = 10_000;

/// What a status is made of besides what a reconciliation knows.
#[derive(Clone, Copy, Debug)]
pub struct StatusInputs<'a> {
    /// The previous status.
    pub previous: &'a EtcdClusterStatus,
    /// What people ought to know of the certificates.
    pub certificates: Option<&'a str>,
    /// The results of backups.
    pub backups: &'a Backups,
    /// Why pods do not come to serve, in the words of Kubernetes.
    pub hindrances: &'a BTreeMap<Ordinal, String>,
    /// The time.
    pub now: Timestamp,
}

/// The status after a reconciliation that has seen `seen` and planned `plan`, whose record it has.
#[must_use]
pub fn of(spec: &Spec, said: StatusInputs<'_>, seen: &Observation, plan: &Plan) -> EtcdClusterStatus {
    let StatusInputs { previous, now, .. } = said;
    let name = spec.name();
    let summary = &plan.summary;
    let remembered = remember(name, previous, &plan.record, now);
    let backup = backups::remembered(previous.backup.as_ref(), said.backups);
    let count = |count: usize| i32::try_from(count).ok();
    let version = summary.version.map(|version| version.to_string());
    let agreed = summary.cluster_version.map(|minor| format!("3.{minor}"));
    let status = EtcdClusterStatus {
        observed_generation: spec.metadata.generation,
        conditions: Some(conditions::of(spec, said, seen, plan, backup.as_ref())),
        version: version.or_else(|| previous.version.clone()),
        cluster_version: agreed.or_else(|| previous.cluster_version.clone()),
        leader: summary.leader.map(|ordinal| names::member(name, ordinal)),
        replicas: summary.replicas.map_or(previous.replicas, count),
        ready_replicas: count(summary.ready_replicas),
        selector: Some(names::selector_text(spec.name())),
        members: Some(members(name, previous, seen, plan, now)),
        backup,
        endpoints: endpoints(spec, plan).or_else(|| previous.endpoints.clone()),
        ..remembered
    };
    if differs_in_numbers_alone(previous, &status) { previous.clone() } else { status }
}

/// A status that remembers `record`, and is otherwise as it was.
#[must_use]
pub fn remember(
    cluster: &str,
    previous: &EtcdClusterStatus,
    record: &Record,
    now: Timestamp,
) -> EtcdClusterStatus {
    if *record == record::record(previous) {
        // What a newer release wrote stays, although this one cannot read it.
        return previous.clone();
    }
    EtcdClusterStatus {
        cluster_id: record.cluster_id.map(names::cluster_id_text),
        replacements: record::replacements(previous, record.operation, now),
        operation: record::operation(cluster, previous.operation.as_ref(), record.operation, now),
        recovery: record::recovery(cluster, previous.recovery.as_ref(), record.recovery.as_ref(), now),
        ..previous.clone()
    }
}

/// URLs of those that vote; none where the voters are unknown.
fn endpoints(spec: &Spec, plan: &Plan) -> Option<Vec<String>> {
    plan.summary.replicas?;
    let voters = plan.summary.members.iter().filter(|member| member.role == Some(Role::Voter));
    Some(voters.map(|member| spec.client_url(member.ordinal)).collect())
}

fn members(
    name: &str,
    previous: &EtcdClusterStatus,
    seen: &Observation,
    plan: &Plan,
    now: Timestamp,
) -> Vec<MemberStatus> {
    let summary = |member: &MemberSummary| {
        let before = previous.members.iter().flatten().find(|before| {
            before.name == names::member(name, member.ordinal)
                && (before.id.is_none()
                    || member.id.is_none()
                    || before.id == member.id.map(names::member_id_text))
        });
        let begins = |action: &Action| matches!(action, Action::Defragment { member: of, .. } if Some(*of) == member.id);
        let is_defragmented = plan.actions.iter().any(begins);
        let told = self::member(name, member, before.cloned().unwrap_or_default(), seen, plan);
        MemberStatus {
            defragmented_at: is_defragmented.then_some(Time(now)).or(told.defragmented_at),
            ..told
        }
    };
    plan.summary.members.iter().map(summary).collect()
}

/// One member. What it no longer reports stays as it reported it last.
fn member(
    name: &str,
    member: &MemberSummary,
    before: MemberStatus,
    seen: &Observation,
    plan: &Plan,
) -> MemberStatus {
    let told = seen.status(member.ordinal).found();
    let number = |of: fn(&crate::kinds::etcdcluster::observation::MemberStatus) -> u64| {
        told.and_then(|told| i64::try_from(of(told)).ok())
    };
    let mut alarms = seen.alarms.known().into_iter().flatten();
    let has_alarm = alarms.any(|alarm| Some(alarm.member) == member.id);
    let is_counted = plan.summary.replicas.is_some();
    let role = match member.role {
        Some(Role::Voter) => Some(RoleWord::Voter),
        Some(Role::Learner) => Some(RoleWord::Learner),
        None => (is_counted && !member.is_started).then_some(RoleWord::Unstarted),
    };
    MemberStatus {
        name: names::member(name, member.ordinal),
        id: member.id.map(names::member_id_text).or(before.id),
        role: role.map(|role| role.as_str().to_owned()).or(before.role),
        version: member.version.map(|version| version.to_string()).or(before.version),
        healthy: Some(member.is_healthy && !has_alarm),
        leader: Some(member.is_leader),
        db_size: number(|told| told.db_size).or(before.db_size),
        db_size_in_use: number(|told| told.db_size_in_use).or(before.db_size_in_use),
        raft_index: number(|told| told.raft_index).or(before.raft_index),
        defragmented_at: before.defragmented_at,
    }
}

/// Whether only numbers have changed that move with every write of a client, and none has moved far.
fn differs_in_numbers_alone(previous: &EtcdClusterStatus, status: &EtcdClusterStatus) -> bool {
    let without = |status: &EtcdClusterStatus| {
        let mut status = status.clone();
        for member in status.members.iter_mut().flatten() {
            (member.db_size, member.db_size_in_use, member.raft_index) = (None, None, None);
        }
        status
    };
    let members = |status: &'_ EtcdClusterStatus| status.members.clone().unwrap_or_default();
    let mut pairs = members(previous).into_iter().zip(members(status));
    without(previous) == without(status)
        && pairs.all(|(before, after)| {
            is_near(before.db_size, after.db_size, 0)
                && is_near(before.db_size_in_use, after.db_size_in_use, 0)
                && is_near(before.raft_index, after.raft_index, NOTABLE_ENTRIES)
        })
}

/// Whether a number has moved by less than a tenth, or by less than so much.
fn is_near(before: Option<i64>, after: Option<i64>, notable: u64) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => {
            let moved = before.abs_diff(after);
            moved == 0 || moved < notable.max(before.unsigned_abs() / NOTABLE_PART)
        }
        (None, None) => true,
        _ => false,
    }
}

#[cfg(test)]
pub(in crate::kinds) mod tests;
