//! Backups, and where they go.

use std::borrow::Cow;

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::api::cron;
use crate::api::duration::{self, Duration};
use crate::kinds::etcdcluster::api::rules;

/// When snapshots are taken, and where they go.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.schedule) || has(self.destination)")
        .message("a schedule needs a destination that backups go to").field_path(".destination").reason(Reason::FieldValueRequired),
    validation = Rule::new("!has(self.beforeUpgrade) || !self.beforeUpgrade || has(self.destination)")
        .message("beforeUpgrade needs a destination that backups go to").field_path(".destination").reason(Reason::FieldValueRequired)
)]
pub struct Backup {
    /// When a backup is taken: five cron fields (minute, hour, day of month, month, day of week) or a macro such as
    /// @daily. If absent, no backups are scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    #[x_kube(validation = Rule::new(cron::CEL_RULE).message(cron::CEL_MESSAGE))]
    pub schedule: Option<String>,

    /// IANA time zone that `schedule` is read in, such as Europe/Berlin. Defaults at creation with a schedule to
    /// Etc/UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub time_zone: Option<String>,

    /// Suspends scheduled backups. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,

    /// Whether a verified backup is taken before each upgrade. Defaults to true where there is a destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_upgrade: Option<bool>,

    /// Where backups go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<Destination>,

    /// Which backups are kept. The last verified one is never removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
}

/// A place for backups. The other fields are reserved for stores that this release cannot write to.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.persistentVolumeClaim) || has(self.s3) || has(self.gcs) || has(self.azure)")
        .message("persistentVolumeClaim is needed").field_path(".persistentVolumeClaim").reason(Reason::FieldValueRequired)
)]
pub struct Destination {
    /// A volume in the cluster's namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<PersistentVolumeClaimDestination>,

    /// Reserved for S3. Not supported by this release, and refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub s3: Option<Unsupported>,

    /// Reserved for Google Cloud Storage. Not supported by this release, and refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcs: Option<Unsupported>,

    /// Reserved for Azure Blob Storage. Not supported by this release, and refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure: Option<Unsupported>,
}

/// What is below a field that is reserved: kept as it was written, never looked at, and refused where it is new.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(transparent)]
pub struct Unsupported(Map<String, Value>);

impl JsonSchema for Unsupported {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Unsupported".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let (rule, message) = rules::UNSUPPORTED;
        json_schema!({
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-validations": [{
                "rule": rule, "message": message, "reason": "FieldValueForbidden", "optionalOldSelf": true,
            }],
        })
    }
}

/// A volume in the cluster's namespace.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolumeClaimDestination {
    /// Name of the PersistentVolumeClaim.
    #[schemars(length(min = 1, max = 253))]
    pub claim_name: String,

    /// Folder on the volume, relative, without `..`. Defaults to the namespace and name of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new(rules::PATH.0).message(rules::PATH.1))]
    pub path: Option<String>,
}

/// Which backups are kept: those that one of the fields asks for. The last verified one is never removed.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// How many verified backups of the schedule are kept, and as many of the others, 1 to 10000. Defaults at creation
    /// with a schedule to 7.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub keep_last: Option<i32>,

    /// How old a backup may get before it is removed, as a duration such as 720h. Defaults to any age.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new(duration::CEL_RULE).message(duration::CEL_MESSAGE))]
    pub max_age: Option<Duration>,
}
