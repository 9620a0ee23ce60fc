//! DatabaseMigration as `gatehouse.dev/v1`: the hub version, stored and reconciled.
//!
//! Wire types only. An absent field stays absent: what absence means is written by the defaults at creation, or stands
//! in the field's own description.

mod database;
mod legacy;
mod script;
mod status;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{LocalObjectReference, ResourceRequirements, SecurityContext};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::definition::undescribed;
use crate::api::duration::{self, Duration};
use crate::api::pod::{PullPolicy, pod_settings};

pub use crate::api::reference::KeyReference;
pub use database::{CredentialsSecret, Database, DatabaseFile, Engine, History, Tls, TlsMode};
pub use legacy::Legacy;
pub use script::{Script, ScriptKind, Source, Timeouts, Transaction};
pub use status::{
    AppliedScript, CurrentRun, DatabaseMigrationStatus, FinishedRun, LastError, Outcome, Phase, PlanStatus,
};

/// Most scripts that one object may have.
pub const MOST_SCRIPTS: usize = 256;

/// Scripts that are run once each, in order, in a database.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "gatehouse.dev",
    version = "v1",
    kind = "DatabaseMigration",
    plural = "databasemigrations",
    singular = "databasemigration",
    shortname = "dbm",
    category = "gatehouse",
    namespaced,
    status = "DatabaseMigrationStatus",
    derive = "PartialEq",
    doc = "DatabaseMigration runs SQL scripts once each, in order, in a database, and keeps their history there.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether everything that the object asks for is done"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why, or why not"
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "How far the migration is"
    ),
    printcolumn(
        name = "Applied",
        type_ = "integer",
        json_path = ".status.appliedCount",
        description = "Scripts that the history in the database has as applied"
    ),
    printcolumn(
        name = "Pending",
        type_ = "integer",
        json_path = ".status.pendingCount",
        description = "Scripts that are still to be run"
    ),
    printcolumn(
        name = "Engine",
        type_ = "string",
        json_path = ".spec.database.engine",
        description = "Kind of the database server",
        priority = 1
    ),
    printcolumn(
        name = "Database",
        type_ = "string",
        json_path = ".spec.database.name",
        description = "Name of the database",
        priority = 1
    ),
    printcolumn(
        name = "Plan",
        type_ = "string",
        json_path = ".status.plan.hash",
        description = "Hash of the plan, by which it is approved",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[expect(clippy::duplicated_attributes, reason = "columns may have the same type")]
#[serde(rename_all = "camelCase")]
pub struct DatabaseMigrationSpec {
    /// The database.
    pub database: Database,

    /// Where the history of applied scripts is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,

    /// The scripts, in the order in which they are run; 1 to 256. New ones are appended: one that is applied stays.
    #[schemars(length(min = 1, max = 256))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["id".into()]))]
    pub scripts: Vec<Script>,

    /// Id of the last script that a database has already when gatehouse meets it first: it and those before it are
    /// recorded as applied, without being run. Only where the history is empty and the database is not.
    #[schemars(length(min = 1, max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,

    /// What is done where gatehouse meets a database that has tables and no history, and no baseline is named: Refuse
    /// (nothing is run) or Ignore (all scripts are run on it). Defaults to Refuse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub existing_tables: Option<ExistingTables>,

    /// What is done with a script that stands before one that is applied and is not itself: Reject (nothing is run) or
    /// Allow (it is run). Defaults to Reject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_order: Option<OutOfOrder>,

    /// How far to go: Plan (read the history, list what is pending), Rehearse (run what is pending in one transaction
    /// and roll it back; it takes the real locks, and is refused for MySQL and MariaDB, which cannot roll back a change of a
    /// table) or Apply. Defaults to Apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,

    /// Whether a person has to approve what is run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,

    /// How often a run is repeated that failed for a passing reason: no connection, a lock that was not to be had in
    /// time, a deadlock, a serialization failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,

    /// What is done when a script fails: Stop, or RevertThisRun (run the down scripts of what this run applied, last
    /// one first). Defaults to Stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,

    /// Checksums of scripts, by id, that may differ from those in the history: sha256: and 64 hexadecimal digits.
    /// At most 256.
    #[schemars(extend("additionalProperties" = {"type": "string", "maxLength": 71, "pattern": "^sha256:[0-9a-f]{64}$"}))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept_checksums: Option<BTreeMap<String, String>>,

    /// Other DatabaseMigrations of this namespace that have to be applied first, at most 16.
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires: Option<Vec<Requirement>>,

    /// What becomes of the database when this object is deleted: Retain (it stays as it is) or Revert (the down
    /// scripts of what this object applied are run, last one first). Defaults to Retain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,

    /// True starts no further run; one that runs is not ended. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,

    /// The pods that run the scripts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner: Option<Runner>,

    /// What an object says that was written as v1alpha1 and that gatehouse does not act on. Kept so that it reads back
    /// as it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legacy: Option<Legacy>,
}

/// What is done where a database has tables and no history, and no baseline is named.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(transform = undescribed)]
pub enum ExistingTables {
    /// Nothing is run.
    Refuse,
    /// All scripts are run.
    Ignore,
}

/// What is done with a script that stands before an applied one.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(transform = undescribed)]
pub enum OutOfOrder {
    /// Nothing is run.
    #[default]
    Reject,
    /// It is run.
    Allow,
}

/// How far to go.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(transform = undescribed)]
pub enum Mode {
    /// Read the history and list what is pending.
    Plan,
    /// Run what is pending and roll it back.
    Rehearse,
    /// Run what is pending.
    #[default]
    Apply,
}

/// Whether a person has to approve what is run.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// True runs nothing but the plan whose hash is planHash. Only users who may approve databasemigrations (the verb
    /// approve) can take it back.
    pub required: bool,

    /// The hash in status.plan.hash of the plan that is approved. Only users who may approve databasemigrations (the
    /// verb approve) can set it.
    #[schemars(length(max = 64), regex(pattern = "^([0-9a-f]{64})?$"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_hash: Option<String>,
}

