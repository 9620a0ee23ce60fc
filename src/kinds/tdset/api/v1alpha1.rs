//! TDSet as `gatehouse.dev/v1alpha1`: the shape that its published ancestor has, served and deprecated.
//!
//! Wire types only. What this version cannot say (minutes, days, time zones) is kept by the conversion, not here.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::v1::Transition;

/// How many replicas a workload has at which hours of the day, in UTC.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "gatehouse.dev",
    version = "v1alpha1",
    kind = "TDSet",
    plural = "tdsets",
    singular = "tdset",
    shortname = "tds",
    category = "gatehouse",
    namespaced,
    status = "TDSetStatus",
    derive = "PartialEq",
    doc = "TDSet gives a Deployment its replica count by hours of the day, in UTC.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether the workload has the replicas that it should have now"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why, or why not"
    ),
    printcolumn(
        name = "Window",
        type_ = "string",
        json_path = ".status.activeWindow",
        description = "The window that decides now; empty outside all of them"
    ),
    printcolumn(
        name = "Scheduled",
        type_ = "integer",
        json_path = ".status.scheduledReplicas",
        description = "Replicas that the timetable asks for now"
    ),
    printcolumn(
        name = "Replicas",
        type_ = "integer",
        json_path = ".status.replicas",
        description = "Replicas that the workload has"
    ),
    printcolumn(
        name = "ReadyReplicas",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "Replicas that are ready",
        priority = 1
    ),
    printcolumn(
        name = "Image",
        type_ = "string",
        json_path = ".spec.container.image",
        description = "Image of the container",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[expect(clippy::duplicated_attributes, reason = "columns may have the same type")]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
    "oldSelf.hasValue() || self.schedulingConfig.all(window, window.startTime != window.endTime)"
).message("startTime and endTime must differ: a window of no length is never active")
    .field_path(".schedulingConfig").optional_old_self(true))]
pub struct TDSetSpec {
    /// The one container of the Deployment that is made.
    pub container: Container,

    /// A Service in front of the pods. If absent, there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,

    /// Hours of the day, UTC, with a replica count of their own; the first one that holds decides. At most 64.
    #[schemars(length(max = 64))]
    pub scheduling_config: Vec<SchedulingWindow>,

    /// Replicas outside every window, 0 to 10000.
    #[schemars(range(min = 0, max = 10000))]
    pub default_replica: i32,

    /// Longest time between two looks at the workload, in minutes, 1 to 1440. It never delays a change of the count.
    /// Defaults to 10.
    #[schemars(range(min = 1, max = 1440))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_mint: Option<i32>,
}

/// The one container of a Deployment.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// Image of the container.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,

    /// Port that the container listens on, 1 to 65535.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
}

/// A Service in front of the pods.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// Port of the Service, 1 to 65535.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
}

/// Hours of the day with a replica count of their own.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SchedulingWindow {
    /// Hour at which the window starts, UTC, 0 to 23.
    #[schemars(range(min = 0, max = 23))]
    pub start_time: i32,

    /// Hour at which the window ends, itself no longer part of it, UTC, 0 to 23. Earlier than startTime means on
    /// the next day.
    #[schemars(range(min = 0, max = 23))]
    pub end_time: i32,

    /// Replicas while the window holds, 0 to 10000.
    #[schemars(range(min = 0, max = 10000))]
    pub replica: i32,
}

/// What was found and done last.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TDSetStatus {
    /// Generation of the spec that the operator has read last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// What decides now: the name of a window, or empty outside all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_window: Option<String>,

    /// Replicas that the timetable asks for now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_replicas: Option<i32>,

    /// Replicas that the workload has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,

    /// Replicas that are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,

    /// The next time at which the timetable asks for something else, within 400 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_transition: Option<Transition>,

    /// Ready, Progressing, ScheduleValid, Suspended, ManualOverride and Conflict.
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}
