//! The status as the operator writes it. Words in it come from [`super::super::status`]; they are text here, so that an
//! older release reads what a newer one wrote.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// What the operator has seen.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct EtcdClusterStatus {
    /// Generation of the spec that the operator has read last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Available, Progressing, Degraded, QuorumLost, BackupReady, CertificatesReady, SpecValid and Paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Option<Vec<Condition>>,

    /// Identity of the etcd cluster, in hexadecimal. Recorded once; another one means that data were replaced.
    #[serde(rename = "clusterID", skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,

    /// Lowest version of etcd that a member runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,

    /// Version that the members agreed on; it moves up when the last member of an upgrade is through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_version: Option<String>,

    /// Name of the member that leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,

    /// Members that etcd counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,

    /// Members that serve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,

    /// Label selector of the members' pods, for the scale subresource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,

    /// The members, by name. Those that do not answer stay listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub members: Option<Vec<MemberStatus>>,

    /// The change that is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationStatus>,

    /// When members were replaced: two within an hour at most. Older times go with the next change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub replacements: Option<Vec<Time>>,

    /// The last backups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupStatus>,

    /// The last recovery from a lost quorum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryStatus>,

    /// URLs of the voting members, for clients inside the Kubernetes cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub endpoints: Option<Vec<String>>,
}

/// One member.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct MemberStatus {
    /// Name of the member and of its pod.
    pub name: String,

    /// Identity in etcd, in hexadecimal; a member that comes back without data has another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,

    /// Voter, Learner or Unstarted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,

    /// Version of etcd that it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,

    /// Whether it answers and has no alarm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthy: Option<bool>,

    /// Whether it leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<bool>,

    /// Size of its database file in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub db_size: Option<i64>,

    /// Bytes of that file in use; the rest is what defragmentation gives back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub db_size_in_use: Option<i64>,

    /// Last entry of the log that it knows to be committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raft_index: Option<i64>,

    /// When it last began to be defragmented.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defragmented_at: Option<Time>,
}

/// The change that is under way.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OperationStatus {
    /// Bootstrap, ScaleOut, ScaleIn, Upgrade, Replace, Restart or Recover.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,

    /// What it leads to: a member, a version, a number of members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,

    /// How far it has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,

    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
}

/// The last backups.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BackupStatus {
    /// The last backup that was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success: Option<BackupSuccess>,

    /// The last backup that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<BackupFailure>,
}

/// A backup that was verified.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BackupSuccess {
    /// When it was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,

    /// Name of the file below the destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Revision of etcd that it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,

    /// SHA-256 of its bytes, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,

    /// Size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
}

/// A backup that failed.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BackupFailure {
    /// When it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,

    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A recovery from a lost quorum.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryStatus {
    /// The request, as the annotation gatehouse.dev/recover-quorum had it. It acts once: another text is another
    /// request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,

    /// Member whose data were kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survivor: Option<String>,

    /// Entry of the log up to which they were kept; what was acknowledged after it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raft_index: Option<i64>,

    /// How far it has come: Fencing, Forcing, Clearing, Done or Cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,

    /// Uid of the pod that has to be gone before the phase is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,

    /// When it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
}
