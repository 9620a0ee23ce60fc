//! Fields of the published ancestor of `v1alpha1` that gatehouse keeps and does not act on.
//!
//! It is kept in the object, and not in an annotation: under server-side apply each field has its managers, and a part
//! of the object is converted by itself.

#![expect(clippy::struct_field_names, reason = "the names are the ancestor's")]

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::definition::undescribed;
use crate::api::duration::{self, Duration};

/// What is not acted on.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Legacy {
    /// How the ancestor ran scripts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migration: Option<LegacyMigration>,

    /// What the ancestor checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<LegacyValidation>,

    /// How the ancestor rolled back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback: Option<LegacyRollback>,

    /// Whom the ancestor notified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notifications: Option<Notifications>,
}

/// How the ancestor ran scripts.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LegacyMigration {
    /// shadow-table, blue-green or rolling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,

    /// Whether scripts ran beside one another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<bool>,

    /// Rows of one batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_size: Option<i32>,
}

/// How the ancestor ran scripts.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[schemars(transform = undescribed)]
pub enum Strategy {
    /// On a copy of each table.
    ShadowTable,
    /// On a copy of the database.
    BlueGreen,
    /// In place.
    Rolling,
}

/// What the ancestor checked.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LegacyValidation {
    /// Checks before the first script, at most 64.
    #[schemars(length(max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_checks: Option<Vec<PreCheck>>,

    /// Checks of rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_integrity_checks: Option<DataIntegrityChecks>,

    /// Limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub performance_thresholds: Option<PerformanceThresholds>,
}

/// A check before the first script.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreCheck {
    /// What is checked: connection, permissions or disk-space.
    #[schemars(length(max = 253))]
    #[serde(rename = "type")]
    pub type_: String,

    /// What it is held against.
    #[schemars(length(max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<String>,
}

/// Checks of rows.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DataIntegrityChecks {
    /// Whether they are made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// Share of rows that is checked, 1 to 100.
    #[schemars(range(min = 1, max = 100))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_percentage: Option<i32>,

    /// Whether checksums are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum_validation: Option<bool>,
}

/// Limits.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PerformanceThresholds {
    /// Longest time that a run may take, where runner.deadline does not say: the one field here that is acted on.
    #[x_kube(validation = (duration::CEL_RULE, duration::CEL_MESSAGE))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_migration_time: Option<Duration>,

    /// Longest time without service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_downtime: Option<Duration>,

    /// Most CPU.
    #[schemars(length(max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cpu_usage: Option<String>,

    /// Most memory.
    #[schemars(length(max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_memory_usage: Option<String>,
}

/// How the ancestor rolled back.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LegacyRollback {
    /// Whether it did so by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automatic: Option<bool>,

    /// When, at most 64.
    #[schemars(length(max = 64), inner(length(max = 253)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<String>>,

    /// immediate or graceful.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<RollbackStrategy>,

    /// Whether a backup was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserve_backup: Option<bool>,
}

/// How the ancestor rolled back.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[schemars(transform = undescribed)]
pub enum RollbackStrategy {
    /// At once.
    Immediate,
    /// After the script that runs.
    Graceful,
}

/// Whom the ancestor notified.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Notifications {
    /// A channel of Slack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slack: Option<Slack>,

    /// People.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<Email>,
}

/// A channel of Slack.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Slack {
    /// Name of a Secret.
    #[schemars(length(max = 253))]
    pub webhook: String,
}

/// People.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Email {
    /// Their addresses, at most 64.
    #[schemars(length(max = 64), inner(length(max = 320)))]
    pub recipients: Vec<String>,
}
