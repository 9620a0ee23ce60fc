//! Writes the [`Record`] into a status, and reads it back. Pure.
//!
//! Guarantees: what is written reads back the same. What a newer release wrote and this one cannot read is never taken
//! for nothing where nothing would set something off: a cluster stays recorded, a request stays consumed.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::api::v1::{EtcdClusterStatus, MemberStatus, OperationStatus, RecoveryStatus};
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{
    Age, AlarmKind, ClusterId, Fact, MemberId, Observation, Operation, OperationKind, Ordinal, Phase, Record,
    Recovery, RecoveryPhase, Target, Uid,
};

/// How many members are replaced at most, and in which time.
const REPLACEMENTS: (usize, SignedDuration) = (2, SignedDuration::from_hours(1));

/// How long after a member was defragmented it is not again.
const DEFRAGMENTED: SignedDuration = SignedDuration::from_mins(10);

/// The same while the database is full. The time is noted before the member is asked, and the process may end between
/// the two. Etcd takes no writes until the member has been defragmented.
const DEFRAGMENTED_WHEN_FULL: SignedDuration = SignedDuration::from_mins(1);

/// The target of an operation that leads to a template of the version that runs.
const TEMPLATE: &str = "template";

/// A cluster of an identity that does not read. Etcd has none of it, so that every member is a stranger's.
const UNREADABLE: ClusterId = ClusterId(0);

/// What a status remembers.
#[must_use]
pub fn record(status: &EtcdClusterStatus) -> Record {
    let cluster_id =
        status.cluster_id.as_ref().map(|text| names::hexadecimal(text).map_or(UNREADABLE, ClusterId));
    Record {
        cluster_id,
        operation: status.operation.as_ref().and_then(read_operation),
        recovery: status.recovery.as_ref().and_then(read_recovery),
    }
}

/// The members that a status lists, with their identities.
#[must_use]
pub fn members(status: &EtcdClusterStatus) -> BTreeMap<Ordinal, MemberId> {
    let listed = status.members.iter().flatten();
    let read = |member: &MemberStatus| {
        let id = names::hexadecimal(member.id.as_deref()?).map(MemberId)?;
        Some((ordinal_of(&member.name)?, id))
    };
    listed.filter_map(read).collect()
}

/// Whether that is no further from now than the limit. A clock that was put back leaves times in the future.
fn is_within(time: &Time, limit: SignedDuration, now: Timestamp) -> bool {
    now.duration_since(time.0).abs() < limit
}

/// Writes into what was seen whether members were replaced or defragmented too recently for once more, as the status
/// has it. It is written before either is done, so that a process that ends at once, and the next one, keep to it too.
pub fn limit_rates(status: &EtcdClusterStatus, seen: &mut Observation, now: Timestamp) {
    let (most, within) = REPLACEMENTS;
    let replaced = status.replacements.iter().flatten().filter(|time| is_within(time, within, now));
    seen.replacement_age = if replaced.count() < most { Age::PastDeadline } else { Age::Fresh };
    let is_full = seen.has_alarm(AlarmKind::NoSpace);
    let pause = if is_full { DEFRAGMENTED_WHEN_FULL } else { DEFRAGMENTED };
    let recent = status
        .members
        .iter()
        .flatten()
        .filter(|member| member.defragmented_at.as_ref().is_some_and(|time| is_within(time, pause, now)));
    let recent: Vec<_> = recent.filter_map(|member| names::hexadecimal(member.id.as_deref()?)).collect();
    for told in seen.statuses.values_mut() {
        if let Fact::Known(told) = told
            && recent.contains(&told.member_id.0)
        {
            told.defragmented = Age::Fresh;
        }
    }
}

/// The times of replacements as the status has them: of those within their limit, and of one that begins with the removal
/// that is announced.
#[must_use]
pub fn replacements(
    previous: &EtcdClusterStatus,
    operation: Option<Operation>,
    now: Timestamp,
) -> Option<Vec<Time>> {
    let before = previous.operation.as_ref().and_then(read_operation);
    let removal = operation.filter(Operation::is_replacement);
    let is_new = removal.is_some_and(|removal| {
        !before.is_some_and(|before| before.is_replacement() && before.target == removal.target)
    });
    let known = previous.replacements.iter().flatten();
    let recent = known.filter(|time| is_within(time, REPLACEMENTS.1, now)).cloned();
    let all: Vec<_> = recent.chain(is_new.then_some(Time(now))).collect();
    (!all.is_empty()).then_some(all)
}

