//! EtcdCluster v1alpha1: the shape that the published ancestors have, as it goes over the wire.
//!
//! Guarantees: as [`super::v1`]. Status fields that both versions have are named alike.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::rules;
use crate::api::cron;
use crate::api::quantity::Quantity;

/// What the cluster should be.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "gatehouse.dev",
    version = "v1alpha1",
    kind = "EtcdCluster",
    plural = "etcdclusters",
    singular = "etcdcluster",
    shortname = "etcd",
    category = "gatehouse",
    namespaced,
    status = "EtcdClusterStatus",
    deprecated = "gatehouse.dev/v1alpha1 EtcdCluster is deprecated; use gatehouse.dev/v1",
    derive = "PartialEq",
    derive = "Default",
    doc = "An etcd cluster, in the shape of v1alpha1. Deprecated: v1 says all of it and more.",
    scale(
        spec_replicas_path = ".spec.size",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    validation = Rule::new(crate::kinds::etcdcluster::api::rules::NAME.0).message(crate::kinds::etcdcluster::api::rules::NAME.1).field_path(".metadata.name").optional_old_self(true),
    validation = Rule::new(crate::kinds::etcdcluster::api::rules::SEEN_V1ALPHA1[0].0).message(crate::kinds::etcdcluster::api::rules::SEEN_V1ALPHA1[0].1).field_path(".spec.size"),
    validation = Rule::new(crate::kinds::etcdcluster::api::rules::SEEN_V1ALPHA1[1].0).message(crate::kinds::etcdcluster::api::rules::SEEN_V1ALPHA1[1].1).field_path(".spec.size"),
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
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.size", description = "Voting members asked for"),
    printcolumn(name = "Serving", type_ = "integer", json_path = ".status.readyReplicas", description = "Members that serve"),
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version", description = "Version of etcd asked for"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct EtcdClusterSpec {
    /// Voting members, 0 to 7. 0 stops the cluster and keeps its data; an even number tolerates no more failures than
    /// one less. Defaults to 1 at creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 7))]
    pub size: Option<i32>,

    /// Version of etcd, such as 3.6.16: three numbers, no leading v. One minor up at a time. Defaults to the newest
    /// that this release supports at creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new(rules::VERSION.0).message(rules::VERSION.1))]
    pub version: Option<String>,

    /// Size of each member's volume in bytes, as a quantity such as 10Gi. It can grow and never shrink. Defaults to
    /// 10Gi at creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = Rule::new(rules::BYTES.0).message(rules::BYTES.1),
        validation = Rule::new(rules::GROWS.0).message(rules::GROWS.1)
    )]
    pub storage_size: Option<Quantity>,

    /// When a backup is taken, in UTC: five cron fields (minute, hour, day of month, month, day of week) or a macro
    /// such as @daily. If absent, no backups are scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    #[x_kube(validation = Rule::new(cron::CEL_RULE).message(cron::CEL_MESSAGE))]
    pub backup_schedule: Option<String>,
}

/// What the operator has seen, as far as v1alpha1 shows it.
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

    /// Names of the members.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub nodes: Option<Vec<String>>,

    /// Members that etcd counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,

    /// Members that serve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,

    /// Label selector of the members' pods, for the scale subresource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
}
