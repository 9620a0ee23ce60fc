//! Maintenance of the database, and downgrades.
//!
//! Guarantees: the member that is asked has just answered as one of the cluster that is meant.

use std::time::Duration;

use futures::stream::{self, StreamExt as _};

use super::membership::{agreed, itself};
use super::{Execution, Failure, unless_refused};
use crate::kinds::etcdcluster::actions::MembershipGuard;
use crate::kinds::etcdcluster::etcd::{self, Client, Downgrade, Refusal};
use crate::kinds::etcdcluster::observation::{Alarm, AlarmKind, ClusterId, MemberId, Minor, Ordinal};
use crate::kinds::etcdcluster::observe::etcd as asking;

/// Entries that one reconciliation appends to the log, at most.
const ENTRIES: usize = 5000;

/// How many of them are under way at a time.
const AT_A_TIME: usize = 64;

/// How long one reconciliation appends, at most.
const APPENDING: Duration = Duration::from_secs(8);

/// A member of that cluster, the leader where it answers.
pub async fn any(execution: Execution<'_>, cluster_id: ClusterId) -> Result<&Client, Failure> {
    let seen = execution.observation();
    for ordinal in asking::order(&seen.statuses) {
        let Some(status) = seen.status(ordinal).found() else { continue };
        if status.cluster_id == cluster_id {
            return itself(execution, ordinal, cluster_id, status.member_id).await;
        }
    }
    Err(Failure::moved("no member can be asked"))
}

/// Disarms an alarm.
pub async fn disarm(execution: Execution<'_>, cluster_id: ClusterId, alarm: Alarm) -> Result<(), Failure> {
    let kind = match alarm.kind {
        AlarmKind::NoSpace => etcd::AlarmKind::NoSpace,
        AlarmKind::Corrupt => etcd::AlarmKind::Corrupt,
    };
    Ok(any(execution, cluster_id).await?.disarm(alarm.member.0, kind).await?)
}

/// Drops old revisions.
pub async fn compact(execution: Execution<'_>, cluster_id: ClusterId, revision: u64) -> Result<(), Failure> {
    let client = any(execution, cluster_id).await?;
    let revision = i64::try_from(revision).unwrap_or(i64::MAX);
    unless_refused(client.compact(revision, true).await, Refusal::Compacted)
}

/// Lets a member give free space back.
pub async fn defragment(
    execution: Execution<'_>,
    cluster_id: ClusterId,
    member: MemberId,
    ordinal: Ordinal,
) -> Result<(), Failure> {
    let client = itself(execution, ordinal, cluster_id, member).await?;
    Ok(client.defragment().await?)
}

/// Appends entries to the log. To ask for the alarms is an entry, and changes nothing (`EtcdServer.Alarm` of etcd's
/// `etcdserver/v3_server.go`).
pub async fn append(execution: Execution<'_>, cluster_id: ClusterId) -> Result<(), Failure> {
    let client = any(execution, cluster_id).await?;
    let asked = stream::iter(0..ENTRIES).map(|_| client.alarms()).buffer_unordered(AT_A_TIME);
    let mut failed = asked.filter_map(async |answer| answer.err()).boxed();
    match tokio::time::timeout(APPENDING, failed.next()).await {
        Ok(Some(error)) => Err(error.into()),
        Ok(None) | Err(_) => Ok(()),
    }
}

/// Allows members to run one minor less.
pub async fn allow_downgrade(
    execution: Execution<'_>,
    guard: MembershipGuard,
    target: Minor,
) -> Result<(), Failure> {
    let (client, _) = agreed(execution, guard, None).await?;
    let target = format!("3.{target}");
    let can = client.downgrade(Downgrade::Validate, &target).await;
    unless_refused(can, Refusal::DowngradeInProcess)?;
    let done = client.downgrade(Downgrade::Enable, &target).await;
    unless_refused(done, Refusal::DowngradeInProcess)
}

/// Takes that back.
pub async fn cancel_downgrade(execution: Execution<'_>, cluster_id: ClusterId) -> Result<(), Failure> {
    let done = any(execution, cluster_id).await?.downgrade(Downgrade::Cancel, "").await;
    unless_refused(done, Refusal::NoDowngradeInProcess)
}