/// How often a run is repeated.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    /// Runs after the first one, 0 to 100. Defaults to 5.
    #[schemars(range(min = 0, max = 100))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i32>,

    /// Time from a failed run to the second one, such as 30s; it doubles with each further run, up to 30m. 1s to 1h.
    /// Defaults to 30s.
    #[x_kube(validation = (duration::CEL_RULE, duration::CEL_MESSAGE))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Duration>,
}

/// What is done when a script fails.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(transform = undescribed)]
pub enum OnFailure {
    /// Nothing further.
    #[default]
    Stop,
    /// The down scripts of what this run applied are run.
    RevertThisRun,
}

/// Another DatabaseMigration that has to be applied first.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Id of a script of it that has to be applied. If absent, being ready is enough.
    #[schemars(length(min = 1, max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_id: Option<String>,
}

/// What becomes of the database when the object is deleted.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(transform = undescribed)]
pub enum DeletionPolicy {
    /// It stays as it is.
    #[default]
    Retain,
    /// The down scripts of what the object applied are run.
    Revert,
}

pod_settings! {
    /// The pods that run the scripts.
    pub struct Runner;
    affinity {}
    topology_spread_constraints {}
    service_account_name {
        /// Its token is not mounted.
        #[schemars(length(min = 1, max = 253))]
    }
    dns_policy {}
    security_context {
        /// Defaults to no root, the runtime's default seccomp profile.
    }
    own {
        /// Compute resources. Defaults to requests of 10m CPU and 32Mi memory, and limits of 1 CPU and 256Mi memory.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub resources: Option<ResourceRequirements>,

        /// Security settings of the container. Defaults to no privileges, no capabilities, a read-only root.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub container_security_context: Option<SecurityContext>,

        /// When nodes pull the image: Always, IfNotPresent or Never. Defaults to IfNotPresent.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub image_pull_policy: Option<PullPolicy>,

        /// Secrets in the same namespace that the image is pulled with.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub image_pull_secrets: Option<Vec<LocalObjectReference>>,

        /// Longest time that a run may take, such as 30m; then it is ended. 1m to 168h.
        /// Defaults to 30m.
        #[x_kube(validation = (duration::CEL_RULE, duration::CEL_MESSAGE))]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub deadline: Option<Duration>,

        /// How long a Job stays after its end, such as 24h. 1m to 720h. Defaults to 24h.
        #[x_kube(validation = (duration::CEL_RULE, duration::CEL_MESSAGE))]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub ttl: Option<Duration>,
    }
}
