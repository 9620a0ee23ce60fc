//! The pods of the members: their image, and overrides.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, EnvVar, PodSecurityContext, ResourceRequirements, SecurityContext, Toleration,
    TopologySpreadConstraint,
};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::dns::DnsConfig;
use crate::kinds::etcdcluster::api::rules;

/// The image that members run; its tag is `v` and the version.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The repository, without a tag. Defaults to quay.io/coreos/etcd.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub repository: Option<String>,

    /// When nodes pull the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_policy: Option<PullPolicy>,

    /// Secrets with credentials for the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub pull_secrets: Option<Vec<NamedReference>>,
}

/// When nodes pull the image. Defaults to IfNotPresent.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullPolicy {
    /// At every start of a pod.
    Always,
    /// Where the node does not have it yet.
    IfNotPresent,
    /// Never.
    Never,
}

impl PullPolicy {
    /// The value as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::IfNotPresent => "IfNotPresent",
            Self::Never => "Never",
        }
    }
}

/// Another object in the same namespace, by name.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NamedReference {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What is laid over the pods of the members. A change restarts them, one at a time.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Pod {
    /// Labels of the pods, and of those of backups, beside the operator's own, which win.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 64))]
    pub labels: Option<BTreeMap<String, String>>,

    /// Annotations of the pods, and of those of backups, beside the operator's own, which win.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 64))]
    pub annotations: Option<BTreeMap<String, String>>,

    /// CPU and memory of the etcd container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,

    /// Environment variables of the etcd container. Those that begin with ETCD_ are flags of etcd and refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]), validation = Rule::new(rules::ENVIRONMENT.0).message(rules::ENVIRONMENT.1))]
    pub env: Option<Vec<EnvVar>>,

    /// Which nodes and neighbours the pods want. If absent, members keep apart by node where they can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,

    /// Taints that the pods tolerate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub tolerations: Option<Vec<Toleration>>,

    /// How the pods spread over zones and nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["topologyKey".into(), "whenUnsatisfiable".into()]))]
    pub topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,

    /// Labels that a node must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,

    /// PriorityClass of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub priority_class_name: Option<String>,

    /// ServiceAccount of the pods and of the backups. Defaults to the namespace's default, without its token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub service_account_name: Option<String>,

    /// Scheduler of the pods. Defaults to default-scheduler.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub scheduler_name: Option<String>,

    /// RuntimeClass of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub runtime_class_name: Option<String>,

    /// Seconds that a member has to hand its leadership over and stop, 10 to 3600. Defaults to 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new(rules::GRACE.0).message(rules::GRACE.1))]
    pub termination_grace_period_seconds: Option<i64>,

    /// Name servers, search domains and options of the resolver, beside those of the cluster's DNS, by which members
    /// find each other; for the pods of backups too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_config: Option<DnsConfig>,

    /// Security settings of the pods. Defaults to no root, the runtime's default seccomp profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_context: Option<PodSecurityContext>,

    /// Security settings of the etcd container. Defaults to no privileges, no capabilities, a read-only root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_security_context: Option<SecurityContext>,
}
