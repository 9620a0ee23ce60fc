//! The workload of a TDSet: one to create, or an existing one.

use k8s_openapi::api::core::v1::{
    EnvFromSource, EnvVar, Lifecycle, LocalObjectReference, Probe, ResourceRequirements, SecurityContext,
    Volume, VolumeMount,
};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::api::pod::{PullPolicy, pod_settings};

/// The workload that is scaled.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("has(self.create) != has(self.ref)", "exactly one of create and ref is required"),
    validation = Rule::new("has(self.create) == has(oldSelf.create) && has(self.ref) == has(oldSelf.ref)")
        .message("create and ref cannot be exchanged for one another").reason(Reason::FieldValueForbidden),
)]
pub struct Target {
    /// Makes a Deployment, and a Service where servicePort is given, both named as this object and owned by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create: Option<Box<Create>>,

    /// Names a workload in the same namespace that has a scale subresource. Nothing but its count is written.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
}

/// A workload that is there.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!self.apiVersion.startsWith('gatehouse.dev/')")
        .message("must not be of gatehouse's own kinds").field_path(".kind"),
    validation = Rule::new("self.kind == oldSelf.kind").message("field is immutable").field_path(".kind"),
    validation = Rule::new("self.name == oldSelf.name").message("field is immutable").field_path(".name"),
)]
pub struct Reference {
    /// API version of the workload, such as apps/v1.
    #[schemars(length(min = 1, max = 317))]
    pub api_version: String,

    /// Kind of the workload, such as StatefulSet. Immutable.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,

    /// Name of the workload. Immutable.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Replicas, 0 to 10000, that the workload is given when this object is deleted. If absent, it keeps the count
    /// that it has.
    #[schemars(range(min = 0, max = 10000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas_on_deletion: Option<i32>,
}

/// A Deployment with one container.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Create {
    /// Image of the container.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,

    /// Port that the container listens on, 1 to 65535; it is named tdset.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,

    /// Port of a Service in front of the pods, 1 to 65535. If absent, there is no Service.
    #[schemars(range(min = 1, max = 65535))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_port: Option<i32>,

    /// Entry point, in place of the image's own.
    #[schemars(length(max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,

    /// Arguments of the entry point, in place of the image's own.
    #[schemars(length(max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,

    /// Working directory of the container, in place of the image's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,

    /// Environment variables.
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<EnvVar>>,

    /// ConfigMaps and Secrets whose keys become environment variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_from: Option<Vec<EnvFromSource>>,

    /// Compute resources that the container asks for and is held to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,

    /// When the image is pulled: Always, Never or IfNotPresent. Defaults to IfNotPresent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,

    /// Secrets in the same namespace that the image is pulled with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_secrets: Option<Vec<LocalObjectReference>>,

    /// Restarts the container where it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub liveness_probe: Option<Box<Probe>>,

    /// Takes the pod out of its Services where it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readiness_probe: Option<Box<Probe>>,

    /// Holds the other probes back until it succeeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup_probe: Option<Box<Probe>>,

    /// What is done after the container's start and before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Box<Lifecycle>>,

    /// Security settings of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_context: Option<Box<SecurityContext>>,

    /// Volumes of pod.volumes that the container sees.
    #[x_kube(merge_strategy = ListMerge::Map(vec!["mountPath".into()]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_mounts: Option<Vec<VolumeMount>>,

    /// What else the pods are to have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<Box<Pod>>,
}

pod_settings! {
    /// What else the pods are to have.
    pub struct Pod;
    affinity {}
    topology_spread_constraints {}
    service_account_name {}
    dns_policy {}
    security_context {}
    own {
        /// Seconds from the signal to end until a pod is killed. Defaults to 30.
        #[schemars(range(min = 0))]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub termination_grace_period_seconds: Option<i64>,

        /// Volumes that volumeMounts may name.
        #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub volumes: Option<Vec<Volume>>,
    }
}
