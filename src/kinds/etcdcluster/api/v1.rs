//! EtcdCluster v1: the hub, as it goes over the wire.
//!
//! Guarantees: every document that the structural schema lets through decodes; no field has a default here, since
//! what an absent field means is written at creation by [`super::default`]. Values with a syntax of their own
//! (versions, quantities, durations, schedules) stay text, so that validation can name every error at once.

mod backup;
mod options;
mod pod;
mod service;
mod status;
mod storage;
mod tls;

pub use backup::{Backup, Destination, PersistentVolumeClaimDestination, Retention, Unsupported};
pub use options::{AutoCompaction, CompactionMode, Defragment, Maintenance, Options};
pub use pod::{Image, Pod};
pub use service::{ClientService, ServiceType};
pub use status::{
    BackupFailure, BackupStatus, BackupSuccess, EtcdClusterStatus, MemberStatus, OperationStatus,
    RecoveryStatus,
};
pub use storage::{Medium, ReclaimPolicy, Storage};
pub use tls::{Auth, Tls, TlsMode, TlsSecrets};

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::rules;

/// What the cluster should be. Absent fields are given their meaning once, at creation, and never change later.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "gatehouse.dev",
    version = "v1",
    kind = "EtcdCluster",
    plural = "etcdclusters",
    singular = "etcdcluster",
    shortname = "etcd",
    category = "gatehouse",
    namespaced,
    status = "EtcdClusterStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "An etcd cluster: its members, their storage, certificates, upgrades and backups.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    validation = Rule::new(crate::kinds::etcdcluster::api::rules::NAME.0).message(crate::kinds::etcdcluster::api::rules::NAME.1).field_path(".metadata.name").optional_old_self(true),
    validation = Rule::new(crate::kinds::etcdcluster::api::rules::SEEN[0].0).message(crate::kinds::etcdcluster::api::rules::SEEN[0].1).field_path(".spec.replicas"),
    validation = Rule::new(crate::kinds::etcdcluster::api::rules::SEEN[1].0).message(crate::kinds::etcdcluster::api::rules::SEEN[1].1).field_path(".spec.replicas"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether all that the spec asks for serves"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why, or the worst of why not"
    ),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas", description = "Voting members asked for"),
    printcolumn(name = "Serving", type_ = "integer", json_path = ".status.readyReplicas", description = "Members that serve"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version", description = "Lowest etcd version that a member runs"),
    printcolumn(name = "Leader", type_ = "string", json_path = ".status.leader", description = "Member that leads"),
    printcolumn(name = "Operation", type_ = "string", json_path = ".status.operation.type", description = "The change that is under way"),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].status",
        description = "Whether a quorum serves",
        priority = 1
    ),
    printcolumn(name = "Backup", type_ = "date", json_path = ".status.backup.lastSuccess.time", priority = 1, description = "Age of the last verified backup"),
    printcolumn(
        name = "DBSize",
        type_ = "integer",
        json_path = ".status.members[?(@.leader==true)].dbSize",
        description = "Size of the leader's database file in bytes",
        priority = 1
    ),
    printcolumn(
        name = "Certs",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"CertificatesReady\")].reason",
        description = "Whether certificates are valid, or else why not",
        priority = 1
    ),
    printcolumn(name = "Paused", type_ = "boolean", json_path = ".spec.paused", description = "Whether reconciliation is paused", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(rules::STOPPED_MEMORY.0).message(rules::STOPPED_MEMORY.1).field_path(".replicas").optional_old_self(true),
    validation = Rule::new(rules::READABLE_PASSWORDS.0).message(rules::READABLE_PASSWORDS.1).field_path(".auth.enabled").optional_old_self(true),
    validation = Rule::new(
        "(has(self.tls) && has(self.tls.mode) ? self.tls.mode : 'Automatic') == (has(oldSelf.tls) && has(oldSelf.tls.mode) ? oldSelf.tls.mode : 'Automatic')"
    ).message("tls.mode is immutable: make a new cluster").field_path(".tls.mode"),
    validation = Rule::new(
        "(has(self.storage) && has(self.storage.medium) ? self.storage.medium : 'PersistentVolume') == (has(oldSelf.storage) && has(oldSelf.storage.medium) ? oldSelf.storage.medium : 'PersistentVolume')"
    ).message("storage.medium is immutable: make a new cluster").field_path(".storage.medium"),
    validation = Rule::new(
        "(has(self.storage) && has(self.storage.storageClassName) ? self.storage.storageClassName : '') == (has(oldSelf.storage) && has(oldSelf.storage.storageClassName) ? oldSelf.storage.storageClassName : '')"
    ).message("storage.storageClassName is immutable: make a new cluster").field_path(".storage.storageClassName"),
    validation = Rule::new(
        "(has(self.auth) && has(self.auth.enabled) && self.auth.enabled) == (has(oldSelf.auth) && has(oldSelf.auth.enabled) && oldSelf.auth.enabled)"
    ).message("auth.enabled is immutable: make a new cluster").field_path(".auth.enabled")
)]
pub struct EtcdClusterSpec {
    /// Voting members, 0 to 7. 0 stops the cluster and keeps its data; an even number tolerates no more failures than
    /// one less. Defaults to 3 at creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 7))]
    pub replicas: Option<i32>,

    /// Version of etcd, such as 3.6.16: three numbers, no leading v. One minor up at a time, checked against
    /// status.version. Defaults to the newest that this release supports at creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new(rules::VERSION.0).message(rules::VERSION.1))]
    pub version: Option<String>,

    /// Pauses reconciliation: gatehouse changes nothing, and only updates the status. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,

    /// The image that members run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,

    /// Where members keep their data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,

    /// Certificates of members and clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,

    /// Users and roles of etcd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,

    /// How etcd itself is set up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Options>,

    /// What is laid over the pods of the members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<Pod>,

    /// The Service for clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_service: Option<ClientService>,

    /// When snapshots are taken, and where they go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,

    /// Reserved for a backup that the cluster starts from. Not supported by this release, and refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore: Option<Unsupported>,

    /// Care that the operator takes of the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Maintenance>,

    /// Whether deleting the cluster is refused. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_protection: Option<bool>,
}

/// What absent fields mean, for the gate and for the operator alike.
impl EtcdClusterSpec {
    /// Where certificates come from.
    #[must_use]
    pub fn tls_mode(&self) -> TlsMode {
        self.tls.as_ref().and_then(|tls| tls.mode).unwrap_or(TlsMode::Automatic)
    }

    /// Whether etcd requires clients to authenticate.
    #[must_use]
    pub fn authenticates(&self) -> bool {
        self.auth.as_ref().and_then(|auth| auth.enabled).unwrap_or(false)
    }

    /// Where members keep their data.
    #[must_use]
    pub fn medium(&self) -> Medium {
        self.storage.as_ref().and_then(|storage| storage.medium).unwrap_or(Medium::PersistentVolume)
    }

    /// The StorageClass that is named.
    #[must_use]
    pub fn storage_class(&self) -> Option<&str> {
        self.storage.as_ref()?.storage_class_name.as_deref()
    }
}
