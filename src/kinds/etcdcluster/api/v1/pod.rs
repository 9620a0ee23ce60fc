//! The pods of the members: their image, and overrides.

use k8s_openapi::api::core::v1::{EnvVar, ResourceRequirements, SecurityContext};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::api::pod::{PullPolicy, pod_settings};
use crate::api::reference::NamedReference;
use crate::kinds::etcdcluster::api::rules;

/// The image that members run; its tag is `v` and the version.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The repository, without a tag. Defaults to quay.io/coreos/etcd.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub repository: Option<String>,

    /// When nodes pull the image. Defaults to IfNotPresent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_policy: Option<PullPolicy>,

    /// Secrets with credentials for the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub pull_secrets: Option<Vec<NamedReference>>,
}

pod_settings! {
    /// What is laid over the pods of the members. A change restarts them, one at a time.
    pub struct Pod;
    affinity {
        /// If absent, members keep apart by node where they can.
    }
    topology_spread_constraints {
        #[schemars(length(max = 16))]
        #[x_kube(merge_strategy = ListMerge::Map(vec!["topologyKey".into(), "whenUnsatisfiable".into()]))]
    }
    service_account_name {
        /// Its token is not mounted.
    }
    dns_policy {
        /// Default is refused: members find each other by the cluster's DNS.
    }
    security_context {
        /// Defaults to no root, the runtime's default seccomp profile.
    }
    own {
        /// CPU and memory of the etcd container.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub resources: Option<ResourceRequirements>,

        /// Environment variables of the etcd container. Those that begin with ETCD_ are flags of etcd and refused.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(length(max = 64))]
        #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]), validation = Rule::new(rules::ENVIRONMENT.0).message(rules::ENVIRONMENT.1))]
        pub env: Option<Vec<EnvVar>>,

        /// Seconds that a member has to hand its leadership over and stop, 10 to 3600. Defaults to 30.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[x_kube(validation = Rule::new(rules::GRACE.0).message(rules::GRACE.1))]
        pub termination_grace_period_seconds: Option<i64>,

        /// Security settings of the etcd container. Defaults to no privileges, no capabilities, a read-only root.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub container_security_context: Option<SecurityContext>,
    }
}
