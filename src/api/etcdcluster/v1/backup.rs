//! Backups, where they go, and starting from one.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::NamedReference;
use crate::api::cron;
use crate::api::duration::{self, Duration};
use crate::api::etcdcluster::rules;

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
    /// @daily. Absent: no scheduled backups.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    #[x_kube(validation = Rule::new(cron::CEL_RULE).message(cron::CEL_MESSAGE))]
    pub schedule: Option<String>,

    /// IANA time zone that `schedule` is read in, such as Europe/Berlin. Absent at creation with a schedule:
    /// Etc/UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub time_zone: Option<String>,

    /// Whether scheduled backups rest. Absent: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,

    /// Whether a verified backup is taken before each upgrade. Absent: true where there is a destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_upgrade: Option<bool>,

    /// Where backups go: exactly one place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<Destination>,

    /// Which backups are kept. The last verified one is never removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
}

/// A place for backups: exactly one of the fields.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "[has(self.persistentVolumeClaim), has(self.s3), has(self.gcs), has(self.azure)].filter(x, x).size() == 1"
    ).message("exactly one of persistentVolumeClaim, s3, gcs and azure is needed")
)]
pub struct Destination {
    /// A volume in the cluster's namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<PersistentVolumeClaimDestination>,

    /// A bucket of Amazon S3 or of a store that speaks its protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Destination>,

    /// A bucket of Google Cloud Storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcs: Option<GcsDestination>,

    /// A container of Azure Blob Storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure: Option<AzureDestination>,
}

/// A volume in the cluster's namespace.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolumeClaimDestination {
    /// Name of the PersistentVolumeClaim.
    #[schemars(length(min = 1, max = 253))]
    pub claim_name: String,

    /// Folder on the volume, relative, without `..`. Absent: the namespace and name of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new(rules::PATH.0).message(rules::PATH.1))]
    pub path: Option<String>,
}

/// A bucket of Amazon S3 or of a store that speaks its protocol.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct S3Destination {
    /// Name of the bucket.
    #[schemars(length(min = 3, max = 63))]
    pub bucket: String,

    /// Prefix of the objects' keys, without `..`. Absent: the namespace and name of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new(rules::PATH.0).message(rules::PATH.1))]
    pub prefix: Option<String>,

    /// Region of the bucket, such as eu-central-1. Absent: us-east-1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub region: Option<String>,

    /// URL of a store other than Amazon's, such as https://minio.example.com:9000, without credentials in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new(rules::ENDPOINT.0).message(rules::ENDPOINT.1))]
    pub endpoint: Option<String>,

    /// Whether the bucket stands in the path and not in the host name. Absent: true with `endpoint`, else false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_path_style: Option<bool>,

    /// Whether requests carry checksums in trailers, which some stores refuse. Absent: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_checksums: Option<bool>,

    /// Secret with `accessKeyID` and `secretAccessKey`, and `ca.crt` where the store has a certificate authority of
    /// its own. Absent: the identity of the ServiceAccount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<NamedReference>,
}

/// A bucket of Google Cloud Storage.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GcsDestination {
    /// Name of the bucket.
    #[schemars(length(min = 3, max = 222))]
    pub bucket: String,

    /// Prefix of the objects' names, without `..`. Absent: the namespace and name of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new(rules::PATH.0).message(rules::PATH.1))]
    pub prefix: Option<String>,

    /// Secret with `serviceAccount.json`. Absent: the identity of the ServiceAccount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<NamedReference>,
}

/// A container of Azure Blob Storage.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AzureDestination {
    /// Name of the storage account.
    #[schemars(length(min = 3, max = 24))]
    pub account: String,

    /// Name of the container.
    #[schemars(length(min = 3, max = 63))]
    pub container: String,

    /// Prefix of the blobs' names, without `..`. Absent: the namespace and name of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new(rules::PATH.0).message(rules::PATH.1))]
    pub prefix: Option<String>,

    /// URL of the blob service, where it is not the public one, without credentials in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new(rules::ENDPOINT.0).message(rules::ENDPOINT.1))]
    pub endpoint: Option<String>,

    /// Secret with `accountKey`. Absent: the identity of the ServiceAccount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<NamedReference>,
}

/// Which backups are kept: those that one of the fields asks for. The last verified one is never removed.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// How many verified backups are kept, 1 to 10000. Absent at creation with a schedule: 7.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub keep_last: Option<i32>,

    /// How old a backup may get before it is removed, as a duration such as 720h. Absent: any age.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new(duration::CEL_RULE).message(duration::CEL_MESSAGE))]
    pub max_age: Option<Duration>,
}

/// The snapshot that the cluster starts from.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Restore {
    /// Which snapshot.
    pub from: RestoreSource,

    /// How far revisions are moved ahead, so that watchers of the old cluster notice. Absent: 0, not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub bump_revision: Option<i64>,
}

/// Which snapshot a cluster starts from.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RestoreSource {
    /// Where it lies.
    pub destination: Destination,

    /// Name of the snapshot below the destination, or `latest`: the newest verified one.
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new(rules::PATH.0).message(rules::PATH.1))]
    pub name: String,
}