/// Whether a status says that the data of members differ.
#[must_use]
pub fn says_corrupt(status: &EtcdClusterStatus) -> bool {
    let says =
        [(ConditionType::Degraded, Reason::Corrupt), (ConditionType::BackupReady, Reason::DataSuspect)];
    let says = says.map(|(about, reason)| (about.as_str(), reason.as_str()));
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|one| says.contains(&(one.type_.as_str(), one.reason.as_str())))
}

/// An operation as the status has it. It began when it did, as long as it leads to the same.
#[must_use]
pub fn operation(
    cluster: &str,
    previous: Option<&OperationStatus>,
    operation: Option<Operation>,
    now: Timestamp,
) -> Option<OperationStatus> {
    let Operation { kind, target, phase } = operation?;
    let (kind, target) = (Some(kind.as_str().to_owned()), Some(target_text(cluster, target)));
    let same = previous.filter(|previous| (&previous.kind, &previous.target) == (&kind, &target));
    let started_at = same.and_then(|same| same.started_at.clone()).or(Some(Time(now)));
    Some(OperationStatus { kind, target, phase: Some(phase.as_str().to_owned()), started_at })
}

/// A recovery as the status has it. It was asked for when its request was first seen.
#[must_use]
pub fn recovery(
    cluster: &str,
    previous: Option<&RecoveryStatus>,
    recovery: Option<&Recovery>,
    now: Timestamp,
) -> Option<RecoveryStatus> {
    let recovery = recovery?;
    if recovery.phase == RecoveryPhase::Unreadable {
        return previous.cloned();
    }
    let request = Some(recovery.token.clone());
    let same = previous.filter(|previous| previous.request == request);
    Some(RecoveryStatus {
        survivor: recovery.survivor.map(|survivor| names::member(cluster, survivor)),
        raft_index: i64::try_from(recovery.raft_index).ok(),
        phase: Some(recovery.phase.as_str().to_owned()),
        pod: recovery.pod.as_ref().map(|pod| pod.0.clone()),
        time: same.and_then(|same| same.time.clone()).or(Some(Time(now))),
        request,
    })
}

fn read_operation(status: &OperationStatus) -> Option<Operation> {
    Some(Operation {
        kind: OperationKind::named(status.kind.as_ref()?)?,
        target: target_of(status.target.as_ref()?)?,
        phase: Phase::named(status.phase.as_ref()?)?,
    })
}

fn read_recovery(status: &RecoveryStatus) -> Option<Recovery> {
    Some(Recovery {
        token: status.request.clone()?,
        survivor: status.survivor.as_deref().and_then(ordinal_of),
        raft_index: status.raft_index.and_then(|index| u64::try_from(index).ok()).unwrap_or(0),
        // A phase of a newer release: to take it for any of ours would let members start that it has stopped.
        phase: status.phase.as_deref().and_then(RecoveryPhase::named).unwrap_or(RecoveryPhase::Unreadable),
        pod: status.pod.clone().map(Uid),
    })
}

fn target_text(cluster: &str, target: Target) -> String {
    match target {
        Target::Member(ordinal) => names::member(cluster, ordinal),
        Target::Version(version) => version.to_string(),
        Target::Template => TEMPLATE.to_owned(),
    }
}

/// The three forms exclude each other: a name of a member ends in a hyphen and a number.
fn target_of(text: &str) -> Option<Target> {
    if text == TEMPLATE {
        return Some(Target::Template);
    }
    let version = || names::version_of(text).map(Target::Version);
    ordinal_of(text).map(Target::Member).or_else(version)
}

fn ordinal_of(member: &str) -> Option<Ordinal> {
    names::ordinal(member.rsplit_once('-')?.0, member)
}

#[cfg(test)]
mod tests;
