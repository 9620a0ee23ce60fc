//! What the spec asks for, as the plan has to know it. Pure.

use aws_lc_rs::digest::{SHA256, digest};
use kube::ResourceExt as _;
use serde_json::json;

use super::observation::{Desired, Ordinal, RecoveryRequest, Template, Version};
use super::resources::certificates::Trust;
use super::resources::names;
use crate::api::etcdcluster::default::{REPLICAS, STORAGE_SIZE};
use crate::api::etcdcluster::recovery::{self, ANNOTATION, Survivor};
use crate::api::etcdcluster::v1::{
    EtcdCluster, EtcdClusterSpec, Image, Medium, Options, Pod, ReclaimPolicy, TlsMode,
};
use crate::api::etcdcluster::versions::ALLOW_DOWNGRADE;
use crate::api::etcdcluster::versions::NEWEST;
use crate::api::quantity::Quantity;

/// Number of the form that pods have. Another one restarts every member of every cluster.
const FORMAT: u32 = 1;

/// Share of a database file that has to be free where the spec does not say which.
const RECLAIMABLE_PERCENT: u32 = 45;

/// What `cluster` asks for; `is_valid`: whether the judge of the gate passes it; `trust`: whom its members are to trust,
/// none where they speak plain HTTP, or nobody could tell.
#[must_use]
pub fn desired(cluster: &EtcdCluster, is_valid: bool, trust: Option<Trust>) -> Desired {
    let spec = &cluster.spec;
    let storage = spec.storage.clone().unwrap_or_default();
    let defragment = spec.maintenance.as_ref().and_then(|maintenance| maintenance.defragment.as_ref());
    Desired {
        is_valid,
        is_deleting: cluster.metadata.deletion_timestamp.is_some(),
        is_protected: spec.deletion_protection == Some(true),
        is_paused: spec.paused == Some(true),
        replicas: replicas(cluster),
        template: Template { version: version(cluster), revision: revision(spec, trust) },
        // Volumes grow where the spec asks for it, and not where another release would make larger ones.
        volume_size: storage.size.as_ref().map_or(0, |_| volume_size(spec).bytes().unwrap_or(0)),
        is_in_memory: is_in_memory(spec),
        deletes_volumes: storage.reclaim_policy == Some(ReclaimPolicy::Delete),
        authenticates: spec.auth.as_ref().is_some_and(|auth| auth.enabled == Some(true)),
        allows_downgrade: cluster.annotations().get(ALLOW_DOWNGRADE).is_some_and(|allow| allow == "true"),
        backs_up_before_upgrade: backs_up(spec),
        defragments_at: defragment.map(|one| percent(one.when_reclaimable_percent)),
        recovery: recovery(cluster),
    }
}

/// The request to recover from a lost quorum. One that does not read asks for nothing.
fn recovery(cluster: &EtcdCluster) -> Option<RecoveryRequest> {
    let token = cluster.annotations().get(ANNOTATION)?;
    let survivor = match recovery::read(token, &cluster.name_any()).ok()? {
        Survivor::Furthest => None,
        Survivor::Member(number) => Some(Ordinal(number)),
    };
    Some(RecoveryRequest { token: token.clone(), survivor })
}

/// Size of a member's volume. One that does not read, which no judge passes, counts as none.
#[must_use]
pub fn volume_size(spec: &EtcdClusterSpec) -> Quantity {
    let given = spec.storage.as_ref().and_then(|storage| storage.size.clone());
    given.filter(|size| size.bytes().is_ok()).unwrap_or_else(|| Quantity::from(STORAGE_SIZE))
}

/// Whether data lie in memory.
#[must_use]
pub fn is_in_memory(spec: &EtcdClusterSpec) -> bool {
    spec.storage.as_ref().is_some_and(|storage| storage.medium == Some(Medium::Memory))
}

/// The members that are asked for. Where nobody has asked, which the gate lets nobody do, those that there are; and
/// before the first, as many as creation writes.
#[must_use]
pub fn replicas(cluster: &EtcdCluster) -> u32 {
    let there_are = || cluster.status.as_ref().and_then(|status| status.replicas).filter(|count| *count > 0);
    let count = cluster.spec.replicas.or_else(there_are).unwrap_or(REPLICAS);
    u32::try_from(count).unwrap_or(0)
}

/// The version that is asked for. One that does not read, which no judge passes, counts as none. Where there is none,
/// it is what runs; and before anything runs, what creation writes.
#[must_use]
pub fn version(cluster: &EtcdCluster) -> Version {
    let runs = || cluster.status.as_ref().and_then(|status| status.version.as_deref());
    let given = [cluster.spec.version.as_deref(), runs(), Some(NEWEST)];
    given.into_iter().flatten().find_map(names::version_of).unwrap_or(Version::new(0, 0))
}

/// Digest of everything in a spec that ends in pods, but the version of etcd, and of whom members trust, which they read
/// when they start. The same in every release of gatehouse: another digest restarts every member of every cluster.
#[must_use]
pub fn revision(spec: &EtcdClusterSpec, trust: Option<Trust>) -> u64 {
    let is_in_memory = is_in_memory(spec);
    let tls = spec.tls.clone().unwrap_or_default();
    let mut said = json!({
        "format": FORMAT,
        "options": spec.options.as_ref().filter(|options| **options != Options::default()),
        // The name that the field had when the first members were made.
        "podTemplate": spec.pod.as_ref().filter(|pod| **pod != Pod::default()),
        "image": spec.image.as_ref().filter(|image| **image != Image::default()),
        "tls": tls.mode.unwrap_or(TlsMode::Automatic).as_str(),
        "secrets": tls.secrets,
        // A claim grows without its pod; a tmpfs is as large as its pod says.
        "memory": is_in_memory.then(|| volume_size(spec).to_string()),
    });
    if let Some(trust) = trust {
        said["trust"] = trust.to_string().into();
    }
    said.sort_all_objects();
    let digest = digest(&SHA256, said.to_string().as_bytes());
    digest.as_ref().iter().take(size_of::<u64>()).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn backs_up(spec: &EtcdClusterSpec) -> bool {
    let Some(backup) = &spec.backup else { return false };
    let destination = backup.destination.as_ref();
    destination.is_some_and(|destination| destination.persistent_volume_claim.is_some())
        && backup.before_upgrade != Some(false)
}

/// A share in percent.
fn percent(given: Option<i32>) -> u32 {
    given.and_then(|given| u32::try_from(given).ok()).unwrap_or(RECLAIMABLE_PERCENT)
}

#[cfg(test)]
mod tests;
