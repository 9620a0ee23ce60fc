//! DatabaseMigration as `gatehouse.dev/v1alpha1`: the shape that its published ancestor has, served and deprecated.
//!
//! Wire types only. What this version cannot say is kept by the conversion; what gatehouse does not act on is kept in
//! `spec.legacy` of `v1`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::v1::{Legacy, PlanStatus};
use crate::api::definition::undescribed;
use crate::api::duration::{self, Duration};

/// Scripts that are run once each, in order, in a database.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "gatehouse.dev",
    version = "v1alpha1",
    kind = "DatabaseMigration",
    plural = "databasemigrations",
    singular = "databasemigration",
    shortname = "dbm",
    category = "gatehouse",
    namespaced,
    status = "DatabaseMigrationStatus",
    derive = "PartialEq",
    doc = "DatabaseMigration runs SQL scripts once each, in order, in a database.",
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
        name = "Strategy",
        type_ = "string",
        json_path = ".spec.migration.strategy",
        description = "How the ancestor would have run it; not acted on"
    ),
    printcolumn(
        name = "Database",
        type_ = "string",
        json_path = ".spec.database.type",
        description = "Kind of the database server"
    ),
    printcolumn(
        name = "Pending",
        type_ = "integer",
        json_path = ".status.pendingCount",
        description = "Scripts that are still to be run"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[expect(clippy::duplicated_attributes, reason = "columns may have the same type")]
#[serde(rename_all = "camelCase")]
pub struct DatabaseMigrationSpec {
    /// The database.
    pub database: Database,

    /// The scripts.
    pub migration: Migration,

    /// What is checked. Only maxMigrationTime is acted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<Legacy>,

    /// How it is rolled back. Not acted on: a script that fails leaves nothing behind where its database can take back
    /// what it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback: Option<Legacy>,

    /// Who is notified. Not acted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notifications: Option<Legacy>,
}

/// A database.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Database {
    /// Kind of the database server: postgresql, mysql or mariadb; v1 can say sqlite too.
    #[serde(rename = "type")]
    pub type_: DatabaseType,

    /// Name of the Secret in the same namespace with the keys username and password.
    #[schemars(length(min = 1, max = 253))]
    pub connection_secret: String,

    /// Host name or address of the server.
    #[schemars(length(min = 1, max = 253))]
    pub host: String,

    /// Port of the server, 1 to 65535. Written at creation when absent: 5432 for postgresql, 3306 for the others.
    #[schemars(range(min = 1, max = 65535))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,

    /// Name of the database.
    #[schemars(length(min = 1, max = 63))]
    pub database: String,

    /// disable, require, verify-ca or verify-full. Written as require at creation when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssl_mode: Option<SslMode>,
}

/// Kind of a database server.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[schemars(transform = undescribed)]
pub enum DatabaseType {
    /// PostgreSQL.
    #[default]
    PostgreSQL,
    /// MySQL.
    MySQL,
    /// MariaDB.
    MariaDB,
    /// SQLite.
    SQLite,
}

/// How the connection is protected.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[schemars(transform = undescribed)]
pub enum SslMode {
    /// No TLS.
    Disable,
    /// TLS with any server certificate.
    Require,
    /// The server's certificate is of an authority.
    VerifyCa,
    /// And it is for the host.
    VerifyFull,
}

/// The scripts, and how they are run.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Migration {
    /// shadow-table, blue-green or rolling. Not acted on: scripts run in place, as they are written.
    #[schemars(length(max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,

    /// The scripts, in the order in which they are run; 1 to 256.
    #[schemars(length(min = 1, max = 256))]
    pub scripts: Vec<MigrationScript>,

    /// Not acted on: scripts run one after another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<bool>,

    /// Not acted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_size: Option<i32>,
}

/// One script.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MigrationScript {
    /// What the history knows it by: 1 to 128 letters, digits, ".", "_" and "-". Unique in the object.
    #[schemars(length(min = 1, max = 128), regex(pattern = "^[A-Za-z0-9._-]+$"))]
    pub name: String,

    /// schema, data or validation (reads only, and must return no rows).
    #[serde(rename = "type")]
    pub type_: ScriptType,

    /// Where it comes from: configmap://NAME/KEY, secret://NAME/KEY, each also with the object's own namespace before
    /// the name, or inline://SQL.
    #[schemars(
        length(min = 1, max = 262_153),
        regex(
            pattern = r"^((configmap|secret)://([a-z0-9-]{1,63}/)?[a-z0-9][a-z0-9.-]{0,252}/[A-Za-z0-9._-]{1,253}|inline://[\s\S]+)$"
        )
    )]
    pub source: String,

    /// Checksum that the script has to have: sha256: and 64 hexadecimal digits.
    #[schemars(length(max = 71), regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,

    /// Names of scripts that come before this one in the list, at most 64.
    #[schemars(length(max = 64), inner(length(min = 1, max = 128)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<Vec<String>>,

    /// Longest time for each statement, such as 10m. Defaults to 5m.
    #[x_kube(validation = (duration::CEL_RULE, duration::CEL_MESSAGE))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

/// What a script is for.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[schemars(transform = undescribed)]
pub enum ScriptType {
    /// Changes tables and the like.
    #[default]
    Schema,
    /// Changes rows.
    Data,
    /// Reads only, and must return no rows.
    Validation,
}

/// What was found and done last.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseMigrationStatus {
    /// Generation of the spec that the operator has read last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Pending, Running, Succeeded, Failed or RollingBack, as the ancestor has them; what v1 says beside these is shown
    /// as the nearest.
    #[schemars(length(max = 32))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,

    /// What is to be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStatus>,

    /// Scripts that are still to be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_count: Option<i32>,

    /// Scripts that the history in the database has as applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_count: Option<i32>,

    /// Ready, Reconciling, Stalled, Approved, HistoryConsistent and DatabaseReachable.
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}
