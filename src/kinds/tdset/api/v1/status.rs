//! The status of a TDSet.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// What was found and done last.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TDSetStatus {
    /// Generation of the spec that the operator has read last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// What decides now: the name of a window, exception/<name>, or empty outside all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_window: Option<String>,

    /// Replicas that the timetable asks for now. Absent where it leaves the workload alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_replicas: Option<i32>,

    /// Replicas that the workload has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,

    /// Replicas that the workload had before a window or an exception, and gets back after it where the object has no
    /// defaultReplicas. Absent where that is not known, and as soon as it has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas_before: Option<i32>,

    /// Replicas that are ready. Absent for a workload of target.ref: its scale subresource does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,

    /// Label selector of the workload's pods, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,

    /// The transition that was carried out last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition: Option<PastTransition>,

    /// The ramp that the count is on. Absent where it is on none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp: Option<RampStatus>,

    /// The next time at which the timetable asks for something else, within 400 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_transition: Option<Transition>,

    /// The next transitions, at most 5.
    #[schemars(length(max = 5))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upcoming: Option<Vec<Transition>>,

    /// Release of the time zone database that these times were reckoned with, such as 2026b.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tzdb: Option<String>,

    /// Ready, Progressing, ScheduleValid, Suspended, ManualOverride and Conflict.
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}

/// A change that the timetable will ask for.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    /// When, in UTC.
    pub time: Time,

    /// When, in the object's time zone, such as 2026-10-24T19:00+02:00[Europe/Berlin].
    pub local: String,

    /// When, in the object's time zone and for reading: such as Sat 2026-10-24 19:00 CEST.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display: Option<String>,

    /// What decides from then on: the name of a window, exception/<name>, or empty.
    pub window: String,

    /// Replicas from then on. Absent where the workload is left alone from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

/// A change that was carried out.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastTransition {
    /// When the timetable asked for it, in UTC.
    pub time: Time,

    /// What was before.
    pub from: Phase,

    /// What was from then on.
    pub to: Phase,

    /// Time from then until the count was written, in milliseconds.
    pub lateness_ms: i64,
}

/// A way from one count to another, of which any step follows from the clock.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RampStatus {
    /// When it began, in UTC: the first step is taken then.
    pub since: Time,

    /// Replicas that it began with, as they were found.
    pub from: i32,

    /// Replicas that it leads to.
    pub to: i32,
}

/// What the timetable asks for during some time.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Phase {
    /// What decides: the name of a window, exception/<name>, or empty.
    pub window: String,

    /// Replicas. Absent where the workload is left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}
